/* SPDX-License-Identifier: BSD-2-Clause */
/* A wipe of all blocks. */
#ifndef ESSD_FTL_WIPING_H
#define ESSD_FTL_WIPING_H

#include "storage/block/media.h"
#include "lib/util.h"

enum ftl_wipe_phase {
    FTL_WIPE_NONE,
    FTL_WIPE_WAITS,  /* Waits until nothing is in progress. */
    FTL_WIPE_CLEARS, /* Erases the keeper: see ftl_wipe_keep.c. */
    FTL_WIPE_KEEPS,  /* Programs health pages and wear pages into the keeper. */
    FTL_WIPE_ERASES, /* Erases all other superblocks. */
    FTL_WIPE_MOUNTS, /* Waits until the empty flash is mounted. */
};

struct ftl_wiping {
    uint8_t phase; /* enum ftl_wipe_phase */
    bool has_failed;
    uint32_t next;       /* superblock and die whose erasure has not begun */
    uint32_t keeper;     /* the superblock for the pages; or FTL_NOWHERE */
    uint32_t keeper_row; /* the next row of the keeper */
    uint32_t page;       /* the next page that is to be programmed */
    uint32_t pages_in_flight;
    uint64_t row_number;
    struct media_owner *owner;
};

#endif
