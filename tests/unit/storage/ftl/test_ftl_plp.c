/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power-loss protection of the translation layer.  A workload is run again and
 * again; each time the power fails after another event.  If the buffer was
 * saved, no operation that has ended may be lost.  If the capacitors fail while
 * the buffer is saved, nothing that was durable may be lost.
 *
 * FTL_FIRST, FTL_SEEDS, FTL_OPS, FTL_STRIDE and FTL_MOUNT_STRIDE: see
 * test_ftl_power.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

struct sweep {
    unsigned int stride;       /* the power fails at each of so many events */
    unsigned int cut_stride;   /* capacitors fail at each of so many events */
    unsigned int mount_stride; /* the next mount is cut at each of so many
                                * events */
    bool with_failures;        /* some programs fail */
    bool is_filled;            /* all units are written first */
    bool with_death;           /* each die is dead at the next start */
    uint64_t fails, cuts, mounts;
    uint64_t fail_at; /* event of the workload */
    uint32_t start;   /* number of the start whose buffer was saved */
    jmp_buf end;      /* of the workload */
};

static void end_at_event(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->events == sweep->fail_at) {
        longjmp(sweep->end, 1);
    }
}

/* The power has gone off before the buffer was saved. */
static void check_unsaved(struct sweep *sweep, const struct bed *bed)
{
    struct bed *cut = bed_cut(bed, bed->events);

    bed_mount(cut);
    bed_check(cut);
    bed_free(cut);
    sweep->cuts++;
}

/* The power was off, and a die is dead at the next start. */
static void mount_without_die(const struct sweep *sweep, const struct bed *bed,
                              uint32_t die)
{
    struct bed *cut = bed_cut_saved(bed, bed->events);

    cut->changes_dead_dies = true;
    cut->dead_dies = (uint8_t)BIT(die);
    bed_mount(cut);
    assert_int_equal(ftl_dead_dies(cut->ftl), 1);
    assert_true(ftl_was_saved(cut->ftl, sweep->start));
    bed_check(cut);
    bed_free(cut);
}

static void mount_without_each_die(const struct sweep *sweep,
                                   const struct bed *bed)
{
    for (uint32_t i = 0; sweep->with_death && i < bed->config.geometry.dies;
         i++) {
        mount_without_die(sweep, bed, i);
    }
}

/* The mount after a saved buffer is cut: the next one still knows that. */
static void cut_mount(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->events % sweep->mount_stride == 0) {
        struct bed *cut = bed_cut_saved(bed, bed->events);

        bed_mount(cut);
        assert_true(ftl_was_saved(cut->ftl, sweep->start));
        bed_check(cut);
        bed_free(cut);
        mount_without_each_die(sweep, bed);
        sweep->mounts++;
    }
}

/* Save the buffer, and mount what is on flash then. */
static void save_and_check(struct sweep *sweep, struct bed *bed)
{
    struct bed *cut;

    bed->after_event = NULL;
    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        assert_true(bed_step(bed));
        if (sweep->cut_stride != 0 && bed->events % sweep->cut_stride == 0) {
            check_unsaved(sweep, bed);
        }
    }
    sweep->start = bed->boot;
    mount_without_each_die(sweep, bed);
    cut = bed_cut_saved(bed, bed->events);
    cut->ctx = sweep;
    cut->after_event = sweep->mount_stride != 0 ? cut_mount : NULL;
    bed_mount(cut);
    cut->after_event = NULL;
    assert_true(ftl_was_saved(cut->ftl, sweep->start));
    bed_check(cut);
    bed_use(cut, sweep->fail_at, 6);
    bed_wait_all(cut);
    bed_flush(cut);
    bed_check(cut);
    bed_free(cut);
    sweep->fails++;
}

/* @return whether the power has failed before the end of the workload */
static bool run_workload(struct sweep *sweep, const struct bed_config *config,
                         unsigned int ops)
{
    struct bed *volatile bed = bed_new(config);
    bool has_failed;

    for (uint32_t i = 0; sweep->is_filled && i < 4 * bed->units; i++) {
        bed_write(bed, i % bed->units * BED_SECTORS, BED_SECTORS);
    }
    bed_use(bed, config->seed, 60);
    bed_wait_all(bed);
    bed_flush(bed);
    if (sweep->with_failures) {
        fail_operations(bed, NAND_OP_PROGRAM, 0, 29);
    }
    bed->events = 0;
    bed->ctx = sweep;
    bed->after_event = end_at_event;
    has_failed = setjmp(sweep->end) != 0;
    if (!has_failed) {
        bed_use(bed, ~config->seed, ops);
        bed_wait_all(bed);
    }
    save_and_check(sweep, bed);
    bed_free(bed);
    return has_failed;
}

