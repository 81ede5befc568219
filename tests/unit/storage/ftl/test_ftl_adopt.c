/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resets of the translation layer with power on.  While a workload runs, flash
 * and write buffer are copied after events, as a reset at this moment leaves
 * them.  Each copy is mounted, and the oracle checks that no operation that has
 * ended is lost.
 *
 * FTL_FIRST, FTL_SEEDS, FTL_OPS and FTL_STRIDE: see test_ftl_power.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum { HEAD_LEN = 64, COPIES = 2 };

struct sweep {
    unsigned int stride;       /* events between two resets */
    unsigned int mount_stride; /* the same during mounts; 0: no resets */
    bool with_failures;        /* some programs fail */
    uint64_t resets;
    uint64_t units, trims; /* adopted */
};

/* Adopt, and check that everything is there. */
static void check_adopted(struct bed *bed)
{
    bed_mount(bed);
    bed_check(bed);
    assert_false(ftl_is_adopting(bed->ftl));
    assert_int_equal(ftl_adopted(bed->ftl)->damaged, 0);
    assert_false(ftl_adopted(bed->ftl)->is_refused);
}

/* ---- Sweeps. */

static void reset_during_mount(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->events % sweep->mount_stride == 0) {
        struct bed *again = bed_reset(bed, bed->events);

        check_adopted(again);
        sweep->resets++;
        bed_free(again);
    }
}

/* A reset has come: `bed` is what is left. */
static void check_reset(struct sweep *sweep, struct bed *bed, uint64_t seed)
{
    struct bed *again, *cut;

    sweep->resets++;
    bed->ctx = sweep;
    bed->after_event = sweep->mount_stride != 0 ? reset_during_mount : NULL;
    bed_mount(bed);
    bed->after_event = NULL;
    bed_check(bed);
    sweep->units += ftl_adopted(bed->ftl)->units;
    sweep->trims += ftl_adopted(bed->ftl)->trims;
    bed_use(bed, seed, 6);
    again = bed_reset(bed, seed);
    check_adopted(again);
    bed_flush(again);
    cut = bed_cut(again, seed);
    bed_mount(cut);
    bed_check(cut);
    bed_free(cut);
    bed_free(again);
}

static void reset_now(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;
    struct bed *reset;

    if (bed->events % sweep->stride == 0) {
        reset = bed_reset(bed, random_mix(bed->events));
        check_reset(sweep, reset, random_mix(bed->events));
        bed_free(reset);
    }
}

static void sweep_workload(struct sweep *sweep, const struct bed_config *base,
                           uint64_t seed, unsigned int ops)
{
    struct bed *bed = bed_new_seeded(base, seed);

    bed_use(bed, seed, 60);
    bed_wait_all(bed);
    bed_flush(bed);
    if (sweep->with_failures) {
        fail_operations(bed, NAND_OP_PROGRAM, 0, 29);
    }
    bed->ctx = sweep;
    bed->after_event = reset_now;
    bed_use(bed, ~seed, ops);
    bed_wait_all(bed);
    bed->after_event = NULL;
    bed_check(bed);
    bed_free(bed);
}

static void sweep_seeds(struct sweep *sweep, const struct bed_config *config,
                        const char *what)
{
    unsigned long first = bed_setting("FTL_FIRST", 1);

    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 2); i++) {
        sweep_workload(sweep, config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 30));
    }
    print_message("%s: %lu resets, %lu units and %lu trims adopted\n", what,
                  (unsigned long)sweep->resets, (unsigned long)sweep->units,
                  (unsigned long)sweep->trims);
    assert_true(sweep->resets > 10);
    assert_true(sweep->units > 10);
}

static void test_a_reset_loses_no_operation_that_has_ended(void **state)
{
    struct sweep sweep = {.stride = 1};

    (void)state;
    sweep_seeds(&sweep, &bed_small, "resets");
    assert_true(sweep.trims != 0);
}

static void test_a_reset_during_a_mount_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = 23,
        .mount_stride = (unsigned int)bed_setting("FTL_STRIDE", 17),
    };

    (void)state;
    sweep_seeds(&sweep, &bed_small, "resets during mounts");
}

static void test_a_reset_after_programs_that_failed_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 5),
        .with_failures = true,
    };

    (void)state;
    sweep_seeds(&sweep, &bed_small, "resets with failed programs");
}

