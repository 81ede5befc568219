/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power cuts of the translation layer.  While a workload runs, its flash is
 * copied after every event (the end of a request to storage, the start or the
 * end of an operation of a die), as a power cut at this moment leaves it.  Each
 * copy is mounted, and the oracle checks what every unit contains.
 *
 * The environment varies what is swept: FTL_SEEDS workloads from number
 * FTL_FIRST, each with FTL_OPS operations, and FTL_CUTS cuts of those tests
 * that cut again and again.  FTL_STRIDE: cut at one of so many events, in those
 * tests that do not cut at every event; some cut three times as often.  With
 * FTL_STRIDE=1, all of them cut at every event.
 *
 * Two tests also cut mounts: FTL_MOUNT_STRIDE is the stride of events of a
 * mount, and FTL_OUTER_STRIDE that of the events of the workload after which
 * these mounts begin.
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

/* How a sweep goes on after a cut. */
enum after_cut {
    AFTER_CUT_CHECK, /* mount, check, use, check after another cut */
    AFTER_CUT_MOUNT, /* cut again at every event of the mount */
};

struct sweep {
    enum after_cut after_cut;
    unsigned int stride;       /* cut at every event, or at each of so many */
    unsigned int mount_stride; /* the same, for events of mounts */
    bool with_failures;        /* some programs fail */
    bool stops;                /* the workload ends with a stop */
    uint32_t erase_failures;   /* one of so many fails, or none */
    unsigned int ways;         /* in which requests in progress are torn */
    uint64_t cuts;
    uint64_t mounts;
    uint64_t read_only; /* mounts after which the medium was read-only */
};

/* The stride of tests that cut three times as often as others. */
static unsigned int short_stride(void)
{
    return MAX((unsigned int)bed_setting("FTL_STRIDE", 9) / 3, 1U);
}

/* The stride of tests that cut less often than others, by this factor. */
static unsigned int long_stride(unsigned int factor)
{
    unsigned long stride = bed_setting("FTL_STRIDE", 9);

    return stride == 1 ? 1 : factor * (unsigned int)stride;
}

static void check_cut_mounts(struct bed *bed);

/* The power was cut: `bed` is what is left. */
static void check_cut(struct sweep *sweep, struct bed *bed, uint64_t seed)
{
    struct bed *again;

    sweep->cuts++;
    if (sweep->after_cut == AFTER_CUT_MOUNT) {
        bed->ctx = sweep;
        bed->after_event = check_cut_mounts;
        bed_mount(bed);
        bed->after_event = NULL;
        return;
    }
    bed_mount(bed);
    bed_check(bed);
    sweep->mounts++;
    sweep->read_only += ftl_is_read_only(bed->ftl);
    bed_use(bed, seed, 6);
    again = bed_cut(bed, seed);
    bed_mount(again);
    bed_check(again);
    sweep->mounts++;
    bed_free(again);
}

/* The power is cut while the flash is mounted. */
static void check_cut_mounts(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->events % sweep->mount_stride == 0) {
        struct bed *cut = bed_cut(bed, bed->events);

        bed_mount(cut);
        bed_check(cut);
        sweep->mounts++;
        bed_free(cut);
    }
}

static void cut_now(struct bed *bed)
{
    struct sweep *sweep = bed->ctx;

    if (bed->events % sweep->stride != 0) {
        return;
    }
    for (unsigned int way = 0; way < sweep->ways; way++) {
        uint64_t seed = random_mix(bed->events * sweep->ways + way);
        struct bed *cut = bed_cut(bed, seed);

        check_cut(sweep, cut, seed);
        bed_free(cut);
    }
}

/* Checkpoints that the workloads of this process have written, and superblocks
 * that they have erased. */
static uint64_t written_checkpoints, erased_superblocks;

