/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long urgent reads may delay the other commands of their die, and what
 * becomes of a suspended operation whose die dies.
 * Reference: docs/hardware/nand.md, section 4, "Order".
 */
#include "tests/native/nand_bed.h"

#include <stdlib.h>

#include "tests/test_fixture.h"

enum {
    PASSES_MAX = 16, /* urgent reads that pass a command that waits */
    STREAM = 2,      /* urgent reads that are always outstanding */
    LONG = 8,        /* slot of the operation that is suspended */
    OTHER = 9,       /* slots of other commands */
    LAST = 10,
};

static struct nand_bed *new_bed(const char *profile, bool is_realtime)
{
    struct nand_bed *bed = malloc(sizeof(*bed));

    assert_non_null(bed);
    nand_bed_init(bed, &(struct nand_bed_config){.profile = profile,
                                                 .channels = 1,
                                                 .dies = 1,
                                                 .blocks = 8,
                                                 .wordlines = 4,
                                                 .is_realtime = is_realtime});
    return bed;
}

static int setup(void **state)
{
    *state = new_bed("tlc2021", true);
    return 0;
}

/* Operations of this part take time and cannot be suspended. */
static int setup_mlc(void **state)
{
    *state = new_bed("mlc2d", true);
    return 0;
}

static int setup_fast(void **state)
{
    *state = new_bed("tlc2021", false);
    return 0;
}

static int teardown(void **state)
{
    struct nand_bed *bed = *state;

    nand_bed_end(bed);
    free(bed);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* Erase the first block of plane 0, from this one on, that can be erased. */
static struct nand_bed_place erased_block(struct nand_bed *bed, uint16_t from)
{
    struct nand_bed_place place = {.planes = 1, .block = from};

    for (;;) {
        nand_bed_erase(bed, 0, &place);
        if (nand_bed_wait_one(bed)->status == NAND_CQE_OK) {
            return place;
        }
        place.block++;
        assert_in_range(place.block, 1, 7);
    }
}

/* Two blocks: the first wordline of `read` can be read, and `change` is erased.
 */
static void prepare_blocks(struct nand_bed *bed, struct nand_bed_place *read,
                           struct nand_bed_place *change)
{
    *read = erased_block(bed, 0);
    *change = erased_block(bed, (uint16_t)(read->block + 1));
    nand_bed_program(bed, 0, read, 1);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    bed->num_done = 0;
}

static const struct nand_profile *tlc_part(void)
{
    return nand_profile_find("tlc2021");
}

/* The time between the end of an urgent read and that of the next one is at
 * most this, if the die does nothing else. */
static uint64_t longest_read_ns(void)
{
    return tlc_part()->suspend_ns + tlc_part()->resume_ns +
           2 * tlc_part()->command_ns + tlc_part()->native.read_ns[0] + 10000;
}

static bool is_done(const struct nand_bed *bed, uint64_t slot)
{
    for (unsigned int i = 0; i < bed->num_done; i++) {
        if (bed->done[i].cookie == slot) {
            return true;
        }
    }
    return false;
}

/*
 * Keep urgent reads of `place` outstanding until the command of a slot has
 * completed.
 * @return how many of them completed before it
 */
static unsigned int read_until_done(struct nand_bed *bed,
                                    const struct nand_bed_place *place,
                                    uint64_t slot)
{
    unsigned int reads = 0, seen = bed->num_done;

    for (unsigned int i = 0; i < STREAM; i++) {
        nand_bed_read(bed, i, place, 1, true);
    }
    for (;; seen++) {
        uint64_t cookie;

        if (seen == bed->num_done) {
            nand_bed_wait(bed, 1);
        }
        cookie = bed->done[seen].cookie;
        if (cookie == slot) {
            return reads;
        }
        if (cookie < STREAM) {
            assert_int_equal(bed->done[seen].status, NAND_CQE_OK);
            reads++;
            nand_bed_read(bed, (unsigned int)cookie, place, 1, true);
        }
    }
}

static void wait_for_all(struct nand_bed *bed)
{
    if (nand_outstanding(&bed->nand) != 0) {
        nand_bed_wait(bed, nand_outstanding(&bed->nand));
    }
}

/* A program or an erase that a stream of urgent reads delays as long as it may.
 */
static void expect_delay(struct nand_bed *bed, bool is_erase)
{
    uint64_t duration_ns =
        is_erase ? tlc_part()->native.erase_ns : tlc_part()->native.program_ns;
    struct nand_bed_place read, change;
    uint64_t begun_ns, took_ns;
    unsigned int reads;

    prepare_blocks(bed, &read, &change);
    if (is_erase) {
        nand_bed_erase(bed, LONG, &change);
    } else {
        nand_bed_program(bed, LONG, &change, 1);
    }
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 100000); /* until its data is transferred */
    begun_ns = bed->world.now_ns;
    reads = read_until_done(bed, &read, LONG);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_OK);
    took_ns = nand_bed_done(bed, LONG)->time_ns - begun_ns;
    print_message("%s: %lu us beside %u urgent reads, instead of %lu us\n",
                  is_erase ? "erase" : "program", took_ns / 1000, reads,
                  duration_ns / 1000);
    assert_in_range(took_ns, 2 * duration_ns - 100000 - longest_read_ns(),
                    2 * duration_ns + longest_read_ns());
    /* Until the limit, reads go on nearly as fast as without the operation. */
    assert_in_range(reads, duration_ns / longest_read_ns() - 1,
                    2 * duration_ns / tlc_part()->native.read_ns[0]);
    wait_for_all(bed); /* The reads do not wait for ever, either. */
}

