/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache operations of the NAND flash: transfers that overlap reads and programs
 * of the same die, and what happens when both registers of a die are in use.
 * The times are those of docs/hardware/nand.md, section 6.
 */
#include "tests/native/nand_bed.h"

#include <stdlib.h>

#include "tests/test_fixture.h"

static struct nand_bed *new_bed(const char *profile)
{
    struct nand_bed *bed = malloc(sizeof(*bed));

    assert_non_null(bed);
    nand_bed_init(bed, &(struct nand_bed_config){.profile = profile,
                                                 .channels = 1,
                                                 .dies = 2,
                                                 .blocks = 8,
                                                 .wordlines = 4,
                                                 .is_realtime = true});
    return bed;
}

static int setup(void **state)
{
    *state = new_bed("tlc2021");
    return 0;
}

static int setup_mlc(void **state)
{
    *state = new_bed("mlc2d");
    return 0;
}

static int setup_slc(void **state)
{
    *state = new_bed("slc");
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

/* Erase blocks of plane 0 of a die up to the n-th one that can be erased. */
static struct nand_bed_place erased_block(struct nand_bed *bed, uint8_t die,
                                          unsigned int n)
{
    struct nand_bed_place place = {.die = die, .planes = 1};

    for (;;) {
        nand_bed_erase(bed, 0, &place);
        if (nand_bed_wait_one(bed)->status == NAND_CQE_OK && n-- == 0) {
            return place;
        }
        place.block++;
        assert_in_range(place.block, 1, 7);
    }
}

static struct nand_bed_place wordline_of(struct nand_bed_place place,
                                         uint16_t wordline)
{
    place.wordline = wordline;
    return place;
}

/* Program the first wordlines of a block; wordline i has version i + 1. */
static void program_wordlines(struct nand_bed *bed, struct nand_bed_place place,
                              uint16_t count)
{
    for (place.wordline = 0; place.wordline < count; place.wordline++) {
        nand_bed_program(bed, 0, &place, place.wordline + 1u);
        assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    }
}

/* ---- Times */

static const struct nand_profile *part_of(const struct nand_bed *bed)
{
    return nand_profile_find(bed->config.profile);
}

static uint64_t transfer_ns(const struct nand_bed *bed, unsigned int units)
{
    const struct nand_profile *part = part_of(bed);

    return (uint64_t)units * (NAND_DATA_LEN + part->spare_bytes / part->units) *
           1000 / part->channel_mbps;
}

/* The time for which a PROGRAM of one plane occupies the channel. */
static uint64_t input_ns(const struct nand_bed *bed)
{
    const struct nand_profile *part = part_of(bed);

    return (uint64_t)part->native.pages * part->command_ns +
           transfer_ns(bed, (unsigned int)part->native.pages * part->units);
}

static uint64_t program_ns(const struct nand_bed *bed)
{
    return part_of(bed)->native.program_ns;
}

static uint64_t read_ns(const struct nand_bed *bed)
{
    return part_of(bed)->native.read_ns[0];
}

static uint64_t command_ns(const struct nand_bed *bed)
{
    return part_of(bed)->command_ns;
}

static void pass_virtual_time(struct nand_bed *bed, uint64_t ns)
{
    nand_kick(&bed->nand);
    native_world_pass(&bed->world, ns);
}

/* Wait for the commands of slots 0 to count - 1, and check when they ended. */
static void expect_ends(struct nand_bed *bed, uint64_t started_ns,
                        const uint64_t *ends_ns, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        const struct nand_done *done = nand_bed_done(bed, i);

        assert_int_equal(done->status, NAND_CQE_OK);
        assert_int_equal(done->time_ns - started_ns, ends_ns[i]);
    }
}

static void test_nand_cache_a_program_is_transferred_while_another_one_runs(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t started_ns = bed->world.now_ns;

    for (uint16_t i = 0; i < 3; i++) {
        struct nand_bed_place at = wordline_of(place, i);

        nand_bed_program(bed, i, &at, i + 1u);
    }
    nand_bed_wait(bed, 3);
    expect_ends(bed, started_ns,
                (uint64_t[]){in + program, in + 2 * program, in + 3 * program},
                3);
    for (uint16_t i = 0; i < 3; i++) {
        struct nand_bed_place at = wordline_of(place, i);

        nand_bed_read(bed, 9, &at, 12, false);
        assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
        nand_bed_expect(bed, 9, &at, 12, i + 1u);
    }
}

