/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wear pages hold the erase counts, 32 bits for each superblock.  They are
 * written like trim pages, once for several erasures.  If power fails before
 * they are written, the counts are a bit too small, which does no harm.
 */
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    COUNT_BYTES = 4,
    PAGE_COUNTS = FTL_UNIT_DATA / COUNT_BYTES,
    ERASURES_PER_WRITE = 16, /* of a superblock of the page */
    COUNT_MAX = 1 << 24,     /* more than any flash can take */
};

uint32_t ftl_wear_pages(const struct ftl_layout *layout)
{
    return (layout->superblocks + PAGE_COUNTS - 1) / PAGE_COUNTS;
}

static uint32_t page_end(const struct ftl_layout *layout, uint32_t page)
{
    return MIN((page + 1) * PAGE_COUNTS, layout->superblocks);
}

void ftl_wear_emit(const struct ftl_pages_floor *ftl, uint32_t page,
                   uint8_t *data, uint8_t *meta)
{
    memset(data, 0, FTL_UNIT_DATA);
    for (uint32_t i = page * PAGE_COUNTS; i < page_end(&ftl->layout, page);
         i++) {
        put_le32(data + i % PAGE_COUNTS * COUNT_BYTES, ftl->wear[i]);
    }
    memset(meta, 0xff, FTL_UNIT_META);
}

void ftl_wear_snapshot(struct ftl_pages_floor *ftl, uint32_t page,
                       uint16_t index)
{
    ftl_wear_emit(ftl, page, ftl_slot_data(&ftl->buffer, index),
                  ftl_slot_meta(&ftl->buffer, index));
}

void ftl_wear_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data)
{
    for (uint32_t i = page * PAGE_COUNTS; i < page_end(&ftl->layout, page);
         i++) {
        uint32_t count = get_le32(data + i % PAGE_COUNTS * COUNT_BYTES);

        if (count <= COUNT_MAX) {
            ftl->wear[i] = MAX(ftl->wear[i], count);
        }
    }
}

bool ftl_wear_step(struct ftl_pages_floor *ftl)
{
    bool any = false;

    if (ftl->wear_changes < ERASURES_PER_WRITE) {
        return false;
    }
    while (ftl->next_wear_page < ftl->wear_pages) {
        if (ftl_page_touch(ftl, ftl->config.logical_units + ftl->trim_pages +
                                    ftl->health_pages + ftl->next_wear_page) ==
            FTL_LIST_END) {
            return any;
        }
        ftl->next_wear_page++;
        any = true;
    }
    ftl->next_wear_page = 0;
    ftl->wear_changes = 0;
    return true;
}
