/* SPDX-License-Identifier: BSD-2-Clause */
/* Parity over dies: units and dies that are lost are rebuilt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/space/space.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

/*
 * Rows of four units.  A superblock has four stripes, each of three rows of
 * data and one row of parity.
 */
static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 4,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 12,
                 .wordlines = 4},
    .logical_units = 120,
    .buffer_units = 24,
    .seed = 1,
};

/* Rows of 48 units, three pages to a wordline; parity of two dies. */
static const struct bed_config tlc = {
    .profile = "tlc2021",
    .geometry = {.channels = 1,
                 .dies = 3,
                 .planes = 4,
                 .units = 4,
                 .pages = 3,
                 .blocks = 12,
                 .wordlines = 3},
    .logical_units = 300,
    .buffer_units = 128,
    .seed = 3,
};

static void use_medium(struct bed *bed, uint64_t seed, unsigned int ops)
{
    for (unsigned int i = 0; i < ops; i++) {
        bed_random_op(bed, &seed);
        if (i % 20 == 19) {
            bed_wait_all(bed);
            bed_flush(bed);
        }
    }
    bed_wait_all(bed);
}

static void fill_medium(struct bed *bed)
{
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    }
}

/* The power fails, and then again during the mount. */
static void mount_after_cut(const struct bed *bed, uint64_t seed)
{
    struct bed *cut = bed_cut(bed, seed);
    struct bed *again;

    bed_start_mount(cut);
    for (uint64_t i = 0; i < seed % 50 && bed_step(cut); i++) {
    }
    again = bed_cut(cut, seed);
    bed_free(cut);
    bed_mount(again);
    bed_check(again);
    use_medium(again, seed, 30);
    bed_check(again);
    bed_free(again);
}

/* All contents have been moved away from the dead die. */
static void expect_no_rebuilds(struct bed *bed)
{
    uint64_t before = ftl_counters(bed->ftl)->rebuilt_units;

    bed_check(bed);
    assert_int_equal(ftl_counters(bed->ftl)->rebuilt_units, before);
}

/*
 * A die dies at an operation, and everything is still there.
 * @return false when the workload has fewer operations of the kind
 */
static bool survive_death(const struct bed_config *config,
                          enum nand_op_kind kind, uint32_t after)
{
    unsigned int die = after % nand_geometry_dies(&config->geometry);
    struct bed *bed = bed_new_seeded(config, 1 + after % 5);
    bool has_died;

    inject_death(bed, kind, die, after);
    fill_medium(bed);
    use_medium(bed, after, 200);
    bed_check(bed);
    has_died = nand_array_die_is_dead(bed->array, 0, die);
    if (has_died) {
        /* What was written later does not need the die. */
        bed_flush(bed);
        bed_settle(bed);
        expect_no_rebuilds(bed);
        assert_int_equal(ftl_dead_dies(bed->ftl), 1);
        assert_false(ftl_has_parity(bed->ftl));
        use_medium(bed, ~(uint64_t)after, 100);
        bed_check(bed);
        assert_int_equal(ftl_counters(bed->ftl)->read_errors, 0);
        mount_after_cut(bed, after);
    }
    bed_free(bed);
    return has_died;
}

static void sweep_deaths(const struct bed_config *config, uint32_t stride)
{
    uint32_t deaths = 0;

    for (unsigned int kind = NAND_OP_READ; kind <= NAND_OP_ERASE; kind++) {
        for (uint32_t after = 0;; after += stride) {
            if (!survive_death(config, (enum nand_op_kind)kind, after)) {
                break;
            }
            deaths++;
        }
    }
    print_message("%u deaths of a die\n", deaths);
    assert_true(deaths > 10);
}

static uint32_t death_stride(uint32_t otherwise)
{
    const char *text = getenv("FTL_DEATH_STRIDE");

    return text == NULL ? otherwise : (uint32_t)strtoul(text, NULL, 10);
}

static void test_a_die_that_dies_at_any_operation_loses_nothing(void **state)
{
    (void)state;
    sweep_deaths(&small, death_stride(4));
}