/* Hosts submit writes while others end. */
static void test_a_reset_while_writes_follow_at_once_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 3),
        .with_failures = true,
    };
    struct bed_config config = bed_small;

    (void)state;
    config.chain = 6;
    config.rewrites_few = true;
    sweep_seeds(&sweep, &config, "resets while writes follow at once");
}

/* Rows with contents of the same unit end in any order, even the oldest last.
 */
static void test_a_reset_while_a_die_lags_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = (unsigned int)bed_setting("FTL_STRIDE", 5)};
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 2;
    config.dies_lag = true;
    config.rewrites_few = true;
    sweep_seeds(&sweep, &config, "resets while a die lags");
}

/* Metadata and marks of the buffer outlive the reset with its data. */
static void test_a_reset_keeps_metadata_and_marks(void **state)
{
    struct sweep sweep = {.stride = (unsigned int)bed_setting("FTL_STRIDE", 5)};
    struct bed_config config = bed_small;

    (void)state;
    config.has_metadata = true;
    config.has_marks = true;
    sweep_seeds(&sweep, &config, "resets with metadata and marks");
}

/* ---- Single resets. */

/* A bed with some writes and a trim that are not on flash. */
static struct bed *new_used_bed(uint64_t seed)
{
    struct bed *bed = bed_new_seeded(&bed_small, seed);

    bed_write(bed, 0, 24);
    bed_write(bed, 80, 8);
    bed_flush(bed);
    bed_write(bed, 8, 8);
    bed_write(bed, 40, 3);
    bed_trim(bed, 80, 8);
    return bed;
}

static void test_writes_and_trims_are_adopted(void **state)
{
    struct bed *bed = new_used_bed(1);
    struct bed *reset = bed_reset(bed, 1);

    (void)state;
    check_adopted(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 2);
    assert_int_equal(ftl_adopted(reset->ftl)->trims, 1);
    bed_free(reset);
    bed_free(bed);
}

/* After a power cut, the write buffer is not adopted. */
static void test_a_power_cut_ends_the_buffer(void **state)
{
    struct bed *bed = new_used_bed(2);
    struct bed *reset = bed_reset(bed, 1);
    struct bed *again;

    (void)state;
    reset->adopts = false;
    bed_mount(reset);
    bed_settle(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
    /* The start after the next reset does not adopt it either. */
    again = bed_reset(reset, 1);
    bed_mount(again);
    bed_settle(again);
    assert_int_equal(ftl_adopted(again->ftl)->units, 0);
    assert_int_equal(ftl_adopted(again->ftl)->trims, 0);
    bed_free(again);
    bed_free(reset);
    bed_free(bed);
}

/*
 * A reset may come while a write is copied into the buffer.  Then the data of
 * the write is there, but its entry is not.  The write has not ended, so the
 * contents before it count.
 */
static void test_a_reset_within_a_write_keeps_the_contents_before(void **state)
{
    static const uint32_t counts[] = {8, 3};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(counts); i++) {
        struct bed *bed = new_used_bed(3);
        struct bed *reset = bed_reset(bed, 1);
        size_t data;

        data = (size_t)(bed_small.buffer_units + 1) * FTL_UNIT_DATA;
        bed_write(bed, 8, counts[i]);
        memcpy(reset->keep, bed->keep, data);
        check_adopted(reset);
        assert_int_equal(ftl_adopted(reset->ftl)->units, 2);
        bed_free(reset);
        bed_free(bed);
    }
}

/* ---- Older contents that are still being programmed. */

/*
 * Write unit 0, and have it programmed by a die that makes no progress.  Other
 * dies make progress.
 */
static void write_to_held_die(struct bed *bed)
{
    uint64_t programs = bed->programs;

    bed_write(bed, 0, 8);
    (void)bed_submit_flush(bed);
    while (bed->programs == programs) {
        assert_true(bed_step(bed));
    }
    for (unsigned int i = 0; i < BED_DIES_MAX; i++) {
        if (bed->dies[i].stage != BED_DIE_IDLE) {
            bed->held_dies |= (uint8_t)BIT(i);
        }
    }
    assert_int_not_equal(bed->held_dies, 0);
}

static void expect_after_reset(const struct bed *bed)
{
    struct bed *reset = bed_reset(bed, 1);

    check_adopted(reset);
    bed_free(reset);
}

static void free_held_bed(struct bed *bed)
{
    bed->held_dies = 0;
    bed_wait_all(bed);
    bed_free(bed);
}

