/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages with trims, health or wear have slots and entries of the map, like the
 * units that hosts write.  What a page says is put into its slot when its row
 * is put together (ftl_page_contents.c).
 */
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"

uint16_t ftl_page_touch(struct ftl_pages_floor *ftl, uint32_t page)
{
    uint32_t entry = ftl->map[page];
    uint16_t index;

    if (ftl_is_in_slot(entry) &&
        ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_WAITING) {
        return (uint16_t)entry;
    }
    index = ftl_slot_take(&ftl->buffer, FTL_POOL_TRIM, page);
    if (index == FTL_LIST_END) {
        uint16_t oldest = ftl->buffer.waiting[FTL_POOL_TRIM].head;

        if (oldest != FTL_LIST_END) {
            ftl->forced = MAX(ftl->forced, ftl->buffer.slots[oldest].accepted);
        }
        return FTL_LIST_END;
    }
    if (ftl_is_in_slot(entry)) {
        ftl->buffer.slots[index].follows = (uint16_t)entry;
    } else if (ftl_is_place(entry)) {
        ftl->buffer.slots[index].old_place = entry;
    }
    ftl_slot_accept(&ftl->map_floor, index);
    return index;
}

/*
 * If pages that the checkpoint names cannot be read, their trims and failures
 * are recorded in the checkpoint only.
 */
bool ftl_page_restore_step(struct ftl_pages_floor *ftl)
{
    if (!ftl->mount.has_lost_pages) {
        return false;
    }
    for (uint32_t i = ftl->config.logical_units; i < ftl->entries; i++) {
        if (ftl->map[i] == FTL_NOWHERE &&
            ftl_page_touch(ftl, i) == FTL_LIST_END) {
            return false;
        }
    }
    ftl->forced = ftl->accepted;
    ftl->mount.has_lost_pages =
        !ftl_slot_is_pool_durable(&ftl->buffer, FTL_POOL_TRIM, ftl->accepted);
    return !ftl->mount.has_lost_pages;
}
