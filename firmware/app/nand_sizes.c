/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/nand_sizes.h"

enum {
    OPS = 512, /* operations of the medium: as many as the media engine takes */
    /* The write buffer has 16 MiB, like the media engine's cache, but at most
     * this part of the capacity, and at least two rows for each die. */
    BUFFER_UNITS = 4096,
    BUFFER_PART = 16,
    ROWS_PER_DIE = 2,
    /* The longest time between rows that scrubbing reads. */
    SCRUB_MAX_US = 10000000,
    SCRUB_MIN_US = 1000,
    WEAR_SPREAD = 32, /* erasures by which superblocks may differ */
    IDLE_US = 100000, /* after so long without writes, the write buffer is
                       * programmed */
    CHECKPOINT_SUPERBLOCKS = 8, /* superblocks opened between two checkpoints */
};

/* Choose the capacity: the one in the drive's identity, or the largest that the
 * array has space for, if the identity has none or one that is too large. */
static uint32_t choose_capacity(const struct nand_sizes *sizes,
                                const struct ftl_config *config)
{
    uint64_t wanted = sizes->capacity_bytes >> NAND_SIZES_UNIT_SHIFT;
    uint32_t space = ftl_space(config, FTL_SPARE_PERCENT);

    return wanted == 0 ? space : (uint32_t)MIN(wanted, (uint64_t)space);
}

/*
 * Choose the size of the write buffer.  It must be the same at every start,
 * also if a die does not answer.  So it does not depend on the blocks that the
 * factory has marked, and config->bad_planes has no marks yet.
 *
 * With capacitors, one free superblock must have space for all of the buffer,
 * for parity, and for rows that fail.
 */
static uint16_t choose_buffer(const struct nand_sizes *sizes,
                              const struct ftl_config *config)
{
    const struct ftl_geometry *geometry = &config->geometry;
    uint32_t row =
        (uint32_t)geometry->planes * geometry->pages * geometry->units;
    uint32_t units = MIN(choose_capacity(sizes, config) / BUFFER_PART,
                         (uint32_t)BUFFER_UNITS);

    units = MAX(units, ROWS_PER_DIE * row * geometry->dies);
    if (sizes->has_capacitors) {
        uint32_t half = row * geometry->dies * geometry->wordlines / 2;

        units = MIN(units, MIN(half, ftl_most_saved_units(config)));
    }
    return (uint16_t)units;
}

/* The time between two rows that scrubbing reads, so that scrubbing reads all
 * rows in a day. */
static uint64_t choose_scrub_time(const struct ftl_geometry *geometry)
{
    uint64_t rows =
        (uint64_t)geometry->dies * geometry->blocks * geometry->wordlines;
    uint64_t us = UINT64_C(86400000000) / rows;

    return MAX(MIN(us, (uint64_t)SCRUB_MAX_US), (uint64_t)SCRUB_MIN_US);
}

void nand_sizes_begin(struct ftl_config *ftl, const struct nand_sizes *sizes)
{
    ftl->num_ops = OPS;
    ftl->num_requests = NAND_SIZES_REQUESTS;
    ftl->checkpoint_superblocks = CHECKPOINT_SUPERBLOCKS;
    ftl->idle_us = IDLE_US;
    ftl->wear_spread = WEAR_SPREAD;
    ftl->records_capacity = true;
    ftl->erases_early = true;
    ftl->reclaim_bits = (uint16_t)(sizes->hard_bits - sizes->hard_bits / 8);
    ftl->buffer_units = choose_buffer(sizes, ftl);
}

bool nand_sizes_choose(struct ftl_config *ftl, const struct nand_sizes *sizes)
{
    ftl->logical_units = choose_capacity(sizes, ftl);
    ftl->scrub_us = choose_scrub_time(&ftl->geometry);
    return ftl->logical_units != 0;
}
