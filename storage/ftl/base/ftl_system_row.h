/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system bytes of the units of one row.  Those of data that a host has
 * written differ in two fields alone: the number of the logical unit, and the
 * check byte.  The check byte is a part of a CRC, so each byte of the number
 * changes it in a way that does not depend on the others.
 */
#ifndef ESSD_FTL_SYSTEM_ROW_H
#define ESSD_FTL_SYSTEM_ROW_H

#include "storage/ftl/base/ftl_layout.h"

#include "lib/bytes.h"

#include <string.h>

/* How the check byte changes if a byte of the number is not 0: for each byte of
 * the number, for each value. */
struct ftl_system_sums {
    uint8_t changes[4][256];
    uint8_t of_sum[2]; /* the same for ftl_system_mark_sum(): of even, of odd */
};

void ftl_system_sums_init(struct ftl_system_sums *sums);

/**
 * Write the same bytes as ftl_system_emit().
 *
 * @param row     what ftl_system_emit() has written for unit 0
 * @param number  of the unit, which is not lost
 */
static inline void ftl_system_emit_number(const struct ftl_system_sums *sums,
                                          const uint8_t row[FTL_UNIT_SYSTEM],
                                          uint32_t number,
                                          uint8_t buf[FTL_UNIT_SYSTEM])
{
    memcpy(buf, row, FTL_UNIT_SYSTEM);
    put_le32(buf, number);
    buf[FTL_UNIT_SYSTEM - 1] ^=
        (uint8_t)(sums->changes[0][number & 0xff] ^
                  sums->changes[1][number >> 8 & 0xff] ^
                  sums->changes[2][number >> 16 & 0xff] ^
                  sums->changes[3][number >> 24]);
}

/**
 * Write the same check byte as ftl_system_mark_parity().
 *
 * @param buf     the XOR of system bytes of data, check bytes included
 * @param is_odd  whether so many were added
 */
static inline void ftl_system_mark_sum(const struct ftl_system_sums *sums,
                                       uint8_t buf[FTL_UNIT_SYSTEM],
                                       bool is_odd)
{
    buf[FTL_UNIT_SYSTEM - 1] ^= sums->of_sum[is_odd];
}

#endif