static void test_newer_contents_that_are_on_flash_count(void **state)
{
    struct bed *bed = bed_new_seeded(&bed_small, 11);

    (void)state;
    write_to_held_die(bed);
    bed_write(bed, 0, 8);
    expect_after_reset(bed);
    (void)bed_submit_flush(bed);
    bed_settle(bed);
    expect_after_reset(bed);
    free_held_bed(bed);
}

/*
 * The row of acknowledged contents fails before newer contents of the unit are
 * copied into the write buffer.  The failed row may be readable or not; the
 * seed decides.
 */
static void test_contents_whose_row_fails_are_adopted(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct bed *bed = bed_new_seeded(&bed_small, seed);

        fail_operations(bed, NAND_OP_PROGRAM, 1, 0);
        bed_write(bed, 0, 8);
        (void)bed_submit_flush(bed);
        while (ftl_counters(bed->ftl)->rows == 0) {
            assert_true(bed_step(bed));
        }
        (void)bed_submit_write(bed, 0, 8, false);
        while (ftl_counters(bed->ftl)->program_errors == 0) {
            assert_true(bed_event(bed));
        }
        expect_after_reset(bed);
        bed_wait_all(bed);
        bed_free(bed);
    }
}

static void test_contents_before_a_trim_do_not_come_back(void **state)
{
    struct bed *bed = bed_new_seeded(&bed_small, 12);

    (void)state;
    write_to_held_die(bed);
    bed_trim(bed, 0, 8);
    expect_after_reset(bed);
    for (uint32_t i = 0; i < 5; i++) {
        bed_write(bed, i * 8, 8);
        expect_after_reset(bed);
    }
    bed_settle(bed);
    expect_after_reset(bed);
    free_held_bed(bed);
}

static void test_contents_that_were_adopted_are_older_than_new_ones(
    void **state)
{
    struct bed *bed = bed_new_seeded(&bed_small, 13);
    struct bed *reset;

    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        bed_write(bed, 0, 8);
    }
    reset = bed_reset(bed, 1);
    check_adopted(reset);
    (void)bed_submit_flush(reset);
    reset->held_dies = 3;
    bed_settle(reset);
    bed_write(reset, 0, 8);
    expect_after_reset(reset);
    free_held_bed(reset);
    bed_free(bed);
}

/* The contents on flash that an adopted unit replaces become invalid, so
 * garbage collection can free their space. */
static void test_a_drive_that_is_reset_often_uses_up_no_space(void **state)
{
    struct bed *bed = bed_new_seeded(&bed_small, 14);
    struct bed *reset;

    (void)state;
    for (unsigned int i = 0; i < 30; i++) {
        bed_use(bed, i, 12);
        reset = bed_reset(bed, i);
        bed_free(bed);
        bed = reset;
        check_adopted(bed);
        if (i % 15 == 14) {
            bed_use(bed, ~(uint64_t)i, 600);
            bed_check(bed);
        }
    }
    assert_false(ftl_is_read_only(bed->ftl));
    bed_free(bed);
}

/* ---- Memory that is damaged, or not ours. */

enum { ENTRY_LEN = 24 };

/* The copies are one after the other, each in whole lines of 64 bytes. */
static size_t copy_bytes(void)
{
    size_t len = (bed_small.buffer_units + 1u) * ENTRY_LEN;

    return (len + 63) & ~(size_t)63;
}

/* Find the first entry of a unit in the memory of the write buffer, by its
 * number and its check word, which is not 0. */
static uint8_t *find_entry(const struct bed *bed, uint32_t number)
{
    enum { AT_NUMBER = 16 };
    /* After the entries there are two tables of trims and two heads. */
    uint8_t *at = bed->keep + bed->keep_bytes - (COPIES + COPIES) * HEAD_LEN -
                  COPIES * copy_bytes();

    for (uint32_t i = 0; i <= bed_small.buffer_units; i++, at += ENTRY_LEN) {
        uint64_t check;
        uint32_t found;

        memcpy(&check, at, sizeof(check));
        memcpy(&found, at + AT_NUMBER, sizeof(found));
        if (check != 0 && found == number) {
            return at;
        }
    }
    fail_msg("Unit %u has no entry.", number);
    return NULL;
}

static uint8_t *find_copy(const struct bed *bed, uint32_t number,
                          unsigned int copy)
{
    return find_entry(bed, number) + copy * copy_bytes();
}

/*
 * All slots are in use, and a write replaces what one of them holds.  Its new
 * entry is written before both copies of the old one are cleared, so a reset in
 * between finds entries in all buffers.  The slots' other units stay.
 *
 * @param first_copy  0: no copy of the old entry is cleared; 1: only the second
 *                    copy is left
 */
