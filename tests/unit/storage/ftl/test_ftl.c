/* SPDX-License-Identifier: BSD-2-Clause */
/* The translation layer with power: contents, buffer, trims, collection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

/* Rows of four units; superblocks of 8 rows. */
static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 20,
                 .wordlines = 4},
    .logical_units = 150,
    .buffer_units = 24,
    .seed = 1,
};

/* Rows of 48 units, three pages to a wordline. */
static const struct bed_config tlc = {
    .profile = "tlc2021",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 4,
                 .pages = 3,
                 .blocks = 10,
                 .wordlines = 4},
    .logical_units = 300,
    .buffer_units = 128,
    .seed = 3,
};

static void test_a_new_flash_is_an_empty_medium(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_check(bed);
    assert_int_equal(bed->programs, 0);
    assert_int_equal(ftl_free_superblocks(bed->ftl), 20);
    bed_free(bed);
}

static void test_a_write_completes_before_it_is_programmed(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_write(bed, 8, 8);
    assert_int_equal(bed->programs, 0);
    bed_check(bed);
    bed_flush(bed);
    assert_int_equal(bed->programs, 1);
    bed_settle(bed);
    bed_check(bed);
    bed_free(bed);
}

/* The rows of a superblock, 32 units, are full before those of the next. */
static void test_a_row_replaces_contents_of_two_superblocks(void **state)
{
    enum { UNITS = 32, OVER = 2 };
    struct bed *bed = bed_new(&small);
    const struct ftl *ftl = bed->ftl;
    uint32_t first;

    (void)state;
    for (uint32_t unit = 0; unit < 2 * UNITS; unit += 4) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, 4 * BED_SECTORS);
        bed_flush(bed);
    }
    first = ftl_place_superblock(&ftl->layout, ftl->map[0]);
    assert_int_equal(ftl->map[UNITS - 1] + 1, ftl->map[UNITS]);
    assert_int_equal(ftl->superblocks[first].valid, UNITS);
    assert_int_equal(ftl->superblocks[first + 1].valid, UNITS);
    bed_write(bed, (UNITS - OVER) * BED_SECTORS, 2 * OVER * BED_SECTORS);
    bed_flush(bed);
    assert_int_equal(ftl->superblocks[first].valid, UNITS - OVER);
    assert_int_equal(ftl->superblocks[first + 1].valid, UNITS - OVER);
    bed_check(bed);
    bed_free(bed);
}

static void test_the_buffer_is_programmed_when_it_is_left_alone(void **state)
{
    struct bed *bed = bed_new(&small);
    uint64_t deadline_us = UINT64_MAX;

    (void)state;
    bed_write(bed, 8, 8);
    bed_settle(bed);
    (void)ftl_step(bed->ftl, bed->now_us, &deadline_us);
    assert_int_equal(deadline_us, bed->now_us + 1000);
    bed->now_us += 1000;
    bed_settle(bed);
    assert_int_equal(bed->programs, 1);
    bed_free(bed);
}

/* A host that rewrites one unit again and again leaves the others alone. */
static void test_rewrites_of_a_unit_keep_no_other_one_in_the_buffer(
    void **state)
{
    struct bed *bed = bed_new(&small);
    uint64_t end_us = bed->now_us + 20000;

    (void)state;
    bed_write(bed, 0, 2 * BED_SECTORS);
    bed_settle(bed);
    while (bed->now_us < end_us) {
        bed->now_us += 500;
        bed_write(bed, 0, BED_SECTORS);
        bed_settle(bed);
    }
    assert_int_not_equal(bed->programs, 0);
    bed_check(bed);
    bed_free(bed);
}

/* Operations that the dies have not begun. */
static uint32_t count_queued(const struct bed *bed)
{
    uint32_t count = 0;

    for (unsigned int i = 0; i < BED_DIES_MAX; i++) {
        count += bed->dies[i].tail - bed->dies[i].head;
    }
    return count;
}

static void test_a_read_of_flash_begins_without_a_step(void **state)
{
    struct bed *bed = bed_new(&small);
    struct bed_io *reads[4];

    (void)state;
    for (unsigned int i = 0; i < 10; i++) {
        bed_write(bed, 8 + 8 * i, 8);
    }
    bed_flush(bed);
    bed_settle(bed);
    for (unsigned int i = 0; i < 4; i++) {
        uint32_t queued = count_queued(bed);

        reads[i] = bed_submit_read(bed, 8 + 9 * i, i + 3);
        assert_true(count_queued(bed) > queued);
    }
    for (unsigned int i = 0; i < 4; i++) {
        assert_int_equal(bed_wait(bed, reads[i]), MEDIA_OK);
    }
    bed_check(bed);
    bed_free(bed);
}

