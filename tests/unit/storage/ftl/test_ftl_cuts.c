/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random power cuts of the translation layer.  A seed chooses a shape of the
 * flash and a workload.  The power is cut after a random number of events (the
 * end of a request to storage, the start or the end of an operation of a die),
 * also while the flash is being mounted after a cut, and while capacitors
 * supply the drive.  Some shapes are also reset with power on.  When a mount
 * has ended, the oracle checks what every unit contains, and the workload goes
 * on until the next cut.
 *
 * The environment says how long this takes: FTL_CUTS cuts, of shapes with the
 * numbers FTL_FIRST, FTL_FIRST + 1 and so on.  The number of each shape is
 * printed before its first cut, so the last number is that of a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "hw-model/nand/nand_errors.h"
#include "lib/random.h"
#include "tests/unit/storage/ftl/ftl_faults.h"

enum {
    CUTS_OF_SHAPE = 300,
    UNITS_MIN = 12,
    UNITS_MAX = 160, /* more would be slow, because all are checked */
    CUT_MOUNTS_MAX = 3,
    OPS = 20, /* between flushes */
};

struct totals {
    uint64_t shapes;
    uint64_t cuts;
    uint64_t mount_cuts;  /* of these, while the flash was mounted */
    uint64_t saved;       /* of these, after the buffer was saved */
    uint64_t save_cuts;   /* of these, while it was being saved */
    uint64_t resets;      /* beside the cuts: with power on */
    bool has_no_failures; /* no plane may be taken for a failed one */
};

struct shape {
    struct bed_config config;
    bool has_capacitors;
    bool has_resets;
    uint32_t program_failures; /* one of so many fails; 0: none */
    uint32_t erase_failures;
};

struct run {
    struct shape shape;
    struct bed *bed;
    struct totals *totals;
    uint64_t random;
    uint64_t cut_at; /* number of an event */
    uint32_t proof;  /* the start whose buffer was saved; 0: none */
    jmp_buf cut;     /* ends the workload */
};

/* A random number below `end`. */
static uint32_t draw_number(uint64_t *random, uint32_t end)
{
    return (uint32_t)(random_next(random) % end);
}

/* A random number of events: small and large ones. */
static uint64_t draw_events(uint64_t *random)
{
    return random_next(random) % (UINT64_C(4) << draw_number(random, 9));
}

/* ---- Shapes. */

struct part {
    const char *profile;
    uint8_t planes, units, pages;
    uint8_t wordlines_max;
};

/* Parts with small rows are more frequent: their mounts are short. */
static const struct part parts[] = {
    {"slc", 4, 1, 1, 8}, {"slc", 4, 1, 1, 8},     {"slc", 4, 1, 1, 8},
    {"slc", 4, 1, 1, 8}, {"mlc2d", 2, 4, 2, 4},   {"mlc2d", 2, 4, 2, 4},
    {"qlc", 4, 4, 4, 2}, {"tlc2021", 4, 4, 3, 2},
};

static void draw_geometry(struct bed_config *config, uint64_t *random)
{
    const struct part *part = &parts[draw_number(random, ARRAY_LEN(parts))];
    struct nand_geometry *geometry = &config->geometry;
    uint32_t dies;

    config->profile = part->profile;
    geometry->planes = part->planes;
    geometry->units = part->units;
    geometry->pages = part->pages;
    geometry->channels = (uint8_t)(1 + draw_number(random, 2));
    geometry->dies = (uint8_t)(1 + draw_number(random, 3));
    dies = nand_geometry_dies(geometry);
    geometry->wordlines = (uint16_t)(FTL_RESERVE_ROWS / dies + 1 +
                                     draw_number(random, part->wordlines_max));
    geometry->blocks =
        (uint16_t)(FTL_RESERVE + 3 +
                   draw_number(random, part->units > 1 ? 3 : 12));
}