static void test_a_die_that_dies_with_three_bits_per_cell_loses_nothing(
    void **state)
{
    (void)state;
    sweep_deaths(&tlc, death_stride(3));
}

static void test_a_full_medium_is_overwritten_without_the_dead_die(void **state)
{
    struct bed_config config = small;
    struct bed *bed;

    (void)state;
    config.logical_units = 0;
    bed = bed_new_seeded(&config, 7);
    fill_medium(bed);
    inject_death(bed, NAND_OP_PROGRAM, 2, 10);
    use_medium(bed, 3, 400);
    for (unsigned int i = 0; i < 2; i++) {
        fill_medium(bed);
    }
    bed_check(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    assert_true(ftl_counters(bed->ftl)->rebuilt_units > 20);
    bed_free(bed);
}

/* Planes that the factory has marked do not contribute to parity. */
static void test_a_die_dies_in_an_array_with_bad_planes(void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed_config config = small;
        struct bed *bed;
        unsigned int bad = 0;

        config.geometry.blocks = 120;
        config.logical_units = 1500;
        bed = bed_new_seeded(&config, 11 + die);
        for (unsigned int i = 0; i < 480; i++) {
            bad += bed->bad_planes[i] != 0;
        }
        assert_true(bad > 2);
        fill_medium(bed);
        fill_medium(bed);
        bed_flush(bed);
        inject_death(bed, NAND_OP_READ, die, 0);
        bed_check(bed);
        bed_settle(bed);
        bed_check(bed);
        assert_true(ftl_counters(bed->ftl)->rebuilt_units > 100);
        bed_free(bed);
    }
}

static void test_each_unit_of_a_stripe_is_rebuilt(void **state)
{
    const struct bed_config *const configs[] = {&small, &tlc};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(configs); i++) {
        const struct nand_geometry *geometry = &configs[i]->geometry;
        struct bed *bed = bed_new_seeded(configs[i], 2);

        fill_medium(bed);
        bed_flush(bed);
        bed_settle(bed);
        for (int die = 0; die < geometry->dies; die++) {
            for (int page = 0; page < geometry->pages; page++) {
                struct nand_injection failure =
                    fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
                uint64_t before = ftl_counters(bed->ftl)->rebuilt_units;

                failure.die = die;
                failure.page = page;
                inject_fault(bed, &failure);
                bed_check(bed);
                assert_true(ftl_counters(bed->ftl)->rebuilt_units >
                            before + 10);
                /* A write of a part of a unit reads the rest of it. */
                bed_write(bed, 3, 2);
                bed_check(bed);
                nand_array_clear_injections(bed->array);
            }
        }
        assert_int_equal(ftl_counters(bed->ftl)->read_errors, 0);
        bed_free(bed);
    }
}

/* The first stripe of a new array has its data on dies 1 to 3. */
static void test_a_stripe_that_is_not_complete_is_rebuilt_from_dram(
    void **state)
{
    struct nand_injection failure =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed *bed = bed_new_seeded(&small, 1);

    (void)state;
    failure.die = 1;
    inject_fault(bed, &failure);
    for (unsigned int i = 0; i < 2; i++) {
        bed_write(bed, 64 * i, 40); /* a row, and one with padding */
        bed_flush(bed);
        bed_settle(bed);
    }
    assert_int_equal(ftl_counters(bed->ftl)->parity_units, 4);
    bed_write(bed, 400, 8);
    bed_flush(bed); /* the second stripe: die 2 */
    nand_array_clear_injections(bed->array);
    failure.die = 2;
    inject_fault(bed, &failure);
    bed_check(bed);
    assert_int_equal(ftl_counters(bed->ftl)->parity_units, 4);
    assert_true(ftl_counters(bed->ftl)->rebuilt_units >= 2);
    bed_free(bed);
}

/* Another row of the stripe has been added to the sum, and waits for its die.
 * The read of its die is not urgent, or it would find an erased row. */