static void test_nand_suspend_urgent_reads_delay_an_erase_only_for_a_time(
    void **state)
{
    expect_delay(*state, true);
}

static void test_nand_suspend_urgent_reads_delay_a_program_only_for_a_time(
    void **state)
{
    expect_delay(*state, false);
}

/* A read that comes when the limit is reached waits for the end. */
static void test_nand_suspend_an_operation_at_its_limit_is_not_suspended(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place read, change;
    uint64_t suspends;

    prepare_blocks(bed, &read, &change);
    nand_bed_program(bed, LONG, &change, 1);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 100000);
    for (unsigned int i = 0; !is_done(bed, LONG); i++) {
        suspends = nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS);
        nand_bed_read(bed, 0, &read, 1, true);
        nand_bed_wait(bed, 1);
        native_world_pass(&bed->world, tlc_part()->resume_ns + 1000);
        assert_in_range(i, 0, 40);
    }
    /* The last read has not suspended the program. */
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS),
                     suspends);
    assert_in_range(suspends, 5, 25);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_OK);
}

static void expect_passes(struct nand_bed *bed)
{
    struct nand_bed_place read, erase;
    unsigned int before = 0;

    prepare_blocks(bed, &read, &erase);
    nand_bed_erase(bed, LONG, &erase);
    for (unsigned int i = 0; i < 3 * PASSES_MAX; i++) {
        nand_bed_read(bed, LAST + i, &read, 1, true);
    }
    nand_bed_read(bed, OTHER, &read, 1, false);
    nand_bed_wait(bed, 3 * PASSES_MAX + 2);
    while (bed->done[before].cookie != LONG) {
        before++;
    }
    assert_int_equal(before, PASSES_MAX);
    assert_int_equal(bed->done[2 * PASSES_MAX + 1].cookie, OTHER);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_OK);
}

WITH_FIXTURE(setup_mlc, teardown)
static void test_nand_suspend_few_urgent_reads_pass_a_command(void **state)
{
    expect_passes(*state);
}

WITH_FIXTURE(setup_fast, teardown)
static void test_nand_suspend_few_urgent_reads_pass_a_command_without_time(
    void **state)
{
    expect_passes(*state);
}

/* Reads that are not urgent get their turn, too. */
WITH_FIXTURE(setup_fast, teardown)
static void test_nand_suspend_a_stream_of_urgent_reads_stops_no_command(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place read, erase;

    prepare_blocks(bed, &read, &erase);
    for (unsigned int i = 0; i < 3; i++) {
        nand_bed_erase(bed, LONG, &erase);
        assert_in_range(read_until_done(bed, &read, LONG), 0,
                        PASSES_MAX + STREAM);
        wait_for_all(bed);
    }
}

/* ---- Programs whose data waits in the cache register */

/* After PASSES_MAX urgent reads, the data of the second program stays there. */
static void test_nand_suspend_a_transferred_program_begins_after_some_reads(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place read, change;
    uint64_t begun_ns;

    prepare_blocks(bed, &read, &change);
    nand_bed_program(bed, LONG, &change, 1);
    change.wordline = 1;
    nand_bed_program(bed, LAST, &change, 2);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 500000);
    begun_ns = bed->world.now_ns;
    (void)read_until_done(bed, &read, LAST);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, LAST)->status, NAND_CQE_OK);
    assert_in_range(nand_bed_done(bed, LAST)->time_ns - begun_ns, 0,
                    4 * tlc_part()->native.program_ns +
                        (PASSES_MAX + 2) * longest_read_ns());
    wait_for_all(bed);
}

