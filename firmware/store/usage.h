/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SMART's counters, which survive power cycles.
 *
 * A record of one kind holds all values of hosts, one of another kind those of
 * the NAND flash.  The last intact record of each kind is valid.
 * Reference: docs/hardware/flash.md, "Rings of records"
 */
#ifndef ESSD_STORE_USAGE_H
#define ESSD_STORE_USAGE_H

#include "firmware/store/records.h"

enum { USAGE_ADDED_MOST = (1 << 24) - 1 };

/* Of the NAND flash, if the drive has any. */
struct usage_flash {
    uint64_t programmed_units; /* of 4096 bytes */
    uint64_t read_units;
    uint64_t erased_blocks;
    uint64_t soft_reads;
    uint64_t rebuilt_units;
    uint64_t unreadable_units;
    /* Parity errors of transfers, and how many of them a repetition has
     * corrected. */
    uint32_t transfer_errors, transfers_corrected;
    /* Erasures of each block that the drive has not done itself: `essd media
     * age` has added them.  At most USAGE_ADDED_MOST. */
    uint32_t added_erasures;
};

struct usage {
    uint32_t on_minutes;
    uint32_t unsafe_shutdowns;
    /* A host uses the drive, so that a power loss now is an unsafe shutdown. */
    bool is_in_use;
    /* The number of the start in which hosts have used the drive since.  0: an
     * orderly power-off has written to the medium all that hosts have written,
     * or the record is of older firmware. */
    uint32_t in_use_start;
    uint64_t read_blocks_512;
    uint64_t written_blocks_512;
    uint64_t host_reads;
    uint64_t host_writes;
    uint32_t media_errors;
    uint32_t error_log_entries;
    uint32_t lba_generation; /* additions to the unreadable blocks */
    struct usage_flash flash;
};

/**
 * Read the counters that earlier boots wrote.  Those of a new drive are zero.
 */
void store_read_usage(const struct flash *flash, struct records_place *place,
                      struct usage *usage);

/** @return false when the flash refuses the write */
MUST_USE bool store_write_usage(const struct flash *flash,
                                struct records_place *place,
                                const struct usage *usage);

#endif