static void test_a_write_with_fua_or_without_cache_is_programmed(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, 8, 8, true)),
                     MEDIA_OK);
    assert_int_equal(bed->programs, 1);
    ftl_set_volatile(bed->ftl, false);
    bed_write(bed, 16, 3);
    assert_int_equal(bed->programs, 2);
    bed_free(bed);
}

static void test_writes_of_the_same_unit_share_a_place_in_the_buffer(
    void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    for (unsigned int i = 0; i < 50; i++) {
        bed_write(bed, 8 + i % 8, 1);
    }
    bed_flush(bed);
    assert_int_equal(ftl_counters(bed->ftl)->units, 1);
    bed_check(bed);
    bed_free(bed);
}

/*
 * A host submits a write while another one ends.  Its data is copied into the
 * write buffer in the next step, so no row may take it before that.  Without
 * parity, nothing else has the copies done before a row is programmed.
 */
static void test_a_write_that_follows_at_once_is_copied_before_it_is_programmed(
    void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct bed *bed = bed_new_seeded(&bed_small, seed);

        for (unsigned int i = 0; i < 12; i++) {
            bed->chained_writes = 24;
            bed_write(bed, 0, 4 * BED_SECTORS);
            while (bed->chained_writes != 0) {
                assert_true(bed_step(bed));
            }
            bed_wait_all(bed);
            bed_flush(bed);
            bed_check(bed);
        }
        bed_free(bed);
    }
}

static void test_a_part_of_a_unit_keeps_the_rest_of_it(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_write(bed, 8, 24);
    bed_flush(bed);
    bed_write(bed, 10, 1);  /* inside one */
    bed_write(bed, 14, 4);  /* the end of one and the beginning of the next */
    bed_write(bed, 27, 13); /* beyond what was written */
    bed_check(bed);
    bed_flush(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_an_operation_beyond_the_end_is_refused(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, 150 * 8 - 1, 2)),
                     MEDIA_LBA_RANGE);
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, UINT64_MAX, 1)),
                     MEDIA_LBA_RANGE);
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, 150 * 8 - 1, 1)),
                     MEDIA_OK);
    bed_free(bed);
}

static void test_what_was_written_is_there_after_a_restart(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    for (unsigned int round = 0; round < 3; round++) {
        for (unsigned int i = 0; i < 40; i++) {
            bed_write(bed, i * 8 + round, 8);
        }
        bed_trim(bed, 64, 24);
        bed_flush(bed);
        bed_settle(bed);
        bed_mount(bed);
        bed_check(bed);
    }
    bed_free(bed);
}