static void sweep_seeds(struct sweep *sweep, const struct bed_config *base,
                        const char *what)
{
    unsigned long first = bed_setting("FTL_FIRST", 1);

    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        struct bed_config config = *base;

        config.seed = first + i;
        config.queues_rows = i % 2 == 1;
        sweep->fail_at = 1;
        while (run_workload(sweep, &config,
                            (unsigned int)bed_setting("FTL_OPS", 24))) {
            sweep->fail_at += sweep->stride;
        }
    }
    print_message("%s: %lu power failures, %lu cuts while the buffer was "
                  "saved, %lu during the mount\n",
                  what, (unsigned long)sweep->fails, (unsigned long)sweep->cuts,
                  (unsigned long)sweep->mounts);
    assert_true(sweep->fails > 5);
}

static void test_a_saved_buffer_loses_no_operation_that_has_ended(void **state)
{
    struct sweep sweep = {.stride = (unsigned int)bed_setting("FTL_STRIDE", 3)};

    (void)state;
    sweep_seeds(&sweep, &bed_small, "saved");
}

static void test_capacitors_that_fail_lose_nothing_durable(void **state)
{
    struct sweep sweep = {
        .stride = 3 * (unsigned int)bed_setting("FTL_STRIDE", 7),
        .cut_stride = 1,
    };

    (void)state;
    sweep_seeds(&sweep, &bed_small, "failing capacitors");
    assert_true(sweep.cuts > 20);
}

static void test_a_saved_buffer_is_still_known_after_cut_mounts(void **state)
{
    struct sweep sweep = {
        .stride = 3 * (unsigned int)bed_setting("FTL_STRIDE", 7),
        .mount_stride = (unsigned int)bed_setting("FTL_MOUNT_STRIDE", 11),
    };

    (void)state;
    sweep_seeds(&sweep, &bed_small, "cut mounts");
    assert_true(sweep.mounts > 20);
}

static void test_programs_that_fail_while_the_buffer_is_saved(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .with_failures = true,
    };

    (void)state;
    sweep_seeds(&sweep, &bed_small, "failed programs");
}

static void test_writes_that_follow_at_once_are_saved(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 3),
    };
    struct bed_config config = bed_small;

    (void)state;
    config.chain = 6;
    sweep_seeds(&sweep, &config, "writes that follow at once");
}

static void test_metadata_and_marks_are_saved(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .cut_stride = 7,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.has_metadata = true;
    config.has_marks = true;
    sweep_seeds(&sweep, &config, "metadata and marks");
}

static void test_stripes_with_parity_are_saved(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .cut_stride = 7,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 3;
    config.geometry.wordlines = 4;
    config.checkpoint_superblocks = 2;
    sweep_seeds(&sweep, &config, "parity and checkpoints");
}

/* What was saved is in complete stripes, so it survives the death of a die. */
static void test_a_saved_buffer_survives_a_die_that_is_dead_afterwards(
    void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .with_death = true,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 4;
    sweep_seeds(&sweep, &config, "a die that is dead afterwards");
    config.checkpoint_superblocks = 2;
    sweep_seeds(&sweep, &config, "with checkpoints");
}

/* So are the stripes of every stream of what is moved. */
static void test_three_streams_survive_a_die_that_is_dead_afterwards(
    void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .with_death = true,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 4;
    config.streams = "by-cause";
    config.wear_spread = 1;
    sweep_seeds(&sweep, &config, "three streams");
}

/* The power fails after so many writes. */
static void save_without_a_die(uint32_t writes)
{
    struct sweep sweep = {0};
    struct bed_config config = bed_small;
    uint64_t random = writes;
    struct bed *bed;

    config.geometry.dies = 6;
    config.logical_units = 150;
    bed = bed_new(&config);
    for (uint32_t i = 0; i < bed->ftl->layout.superblocks; i++) {
        ftl_health_note_failure(&bed->ftl->space_floor, i, 2, 0xf);
    }
    for (uint32_t i = 0; i < writes; i++) {
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
    }
    save_and_check(&sweep, bed);
    bed_free(bed);
}