/* The data waits while the registers are copied, and no longer. */
static void test_nand_cache_a_program_that_comes_late_is_transferred_at_once(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place second = wordline_of(place, 1);
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t started_ns = bed->world.now_ns;

    nand_bed_program(bed, 0, &place, 1);
    pass_virtual_time(bed, in + program - in / 2);
    nand_bed_program(bed, 1, &second, 2);
    nand_bed_wait(bed, 2);
    expect_ends(
        bed, started_ns,
        (uint64_t[]){in + program, in + program - in / 2 + in + program}, 2);
}

static void test_nand_cache_programs_of_two_dies_share_the_channel(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place places[2] = {erased_block(bed, 0, 0),
                                       erased_block(bed, 1, 0)};
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t started_ns = bed->world.now_ns;

    for (unsigned int i = 0; i < 4; i++) {
        struct nand_bed_place at =
            wordline_of(places[i % 2], (uint16_t)(i / 2));

        nand_bed_program(bed, i, &at, i);
    }
    nand_bed_wait(bed, 4);
    expect_ends(bed, started_ns,
                (uint64_t[]){in + program, 2 * in + program, in + 2 * program,
                             2 * in + 2 * program},
                4);
}

/* While the registers are copied, the channel is free for another die. */
static void test_nand_cache_a_copy_for_a_program_takes_its_time(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place second = wordline_of(place, 1);
    struct nand_bed_place other = erased_block(bed, 1, 0);
    uint64_t in = input_ns(bed), copy = part_of(bed)->program_copy_ns;
    uint64_t came_ns;

    program_wordlines(bed, other, 1);
    nand_bed_program(bed, 0, &place, 1);
    nand_bed_program(bed, 1, &second, 2);
    pass_virtual_time(bed, in + copy / 2);
    came_ns = bed->world.now_ns;
    assert_true(command_ns(bed) < copy / 2 && read_ns(bed) > in);
    nand_bed_read(bed, 2, &other, 1, false);
    nand_bed_wait(bed, 3);
    assert_int_equal(nand_bed_done(bed, 2)->time_ns - came_ns,
                     command_ns(bed) + read_ns(bed) + transfer_ns(bed, 1) +
                         part_of(bed)->decode_ns);
}

static void test_nand_cache_a_page_is_read_while_another_one_is_sent(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    uint64_t copy = part_of(bed)->read_copy_ns, out = transfer_ns(bed, 1);
    uint64_t begin = command_ns(bed), read = read_ns(bed), started_ns;
    uint64_t decode = part_of(bed)->decode_ns, first, second, third;

    program_wordlines(bed, place, 3);
    started_ns = bed->world.now_ns;
    for (uint16_t i = 0; i < 3; i++) {
        struct nand_bed_place at = wordline_of(place, i);

        nand_bed_read(bed, i, &at, 1, false);
    }
    nand_bed_wait(bed, 3);
    /* A read consists of: command, read, next command, copy.  Then the next
     * read begins. */
    first = begin + read + begin + copy;
    second = first + read + begin + copy;
    third = second + read + copy;
    expect_ends(bed, started_ns,
                (uint64_t[]){first + out + decode, second + out + decode,
                             third + out + decode},
                3);
    for (uint16_t i = 0; i < 3; i++) {
        nand_bed_expect(bed, i, &place, 1, i + 1u);
    }
}

/* If a transfer takes longer than the read, the next page waits for the
 * transfer. */
WITH_FIXTURE(setup_mlc, teardown)
static void test_nand_cache_a_read_page_waits_until_the_last_one_was_sent(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    uint64_t copy = part_of(bed)->read_copy_ns, out = transfer_ns(bed, 4);
    uint64_t begin = command_ns(bed), read = read_ns(bed), started_ns;
    uint64_t decode = part_of(bed)->decode_ns, first, second;

    program_wordlines(bed, place, 3);
    assert_true(out > read);
    started_ns = bed->world.now_ns;
    for (uint16_t i = 0; i < 3; i++) {
        struct nand_bed_place at = wordline_of(place, i);

        nand_bed_read(bed, i, &at, 4, false);
    }
    nand_bed_wait(bed, 3);
    first = begin + read + begin + copy + out;
    second = first + begin + copy + out;
    expect_ends(bed, started_ns,
                (uint64_t[]){first + decode, second + decode,
                             second + copy + out + decode},
                3);
}