static void test_a_trimmed_range_reads_as_zeroes(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_write(bed, 0, 64);
    bed_trim(bed, 8, 8); /* in the buffer */
    bed_check(bed);
    bed_flush(bed);
    bed_trim(bed, 16, 8);  /* on flash */
    bed_trim(bed, 35, 20); /* parts of units at both ends */
    bed_check(bed);
    bed_write(bed, 17, 2);
    bed_check(bed);
    bed_flush(bed);
    bed_settle(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/*
 * The flush has been promised contents that the trim then takes out of the
 * buffer.
 */
static void test_a_flush_waits_for_the_trim_of_what_it_flushes(void **state)
{
    struct bed *bed = bed_new(&small);
    struct bed_io *flush;

    (void)state;
    bed_write(bed, 8, 8);
    bed_write(bed, 16, 8);
    bed_flush(bed);
    bed_write(bed, 8, 8);
    flush = bed_submit_flush(bed);
    bed_trim(bed, 8, 8);
    assert_int_equal(bed_wait(bed, flush), MEDIA_OK);
    assert_int_equal(ftl_counters(bed->ftl)->map_pages, 1);
    bed_free(bed);
}

static void test_a_trim_of_nothing_writes_nothing(void **state)
{
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_trim(bed, 0, 60);
    bed_flush(bed);
    assert_int_equal(bed->programs, 0);
    bed_free(bed);
}

/* Write at random, several times the size of the medium. */
static void overwrite_medium(struct bed *bed, unsigned int ops, uint64_t seed)
{
    for (unsigned int i = 0; i < ops; i++) {
        bed_random_op(bed, &seed);
        if (i % 40 == 39) {
            bed_wait_all(bed);
            bed_flush(bed);
        }
    }
    bed_wait_all(bed);
    bed_check(bed);
    bed_flush(bed);
    bed_settle(bed);
}

/*
 * The medium is a small part of the flash, so that no space is ever needed.
 * With the option, superblocks are erased as soon as they are empty.  Then a
 * mount has nothing to look at in them.
 */
static void test_empty_superblocks_are_erased_if_the_owner_wants_that(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_config config = small;
        struct bed *bed;

        config.logical_units = 12;
        config.geometry.blocks = 30;
        config.erases_early = i == 1;
        bed = bed_new(&config);
        overwrite_medium(bed, 100, i);
        assert_true(ftl_free_superblocks(bed->ftl) > FTL_COLLECT_BELOW);
        assert_int_equal(ftl_counters(bed->ftl)->erasures != 0, i == 1);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* Superblocks that become empty because of trims have to wait until the trims
 * are durable.  Nothing else is written after that. */
static void test_trimmed_superblocks_are_erased_when_the_trims_are_durable(
    void **state)
{
    struct bed_config config = small;
    struct bed *bed;

    (void)state;
    config.erases_early = true;
    bed = bed_new(&config);
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, (uint64_t)unit * 8, 8);
    }
    bed_flush(bed);
    bed_settle(bed);
    assert_true(ftl_free_superblocks(bed->ftl) + 4 < config.geometry.blocks);
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_trim(bed, (uint64_t)unit * 8, 8);
    }
    bed_flush(bed);
    bed_settle(bed);
    /* One is open for hosts; the other one is open for garbage collection, or
     * holds pages of the map. */
    assert_true(ftl_free_superblocks(bed->ftl) + 2 >= config.geometry.blocks);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_medium_is_overwritten_many_times(void **state)
{
    const struct bed_config *const configs[] = {&small, &tlc};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(configs); i++) {
        struct bed_config config = *configs[i];
        struct bed *bed;

        config.logical_units = 0;
        bed = bed_new(&config);
        for (uint32_t unit = 0; unit < bed->units; unit++) {
            bed_write(bed, unit * 8, 8);
        }
        bed_check(bed);
        overwrite_medium(bed, 1500, i);
        assert_true(ftl_counters(bed->ftl)->moved_units > 100);
        assert_true(bed->erases > 20);
        bed_mount(bed);
        bed_check(bed);
        overwrite_medium(bed, 300, i + 7);
        bed_free(bed);
    }
}

/*
 * Rows of the same unit complete in any order, while garbage collection moves
 * its contents and erases superblocks.
 */
static void test_few_units_are_rewritten_while_dies_lag(void **state)
{
    const char *seeds = getenv("FTL_SEEDS");
    unsigned long count = seeds == NULL ? 12 : strtoul(seeds, NULL, 10);

    (void)state;
    for (unsigned int seed = 0; seed < count; seed++) {
        struct bed_config config = small;
        struct bed *bed;

        config.geometry.dies = 4;
        config.geometry.wordlines = 2;
        config.geometry.blocks = (uint16_t)(10 + seed % 3);
        config.seed = seed;
        config.logical_units = 0;
        config.dies_lag = true;
        config.rewrites_few = true;
        bed = bed_new(&config);
        for (uint32_t unit = 0; unit < bed->units; unit++) {
            bed_write(bed, unit * 8, 8);
        }
        overwrite_medium(bed, 2000, seed);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

static void write_durably(struct bed *bed, uint32_t unit)
{
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, unit * 8, 8, true)),
                     MEDIA_OK);
}

/* Garbage collection begins when five superblocks, of 8 rows, are in use. */
static const struct bed_config tight = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 9,
                 .wordlines = 4},
    .logical_units = 19,
    .buffer_units = 24,
    .seed = 1,
};

/*
 * Fill `count` superblocks, with so many rows of data each.  In each, two units
 * stay valid: those of these two rows.
 */
static void fill_superblocks(struct bed *bed, unsigned int count,
                             unsigned int rows, unsigned int one,
                             unsigned int other)
{
    for (unsigned int i = 0; i < count; i++) {
        for (unsigned int row = 0; row < rows; row++) {
            write_durably(bed, row == one     ? 2 * i
                               : row == other ? 2 * i + 1
                                              : 18);
        }
    }
}