/* Sweep one workload. */
static void sweep_workload(struct sweep *sweep, const struct bed_config *base,
                           uint64_t seed, unsigned int ops,
                           unsigned int ops_before)
{
    struct bed *bed = bed_new_seeded(base, seed);

    for (unsigned int i = 0; i < ops_before; i += 20) {
        bed_use(bed, seed + i, 20);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    if (sweep->with_failures) {
        fail_operations(bed, NAND_OP_PROGRAM, 0, 29);
    }
    if (sweep->erase_failures != 0) {
        fail_operations(bed, NAND_OP_ERASE, 0, sweep->erase_failures);
    }
    bed->ctx = sweep;
    bed->after_event = cut_now;
    bed_use(bed, ~seed, ops);
    bed_wait_all(bed);
    if (sweep->stops) {
        bed_flush(bed);
        bed_stop(bed);
    }
    bed->after_event = NULL;
    written_checkpoints += ftl_counters(bed->ftl)->checkpoints;
    erased_superblocks += ftl_counters(bed->ftl)->erasures;
    bed_check(bed);
    bed_free(bed);
}

static void report_sweep(const char *what, const struct sweep *sweep)
{
    print_message("%s: %lu cuts, %lu mounts after cuts\n", what,
                  (unsigned long)sweep->cuts, (unsigned long)sweep->mounts);
}

static void test_a_cut_at_every_event_loses_nothing_durable(void **state)
{
    struct sweep sweep = {.stride = 1, .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &bed_small, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 20), 0);
    }
    report_sweep("new flash", &sweep);
    assert_true(sweep.cuts > 60);
}

static void test_a_cut_of_stripes_with_parity_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = 1, .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 3;
    config.geometry.wordlines = 4;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 14), 120);
    }
    report_sweep("stripes with parity", &sweep);
    assert_true(sweep.cuts > 60);
}

static void test_a_cut_during_garbage_collection_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = 1, .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &bed_small, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 14), 120);
    }
    report_sweep("collected flash", &sweep);
    assert_true(sweep.cuts > 60);
}

/*
 * Sectors have metadata, and marks that make them unreadable.  The oracle knows
 * one number for all three, so it notices when one of them changes alone.
 */
static struct bed_config metadata_config(const struct bed_config *base)
{
    struct bed_config config = *base;

    config.has_metadata = true;
    config.has_marks = true;
    return config;
}

/* Sweep a workload with metadata without and with parity. */
static void sweep_metadata(struct sweep *sweep, struct bed_config config,
                           const char *what)
{
    unsigned long first = bed_setting("FTL_FIRST", 1);

    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        config.geometry.dies = 2;
        config.geometry.wordlines = 6;
        sweep_workload(sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
        config.geometry.dies = 3; /* with parity */
        config.geometry.wordlines = 4;
        sweep_workload(sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep(what, sweep);
    assert_true(sweep->cuts > 40);
}

static void test_data_metadata_and_marks_change_together_under_cuts(
    void **state)
{
    struct sweep sweep = {.stride = short_stride(), .ways = 1};

    (void)state;
    sweep_metadata(&sweep, metadata_config(&bed_small), "metadata and marks");
}

/* Every read and every write checks the protection information of its blocks,
 * and programs fail. */
static void test_protection_information_is_right_after_cuts_and_failures(
    void **state)
{
    struct sweep sweep = {
        .stride = short_stride(), .ways = 1, .with_failures = true};
    struct bed_config config = metadata_config(&bed_small);

    (void)state;
    config.pi_type = 1;
    sweep_metadata(&sweep, config, "protection information and failures");
}

/* The same with mounts that are cut. */
static void test_metadata_and_marks_survive_cuts_during_mounts(void **state)
{
    struct sweep sweep = {
        .after_cut = AFTER_CUT_MOUNT,
        .stride = (unsigned int)bed_setting("FTL_OUTER_STRIDE", 97),
        .mount_stride = (unsigned int)bed_setting("FTL_MOUNT_STRIDE", 53),
        .ways = 1,
    };
    struct bed_config config = metadata_config(&bed_small);

    (void)state;
    config.pi_type = 1;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &config, bed_setting("FTL_FIRST", 1) + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("metadata and marks, cuts during mounts", &sweep);
    assert_true(sweep.mounts > 10);
}

/* Older rows of a unit complete after newer ones, while superblocks are moved.
 */
static void test_a_cut_while_a_die_lags_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = long_stride(3), .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 2;
    config.dies_lag = true;
    config.rewrites_few = true;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("a die that lags", &sweep);
    assert_true(sweep.cuts > 10);
}

static void test_a_cut_after_programs_that_failed_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 9),
        .ways = 1,
        .with_failures = true,
    };
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &bed_small, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 60);
    }
    report_sweep("failed programs", &sweep);
    assert_true(sweep.cuts > 20);
}

