/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internal log of hardware errors: a buffer in DRAM, whose new entries are
 * written to flash once a minute, and at once if one of them is fatal.
 *
 * Wear: at most HW_LOG_NEW records are written in a minute, or HW_LOG_MOST if
 * there are fatal errors.  63 records cost the erasure of one of 64 sectors,
 * each of which endures 100,000 erasures.  So the sectors last for 16 years of
 * errors without end.
 */
#ifndef ESSD_USAGE_HW_LOG_H
#define ESSD_USAGE_HW_LOG_H

#include "firmware/store/hw_error_log.h"

/* The most entries of a minute.  Further errors are only counted.  The last
 * ones are for fatal errors only.  Errors with a reset are not limited. */
enum { HW_LOG_NEW = 32, HW_LOG_MOST = 48 };
#define HW_LOG_PERIOD_US UINT64_C(60000000)

struct hw_log_config {
    const struct hw_error_records *records; /* in flash; NULL: none */
    uint32_t boot;
    /* Write an error to flash.  NULL: errors are not kept. */
    bool (*save)(void *ctx, const struct hw_error *error);
    void *save_ctx;
};

/* Treat as opaque, except for the records, which may be read. */
struct hw_log {
    struct hw_error_records records; /* the newest ones */
    bool (*save)(void *ctx, const struct hw_error *error);
    void *save_ctx;
    uint32_t boot;
    uint32_t number;    /* of the newest error */
    uint32_t saved;     /* number of the newest error in flash */
    uint32_t dropped;   /* errors that found no room */
    uint64_t save_us;   /* the entries that wait are written at this time */
    uint64_t minute_us; /* when the minute ends whose entries are counted */
    uint32_t entries;   /* of this minute */
};

void hw_log_init(struct hw_log *log, const struct hw_log_config *config);

/**
 * Note an error.
 *
 * @param error  number and boot are set by this function
 */
void hw_log_note(struct hw_log *log, const struct hw_error *error,
                 uint64_t now_us);

/**
 * Note a fatal error that leads to a reset, or has led to the last one.  It
 * becomes an entry even if the minute has HW_LOG_MOST entries.
 */
void hw_log_note_reset(struct hw_log *log, const struct hw_error *error,
                       uint64_t now_us);

/** Write to flash what is due. @return when to call this again */
uint64_t hw_log_step(struct hw_log *log, uint64_t now_us);

/** Write everything that waits, before the drive is switched off. */
void hw_log_stop(struct hw_log *log);

#endif
