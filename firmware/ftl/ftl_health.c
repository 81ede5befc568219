/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planes of blocks that have failed, which the drive remembers.
 *
 * Health pages hold one byte for each block and die, with a bit for each plane
 * whose program or erasure has failed.  They are written like trim pages, and
 * the latest ones count.  If power fails before a page is on flash, the next
 * use of the plane finds out again.
 */
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

uint32_t ftl_health_pages(const struct ftl_layout *layout)
{
    size_t bytes = (size_t)layout->superblocks * layout->geometry.dies;

    return (uint32_t)((bytes + FTL_UNIT_DATA - 1) / FTL_UNIT_DATA);
}

/* The bytes of a page in the list of planes. */
static uint8_t *page_bytes(const struct ftl *ftl, uint32_t page, size_t *len)
{
    size_t all = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    size_t first = (size_t)page * FTL_UNIT_DATA;

    *len = MIN(all - first, (size_t)FTL_UNIT_DATA);
    return ftl->failed_planes + first;
}

void ftl_health_note_failure(struct ftl *ftl, uint32_t superblock, uint32_t die,
                             uint8_t planes)
{
    uint32_t at = superblock * ftl->layout.geometry.dies + die;
    uint32_t page = at / FTL_UNIT_DATA;

    planes &= (uint8_t)~ftl->failed_planes[at];
    if (planes == 0) {
        return;
    }
    ftl->failed_planes[at] |= planes;
    ftl->bad_planes[at] |= planes;
    if (!ftl->health_changed[page]) {
        ftl->health_changed[page] = true;
        ftl->health_changes++;
    }
    ftl_superblock_measure(ftl, superblock);
}

bool ftl_health_step(struct ftl *ftl)
{
    bool any = false;

    for (uint32_t page = 0;
         ftl->health_changes != 0 && page < ftl->health_pages; page++) {
        if (ftl->health_changed[page] &&
            ftl_trim_touch_page(ftl, ftl->config.logical_units +
                                         ftl->trim_pages + page) !=
                FTL_LIST_END) {
            ftl->health_changed[page] = false;
            ftl->health_changes--;
            ftl->forced = ftl->accepted; /* It does not wait for data. */
            any = true;
        }
    }
    return any;
}

void ftl_health_snapshot(struct ftl *ftl, uint16_t index)
{
    uint32_t page =
        ftl->slots[index].number - ftl->config.logical_units - ftl->trim_pages;
    uint8_t *data = ftl_slot_data(ftl, index);
    size_t len;
    const uint8_t *bytes = page_bytes(ftl, page, &len);

    memcpy(data, bytes, len);
    memset(data + len, 0, FTL_UNIT_DATA - len);
    memset(ftl_slot_meta(ftl, index), 0xff, FTL_UNIT_META);
}

void ftl_health_apply(struct ftl *ftl, uint32_t page, const uint8_t *data)
{
    size_t len;
    uint8_t *bytes = page_bytes(ftl, page, &len);

    for (size_t i = 0; i < len; i++) {
        bytes[i] |= data[i];
        ftl->bad_planes[(size_t)page * FTL_UNIT_DATA + i] |= data[i];
    }
}

uint32_t ftl_failed_planes(const struct ftl *ftl)
{
    size_t bytes = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    uint32_t planes = 0;

    for (size_t i = 0; i < bytes; i++) {
        planes += (uint32_t)__builtin_popcount(ftl->failed_planes[i]);
    }
    return planes;
}