static void test_a_unit_is_rebuilt_while_a_row_of_its_stripe_waits(void **state)
{
    struct nand_injection failure =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed *bed = bed_new_seeded(&small, 1);
    struct bed_io *write, *read;

    (void)state;
    bed_write(bed, 0, 4 * BED_SECTORS);
    bed_flush(bed); /* die 1 */
    bed->held_dies = BIT(2);
    write =
        bed_submit_write(bed, (uint64_t)4 * BED_SECTORS, 4 * BED_SECTORS, true);
    bed_settle(bed);
    assert_false(write->is_done);
    failure.die = 1;
    inject_fault(bed, &failure);
    bed->urgent_reads = 0;
    read = bed_submit_read(bed, 0, BED_SECTORS);
    bed_settle(bed);
    assert_false(read->is_done);
    bed->held_dies = 0;
    assert_int_equal(bed_wait(bed, read), MEDIA_OK);
    assert_int_equal(ftl_counters(bed->ftl)->rebuilt_units, 1);
    assert_int_equal(bed->urgent_reads, 1); /* that of die 1 */
    assert_int_equal(bed_wait(bed, write), MEDIA_OK);
    bed_check(bed);
    bed_free(bed);
}

static void test_two_failures_in_one_stripe_are_a_read_error(void **state)
{
    struct nand_injection failure =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed *bed = bed_new_seeded(&small, 1);
    unsigned int errors = 0;

    (void)state;
    fill_medium(bed);
    bed_flush(bed);
    bed_settle(bed);
    failure.die = 1;
    inject_fault(bed, &failure);
    failure.die = 3;
    inject_fault(bed, &failure);
    for (uint32_t unit = 0; unit < bed->units; unit++) {
        struct bed_io *io =
            bed_submit_read(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
        enum media_status status = bed_wait(bed, io);

        assert_true(status == MEDIA_OK || status == MEDIA_READ_ERROR);
        errors += status == MEDIA_READ_ERROR;
    }
    assert_in_range(errors, 30, 120);
    nand_array_clear_injections(bed->array);
    bed_check(bed);
    bed_free(bed);
}

/* All requests are reads of units that must be rebuilt. */
static void test_many_rebuilds_at_once_do_not_wait_for_each_other(void **state)
{
    struct bed_config config = small;
    struct nand_injection failure =
        fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    struct bed *bed;

    (void)state;
    config.num_requests = 4;
    bed = bed_new_seeded(&config, 1);
    fill_medium(bed);
    bed_flush(bed);
    bed_settle(bed);
    failure.die = 2;
    inject_fault(bed, &failure);
    for (unsigned int i = 0; i < 60; i++) {
        (void)bed_submit_read(bed, (uint64_t)(i * 2) * BED_SECTORS, 16);
    }
    bed_wait_all(bed);
    bed_check(bed);
    bed_free(bed);
}

/* The row of a plane that fails is in its stripe's parity, or taken out. */
static void test_a_die_dies_after_a_row_has_failed(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 40; after += 3) {
        struct nand_injection failure =
            fault_anywhere(NAND_OP_PROGRAM, NAND_EFFECT_FAIL);
        struct bed *bed = bed_new_seeded(&small, after);

        failure.trigger.after = after;
        failure.trigger.times = 1;
        inject_fault(bed, &failure);
        fill_medium(bed);
        bed_flush(bed);
        bed_settle(bed);
        assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
        inject_death(bed, NAND_OP_READ, after % 4, 0);
        bed_check(bed);
        bed_settle(bed);
        use_medium(bed, after, 50);
        bed_check(bed);
        bed_free(bed);
    }
}

static void test_an_array_without_parity_of_older_firmware_is_refused(
    void **state)
{
    struct bed *bed = bed_new_seeded(&small, 1);

    (void)state;
    bed->writes_old_layout = true;
    bed_write(bed, 0, 8);
    bed_flush(bed);
    bed_settle(bed);
    bed_start_mount(bed);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    bed_settle(bed);
    assert_int_equal(ftl_state(bed->ftl), FTL_FAILED);
    assert_int_equal(ftl_failure(bed->ftl), FTL_FAILURE_OLD_LAYOUT);
    bed_free(bed);
}