/* The sizes that a translation layer on this flash can have. */
static uint32_t find_most_units(const struct bed_config *config,
                                uint32_t *most_saved)
{
    const struct nand_geometry *g = &config->geometry;
    uint32_t dies = nand_geometry_dies(g);
    uint8_t bad_planes[64 * BED_DIES_MAX] = {0};
    struct ftl_config ftl = {
        .geometry = {.dies = (uint16_t)dies,
                     .planes = g->planes,
                     .pages = g->pages,
                     .units = g->units,
                     .blocks = g->blocks,
                     .wordlines = g->wordlines},
        .bad_planes = bad_planes,
    };

    for (uint32_t i = 0; i < nand_geometry_blocks(g); i++) {
        uint32_t block = i % g->blocks, plane = i / g->blocks % g->planes;
        uint32_t die = i / g->blocks / g->planes;

        if (nand_is_factory_bad(
                nand_profile_find(config->profile), config->seed,
                nand_block_index(g, die / g->dies, die % g->dies, plane,
                                 block))) {
            bad_planes[block * dies + die] |= (uint8_t)BIT(plane);
        }
    }
    *most_saved = ftl_most_saved_units(&ftl);
    return ftl_most_units(&ftl);
}

static void draw_settings(struct bed_config *config, uint64_t *random)
{
    config->checkpoint_superblocks = (uint16_t)draw_number(random, 5);
    config->is_greedy = draw_number(random, 4) == 0;
    config->erases_early = draw_number(random, 2) == 0;
    config->torn_units_vary = draw_number(random, 2) == 0;
    config->dies_lag = draw_number(random, 4) == 0;
    config->rewrites_few = draw_number(random, 4) == 0;
    config->has_metadata = draw_number(random, 3) == 0;
    config->has_marks = draw_number(random, 3) == 0;
    config->queues_rows = (*random & 1) != 0;
    if (config->has_metadata) {
        config->pi_type = (uint8_t)draw_number(random, 3);
    }
    config->trims_per_step =
        draw_number(random, 3) == 0 ? 1 + draw_number(random, 8) : 0;
    config->wear_spread = 2 + draw_number(random, 20);
    config->chain =
        draw_number(random, 3) == 0 ? 1 + draw_number(random, 8) : 0;
    config->scrub_us = draw_number(random, 4) == 0 ? 1000 : 0;
}

static struct shape draw_shape(uint64_t number)
{
    struct shape shape = {.config = {.seed = number}};
    struct bed_config *config = &shape.config;
    uint64_t random = random_mix(number);
    uint32_t row_units, most, most_saved;

    do {
        draw_geometry(config, &random);
        most = find_most_units(config, &most_saved);
    } while (most < UNITS_MIN);
    most = MIN(most, (uint32_t)UNITS_MAX);
    config->logical_units =
        draw_number(&random, 2) == 0
            ? most
            : UNITS_MIN + draw_number(&random, most - UNITS_MIN + 1);
    row_units = (uint32_t)config->geometry.planes * config->geometry.units *
                config->geometry.pages;
    config->buffer_units =
        (uint16_t)(row_units * (2 + draw_number(&random, 4)));
    draw_settings(config, &random);
    shape.has_capacitors = draw_number(&random, 3) == 0;
    if (shape.has_capacitors) {
        config->buffer_units = (uint16_t)MAX(
            MIN((uint32_t)config->buffer_units, most_saved), 2 * row_units);
        shape.has_capacitors = config->buffer_units <= most_saved;
    }
    if (draw_number(&random, 5) == 0) {
        shape.program_failures = 40 + draw_number(&random, 200);
    }
    if (draw_number(&random, 8) == 0) {
        shape.erase_failures = 10 + draw_number(&random, 60);
    }
    shape.has_resets = draw_number(&random, 2) == 0;
    config->streams = number % 4 == 3 ? "by-cause" : NULL;
    return shape;
}

