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
#include "storage/ftl/ftl_internal.h"

#include <string.h>

#include "lib/bytes.h"

enum {                /* metadata of a page; little-endian */
       PAGE_ROW = 0,  /* 64 bits: number of the row */
       PAGE_LOST = 8, /* 64 bits: ftl.lost_rows; or all bits set */
       PAGE_REST = 16,
};

uint16_t ftl_trim_touch_page(struct ftl *ftl, uint32_t page)
{
    uint32_t entry = ftl->map[page];
    uint16_t index;

    if (ftl_is_in_slot(entry) &&
        ftl->slots[(uint16_t)entry].state == FTL_SLOT_WAITING) {
        return (uint16_t)entry;
    }
    index = ftl_slot_take(ftl, FTL_POOL_TRIM, page);
    if (index == FTL_LIST_END) {
        uint16_t oldest = ftl->waiting[FTL_POOL_TRIM].head;

        if (oldest != FTL_LIST_END) {
            ftl->forced = MAX(ftl->forced, ftl->slots[oldest].accepted);
        }
        return FTL_LIST_END;
    }
    if (ftl_is_in_slot(entry)) {
        ftl->slots[index].follows = (uint16_t)entry;
    } else if (ftl_is_place(entry)) {
        ftl->slots[index].old_place = entry;
    }
    ftl_slot_accept(ftl, index);
    return index;
}

/*
 * If pages cannot be read that the checkpoint names, only the checkpoint has
 * the trims and failures that they say.
 */
bool ftl_trim_restore_step(struct ftl *ftl)
{
    if (!ftl->mount.has_lost_pages) {
        return false;
    }
    for (uint32_t i = ftl->config.logical_units; i < ftl->entries; i++) {
        if (ftl->map[i] == FTL_NOWHERE &&
            ftl_trim_touch_page(ftl, i) == FTL_LIST_END) {
            return false;
        }
    }
    ftl->forced = ftl->accepted;
    ftl->mount.has_lost_pages =
        !ftl_slot_is_pool_durable(ftl, FTL_POOL_TRIM, ftl->accepted);
    return !ftl->mount.has_lost_pages;
}

uint16_t ftl_trim_touch(struct ftl *ftl, uint32_t number)
{
    return ftl_trim_touch_page(ftl, ftl->config.logical_units +
                                        number / FTL_TRIM_UNITS);
}

/* Whether a power cut at this time leaves contents of a unit. */
static bool has_contents(const struct ftl *ftl, uint32_t number)
{
    uint32_t entry = ftl->map[number];

    return ftl_is_in_slot(entry)
               ? ftl->slots[(uint16_t)entry].old_place != FTL_NOWHERE
               : entry != FTL_NOWHERE;
}

static void snapshot_trims(struct ftl *ftl, uint16_t index, uint64_t row)
{
    uint32_t page = ftl->slots[index].number - ftl->config.logical_units;
    uint32_t first = page * FTL_TRIM_UNITS;
    uint64_t lost_row = ftl->lost_rows[page];
    uint32_t count =
        MIN((uint32_t)FTL_TRIM_UNITS, ftl->config.logical_units - first);
    uint8_t *data = ftl_slot_data(ftl, index);
    uint8_t *meta = ftl_slot_meta(ftl, index);

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

void ftl_trim_snapshot(struct ftl *ftl, uint16_t index, uint64_t row)
{
    uint32_t page = ftl->slots[index].number - ftl->config.logical_units;

    if (page < ftl->trim_pages) {
        snapshot_trims(ftl, index, row);
    } else if (page < ftl->trim_pages + ftl->health_pages) {
        ftl_health_snapshot(ftl, index);
    } else {
        ftl_wear_snapshot(ftl, page - ftl->trim_pages - ftl->health_pages,
                          index);
    }
    ftl_capacity_emit(ftl, ftl_slot_meta(ftl, index));
    ftl_scrub_emit_page(ftl, ftl_slot_meta(ftl, index));
}

/* The contents of a unit are lost. */
static void lose_unit(struct ftl *ftl, uint32_t number)
{
    ftl->map[number] = FTL_LOST_NOWHERE;
    ftl->counters.lost_units++;
}

/* Whether the version of a unit that the mount has found is older than a row.
 */
static bool is_older(const struct ftl *ftl, uint32_t number, uint64_t row)
{
    return ftl->mount.versions[number] >> FTL_VERSION_SHIFT < row;
}

void ftl_trim_lose_page(struct ftl *ftl, uint32_t page, uint64_t row)
{
    uint32_t first = page * FTL_TRIM_UNITS;
    uint32_t count =
        MIN((uint32_t)FTL_TRIM_UNITS, ftl->config.logical_units - first);

    ftl->lost_rows[page] = row;
    for (uint32_t i = first; i < first + count; i++) {
        if (ftl->map[i] != FTL_NOWHERE && is_older(ftl, i, row)) {
            lose_unit(ftl, i);
        }
    }
}

/*
 * Apply what a page says of a unit.  If the page says that the unit has
 * contents, they were durable, and are erased only when newer ones or a newer
 * page are.  So if the mount has found none, they are lost.
 */
static void apply_trim(struct ftl *ftl, uint32_t number, bool has_contents,
                       uint64_t row, uint64_t lost_row)
{
    if (!is_older(ftl, number, row)) {
        return; /* What the mount has found is newer than the page. */
    }
    if (!has_contents) {
        ftl->map[number] = FTL_NOWHERE;
    } else if (ftl->map[number] == FTL_NOWHERE ||
               is_older(ftl, number, lost_row)) {
        lose_unit(ftl, number);
    }
}

static void apply_trims(struct ftl *ftl, uint32_t page, const uint8_t *data,
                        const uint8_t *meta)
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

void ftl_trim_apply(struct ftl *ftl, uint32_t page, const uint8_t *data,
                    const uint8_t *meta)
{
    if (page < ftl->trim_pages) {
        apply_trims(ftl, page, data, meta);
    } else if (page < ftl->trim_pages + ftl->health_pages) {
        ftl_health_apply(ftl, page - ftl->trim_pages, data, meta);
    } else {
        ftl_wear_apply(ftl, page - ftl->trim_pages - ftl->health_pages, data);
    }
}