/* Garbage collection that goes on may begin another stripe. */
static void complete_stripes(struct bed *bed)
{
    for (unsigned int i = 0; i < 20; i++) {
        ftl_complete_stripes(bed->ftl);
        bed_settle(bed);
        if (ftl_stripes_are_complete(bed->ftl)) {
            return;
        }
    }
    fail_msg("The stripes never become complete.");
}

/* The die died while the power was off. */
static void test_a_die_that_is_dead_at_the_start_loses_nothing(void **state)
{
    const struct bed_config *const configs[] = {&small, &tlc};

    (void)state;
    for (unsigned int i = 0; i < 7; i++) {
        const struct bed_config *config = configs[i / 4];
        struct bed *bed = bed_new_seeded(config, i);

        fill_medium(bed);
        use_medium(bed, i, 200);
        bed_trim(bed, 8, 64);
        bed_flush(bed);
        complete_stripes(bed);
        bed_start_mount(bed);
        inject_death(bed, NAND_OP_READ, i % 4, 0);
        while (ftl_state(bed->ftl) == FTL_MOUNTING) {
            assert_true(bed_step(bed));
        }
        assert_int_equal(ftl_state(bed->ftl), FTL_READY);
        assert_int_equal(ftl_dead_dies(bed->ftl), 1);
        bed_check(bed);
        assert_true(ftl_counters(bed->ftl)->rebuilt_units != 0);
        bed_settle(bed);
        use_medium(bed, i, 50);
        bed_check(bed);
        bed_flush(bed);
        bed_mount(bed);
        bed_check(bed);
        bed_free(bed);
    }
}

/* Lose a word of each unit of a sum. */
static void lose_words_of_sum(struct bed *bed, struct ftl_accumulator *sum)
{
    for (uint32_t i = 0; i < bed->ftl->layout.row_units; i++) {
        uint8_t *word = sum->data + (size_t)i * FTL_UNIT_DATA;

        memset(word, 0, sizeof(uint64_t));
        assert_true(ftl_note_lost_word(bed->ftl, word));
    }
}

/*
 * A die died while the power was off, and parity was made of a sum with lost
 * words.  The units of this stripe may be lost, but no other unit gets their
 * contents.
 */
static void test_a_mount_rebuilds_nothing_from_a_sum_with_lost_words(
    void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed_config config = small;
        struct bed *bed;
        uint32_t unit = 0;

        config.geometry.blocks = 24;
        /* Most wrong numbers are those of units. */
        config.logical_units = 256;
        bed = bed_new(&config);
        fill_medium(bed);
        complete_stripes(bed);
        do {
            bed_write(bed, (uint64_t)unit++ * BED_SECTORS, 4 * BED_SECTORS);
            bed_flush(bed);
        } while (bed->ftl->streams[FTL_HOST_STREAM].accumulator == NULL);
        lose_words_of_sum(bed, bed->ftl->streams[FTL_HOST_STREAM].accumulator);
        while (bed->ftl->streams[FTL_HOST_STREAM].accumulator != NULL) {
            bed_write(bed, (uint64_t)unit * BED_SECTORS, 4 * BED_SECTORS);
            unit += 4;
            bed_flush(bed);
        }
        bed->changes_dead_dies = true;
        bed->dead_dies = (uint8_t)BIT(die);
        bed_mount(bed);
        for (uint32_t i = unit + 4; i < bed->units; i++) {
            struct bed_io *io =
                bed_submit_read(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);

            assert_int_equal(bed_wait(bed, io), MEDIA_OK);
            bed_check_read(bed, io);
        }
        bed_free(bed);
    }
}

/* The accumulator of a stripe whose parity is being programmed, or NULL. */
static struct ftl_accumulator *find_sent_parity(struct bed *bed)
{
    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *at = &bed->ftl->parity.accumulators[i];

        if (at->is_used && at->rows != 0) {
            return at;
        }
    }
    return NULL;
}

/* The words are lost when the row with the parity has been sent, but before the
 * controller takes its data. */