static void test_nand_cache_reads_of_two_dies_share_the_channel(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place places[2] = {erased_block(bed, 0, 0),
                                       erased_block(bed, 1, 0)};
    uint64_t copy = part_of(bed)->read_copy_ns, out = transfer_ns(bed, 4);
    uint64_t begin = command_ns(bed), read = read_ns(bed), started_ns;
    uint64_t decode = part_of(bed)->decode_ns, base;

    program_wordlines(bed, places[0], 2);
    program_wordlines(bed, places[1], 2);
    started_ns = bed->world.now_ns;
    for (unsigned int i = 0; i < 4; i++) {
        struct nand_bed_place at =
            wordline_of(places[i % 2], (uint16_t)(i / 2));

        nand_bed_read(bed, i, &at, 4, false);
    }
    nand_bed_wait(bed, 4);
    /* The second die is one command later; so it copies while the first one
     * sends, and sends directly afterwards. */
    base = begin + read + begin + copy;
    expect_ends(bed, started_ns,
                (uint64_t[]){base + out + decode, base + 2 * out + decode,
                             base + read + copy + out + decode,
                             base + read + copy + 2 * out + decode},
                4);
}

static void test_nand_cache_other_commands_wait_for_both_registers(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place other = erased_block(bed, 0, 1);
    struct nand_bed_place second = wordline_of(place, 1);
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t one = command_ns(bed) + read_ns(bed) + transfer_ns(bed, 1);
    uint64_t erase = command_ns(bed) + part_of(bed)->native.erase_ns;
    uint64_t decode = part_of(bed)->decode_ns;
    uint64_t started_ns = bed->world.now_ns;

    nand_bed_program(bed, 0, &place, 1);
    nand_bed_erase(bed, 1, &other);
    nand_bed_program(bed, 2, &second, 2);
    nand_bed_read(bed, 3, &place, 1, false);
    nand_bed_program(bed, 4, &other, 3);
    nand_bed_read(bed, 5, &place, 1, false);
    nand_bed_erase(bed, 6, &other);
    nand_bed_wait(bed, 7);
    expect_ends(bed, started_ns,
                (uint64_t[]){in + program, in + program + erase,
                             2 * (in + program) + erase,
                             2 * (in + program) + erase + one + decode,
                             3 * (in + program) + erase + one,
                             3 * (in + program) + erase + 2 * one + decode,
                             3 * (in + program) + 2 * erase + 2 * one},
                7);
}

WITH_FIXTURE(setup_slc, teardown)
static void test_nand_cache_a_part_without_cache_operations_overlaps_nothing(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t one = command_ns(bed) + read_ns(bed) + transfer_ns(bed, 1);
    uint64_t started_ns = bed->world.now_ns;

    for (uint16_t i = 0; i < 4; i++) {
        struct nand_bed_place at = wordline_of(place, i % 2);

        if (i < 2) {
            nand_bed_program(bed, i, &at, i);
        } else {
            nand_bed_read(bed, i, &at, 1, false);
        }
    }
    nand_bed_wait(bed, 4);
    expect_ends(
        bed, started_ns,
        (uint64_t[]){in + program, 2 * (in + program),
                     2 * (in + program) + one + part_of(bed)->decode_ns,
                     2 * (in + program) + 2 * one + part_of(bed)->decode_ns},
        4);
}

/* ---- Suspension */

/* Program wordlines 1 and 2 of a block, and after `ns` begin an urgent read of
 * wordline 0 of another block.  @return the time at which the read begins to
 * wait */
static uint64_t program_two_and_read(struct nand_bed *bed,
                                     struct nand_bed_place block,
                                     struct nand_bed_place other, uint64_t ns)
{
    struct nand_bed_place first = wordline_of(block, 1);
    struct nand_bed_place second = wordline_of(block, 2);

