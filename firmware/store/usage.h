/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a drive has been through, kept over power cycles: SMART's counters.
 *
 * Each record has all values, the last good one counts.
 * Reference: docs/hardware/flash.md, "Usage"
 */
#ifndef ESSD_STORE_USAGE_H
#define ESSD_STORE_USAGE_H

#include "firmware/store/records.h"

struct usage {
    uint32_t on_minutes;
    uint32_t unsafe_shutdowns;
    bool is_in_use; /* a host relies on it: were the power to go, unsafe */
    uint64_t read_blocks_512;
    uint64_t written_blocks_512;
    uint64_t host_reads;
    uint64_t host_writes;
    uint32_t media_errors;
    uint32_t error_log_entries;
};

/** What was written last; a new drive's is all zero. */
void store_read_usage(const struct flash *flash, struct records_place *place,
                      struct usage *usage);

/** @return false when the flash does not take it */
MUST_USE bool store_write_usage(const struct flash *flash,
                                struct records_place *place,
                                const struct usage *usage);

#endif
