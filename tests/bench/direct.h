/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to a NAND array in memory without a drive: by the firmware's
 * translation layer alone, as `essd media age` does it (tools/nand/fill.h).  A
 * write takes a fraction of the time that it takes with host, network and
 * target around it, and leaves the same flash.  All data are zeros.
 */
#ifndef ESSD_TESTS_BENCH_DIRECT_H
#define ESSD_TESTS_BENCH_DIRECT_H

#include "hw-model/nand/nand_ram.h"

struct direct_writes {
    uint64_t capacity_bytes; /* of the drive whose array it is */
    uint32_t percent;        /* of the medium's units that are written */
    bool is_random;          /* else one unit after the other, in rounds */
    uint64_t seed;           /* of the random order */
};

/** Mount the array, write, and stop as a drive does before it is switched off.
 * The array is sparse (nand_storage_config). */
void direct_write(struct nand_ram *ram, const struct direct_writes *writes);

#endif
