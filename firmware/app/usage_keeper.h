/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMART's counters over power cycles: read at the start, written to flash
 *
 *  + when the first host begins to rely on the drive (CC.EN), and when the last
 *    one has shut its controller down or is gone: what was in use when the
 *    power went is an unsafe shutdown
 *  + every hour of power-on
 *
 * A record is 64 bytes; 63 of them cost one erasure (firmware/store/usage.h).
 * What happened since the last one is lost with the power.
 */
#ifndef ESSD_APP_USAGE_KEEPER_H
#define ESSD_APP_USAGE_KEEPER_H

#include "firmware/store/usage.h"
#include "nvmeof/target/target.h"

struct usage_keeper_config {
    const struct usage *usage; /* as read; NULL: a new drive */
    bool is_power_on;          /* it starts because the power came */

    /* Keep it.  NULL: it cannot be kept. */
    bool (*save)(void *ctx, const struct usage *usage);
    void *save_ctx;
};

/* Treat as opaque. */
struct usage_keeper {
    bool (*save)(void *ctx, const struct usage *usage);
    void *save_ctx;
    struct nvmf_target *target; /* NULL before usage_keeper_start() */
    struct usage usage;         /* as it was saved, or is to be */
    uint64_t start_us;
    uint32_t start_minutes;
    uint64_t check_us; /* whether hosts rely on us: not before */
    uint64_t hour_us;
};

/** What was read; a power cut while in use is counted here. */
void usage_keeper_init(struct usage_keeper *keeper,
                       const struct usage_keeper_config *config,
                       uint64_t now_us);

/** The target's first values. */
void usage_keeper_fill(const struct usage_keeper *keeper,
                       struct nvmf_health *health,
                       struct nvmf_counters *counters);

/** @param target  initialised with those; stays */
void usage_keeper_start(struct usage_keeper *keeper,
                        struct nvmf_target *target);

/** Do what is due, after the target's turn. @return when to call it again */
uint64_t usage_keeper_step(struct usage_keeper *keeper, uint64_t now_us);

#endif
