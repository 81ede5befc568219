/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error log, which survives power cycles.  Each entry is one record; see
 * records.h.
 * Reference: docs/hardware/flash.md, "Rings of records"
 */
#ifndef ESSD_STORE_ERROR_LOG_H
#define ESSD_STORE_ERROR_LOG_H

#include "firmware/store/records.h"

#include <string.h>

enum {
    STORE_ERROR_SECTORS = 5, /* that are read, the newest ones */
    STORE_ERRORS = STORE_ERROR_SECTORS * RECORDS_IN_SECTOR,
    /* The newest sector may have a single record. */
    STORE_ERRORS_SURE = (STORE_ERROR_SECTORS - 1) * RECORDS_IN_SECTOR,
};

/* The fields of an Error Information entry. */
struct error_record {
    uint64_t count; /* number of this entry; the first is 1 */
    uint64_t lba;
    /*
     * Milliseconds since 1970-01-01, or since a reset when the clock is not
     * set.
     */
    uint64_t time_ms;
    uint32_t nsid;
    uint16_t sqid;
    uint16_t cid;
    uint16_t status;
    uint16_t location;
    uint8_t trtype;
    uint8_t vendor_log;
    bool has_time;  /* the clock was set when the entry was made */
    uint32_t owner; /* whose command it was; 0: unknown, or the drive's */
};

struct error_records {
    struct error_record record[STORE_ERRORS]; /* oldest first */
    uint16_t count;
};

/** Read the entries that earlier boots wrote last, some of them several times.
 * A new drive has none. */
void store_read_errors(const struct flash *flash, struct records_place *place,
                       struct error_records *errors);

/** Append one entry, unless it is there; when the array is full, the oldest one
 * is dropped. */
static inline void error_records_add(struct error_records *errors,
                                     const struct error_record *record)
{
    for (uint16_t i = 0; i < errors->count; i++) {
        if (errors->record[i].count == record->count) {
            return;
        }
    }
    if (errors->count == STORE_ERRORS) {
        memmove(&errors->record[0], &errors->record[1],
                sizeof(errors->record) - sizeof(errors->record[0]));
        errors->count--;
    }
    errors->record[errors->count++] = *record;
}

/** @return false when the flash refuses the write */
MUST_USE bool store_write_error(const struct flash *flash,
                                struct records_place *place,
                                const struct error_record *record);

#endif