static void test_a_superblock_with_a_row_in_flight_is_not_erased(void **state)
{
    struct bed *bed = bed_new(&tight);
    struct bed_io *late;

    (void)state;
    fill_superblocks(bed, 3, 8, 0, 2); /* die 0 */
    for (unsigned int row = 0; row < 7; row++) {
        write_durably(bed, 18);
    }
    bed->held_dies = 2;
    late = bed_submit_write(bed, 18 * 8, 8, true); /* the superblock's end */
    bed_settle(bed);
    (void)bed_submit_write(bed, 17 * 8, 8, true); /* the next superblock */
    bed_settle(bed);
    bed->held_dies = 0;
    assert_int_equal(bed_wait(bed, late), MEDIA_OK);
    bed_settle(bed);
    assert_true(ftl_counters(bed->ftl)->erasures != 0);
    bed_check(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/*
 * The oldest of two or three rows of a unit is the last one to complete, and
 * garbage collection moves what the unit had before all of them.  Superblocks
 * have six rows of data and two of parity.
 */
static void test_older_contents_complete_after_newer_ones(void **state)
{
    (void)state;
    for (unsigned int newer = 1; newer <= 2; newer++) {
        struct bed_config config = tight;
        struct bed *bed;

        config.geometry.dies = 4;
        config.geometry.wordlines = 2;
        config.geometry.blocks = 10;
        bed = bed_new(&config);
        bed->ftl->more_free = 0; /* Garbage collection begins later. */
        fill_superblocks(bed, 4, 6, 0, 2); /* dies 1, 3 */
        for (unsigned int row = 0; row < 5; row++) {
            write_durably(bed, 18);
        }
        bed->held_dies = 1;
        (void)bed_submit_write(bed, 0, 8, true); /* die 0 */
        bed_settle(bed);
        (void)bed_submit_write(bed, 18 * 8, 8, true); /* die 1 */
        bed_settle(bed);
        bed->held_dies = newer == 1 ? 1 : 5;
        for (unsigned int i = 0; i < newer; i++) {
            (void)bed_submit_write(bed, 0, 8, true); /* dies 2, 3 */
            assert_true(bed_step(bed));
        }
        bed_settle(bed);
        assert_int_equal(ftl_counters(bed->ftl)->erasures, 1);
        bed->held_dies = 0;
        bed_wait_all(bed);
        bed_settle(bed);
        bed_check(bed);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

static void test_bad_planes_are_left_out(void **state)
{
    struct bed_config config = small;
    struct bed *bed;
    unsigned int bad = 0;

    (void)state;
    config.logical_units = 100;
    config.geometry.blocks = 200;
    config.seed = 5;
    bed = bed_new(&config);
    for (unsigned int i = 0; i < 400; i++) {
        bad += bed->bad_planes[i] != 0;
    }
    assert_in_range(bad, 2, 60);
    overwrite_medium(bed, 1500, 3);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_row_that_fails_is_programmed_again(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 60; after += 7) {
        struct nand_injection failure =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, after);
        struct bed *bed = bed_new(&small);

        inject_fault(bed, &failure);
        overwrite_medium(bed, 120, after);
        assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

static void test_a_die_gets_a_second_row_only_if_it_queues_rows(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_config config = small;
        struct bed *bed;

        config.queues_rows = i == 1;
        bed = bed_new(&config);
        overwrite_medium(bed, 400, 1);
        assert_true((bed->queued_programs > 0) == config.queues_rows);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* The second row has not begun, and its units go into another one. */
static void test_a_row_is_queued_while_the_one_before_it_fails(void **state)
{
    uint64_t aborted = 0;

    (void)state;
    for (uint32_t after = 0; after < 60; after++) {
        struct nand_injection failure =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, after);
        struct bed_config config = small;
        struct bed *bed;

        config.queues_rows = true;
        bed = bed_new(&config);
        inject_fault(bed, &failure);
        overwrite_medium(bed, 120, after);
        assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
        aborted += bed->aborted_programs;
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
    assert_true(aborted > 10);
}

/* The one before it was not transferred, is held, and is programmed later. */
static void test_a_row_is_queued_while_the_one_before_it_is_held(void **state)
{
    uint64_t aborted = 0;

    (void)state;
    for (uint32_t after = 1; after < 60; after++) {
        struct bed_config config = small;
        struct bed *bed;

        config.queues_rows = true;
        bed = bed_new(&config);
        bed->changes_until_error = after;
        overwrite_medium(bed, 120, after);
        aborted += bed->aborted_programs;
        bed_check(bed);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
    assert_true(aborted > 10);
}

static void test_a_plane_whose_erasure_fails_is_left_out(void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_ERASE, NAND_EFFECT_FAIL, 9);
    struct bed *bed = bed_new(&small);

    (void)state;
    inject_fault(bed, &failure);
    overwrite_medium(bed, 1000, 4);
    assert_int_equal(ftl_counters(bed->ftl)->erase_errors, 1);
    bed_check(bed);
    bed_free(bed);
}

/*
 * A plane of one block fails when it is erased, one of another block when it is
 * programmed.  Erasures of the former fail at every start, if they are tried.
 */
static void test_planes_that_failed_are_known_after_restarts(void **state)
{
    struct nand_injection erase =
        fault_once(NAND_OP_ERASE, NAND_EFFECT_FAIL, 9);
    struct nand_injection program =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 300);
    struct bed *bed = bed_new(&small);
    uint32_t planes = 0;

    (void)state;
    inject_fault(bed, &erase);
    inject_fault(bed, &program);
    overwrite_medium(bed, 1000, 4);
    assert_int_equal(ftl_counters(bed->ftl)->erase_errors, 1);
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    for (unsigned int start = 0; start < 3; start++) {
        bed_mount(bed);
        bed_check(bed);
        planes = ftl_failed_planes(bed->ftl);
        assert_int_equal(planes, 2);
        overwrite_medium(bed, 600, start);
        assert_int_equal(ftl_counters(bed->ftl)->erase_errors, 0);
    }
    bed_free(bed);
}

static struct bed_config checkpoint_config(void)
{
    struct bed_config config = small;

    config.geometry.blocks = 40;
    config.geometry.dies = 4;
    config.logical_units = 600;
    config.checkpoint_superblocks = 4;
    return config;
}

static void test_a_start_after_a_stop_reads_the_checkpoint_only(void **state)
{
    struct bed_config config = checkpoint_config();
    struct bed *bed = bed_new(&config);

    (void)state;
    for (unsigned int start = 0; start < 4; start++) {
        overwrite_medium(bed, 400, start);
        bed_stop(bed); /* and the power goes off */
        bed_mount(bed);
        assert_int_equal(ftl_counters(bed->ftl)->scanned_rows, 0);
        assert_int_equal(ftl_counters(bed->ftl)->rows, 0);
        bed_check(bed);
    }
    bed_free(bed);
}

static void test_a_start_after_a_cut_reads_younger_superblocks_only(
    void **state)
{
    struct bed_config config = checkpoint_config();
    uint32_t rows = 4 * 4; /* of a superblock */
    struct bed *bed = bed_new(&config);
    uint64_t written = 0;

    (void)state;
    for (unsigned int start = 0; start < 6; start++) {
        struct bed *cut;

        overwrite_medium(bed, 300, start);
        written += ftl_counters(bed->ftl)->checkpoints;
        cut = bed_cut(bed, start);
        bed_free(bed);
        bed = cut;
        bed_mount(bed);
        /* Four superblocks, two that were open, one that was being opened. */
        assert_in_range(ftl_counters(bed->ftl)->scanned_rows, 1, 7 * rows);
        bed_check(bed);
    }
    assert_true(written > 12);
    bed_free(bed);
}

/* Superblocks of eight rows of four units.  One plane is bad in all of them, so
 * they have the least capacity that a superblock in use may have. */
static struct bed_config config_with_large_map(uint32_t logical_units)
{
    return (struct bed_config){
        .profile = "slc",
        .geometry = {.channels = 1,
                     .dies = 1,
                     .planes = 4,
                     .units = 1,
                     .pages = 1,
                     .blocks = 1600,
                     .wordlines = 8},
        .forbidden_planes = 4,
        .logical_units = logical_units,
        .buffer_units = 24,
        .checkpoint_superblocks = 4,
        .seed = 1,
    };
}

static bool does_map_fit(uint32_t logical_units)
{
    const struct ftl_config config = {
        .geometry =
            {
                .dies = 1,
                .planes = 4,
                .pages = 1,
                .units = 1,
                .blocks = 1600,
                .wordlines = 8,
            },
        .logical_units = logical_units,
    };

    return ftl_checkpoint_fits(&config);
}

/* The largest map of which the checkpoint fits, and one that has a piece more.
 */
static void test_a_map_fits_if_the_smallest_superblock_holds_its_checkpoint(
    void **state)
{
    uint32_t most = 1024;

    (void)state;
    while (does_map_fit(most + 1)) {
        most++;
    }
    for (unsigned int i = 0; i < 2; i++) {
        struct bed_config config = config_with_large_map(most + i);
        struct bed *bed = bed_new(&config);
        bool fits = does_map_fit(config.logical_units);

        overwrite_medium(bed, 200, 1);
        assert_int_equal(ftl_counters(bed->ftl)->checkpoints != 0, fits);
        bed_stop(bed);
        bed_mount(bed);
        assert_int_equal(ftl_counters(bed->ftl)->scanned_rows == 0, fits);
        bed_check(bed);
        assert_int_equal(fits, i == 0);
        bed_free(bed);
    }
}

/* Rows of checkpoints fail.  The one before, or everything, is read then. */
static void test_a_checkpoint_that_fails_is_not_used(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 16; after += 3) {
        struct nand_injection failure =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, after);
        struct bed_config config = checkpoint_config();
        struct bed *bed = bed_new(&config);
        uint64_t checkpoints;

        overwrite_medium(bed, 200, after);
        checkpoints = ftl_counters(bed->ftl)->checkpoints;
        inject_fault(bed, &failure);
        bed_stop(bed);
        assert_in_range(ftl_counters(bed->ftl)->checkpoints, checkpoints,
                        checkpoints + 1);
        bed_settle(bed);
        bed_mount(bed);
        bed_check(bed);
        overwrite_medium(bed, 200, after);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* Otherwise a start after this would have to read everything. */
static void test_a_checkpoint_that_fails_leaves_the_one_before(void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
    struct bed_config config = checkpoint_config();
    struct bed *bed = bed_new(&config);
    uint64_t row, checkpoints;

    (void)state;
    overwrite_medium(bed, 200, 1);
    bed_stop(bed);
    bed_write(bed, 0, 8);
    bed_flush(bed);
    row = bed->ftl->checkpoint.row;
    checkpoints = ftl_counters(bed->ftl)->checkpoints;
    ftl_stop(bed->ftl);
    while (bed->ftl->checkpoint.state != FTL_CHECKPOINT_WRITING) {
        assert_true(bed_step(bed));
    }
    inject_fault(bed, &failure);
    while (!ftl_is_stopped(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    assert_int_equal(ftl_counters(bed->ftl)->checkpoints, checkpoints);
    bed_mount(bed);
    assert_int_equal(bed->ftl->mount.checkpoint_row, row);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_unit_that_cannot_be_read_is_an_error(void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    struct bed *bed = bed_new(&small);

    (void)state;
    bed_write(bed, 8, 8);
    bed_flush(bed);
    inject_fault(bed, &failure);
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, 8, 1)),
                     MEDIA_READ_ERROR);
    assert_int_equal(bed_wait(bed, bed_submit_read(bed, 8, 1)), MEDIA_OK);
    /* A write of a part of it must not make up the rest. */
    inject_fault(bed, &failure);
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, 9, 1, false)),
                     MEDIA_WRITE_ERROR);
    bed_free(bed);
}

static void test_a_trim_longer_than_one_step_ends(void **state)
{
    struct bed_config config = small;
    struct bed *bed;

    (void)state;
    config.geometry.blocks = 200;
    config.logical_units = 5000;
    config.geometry.wordlines = 6;
    bed = bed_new(&config);
    bed_trim(bed, 0, 5000 * 8); /* nothing else is to be done */
    bed_free(bed);
}

/* Write until a write or a flush fails. @return how it fails */
static enum media_status write_until_refused(struct bed *bed)
{
    enum media_status status = MEDIA_OK;
    uint64_t random = 1;

    for (uint32_t i = 0; status == MEDIA_OK; i++) {
        assert_true(i < 9000);
        status = bed_wait(
            bed, bed_submit_write(bed, random_next(&random) % bed->units * 8, 8,
                                  i % 3 == 2));
    }
    return status;
}

static void check_read_only(struct bed *bed)
{
    assert_true(ftl_is_read_only(bed->ftl));
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, 8, 8, false)),
                     MEDIA_READ_ONLY);
    assert_int_equal(
        bed_wait(bed, bed_submit_trim(bed, MEDIA_DEALLOCATE, 8, 8, false)),
        MEDIA_READ_ONLY);
    bed_flush(bed);
    bed_settle(bed);
}

