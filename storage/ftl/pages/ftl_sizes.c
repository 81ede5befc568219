/* SPDX-License-Identifier: BSD-2-Clause */
/* How many pages and slots there are, which follows from the capacity. */
#include "storage/ftl/pages/pages.h"

static uint32_t count_trim_pages(uint32_t logical_units)
{
    return (uint32_t)(((uint64_t)logical_units + FTL_TRIM_UNITS - 1) /
                      FTL_TRIM_UNITS);
}

static uint32_t pool_slots(const struct ftl_pages_floor *ftl,
                           enum ftl_pool pool)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t move_rows = MAX(MIN(dies, (uint32_t)FTL_MOVE_ROWS_MAX),
                             (uint32_t)FTL_MOVE_ROWS_MIN);
    const uint32_t slots[] = {
        [FTL_POOL_HOST] = ftl->config.buffer_units,
        [FTL_POOL_TRIM] = MIN(2 * (ftl->entries - ftl->config.logical_units),
                              (uint32_t)FTL_TRIM_SLOTS),
        [FTL_POOL_MOVE] = move_rows * ftl->layout.row_units,
    };

    return slots[pool];
}

void ftl_set_entries(struct ftl_pages_floor *ftl)
{
    ftl->trim_pages = count_trim_pages(ftl->config.logical_units);
    ftl->health_pages = ftl_health_pages(&ftl->layout);
    ftl->wear_pages = ftl_wear_pages(&ftl->layout);
    ftl->entries = ftl->config.logical_units + ftl->trim_pages +
                   ftl->health_pages + ftl->wear_pages;
    ftl->buffer.num_slots = 0;
    for (unsigned int pool = 0; pool < FTL_POOLS; pool++) {
        ftl->buffer.num_slots += pool_slots(ftl, (enum ftl_pool)pool);
    }
}

uint32_t ftl_most_pages(const struct ftl_layout *layout)
{
    struct ftl_pages_floor ftl;

    ftl.config = (struct ftl_config){.logical_units = layout->places};
    ftl.layout = *layout;
    ftl_set_entries(&ftl);
    return pool_slots(&ftl, FTL_POOL_TRIM);
}

void ftl_init_slots(struct ftl_pages_floor *ftl)
{
    uint16_t slot = 0;

    ftl_list_init(&ftl->collection.lost, ftl->buffer.wait_links);
    for (unsigned int pool = 0; pool < FTL_POOLS; pool++) {
        uint32_t count = pool_slots(ftl, (enum ftl_pool)pool);

        ftl_list_init(&ftl->buffer.free_slots[pool], ftl->buffer.wait_links);
        ftl_list_init(&ftl->buffer.waiting[pool], ftl->buffer.wait_links);
        ftl_list_init(&ftl->buffer.dirty[pool], ftl->buffer.dirty_links);
        while (count-- != 0) {
            /* The host's pool comes first, and has one buffer more. */
            ftl->buffer.slots[slot].buffer =
                (uint16_t)(slot + (pool != FTL_POOL_HOST));
            ftl_list_append(&ftl->buffer.free_slots[pool], slot++);
        }
    }
}
