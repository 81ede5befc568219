/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * essd-nand size: how large an array has to be so that a drive with it has a
 * certain capacity.  Code of the firmware computes the capacity of each array.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "firmware/ftl/ftl.h"
#include "space.h"

static unsigned int bad_planes(const struct nand_geometry *geometry,
                               const struct nand_profile *profile,
                               uint64_t seed, uint32_t die, uint32_t block)
{
    unsigned int bad = 0;

    for (uint32_t plane = 0; plane < geometry->planes; plane++) {
        uint32_t number =
            (die * geometry->planes + plane) * geometry->blocks + block;

        if (nand_is_factory_bad(profile, seed, number)) {
            bad |= 1u << plane;
        }
    }
    return bad;
}

uint64_t space_bytes(const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed)
{
    uint32_t dies = nand_geometry_dies(geometry);
    uint8_t *bad = malloc((size_t)geometry->blocks * dies);
    struct ftl_config config = {
        .geometry =
            {
                .dies = (uint16_t)dies,
                .planes = geometry->planes,
                .blocks = geometry->blocks,
                .wordlines = geometry->wordlines,
                .pages = geometry->pages,
                .units = geometry->units,
            },
        .bad_planes = bad,
    };
    uint64_t bytes;

    if (bad == NULL) {
        return 0;
    }
    for (uint32_t block = 0; block < geometry->blocks; block++) {
        for (uint32_t die = 0; die < dies; die++) {
            bad[(size_t)block * dies + die] =
                (uint8_t)bad_planes(geometry, profile, seed, die, block);
        }
    }
    bytes = (uint64_t)ftl_space(&config) * FTL_UNIT_DATA;
    free(bad);
    return bytes;
}

/* Choose the smallest array of this kind. @return false if there is none */
static bool choose_smallest(const struct nand_profile *profile,
                            const struct wishes *wishes,
                            struct nand_geometry *geometry)
{
    enum nand_fit fit;
    uint64_t smallest;

    return profile != NULL &&
           (nand_geometry_for(profile, 1, wishes->channels, wishes->dies,
                              geometry, &fit, &smallest) ||
            (fit == NAND_FIT_TOO_SMALL &&
             nand_geometry_for(profile, smallest, wishes->channels,
                               wishes->dies, geometry, &fit, &smallest)));
}

int print_size(const struct wishes *wishes)
{
    const struct nand_profile *profile = nand_profile_find(wishes->profile);
    struct nand_geometry geometry;
    enum nand_fit fit;
    uint64_t size, step, nearest;

    if (!choose_smallest(profile, wishes, &geometry)) {
        fprintf(stderr,
                "essd-nand: no array can have %u channels with %u dies of "
                "the profile %s\n",
                wishes->channels, wishes->dies, wishes->profile);
        return STATUS_FAILED;
    }
    size = nand_geometry_bytes(&geometry);
    /* The least step: one wordline more in each block, with as few blocks in a
     * plane as possible. */
    step = size / geometry.wordlines / geometry.blocks * NAND_SUPERBLOCKS;
    size = MAX(size, wishes->capacity_bytes / step * step);
    while (nand_geometry_for(profile, size, wishes->channels, wishes->dies,
                             &geometry, &fit, &nearest)) {
        if (space_bytes(&geometry, profile, wishes->seed) >=
            wishes->capacity_bytes) {
            printf("%" PRIu64 "\n", size);
            return STATUS_OK;
        }
        size += step;
    }
    fprintf(stderr,
            "essd-nand: no array is large enough for %" PRIu64 " bytes\n",
            wishes->capacity_bytes);
    return STATUS_FAILED;
}
