/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of several copies of a unit counts: copies that garbage collection has
 * made, and contents whose row has failed.
 */
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
    .logical_units = 110,
    .buffer_units = 24,
    .seed = 1,
};

/* ---- Garbage collections that a power cut interrupts. */

struct cuts {
    uint32_t *map; /* before the last event */
    uint32_t originals;
};

/* Whether a superblock is so old that a mount takes none of its rows for a torn
 * one. */
static bool is_old(const struct ftl *ftl, uint32_t superblock)
{
    uint64_t margin = 2 * FTL_SUSPECT_ROWS * ftl->layout.geometry.dies;

    return ftl->superblocks[superblock].last_row + margin <
           ftl->next_row_number;
}

/* Whether a copy of the unit has just taken the place of its original. */
static bool is_moved(const struct cuts *cuts, const struct ftl *ftl,
                     uint32_t unit)
{
    uint32_t before = cuts->map[unit];

    return !ftl_is_in_slot(before) && before != FTL_NOWHERE &&
           before != ftl->map[unit] && !ftl_is_in_slot(ftl->map[unit]) &&
           ftl->map[unit] != FTL_NOWHERE &&
           ftl_place_superblock(&ftl->layout, before) == ftl->collection.victim;
}

/* Cut the power after copies have become durable, before the erasure. */
static void check_originals(struct bed *bed)
{
    const struct ftl *ftl = bed->ftl;
    struct cuts *cuts = bed->ctx;
    struct bed *cut = NULL;

    if (ftl->collection.victim != FTL_NOWHERE &&
        is_old(ftl, ftl->collection.victim)) {
        for (uint32_t i = 0; i < bed->units; i++) {
            if (!is_moved(cuts, ftl, i)) {
                continue;
            }
            if (cut == NULL) {
                cut = bed_cut(bed, bed->events);
                bed_mount(cut);
            }
            assert_int_equal(cut->ftl->map[i], cuts->map[i]);
            cuts->originals++;
        }
    }
    if (cut != NULL) {
        bed_check(cut);
        bed_free(cut);
    }
    memcpy(cuts->map, ftl->map, bed->units * sizeof(cuts->map[0]));
}

/* So collections that power cuts interrupt again and again use up no space. */
static void test_after_a_cut_originals_count_and_not_their_copies(void **state)
{
    struct bed *bed = bed_new(&small);
    struct cuts cuts = {.originals = 0};

    (void)state;
    cuts.map = calloc(bed->units, sizeof(cuts.map[0]));
    assert_non_null(cuts.map);
    memset(cuts.map, 0xff, bed->units * sizeof(cuts.map[0]));
    bed->ctx = &cuts;
    bed->after_event = check_originals;
    for (unsigned int i = 0; i < 40 && cuts.originals < 60; i++) {
        bed_use(bed, i, 20);
        bed_wait_all(bed);
        bed_flush(bed);
    }
    assert_true(cuts.originals >= 60);
    bed->after_event = NULL;
    free(cuts.map);
    bed_free(bed);
}

/* ---- Rows that fail. */

/* A row of four units is in progress, and one of them is written again. */
static struct bed *new_rewritten(void)
{
    struct bed *bed = bed_new(&small);

    bed->held_dies = 3;
    for (uint32_t i = 0; i < 4; i++) {
        bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
    }
    bed_settle(bed);
    bed_write(bed, 0, BED_SECTORS);
    return bed;
}

/*
 * The other units of the row are trimmed.  If the row fails, the write must not
 * wait: otherwise one mount could find the contents of the failed row, and
 * another mount could not.
 */
static void test_newer_contents_than_those_of_a_failed_row_do_not_wait(
    void **state)
{
    struct nand_injection failure =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
    struct bed *bed = new_rewritten();

    (void)state;
    bed_trim(bed, BED_SECTORS, 3 * BED_SECTORS);
    bed_settle(bed);
    assert_true(ftl_is_in_slot(bed->ftl->map[0]));
    inject_fault(bed, &failure);
    bed->held_dies = 0;
    bed_settle(bed);
    assert_int_equal(ftl_counters(bed->ftl)->program_errors, 1);
    assert_false(ftl_is_in_slot(bed->ftl->map[0]));
    bed_check(bed);
    bed_free(bed);
}

