/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that a mount clears before it begins, and the loops of a mount
 * that take several steps: the map of the largest array has 20 million entries,
 * and the main loop must go on meanwhile.
 */
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/space/ftl_findings.h"

#include <string.h>

/* ---- Loops that take several steps. */

/* Memory that a mount clears. */
struct region {
    void *memory;
    size_t len;
    int value;
};

/* @return false when there is no region with this number */
static bool find_region(struct ftl_mount_floor *ftl, uint32_t number,
                        struct region *region)
{
    struct ftl_mount *mount = &ftl->mount;
    size_t planes = (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies;
    size_t place_bits = ftl->layout.places / 8 + 1;
    const struct region regions[] = {
        {ftl->map, ftl->entries * sizeof(ftl->map[0]), 0xff},
        {ftl->valid, place_bits, 0},
        {ftl->mounting.unreadable, place_bits, 0},
        {mount->row_numbers,
         (size_t)ftl->layout.superblocks * ftl->layout.superblock_rows *
             sizeof(mount->row_numbers[0]),
         0},
        {ftl->mounting.used_planes, planes, 0},
        {ftl->mounting.partial_planes, planes, 0},
        {mount->versions, ftl->entries * sizeof(mount->versions[0]), 0},
        {mount->probes,
         planes * ftl->layout.geometry.planes * sizeof(mount->probes[0]), 0},
        /* Only the first time: the bits are valid until the mount has ended. */
        {mount->ignored, ftl->mounting.has_ignored ? 0 : place_bits, 0},
    };

    if (number >= ARRAY_LEN(regions)) {
        return false;
    }
    *region = regions[number];
    return true;
}

/* Go on clearing a region, by words. @return whether all of it is clear */
static bool clear_region(struct ftl_mount_floor *ftl,
                         const struct region *region)
{
    enum { WORD = 8 };
    struct ftl_mount *mount = &ftl->mount;
    uint32_t words = (uint32_t)((region->len + WORD - 1) / WORD);
    size_t from = (size_t)mount->next_item * WORD;

    mount->next_item = ftl_mount_part(&ftl->mount, words);
    memset((uint8_t *)region->memory + from, region->value,
           MIN(region->len, (size_t)mount->next_item * WORD) - from);
    return mount->next_item == words;
}

bool ftl_mount_clear(struct ftl_mount_floor *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    struct region region;

    while (find_region(ftl, ftl->mounting.next_region, &region)) {
        if (!clear_region(ftl, &region)) {
            return false;
        }
        mount->next_item = 0;
        ftl->mounting.next_region++;
    }
    ftl->mounting.has_ignored = true;
    return true;
}
