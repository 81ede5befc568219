/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place in flash where an operation keeps its state: the record that was
 * read at the start, and a function that writes a new one.
 */
#ifndef ESSD_OPERATIONS_OPERATION_STORE_H
#define ESSD_OPERATIONS_OPERATION_STORE_H

#include "lib/util.h"

enum {
    /*
     * The flash endures 100,000 erasures of each sector, and 32 sectors take
     * turns.  The first writes are always possible.  A host that goes on
     * causing writes at the rate that is allowed then wears the flash out in 6
     * years.
     */
    OPERATION_SAVES_FREE = 4096,
    OPERATION_SAVES_PER_HOUR = 60,
};

enum operation_record {
    OPERATION_RECORD_NONE,    /* nothing was ever written */
    OPERATION_RECORD_OK,      /* record and len hold it */
    OPERATION_RECORD_OLDER,   /* they hold an older one; the last is lost */
    OPERATION_RECORD_DAMAGED, /* records were written; none can be read */
};

struct operation_store {
    enum operation_record state;
    const uint8_t *record; /* used at the start only */
    size_t len;
    uint32_t writes; /* how often a record was written */

    /* Write a record.  NULL: nothing outlives a power cut. */
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *ctx;
};

/** How often the flash may be written, after so many writes. */
static inline uint64_t operation_saves_left(uint32_t writes,
                                            uint64_t power_on_hours)
{
    uint64_t allowed =
        OPERATION_SAVES_FREE + power_on_hours * OPERATION_SAVES_PER_HOUR;

    return allowed > writes ? allowed - writes : 0;
}

/** Whether it may be written once more. */
static inline bool operation_may_save(uint32_t writes, uint64_t power_on_hours)
{
    return operation_saves_left(writes, power_on_hours) != 0;
}

#endif