/* Without a failure, the same write waits. */
static void test_newer_contents_than_those_of_a_good_row_wait(void **state)
{
    struct bed *bed = new_rewritten();

    (void)state;
    bed->held_dies = 0;
    bed_settle(bed);
    assert_true(ftl_is_in_slot(bed->ftl->map[0]));
    bed_free(bed);
}

struct failures {
    uint64_t seen;     /* rows that have failed */
    uint64_t accepted; /* what was accepted until then */
    uint32_t late;     /* events at which such contents wait */
};

static bool does_wait(const struct ftl *ftl, uint64_t accepted)
{
    for (unsigned int pool = FTL_POOL_HOST; pool <= FTL_POOL_TRIM; pool++) {
        uint16_t oldest = ftl->buffer.waiting[pool].head;

        if (pool != FTL_POOL_MOVE && oldest != FTL_LIST_END &&
            ftl->buffer.slots[oldest].accepted <= accepted) {
            return true;
        }
    }
    return false;
}

/* Count the events at which contents of a failed row wait although there is a
 * superblock that only they may take. */
static void check_failures(struct bed *bed)
{
    const struct ftl *ftl = bed->ftl;
    struct failures *failures = bed->ctx;

    if (ftl->counters.program_errors != failures->seen) {
        failures->seen = ftl->counters.program_errors;
        failures->accepted = ftl->accepted;
    }
    failures->late += failures->accepted != 0 &&
                      ftl->streams[FTL_HOST_STREAM].superblock == FTL_NOWHERE &&
                      ftl->free_superblocks > FTL_URGENT_LEAVES_FREE &&
                      does_wait(ftl, failures->accepted);
}

/* Whether the superblock for writes of hosts is nearly full, and no free
 * superblock may take its place. */
static bool is_space_short(const struct ftl *ftl)
{
    const struct ftl_stream *stream = &ftl->streams[FTL_HOST_STREAM];

    return ftl->free_superblocks <= FTL_HOST_LEAVES_FREE &&
           stream->superblock != FTL_NOWHERE &&
           stream->next_row + 2 >= ftl->layout.superblock_rows;
}

/* Overwrite a full medium, and let rows fail where this needs space most. */
static void overwrite_and_fail(struct bed *bed, uint64_t random)
{
    struct nand_injection failure =
        fault_once(NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);

    for (unsigned int i = 0; i < 3000; i++) {
        if (i % 50 == 0) {
            bed_flush(bed);
        }
        if (is_space_short(bed->ftl) &&
            ftl_counters(bed->ftl)->program_errors < 8) {
            failure.block =
                (int32_t)bed->ftl->streams[FTL_HOST_STREAM].superblock;
            nand_array_clear_injections(bed->array);
            inject_fault(bed, &failure);
        }
        bed_write(bed, random_next(&random) % bed->units * BED_SECTORS,
                  BED_SECTORS);
    }
}

/* Contents of a failed row may take one more of the free superblocks than other
 * contents of hosts. */
static void test_contents_of_a_failed_row_have_space_of_their_own(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        struct bed_config config = small;
        struct failures failures = {.late = 0};
        struct bed *bed;

        config.seed = seed;
        config.logical_units = 0;
        config.geometry.blocks = 24;
        config.geometry.wordlines = 16;
        bed = bed_new(&config);
        for (uint32_t i = 0; i < bed->units; i++) {
            bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
        }
        bed->ctx = &failures;
        bed->after_event = check_failures;
        overwrite_and_fail(bed, seed);
        bed->after_event = NULL;
        assert_true(failures.seen >= 8);
        assert_int_equal(failures.late, 0);
        bed_check(bed);
        bed_free(bed);
    }
}
