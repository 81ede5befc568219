/* SPDX-License-Identifier: BSD-2-Clause */
/* Reclaim and scrubbing: contents are moved before they cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/storage/ftl/ftl_faults.h"

#define DAY_US UINT64_C(86400000000)

enum { RECLAIM_BITS = 195 };

/* Two dies, hence no parity. */
static const struct bed_config tlc = {
    .profile = "tlc2021",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 4,
                 .pages = 3,
                 .blocks = 12,
                 .wordlines = 3},
    .logical_units = 300,
    .buffer_units = 128,
    .seed = 3,
};

static struct bed *new_filled(const struct bed_config *config)
{
    struct bed *bed = bed_new(config);

    for (unsigned int i = 0; i < 3; i++) {
        for (uint32_t unit = 0; unit < bed->units; unit++) {
            bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
        }
    }
    bed_flush(bed);
    bed_settle(bed);
    return bed;
}

/* Read everything. @return the number of units that cannot be read */
static uint32_t count_lost(struct bed *bed)
{
    uint32_t lost = 0;

    for (uint32_t unit = 0; unit < bed->units; unit++) {
        lost += bed_wait(bed, bed_submit_read(bed, (uint64_t)unit * BED_SECTORS,
                                              BED_SECTORS)) != MEDIA_OK;
    }
    return lost;
}

/* Let the drive be on for a while. */
static void run_for(struct bed *bed, uint64_t us)
{
    uint64_t end_us = bed->now_us + us;

    while (bed->now_us < end_us) {
        if (!bed_step(bed)) {
            bed->now_us = MIN(bed->deadline_us, end_us);
        }
    }
}

/* Years pass; the drive is on for some minutes every 400 days. */
static void let_years_pass(struct bed *bed)
{
    for (unsigned int i = 0; i < 25; i++) {
        bed->now_us += 400 * DAY_US;
        run_for(bed, 300000000);
    }
}

static void test_data_that_fade_are_lost_without_scrubbing(void **state)
{
    struct bed *bed = new_filled(&tlc);

    (void)state;
    let_years_pass(bed);
    assert_true(count_lost(bed) > 10);
    bed_free(bed);
}

static void test_data_that_fade_are_moved_by_scrubbing(void **state)
{
    struct bed_config config = tlc;
    struct bed *bed;

    (void)state;
    config.reclaim_bits = RECLAIM_BITS;
    config.scrub_us = 1000000;
    bed = new_filled(&config);
    let_years_pass(bed);
    bed_check(bed);
    assert_true(ftl_counters(bed->ftl)->reclaimed > 3);
    assert_true(ftl_counters(bed->ftl)->scrubbed_rows > 100);
    bed_free(bed);
}

/* Restart the drive, after an orderly power-off or not. */
static void restart_drive(struct bed *bed, bool is_orderly)
{
    bed_settle(bed);
    if (is_orderly) {
        bed_stop(bed);
    }
    bed_mount(bed);
}

/*
 * Each time that the drive is on, scrubbing reads only a few of the rows.  It
 * goes on with the next ones at the next start.
 */
static void scrub_in_parts(bool is_orderly, uint64_t on_us)
{
    struct bed_config config = tlc;
    uint64_t rows = 0;
    struct bed *bed;

    config.geometry.blocks = 28;
    config.logical_units = 2400;
    config.reclaim_bits = RECLAIM_BITS;
    config.scrub_us = 30000000;
    config.checkpoint_superblocks = is_orderly ? 8 : 0;
    bed = new_filled(&config);
    for (unsigned int i = 0; i < 250; i++) {
        bed->now_us += 40 * DAY_US;
        run_for(bed, on_us);
        rows = MAX(rows, ftl_counters(bed->ftl)->scrubbed_rows);
        restart_drive(bed, is_orderly);
    }
    assert_in_range(rows, 1, 4);
    bed_check(bed);
    bed_free(bed);
}

