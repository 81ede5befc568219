/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports' settings while the drive runs: changed by the console, by a host
 * or by the strap pins, kept in flash.
 *
 * There are three sets.  What is in force may differ from what is saved: straps
 * and changes that nobody asked to keep last until the next start, and most of
 * what is saved waits for it.  What is staged is the console's draft.
 */
#ifndef ESSD_SETTINGS_SETTINGS_H
#define ESSD_SETTINGS_SETTINGS_H

#include "firmware/settings/config_check.h"
#include "firmware/hal/log.h"
#include "firmware/store/config.h"

/* The strap pins: docs/hardware/soc.md, section 5. */
enum {
    STRAPS_FEC = 0x03, /* 0: as configured, else 1 + enum config_fec */
    STRAPS_10G = 0x04,
    STRAPS_DEFAULTS = 0x80, /* the configuration in flash is not used */
};

/* What settings change in the drive. */
struct settings_ops {
    /* Enable a port with this speed and FEC.
     * @return false when the port refuses them: it goes on as it was */
    bool (*set_link)(void *ctx, uint8_t port, uint8_t speed_gbps,
                     enum config_fec fec);
    void (*disable_link)(void *ctx, uint8_t port);

    /* Go over from one set to the other, as far as that can be at once; all
     * but speed and FEC. */
    void (*apply_config)(void *ctx, const struct config *before,
                         const struct config *after);
};

struct settings_config {
    struct log *log;
    const struct config *in_force; /* these two: during settings_init() only */
    const struct config *saved;    /* in flash; NULL: the same */
    const struct settings_ops *ops;
    void *ops_ctx;
    bool (*save)(void *ctx, const struct config *config); /* NULL: cannot */
    void *save_ctx;
};

struct settings {
    struct log *log;
    const struct settings_ops *ops;
    void *ops_ctx;
    bool (*save)(void *ctx, const struct config *config);
    void *save_ctx;
    struct config in_force;
    struct config saved;
    struct config staged; /* counts only if is_staged */
    bool is_staged;
};

enum settings_result {
    SETTINGS_OK,
    SETTINGS_INVALID,   /* no such port or value; nothing changed */
    SETTINGS_NOT_SAVED, /* flash did not take it; nothing changed */
};

void settings_init(struct settings *settings,
                   const struct settings_config *config);

/** What the pins ask for, on top of what was read from flash. */
void settings_apply_straps(struct config *config, uint8_t straps);

/** "none", "fc", "rs", as the console and the tools spell them. */
const char *settings_fec_name(enum config_fec fec);

/** @return false when `name` is none of them */
MUST_USE bool settings_fec_parse(const char *name, enum config_fec *fec);

/**
 * A port's FEC, at once; the link goes down if its partner does not agree.
 *
 * @param save  over the next start too
 */
MUST_USE enum settings_result settings_set_fec(struct settings *settings,
                                               uint8_t port,
                                               enum config_fec fec, bool save);

/** Both ports' speed, 10 or 25; not 10 while a port has RS-FEC. */
MUST_USE enum settings_result settings_set_speed(struct settings *settings,
                                                 uint8_t gbps, bool save);

/** The draft, to be changed by the caller; it starts as what is saved. */
struct config *settings_stage(struct settings *settings);

/** The draft, or what is saved if there is none. */
const struct config *settings_draft(const struct settings *settings);

/** Forget the draft. */
void settings_discard(struct settings *settings);

/**
 * All of it at once.  Keys of which config_text_is_live() are in force on
 * return, the rest with the next start: what is not to be saved cannot have
 * changes there.  A draft is forgotten.
 *
 * @param tell  is told what is wrong; then nothing has changed
 */
MUST_USE enum settings_result settings_replace(struct settings *settings,
                                               const struct config *config,
                                               bool save, config_mistake *tell,
                                               void *ctx);

#endif
