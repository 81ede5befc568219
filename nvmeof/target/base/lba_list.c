/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/target/base/lba_list.h"

#include <string.h>

uint16_t lba_list_find(const struct lba_list *list, uint8_t nsid, uint64_t lba)
{
    uint16_t i = 0;

    while (i < list->count && (list->range[i].nsid < nsid ||
                               (list->range[i].nsid == nsid &&
                                lba_range_end(&list->range[i]) <= lba))) {
        i++;
    }
    return i;
}

bool lba_list_has(const struct lba_list *list, uint8_t nsid)
{
    uint16_t i = lba_list_find(list, nsid, 0);

    return i < list->count && list->range[i].nsid == nsid;
}

static void drop_range(struct lba_list *list, uint16_t i)
{
    list->count--;
    memmove(&list->range[i], &list->range[i + 1],
            (size_t)(list->count - i) * sizeof(list->range[0]));
}

static void insert_range(struct lba_list *list, uint16_t i,
                         const struct lba_range *range)
{
    ASSERT(list->count < ARRAY_LEN(list->range));
    memmove(&list->range[i + 1], &list->range[i],
            (size_t)(list->count - i) * sizeof(list->range[0]));
    list->range[i] = *range;
    list->count++;
}

/* Whether the range at i overlaps the blocks from first to end. */
static bool range_overlaps(const struct lba_list *list, uint16_t i,
                           uint8_t nsid, uint64_t first, uint64_t end)
{
    const struct lba_range *range = &list->range[i];

    return i < list->count && range->nsid == nsid && range->first_lba < end &&
           lba_range_end(range) > first;
}

bool lba_list_overlaps(const struct lba_list *list, uint8_t nsid,
                       uint64_t first_lba, uint64_t count_blocks)
{
    return count_blocks != 0 &&
           range_overlaps(list, lba_list_find(list, nsid, first_lba), nsid,
                          first_lba, first_lba + count_blocks);
}

/* Make one range of two if they are adjacent and of the same kind. */
static void join_ranges(struct lba_list *list, uint16_t i)
{
    struct lba_range *range = &list->range[i];
    const struct lba_range *next = range + 1;

    if (i + 1 < list->count && next->nsid == range->nsid &&
        next->is_certain == range->is_certain &&
        next->first_lba == lba_range_end(range) &&
        next->count_blocks <= UINT32_MAX - range->count_blocks) {
        range->count_blocks += next->count_blocks;
        range->number = MAX(range->number, next->number);
        drop_range(list, (uint16_t)(i + 1));
    }
}

/* Take the blocks from first to end out of the range at i, which overlaps them.
 * @return false when a part beside them was lost */
static bool cut_range(struct lba_list *list, uint16_t i, uint64_t first,
                      uint64_t end)
{
    struct lba_range *range = &list->range[i];
    struct lba_range after = *range;
    uint64_t range_end = lba_range_end(range);
    uint64_t before = range->first_lba < first ? first - range->first_lba : 0;

    after.first_lba = end;
    after.count_blocks = (uint32_t)(range_end > end ? range_end - end : 0);
    if (before == 0 && after.count_blocks == 0) {
        drop_range(list, i);
    } else if (before == 0) {
        *range = after;
    } else {
        range->count_blocks = (uint32_t)before;
        if (after.count_blocks != 0 && list->count >= LBA_LIST_MAX) {
            return false;
        }
        if (after.count_blocks != 0) {
            insert_range(list, (uint16_t)(i + 1), &after);
        }
    }
    return true;
}

bool lba_list_remove(struct lba_list *list, uint8_t nsid, uint64_t first_lba,
                     uint64_t count_blocks)
{
    uint64_t end = first_lba + count_blocks;
    uint16_t i = lba_list_find(list, nsid, first_lba);
    bool is_complete = true;

    while (first_lba < end && range_overlaps(list, i, nsid, first_lba, end)) {
        is_complete &= cut_range(list, i, first_lba, end);
        i = lba_list_find(list, nsid, first_lba);
    }
    return is_complete;
}

void lba_list_forget(struct lba_list *list, uint8_t nsid)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < list->count; i++) {
        if (nsid != 0 && list->range[i].nsid != nsid) {
            list->range[kept++] = list->range[i];
        }
    }
    list->count = kept;
}

enum lba_added lba_list_add(struct lba_list *list, uint8_t nsid,
                            uint64_t first_lba, uint32_t count_blocks,
                            bool is_certain, uint64_t number)
{
    struct lba_range range = {
        .first_lba = first_lba,
        .number = number,
        .count_blocks = count_blocks,
        .nsid = nsid,
        .is_certain = is_certain,
    };
    uint64_t end = first_lba + count_blocks;
    uint16_t i = lba_list_find(list, nsid, first_lba);
    bool was_there = range_overlaps(list, i, nsid, first_lba, end);

    ASSERT(count_blocks != 0 && (!is_certain || count_blocks == 1));
    /* A cut may need one more entry, and so does the insertion. */
    if (was_there && (!is_certain || list->range[i].is_certain ||
                      list->count + 2 > LBA_LIST_MAX)) {
        return LBA_KNOWN;
    }
    if (was_there) {
        range.number = list->range[i].number;
        ASSERT(lba_list_remove(list, nsid, first_lba, count_blocks));
        i = lba_list_find(list, nsid, first_lba);
    }
    insert_range(list, i, &range);
    join_ranges(list, i);
    if (i > 0) {
        join_ranges(list, (uint16_t)(i - 1));
    }
    if (list->count > LBA_LIST_MAX) { /* it was adjacent to no other range */
        drop_range(list, i);
        return LBA_FULL;
    }
    return was_there ? LBA_KNOWN : LBA_ADDED;
}
