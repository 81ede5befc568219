/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/medium/nand_sizes.h"

enum {
    OPS = 512, /* operations of the medium: as many as the media engine takes */
    /* The write buffer has 16 MiB, like the media engine's cache, but at most
     * this part of the capacity, and at least two rows for each die. */
    BUFFER_UNITS = 4096,
    BUFFER_PART = 16,
    ROWS_PER_DIE = 2,
    BUFFER_ROWS_MIN = 2, /* that ftl_config.buffer_units needs */
    /* The longest time between rows that scrubbing reads. */
    SCRUB_MAX_US = 10000000,
    SCRUB_MIN_US = 1000,
    /* When the power fails, a die may have erasures in progress, and rows of
     * garbage collection or of a checkpoint.  With parity, it then gets a row
     * that completes the stripe of garbage collection.  The first row of the
     * buffer waits until all of them have ended. */
    ERASES_BEFORE = 2,
    ROWS_BEFORE = 3,
    STRIPE_ROWS_BEFORE = 1,
    /* These are the last row, which is not full, and a row whose program fails.
     * Each one, and the marker, may have to wait for the one before. */
    ROWS_AFTER = 2,
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

static uint32_t units_of_row(const struct ftl_geometry *geometry)
{
    return (uint32_t)geometry->planes * geometry->pages * geometry->units;
}

/*
 * How many units can be saved before the capacitors are empty.  In the smallest
 * superblock that is used, a quarter of the planes is bad.  One row of each
 * stripe holds parity.
 */
static uint32_t count_saved_in_time(const struct ftl_geometry *geometry,
                                    const struct nand_sizes *sizes)
{
    const struct nand_times *times = &sizes->times;
    uint32_t row_us = times->program_us + times->transfer_us;
    /* Time in which each die programs one row. */
    uint32_t round_us = MAX(row_us, times->transfer_us * times->channel_dies);
    bool has_parity = geometry->dies >= FTL_PARITY_DIES;
    uint32_t rows_before = ROWS_BEFORE + (has_parity ? STRIPE_ROWS_BEFORE : 0);
    /* All reads in progress may be of the same die. */
    uint64_t before_us = (uint64_t)ERASES_BEFORE * times->erase_us +
                         (uint64_t)NAND_SIZES_REQUESTS * times->read_us +
                         (uint64_t)rows_before * round_us;
    /* With parity, the marker is programmed until its stripe is complete. */
    uint64_t after_us =
        (uint64_t)ROWS_AFTER * row_us + (has_parity ? round_us : row_us);
    uint64_t rows;

    if (sizes->budget_us == 0 || round_us == 0) {
        return UINT32_MAX;
    }
    if (sizes->budget_us < before_us + after_us) {
        return 0;
    }
    rows = (sizes->budget_us - before_us - after_us) / round_us;
    rows *= has_parity ? geometry->dies - 1u : geometry->dies;
    return (uint32_t)MIN(rows * units_of_row(geometry) * 3 / 4,
                         (uint64_t)UINT32_MAX);
}

uint32_t nand_sizes_saved(const struct ftl_config *ftl,
                          const struct nand_sizes *sizes)
{
    uint32_t units = MIN(ftl_most_saved_units(ftl),
                         count_saved_in_time(&ftl->geometry, sizes));

    return units >= BUFFER_ROWS_MIN * units_of_row(&ftl->geometry) ? units : 0;
}

/*
 * Choose the size of the write buffer.  It must be the same at every start,
 * also if a die does not answer.  So it does not depend on the blocks that the
 * factory has marked, and config->bad_planes has no marks yet.
 *
 * With capacitors, one free superblock must have space for all of the buffer,
 * for parity, and for rows that fail; and the capacitors must last until all of
 * this is programmed.
 */
static uint16_t choose_buffer(const struct nand_sizes *sizes,
                              const struct ftl_config *config)
{
    const struct ftl_geometry *geometry = &config->geometry;
    uint32_t row = units_of_row(geometry);
    uint32_t units = MIN(choose_capacity(sizes, config) / BUFFER_PART,
                         (uint32_t)BUFFER_UNITS);

    units = MAX(units, ROWS_PER_DIE * row * geometry->dies);
    if (sizes->has_capacitors && nand_sizes_saved(config, sizes) != 0) {
        uint32_t half = row * geometry->dies * geometry->wordlines / 2;

        units = MIN(units, MIN(half, nand_sizes_saved(config, sizes)));
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
