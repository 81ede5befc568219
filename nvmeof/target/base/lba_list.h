/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of the blocks that the drive knows to be unreadable, or suspects to
 * be: the Tracked LBAs of Get LBA Status.
 *
 * The ranges are sorted by namespace and LBA, and do not overlap.  A range is
 * certain when a read of each of its blocks alone has failed.  It is suspected
 * when only a read of several blocks has.  Adjacent ranges of the same kind
 * become one.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_LBA_LIST_H
#define ESSD_NVMEOF_TARGET_BASE_LBA_LIST_H

#include "lib/util.h"

enum { LBA_LIST_MAX = 64 }; /* ranges of all namespaces */

struct lba_range {
    uint64_t first_lba;
    uint64_t number; /* of the addition that was the last one to make it grow */
    uint32_t count_blocks;
    uint8_t nsid; /* 1 and up */
    bool is_certain;
};

struct lba_list {
    uint16_t count;
    struct lba_range range[LBA_LIST_MAX + 1]; /* the last one: while one is
                                               * added */
};

enum lba_added {
    LBA_KNOWN, /* The list had these blocks already. */
    LBA_ADDED,
    LBA_FULL, /* There was no room for these blocks. */
};

static inline uint64_t lba_range_end(const struct lba_range *range)
{
    return range->first_lba + range->count_blocks;
}

/**
 * Add blocks.
 *
 * If they overlap the list, suspected blocks tell nothing new, and a certain
 * block only becomes certain if it was suspected.
 *
 * @param is_certain  only for a single block
 * @param number  of this addition, which is greater than the earlier ones
 */
enum lba_added lba_list_add(struct lba_list *list, uint8_t nsid,
                            uint64_t first_lba, uint32_t count_blocks,
                            bool is_certain, uint64_t number);

/**
 * Remove blocks.
 *
 * @return false when blocks beside these had to be removed, too, because the
 *         list has no room for the two parts of a range
 */
MUST_USE bool lba_list_remove(struct lba_list *list, uint8_t nsid,
                              uint64_t first_lba, uint64_t count_blocks);

/** Remove all blocks of a namespace; 0: of all namespaces. */
void lba_list_forget(struct lba_list *list, uint8_t nsid);

/** The index of the first range that is in this namespace, or in a later one,
 * and ends beyond this LBA. */
uint16_t lba_list_find(const struct lba_list *list, uint8_t nsid, uint64_t lba);

/** Whether the list has one of these blocks. */
bool lba_list_overlaps(const struct lba_list *list, uint8_t nsid,
                       uint64_t first_lba, uint64_t count_blocks);

/** Whether the list has blocks of this namespace. */
bool lba_list_has(const struct lba_list *list, uint8_t nsid);

#endif