    program_wordlines(bed, block, 1);
    program_wordlines(bed, other, 1);
    nand_bed_program(bed, 0, &first, 5);
    nand_bed_program(bed, 1, &second, 6);
    pass_virtual_time(bed, ns);
    nand_bed_read(bed, 2, &other, 1, true);
    return bed->world.now_ns;
}

static void expect_wordline(struct nand_bed *bed, struct nand_bed_place block,
                            uint16_t wordline, uint32_t version)
{
    struct nand_bed_place at = wordline_of(block, wordline);
    unsigned int units = nand_bed_units(bed, &at);

    nand_bed_read(bed, 9, &at, units, false);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_OK);
    nand_bed_expect(bed, 9, &at, units, version);
}

static void test_nand_cache_a_suspension_takes_both_registers(void **state)
{
    struct nand_bed *bed = *state;
    uint64_t in = input_ns(bed), program = program_ns(bed);
    /* At the first moment, the second program is being transferred; at the
     * second one, it has been transferred. */
    const uint64_t moments[] = {in + 10000, 3 * in};

    for (unsigned int i = 0; i < ARRAY_LEN(moments); i++) {
        struct nand_bed_place block = erased_block(bed, 0, 0);
        struct nand_bed_place other = erased_block(bed, 0, 1);
        uint64_t came_ns = program_two_and_read(bed, block, other, moments[i]);
        uint64_t started_ns = came_ns - moments[i];
        uint64_t taken_ns = command_ns(bed) + part_of(bed)->suspend_ns +
                            read_ns(bed) + transfer_ns(bed, 1);

        nand_bed_wait(bed, 3);
        assert_int_equal(nand_bed_done(bed, 2)->time_ns - came_ns,
                         taken_ns + part_of(bed)->decode_ns);
        taken_ns += part_of(bed)->resume_ns;
        assert_int_equal(nand_bed_done(bed, 0)->time_ns - started_ns,
                         in + program + taken_ns);
        /* The second program was transferred again while the first one went on.
         */
        assert_int_equal(nand_bed_done(bed, 1)->time_ns - started_ns,
                         in + 2 * program + taken_ns);
        assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS),
                         i + 1);
        expect_wordline(bed, block, 1, 5);
        expect_wordline(bed, block, 2, 6);
    }
}

WITH_FIXTURE(setup_mlc, teardown)
static void
test_nand_cache_an_urgent_read_passes_a_program_that_was_transferred(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place block = erased_block(bed, 0, 0);
    struct nand_bed_place other = erased_block(bed, 0, 1);
    uint64_t in = input_ns(bed), program = program_ns(bed);
    uint64_t came_ns = program_two_and_read(bed, block, other, 3 * in);
    uint64_t started_ns = came_ns - 3 * in;
    uint64_t one = command_ns(bed) + read_ns(bed) + transfer_ns(bed, 1);

    nand_bed_wait(bed, 3);
    assert_int_equal(nand_counter_read(&bed->nand, NAND_COUNT_SUSPENDS), 0);
    assert_int_equal(nand_bed_done(bed, 0)->time_ns - started_ns, in + program);
    assert_int_equal(nand_bed_done(bed, 2)->time_ns - started_ns,
                     in + program + one + part_of(bed)->decode_ns);
    assert_int_equal(nand_bed_done(bed, 1)->time_ns - started_ns,
                     in + program + one + in + program);
    expect_wordline(bed, block, 2, 6);
}

/* ---- Faults: each command has its own status */

static void inject_fault(struct nand_bed *bed, uint8_t kind, uint8_t effect,
                         uint32_t after)
{
    const struct nand_injection injection = {
        .kind = kind,
        .effect = effect,
        .plane = NAND_ANYWHERE,
        .block = NAND_ANYWHERE,
        .wordline = NAND_ANYWHERE,
        .page = NAND_ANYWHERE,
        .unit = NAND_ANYWHERE,
        .trigger = {.after = after, .times = 1, .chance = FAULT_CHANCE_ALWAYS},
    };

    assert_true(nand_array_inject(bed->machine.nand->array, &injection));
}

