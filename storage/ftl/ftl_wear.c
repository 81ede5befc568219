/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wear levelling: all superblocks are erased about equally often.
 *
 * Of the free superblocks, garbage collection, whose units have not been
 * overwritten for a while, takes the one that was erased the most times.  So
 * does the host's stream, but it leaves out those whose count is larger than
 * the smallest one by more than a quarter of the bound below.  The superblock
 * that it finds was usually erased a short time ago, and is_reused_soon() in
 * ftl_superblock.c says why this saves CPU time.
 *
 * A superblock whose units are never overwritten would not be erased at all.
 * So when the counts differ by more than a bound, the contents of the
 * superblock with the smallest count are moved.
 *
 * Wear pages hold the counts, 32 bits for each superblock.  They are written
 * like trim pages, once for several erasures.  If power fails before they
 * are written, the counts are a bit too small, which does no harm.
 */
#include "storage/ftl/ftl_internal.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    COUNT_BYTES = 4,
    PAGE_COUNTS = FTL_UNIT_DATA / COUNT_BYTES,
    ERASURES_PER_WRITE = 16, /* of a superblock of the page */
    COUNT_MAX = 1 << 24,     /* more than any flash can take */
    REUSE_PART = 4,
};

uint32_t ftl_wear_pages(const struct ftl_layout *layout)
{
    return (layout->superblocks + PAGE_COUNTS - 1) / PAGE_COUNTS;
}

static uint32_t page_end(const struct ftl *ftl, uint32_t page)
{
    return MIN((page + 1) * PAGE_COUNTS, ftl->layout.superblocks);
}

void ftl_wear_emit(const struct ftl *ftl, uint32_t page, uint8_t *data,
                   uint8_t *meta)
{
    memset(data, 0, FTL_UNIT_DATA);
    for (uint32_t i = page * PAGE_COUNTS; i < page_end(ftl, page); i++) {
        put_le32(data + i % PAGE_COUNTS * COUNT_BYTES, ftl->wear[i]);
    }
    memset(meta, 0xff, FTL_UNIT_META);
}

void ftl_wear_snapshot(struct ftl *ftl, uint32_t page, uint16_t index)
{
    ftl_wear_emit(ftl, page, ftl_slot_data(ftl, index),
                  ftl_slot_meta(ftl, index));
}

void ftl_wear_apply(struct ftl *ftl, uint32_t page, const uint8_t *data)
{
    for (uint32_t i = page * PAGE_COUNTS; i < page_end(ftl, page); i++) {
        uint32_t count = get_le32(data + i % PAGE_COUNTS * COUNT_BYTES);

        if (count <= COUNT_MAX) {
            ftl->wear[i] = MAX(ftl->wear[i], count);
        }
    }
}

/*
 * If the counts differ too much, have the superblock with the smallest count
 * moved.  Only one superblock is moved at a time: the next erasure checks the
 * counts again.
 */
static void move_coldest(struct ftl *ftl)
{
    uint32_t coldest = FTL_NOWHERE;
    uint32_t most = 0;

    if (ftl_collect_has_due(ftl)) {
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
        ftl_collect_move_soon(ftl, coldest, FTL_CAUSE_LEVEL);
        ftl->counters.levelled++;
    }
}

void ftl_wear_note_erasure(struct ftl *ftl, uint32_t superblock)
{
    ftl->wear[superblock]++;
    ftl->wear_changes++;
    if (ftl->state == FTL_READY) {
        move_coldest(ftl);
    }
}

bool ftl_wear_step(struct ftl *ftl)
{
    bool any = false;

    if (ftl->wear_changes < ERASURES_PER_WRITE) {
        return false;
    }
    while (ftl->next_wear_page < ftl->wear_pages) {
        if (ftl_trim_touch_page(ftl, ftl->config.logical_units +
                                         ftl->trim_pages + ftl->health_pages +
                                         ftl->next_wear_page) == FTL_LIST_END) {
            return any;
        }
        ftl->next_wear_page++;
        any = true;
    }
    ftl->next_wear_page = 0;
    ftl->wear_changes = 0;
    return true;
}

/* The largest count with which the host's stream takes a superblock again that
 * was erased recently. */
static uint32_t reuse_limit(const struct ftl *ftl)
{
    uint32_t least = COUNT_MAX;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE) {
            least = MIN(least, ftl->wear[i]);
        }
    }
    return least + ftl->config.wear_spread / REUSE_PART;
}

bool ftl_wear_is_reused(const struct ftl *ftl, uint32_t superblock)
{
    return ftl->wear[superblock] < reuse_limit(ftl);
}

/* Whether a stream takes one free superblock rather than another one. */
static bool is_better(const struct ftl *ftl, enum ftl_stream_id stream,
                      uint32_t one, uint32_t other)
{
    bool is_reused = ftl->superblocks[one].is_reused;

    if (stream == FTL_STREAM_HOST &&
        is_reused != ftl->superblocks[other].is_reused) {
        return is_reused;
    }
    return ftl->wear[one] > ftl->wear[other];
}

uint32_t ftl_wear_find_free(const struct ftl *ftl, enum ftl_stream_id stream)
{
    uint32_t limit =
        stream == FTL_STREAM_HOST ? reuse_limit(ftl) : (uint32_t)UINT32_MAX;
    uint32_t best = FTL_NOWHERE;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_FREE &&
            ftl->wear[i] <= limit &&
            (best == FTL_NOWHERE || is_better(ftl, stream, i, best))) {
            best = i;
        }
    }
    return best;
}

void ftl_erase_counts(const struct ftl *ftl, struct ftl_erase_counts *counts)
{
    uint64_t sum = 0;
    uint32_t used = 0;

    *counts = (struct ftl_erase_counts){.least = UINT32_MAX};
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].state == FTL_SUPERBLOCK_RETIRED) {
            continue;
        }
        counts->least = MIN(counts->least, ftl->wear[i]);
        counts->most = MAX(counts->most, ftl->wear[i]);
        sum += ftl->wear[i];
        used++;
    }
    if (used == 0) {
        counts->least = 0;
    } else {
        counts->average = (uint32_t)(sum / used);
    }
}
