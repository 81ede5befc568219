/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drive does when its power fails: it begins to save the write buffer,
 * once, and tells the power supply when it needs no more power.
 * Reference: docs/nand.md, "Power loss protection"
 *
 * Not here: how the buffer is saved, which is the translation layer's matter.
 */
#ifndef ESSD_POWER_POWER_H
#define ESSD_POWER_POWER_H

#include "firmware/hal/log.h"

struct power_config {
    struct log *log;
    bool (*is_failing)(void *ctx); /* NULL: there are no capacitors */
    void (*saved)(void *ctx);      /* the drive needs no more power */
    void *ctx;

    /* Begin to save the write buffer, if there is one. */
    void (*save)(void *ctx, uint64_t now_us);
    void *save_ctx;
};

/* Treat as opaque. */
struct power {
    struct power_config config;
    bool has_failed;
};

void power_init(struct power *power, const struct power_config *config);

/**
 * If the power fails, begin to save the write buffer.
 * @return true in the one call that begins it
 */
bool power_check(struct power *power, uint64_t now_us);

/** The write buffer is saved: print what is in the log, and let the power go.
 */
void power_end(struct power *power);

#endif
