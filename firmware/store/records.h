/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of 64 bytes in a ring of sectors, 63 each: what is written again and
 * again.  When a sector is full the next one is erased and begun: one erasure
 * in 63 records.  A power cut in the middle of a record leaves those before.
 * Reference: docs/hardware/flash.md, "Records"
 */
#ifndef ESSD_STORE_RECORDS_H
#define ESSD_STORE_RECORDS_H

#include "firmware/drivers/flash.h"

enum {
    RECORD_DATA_LEN = 60, /* then the CRC */
    RECORD_LEN = 64,
};

struct records_area {
    uint8_t magic[8];
    uint32_t addr;
    uint32_t sectors; /* at least 2 */
};

/* Where the next record goes. */
struct records_place {
    uint32_t sequence; /* of the sector, from 1; 0: there is none */
    uint32_t used;     /* records */
};

/**
 * The good records of the newest sector and of the one before it, oldest first.
 *
 * @param each  called with RECORD_DATA_LEN bytes
 */
void records_read(const struct flash *flash, const struct records_area *area,
                  struct records_place *place,
                  void (*each)(void *ctx, const uint8_t *data), void *ctx);

/** @return false when the flash does not take it */
MUST_USE bool records_write(const struct flash *flash,
                            const struct records_area *area,
                            struct records_place *place,
                            const uint8_t data[RECORD_DATA_LEN]);

#endif