/*
 * All erasures fail from some time on, or one of so many.  The drive ends its
 * life with all data: those in its buffer, too.
 */
static void test_a_medium_whose_erasures_fail_becomes_read_only(void **state)
{
    static const struct {
        uint8_t dies;
        uint32_t every;
    } cases[] = {{1, 0}, {2, 0}, {1, 3}, {2, 3}, {4, 5}};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(cases); i++) {
        struct nand_injection failure =
            fault_once(NAND_OP_ERASE, NAND_EFFECT_FAIL, 0);
        struct bed_config config = small;
        struct bed *bed;

        config.geometry.dies = cases[i].dies;
        config.geometry.wordlines = 8;
        bed = bed_new(&config);
        failure.trigger.times = 0;
        failure.trigger.every = cases[i].every;
        inject_fault(bed, &failure);
        for (uint32_t unit = 0; unit < bed->units; unit++) {
            bed_write(bed, unit * 8, 8);
        }
        assert_int_equal(write_until_refused(bed), MEDIA_READ_ONLY);
        check_read_only(bed);
        bed_check(bed);
        for (unsigned int start = 0; start < 3; start++) {
            bed_mount(bed);
            assert_true(ftl_is_read_only(bed->ftl));
            bed_check(bed);
            check_read_only(bed);
            bed_check(bed);
        }
        bed_free(bed);
    }
}

