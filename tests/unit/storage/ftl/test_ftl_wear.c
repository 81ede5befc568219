/* SPDX-License-Identifier: BSD-2-Clause */
/* Wear levelling: how often the blocks of the array are erased. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

enum { NO_LEVELLING = 1000000 };

static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 30,
                 .wordlines = 4},
    .logical_units = 400,
    .buffer_units = 24,
    .wear_spread = 8,
    .seed = 1,
};

struct spread {
    uint32_t least, most;
};

/* The erasures of the blocks of the array, as the array counts them. */
static struct spread find_spread(const struct bed *bed)
{
    struct spread spread = {.least = UINT32_MAX};

    for (unsigned int i = 0; i < bed->config.geometry.blocks; i++) {
        const struct nand_block *block =
            nand_array_block(bed->array, 0, 0, 0, i);

        if ((block->flags & NAND_BLOCK_FACTORY_BAD) == 0) {
            spread.least = MIN(spread.least, block->number);
            spread.most = MAX(spread.most, block->number);
        }
    }
    return spread;
}

/* Write the whole medium once, and then only a twentieth of it. */
static void write_skewed(struct bed *bed, unsigned int writes)
{
    uint64_t random = 7;

    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    }
    for (unsigned int i = 0; i < writes; i++) {
        bed_write(bed, random_next(&random) % (bed->units / 20) * BED_SECTORS,
                  BED_SECTORS);
        if (i % 2 == 1) {
            bed_flush(bed);
        }
    }
    bed_flush(bed);
    bed_settle(bed);
}

static void test_a_skewed_workload_wears_all_blocks_alike(void **state)
{
    struct bed *bed = bed_new(&small);
    struct ftl_erase_counts counts;
    struct spread spread;

    (void)state;
    write_skewed(bed, 8000);
    spread = find_spread(bed);
    ftl_erase_counts(bed->ftl, &counts);
    print_message("erasures with levelling: %u to %u\n", spread.least,
                  spread.most);
    assert_in_range(spread.most - spread.least, 0, 8 + 4);
    assert_true(spread.most > 15);
    assert_int_equal(counts.most, spread.most);
    assert_int_equal(counts.least, spread.least);
    assert_in_range(counts.average, spread.least, spread.most);
    assert_true(ftl_counters(bed->ftl)->levelled > 10);
    bed_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_without_levelling_cold_blocks_are_not_erased(void **state)
{
    struct bed_config config = small;
    struct spread spread;
    struct bed *bed;

    (void)state;
    config.levelling = "never";
    bed = bed_new(&config);
    write_skewed(bed, 8000);
    spread = find_spread(bed);
    print_message("erasures without levelling: %u to %u\n", spread.least,
                  spread.most);
    assert_true(spread.most - spread.least > 30);
    assert_int_equal(ftl_counters(bed->ftl)->levelled, 0);
    bed_free(bed);
}

/* A few erasures since the last wear page may be forgotten. */
static void test_erase_counts_survive_restarts(void **state)
{
    struct bed *bed = bed_new(&small);
    struct ftl_erase_counts before, after;

    (void)state;
    write_skewed(bed, 6000);
    for (unsigned int i = 0; i < 10; i++) {
        ftl_erase_counts(bed->ftl, &before);
        assert_true(before.average > 8);
        bed_mount(bed);
        ftl_erase_counts(bed->ftl, &after);
        assert_in_range(after.average, before.average - 2, before.average + 2);
        assert_in_range(after.most, before.most - 2, before.most + 2);
        bed_settle(bed);
    }
    bed_free(bed);
}

static uint32_t count_kept(const struct bed *bed)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < bed->config.geometry.blocks; i++) {
        kept += bed_keeps_old_contents(bed, i);
    }
    return kept;
}

static void overwrite_medium(struct bed *bed)
{
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
    bed_settle(bed);
}

/*
 * A host overwrites the same data, and trims all of it at the end.  Superblocks
 * are erased as soon as they are empty, and storage keeps the old contents of a
 * few of them until they are programmed again, but never of many.  The open one
 * may have some, too, and so may the one that takes checkpoints.
 */
static void test_storage_keeps_old_contents_of_few_superblocks(void **state)
{
    struct bed_config config = small;
    uint32_t rounds_with_kept = 0, most = 0;
    struct bed *bed;

    (void)state;
    config.logical_units = 200;
    config.wear_spread = NO_LEVELLING;
    config.erases_early = true;
    bed = bed_new(&config);
    for (unsigned int i = 0; i < 60; i++) {
        overwrite_medium(bed);
        most = MAX(most, count_kept(bed));
        rounds_with_kept += count_kept(bed) != 0;
    }
    assert_in_range(rounds_with_kept, 30, 60);
    bed_trim(bed, 0, bed->units * BED_SECTORS);
    overwrite_medium(bed); /* opens superblocks, and then empty ones are erased
                            */
    most = MAX(most, count_kept(bed));
    assert_in_range(most, FTL_REUSED_MAX, FTL_REUSED_MAX + 2);
    bed_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_victims_chosen_by_space_alone_lose_nothing(void **state)
{
    struct bed_config config = small;
    struct bed *bed;
    uint64_t random = 3;

    (void)state;
    config.is_greedy = true;
    bed = bed_new(&config);
    write_skewed(bed, 1000);
    for (unsigned int i = 0; i < 1500; i++) {
        bed_random_op(bed, &random);
        if (i % 40 == 39) {
            bed_wait_all(bed);
            bed_flush(bed);
        }
    }
    bed_wait_all(bed);
    bed_check(bed);
    bed_free(bed);
}