static void test_a_cut_after_erasures_that_failed_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 9),
        .ways = 1,
        .erase_failures = 7,
    };
    unsigned long first = bed_setting("FTL_FIRST", 1);
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.blocks = 16;
    config.geometry.wordlines = 4;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("failed erasures", &sweep);
    assert_true(sweep.cuts > 20);
}

/* The medium is a small part of the flash: superblocks become empty, and are
 * erased although no space is needed. */
static void test_a_cut_while_empty_superblocks_are_erased_loses_nothing(
    void **state)
{
    struct sweep sweep = {
        .stride = short_stride(),
        .ways = 1,
    };
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    erased_superblocks = 0;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 2); i++) {
        struct bed_config config = bed_small;

        config.erases_early = true;
        config.logical_units = 12;
        config.geometry.blocks = 30;
        config.geometry.wordlines = 2;
        config.checkpoint_superblocks = (uint16_t)((first + i) % 2 * 4);
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 0);
    }
    report_sweep("empty superblocks", &sweep);
    assert_true(sweep.cuts > 20);
    assert_true(erased_superblocks != 0);
}

/* Some trims take many steps, and other operations go on meanwhile. */
static void test_a_cut_during_a_long_trim_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = short_stride(), .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);
    struct bed_config config = bed_small;

    (void)state;
    config.trims_per_step = 2;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 2); i++) {
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("long trims", &sweep);
    assert_true(sweep.cuts > 20);
}

/* Superblocks and rows are few, so checkpoints are frequent. */
static struct bed_config checkpoint_config(uint64_t seed)
{
    struct bed_config config = bed_small;

    config.checkpoint_superblocks = (uint16_t)(1 + seed % 3);
    config.geometry.blocks = (uint16_t)(14 + seed % 4);
    config.geometry.wordlines = 4;
    config.geometry.dies = (uint8_t)(2 + seed % 3);
    return config;
}

static void sweep_checkpoints(struct sweep *sweep, unsigned int ops,
                              const char *what)
{
    unsigned long first = bed_setting("FTL_FIRST", 1);

    written_checkpoints = 0;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        struct bed_config config = checkpoint_config(first + i);

        sweep_workload(sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", ops), 120);
    }
    report_sweep(what, sweep);
    assert_true(written_checkpoints != 0);
}

static void test_a_cut_while_checkpoints_are_written_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = short_stride(),
        .ways = 1,
        .stops = true,
    };

    (void)state;
    sweep_checkpoints(&sweep, 40, "checkpoints");
    assert_true(sweep.cuts > 20);
}

/* A mount that reads no unit with marks learns of them from the checkpoint. */
static void test_checkpoints_know_that_there_are_marks(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 9),
        .ways = 1,
        .stops = true,
    };
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    written_checkpoints = 0;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 2); i++) {
        struct bed_config config = checkpoint_config(first + i);

        config = metadata_config(&config);
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("checkpoints, metadata and marks", &sweep);
    assert_true(written_checkpoints != 0);
}

static void test_a_cut_while_a_checkpoint_is_loaded_loses_nothing(void **state)
{
    struct sweep sweep = {
        .after_cut = AFTER_CUT_MOUNT,
        .stride = (unsigned int)bed_setting("FTL_OUTER_STRIDE", 37),
        .mount_stride = (unsigned int)bed_setting("FTL_MOUNT_STRIDE", 53),
        .ways = 1,
        .stops = true,
    };

    (void)state;
    sweep_checkpoints(&sweep, 30, "cuts during mounts with checkpoints");
    assert_true(sweep.mounts > 20);
}

