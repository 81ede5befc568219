/* SPDX-License-Identifier: BSD-2-Clause */
/* essd-nand info: what was counted in a file, and the ways to print it. */
#ifndef ESSD_TOOLS_NAND_INFO_H
#define ESSD_TOOLS_NAND_INFO_H

#include "image.h"

enum { INFO_COLUMNS = 48 };

/* What is drawn of some blocks of a die. */
struct info_column {
    uint64_t programmed; /* wordlines */
    uint64_t wear;       /* sum, in units of NAND_WEAR_CYCLE */
    uint32_t blocks;     /* without those that the factory marked as bad */
};

/* A die, from block 0 in the first column to the last block in the last one. */
struct info_die {
    bool is_dead;
    struct info_column columns[INFO_COLUMNS];
};

struct info {
    const struct image *image;
    unsigned int spare_percent; /* of "space_bytes": see ftl_space() */
    uint64_t disk_bytes;        /* of the file, without its holes */
    struct info_die *dies;

    /* Blocks. */
    uint32_t erased;
    uint32_t open;
    uint32_t full;
    uint32_t half_erased;
    uint32_t failed;
    uint32_t factory_bad;
    uint32_t damaged; /* with a damaged record */
    uint32_t slc;
    uint32_t worn; /* that the wear is counted of */

    uint32_t torn; /* half programmed wordlines */
    uint64_t programmed_bytes;
    /* Of all blocks that are neither bad nor damaged. */
    uint64_t wear_sum;
    uint32_t wear_max;
    uint32_t wear_min;
};

/** Wear as a number of erasures in the native mode. */
static inline double info_erasures(uint64_t wear, uint64_t blocks)
{
    return blocks == 0 ? 0 : (double)wear / (double)blocks / NAND_WEAR_CYCLE;
}

void info_print_text(const struct info *info);
void info_print_json(const struct info *info);

#endif