static void test_nothing_is_rebuilt_if_words_of_parity_are_lost_after_sending(
    void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed *bed = bed_new_seeded(&small, 1);
        uint32_t unit = 0;

        fill_medium(bed);
        complete_stripes(bed);
        bed->held_dies = 0xf;
        while (find_sent_parity(bed) == NULL) {
            bed_write(bed, (uint64_t)unit++ * BED_SECTORS, BED_SECTORS);
        }
        lose_words_of_sum(bed, find_sent_parity(bed));
        bed->held_dies = 0;
        bed_flush(bed);
        inject_death(bed, NAND_OP_READ, die, 0);
        for (uint32_t i = 0; i < bed->units; i++) {
            struct bed_io *io =
                bed_submit_read(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);

            if (bed_wait(bed, io) == MEDIA_OK) {
                bed_check_read(bed, io);
            }
        }
        bed_free(bed);
    }
}

/* ---- Stripes without parity that could not be moved before the power went
 * off: the next start moves them. */

/* The drive has started and has done all that is due.  Then a die dies. */
static void lose_die_after_start(struct bed *bed, unsigned int die)
{
    bed_settle(bed);
    inject_death(bed, NAND_OP_READ, die, 0);
    bed_check(bed);
    assert_int_equal(ftl_dead_dies(bed->ftl), 1);
    assert_int_equal(ftl_counters(bed->ftl)->read_errors, 0);
}

/* An orderly power-off waits for no move.  The checkpoint says what is left to
 * do. */
static void test_a_start_moves_what_lost_its_parity_before_an_orderly_stop(
    void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed_config config = small;
        struct bed *bed;
        uint32_t unit = 0, superblock;

        config.geometry.blocks = 24;
        config.checkpoint_superblocks = 4;
        bed = bed_new(&config);
        fill_medium(bed);
        complete_stripes(bed);
        do {
            bed_write(bed, (uint64_t)unit++ * BED_SECTORS, 4 * BED_SECTORS);
            bed_flush(bed);
        } while (bed->ftl->streams[FTL_HOST_STREAM].accumulator == NULL);
        superblock = bed->ftl->streams[FTL_HOST_STREAM].superblock;
        lose_words_of_sum(bed, bed->ftl->streams[FTL_HOST_STREAM].accumulator);
        bed_stop(bed);
        assert_true(bed->ftl->superblocks[superblock].moves_soon);
        bed_mount(bed);
        assert_int_not_equal(bed->ftl->mount.checkpoint_row, 0);
        lose_die_after_start(bed, die);
        bed_free(bed);
    }
}

/* In the first stripe of a new array, the row with parity fails in a plane. */
static struct bed *new_with_failed_parity(uint16_t checkpoints)
{
    struct nand_injection failure =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
    struct bed_config config = small;
    struct bed *bed;

    config.geometry.blocks = 24;
    config.checkpoint_superblocks = checkpoints;
    bed = bed_new(&config);
    failure.die = 0;
    failure.plane = 0;
    inject_fault(bed, &failure);
    for (uint32_t unit = 0; unit < 12; unit++) {
        bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
    bed_settle(bed);
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    return bed;
}

/* The power is cut before garbage collection has come to the superblock, which
 * is so old by then that none of its rows may be torn. */
static void test_a_start_moves_what_lost_its_parity_before_a_power_cut(
    void **state)
{
    (void)state;
    for (unsigned int die = 0; die < 4; die++) {
        struct bed *bed = new_with_failed_parity(0);
        uint32_t superblock =
            ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[0]);
        struct bed *cut;

        assert_true(bed->ftl->superblocks[superblock].moves_soon);
        ftl_due_has_moved(&bed->ftl->space_floor, superblock);
        for (unsigned int i = 0; i < 2; i++) {
            for (uint32_t unit = 12; unit < bed->units; unit++) {
                bed_write(bed, (uint64_t)unit * BED_SECTORS, BED_SECTORS);
            }
            bed_flush(bed);
        }
        complete_stripes(bed);
        assert_int_equal(
            ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[0]),
            superblock);
        cut = bed_cut(bed, die);
        bed_free(bed);
        bed_mount(cut);
        lose_die_after_start(cut, die);
        bed_free(cut);
    }
}