/* A die of the superblock takes no data, because all its planes have failed.
 * It may be the last one of a stripe. */
static void test_a_stripe_is_complete_without_a_die_that_takes_no_data(
    void **state)
{
    /* After 1511 writes, garbage collection is at such a stripe. */
    static const uint32_t writes[] = {4, 278, 1511};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(writes); i++) {
        save_without_a_die(writes[i]);
    }
}

/* This is also true if the mount before was cut.  It erases what may be torn
 * only when the stripes of its copies are complete. */
static void test_a_saved_buffer_survives_a_cut_mount_and_a_dead_die(
    void **state)
{
    struct sweep sweep = {
        .stride = 3 * (unsigned int)bed_setting("FTL_STRIDE", 7),
        .mount_stride = 5 * (unsigned int)bed_setting("FTL_MOUNT_STRIDE", 11),
        .with_death = true,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 4;
    sweep_seeds(&sweep, &config, "a cut mount and a dead die");
}

/* All superblocks are in use, except for those that are kept free. */
static void test_a_full_flash_has_space_for_the_buffer(void **state)
{
    struct sweep sweep = {.stride =
                              5 * (unsigned int)bed_setting("FTL_STRIDE", 7)};
    struct bed_config config = bed_small;

    (void)state;
    config.logical_units = 0;
    config.torn_units_vary = false;
    config.buffer_units = 24;
    config.geometry.wordlines = 4;
    config.geometry.blocks = 14;
    sweep.is_filled = true;
    sweep_seeds(&sweep, &config, "full flash");
}

/* End the workload when the buffer is full and few superblocks are free. */
static void end_when_full(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->ftl->free_superblocks <= FTL_URGENT_LEAVES_FREE &&
        bed->ftl->buffer.dirty[FTL_POOL_HOST].count >=
            bed->config.buffer_units) {
        longjmp(sweep->end, 1);
    }
}

static void overwrite_at_random(struct bed *bed, uint64_t seed)
{
    for (unsigned int i = 0; i < 4000; i++) {
        uint64_t unit = random_next(&seed) % (bed->units - 8);

        (void)bed_submit_write(bed, unit * BED_SECTORS, 64, false);
        if (i % 50 == 49) {
            bed_flush(bed);
        }
    }
}