static void print_shape(const struct shape *shape)
{
    const struct bed_config *c = &shape->config;

    print_message("shape %lu: %s, %u channels, %u dies, %u blocks, %u "
                  "wordlines, %u units%s%s\n  repeat it with FTL_FIRST=%lu "
                  "FTL_CUTS=1\n",
                  (unsigned long)c->seed, c->profile, c->geometry.channels,
                  c->geometry.dies, c->geometry.blocks, c->geometry.wordlines,
                  c->logical_units, shape->has_capacitors ? ", capacitors" : "",
                  c->streams != NULL ? ", streams by cause" : "",
                  (unsigned long)c->seed);
    (void)fflush(stdout);
}

/* ---- Cuts. */

static void end_at_event(struct bed *bed)
{
    struct run *run = bed->ctx;

    if (bed->events >= run->cut_at) {
        longjmp(run->cut, 1);
    }
}

static void use_bed(struct run *run)
{
    struct bed *bed = run->bed;

    for (unsigned int i = 0; i < 40 && !ftl_is_read_only(bed->ftl); i++) {
        bed_use(bed, random_next(&run->random), OPS);
        if (draw_number(&run->random, 2) == 0) {
            bed_wait_all(bed);
        }
        (void)bed_submit_flush(bed);
        bed_wait_all(bed);
    }
}

/* Use the medium until a random event. */
static void use_until_cut(struct run *run)
{
    struct bed *bed = run->bed;

    if (run->shape.program_failures != 0) {
        fail_operations(bed, NAND_OP_PROGRAM, 0, run->shape.program_failures);
    }
    if (run->shape.erase_failures != 0) {
        fail_operations(bed, NAND_OP_ERASE, 0, run->shape.erase_failures);
    }
    run->cut_at = bed->events + 1 + draw_events(&run->random);
    bed->ctx = run;
    bed->after_event = end_at_event;
    if (setjmp(run->cut) == 0) {
        use_bed(run);
    }
    bed->after_event = NULL;
}

/* Save the buffer, perhaps until the capacitors fail. @return whether it is
 * saved */
static bool save_buffer(struct run *run)
{
    struct bed *bed = run->bed;
    bool is_failing = draw_number(&run->random, 3) == 0;
    uint64_t end =
        is_failing ? bed->events + draw_events(&run->random) : UINT64_MAX;

    ftl_power_fails(bed->ftl);
    while (!ftl_is_saved(bed->ftl)) {
        if (bed->events >= end) {
            run->totals->save_cuts++;
            return false;
        }
        assert_true(bed_step(bed));
    }
    run->totals->saved++;
    return true;
}

static void cut_power(struct run *run)
{
    bool is_saved = run->shape.has_capacitors && save_buffer(run);

    run->proof = is_saved ? run->bed->boot : 0;
    bed_cut_power(run->bed, random_next(&run->random), is_saved);
    run->totals->cuts++;
}

/* Mount, perhaps after some mounts that are cut. */
static void mount_bed(struct run *run)
{
    struct bed *bed = run->bed;
    uint32_t cuts = draw_number(&run->random, 2) == 0
                        ? 0
                        : 1 + draw_number(&run->random, CUT_MOUNTS_MAX);

    while (cuts-- != 0) {
        uint64_t end = bed->events + draw_events(&run->random);

        bed_start_mount(bed);
        while (ftl_state(bed->ftl) == FTL_MOUNTING && bed->events < end) {
            assert_true(bed_step(bed));
        }
        assert_int_not_equal(ftl_state(bed->ftl), FTL_FAILED);
        bed_cut_power(bed, random_next(&run->random), false);
        run->totals->cuts++;
        run->totals->mount_cuts++;
    }
    bed_mount(bed);
    if (run->proof != 0) {
        assert_true(ftl_was_saved(bed->ftl, run->proof));
    }
}

/*
 * The drive is reset with power on, also while it starts after a reset, and
 * adopts its write buffer.  Until the buffer is flushed, the power may not be
 * cut, because the oracle takes all that has ended for durable.
 */