static void test_failures_while_checkpoints_are_written_lose_nothing(
    void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 9),
        .ways = 1,
        .stops = true,
        .with_failures = true,
        .erase_failures = 11,
    };

    (void)state;
    sweep_checkpoints(&sweep, 40, "checkpoints and failures");
    assert_true(sweep.cuts > 10);
}

/* All erasures fail, so the medium becomes read-only during the sweep. */
static void test_a_cut_at_the_end_of_life_loses_nothing(void **state)
{
    struct sweep sweep = {
        .stride = (unsigned int)bed_setting("FTL_STRIDE", 9),
        .ways = 1,
        .erase_failures = 1,
    };
    unsigned long first = bed_setting("FTL_FIRST", 1);
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.wordlines = 4;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &config, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 80), 100);
    }
    report_sweep("end of life", &sweep);
    assert_true(sweep.cuts > 10);
    assert_in_range(sweep.read_only, 1, sweep.cuts - 1);
}

static void test_a_cut_with_three_bits_per_cell_loses_nothing(void **state)
{
    static const struct bed_config tlc = {
        .profile = "tlc2021",
        .geometry = {.channels = 2,
                     .dies = 2,
                     .planes = 4,
                     .units = 4,
                     .pages = 3,
                     .blocks = 11,
                     .wordlines = 2},
        .logical_units = 200,
        .buffer_units = 100,
        .torn_units_vary = true,
    };
    struct sweep sweep = {.stride = long_stride(2), .ways = 1};
    unsigned long first = bed_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &tlc, first + i,
                       (unsigned int)bed_setting("FTL_OPS", 30), 40);
    }
    report_sweep("three bits per cell", &sweep);
    assert_true(sweep.cuts > 3);
}

static void test_a_cut_during_a_mount_loses_nothing(void **state)
{
    struct sweep sweep = {
        .after_cut = AFTER_CUT_MOUNT,
        .stride = (unsigned int)bed_setting("FTL_OUTER_STRIDE", 37),
        .mount_stride = (unsigned int)bed_setting("FTL_MOUNT_STRIDE", 53),
        .ways = 1,
    };

    (void)state;
    for (unsigned long i = 0; i < bed_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &bed_small, bed_setting("FTL_FIRST", 1) + i,
                       (unsigned int)bed_setting("FTL_OPS", 40), 120);
    }
    report_sweep("cuts during mounts", &sweep);
    assert_true(sweep.mounts > 30);
}

/*
 * Power fails again and again after a short time, so that a mount and the
 * collection after it never come to an end.
 */
static void test_cuts_after_cuts_use_up_no_space(void **state)
{
    struct bed_config config = bed_small;
    struct bed *bed;
    uint64_t random = 5;

    (void)state;
    config.logical_units = 0;
    config.torn_units_vary = false;
    bed = bed_new(&config);
    for (unsigned int i = 0; i < bed_setting("FTL_CUTS", 15); i++) {
        unsigned int steps = (unsigned int)(random_next(&random) % 400);
        struct bed *cut;

        bed_use(bed, random, (unsigned int)(random_next(&random) % 8));
        while (steps-- != 0 && bed_step(bed)) {
        }
        cut = bed_cut(bed, random);
        bed_free(bed);
        bed = cut;
        bed_mount(bed);
        bed_check(bed);
    }
    for (uint32_t i = 0; i < bed->units; i++) {
        bed_write(bed, i * 8, 8);
    }
    bed_flush(bed);
    bed_check(bed);
    bed_free(bed);
}

/*
 * The same, but power always fails before the mount has ended.  The copies that
 * it makes each time must not take more space.
 */
