/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of 64 bytes in a ring of sectors, 63 records in each: for data that
 * is written often.  When a sector is full, the next one in the ring is erased
 * and filled, so that 63 records cost one erasure.  A power cut while a record
 * is written does not harm earlier records.
 * Reference: docs/hardware/flash.md, "Rings of records"
 */
#ifndef ESSD_STORE_RECORDS_H
#define ESSD_STORE_RECORDS_H

#include "firmware/drivers/flash.h"

enum {
    RECORD_DATA_LEN = 60, /* the record's CRC follows */
    RECORD_LEN = 64,
};

struct records_area {
    uint8_t magic[8];
    uint32_t addr;
    uint32_t sectors; /* at least 2 */
};

/* Where the next record goes. */
struct records_place {
    /* The newest sector's number, from 1; 0: no sector was written yet. */
    uint32_t sequence;
    uint32_t used; /* places of that sector that are taken */
};

enum { RECORDS_IN_SECTOR = 63 };

/**
 * Read the intact records of the newest sectors, oldest first.
 *
 * @param sectors  how many sectors are read, at least 2, since the newest one
 *                 may have no record yet
 * @param each     called for each record, with its RECORD_DATA_LEN bytes
 */
void records_read(const struct flash *flash, const struct records_area *area,
                  struct records_place *place, uint32_t sectors,
                  void (*each)(void *ctx, const uint8_t *data), void *ctx);

/** @return false when the flash refuses the write */
MUST_USE bool records_write(const struct flash *flash,
                            const struct records_area *area,
                            struct records_place *place,
                            const uint8_t data[RECORD_DATA_LEN]);

#endif
