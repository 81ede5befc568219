/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMART's counters and the error log over power cycles: read at the start,
 * written to flash
 *
 *  + when the first host begins to rely on the drive (CC.EN), and when the last
 *    one has shut its controller down or is gone: what was in use when the
 *    power went is an unsafe shutdown
 *  + when there are new entries in the error log: these as well, 64 at most;
 *    those of the media are not put off
 *  + every hour of power-on, and before the drive is switched off
 *
 * Wear: whatever hosts do, eight records may come at once and then one in five
 * minutes; with the hour's 13 an hour, 114,000 a year.  63 of them cost one
 * erasure (firmware/store/usage.h), of two sectors in turn, which take 100,000
 * each (the flash's data sheet): 12.6 million records, 110 years of that.
 *
 * The error log has 256 sectors: 64 entries in five minutes wear each of them
 * out in 240 years.
 *
 * What a power cut loses: data counters of the last hour at most; errors of the
 * last five minutes and their number (the first after a quiet time is written
 * at once); never an unsafe shutdown.  After hosts have come and gone more
 * often than the pace, up to ten minutes may pass before flash knows that the
 * last one is gone, or of errors: a cut within them is counted as unsafe though
 * it was not.
 */
#ifndef ESSD_USAGE_USAGE_KEEPER_H
#define ESSD_USAGE_USAGE_KEEPER_H

#include "firmware/store/error_log.h"
#include "firmware/store/usage.h"
#include "nvmeof/target/target.h"

enum {
    USAGE_PACE_MINUTES = 5,
    USAGE_RECORDS_AT_ONCE = 8,
};

struct usage_keeper_config {
    const struct usage *usage; /* as read; NULL: a new drive */
    bool is_power_on;          /* it starts because the power came */

    const struct error_records *errors; /* as read; until
                                           usage_keeper_start(); NULL: none */

    /* Keep it.  NULL: it cannot be kept. */
    bool (*save)(void *ctx, const struct usage *usage);
    bool (*save_error)(void *ctx, const struct error_record *record);
    void *save_ctx;
};

/* Treat as opaque. */
struct usage_keeper {
    bool (*save)(void *ctx, const struct usage *usage);
    bool (*save_error)(void *ctx, const struct error_record *record);
    void *save_ctx;
    const struct error_records *errors;
    struct nvmf_target *target; /* NULL before usage_keeper_start() */
    struct usage usage;         /* as it was saved, or is to be */
    uint64_t start_us;
    uint32_t start_minutes;
    uint64_t check_us; /* whether hosts rely on us: not before */
    uint64_t hour_us;
    uint64_t pace_us; /* when all records that come at once may come again */
    uint64_t saved_errors; /* the count of the last one in flash */
    uint64_t last_error;   /* the count of the last one to be written now */
    uint64_t errors_us;    /* what errors want written: not before */
    bool is_due;    /* an unsafe shutdown has been counted, not written */
    bool is_saving; /* the records in `usage` are being written */
};

/** What was read; a power cut while in use is counted here. */
void usage_keeper_init(struct usage_keeper *keeper,
                       const struct usage_keeper_config *config,
                       uint64_t now_us);

/** The target's first values. */
void usage_keeper_fill(const struct usage_keeper *keeper,
                       struct nvmf_health *health,
                       struct nvmf_counters *counters);

/** @param target  initialised with those; stays.  It gets the error log. */
void usage_keeper_start(struct usage_keeper *keeper,
                        struct nvmf_target *target);

/**
 * Do what is due, after the target's turn.  One step writes few records, so
 * that a full error log does not hold up the main loop.
 *
 * @return when to call it again
 */
uint64_t usage_keeper_step(struct usage_keeper *keeper, uint64_t now_us);

/** Before the drive goes down in good order: write what there is. */
void usage_keeper_stop(struct usage_keeper *keeper, uint64_t now_us);

#endif