static void reset_drive(struct run *run)
{
    struct bed *bed = run->bed;
    uint32_t resets = 1 + draw_number(&run->random, 3);

    bed_reset_drive(bed, random_next(&run->random));
    while (--resets != 0) {
        uint64_t end = bed->events + draw_events(&run->random);

        bed_start_mount(bed);
        while (ftl_state(bed->ftl) == FTL_MOUNTING && bed->events < end) {
            assert_true(bed_step(bed));
        }
        bed_reset_drive(bed, random_next(&run->random));
        run->totals->resets++;
    }
    bed_mount(bed);
    bed_check(bed);
    assert_int_equal(ftl_adopted(bed->ftl)->damaged, 0);
    assert_false(ftl_adopted(bed->ftl)->is_refused);
    if (!ftl_is_read_only(bed->ftl)) {
        bed_flush(bed);
    }
    run->totals->resets++;
}

static void run_shape(const struct shape *shape, struct totals *totals)
{
    struct run run = {
        .shape = *shape,
        .totals = totals,
        .random = random_mix(~shape->config.seed),
    };
    uint64_t end = totals->cuts + CUTS_OF_SHAPE;

    run.bed = bed_new(&run.shape.config);
    while (totals->cuts < end && !ftl_is_read_only(run.bed->ftl)) {
        if (shape->has_resets && draw_number(&run.random, 3) == 0) {
            use_until_cut(&run);
            reset_drive(&run);
        }
        use_until_cut(&run);
        cut_power(&run);
        mount_bed(&run);
        bed_check(run.bed);
        if (totals->has_no_failures) {
            assert_int_equal(ftl_failed_planes(run.bed->ftl), 0);
        }
    }
    bed_free(run.bed);
    totals->shapes++;
}

static void test_random_cuts_of_random_shapes_lose_nothing(void **state)
{
    uint64_t cuts = bed_setting("FTL_CUTS", 1000);
    uint64_t number = bed_setting("FTL_FIRST", 1);
    struct totals totals = {0};

    (void)state;
    while (totals.cuts < cuts) {
        struct shape shape = draw_shape(number++);

        print_shape(&shape);
        run_shape(&shape, &totals);
    }
    print_message(
        "%lu power cuts of %lu shapes: %lu while the flash was mounted, %lu "
        "after the buffer was saved, %lu while it was being saved; and %lu "
        "resets with power on\n",
        (unsigned long)totals.cuts, (unsigned long)totals.shapes,
        (unsigned long)totals.mount_cuts, (unsigned long)totals.saved,
        (unsigned long)totals.save_cuts, (unsigned long)totals.resets);
}

/* A cut while a checkpoint is written leaves torn rows of it, all of which have
 * the same number.  A sum of any of them looks like one of the others, and says
 * nothing about planes. */
static void test_cuts_in_checkpoints_fail_no_plane(void **state)
{
    static const uint64_t numbers[] = {5, 6};
    struct totals totals = {.has_no_failures = true};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct shape shape = draw_shape(numbers[i]);

        assert_int_equal(shape.program_failures + shape.erase_failures, 0);
        run_shape(&shape, &totals);
    }
}

/*
 * A plane could not be erased, so nothing in it can be read.  A mount begins to
 * program copies into this superblock, and then has to begin again, because it
 * cannot read a torn unit any longer.  The stripe with the plane is open then,
 * and the sum of its rows is in DRAM.  A unit that was not programmed yet must
 * not be rebuilt from it.
 */
static void test_open_stripes_when_a_mount_begins_again(void **state)
{
    struct shape shape = {
        .config = {.profile = "slc",
                   .geometry = {.channels = 2,
                                .dies = 3,
                                .planes = 4,
                                .units = 1,
                                .pages = 1,
                                .blocks = 16,
                                .wordlines = 1},
                   .logical_units = 40,
                   .buffer_units = 12,
                   .checkpoint_superblocks = 3,
                   .torn_units_vary = true},
        .erase_failures = 30,
    };
    struct totals totals = {0};

    (void)state;
    for (uint64_t seed = 1; seed <= bed_setting("FTL_SEEDS", 4); seed++) {
        shape.config.seed = seed;
        run_shape(&shape, &totals);
    }
    assert_true(totals.mount_cuts > 100);
}