/* Whether all units of the stripe have copies elsewhere. */
static bool has_moved(const struct bed *bed, uint32_t superblock)
{
    for (uint32_t unit = 0; unit < 12; unit++) {
        if (ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[unit]) ==
            superblock) {
            return false;
        }
    }
    return true;
}

/* Move the units of the stripe without parity, until all copies and their
 * parity are on flash.  Nothing is erased yet. */
static void move_stripe(struct bed *bed, uint32_t superblock)
{
    bed->ftl->checkpoint.is_stopped = false;
    bed->ftl->has_work = true;
    while (!ftl_victim_is_at_end(&bed->ftl->map_floor)) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(bed->ftl->collection.victim, superblock);
    bed->held_dies = BIT(1) | BIT(2) | BIT(3); /* They hold no parity. */
    bed_settle(bed);
    bed->held_dies = 0;
    while (!has_moved(bed, superblock)) {
        assert_true(bed_step(bed));
    }
    assert_int_equal(bed->ftl->superblocks[superblock].state,
                     FTL_SUPERBLOCK_CLOSED);
}

/*
 * A checkpoint names the units of a stripe without parity.  They have been
 * moved since, but their superblock has not been erased when the power is cut.
 * At the next start, a die is dead: the copies count, because the originals
 * cannot be rebuilt.  (Die 0 has the checkpoint.)
 */
static void test_copies_count_if_their_originals_have_no_parity(void **state)
{
    (void)state;
    for (unsigned int die = 1; die < 4; die++) {
        struct bed *bed = new_with_failed_parity(4);
        uint32_t superblock =
            ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[0]);
        struct bed *cut;

        bed_stop(bed);
        assert_true(bed->ftl->superblocks[superblock].moves_soon);
        move_stripe(bed, superblock);
        cut = bed_cut(bed, die);
        bed_free(bed);
        cut->changes_dead_dies = true;
        cut->dead_dies = (uint8_t)BIT(die);
        bed_mount(cut);
        assert_int_not_equal(cut->ftl->mount.checkpoint_row, 0);
        bed_check(cut);
        assert_int_equal(ftl_counters(cut->ftl)->read_errors, 0);
        bed_free(cut);
    }
}

static void test_a_second_dead_die_at_the_start_is_refused(void **state)
{
    struct bed *bed = bed_new_seeded(&small, 1);

    (void)state;
    fill_medium(bed);
    bed_flush(bed);
    bed_start_mount(bed);
    inject_death(bed, NAND_OP_READ, 1, 0);
    inject_death(bed, NAND_OP_READ, 2, 3);
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    bed_settle(bed);
    assert_int_equal(ftl_state(bed->ftl), FTL_FAILED);
    bed_free(bed);
}

/*
 * In the first stripe, the row of die 1 fails in one plane.  Its units are
 * programmed again; die 2 must still be rebuilt without what has failed.
 */
static void check_row_that_failed(uint64_t seed)
{
    struct nand_injection failure =
        fault_anywhere(NAND_OP_PROGRAM, NAND_EFFECT_FAIL);
    struct bed *bed = bed_new_seeded(&small, seed);

    failure.die = 1;
    failure.plane = 0;
    failure.trigger.times = 1;
    inject_fault(bed, &failure);
    for (unsigned int i = 0; i < 3; i++) {
        bed_write(bed, 32 * i, 32);
        bed_flush(bed);
        bed_settle(bed);
    }
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    assert_int_equal(ftl_counters(bed->ftl)->parity_units, 4);
    failure = fault_anywhere(NAND_OP_READ, NAND_EFFECT_UNCORRECTABLE);
    failure.die = 2;
    inject_fault(bed, &failure);
    bed_check(bed);
    assert_true(ftl_counters(bed->ftl)->rebuilt_units >= 4);
    bed_free(bed);
}

static void test_a_row_that_failed_is_taken_out_of_the_parity(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 9; seed++) {
        check_row_that_failed(seed);
    }
}

/* ---- A die that dies among power cuts. */

