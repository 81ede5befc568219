/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power cuts of the translation layer.  While a workload runs, its flash is
 * copied after every event (the end of a request to storage, the start or the
 * end of an operation of a die), as a power cut at this moment leaves it.  Each
 * copy is mounted, and the oracle checks what every unit contains.
 *
 * The environment varies what is swept: FTL_SEEDS workloads from number
 * FTL_FIRST, each with FTL_OPS operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/random.h"
#include "tests/unit/firmware/ftl/ftl_bed.h"

/* How a sweep goes on after a cut. */
enum after_cut {
    AFTER_CUT_CHECK, /* mount, check, use, check after another cut */
    AFTER_CUT_MOUNT, /* cut again at every event of the mount */
};

struct sweep {
    enum after_cut after_cut;
    unsigned int stride; /* cut at every event, or at each of so many */
    unsigned int ways;   /* in which requests in progress are torn */
    uint64_t cuts;
    uint64_t mounts;
};

static unsigned long read_setting(const char *name, unsigned long otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoul(text, NULL, 10);
}

static const struct bed_config small = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = 2,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 12,
                 .wordlines = 3},
    .logical_units = 36,
    .buffer_units = 12,
};

/* A few operations, and everything durable or not. */
static void use_medium(struct bed *bed, uint64_t seed, unsigned int ops)
{
    for (unsigned int i = 0; i < ops; i++) {
        uint64_t steps = random_next(&seed) % 30;

        bed_random_op(bed, &seed);
        while (steps-- != 0 && bed_step(bed)) {
        }
    }
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
    use_medium(bed, seed, 6);
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

    if (bed->events % sweep->stride == 0) {
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

/* Sweep one workload. */
static void sweep_workload(struct sweep *sweep, const struct bed_config *base,
                           uint64_t seed, unsigned int ops,
                           unsigned int ops_before)
{
    struct bed_config config = *base;
    struct bed *bed;

    config.seed = seed;
    bed = bed_new(&config);
    bed_mount(bed);
    for (unsigned int i = 0; i < ops_before; i += 20) {
        use_medium(bed, seed + i, 20);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    bed->ctx = sweep;
    bed->after_event = cut_now;
    use_medium(bed, ~seed, ops);
    bed_wait_all(bed);
    bed->after_event = NULL;
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
    unsigned long first = read_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < read_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &small, first + i,
                       (unsigned int)read_setting("FTL_OPS", 20), 0);
    }
    report_sweep("new flash", &sweep);
    assert_true(sweep.cuts > 60);
}

static void test_a_cut_during_garbage_collection_loses_nothing(void **state)
{
    struct sweep sweep = {.stride = 1, .ways = 1};
    unsigned long first = read_setting("FTL_FIRST", 1);

    (void)state;
    for (unsigned long i = 0; i < read_setting("FTL_SEEDS", 1); i++) {
        sweep_workload(&sweep, &small, first + i,
                       (unsigned int)read_setting("FTL_OPS", 14), 120);
    }
    report_sweep("collected flash", &sweep);
    assert_true(sweep.cuts > 60);
}

static void test_a_cut_during_a_mount_loses_nothing(void **state)
{
    struct sweep sweep = {
        .after_cut = AFTER_CUT_MOUNT, .stride = 37, .ways = 1};

    (void)state;
    sweep_workload(&sweep, &small, read_setting("FTL_FIRST", 1), 40, 120);
    report_sweep("cuts during mounts", &sweep);
    assert_true(sweep.mounts > 30);
}

/*
 * Power fails again and again after a short time, so that a mount and the
 * collection after it never come to an end.
 */
static void test_cuts_after_cuts_use_up_no_space(void **state)
{
    struct bed_config config = small;
    struct bed *bed;
    uint64_t random = 5;

    (void)state;
    config.logical_units = 0;
    bed = bed_new(&config);
    bed_mount(bed);
    for (unsigned int i = 0; i < read_setting("FTL_CUTS", 40); i++) {
        unsigned int steps = (unsigned int)(random_next(&random) % 400);
        struct bed *cut;

        use_medium(bed, random, (unsigned int)(random_next(&random) % 8));
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