/*
 * After PASSES_MAX urgent reads, the second program goes to the cache register
 * for good.  When another urgent read then suspends the first program, the
 * second one has to wait: a die can suspend only one operation.
 */
static void test_nand_suspend_no_program_begins_while_another_is_suspended(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place read, first, second;

    prepare_blocks(bed, &read, &first);
    second = erased_block(bed, (uint16_t)(first.block + 1));
    bed->num_done = 0;
    nand_bed_program(bed, LONG, &first, 1);
    nand_bed_program(bed, OTHER, &second, 2);
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 200000); /* until both are transferred */
    for (unsigned int i = 0; i < PASSES_MAX; i++) {
        nand_bed_read(bed, LAST + i, &read, 1, true);
    }
    nand_bed_wait(bed, PASSES_MAX);
    assert_false(is_done(bed, LONG));
    native_world_pass(&bed->world, 100000); /* until it is transferred again */
    nand_bed_read(bed, LAST, &read, 1, true);
    nand_bed_wait(bed, 3);
    assert_int_equal(bed->done[PASSES_MAX].cookie, LAST);
    assert_int_equal(bed->done[PASSES_MAX + 1].cookie, LONG);
    assert_int_equal(bed->done[PASSES_MAX + 2].cookie, OTHER);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, OTHER)->status, NAND_CQE_OK);
}

/* ---- Death */

static void kill_at_read(struct nand_bed *bed)
{
    const struct nand_injection death = {
        .kind = NAND_OP_READ,
        .effect = NAND_EFFECT_DIE,
        .plane = NAND_ANYWHERE,
        .block = NAND_ANYWHERE,
        .wordline = NAND_ANYWHERE,
        .page = NAND_ANYWHERE,
        .unit = NAND_ANYWHERE,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS},
    };

    assert_true(nand_array_inject(bed->machine.nand->array, &death));
}

/* The read that suspends the operation finds the die dead. */
static void expect_death(bool is_erase)
{
    struct nand_bed *bed = new_bed("tlc2021", true);
    struct nand_bed_place read, change;
    uint64_t erased, units, now_ns;

    prepare_blocks(bed, &read, &change);
    erased = nand_counter_read(&bed->nand, NAND_COUNT_BLOCKS_ERASED);
    units = nand_counter_read(&bed->nand, NAND_COUNT_UNITS_PROGRAMMED);
    if (is_erase) {
        nand_bed_erase(bed, LONG, &change);
    } else {
        nand_bed_program(bed, LONG, &change, 1);
    }
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, 300000);
    now_ns = bed->world.now_ns;
    kill_at_read(bed);
    nand_bed_read(bed, OTHER, &read, 1, true);
    nand_bed_wait(bed, 2);
    assert_int_equal(nand_bed_done(bed, OTHER)->status, NAND_CQE_DEAD);
    assert_int_equal(nand_bed_done(bed, LONG)->status, NAND_CQE_DEAD);
    /* A dead die does not go on for the rest of the time. */
    assert_in_range(bed->world.now_ns - now_ns, 0, longest_read_ns());
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_BLOCKS_ERASED),
                     erased);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_UNITS_PROGRAMMED),
                     units);
    nand_bed_end(bed);
    free(bed);
}

WITH_FIXTURE(NULL, NULL)
static void test_nand_suspend_a_suspended_operation_dies_with_its_die(
    void **state)
{
    (void)state;
    expect_death(true);
    expect_death(false);
}

/* ---- Modes */

static void test_nand_suspend_an_erase_of_both_modes_takes_the_longer_time(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place slc = {.planes = 1, .slc = true};
    struct nand_bed_place both = {.planes = 3};
    uint64_t began_ns;

    for (;;) { /* until a block that is good in both planes */
        nand_bed_erase(bed, 0, &both);
        if (nand_bed_wait_one(bed)->status == NAND_CQE_OK) {
            break;
        }
        both.block++;
        assert_in_range(both.block, 1, 7);
    }
    slc.block = both.block;
    nand_bed_erase(bed, 0, &slc);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    began_ns = bed->world.now_ns;
    nand_bed_erase(bed, 0, &both); /* plane 0 is in SLC mode, plane 1 is not */
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, 0)->time_ns - began_ns,
                     2 * tlc_part()->command_ns + tlc_part()->native.erase_ns);
    slc.planes = 3;
    nand_bed_erase(bed, 0, &slc);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    began_ns = bed->world.now_ns;
    nand_bed_erase(bed, 0, &both); /* Both are in SLC mode. */
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, 0)->time_ns - began_ns,
                     2 * tlc_part()->command_ns + tlc_part()->slc.erase_ns);
}