static void test_cuts_during_mounts_use_up_no_space(void **state)
{
    struct bed_config config = bed_small;
    struct bed *bed;
    uint64_t random = 9;

    (void)state;
    config.logical_units = 0;
    config.torn_units_vary = false;
    for (unsigned int round = 0; round < 4; round++) {
        struct bed *cut;

        bed = bed_new_seeded(&config, round);
        for (unsigned int i = 0; i < 10; i++) {
            bed_use(bed, random + i, 20);
            bed_wait_all(bed);
            bed_flush(bed);
        }
        for (unsigned int i = 0; i < bed_setting("FTL_CUTS", 15); i++) {
            uint64_t events = random_next(&random) % 600;

            cut = bed_cut(bed, random);
            bed_free(bed);
            bed = cut;
            bed_start_mount(bed);
            while (ftl_state(bed->ftl) == FTL_MOUNTING &&
                   bed->events < events) {
                assert_true(bed_step(bed));
            }
            assert_int_not_equal(ftl_state(bed->ftl), FTL_FAILED);
            assert_false(ftl_is_read_only(bed->ftl));
        }
        bed_mount(bed);
        assert_false(ftl_is_read_only(bed->ftl));
        bed_check(bed);
        bed_free(bed);
    }
}

/*
 * A mount has ended, and its copies are the last durable versions of some
 * units.  The same units are written again, and the power is cut before these
 * writes are durable.  If the next mount can read the newer versions at first,
 * and cannot read them later, it needs the copies.  The flash is so small that
 * few superblocks are free.
 */
static void test_copies_of_a_mount_are_kept_as_older_versions(void **state)
{
    struct bed_config config = bed_small;
    uint64_t torn_reads = 0;

    (void)state;
    config.geometry.dies = 4;
    config.geometry.wordlines = 1;
    config.geometry.blocks = 11;
    config.logical_units = 5;
    config.buffer_units = 8;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct bed *bed = bed_new_seeded(&config, seed);

        if (ftl_is_read_only(bed->ftl)) {
            bed_free(bed); /* Too many blocks are bad from the beginning. */
            continue;
        }
        bed_write(bed, 0, 32);
        bed_flush(bed);
        bed_cut_power(bed, seed, false);
        bed_mount(bed);
        bed_check(bed);
        (void)bed_submit_write(bed, 0, 32, true);
        for (uint64_t i = 0; i < 2 + seed % 10; i++) {
            (void)bed_step(bed);
        }
        bed_cut_power(bed, seed, false);
        bed_mount(bed);
        bed_check(bed);
        torn_reads += bed->torn_reads;
        bed_free(bed);
    }
    assert_true(torn_reads != 0);
}

/*
 * A mount programs copies, one of these rows fails, and then the mount begins
 * again because it cannot read a torn unit any longer.  Units of the row that
 * failed may be readable now, but not later, so they must not count.
 */
static void test_a_copy_that_failed_does_not_count_when_a_mount_begins_again(
    void **state)
{
    struct bed_config config = bed_small;

    (void)state;
    config.geometry.blocks = 14;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct bed *bed = bed_new_seeded(&config, seed);
        struct nand_injection failure =
            fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, (uint32_t)(seed % 3));

        bed_write(bed, 0, 64);
        bed_flush(bed);
        (void)bed_submit_write(bed, 0, 64, true);
        for (uint64_t i = 0; i < 2 + seed % 10; i++) {
            (void)bed_step(bed);
        }
        bed_cut_power(bed, seed, false);
        bed_start_mount(bed);
        inject_fault(bed, &failure);
        while (ftl_state(bed->ftl) == FTL_MOUNTING) {
            assert_true(bed_step(bed));
        }
        bed_check(bed);
        bed_settle(bed);
        for (uint64_t i = 0; i < 3; i++) {
            bed_cut_power(bed, seed + i, false);
            bed_mount(bed);
            bed_check(bed);
        }
        bed_free(bed);
    }
}

/*
 * A unit of a half programmed row may be readable at one mount and not at the
 * next one.
 */
