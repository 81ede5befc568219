/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Garbage collection must keep all dies busy, because the time that it takes is
 * that of its operations divided by the number of dies that work.
 *
 * Time is counted in rounds.  In a round, each die executes one operation if
 * it has any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/ftl/state.h"
#include "storage/ftl/space/space.h"
#include "tests/unit/storage/ftl/ftl_bed.h"

enum { DIES = 8, ROUNDS_MAX = 10000 };

static const struct bed_config config = {
    .profile = "slc",
    .geometry = {.channels = 1,
                 .dies = DIES,
                 .planes = 4,
                 .units = 1,
                 .pages = 1,
                 .blocks = 16,
                 .wordlines = 8},
    .logical_units = 1500,
    .buffer_units = 64,
    .num_requests = 64,
    .seed = 3,
};

/* Let a die execute its next operation. @return false when it has none */
static bool execute_one(struct bed *bed, unsigned int die)
{
    const struct bed_die *at = &bed->dies[die];
    uint32_t before = at->head;

    if (at->head == at->tail) {
        return false;
    }
    bed->held_dies = (uint8_t)~BIT(die);
    while (at->head == before) {
        assert_true(bed_step(bed));
    }
    return true;
}

/* @return how many dies have executed an operation */
static unsigned int execute_round(struct bed *bed)
{
    unsigned int busy = 0;

    bed->held_dies = BIT(DIES) - 1;
    bed_settle(bed);
    for (unsigned int die = 0; die < DIES; die++) {
        busy += execute_one(bed, die);
    }
    return busy;
}

static struct bed *new_full(void)
{
    struct bed *bed = bed_new(&config);

    for (uint32_t i = 0; i < bed->units; i++) {
        bed_write(bed, (uint64_t)i * BED_SECTORS, BED_SECTORS);
    }
    bed_flush(bed);
    bed_settle(bed);
    return bed;
}

static void test_garbage_collection_keeps_all_dies_busy(void **state)
{
    struct bed *bed = new_full();
    unsigned int operations = 0, rounds = 0, busy;

    (void)state;
    for (uint32_t i = 0; i < config.geometry.blocks; i++) {
        if (bed->ftl->superblocks[i].valid != 0) {
            ftl_due_move_soon(&bed->ftl->space_floor, i, FTL_CAUSE_LEVEL);
        }
    }
    bed->ftl->has_work = true;
    while ((busy = execute_round(bed)) != 0) {
        operations += busy;
        rounds++;
        assert_true(rounds < ROUNDS_MAX);
    }
    print_message("%u operations in %u rounds of %u dies\n", operations, rounds,
                  DIES);
    assert_true(ftl_counters(bed->ftl)->moved_units > config.logical_units / 2);
    assert_true(operations * 4 >= rounds * DIES * 3);
    bed->held_dies = 0;
    bed_check(bed);
    bed_free(bed);
}