static void check_reset_before_clearing(unsigned int first_copy)
{
    enum { UNITS = 12, REPLACED = UNITS - 2, LAST = UNITS - 1 };
    struct bed *bed = bed_new_seeded(&bed_small, 3);
    uint8_t old[COPIES][ENTRY_LEN];
    size_t at[COPIES];
    struct bed *reset;

    assert_int_equal(UNITS, bed_small.buffer_units);
    bed->held_dies = 3;
    for (uint32_t i = 0; i < UNITS; i++) {
        bed_write(bed, i * 8, 8);
    }
    /* The last unit is now in the buffer that no slot has after a start. */
    bed_write(bed, LAST * 8, 8);
    for (unsigned int i = 0; i < COPIES; i++) {
        at[i] = (size_t)(find_copy(bed, REPLACED, i) - bed->keep);
        memcpy(old[i], bed->keep + at[i], ENTRY_LEN);
    }
    bed_write(bed, REPLACED * 8, 8);
    reset = bed_reset(bed, 1);
    for (unsigned int i = first_copy; i < COPIES; i++) {
        assert_memory_not_equal(reset->keep + at[i], old[i], ENTRY_LEN);
        memcpy(reset->keep + at[i], old[i], ENTRY_LEN);
    }
    check_adopted(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, UNITS);
    bed_free(reset);
    free_held_bed(bed);
}

static void test_a_reset_while_a_full_buffer_replaces_a_unit_loses_nothing(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < COPIES; i++) {
        check_reset_before_clearing(i);
    }
}

/* The tables of trims, of one word each, are before the heads. */
static uint8_t *trims_of(const struct bed *bed, unsigned int copy)
{
    return bed->keep + bed->keep_bytes -
           (COPIES + COPIES - copy) * (size_t)HEAD_LEN;
}

static uint8_t *head_of(const struct bed *bed, unsigned int copy)
{
    return bed->keep + bed->keep_bytes - (COPIES - copy) * (size_t)HEAD_LEN;
}

/* One copy is damaged: neither this start nor the next one loses anything. */
static void check_repaired(struct bed *reset, uint32_t repaired)
{
    struct bed *again;

    check_adopted(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 2);
    assert_int_equal(ftl_adopted(reset->ftl)->trims, 1);
    assert_int_equal(ftl_adopted(reset->ftl)->repaired, repaired);
    again = bed_reset(reset, 1);
    check_adopted(again);
    assert_int_equal(ftl_adopted(again->ftl)->repaired, 0);
    bed_free(again);
    bed_free(reset);
}

static void test_a_lost_word_of_an_entry_loses_nothing(void **state)
{
    struct bed *bed = new_used_bed(4);

    (void)state;
    for (unsigned int i = 0; i < COPIES * ENTRY_LEN; i += 8) {
        struct bed *reset = bed_reset(bed, 1);

        memset(find_copy(reset, 5, i / ENTRY_LEN) + i % ENTRY_LEN, 0, 8);
        check_repaired(reset, 1);
    }
    bed_free(bed);
}

static void test_a_lost_word_of_trims_loses_nothing(void **state)
{
    struct bed *bed = new_used_bed(4);

    (void)state;
    for (unsigned int copy = 0; copy < COPIES; copy++) {
        struct bed *reset = bed_reset(bed, 1);

        memset(trims_of(reset, copy), 0, 8);
        check_repaired(reset, 2); /* words of 32 bits */
    }
    bed_free(bed);
}

static void test_a_lost_word_of_a_head_loses_nothing(void **state)
{
    struct bed *bed = new_used_bed(4);

    (void)state;
    for (unsigned int i = 0; i < COPIES * HEAD_LEN; i += 8) {
        struct bed *reset = bed_reset(bed, 1);

        memset(head_of(reset, 0) + i, 0, 8);
        ftl_count_start(reset->keep + reset->keep_bytes, ++reset->boot);
        check_repaired(reset, 0);
    }
    bed_free(bed);
}