/*
 * Garbage collection cannot read what it is to move.  So the medium becomes
 * full, until trims make all of it invalid.
 */
static void test_trims_make_space_on_a_full_medium(void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    struct bed *bed = bed_new(&small);

    (void)state;
    failure.trigger.times = 0;
    inject_fault(bed, &failure);
    assert_int_equal(write_until_refused(bed), MEDIA_WRITE_ERROR);
    nand_array_clear_injections(bed->array);
    assert_int_equal(bed_wait(bed, bed_submit_write(bed, 0, 8, false)),
                     MEDIA_WRITE_ERROR);
    assert_int_equal(bed_wait(bed, bed_submit_trim(bed, MEDIA_WRITE_ZEROES, 0,
                                                   150 * 8, true)),
                     MEDIA_OK);
    bed_check(bed);
    bed->is_unknown = false;
    overwrite_medium(bed, 600, 1);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/* One failure to read a unit does not keep a superblock from being erased. */
static void test_units_that_could_not_be_read_once_are_moved_later(void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE, 0);
    struct bed *bed = bed_new(&small);
    uint64_t random = 3;

    (void)state;
    failure.trigger.every = 5;
    failure.trigger.times = 25;
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, unit * 8, 8);
    }
    inject_fault(bed, &failure);
    for (uint32_t i = 0; i < 3000; i++) {
        bed_write(bed, random_next(&random) % bed->units * 8, 8);
        if (i % 20 == 0) {
            bed_flush(bed);
        }
    }
    nand_array_clear_injections(bed->array);
    assert_in_range(ftl_counters(bed->ftl)->read_errors, 10, 25);
    bed_check(bed);
    bed_free(bed);
}

