/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planes of blocks that have failed, which the drive remembers, and the end of
 * its life.
 *
 * Health pages hold one byte for each block and die, with a bit for each plane
 * whose program or erasure has failed.  They are written like trim pages, and
 * the latest ones count.  If power fails before a page is on flash, the next
 * use of the plane fails again, and the plane is noted then.
 *
 * When so many planes have failed that garbage collection might make no more
 * progress, the medium becomes read-only.  Nothing is collected from then on,
 * and the contents of the write buffer may use all superblocks that are free.
 */
#include "storage/ftl/ftl_internal.h"
#include "storage/ftl/ftl_mount.h"
#include "storage/ftl/ftl_phases.h"

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
static uint8_t *page_bytes(const struct ftl *ftl, uint32_t page, size_t *len)
{
    size_t all = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    size_t first = (size_t)page * FTL_UNIT_DATA;

    *len = MIN(all - first, (size_t)FTL_UNIT_DATA);
    return ftl->failed_planes + first;
}

static void change_page(struct ftl *ftl, uint32_t page)
{
    if (!ftl->health_changed[page]) {
        ftl->health_changed[page] = true;
        ftl->health_changes++;
    }
}

/*
 * Garbage collection makes progress while the good superblocks have space for
 * all logical units even without the superblocks that are open or kept free.
 * Then one of the remaining superblocks has so few valid units that collecting
 * it makes space.
 */
bool ftl_health_is_worn_out(const struct ftl *ftl)
{
    uint32_t rows = ftl->layout.superblock_rows;
    uint64_t units = 0;
    uint32_t largest = 0;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        uint32_t capacity = ftl->superblocks[i].capacity;

        if (ftl_superblock_is_good(ftl, i)) {
            capacity -= FTL_RESERVE_ROWS * (capacity / rows);
            units += capacity;
            largest = MAX(largest, capacity);
        }
    }
    return units < ftl->entries + (uint64_t)FTL_WORN_RESERVE * largest;
}

bool ftl_health_has_taken_space(const struct ftl *ftl)
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

bool ftl_health_is_read_only(const struct ftl *ftl)
{
    return ftl->is_read_only && !ftl->is_read_only_now;
}

void ftl_health_set_read_only(struct ftl *ftl)
{
    if (!ftl_health_is_read_only(ftl)) {
        ftl->is_read_only = true;
        ftl->is_read_only_now = false;
        ftl->forced = ftl->accepted;
        change_page(ftl, 0);
    }
}

/* Whether the mount has taken the superblock of a block of a die for one that
 * may be half erased, because it found nothing in this block. */
static bool is_taken_for_erased(const struct ftl *ftl, size_t at)
{
    uint32_t superblock = (uint32_t)at / ftl->layout.geometry.dies;
    uint32_t die = (uint32_t)at % ftl->layout.geometry.dies;

    return ftl->superblocks[superblock].last_row != 0 &&
           !ftl->superblocks[superblock].is_known &&
           ftl_mount_is_block_gone(ftl, superblock, die);
}

void ftl_health_note_failure(struct ftl *ftl, uint32_t superblock, uint32_t die,
                             uint8_t planes)
{
    uint32_t at = superblock * ftl->layout.geometry.dies + die;
    bool was_erased;

    planes &= (uint8_t)~ftl->failed_planes[at];
    if (planes == 0) {
        return;
    }
    was_erased = ftl_mount_is_scanning(ftl) && is_taken_for_erased(ftl, at);
    ftl->failed_planes[at] |= planes;
    ftl->bad_planes[at] |= planes;
    ftl->mount.is_in_vain |= was_erased && !is_taken_for_erased(ftl, at);
    change_page(ftl, at / FTL_UNIT_DATA);
    ftl_superblock_measure(ftl, superblock);
    if (ftl->state == FTL_READY && ftl_health_is_worn_out(ftl)) {
        ftl_health_set_read_only(ftl);
    }
}

void ftl_health_write(struct ftl *ftl)
{
    change_page(ftl, 0);
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

void ftl_health_emit(const struct ftl *ftl, uint32_t page, uint8_t *data,
                     uint8_t *meta)
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

void ftl_health_snapshot(struct ftl *ftl, uint16_t index)
{
    uint32_t page =
        ftl->slots[index].number - ftl->config.logical_units - ftl->trim_pages;

    ftl_health_emit(ftl, page, ftl_slot_data(ftl, index),
                    ftl_slot_meta(ftl, index));
    if (page == 0 && ftl_health_is_read_only(ftl)) {
        ftl_slot_meta(ftl, index)[PAGE_FLAGS] = FLAG_READ_ONLY;
    }
}

/*
 * Note planes of a block of a die that, as the flash says, have failed.  If the
 * mount could not rebuild some unit without knowing this, or has taken the
 * superblock for half erased, it begins again.
 */
static void take_planes(struct ftl *ftl, size_t at, uint8_t planes)
{
    bool was_erased;

    planes &= (uint8_t)(BIT(ftl->layout.geometry.planes) - 1);
    planes &= (uint8_t)~ftl->factory_planes[at];
    if ((planes & (uint8_t)~ftl->failed_planes[at]) == 0) {
        return;
    }
    was_erased = is_taken_for_erased(ftl, at);
    ftl->mount.is_in_vain |= ftl->mount.has_unrebuilt &&
                             (planes & (uint8_t)~ftl->bad_planes[at]) != 0;
    ftl->failed_planes[at] |= planes;
    ftl->bad_planes[at] |= planes;
    ftl->mount.is_in_vain |= was_erased && !is_taken_for_erased(ftl, at);
}

void ftl_health_take_planes(struct ftl *ftl, const uint8_t *planes)
{
    size_t bytes = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;

    for (size_t i = 0; i < bytes; i++) {
        take_planes(ftl, i, planes[i]);
    }
}

void ftl_health_apply(struct ftl *ftl, uint32_t page, const uint8_t *data,
                      const uint8_t *meta)
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

bool ftl_is_read_only(const struct ftl *ftl)
{
    return ftl->is_read_only;
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
