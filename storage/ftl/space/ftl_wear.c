/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wear levelling: all superblocks are erased about equally often.
 *
 * Of the free superblocks, garbage collection, whose units have not been
 * overwritten for a while, takes the one that was erased the most times.  So
 * does the host's stream, but it leaves out those whose count is larger than
 * the smallest one by more than a quarter of the bound below.  The superblock
 * that it finds was usually erased a short time ago, and is_reused_soon() in
 * ftl_erase.c says why this saves CPU time.
 *
 * A superblock whose units are never overwritten would not be erased at all.
 * So when the counts differ by more than a bound, the contents of the
 * superblock with the smallest count are moved.
 *
 * The counts are recorded in wear pages (ftl_wear_pages.c).
 */
#include "storage/ftl/space/space.h"

enum {
    COUNT_MAX = 1 << 24, /* more than any flash can take */
    REUSE_PART = 4,
};

/*
 * If the counts differ too much, have the superblock with the smallest count
 * moved.  Only one superblock is moved at a time: the next erasure checks the
 * counts again.
 */
static void move_coldest(struct ftl_space_floor *ftl)
{
    uint32_t coldest = FTL_NOWHERE;
    uint32_t most = 0;

    if (ftl_due_has_any(ftl)) {
        return;
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        most = MAX(most, ftl->wear[i]);
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_CLOSED &&
            !ftl->superblocks[i].is_stuck &&
            (coldest == FTL_NOWHERE || ftl->wear[i] < ftl->wear[coldest])) {
            coldest = i;
        }
    }
    if (coldest != FTL_NOWHERE &&
        ftl->levelling->is_due(ftl->wear[coldest], most,
                               ftl->config.wear_spread)) {
        ftl_due_move_soon(ftl, coldest, FTL_CAUSE_LEVEL);
        ftl->counters.levelled++;
    }
}

void ftl_wear_note_erasure(struct ftl_space_floor *ftl, uint32_t superblock)
{
    ftl->wear[superblock]++;
    ftl->wear_changes++;
    if (ftl->state == FTL_READY) {
        move_coldest(ftl);
    }
}

/* The largest count with which the host's stream takes a superblock again that
 * was erased recently. */
static uint32_t reuse_limit(const struct ftl_space_floor *ftl)
{
    uint32_t least = COUNT_MAX;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE) {
            least = MIN(least, ftl->wear[i]);
        }
    }
    return least + ftl->config.wear_spread / REUSE_PART;
}

bool ftl_wear_is_reused(const struct ftl_space_floor *ftl, uint32_t superblock)
{
    return ftl->wear[superblock] < reuse_limit(ftl);
}

/* Whether one free superblock is taken rather than another one. */
static bool is_better(const struct ftl_space_floor *ftl, bool is_host,
                      uint32_t one, uint32_t other)
{
    bool is_reused = ftl->superblocks[one].is_reused;

    if (is_host && is_reused != ftl->superblocks[other].is_reused) {
        return is_reused;
    }
    return ftl->wear[one] > ftl->wear[other];
}

uint32_t ftl_wear_find_free(const struct ftl_space_floor *ftl, bool is_host)
{
    uint32_t limit = is_host ? reuse_limit(ftl) : (uint32_t)UINT32_MAX;
    uint32_t best = FTL_NOWHERE;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE &&
            ftl->wear[i] <= limit &&
            (best == FTL_NOWHERE || is_better(ftl, is_host, i, best))) {
            best = i;
        }
    }
    return best;
}