/*
 * A trim page fails while a newer one waits.  The superblock in which the trim
 * made a unit invalid must wait for the newer page: otherwise the contents that
 * the unit had before come back after a power cut.
 */
static void test_a_trim_whose_page_fails_keeps_what_it_trims(void **state)
{
    static const uint32_t writes[] = {
        0, 1, 2,  18, 18, 18, 18, 18, /* the older contents of unit 0 */
        0, 3, 3,  3,  3,  3,  3,  18, /* the newer ones */
        3, 4, 17, 18, 18, 18, 18, 18, /* */
        5, 6, 18, 18, 18, 18,
    };
    struct nand_injection failure =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
    struct bed *bed = bed_new(&tight);
    struct bed *cut;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(writes); i++) {
        write_durably(bed, writes[i]);
    }
    inject_fault(bed, &failure);
    bed->held_dies = 1;
    (void)bed_submit_trim(bed, MEDIA_DEALLOCATE, 0, 8, true);
    bed_settle(bed);
    (void)bed_submit_trim(bed, MEDIA_DEALLOCATE, 17 * 8, 8, false);
    bed_settle(bed);
    bed->held_dies = 2;
    bed_settle(bed);
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    for (uint32_t unit = 15; unit <= 16; unit++) {
        (void)bed_submit_write(bed, unit * 8, 8, true);
        bed_settle(bed);
    }
    assert_int_equal(ftl_free_superblocks(bed->ftl), 4);
    cut = bed_cut(bed, 1);
    bed_mount(cut);
    bed_check(cut);
    bed_free(cut);
    bed->held_dies = 0;
    bed_wait_all(bed);
    bed_check(bed);
    bed_free(bed);
}

/*
 * The streams do not wait for a die that their superblocks leave out.  A mount
 * must still find the row in flight there among the last ones.
 */