/* The power fails at the worst time. */
static void save_full_buffer(const struct bed_config *config)
{
    struct bed *volatile bed = bed_new(config);
    struct sweep sweep = {.fail_at = config->seed};

    for (uint32_t i = 0; i < 2 * bed->units; i++) {
        bed_write(bed, i % bed->units * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
    bed->ftl->more_free = 0; /* as in a full medium */
    bed->ctx = &sweep;
    bed->after_event = end_when_full;
    if (setjmp(sweep.end) == 0) {
        overwrite_at_random(bed, config->seed);
        fail_msg("The buffer was never full.");
    }
    save_and_check(&sweep, bed);
    bed_free(bed);
}

/* What ftl_most_saved_units() says of an array. */
static uint32_t most_saved_units(const struct nand_geometry *geometry)
{
    const struct ftl_config config = {
        .geometry =
            {
                .dies = geometry->dies,
                .planes = geometry->planes,
                .pages = geometry->pages,
                .units = geometry->units,
                .blocks = geometry->blocks,
                .wordlines = geometry->wordlines,
            },
    };

    return ftl_most_saved_units(&config);
}

/* With short blocks, the buffer is as large as what can be saved in one
 * superblock a quarter of whose planes has failed. */
static void test_short_blocks_have_space_for_the_buffer(void **state)
{
    struct bed_config config = bed_small;

    (void)state;
    config.logical_units = 0;
    config.torn_units_vary = false;
    config.geometry.blocks = 40;
    for (unsigned int i = 0; i < 9; i++) {
        bool has_large_rows = i % 3 == 0;

        config.seed = 1 + i;
        config.profile = has_large_rows ? "tlc2021" : bed_small.profile;
        config.geometry.units = has_large_rows ? 4 : 1;
        config.geometry.pages = has_large_rows ? 3 : 1;
        config.geometry.dies = i % 3 == 2 ? 4 : 8;
        config.geometry.wordlines = (uint16_t)(1 + i % 3);
        config.buffer_units = (uint16_t)most_saved_units(&config.geometry);
        save_full_buffer(&config);
    }
}

/* In the smallest superblock there is also space for the pages of the buffer,
 * two of each in the map, and for three rows. */
static void test_not_more_is_promised_to_be_saved_than_fits(void **state)
{
    /* Of rows of 48 units, with one die of parity. */
    const struct nand_geometry short_blocks = {.channels = 1,
                                               .dies = 8,
                                               .planes = 4,
                                               .units = 4,
                                               .pages = 3,
                                               .blocks = 200,
                                               .wordlines = 1};
    /* Of rows of four units. */
    const struct nand_geometry few_units = {.channels = 1,
                                            .dies = 1,
                                            .planes = 4,
                                            .units = 1,
                                            .pages = 1,
                                            .blocks = 200,
                                            .wordlines = 8};

    (void)state;
    /* The map has three trim pages, one health page and one wear page. */
    assert_int_equal(most_saved_units(&short_blocks),
                     7 * 48 * 3 / 4 - 2 * 5 - 3 * 48);
    /* One of each.  This is less than two rows, so there is no such buffer. */
    assert_int_equal(most_saved_units(&few_units), 8 * 4 * 3 / 4 - 2 * 3 - 12);
}

/* ---- What a mount knows of the last loss of power. */

static struct bed *new_bed(uint64_t seed)
{
    struct bed_config config = bed_small;

    config.checkpoint_superblocks = 8;
    return bed_new_seeded(&config, seed);
}

/* Whether the next start finds that the buffer of this one was saved.  The seed
 * decides which units of rows that have failed can be read. */
static bool was_saved_after(const struct bed *bed, uint64_t seed)
{
    struct bed *cut = bed_cut(bed, seed);
    bool was_saved;

    bed_mount(cut);
    was_saved = ftl_was_saved(cut->ftl, bed->boot);
    bed_free(cut);
    return was_saved;
}

static bool was_saved_after_cut(const struct bed *bed)
{
    return was_saved_after(bed, 1);
}

/* A host may have written something that was not programmed. */
static void test_a_new_flash_does_not_count_as_saved(void **state)
{
    struct bed *bed = new_bed(1);

    (void)state;
    bed_write(bed, 0, 8);
    assert_int_equal(ftl_counters(bed->ftl)->rows, 0);
    assert_false(was_saved_after_cut(bed));
    bed_free(bed);
}

static void test_rows_without_a_marker_are_noticed(void **state)
{
    struct bed *bed = new_bed(2);

    (void)state;
    bed_write(bed, 0, 64);
    bed_flush(bed);
    assert_false(was_saved_after_cut(bed));
    bed_stop(bed);
    assert_true(was_saved_after_cut(bed));
    bed_free(bed);
}

static void test_a_marker_counts_until_something_is_written(void **state)
{
    struct bed *bed = new_bed(3), *cut;
    uint32_t start;

    (void)state;
    bed_write(bed, 0, 64);
    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    start = bed->boot;
    cut = bed_cut_saved(bed, 1);
    bed_free(bed);
    for (unsigned int i = 0; i < 5; i++) {
        bed = bed_cut_saved(cut, i);
        bed_free(cut);
        bed_mount(bed);
        assert_true(ftl_was_saved(bed->ftl, start));
        assert_false(ftl_was_saved(bed->ftl, start + 1));
        bed_check(bed);
        assert_false(ftl_is_read_only(bed->ftl));
        cut = bed;
    }
    /* A host uses this start.  No row is newer than the marker yet. */
    bed_write(cut, 0, 8);
    assert_false(was_saved_after_cut(cut));
    bed_flush(cut);
    assert_false(was_saved_after_cut(cut));
    bed_free(cut);
}

/* Write until there is a checkpoint. */
static void write_checkpoint(struct bed *bed)
{
    while (ftl_counters(bed->ftl)->checkpoints == 0) {
        bed_write(bed, 0, 64);
        bed_flush(bed);
        bed_settle(bed);
    }
}

/* A write after a checkpoint is lost, although no row is newer than the
 * checkpoint. */
static void test_a_checkpoint_in_operation_does_not_count_as_saved(void **state)
{
    struct bed *bed = new_bed(12);

    (void)state;
    write_checkpoint(bed);
    assert_true(bed->ftl->next_row_number == bed->ftl->checkpoint.row + 1);
    bed_write(bed, 0, 8);
    assert_false(was_saved_after_cut(bed));
    bed_free(bed);
}

/* What a host has written after the flush is not on flash when the drive
 * stops. */
static void test_a_stop_with_writes_in_the_buffer_does_not_count_as_saved(
    void **state)
{
    struct bed *bed = new_bed(13);

    (void)state;
    bed_write(bed, 0, 64);
    bed_flush(bed);
    bed_write(bed, 0, 8);
    bed_stop(bed);
    assert_int_equal(ftl_counters(bed->ftl)->checkpoints, 1);
    assert_false(was_saved_after_cut(bed));
    bed_free(bed);
}

/* Another program writes to the array while the drive is off, after its power
 * has failed.  It does not change what is known of the drive. */
static void check_other_program(bool was_saved)
{
    struct bed *bed = new_bed(14), *other, *drive;

    write_checkpoint(bed);
    if (was_saved) {
        ftl_power_fails(bed->ftl);
        bed_settle(bed);
        assert_true(ftl_is_saved(bed->ftl));
    }
    other = bed_cut(bed, 1);
    other->is_no_drive = true;
    bed_mount(other);
    bed_write(other, 0, 64);
    bed_flush(other);
    bed_stop(other);
    drive = bed_cut(other, 2);
    bed_mount(drive);
    assert_true(ftl_was_saved(drive->ftl, bed->boot) == was_saved);
    bed_free(drive);
    bed_free(other);
    bed_free(bed);
}

static void test_another_program_does_not_change_whether_it_was_saved(
    void **state)
{
    (void)state;
    check_other_program(true);
    check_other_program(false);
}

static void check_no_spoilt_parity(struct bed *bed)
{
    for (uint32_t i = 0; i < bed->ftl->layout.superblocks; i++) {
        assert_false(bed->ftl->superblocks[i].is_spoilt);
    }
}

/* The numbers of a new drive's starts begin anywhere.  In the parity of the
 * marker's stripe, none of them looks like a word of the sum that was lost. */
static void test_no_number_of_a_start_spoils_the_parity_of_its_marker(
    void **state)
{
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 3;
    for (uint32_t bit = 28; bit < 31; bit++) {
        struct bed *bed = bed_new(&config), *cut;

        bed_stop(bed);
        bed->boot = (UINT32_C(1) << bit) - 1;
        bed_mount(bed);
        bed_write(bed, 0, 8);
        ftl_power_fails(bed->ftl);
        bed_settle(bed);
        assert_true(ftl_is_saved(bed->ftl));
        cut = bed_cut_saved(bed, 1);
        cut->after_event = check_no_spoilt_parity;
        bed_mount(cut);
        assert_true(ftl_was_saved(cut->ftl, bed->boot));
        assert_false(ftl_was_saved(cut->ftl, bed->boot + 1));
        bed_free(cut);
        bed_free(bed);
    }
}

/* A marker whose row fails is programmed again.  Some units of a failed row may
 * be readable; the seed decides which. */
static void check_marker_that_fails(uint64_t seed)
{
    struct bed *bed = new_bed(seed);

    bed_write(bed, 0, 64);
    bed_flush(bed);
    fail_operations(bed, NAND_OP_PROGRAM, 4, 0);
    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    assert_true(ftl_counters(bed->ftl)->program_errors != 0);
    for (uint64_t cut = 0; cut < 8; cut++) {
        assert_true(was_saved_after(bed, cut));
    }
    bed_free(bed);
}

static void test_a_marker_that_fails_is_no_marker(void **state)
{
    (void)state;
    for (uint64_t seed = 5; seed < 15; seed++) {
        check_marker_that_fails(seed);
    }
}

/* Whether the host's stream waits for a superblock, because the only free ones
 * are those that it leaves to garbage collection. */
static bool is_without_space(const struct bed *bed)
{
    const struct ftl *ftl = bed->ftl;

    return ftl->free_superblocks <= FTL_HOST_LEAVES_FREE &&
           ftl->streams[FTL_HOST_STREAM].superblock == FTL_NOWHERE &&
           ftl->buffer.waiting[FTL_POOL_HOST].count >= ftl->layout.row_units;
}

static void test_the_buffer_is_saved_into_superblocks_that_are_kept_free(
    void **state)
{
    struct bed_config config = bed_small;
    uint64_t random = 3;
    struct bed *bed, *cut;
    uint32_t start;

    (void)state;
    config.logical_units = 0;
    config.buffer_units = 24;
    config.geometry.wordlines = 4;
    config.geometry.blocks = 14;
    bed = bed_new(&config);
    for (unsigned int i = 0; !is_without_space(bed); i++) {
        assert_true(i < 100000);
        (void)bed_submit_write(bed,
                               random_next(&random) % bed->units * BED_SECTORS,
                               BED_SECTORS, false);
        (void)bed_step(bed);
    }
    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    cut = bed_cut_saved(bed, 1);
    start = bed->boot;
    bed_free(bed);
    bed_mount(cut);
    assert_true(ftl_was_saved(cut->ftl, start));
    bed_check(cut);
    bed_free(cut);
}

/* Nothing is served, and nothing ends, once the power fails. */
static void test_no_operation_begins_when_the_power_fails(void **state)
{
    struct bed *bed = new_bed(4);
    struct bed_io *io;

    (void)state;
    ftl_power_fails(bed->ftl);
    io = bed_submit_write(bed, 0, 8, false);
    bed_settle(bed);
    assert_true(ftl_is_saved(bed->ftl));
    assert_false(io->is_done);
    bed_free(bed);
}

/*
 * The end of a read that succeeds gives the translation layer no work if it is
 * idle otherwise; the bed reports the end in this way at every other event.
 */
static void test_a_read_in_progress_does_not_keep_the_buffer_from_being_saved(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed *bed = new_bed(6);

        bed_write(bed, 0, 8);
        bed_flush(bed);
        bed_settle(bed);
        bed->events += i;
        (void)bed_submit_read(bed, 0, 8);
        ftl_power_fails(bed->ftl);
        bed_settle(bed);
        assert_true(ftl_is_saved(bed->ftl));
        bed_free(bed);
    }
}

static void test_no_read_begins_when_the_power_fails(void **state)
{
    struct bed *bed = new_bed(7);
    struct bed_io *io;

    (void)state;
    bed_write(bed, 0, 8);
    bed_flush(bed);
    bed_settle(bed);
    ftl_power_fails(bed->ftl);
    io = bed_submit_read(bed, 0, 8);
    bed_settle(bed);
    assert_true(ftl_is_saved(bed->ftl));
    assert_false(io->is_done);
    bed_free(bed);
}

/* Two dies die while the mount reads them; nothing can be programmed then. */
static void test_a_flash_that_cannot_be_mounted_needs_no_power(void **state)
{
    struct bed *bed = new_bed(8);

    (void)state;
    bed_write(bed, 0, 64);
    bed_flush(bed);
    bed_start_mount(bed);
    inject_death(bed, NAND_OP_READ, 0, 0);
    inject_death(bed, NAND_OP_READ, 1, 0);
    bed_settle(bed);
    assert_int_equal(ftl_state(bed->ftl), FTL_FAILED);
    ftl_power_fails(bed->ftl);
    bed_settle(bed);
    assert_true(ftl_is_saved(bed->ftl));
    bed_free(bed);
}

/* ---- A read-only medium without space for a marker. */

/* Program rows until no superblock is free and none takes a row.  Only a
 * read-only medium lets the host's stream take the last superblocks. */
static void use_all_space(struct bed *bed)
{
    bool is_read_only = bed->ftl->is_read_only;

    bed->ftl->is_read_only = true;
    for (unsigned int i = bed->ftl->num_streams; i-- > 0;) {
        while (ftl_row_mark(&bed->ftl->rows_floor, i)) {
            bed->ftl->has_work = true;
            bed_settle(bed);
        }
    }
    bed->ftl->is_read_only = is_read_only;
    assert_int_equal(bed->ftl->free_superblocks, 0);
}

static struct bed *new_read_only(uint64_t seed)
{
    struct bed *bed = new_bed(seed);

    bed_write(bed, 0, 64);
    bed_flush(bed);
    ftl_health_set_read_only(&bed->ftl->space_floor);
    bed_settle(bed);
    use_all_space(bed);
    return bed;
}

/* Some pages with health and wear cannot be written any more. */
static void test_a_read_only_medium_without_space_counts_as_saved(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        struct bed *bed = new_read_only(16), *cut;

        if (i != 0) {
            ftl_health_write(&bed->ftl->space_floor);
            bed->ftl->has_work = true;
            bed_settle(bed);
            assert_int_not_equal(bed->ftl->buffer.dirty[FTL_POOL_TRIM].count,
                                 0);
        }
        ftl_power_fails(bed->ftl);
        bed_settle(bed);
        assert_true(ftl_is_saved(bed->ftl));
        cut = bed_cut(bed, 1);
        bed_mount(cut);
        assert_true(ftl_is_read_only(cut->ftl));
        assert_true(ftl_was_saved(cut->ftl, cut->boot + 1));
        bed_free(cut);
        bed_free(bed);
    }
}