static void test_what_was_read_after_a_cut_stays(void **state)
{
    uint64_t random = 2;

    (void)state;
    for (unsigned int round = 0; round < 12; round++) {
        struct bed *bed = bed_new_seeded(&bed_small, round);
        unsigned int steps;

        for (unsigned int i = 0; i < 24; i++) {
            bed_write(bed, i % 12 * 8, 8);
        }
        steps = (unsigned int)(random_next(&random) % 40);
        while (steps-- != 0 && bed_step(bed)) {
        }
        for (unsigned int i = 0; i < 6; i++) {
            struct bed *cut = bed_cut(bed, random_next(&random));

            cut->is_unknown = i == 0;
            bed_free(bed);
            bed = cut;
            bed_mount(bed);
            bed_check(bed);
        }
        bed_free(bed);
    }
}

/*
 * Units of a row that failed may be readable at one mount and not at the next,
 * also long after they were programmed again.
 */
static void test_rows_that_failed_do_not_come_back(void **state)
{
    uint64_t torn_reads = 0;

    (void)state;
    for (unsigned long i = 0; i < 20; i++) {
        struct bed_config config = bed_small;
        struct bed *bed;

        config.seed = 50 + i;
        config.geometry.blocks = 16;
        config.geometry.wordlines = 3;
        bed = bed_new(&config);
        for (uint32_t unit = 0; unit < bed->units; unit++) {
            bed_write(bed, unit * 8, 8);
        }
        fail_operations(bed, NAND_OP_PROGRAM, 0, 61);
        for (unsigned int j = 0; j < 8; j++) {
            bed_use(bed, config.seed + j, 40);
            bed_wait_all(bed);
            bed_flush(bed);
        }
        nand_array_clear_injections(bed->array);
        for (unsigned int j = 0; j < 6; j++) {
            for (unsigned int k = 0; k < 20; k++) {
                bed_write(bed, k % 2 * 8, 8);
                bed_flush(bed);
            }
            bed_settle(bed);
            bed_mount(bed);
            bed_check(bed);
        }
        torn_reads += bed->torn_reads;
        bed_free(bed);
    }
    assert_true(torn_reads != 0);
}

/* Mount while a fault waits. @return how that ended */
static enum ftl_state mount_with_fault(struct bed *bed)
{
    while (ftl_state(bed->ftl) == FTL_MOUNTING) {
        assert_true(bed_step(bed));
    }
    bed_settle(bed);
    bed->reads_until_error = 0;
    return ftl_state(bed->ftl);
}

/* What a power cut leaves after writes, trims and garbage collection. */
static struct bed *new_cut_bed(uint64_t seed, uint8_t dies)
{
    struct bed_config config = bed_small;
    struct bed *bed, *cut;

    config.seed = seed;
    config.torn_units_vary = false;
    config.geometry.dies = dies;
    bed = bed_new(&config);
    bed_use(bed, seed, 150);
    bed_wait_all(bed);
    bed_trim(bed, 0, 64);
    bed_flush(bed);
    bed_use(bed, ~seed, 4);
    cut = bed_cut(bed, seed);
    bed_free(bed);
    bed_mount(cut);
    bed_check(cut);
    bed_use(cut, seed, 10);
    return cut;
}

static void test_an_error_during_a_mount_loses_nothing(void **state)
{
    struct bed *bed = new_cut_bed(3, 2);
    unsigned int failed = 0;

    (void)state;
    for (uint32_t reads = 1;; reads++) {
        struct bed *cut = bed_cut(bed, 7);
        enum ftl_state end;

        bed_start_mount(cut);
        cut->reads_until_error = reads;
        end = mount_with_fault(cut);
        failed += end == FTL_FAILED;
        bed_mount(cut);
        bed_check(cut);
        bed_free(cut);
        if (end == FTL_READY) {
            break; /* It has read less than that. */
        }
    }
    assert_true(failed > 60);
    bed_free(bed);
}

static void test_a_drive_without_parity_does_not_start_with_a_dead_die(
    void **state)
{
    struct bed *bed = new_cut_bed(5, 2);
    struct bed *cut = bed_cut(bed, 7);

    (void)state;
    bed_start_mount(cut);
    inject_death(cut, NAND_OP_READ, 1, 5);
    assert_int_equal(mount_with_fault(cut), FTL_FAILED);
    bed_free(cut);
    bed_free(bed);
}