static void test_few_rows_are_started_after_one_in_flight(void **state)
{
    struct bed_config config = small;
    struct bed_io *io;
    struct bed *bed;
    uint64_t programs;

    (void)state;
    config.geometry.dies = 8;
    config.geometry.wordlines = 2;
    config.geometry.blocks = 40;
    config.logical_units = 300;
    config.last_die_blocks = 1;
    bed = bed_new(&config);
    for (unsigned int row = 0; row < 12; row++) {
        write_durably(bed, row);
    }
    bed->held_dies = 0x80;
    (void)bed_submit_write(bed, 0, 8, true); /* the end of superblock 0 */
    bed_settle(bed);
    programs = bed->programs;
    for (uint32_t i = 0; i < 30; i++) {
        io = bed_submit_write(bed, (8 * (uint64_t)i + 16) * 8, 64, false);
        bed_settle(bed);
        if (!io->is_done) {
            break;
        }
    }
    assert_in_range(bed->programs - programs, 1, 32);
    bed->held_dies = 0;
    bed_wait_all(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_trims_of_more_than_one_page_are_there_after_a_restart(
    void **state)
{
    struct bed_config config = tlc;
    uint32_t second = 32768; /* the first unit of the second page */
    struct bed *bed;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.blocks = 30;
    config.geometry.wordlines = 16;
    config.logical_units = second + 100;
    bed = bed_new(&config);
    for (uint32_t i = 0; i < 4; i++) {
        bed_write(bed, (second - 2 + i) * 8, 8);
        bed_write(bed, (second + 50 + i) * 8, 8);
    }
    bed_flush(bed);
    bed_trim(bed, (second - 1) * 8, 2 * 8);
    bed_trim(bed, (second + 51) * 8, 2 * 8);
    bed_flush(bed);
    assert_int_equal(ftl_counters(bed->ftl)->map_pages, 2);
    bed_settle(bed);
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

/* The array of another drive, by a mistake with files. */
static void mount_with_other_capacity(bool has_checkpoint, int difference)
{
    struct bed_config config = tlc;
    struct bed *bed;

    config.logical_units = 300;
    config.estimates_capacity = true;
    config.checkpoint_superblocks = has_checkpoint ? 4 : 0;
    bed = bed_new(&config);
    bed_write(bed, 0, 64);
    bed_trim(bed, 8, 8);
    bed_flush(bed);
    if (has_checkpoint) {
        bed_stop(bed);
    }
    bed_settle(bed);
    bed->config.logical_units = (uint32_t)(300 + difference);
    bed->units = bed->config.logical_units;
    bed_start_mount(bed);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    bed_settle(bed);
    assert_int_equal(ftl_state(bed->ftl), FTL_FAILED);
    assert_int_equal(ftl_failure(bed->ftl), FTL_FAILURE_CAPACITY);

    bed->config.logical_units = 300;
    bed->units = 300;
    bed_mount(bed);
    bed_check(bed);
    bed_free(bed);
}

static void test_a_policy_that_does_not_exist_is_refused(void **state)
{
    struct bed *bed = bed_new(&bed_small);
    struct ftl_config config = bed->ftl->config;

    (void)state;
    assert_true(ftl_bytes(&config) != 0);
    config.victims = "greedy";
    config.levelling = "never";
    assert_true(ftl_bytes(&config) != 0);
    config.victims = "best";
    assert_true(ftl_bytes(&config) == 0);
    config.victims = NULL;
    config.levelling = "always";
    assert_true(ftl_bytes(&config) == 0);
    config.levelling = NULL;
    config.streams = "by-cause";
    assert_true(ftl_bytes(&config) != 0);
    config.streams = "by-day";
    assert_true(ftl_bytes(&config) == 0);
    bed_free(bed);
}

static void test_an_array_with_another_capacity_is_refused(void **state)
{
    (void)state;
    for (int has_checkpoint = 0; has_checkpoint < 2; has_checkpoint++) {
        mount_with_other_capacity(has_checkpoint != 0, -1);
        mount_with_other_capacity(has_checkpoint != 0, 1);
        mount_with_other_capacity(has_checkpoint != 0, -200);
    }
}

static void test_bits_of_planes_that_do_not_exist_are_ignored(void **state)
{
    uint8_t bad_planes[40];
    struct ftl_config config = {
        .geometry = {.dies = 2,
                     .planes = 2,
                     .pages = 1,
                     .units = 1,
                     .blocks = 20,
                     .wordlines = 4},
        .bad_planes = bad_planes,
    };
    uint32_t units;

    (void)state;
    memset(bad_planes, 0, sizeof(bad_planes));
    units = ftl_most_units(&config);
    assert_int_not_equal(units, 0);
    memset(bad_planes, 0x04, sizeof(bad_planes));
    assert_int_equal(ftl_most_units(&config), units);
}
