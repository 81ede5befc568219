/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps SMART's counters and the error log over power cycles.  They are read at
 * the start, and written to flash
 *
 *  + when the first host enables a controller (CC.EN), and when the last one
 * has shut its controller down or is gone, because a power loss in between is
 * an unsafe shutdown;
 *  + when the error log has new entries, with at most 64 of them; media errors
 *    are not delayed;
 *  + every hour of power-on, and before the drive is switched off.
 *
 * Wear: hosts can cause eight records at once and then one in five minutes.
 * With the hourly one that is at most 13 an hour, 114,000 a year.  63 records
 * cost one erasure (firmware/store/usage.h) of one of two sectors, each of
 * which lasts for 100,000 erasures (data sheet of the flash): 12.6 million
 * records, 110 years.
 *
 * The error log has 256 sectors.  64 entries in five minutes wear them out in
 * 240 years.
 *
 * A power cut loses at most the data counters of the last hour, and the errors
 * of the last five minutes (the first error after a quiet time is written at
 * once), but never an unsafe shutdown.  When hosts came and went faster than
 * the pace, up to ten minutes may pass before the record that the last one is
 * gone, or that there were errors, is written.  A power cut in that time is
 * counted as unsafe although it was safe.
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

/** Take what was read from flash, and count a power cut while in use. */
void usage_keeper_init(struct usage_keeper *keeper,
                       const struct usage_keeper_config *config,
                       uint64_t now_us);

/** Fill in the target's initial counters and health. */
void usage_keeper_fill(const struct usage_keeper *keeper,
                       struct nvmf_health *health,
                       struct nvmf_counters *counters);

/** Over all power cycles, this one included. */
uint64_t usage_keeper_power_on_hours(const struct usage_keeper *keeper);

/** Restore the error log. @param target  initialised with the values above;
 *  outlives the keeper */
void usage_keeper_start(struct usage_keeper *keeper,
                        struct nvmf_target *target);

/**
 * Do what is due, after the target's turn.  One step writes few records, so
 * that a full error log does not hold up the main loop.
 *
 * @return when to call it again
 */
uint64_t usage_keeper_step(struct usage_keeper *keeper, uint64_t now_us);

/** Before an orderly power-off: write everything that is pending. */
void usage_keeper_stop(struct usage_keeper *keeper, uint64_t now_us);

#endif
