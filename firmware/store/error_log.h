/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error log over power cycles: a record an entry, see records.h.
 * Reference: docs/hardware/flash.md, "Error log"
 */
#ifndef ESSD_STORE_ERROR_LOG_H
#define ESSD_STORE_ERROR_LOG_H

#include "firmware/store/records.h"

#include <string.h>

enum { STORE_ERRORS = 64 }; /* the newest, as many as a host can read */

/* The fields of an Error Information entry. */
struct error_record {
    uint64_t count; /* from 1 */
    uint64_t lba;
    uint64_t time_ms; /* since 1970-01-01, or since a reset */
    uint32_t nsid;
    uint16_t sqid;
    uint16_t cid;
    uint16_t status;
    uint16_t location;
    uint8_t trtype;
    uint8_t vendor_log;
    bool has_time; /* the clock was set */
};

struct error_records {
    struct error_record record[STORE_ERRORS]; /* oldest first */
    uint16_t count;
};

/** What was written last; a new drive has none. */
void store_read_errors(const struct flash *flash, struct records_place *place,
                       struct error_records *errors);

/** One more; the oldest goes if all places are taken. */
static inline void error_records_add(struct error_records *errors,
                                     const struct error_record *record)
{
    if (errors->count == STORE_ERRORS) {
        memmove(&errors->record[0], &errors->record[1],
                sizeof(errors->record) - sizeof(errors->record[0]));
        errors->count--;
    }
    errors->record[errors->count++] = *record;
}

/** @return false when the flash does not take it */
MUST_USE bool store_write_error(const struct flash *flash,
                                struct records_place *place,
                                const struct error_record *record);

#endif