static void test_scrubbing_goes_on_after_an_orderly_power_off(void **state)
{
    (void)state;
    scrub_in_parts(true, 50000000);
}

static void test_scrubbing_goes_on_after_the_power_was_cut(void **state)
{
    (void)state;
    scrub_in_parts(false, 70000000);
}

/* A drive that nobody uses writes little: a page every quarter of an hour. */
static void test_the_position_of_scrubbing_is_rarely_written(void **state)
{
    struct bed_config config = tlc;
    struct bed *bed;
    uint64_t pages;

    (void)state;
    config.scrub_us = 10000000;
    bed = new_filled(&config);
    pages = ftl_counters(bed->ftl)->map_pages;
    run_for(bed, DAY_US);
    assert_in_range(ftl_counters(bed->ftl)->map_pages - pages, 90, 97);
    assert_in_range(ftl_counters(bed->ftl)->scrubbed_rows, 8000, 9000);
    bed_free(bed);
}

/* A host has read each block so many times. */
static void add_reads(struct bed *bed, uint32_t reads)
{
    const struct nand_geometry *geometry = &bed->config.geometry;

    for (unsigned int die = 0; die < geometry->dies; die++) {
        for (unsigned int plane = 0; plane < geometry->planes; plane++) {
            for (unsigned int block = 0; block < geometry->blocks; block++) {
                struct nand_block *at =
                    (struct nand_block *)(uintptr_t)nand_array_block(
                        bed->array, 0, die, plane, block);

                at->reads += reads;
            }
        }
    }
}

/* @return units that are lost */
static uint32_t read_many_times(struct bed *bed)
{
    uint32_t lost = 0;

    for (unsigned int i = 0; i < 25; i++) {
        add_reads(bed, 3000);
        bed->now_us += 100000000;
        lost = count_lost(bed);
        bed_settle(bed);
    }
    return lost;
}

static void test_reads_wear_out_data_that_are_not_reclaimed(void **state)
{
    struct bed *bed = new_filled(&tlc);

    (void)state;
    assert_true(read_many_times(bed) > 10);
    bed_free(bed);
}

static void test_data_that_reads_have_disturbed_are_reclaimed(void **state)
{
    struct bed_config config = tlc;
    struct bed *bed;

    (void)state;
    config.reclaim_bits = RECLAIM_BITS;
    bed = new_filled(&config);
    assert_int_equal(read_many_times(bed), 0);
    assert_in_range(ftl_counters(bed->ftl)->reclaimed, 2, 200);
    bed_check(bed);
    bed_free(bed);
}

static void test_fresh_data_are_not_reclaimed(void **state)
{
    struct bed_config config = tlc;
    struct bed *bed;

    (void)state;
    config.reclaim_bits = RECLAIM_BITS;
    config.scrub_us = 1000000;
    bed = new_filled(&config);
    run_for(bed, 30 * DAY_US / 86400);
    assert_true(ftl_counters(bed->ftl)->scrubbed_rows > 20);
    assert_int_equal(ftl_counters(bed->ftl)->reclaimed, 0);
    bed_free(bed);
}

/* Worn flash needs soft decoding at once. */
static void test_weak_data_are_not_moved_again_and_again(void **state)
{
    struct nand_injection weak = fault_anywhere(NAND_OP_READ, NAND_EFFECT_BITS);
    struct bed_config config = tlc;
    struct bed *bed;

    (void)state;
    config.reclaim_bits = RECLAIM_BITS;
    config.scrub_us = 100000;
    bed = new_filled(&config);
    weak.bits = 250;
    inject_fault(bed, &weak);
    run_for(bed, 600000000);
    /* Ten minutes, and each superblock at most once a minute. */
    assert_in_range(ftl_counters(bed->ftl)->reclaimed, 5,
                    10 * config.geometry.blocks);
    bed_check(bed);
    bed_free(bed);
}
