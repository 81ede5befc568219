/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/nand_space.h"

#include <stdlib.h>

#include "storage/ftl/ftl.h"
#include "hw-model/nand/nand_errors.h"

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

void nand_space_mark(uint8_t *bad, const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed)
{
    uint32_t dies = nand_geometry_dies(geometry);

    for (uint32_t block = 0; block < geometry->blocks; block++) {
        for (uint32_t die = 0; die < dies; die++) {
            bad[(size_t)block * dies + die] =
                (uint8_t)bad_planes(geometry, profile, seed, die, block);
        }
    }
}

uint64_t nand_space_bytes(const struct nand_geometry *geometry,
                          const struct nand_profile *profile, uint64_t seed,
                          unsigned int spare_percent)
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
    nand_space_mark(bad, geometry, profile, seed);
    bytes = (uint64_t)ftl_space(&config, spare_percent) * FTL_UNIT_DATA;
    free(bad);
    return bytes;
}
