/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trim state: what makes a trim survive a power cut.
 *
 * A page has one bit for each of 32768 logical units: whether the unit has
 * contents on the flash.  It is written like data, and the latest one counts.
 * Its metadata holds the number of the row in which it was first programmed:
 * after a power cut, versions of a unit that are older than this number are
 * dead if the unit's bit is clear.  The latest page holds all that is known of
 * trims: older pages are not needed, and garbage collection may copy a page
 * without changing it.
 *
 * A page must not be written while rows of data are in flight.  A unit in such
 * a row would be older than the page, and it is not known whether the row will
 * be there after a power cut.
 */
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"

#include <string.h>

#include "lib/bytes.h"

enum {                /* metadata of a page; little-endian */
       PAGE_ROW = 0,  /* 64 bits: number of the row */
       PAGE_LOST = 8, /* 64 bits: ftl.lost_rows; or all bits set */
       PAGE_REST = 16,
};

uint16_t ftl_trim_touch(struct ftl_pages_floor *ftl, uint32_t number)
{
    return ftl_page_touch(ftl,
                          ftl->config.logical_units + number / FTL_TRIM_UNITS);
}

/* Whether a power cut at this time leaves contents of a unit. */
static bool has_contents(const struct ftl_pages_floor *ftl, uint32_t number)
{
    uint32_t entry = ftl->map[number];

    return ftl_is_in_slot(entry)
               ? ftl->buffer.slots[(uint16_t)entry].old_place != FTL_NOWHERE
               : entry != FTL_NOWHERE;
}

void ftl_trim_snapshot(struct ftl_pages_floor *ftl, uint16_t index,
                       uint64_t row)
{
    uint32_t page = ftl->buffer.slots[index].number - ftl->config.logical_units;
    uint32_t first = page * FTL_TRIM_UNITS;
    uint64_t lost_row = ftl->lost_rows[page];
    uint32_t count =
        MIN((uint32_t)FTL_TRIM_UNITS, ftl->config.logical_units - first);
    uint8_t *data = ftl_slot_data(&ftl->buffer, index);
    uint8_t *meta = ftl_slot_meta(&ftl->buffer, index);

    memset(data, 0, FTL_UNIT_DATA);
    for (uint32_t i = 0; i < count; i++) {
        if (has_contents(ftl, first + i)) {
            data[i / 8] |= (uint8_t)BIT(i % 8);
        }
    }
    put_le64(meta + PAGE_ROW, row);
    put_le64(meta + PAGE_LOST, lost_row != 0 ? lost_row : UINT64_MAX);
    memset(meta + PAGE_REST, 0xff, FTL_UNIT_META - PAGE_REST);
}

/* The contents of a unit are lost. */
static void lose_unit(struct ftl_pages_floor *ftl, uint32_t number)
{
    ftl->map[number] = FTL_LOST_NOWHERE;
    ftl->counters.lost_units++;
}

/* Whether the version of a unit that the mount has found is older than a row.
 */
static bool is_older(const struct ftl_mount *mount, uint32_t number,
                     uint64_t row)
{
    return mount->versions[number] >> FTL_VERSION_SHIFT < row;
}

void ftl_trim_lose_page(struct ftl_pages_floor *ftl, uint32_t page,
                        uint64_t row)
{
    uint32_t first = page * FTL_TRIM_UNITS;
    uint32_t count =
        MIN((uint32_t)FTL_TRIM_UNITS, ftl->config.logical_units - first);

    ftl->lost_rows[page] = row;
    for (uint32_t i = first; i < first + count; i++) {
        if (ftl->map[i] != FTL_NOWHERE && is_older(&ftl->mount, i, row)) {
            lose_unit(ftl, i);
        }
    }
}

/*
 * Apply what a page says of a unit.  If the page says that the unit has
 * contents, they were durable, and are erased only when newer ones or a newer
 * page are.  So if the mount has found none, they are lost.
 */
static void apply_trim(struct ftl_pages_floor *ftl, uint32_t number,
                       bool has_contents, uint64_t row, uint64_t lost_row)
{
    if (!is_older(&ftl->mount, number, row)) {
        return; /* What the mount has found is newer than the page. */
    }
    if (!has_contents) {
        ftl->map[number] = FTL_NOWHERE;
    } else if (ftl->map[number] == FTL_NOWHERE ||
               is_older(&ftl->mount, number, lost_row)) {
        lose_unit(ftl, number);
    }
}

void ftl_trim_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data, const uint8_t *meta)
{
    uint32_t first = page * FTL_TRIM_UNITS;
    uint32_t count =
        MIN((uint32_t)FTL_TRIM_UNITS, ftl->config.logical_units - first);
    uint64_t row = get_le64(meta + PAGE_ROW);
    uint64_t lost_row = get_le64(meta + PAGE_LOST);

    ftl->lost_rows[page] = lost_row <= FTL_ROW_NUMBER_MAX ? lost_row : 0;
    for (uint32_t i = 0; i < count; i++) {
        apply_trim(ftl, first + i, (data[i / 8] & BIT(i % 8)) != 0, row,
                   ftl->lost_rows[page]);
    }
}

bool ftl_trim_unit(struct ftl_pages_floor *ftl, uint32_t number)
{
    uint32_t entry = ftl->map[number];
    uint16_t page;

    if (ftl_is_filling(&ftl->map_floor, entry)) {
        return false;
    }
    /* Complete the entries of earlier writes, so that the trim is later. */
    ftl_memory_run(&ftl->map_floor);
    page = ftl_trim_touch(ftl, number);
    if (page == FTL_LIST_END) {
        return false;
    }
    ftl_keep_trim(&ftl->keep, number);
    if (ftl_is_in_slot(entry)) {
        ftl_slot_trim(&ftl->map_floor, (uint16_t)entry, page);
    } else {
        ftl_map_trim_place(&ftl->map_floor, entry);
    }
    ftl->map[number] = FTL_NOWHERE;
    return true;
}
