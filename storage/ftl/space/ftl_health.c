/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planes of blocks that have failed, which the drive remembers, and the end of
 * its life.  The record of both is in ftl_health_pages.c.
 *
 * When so many planes have failed that garbage collection might make no more
 * progress, the medium becomes read-only.  Nothing is collected from then on,
 * and the contents of the write buffer may use all superblocks that are free.
 */
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

static void change_page(struct ftl_space_floor *ftl, uint32_t page)
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
bool ftl_health_is_worn_out(const struct ftl_space_floor *ftl)
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

bool ftl_health_is_read_only(const struct ftl_space_floor *ftl)
{
    return ftl->is_read_only && !ftl->is_read_only_now;
}

void ftl_health_set_read_only(struct ftl_space_floor *ftl)
{
    if (!ftl_health_is_read_only(ftl)) {
        ftl->is_read_only = true;
        ftl->is_read_only_now = false;
        ftl->forced = ftl->accepted;
        change_page(ftl, 0);
    }
}

uint8_t ftl_health_gone_planes(const struct ftl_space_floor *ftl, size_t at)
{
    uint32_t superblock = (uint32_t)at / ftl->layout.geometry.dies;
    uint32_t die = (uint32_t)at % ftl->layout.geometry.dies;

    return ftl->superblocks[superblock].last_row != 0 &&
                   !ftl->superblocks[superblock].is_known
               ? ftl_mount_gone_planes(ftl, superblock, die)
               : 0;
}

void ftl_health_note_failure(struct ftl_space_floor *ftl, uint32_t superblock,
                             uint32_t die, uint8_t planes)
{
    uint32_t at = superblock * ftl->layout.geometry.dies + die;
    bool is_scanning = ftl_mount_is_scanning(ftl);
    uint8_t gone;

    planes &= (uint8_t)~ftl->failed_planes[at];
    if (planes == 0) {
        return;
    }
    gone = is_scanning ? ftl_health_gone_planes(ftl, at) : 0;
    ftl->failed_planes[at] |= planes;
    ftl->bad_planes[at] |= planes;
    ftl->mount.is_in_vain |= is_scanning && ftl->mount.has_doubted &&
                             ftl_health_gone_planes(ftl, at) != gone;
    change_page(ftl, at / FTL_UNIT_DATA);
    ftl_superblock_measure(ftl, superblock);
    if (ftl->state == FTL_READY && ftl_health_is_worn_out(ftl)) {
        ftl_health_set_read_only(ftl);
    }
}

void ftl_health_write(struct ftl_space_floor *ftl)
{
    change_page(ftl, 0);
}
