/* SPDX-License-Identifier: BSD-2-Clause */
/* What a page says: each kind of page has a file of its own. */
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"

void ftl_page_snapshot(struct ftl_pages_floor *ftl, uint16_t index,
                       uint64_t row)
{
    uint32_t page = ftl->buffer.slots[index].number - ftl->config.logical_units;

    if (page < ftl->trim_pages) {
        ftl_trim_snapshot(ftl, index, row);
    } else if (page < ftl->trim_pages + ftl->health_pages) {
        ftl_health_snapshot(ftl, index);
    } else {
        ftl_wear_snapshot(ftl, page - ftl->trim_pages - ftl->health_pages,
                          index);
    }
    ftl_capacity_emit(ftl, ftl_slot_meta(&ftl->buffer, index));
    ftl_scrub_emit_page(ftl, ftl_slot_meta(&ftl->buffer, index));
}

void ftl_page_apply(struct ftl_pages_floor *ftl, uint32_t page,
                    const uint8_t *data, const uint8_t *meta)
{
    if (page < ftl->trim_pages) {
        ftl_trim_apply(ftl, page, data, meta);
    } else if (page < ftl->trim_pages + ftl->health_pages) {
        ftl_health_apply(ftl, page - ftl->trim_pages, data, meta);
    } else {
        ftl_wear_apply(ftl, page - ftl->trim_pages - ftl->health_pages, data);
    }
}
