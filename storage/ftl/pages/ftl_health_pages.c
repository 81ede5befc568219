/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Health pages: the record of the planes that have failed, and of whether the
 * medium is read-only.
 *
 * Health pages hold one byte for each block and die, with a bit for each plane
 * whose program or erasure has failed.  They are written like trim pages, and
 * the latest ones count.  If power fails before a page is on flash, the next
 * use of the plane fails again, and the plane is noted then.
 */
#include "storage/ftl/map/map.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/space.h"

#include <string.h>

enum {                 /* metadata of page 0 */
       PAGE_FLAGS = 0, /* 8 bits */
       PAGE_DEAD = 8,  /* ftl_dead.c; FTL_DEAD_RECORD_LEN bytes */
       FLAG_READ_ONLY = 0x01,
};

uint32_t ftl_health_pages(const struct ftl_layout *layout)
{
    size_t bytes = (size_t)layout->superblocks * layout->geometry.dies;

    return (uint32_t)((bytes + FTL_UNIT_DATA - 1) / FTL_UNIT_DATA);
}

/* The bytes of a page in the list of planes. */
static uint8_t *page_bytes(const struct ftl_pages_floor *ftl, uint32_t page,
                           size_t *len)
{
    size_t all = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    size_t first = (size_t)page * FTL_UNIT_DATA;

    *len = MIN(all - first, (size_t)FTL_UNIT_DATA);
    return ftl->failed_planes + first;
}

bool ftl_health_has_taken_space(const struct ftl_pages_floor *ftl)
{
    bool has_failed = false;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->superblocks[i].is_stuck) {
            return false; /* Units that cannot be read have taken the space. */
        }
    }
    for (uint32_t i = 0; i < ftl->health_pages && !has_failed; i++) {
        size_t len;
        const uint8_t *bytes = page_bytes(ftl, i, &len);

        for (size_t j = 0; j < len; j++) {
            has_failed |= bytes[j] != 0;
        }
    }
    return has_failed;
}

bool ftl_health_step(struct ftl_pages_floor *ftl)
{
    bool any = false;

    for (uint32_t page = 0;
         ftl->health_changes != 0 && page < ftl->health_pages; page++) {
        if (ftl->health_changed[page] &&
            ftl_page_touch(ftl, ftl->config.logical_units + ftl->trim_pages +
                                    page) != FTL_LIST_END) {
            ftl->health_changed[page] = false;
            ftl->health_changes--;
            ftl->forced = ftl->accepted; /* It does not wait for data. */
            any = true;
        }
    }
    return any;
}

void ftl_health_emit(const struct ftl_pages_floor *ftl, uint32_t page,
                     uint8_t *data, uint8_t *meta)
{
    size_t len;
    const uint8_t *bytes = page_bytes(ftl, page, &len);

    memcpy(data, bytes, len);
    memset(data + len, 0, FTL_UNIT_DATA - len);
    memset(meta, 0, FTL_UNIT_META);
    if (page == 0) {
        ftl_dead_emit(ftl, meta + PAGE_DEAD);
    }
}

void ftl_health_snapshot(struct ftl_pages_floor *ftl, uint16_t index)
{
    uint32_t page = ftl->buffer.slots[index].number -
                    ftl->config.logical_units - ftl->trim_pages;

    ftl_health_emit(ftl, page, ftl_slot_data(&ftl->buffer, index),
                    ftl_slot_meta(&ftl->buffer, index));
    if (page == 0 && ftl_health_is_read_only(&ftl->space_floor)) {
        ftl_slot_meta(&ftl->buffer, index)[PAGE_FLAGS] = FLAG_READ_ONLY;
    }
}

/*
 * Note planes of a block of a die that, as the flash says, have failed.  If the
 * mount could not rebuild some unit without knowing this, or has compared
 * copies and took a superblock for half erased, it begins again.
 */
static void take_planes(struct ftl_pages_floor *ftl, size_t at, uint8_t planes)
{
    uint8_t gone;

    planes &= (uint8_t)(BIT(ftl->layout.geometry.planes) - 1);
    planes &= (uint8_t)~ftl->factory_planes[at];
    if ((planes & (uint8_t)~ftl->failed_planes[at]) == 0) {
        return;
    }
    gone = ftl_health_gone_planes(&ftl->space_floor, at);
    ftl->mount.is_in_vain |= ftl->mount.has_unrebuilt &&
                             (planes & (uint8_t)~ftl->bad_planes[at]) != 0;
    ftl->failed_planes[at] |= planes;
    ftl->bad_planes[at] |= planes;
    ftl->mount.is_in_vain |=
        ftl->mount.has_doubted &&
        ftl_health_gone_planes(&ftl->space_floor, at) != gone;
}

void ftl_health_take_planes(struct ftl_pages_floor *ftl, const uint8_t *planes)
{
    size_t bytes = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;

    for (size_t i = 0; i < bytes; i++) {
        take_planes(ftl, i, planes[i]);
    }
}

void ftl_health_apply(struct ftl_pages_floor *ftl, uint32_t page,
                      const uint8_t *data, const uint8_t *meta)
{
    size_t len;

    (void)page_bytes(ftl, page, &len);
    for (size_t i = 0; i < len; i++) {
        take_planes(ftl, (size_t)page * FTL_UNIT_DATA + i, data[i]);
    }
    if (page == 0) {
        ftl->is_read_only |= meta[PAGE_FLAGS] == FLAG_READ_ONLY;
        ftl_dead_take(ftl, meta + PAGE_DEAD);
    }
}