/* Which of three programs of different blocks fails, and how. */
static void test_nand_cache_each_program_has_its_own_status(void **state)
{
    static const struct {
        uint8_t effect;
        uint8_t status;
    } faults[] = {{NAND_EFFECT_FAIL, NAND_CQE_FAILED},
                  {NAND_EFFECT_TRANSFER, NAND_CQE_TRANSFER}};
    struct nand_bed *bed = *state;

    for (unsigned int i = 0; i < 3 * ARRAY_LEN(faults); i++) {
        struct nand_bed_place places[3];

        for (unsigned int n = 0; n < 3; n++) {
            places[n] = erased_block(bed, 0, n);
        }
        inject_fault(bed, NAND_OP_PROGRAM, faults[i / 3].effect, i % 3);
        for (unsigned int n = 0; n < 3; n++) {
            nand_bed_program(bed, n, &places[n], n);
        }
        bed->num_done = 0;
        nand_bed_wait(bed, 3);
        for (unsigned int n = 0; n < 3; n++) {
            assert_int_equal(bed->done[n].cookie, n);
            assert_int_equal(bed->done[n].status,
                             n == i % 3 ? faults[i / 3].status : NAND_CQE_OK);
            if (n != i % 3) {
                expect_wordline(bed, places[n], 0, n);
            }
        }
        nand_array_clear_injections(bed->machine.nand->array);
    }
}

/* The next wordline of the block was transferred before the failure was known.
 */
static void test_nand_cache_a_program_after_a_failed_one_breaks_a_rule(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);
    struct nand_bed_place second = wordline_of(place, 1);

    inject_fault(bed, NAND_OP_PROGRAM, NAND_EFFECT_FAIL, 0);
    nand_bed_program(bed, 0, &place, 1);
    nand_bed_program(bed, 1, &second, 2);
    nand_bed_wait(bed, 2);
    assert_int_equal(nand_bed_done(bed, 0)->status, NAND_CQE_FAILED);
    assert_int_equal(nand_bed_done(bed, 1)->status, NAND_CQE_RULE);
    assert_int_equal(nand_bed_done(bed, 1)->rule, 1);
    nand_bed_read(bed, 9, &second, 1, false);
    assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_ERASED);
}

static uint8_t status_of_program(struct nand_bed *bed,
                                 struct nand_bed_place place, uint16_t wordline)
{
    struct nand_bed_place at = wordline_of(place, wordline);

    nand_bed_program(bed, 0, &at, 1);
    return (uint8_t)nand_bed_wait_one(bed)->status;
}

/* Firmware may submit more programs of the block before it has seen that the
 * first one has failed. */
static void test_nand_cache_programs_queued_after_a_failed_one_are_aborted(
    void **state)
{
    static const struct {
        uint8_t effect, status;
    } faults[] = {{NAND_EFFECT_FAIL, NAND_CQE_FAILED},
                  {NAND_EFFECT_TRANSFER, NAND_CQE_TRANSFER}};
    struct nand_bed *bed = *state;
    struct nand_bed_place other = erased_block(bed, 1, 0);

    bed->machine.nand->config.queues_programs = true;
    for (unsigned int i = 0; i < ARRAY_LEN(faults); i++) {
        struct nand_bed_place place = erased_block(bed, 0, i);
        struct nand_bed_place second = wordline_of(place, 1);

        inject_fault(bed, NAND_OP_PROGRAM, faults[i].effect, 0);
        nand_bed_program(bed, 0, &place, 1);
        nand_bed_program(bed, 1, &second, 2);
        nand_bed_wait(bed, 2);
        nand_array_clear_injections(bed->machine.nand->array);
        assert_int_equal(nand_bed_done(bed, 0)->status, faults[i].status);
        assert_int_equal(nand_bed_done(bed, 1)->status, NAND_CQE_ABORTED);
        assert_int_equal(status_of_program(bed, place, 2), NAND_CQE_ABORTED);
        nand_bed_read(bed, 9, &second, 1, false);
        assert_int_equal(nand_bed_wait_one(bed)->status, NAND_CQE_ERASED);
        /* Other dies have seen no failure. */
        assert_int_equal(status_of_program(bed, other, 1), NAND_CQE_RULE);
    }
    assert_int_equal(bed->machine.nand_violations, ARRAY_LEN(faults));
}