/* What hosts have written is lost, so the buffer is not reported as saved. */
static void test_a_buffer_that_has_no_space_is_not_saved(void **state)
{
    struct bed *bed = new_bed(17);

    (void)state;
    use_all_space(bed);
    bed_write(bed, 0, 8);
    ftl_power_fails(bed->ftl);
    bed_settle(bed);
    assert_false(ftl_is_saved(bed->ftl));
    bed_free(bed);
    bed = new_bed(18);
    bed_write(bed, 0, 8);
    bed_flush(bed);
    use_all_space(bed);
    bed_trim(bed, 0, 8);
    ftl_power_fails(bed->ftl);
    bed_settle(bed);
    assert_false(ftl_is_saved(bed->ftl));
    bed_free(bed);
}

/* ---- Power that fails during a wipe. */

/* The bed takes it for a read. */
static struct bed_io wipe_io;

static struct bed *new_wiping(uint64_t seed)
{
    struct bed *bed = new_bed(seed);

    bed_write(bed, 0, 64);
    bed_flush(bed);
    bed_settle(bed);
    wipe_io = (struct bed_io){.is_used = true, .io.op = MEDIA_READ};
    bed_wipe(bed, &wipe_io);
    return bed;
}

/* The power fails: the next start finds that the capacitors have worked, no
 * write is served, and the wipe is not reported as done. */
