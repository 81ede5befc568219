/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many logical units a flash has space for.  The number follows from the
 * geometry and from the blocks that the factory has marked as bad.
 */
#include "storage/ftl/base/base_floor.h"

enum { MIB_UNITS = (1 << 20) / FTL_UNIT_DATA };

uint32_t ftl_most_units(const struct ftl_config *config)
{
    const struct ftl_geometry *geometry = &config->geometry;
    struct ftl_layout layout;
    uint64_t good = 0;
    uint32_t rows, smallest;
    uint64_t units;

    if (!ftl_layout_init(&layout, geometry) ||
        layout.superblock_rows <= FTL_RESERVE_ROWS) {
        return 0;
    }
    smallest = layout.superblock_units;
    for (uint32_t i = 0; i < layout.superblocks; i++) {
        uint32_t capacity = ftl_layout_capacity(
            &layout, config->bad_planes + (size_t)i * geometry->dies,
            layout.has_parity);

        if (ftl_layout_is_enough(&layout, capacity)) {
            good++;
            smallest = MIN(smallest, capacity);
        }
    }
    if (good <= FTL_RESERVE) {
        return 0;
    }
    rows = layout.superblock_rows;
    units = (good - FTL_RESERVE) *
            ((uint64_t)smallest * (rows - FTL_RESERVE_ROWS) / rows);
    return (uint32_t)(units - MIN(units, units / FTL_TRIM_UNITS + 1));
}

uint32_t ftl_good_blocks(const struct ftl_config *config)
{
    const struct ftl_geometry *geometry = &config->geometry;
    size_t bytes = (size_t)geometry->blocks * geometry->dies;
    uint32_t planes = 0;

    for (size_t i = 0; i < bytes; i++) {
        planes += geometry->planes -
                  (unsigned int)__builtin_popcount(config->bad_planes[i]);
    }
    return planes;
}

uint32_t ftl_space(const struct ftl_config *config, uint32_t spare_percent)
{
    const struct ftl_geometry *geometry = &config->geometry;
    uint64_t units = (uint64_t)ftl_good_blocks(config) * geometry->wordlines *
                     geometry->pages * geometry->units * 100 /
                     (100 + spare_percent);

    if (geometry->dies >= FTL_PARITY_DIES) {
        units -= units / geometry->dies;
    }
    units = MIN(units, (uint64_t)ftl_most_units(config));
    return (uint32_t)(units >= MIB_UNITS ? units - units % MIB_UNITS : units);
}