/* A program that was not transferred can be repeated; then all is as before. */
static void test_nand_cache_a_repeated_program_ends_the_aborts(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);

    bed->machine.nand->config.queues_programs = true;
    inject_fault(bed, NAND_OP_PROGRAM, NAND_EFFECT_TRANSFER, 0);
    assert_int_equal(status_of_program(bed, place, 0), NAND_CQE_TRANSFER);
    nand_array_clear_injections(bed->machine.nand->array);
    assert_int_equal(status_of_program(bed, place, 1), NAND_CQE_ABORTED);
    assert_int_equal(status_of_program(bed, place, 0), NAND_CQE_OK);
    assert_int_equal(status_of_program(bed, place, 2), NAND_CQE_RULE);
    assert_int_equal(status_of_program(bed, place, 1), NAND_CQE_OK);
}

static void test_nand_cache_each_read_has_its_own_status(void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);

    program_wordlines(bed, place, 3);
    for (unsigned int i = 0; i < 3; i++) {
        inject_fault(bed, NAND_OP_READ, NAND_EFFECT_TRANSFER, i);
        for (uint16_t n = 0; n < 3; n++) {
            struct nand_bed_place at = wordline_of(place, n);

            nand_bed_read(bed, n, &at, 12, false);
        }
        nand_bed_wait(bed, 3);
        for (uint16_t n = 0; n < 3; n++) {
            assert_int_equal(nand_bed_done(bed, n)->status,
                             n == i ? NAND_CQE_TRANSFER : NAND_CQE_OK);
            if (n != i) {
                nand_bed_expect(bed, n, &place, 12, n + 1u);
            }
        }
        nand_array_clear_injections(bed->machine.nand->array);
    }
}

/* A die that dies sends nothing of what its cache register holds. */
static void test_nand_cache_data_in_a_register_is_lost_with_the_die(
    void **state)
{
    struct nand_bed *bed = *state;
    struct nand_bed_place place = erased_block(bed, 0, 0);

    program_wordlines(bed, place, 3);
    inject_fault(bed, NAND_OP_READ, NAND_EFFECT_DIE, 2);
    for (uint16_t n = 0; n < 3; n++) {
        struct nand_bed_place at = wordline_of(place, n);

        nand_bed_read(bed, n, &at, 1, false);
    }
    nand_bed_wait(bed, 3);
    assert_int_equal(nand_bed_done(bed, 0)->status, NAND_CQE_OK);
    assert_int_equal(nand_bed_done(bed, 1)->status, NAND_CQE_DEAD);
    assert_int_equal(nand_bed_done(bed, 2)->status, NAND_CQE_DEAD);
}

/* ---- Power, reset, stop */

enum { MOMENTS = 60 };

/* Begin to program wordline 1 of two blocks, whose wordlines 0 are programmed,
 * and let `ns` pass. */
static void begin_programs(struct nand_bed *bed, struct nand_bed_place *places,
                           uint64_t ns)
{
    for (unsigned int n = 0; n < 2; n++) {
        places[n] = erased_block(bed, 0, n);
    }
    for (unsigned int n = 0; n < 2; n++) {
        program_wordlines(bed, places[n], 1);
    }
    for (unsigned int n = 0; n < 2; n++) {
        struct nand_bed_place at = wordline_of(places[n], 1);

        nand_bed_program(bed, n, &at, 7 + n);
    }
    pass_virtual_time(bed, ns);
}

static enum nand_cqe_status read_status(struct nand_bed *bed,
                                        struct nand_bed_place place,
                                        uint16_t wordline, uint32_t version)
{
    struct nand_bed_place at = wordline_of(place, wordline);
    enum nand_cqe_status status;

    nand_bed_read(bed, 9, &at, 12, false);
    status = nand_bed_wait_one(bed)->status;
    if (status == NAND_CQE_OK) {
        nand_bed_expect(bed, 9, &at, 12, version);
    }
    return status;
}

