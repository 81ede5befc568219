/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings while the drive runs.  The console, hosts and strap pins change
 * them; they are saved in flash.
 *
 * There are three sets.  The settings in force may differ from the saved ones:
 * straps and changes without "save" last until the next start, and most saved
 * changes take effect only then.  The staged settings are the console's draft.
 */
#ifndef ESSD_SETTINGS_SETTINGS_H
#define ESSD_SETTINGS_SETTINGS_H

#include "firmware/settings/config_check.h"
#include "firmware/hal/log.h"
#include "firmware/store/config.h"
#include "firmware/store/write_shares.h"

/* The strap pins: docs/hardware/soc.md, section 5. */
enum {
    /* 0: the FEC of the configuration; else 1 + enum config_fec. */
    STRAPS_FEC = 0x03,
    STRAPS_10G = 0x04,
    STRAPS_NO_BMC = 0x08,      /* the drive does not answer a BMC */
    STRAPS_BMC_ON_I2C0 = 0x10, /* also SOC_STRAP_BMC_ON_I2C0 */
    STRAPS_DATASHEET = 0x20,   /* the feature set of the data sheet */
    STRAPS_LOCKED = 0x40,      /* settings cannot be saved */
    STRAPS_DEFAULTS = 0x80,    /* the configuration in flash is not used */
};

/* How settings are applied to the drive. */
struct settings_ops {
    /* Enable a port with this speed and FEC.
     * @return false when the port refuses them; it is unchanged then */
    bool (*set_link)(void *ctx, uint8_t port, uint8_t speed_gbps,
                     enum config_fec fec);
    void (*disable_link)(void *ctx, uint8_t port);

    /* Apply the differences between two sets that take effect at once, except
     * speed and FEC. */
    void (*apply_config)(void *ctx, const struct config *before,
                         const struct config *after);

    /* The hours of power-on, over all power cycles.  NULL: unknown. */
    uint64_t (*power_on_hours)(void *ctx);

    /* A number for the host that changes something now; 0: none, but the owner
     * at the console.  NULL: there are no hosts. */
    uint32_t (*acting_host)(void *ctx);
};

/*
 * A sector of the flash endures 100,000 erasures, and a change writes both
 * copies of the configuration.  SETTINGS_WRITES_FREE changes are always
 * possible, so that nobody is held up while working with a drive.  After those,
 * each hour of power-on allows SETTINGS_WRITES_PER_HOUR more.  Hosts that save
 * whenever they may need (100,000 - 1,024) / 3 hours, nearly four years, to
 * wear the flash out.  Each host has a share of the writes that are left.
 */
enum { SETTINGS_WRITES_FREE = 1024, SETTINGS_WRITES_PER_HOUR = 3 };

struct settings_config {
    struct log *log;
    /* This and the next one are used during settings_init() only. */
    const struct config *in_force;
    /* The configuration in flash; NULL: the same as in_force. */
    const struct config *saved;
    const struct settings_ops *ops;
    void *ops_ctx;
    /* NULL: cannot be saved. */
    bool (*save)(void *ctx, const struct config *config);
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
    struct config staged; /* valid if is_staged */
    bool is_staged;
    struct write_shares shares;
};

enum settings_result {
    SETTINGS_OK,
    SETTINGS_INVALID,   /* no such port or value; nothing changed */
    SETTINGS_NOT_SAVED, /* writing to flash failed; nothing changed */
    /* Refused to spare the flash: try later; nothing changed. */
    SETTINGS_TOO_OFTEN,
};

void settings_init(struct settings *settings,
                   const struct settings_config *config);

/** What hosts have used of the writes, to be kept over a restart. */
struct write_shares *settings_write_shares(struct settings *settings);

/** Override the settings from flash with those of the strap pins. */
void settings_apply_straps(struct config *config, uint8_t straps);

/** "none", "fc", "rs", as the console and the tools spell them. */
const char *settings_fec_name(enum config_fec fec);

/** @return false when `name` is no FEC */
MUST_USE bool settings_fec_parse(const char *name, enum config_fec *fec);

/**
 * Set a port's FEC at once.  The link goes down if its partner does not agree.
 *
 * @param save  also save it in flash
 */
MUST_USE enum settings_result settings_set_fec(struct settings *settings,
                                               uint8_t port,
                                               enum config_fec fec, bool save);

/** Set the speed of both ports: 25, or 10 if no port uses RS-FEC. */
MUST_USE enum settings_result settings_set_speed(struct settings *settings,
                                                 uint8_t gbps, bool save);

/**
 * The draft, which the caller may change.  A new draft is a copy of the saved
 * settings.
 */
struct config *settings_stage(struct settings *settings);

/** The draft, or the saved settings if there is no draft. */
const struct config *settings_draft(const struct settings *settings);

/** Discard the draft. */
void settings_discard(struct settings *settings);

/**
 * Replace all settings.  Keys with config_text_is_live() take effect at once,
 * the others at the next start; without saving, only the former may change. The
 * draft is discarded.
 *
 * @param tell  called for each mistake; nothing is changed then
 */
MUST_USE enum settings_result settings_replace(struct settings *settings,
                                               const struct config *config,
                                               bool save, config_mistake *tell,
                                               void *ctx);

#endif
