/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps SMART's counters and the error log over power cycles.  They are read at
 * the start.  They are written to flash
 *
 * * when the first host enables a controller (CC.EN) after a start, and when
 *   the last host has shut its controller down or is gone, because a power loss
 *   between these is an unsafe shutdown;
 * * when the error log has new entries, with at most 64 of them; media errors
 *   are not delayed;
 * * every hour of power-on, and before the drive is switched off.
 *
 * Wear: hosts can cause eight records at once and then one in five minutes.
 * With the hourly record that is at most 13 an hour, 114,000 a year, and twice
 * as many with NAND flash, which has records of its own.  63 records cost one
 * erasure (firmware/store/records.h) of one of two sectors, each of which
 * endures 100,000 erasures (data sheet of the flash): 12.6 million records, 110
 * years, or 55 with NAND flash.  The error log has 256 sectors.  At most 64
 * entries are written in five minutes, new ones or the whole log again, which
 * wear them out in 240 years.
 *
 * A power cut loses at most the data counters of the last hour and the errors
 * of the last five minutes (the first error after a quiet time is written at
 * once), but it is always counted if it was unsafe.  When hosts come and go
 * faster than records may be written, up to ten minutes pass before the record
 * that the last host is gone, or that there were errors.  A power cut in that
 * time is counted as unsafe although it was safe.
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

/* Read the counters of the NAND flash over all power cycles. */
typedef void usage_flash_fn(void *ctx, struct usage_flash *flash);

struct usage_keeper_config {
    const struct usage *usage; /* the counters in flash; NULL: a new drive */
    bool is_power_on;          /* the drive starts because the power came on */
    uint32_t start;            /* the number of this start */

    /* The error log in flash, needed until usage_keeper_start(); NULL: none. */
    const struct error_records *errors;

    /* Save a usage record.  NULL: it cannot be saved. */
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
    usage_flash_fn *read_flash; /* NULL: there is no flash */
    void *flash_ctx;
    struct nvmf_target *target; /* NULL before usage_keeper_start() */
    /* The counters that were saved last, or are being saved. */
    struct usage usage;
    uint32_t start; /* the number of this start */
    uint64_t start_us;
    uint32_t start_minutes;
    /* Whether hosts use the drive is checked again at this time. */
    uint64_t check_us;
    uint64_t hour_us;
    /* When all records that may be written at once are available again. */
    uint64_t pace_us;
    uint64_t saved_errors; /* number of the last error entry in flash */
    uint64_t last_error;   /* number of the last error entry to write now */
    uint32_t errors_since; /* records since the whole log was written */
    uint64_t errors_us;    /* pending errors are written no earlier than this */
    bool was_unsafe;       /* the last shutdown */
    uint32_t unsafe_start; /* usage_keeper_unsafe_start() */
    bool is_due;    /* an unsafe shutdown is counted but not written yet */
    bool is_saving; /* the records in `usage` are being written */
};

/**
 * Take the counters from flash, and count a power cut while the drive was in
 * use.
 */
void usage_keeper_init(struct usage_keeper *keeper,
                       const struct usage_keeper_config *config,
                       uint64_t now_us);

/** Keep the counters of the NAND flash, too.  @return those of before */
const struct usage_flash *usage_keeper_add_flash(struct usage_keeper *keeper,
                                                 usage_flash_fn *read,
                                                 void *ctx);

/** Fill in the target's initial counters and health. */
void usage_keeper_fill(const struct usage_keeper *keeper,
                       struct nvmf_health *health,
                       struct nvmf_counters *counters);

/** The hours of power-on over all power cycles, including this one. */
uint64_t usage_keeper_power_on_hours(const struct usage_keeper *keeper);

/** Whether the last power cut came while the drive was in use. */
bool usage_keeper_was_unsafe(const struct usage_keeper *keeper);

/** The number of the start in which hosts used the drive when the power was
 * cut.  0: the power was not cut while the drive was in use, or an orderly
 * power-off had flushed the medium before that. */
uint32_t usage_keeper_unsafe_start(const struct usage_keeper *keeper);

/**
 * Restore the error log.
 * @param target  initialised with the values of usage_keeper_fill(); outlives
 *   the keeper
 */
void usage_keeper_start(struct usage_keeper *keeper,
                        struct nvmf_target *target);

/**
 * Do what is due, after the target's step.  One step writes few records, so
 * that a full error log does not hold up the main loop.
 *
 * @return when to call this again
 */
uint64_t usage_keeper_step(struct usage_keeper *keeper, uint64_t now_us);

/** Write everything that is pending, before an orderly power-off.
 * @param is_flushed  all that hosts have written is on the medium */
void usage_keeper_stop(struct usage_keeper *keeper, bool is_flushed,
                       uint64_t now_us);

#endif