/* Of two programs, at most the one in the array is half programmed. */
WITH_FIXTURE(NULL, NULL)
static void test_nand_cache_a_power_cut_loses_a_program_in_the_cache_register(
    void **state)
{
    unsigned int held = 0, half_second = 0;

    (void)state;
    for (unsigned int i = 0; i < MOMENTS; i++) {
        struct nand_bed *bed = new_bed("tlc2021");
        uint64_t total_ns = input_ns(bed) + 2 * program_ns(bed);
        struct nand_bed_place places[2];
        enum nand_cqe_status first, second;
        uint64_t ns = total_ns * i / MOMENTS;

        begin_programs(bed, places, ns);
        nand_bed_power_cycle(bed, i);
        first = read_status(bed, places[0], 1, 7);
        second = read_status(bed, places[1], 1, 8);
        if (ns < input_ns(bed) + program_ns(bed)) {
            assert_int_equal(second, NAND_CQE_ERASED);
            held += ns > 3 * input_ns(bed) && first == NAND_CQE_UNCORRECTABLE;
        } else {
            assert_int_equal(first, NAND_CQE_OK);
            half_second += second == NAND_CQE_UNCORRECTABLE;
        }
        assert_int_equal(read_status(bed, places[0], 0, 1), NAND_CQE_OK);
        assert_int_equal(read_status(bed, places[1], 0, 1), NAND_CQE_OK);
        nand_bed_end(bed);
        free(bed);
    }
    assert_in_range(held, MOMENTS / 4, MOMENTS);
    assert_in_range(half_second, MOMENTS / 4, MOMENTS);
}

/* At a reset, a program in the array is completed, and one in the cache
 * register is never begun. */
WITH_FIXTURE(NULL, NULL)
static void test_nand_cache_a_reset_drops_a_program_in_the_cache_register(
    void **state)
{
    unsigned int held = 0;

    (void)state;
    for (unsigned int i = 0; i < MOMENTS; i++) {
        struct nand_bed *bed = new_bed("tlc2021");
        uint64_t total_ns = input_ns(bed) + 2 * program_ns(bed);
        struct nand_bed_place places[2];
        uint64_t ns = 1 + total_ns * i / MOMENTS;
        bool is_in_array = ns > input_ns(bed);
        bool is_second_in_array = ns > input_ns(bed) + program_ns(bed);

        begin_programs(bed, places, ns);
        nand_bed_reset(bed);
        assert_int_equal(read_status(bed, places[0], 1, 7),
                         is_in_array ? NAND_CQE_OK : NAND_CQE_ERASED);
        assert_int_equal(read_status(bed, places[1], 1, 8),
                         is_second_in_array ? NAND_CQE_OK : NAND_CQE_ERASED);
        held += is_in_array && !is_second_in_array;
        nand_bed_end(bed);
        free(bed);
    }
    assert_in_range(held, MOMENTS / 4, MOMENTS);
}

/* A stop for a save ends everything at once, and nothing is left in registers.
 */
WITH_FIXTURE(NULL, NULL)
static void test_nand_cache_a_stop_ends_what_is_in_both_registers(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < MOMENTS; i++) {
        struct nand_bed *bed = new_bed("tlc2021");
        struct hw_nand *core = bed->machine.nand;
        uint64_t total_ns =
            input_ns(bed) + 2 * program_ns(bed) + 3 * read_ns(bed);
        struct nand_bed_place places[2];
        struct nand_bed_place at;

        begin_programs(bed, places, 0);
        for (uint16_t n = 0; n < 2; n++) {
            at = wordline_of(places[n], n);
            nand_bed_read(bed, 2u + n, &at, 12, false);
        }
        pass_virtual_time(bed, 1 + total_ns * i / MOMENTS);
        hw_nand_quiesce(core);
        while (!hw_nand_is_quiet(core)) {
            assert_true(nand_ram_step(&bed->flash, 0));
        }
        assert_true(hw_nand_loaded(core));
        assert_int_equal(core->heap_count, 0);
        for (unsigned int r = 0; r < HW_NAND_REGISTERS; r++) {
            assert_int_equal(core->registers[r].state, HW_DIE_IDLE);
        }
        hw_nand_resume(core);
        nand_bed_wait(bed, nand_outstanding(&bed->nand));
        for (unsigned int slot = 0; slot < 4; slot++) {
            assert_int_equal(nand_bed_done(bed, slot)->status, NAND_CQE_OK);
        }
        nand_bed_expect(bed, 2, &places[0], 12, 1);
        nand_bed_expect(bed, 3, &places[1], 12, 8);
        expect_wordline(bed, places[0], 1, 7);
        nand_bed_end(bed);
        free(bed);
    }
}