/* Use the medium for a while, then cut the power and start again. */
static struct bed *use_and_cut(struct bed *bed, uint64_t *random)
{
    unsigned int steps = (unsigned int)(random_next(random) % 300);
    struct bed *cut;

    for (unsigned int i = 0; i < 12; i++) {
        bed_random_op(bed, random);
    }
    while (steps-- != 0 && bed_step(bed)) {
    }
    cut = bed_cut(bed, random_next(random));
    bed_free(bed);
    bed_mount(cut);
    bed_check(cut);
    return cut;
}

/* Use the medium until the die has died and all contents that need this were
 * moved. */
static void use_until_death(struct bed *bed, uint64_t *random)
{
    unsigned int die = (unsigned int)(random_next(random) % 4);

    inject_death(
        bed,
        (enum nand_op_kind)(NAND_OP_READ + random_next(random) % NAND_OP_ERASE),
        die, (uint32_t)(random_next(random) % 60));
    for (unsigned int i = 0;
         i < 400 && !nand_array_die_is_dead(bed->array, 0, die); i++) {
        bed_random_op(bed, random);
        if (i % 20 == 19) {
            bed_wait_all(bed);
            bed_flush(bed);
            bed_check(bed);
        }
    }
    bed_wait_all(bed);
    bed_flush(bed);
    bed_settle(bed);
    bed_check(bed);
}

static void test_a_die_dies_among_power_cuts(void **state)
{
    const char *text = getenv("FTL_DEATH_SEEDS");
    unsigned long seeds = text == NULL ? 12 : strtoul(text, NULL, 10);
    unsigned int deaths = 0;

    (void)state;
    for (unsigned long seed = 1; seed <= seeds; seed++) {
        struct bed_config config = small;
        uint64_t random = seed;
        struct bed *bed;

        config.geometry.blocks = 16;
        config.logical_units = 0;
        config.checkpoint_superblocks = (uint16_t)(seed % 4);
        config.torn_units_vary = seed % 2 != 0;
        bed = bed_new_seeded(&config, seed);
        for (unsigned int i = 0; i < 3; i++) {
            bed = use_and_cut(bed, &random);
        }
        use_until_death(bed, &random);
        deaths += ftl_dead_dies(bed->ftl);
        for (unsigned int i = 0; i < 5; i++) {
            bed = use_and_cut(bed, &random);
        }
        bed_free(bed);
    }
    assert_true(deaths > seeds / 2);
}

/* A word of each sum is lost, and garbage collection does not come to the
 * superblock before the power is cut. */
static void lose_words_of_sums(struct bed *bed, uint32_t superblock)
{
    for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
        struct ftl_accumulator *sum = &bed->ftl->parity.accumulators[i];

        if (sum->is_used && sum->begun != 0) {
            memset(sum->data, 0, sizeof(uint64_t));
            assert_true(ftl_note_lost_word(bed->ftl, sum->data));
        }
    }
    assert_true(bed->ftl->superblocks[superblock].moves_soon);
    ftl_due_has_moved(&bed->ftl->space_floor, superblock);
}

/* The stripe has no parity for one unit.  The mount sees that, although the row
 * is not one of the last ones. */
static void test_a_mount_moves_what_a_lost_word_left_without_parity(
    void **state)
{
    struct bed_config config = small;
    struct bed *bed, *cut;
    uint32_t superblock;

    (void)state;
    config.geometry.blocks = 24;
    bed = bed_new(&config);
    bed_write(bed, 0, 32);
    bed_flush(bed);
    superblock = ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[0]);
    lose_words_of_sums(bed, superblock);
    for (uint32_t i = 0; i < 56; i++) {
        bed_write(bed, 32 + i % 28 * 32, 32);
    }
    bed_flush(bed);
    assert_int_equal(ftl_place_superblock(&bed->ftl->layout, bed->ftl->map[0]),
                     superblock);
    cut = bed_cut(bed, 1);
    bed_free(bed);
    bed_mount(cut);
    bed_settle(cut);
    assert_int_not_equal(
        ftl_place_superblock(&cut->ftl->layout, cut->ftl->map[0]), superblock);
    bed_check(cut);
    bed_free(cut);
}