static void fail_power_in_wipe(struct bed *bed)
{
    struct bed_io *io;

    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        assert_true(bed_step(bed));
    }
    assert_true(was_saved_after_cut(bed));
    io = bed_submit_write(bed, 0, 8, false);
    bed_settle(bed);
    assert_true(ftl_is_saved(bed->ftl));
    assert_false(io->is_done);
    assert_false(wipe_io.is_done);
}

static void test_a_wipe_does_not_begin_when_the_power_fails(void **state)
{
    struct bed *bed = new_wiping(9);

    (void)state;
    fail_power_in_wipe(bed);
    assert_int_equal(ftl_state(bed->ftl), FTL_READY);
    bed_free(bed);
}

/* The power fails after each number of steps of the wipe. */
static void test_power_that_fails_during_a_wipe_ends_it(void **state)
{
    unsigned int fails = 0;
    bool is_done = false;

    (void)state;
    for (unsigned int steps = 1; !is_done; steps++) {
        struct bed *bed = new_wiping(10);

        for (unsigned int i = 0; i < steps && !wipe_io.is_done; i++) {
            assert_true(bed_step(bed));
        }
        is_done = wipe_io.is_done;
        if (!is_done) {
            fail_power_in_wipe(bed);
            fails++;
        }
        bed_free(bed);
    }
    assert_true(fails > 20);
}

/* The marker of the wipe does not count for what hosts write after the wipe. */
static void test_writes_after_a_wipe_do_not_count_as_saved(void **state)
{
    struct bed *bed = new_wiping(11);

    (void)state;
    while (!wipe_io.is_done) {
        assert_true(bed_step(bed));
    }
    bed_settle(bed);
    bed_write(bed, 0, 8);
    assert_false(was_saved_after_cut(bed));
    bed_free(bed);
}