static void test_an_entry_of_which_both_copies_are_damaged_is_discarded(
    void **state)
{
    struct bed *bed = new_used_bed(4);

    (void)state;
    for (unsigned int at = 0; at < 20; at++) {
        struct bed *reset = bed_reset(bed, 1);
        uint8_t *second = find_copy(reset, 5, 1);

        find_entry(reset, 5)[at] ^= 0x10;
        second[at] ^= 0x20;
        bed_mount(reset);
        bed_settle(reset);
        assert_int_equal(ftl_adopted(reset->ftl)->units, 1);
        assert_int_equal(ftl_adopted(reset->ftl)->trims, 1);
        assert_int_equal(ftl_adopted(reset->ftl)->damaged, 1);
        bed_free(reset);
    }
    bed_free(bed);
}

static void test_trims_of_which_both_copies_are_damaged_are_discarded(
    void **state)
{
    struct bed *bed = new_used_bed(4);

    (void)state;
    for (unsigned int bit = 0; bit < 32; bit++) {
        struct bed *reset = bed_reset(bed, 1);

        for (unsigned int copy = 0; copy < COPIES; copy++) {
            trims_of(reset, copy)[bit / 8] ^= (uint8_t)BIT(bit % 8);
        }
        bed_mount(reset);
        bed_settle(reset);
        assert_int_equal(ftl_adopted(reset->ftl)->trims, 0);
        assert_int_equal(ftl_adopted(reset->ftl)->damaged, 1);
        bed_free(reset);
    }
    bed_free(bed);
}

static void test_a_buffer_of_other_sizes_is_refused(void **state)
{
    struct bed *bed = new_used_bed(5);

    (void)state;
    for (unsigned int at = 8; at < HEAD_LEN; at++) {
        struct bed *reset = bed_reset(bed, 1);

        for (unsigned int copy = 0; copy < COPIES; copy++) {
            head_of(reset, copy)[at] ^= 1;
        }
        bed_mount(reset);
        bed_settle(reset);
        assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
        assert_int_equal(ftl_adopted(reset->ftl)->trims, 0);
        assert_true(ftl_adopted(reset->ftl)->is_refused);
        bed_free(reset);
    }
    bed_free(bed);
}

/* Firmware that does not know the buffer has run in between: then hosts may
 * have written something newer. */
static void test_a_buffer_of_an_older_start_is_refused(void **state)
{
    struct bed *bed = new_used_bed(8);
    struct bed *reset = bed_reset(bed, 1);

    (void)state;
    reset->boot++;
    bed_mount(reset);
    bed_settle(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
    assert_int_equal(ftl_adopted(reset->ftl)->trims, 0);
    assert_true(ftl_adopted(reset->ftl)->is_refused);
    bed_free(reset);
    bed_free(bed);
}

/* Resets also come before the translation layer has started. */
static void test_a_start_that_ends_early_loses_nothing(void **state)
{
    struct bed *bed = new_used_bed(9);
    struct bed *reset = bed_reset(bed, 1);

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        ftl_count_start(reset->keep + reset->keep_bytes, ++reset->boot);
    }
    check_adopted(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 2);
    bed_free(reset);
    bed_free(bed);
}

/* Random memory, as after the power was off, says nothing. */
static void test_memory_without_a_buffer_is_no_buffer(void **state)
{
    struct bed *bed = new_used_bed(6);
    struct bed *reset = bed_reset(bed, 1);

    (void)state;
    memset(reset->keep, 0x5a, reset->keep_bytes);
    bed_mount(reset);
    bed_settle(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
    assert_false(ftl_adopted(reset->ftl)->is_refused);
    bed_free(reset);
    bed_free(bed);
}

static void test_nothing_is_adopted_after_a_wipe(void **state)
{
    struct bed *bed = new_used_bed(7);
    struct bed *reset;
    uint64_t events = bed->events + 1;

    (void)state;
    bed_wait_all(bed);
    bed_wipe(bed, &bed->io[0]);
    bed->io[0].is_used = true;
    bed->io[0].is_done = false;
    bed->io[0].io = (struct media_io){.op = MEDIA_FLUSH};
    while (ftl_state(bed->ftl) != FTL_WIPING || bed->events < events) {
        assert_true(bed_step(bed));
    }
    /* A reset while blocks are erased. */
    reset = bed_reset(bed, 1);
    bed_mount(reset);
    bed_settle(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
    assert_int_equal(ftl_adopted(reset->ftl)->trims, 0);
    bed_free(reset);
    bed_settle(bed);
    reset = bed_reset(bed, 1);
    bed_mount(reset);
    bed_settle(reset);
    assert_int_equal(ftl_adopted(reset->ftl)->units, 0);
    assert_int_equal(ftl_adopted(reset->ftl)->trims, 0);
    bed_free(reset);
    bed_free(bed);
}
