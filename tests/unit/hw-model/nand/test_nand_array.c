/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of a NAND array: data, rules, modes, failures, injected faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_bed.h"

enum { ALL = 15 };

#define DAY_NS (UINT64_C(86400) * 1000000000)

static void test_every_unit_of_a_wordline_reads_as_programmed(void **state)
{
    struct bed *bed = bed_new("tlc2021", 3, 2);

    (void)state;
    assert_int_equal(bed_erase(bed, ALL, 1, false, false), NAND_VERDICT_OK);
    for (unsigned int wordline = 0; wordline < 2; wordline++) {
        assert_int_equal(bed_program(bed, ALL, 1, wordline, 9, wordline == 0),
                         NAND_VERDICT_OK);
    }
    for (unsigned int i = 0; i < 2 * 4 * 3 * 4; i++) {
        assert_int_equal(
            bed_read(bed, i % 4, 1, i / 48, i / 16 % 3, i / 4 % 4, 9),
            NAND_UNIT_GOOD);
    }
    assert_int_equal(bed_read(bed, 0, 2, 0, 0, 0, 0), NAND_UNIT_ERASED);
    bed_free(bed);
}

static void test_an_erased_unit_leaves_memory_as_it_was(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);

    (void)state;
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 0), NAND_UNIT_ERASED);
    assert_int_equal(bed->data[0][0], 0x11);
    assert_int_equal(bed->data[0][NAND_UNIT_DATA - 1], 0x11);
    bed_free(bed);
}

static void test_parts_of_a_unit_and_several_units_are_read_at_once(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_op *op;
    uint8_t whole[2][NAND_UNIT_DATA], part[2][64];
    uint64_t requests;

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 3, true), NAND_VERDICT_OK);
    memcpy(whole[0], bed->data[2], NAND_UNIT_DATA);
    op = bed_op(bed, NAND_OP_READ, 1, 0);
    memset(bed->data, 0, sizeof(bed->data));
    memset(bed->meta, 0, sizeof(bed->meta));
    memset(bed->system, 0, sizeof(bed->system));
    /* Two parts of unit 2, the whole unit 3, and the system bytes of 1/0. */
    op->units[0] = (struct nand_unit){.data = part[0],
                                      .offset = 8,
                                      .length = 64,
                                      .system = bed->system[0],
                                      .unit = 2,
                                      .more = true};
    op->units[1] = (struct nand_unit){.data = part[1],
                                      .offset = 4032,
                                      .length = 64,
                                      .system = bed->system[1],
                                      .meta = bed->meta[1],
                                      .unit = 2};
    op->units[2] = (struct nand_unit){.data = bed->data[2],
                                      .length = NAND_UNIT_DATA,
                                      .meta = bed->meta[2],
                                      .system = bed->system[2],
                                      .unit = 3};
    op->units[3] =
        (struct nand_unit){.system = bed->system[3], .page = 2, .unit = 0};
    op->num_units = 4;
    requests = bed->ram.queue.started;
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_OK);
    /* Units 2 and 3 are adjacent. */
    assert_int_equal(bed->ram.queue.started - requests, 2);
    assert_memory_equal(part[0], whole[0] + 8, 64);
    assert_memory_equal(part[1], whole[0] + 4032, 64);
    assert_memory_equal(bed->system[0], bed->system[1], NAND_UNIT_SYSTEM);
    assert_true(bed_content_is(bed, 2, 0, 0, 0, 0, 3, 3));
    assert_memory_not_equal(bed->system[3], "\0\0\0\0\0\0\0\0", 8);
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    bed_free(bed);
}

/* Units are named in the order of their transfer: for each page, each plane. */
static void test_pages_of_a_wordline_are_read_with_one_request_per_plane(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_op *op;
    uint64_t requests;

    (void)state;
    assert_int_equal(bed_program(bed, 3, 0, 0, 5, true), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 3, 0, 1, 5, true), NAND_VERDICT_OK);
    op = bed_op(bed, NAND_OP_READ, 3, 0);
    memset(bed->data, 0, sizeof(bed->data));
    for (unsigned int i = 0; i < 24; i++) { /* 3 pages, 2 planes, 4 units */
        op->units[i] = (struct nand_unit){.data = bed->data[i],
                                          .length = NAND_UNIT_DATA,
                                          .meta = bed->meta[i],
                                          .system = bed->system[i],
                                          .wordline = 1,
                                          .plane = (uint8_t)(i / 4 % 2),
                                          .page = (uint8_t)(i / 8),
                                          .unit = (uint8_t)(i % 4)};
    }
    op->num_units = 24;
    requests = bed->ram.queue.started;
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_OK);
    assert_int_equal(bed->ram.queue.started - requests, 2);
    for (unsigned int i = 0; i < 24; i++) {
        assert_int_equal(op->units[i].status, NAND_UNIT_GOOD);
        assert_true(bed_content_is(bed, i, i / 4 % 2, 0, 1, i / 8, i % 4, 5));
    }
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    bed_free(bed);
}

static void test_entries_in_a_wrong_order_are_refused(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    const struct nand_unit good = {.data = bed->data[0], .length = 512};
    struct nand_op *op;

    (void)state;
    for (unsigned int i = 0; i < 9; i++) {
        struct nand_unit first = good, second = good;
        enum nand_verdict expected = NAND_VERDICT_BAD_ARGUMENT;

        first.more = true;
        second.offset = 512;
        switch (i) {
        case 0:
            expected = NAND_VERDICT_OK;
            break;
        case 1:
            second.offset = 504; /* overlaps */
            break;
        case 2:
            second.unit = 1; /* another unit */
            break;
        case 3:
            second.more = true; /* nothing follows */
            break;
        case 4:
            second.data = NULL;
            break;
        case 5:
            second.offset = 4096 - 504; /* beyond the unit */
            break;
        case 6:
            second.length = 0;
            break;
        case 7:
            first.more = false;
            second.page = 3;
            expected = NAND_VERDICT_BAD_PLACE;
            break;
        default:
            first.more = false;
            second.wordline = 2;
            expected = NAND_VERDICT_BAD_PLACE;
            break;
        }
        op = bed_op(bed, NAND_OP_READ, 1, 0);
        op->num_units = 2;
        op->units[0] = first;
        op->units[1] = second;
        assert_true(bed_start(bed, op));
        assert_int_equal(op->verdict, expected);
        if (expected == NAND_VERDICT_OK) {
            assert_true(bed_finish(bed, op));
        }
        nand_op_put(bed->array, op);
    }
    bed_free(bed);
}

static void test_places_outside_the_array_are_refused(void **state)
{
    struct bed *bed = bed_new("tlc2021", 3, 2);

    (void)state;
    for (unsigned int i = 0; i < 5; i++) {
        struct nand_op *op = bed_op(bed, NAND_OP_ERASE, 1, 0);

        op->channel = i == 0;
        op->die = i == 1;
        op->planes = i == 2 ? 0 : i == 3 ? 16 : 1;
        op->block[0] = i == 4 ? 3 : 0;
        assert_true(bed_start(bed, op));
        assert_int_equal(op->verdict, NAND_VERDICT_BAD_PLACE);
        nand_op_put(bed->array, op);
    }
    assert_int_equal(bed_program(bed, 1, 0, 2, 0, true),
                     NAND_VERDICT_BAD_PLACE);
    bed_free(bed);
}

/* Start a program that must break a rule. @return the rule's number */
static uint8_t rule_of_program(struct bed *bed, uint8_t planes,
                               unsigned int block, unsigned int wordline)
{
    struct nand_op *op = bed_program_op(bed, planes, block, wordline, 0, true);
    uint8_t rule;

    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_RULE);
    rule = op->rule;
    nand_op_put(bed->array, op);
    return rule;
}

static void test_wordlines_are_programmed_in_order_and_once(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 3);

    (void)state;
    assert_int_equal(rule_of_program(bed, 1, 0, 1), 1);
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, false), NAND_VERDICT_OK);
    assert_int_equal(rule_of_program(bed, 1, 0, 0), 1);
    assert_int_equal(rule_of_program(bed, 1, 0, 2), 1);
    /* In plane 1, wordline 0 is the next one. */
    assert_int_equal(rule_of_program(bed, 3, 0, 1), 1);
    assert_int_equal(bed_program(bed, 1, 0, 1, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 1, 0, 2, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 1, 0, 0, 2, false), NAND_VERDICT_OK);
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 2), NAND_UNIT_GOOD);
    assert_int_equal(bed_read(bed, 0, 0, 1, 0, 0, 2), NAND_UNIT_ERASED);
    bed_free(bed);
}

static void test_slc_mode_lasts_until_the_next_erase(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);
    struct nand_op *op;
    struct nand_unit unit;

    (void)state;
    assert_int_equal(bed_erase(bed, 3, 0, true, false), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 3, 0, 0, 5, false), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 3, 0, 1, 5, true), NAND_VERDICT_OK);
    assert_int_equal(bed_read(bed, 1, 0, 1, 0, 3, 5), NAND_UNIT_GOOD);
    assert_int_equal(bed_read_unit(bed, 1, 0, 1, 1, 0, &unit),
                     NAND_VERDICT_BAD_PLACE);
    bed_reopen(bed);
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 3, 5), NAND_UNIT_GOOD);
    assert_int_equal(bed_read(bed, 1, 0, 1, 0, 3, 5), NAND_UNIT_GOOD);

    /* A wordline of three pages does not fit. */
    op = bed_op(bed, NAND_OP_PROGRAM, 1, 0);
    op->num_units = 12;
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_BAD_ARGUMENT);
    nand_op_put(bed->array, op);

    /* Plane 2 is in the other mode. */
    op = bed_op(bed, NAND_OP_READ, 5, 0);
    op->num_units = 1;
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_RULE);
    assert_int_equal(op->rule, 2);
    nand_op_put(bed->array, op);

    assert_int_equal(bed_erase(bed, 3, 0, false, false), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 3, 0, 0, 6, false), NAND_VERDICT_OK);
    assert_int_equal(bed_read(bed, 1, 0, 0, 2, 3, 6), NAND_UNIT_GOOD);
    bed_free(bed);
}

static void test_slc_mode_wears_less(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 1);

    (void)state;
    assert_int_equal(bed_erase(bed, 1, 0, true, true), NAND_VERDICT_OK);
    assert_int_equal(bed_erase(bed, 1, 1, false, true), NAND_VERDICT_OK);
    assert_int_equal(bed_block(bed, 0, 1)->wear, NAND_WEAR_CYCLE);
    assert_int_equal(bed_block(bed, 0, 0)->wear,
                     NAND_WEAR_CYCLE * 3000 / 50000);
    assert_int_equal(bed_block(bed, 0, 0)->number, 1);
    bed_free(bed);
}

static void test_a_part_without_slc_mode_refuses_it(void **state)
{
    struct bed *bed = bed_new("mlc2d", 2, 1);

    (void)state;
    assert_int_equal(bed_erase(bed, 1, 0, true, true),
                     NAND_VERDICT_BAD_ARGUMENT);
    assert_int_equal(bed_program(bed, 3, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_read(bed, 1, 0, 0, 1, 3, 1), NAND_UNIT_GOOD);
    bed_free(bed);
}

static void test_factory_bad_blocks_are_not_used(void **state)
{
    struct bed *bed = bed_new("tlc2021", 400, 1);
    unsigned int bad = 0, first_bad = 0;
    struct nand_op *op;

    (void)state;
    for (unsigned int i = 0; i < 1600; i++) {
        if ((bed_block(bed, i / 400, i % 400)->flags &
             NAND_BLOCK_FACTORY_BAD) != 0) {
            first_bad = i;
            bad++;
        }
    }
    /* 0.5% of 1600 are 8; with this seed: */
    assert_in_range(bad, 4, 14);
    assert_int_equal(
        rule_of_program(bed, (uint8_t)BIT(first_bad / 400), first_bad % 400, 0),
        3);
    op = bed_op(bed, NAND_OP_ERASE, (uint8_t)BIT(first_bad / 400),
                first_bad % 400);
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_RULE);
    assert_int_equal(op->rule, 3);
    nand_op_put(bed->array, op);
    assert_int_equal(
        bed_read(bed, first_bad / 400, first_bad % 400, 0, 0, 0, 0),
        NAND_UNIT_UNCORRECTABLE);
    bed_free(bed);
}

static void test_a_failed_program_leaves_its_wordline_torn(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 3);
    struct nand_op *op;

    (void)state;
    for (unsigned int at_once = 0; at_once < 2; at_once++) {
        assert_int_equal(bed_erase(bed, 3, 0, false, true), NAND_VERDICT_OK);
        assert_int_equal(bed_program(bed, 3, 0, 0, 1, true), NAND_VERDICT_OK);
        nand_array_clear_injections(bed->array);
        assert_true(nand_array_inject(
            bed->array,
            &(struct nand_injection){.kind = NAND_OP_PROGRAM,
                                     .effect = NAND_EFFECT_FAIL,
                                     .plane = 1,
                                     .wordline = 1,
                                     .trigger.chance = FAULT_CHANCE_ALWAYS}));
        op = bed_program_op(bed, 3, 0, 1, 2, at_once != 0);
        assert_true(bed_start(bed, op));
        assert_int_equal(op->verdict, NAND_VERDICT_FAILED);
        assert_int_equal(op->failed_planes, 2);
        assert_true(bed_finish(bed, op));
        nand_op_put(bed->array, op);
        for (unsigned int pass = 0; pass < 2; pass++) {
            assert_int_equal(bed_read(bed, 0, 0, 1, 2, 2, 2), NAND_UNIT_GOOD);
            assert_int_equal(bed_read(bed, 1, 0, 0, 2, 2, 1), NAND_UNIT_GOOD);
            assert_int_equal(bed_read(bed, 1, 0, 1, 2, 2, 2),
                             NAND_UNIT_UNCORRECTABLE);
            assert_int_equal(rule_of_program(bed, 2, 0, 2), 1);
            bed_reopen(bed);
        }
    }
    bed_free(bed);
}

static void test_a_block_whose_erase_failed_stays_useless(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_ERASE,
                                 .effect = NAND_EFFECT_FAIL,
                                 .trigger.nth = 1,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
    assert_int_equal(bed_erase(bed, 1, 0, false, false), NAND_VERDICT_FAILED);
    for (unsigned int pass = 0; pass < 2; pass++) {
        assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 1),
                         NAND_UNIT_UNCORRECTABLE);
        assert_int_equal(rule_of_program(bed, 1, 0, 0), 1);
        assert_int_equal(bed_erase(bed, 1, 0, false, pass != 0),
                         NAND_VERDICT_FAILED);
        bed_reopen(bed);
    }
    assert_int_equal(bed_erase(bed, 1, 1, false, true), NAND_VERDICT_OK);
    bed_free(bed);
}

static void test_an_injected_fault_hits_the_named_place_and_time(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_unit unit;

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_READ,
                                 .effect = NAND_EFFECT_UNCORRECTABLE,
                                 .wordline = NAND_ANYWHERE,
                                 .page = 1,
                                 .unit = 2,
                                 .trigger.nth = 2,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_READ,
                                 .effect = NAND_EFFECT_BITS,
                                 .bits = 300,
                                 .page = 2,
                                 .unit = NAND_ANYWHERE,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 2, 1), NAND_UNIT_GOOD);
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 1, 1), NAND_UNIT_GOOD);
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 2, 1), NAND_UNIT_UNCORRECTABLE);
    assert_int_equal(bed->data[0][100], 0xd6);
    assert_int_equal(bed->meta[0][1], 0xd6);
    assert_int_equal(bed->system[0][15], 0xd6);
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 2, 1), NAND_UNIT_GOOD);
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 2, 0, &unit), NAND_VERDICT_OK);
    assert_int_equal(unit.status, NAND_UNIT_GOOD);
    assert_int_equal(unit.bits, 300);
    assert_int_equal(unit.steps, 2);
    bed_free(bed);
}

static void test_there_is_room_for_sixteen_injected_faults(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    const struct nand_injection injection = {.kind = NAND_OP_READ};

    (void)state;
    for (unsigned int i = 0; i < NAND_INJECTIONS; i++) {
        assert_true(nand_array_inject(bed->array, &injection));
    }
    assert_false(nand_array_inject(bed->array, &injection));
    nand_array_clear_injections(bed->array);
    assert_true(nand_array_inject(bed->array, &injection));
    bed_free(bed);
}

static void test_a_dead_die_stays_dead_and_others_live(void **state)
{
    struct bed *bed = bed_new_geometry("tlc2021",
                                       &(struct nand_geometry){.channels = 2,
                                                               .dies = 2,
                                                               .planes = 4,
                                                               .units = 4,
                                                               .pages = 3,
                                                               .blocks = 1,
                                                               .wordlines = 1},
                                       1);
    struct nand_op *op;

    (void)state;
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_ERASE,
                                 .effect = NAND_EFFECT_DIE,
                                 .channel = 1,
                                 .die = NAND_ANYWHERE,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
    op = bed_op(bed, NAND_OP_ERASE, ALL, 0);
    op->channel = 1;
    op->die = 0;
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_DEAD);
    nand_op_put(bed->array, op);
    nand_array_clear_injections(bed->array);
    for (unsigned int pass = 0; pass < 2; pass++) {
        for (unsigned int die = 0; die < 4; die++) {
            assert_int_equal(
                nand_array_die_is_dead(bed->array, die / 2, die % 2), die == 2);
            op = bed_op(bed, NAND_OP_READ, 1, 0);
            op->channel = (uint8_t)(die / 2);
            op->die = (uint8_t)(die % 2);
            op->num_units = 1;
            assert_true(bed_start(bed, op));
            assert_int_equal(op->verdict,
                             die == 2 ? NAND_VERDICT_DEAD : NAND_VERDICT_OK);
            if (die != 2) {
                assert_true(bed_finish(bed, op));
            }
            nand_op_put(bed->array, op);
        }
        bed_reopen(bed);
    }
    bed_free(bed);
}

static void test_a_die_that_dies_while_the_state_is_written_stays_dead(
    void **state)
{
    struct bed *bed = bed_new_geometry("slc",
                                       &(struct nand_geometry){.channels = 1,
                                                               .dies = 2,
                                                               .planes = 4,
                                                               .units = 1,
                                                               .pages = 1,
                                                               .blocks = 1,
                                                               .wordlines = 1},
                                       1);
    struct nand_op *erase = bed_op(bed, NAND_OP_ERASE, 1, 0);
    struct nand_op *read;

    (void)state;
    assert_false(nand_op_start(bed->array, erase, 0));
    assert_true(nand_array_inject(
        bed->array,
        &(struct nand_injection){.kind = NAND_OP_READ,
                                 .effect = NAND_EFFECT_DIE,
                                 .die = 1,
                                 .trigger.chance = FAULT_CHANCE_ALWAYS}));
    read = bed_op(bed, NAND_OP_READ, 1, 0);
    read->die = 1;
    read->num_units = 1;
    assert_true(bed_start(bed, read));
    assert_int_equal(read->verdict, NAND_VERDICT_DEAD);
    nand_op_put(bed->array, read);
    assert_int_equal(erase->verdict, NAND_VERDICT_OK);
    bed_reopen(bed);
    assert_true(nand_array_die_is_dead(bed->array, 0, 1));
    assert_false(nand_array_die_is_dead(bed->array, 0, 0));
    bed_free(bed);
}

static void test_errors_of_storage_end_operations(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    bed->ram.fail_reads = 5;
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 0, 0, NULL),
                     NAND_VERDICT_STORAGE);
    assert_int_equal(bed_program(bed, 2, 1, 0, 1, true), NAND_VERDICT_STORAGE);
    bed->ram.fail_reads = 0;
    bed->ram.fail_writes = 28;
    assert_int_equal(bed_program(bed, 1, 0, 1, 1, true), NAND_VERDICT_STORAGE);
    assert_int_equal(bed_erase(bed, 2, 0, false, true), NAND_VERDICT_STORAGE);
    assert_false(bed_sync(bed));
    bed->ram.fail_writes = 0;
    assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 1), NAND_UNIT_GOOD);
    assert_int_equal(rule_of_program(bed, 2, 0, 0), 1);
    assert_int_equal(bed_erase(bed, 3, 0, false, false), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 3, 0, 0, 2, false), NAND_VERDICT_OK);
    assert_true(bed_sync(bed));
    bed_reopen(bed);
    assert_int_equal(bed_read(bed, 1, 0, 0, 0, 0, 2), NAND_UNIT_GOOD);
    bed_free(bed);
}

/* Storage fails at the first or the second write of the operation.  What is
 * before it has been written. */
static int fail_second_half(void *ctx, const struct ram_request *request,
                            uint64_t *len)
{
    uint32_t *writes = ctx;

    if (request->kind != RAM_WRITE || *writes == 0) {
        return 0;
    }
    *len = --*writes == 0 ? *len / 128 * 64 : *len;
    return *writes == 0 ? 28 : 0;
}

static void test_a_program_that_storage_has_failed_can_be_repeated(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4 * 2; i++) {
        struct bed *bed = bed_new("tlc2021", 2, 3);
        bool at_once = i % 2 != 0;
        uint32_t writes = 0;

        assert_int_equal(bed_program(bed, 3, 1, 0, 1, at_once),
                         NAND_VERDICT_OK);
        bed->ram.judge = fail_second_half;
        bed->ram.judge_ctx = &writes;
        for (unsigned int attempt = 0; attempt < 3; attempt++) {
            /* At once, there is one write for each plane, otherwise two. */
            writes = 1 + i / 2 % (at_once ? 2 : 4);
            assert_int_equal(bed_program(bed, 3, 1, 1, 2, at_once),
                             NAND_VERDICT_STORAGE);
            assert_int_equal(bed_read(bed, 0, 1, 1, 0, 0, 0), NAND_UNIT_ERASED);
            assert_int_equal(rule_of_program(bed, 3, 1, 2), 1);
        }
        assert_int_equal(bed_program(bed, 3, 1, 1, 2, at_once),
                         NAND_VERDICT_OK);
        for (unsigned int plane = 0; plane < 2; plane++) {
            assert_int_equal(bed_read(bed, plane, 1, 0, 0, 0, 1),
                             NAND_UNIT_GOOD);
            assert_int_equal(bed_read(bed, plane, 1, 1, 0, 0, 2),
                             NAND_UNIT_GOOD);
        }
        bed_reopen(bed);
        assert_int_equal(bed_read(bed, 1, 1, 1, 0, 0, 2), NAND_UNIT_GOOD);
        bed_free(bed);
    }
}

/* Attempts do not wear out the block.  Until one succeeds, it is half erased.
 */
static void test_an_erasure_that_storage_has_failed_can_be_repeated(
    void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4 * 2; i++) {
        struct bed *bed = bed_new("tlc2021", 2, 2);
        bool at_once = i % 2 != 0;
        uint32_t writes = 0, wear;

        assert_int_equal(bed_program(bed, 3, 1, 0, 1, at_once),
                         NAND_VERDICT_OK);
        wear = bed_block(bed, 0, 1)->wear;
        bed->ram.judge = fail_second_half;
        bed->ram.judge_ctx = &writes;
        for (unsigned int attempt = 0; attempt < 3; attempt++) {
            writes = 1 + i / 2 % (at_once ? 2 : 4);
            assert_int_equal(bed_erase(bed, 3, 1, false, at_once),
                             NAND_VERDICT_STORAGE);
            assert_int_equal(bed_read(bed, 0, 1, 0, 0, 0, 1),
                             NAND_UNIT_UNCORRECTABLE);
            assert_int_equal(rule_of_program(bed, 3, 1, 0), 1);
            assert_int_equal(bed_block(bed, 0, 1)->wear, wear);
        }
        if (i >= 4) { /* Store it. */
            assert_true(bed_sync(bed));
            bed_reopen(bed);
            assert_int_equal(bed_read(bed, 0, 1, 0, 0, 0, 1),
                             NAND_UNIT_UNCORRECTABLE);
        }
        assert_int_equal(bed_erase(bed, 3, 1, false, at_once), NAND_VERDICT_OK);
        assert_int_equal(bed_block(bed, 0, 1)->number, 1);
        assert_int_equal(bed_read(bed, 1, 1, 0, 0, 0, 1), NAND_UNIT_ERASED);
        assert_int_equal(bed_program(bed, 3, 1, 0, 2, at_once),
                         NAND_VERDICT_OK);
        bed_free(bed);
    }
}

static void test_the_first_change_waits_for_its_generation(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);
    uint64_t generation;

    (void)state;
    for (unsigned int pass = 0; pass < 3; pass++) {
        generation = nand_array_generation(bed->array)->count;
        assert_int_equal(bed_read(bed, 0, pass, 0, 0, 0, 0), NAND_UNIT_ERASED);
        assert_int_equal(nand_array_generation(bed->array)->count, generation);
        assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
        assert_int_equal(nand_array_generation(bed->array)->count,
                         generation + 1);
        assert_int_equal(bed_erase(bed, 1, 1, false, true), NAND_VERDICT_OK);
        assert_int_equal(nand_array_generation(bed->array)->count,
                         generation + 1);
        if (pass == 0) {
            assert_true(bed_sync(bed));
            assert_int_equal(nand_array_generation(bed->array)->count,
                             generation + 1);
        } else {
            bed_reopen(bed);
        }
        if (pass == 1) {
            break;
        }
    }
    bed_free(bed);
}

static void test_a_generation_that_could_not_be_stored_does_not_count(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 2);
    uint64_t generation = nand_array_generation(bed->array)->count;
    struct nand_state stored;

    (void)state;
    bed->ram.fail_writes = 5;
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(bed_erase(bed, 1, 0, false, true),
                         NAND_VERDICT_STORAGE);
        assert_int_equal(nand_array_generation(bed->array)->count, generation);
        assert_int_equal(bed_block(bed, 0, 0)->number, 0);
    }
    bed->ram.fail_writes = 0;
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    assert_int_equal(nand_array_generation(bed->array)->count, generation + 1);
    /* All attempts were for the same copy: the other one stays whole. */
    assert_true(
        nand_state_parse(&stored, bed->ram.bytes + nand_layout_state(2)));
    assert_int_equal(stored.number, 2);
    assert_true(
        nand_state_parse(&stored, bed->ram.bytes + nand_layout_state(1)));
    assert_int_equal(stored.number, 1);
    bed_free(bed);
}

static void test_read_counters_survive_sync_and_every_4096_reads(void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 1);

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    for (unsigned int i = 0; i < 10; i++) {
        assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, 1), NAND_UNIT_GOOD);
    }
    assert_true(bed_sync(bed));
    bed_reopen(bed);
    assert_int_equal(bed_block(bed, 0, 0)->reads, 10);
    for (unsigned int i = 0; i < 4100; i++) {
        assert_int_equal(bed_read_unit(bed, 0, 0, 0, 0, 0, NULL),
                         NAND_VERDICT_OK);
    }
    assert_int_equal(bed_block(bed, 0, 0)->reads, 4110);
    bed_reopen(bed);
    assert_int_equal(bed_block(bed, 0, 0)->reads, 4096);
    /* A counter that cannot be stored does not harm the read. */
    bed->ram.fail_writes = 28;
    for (unsigned int i = 0; i < 4096; i++) {
        struct nand_op *op = bed_op(bed, NAND_OP_READ, 1, 0);

        op->num_units = 1;
        assert_true(bed_start(bed, op));
        assert_true(bed_finish(bed, op));
        assert_int_equal(op->verdict, NAND_VERDICT_OK);
        assert_int_equal(op->storage_errno, 0);
        nand_op_put(bed->array, op);
    }
    bed->ram.fail_writes = 0;
    assert_int_equal(bed_erase(bed, 1, 0, false, false), NAND_VERDICT_OK);
    assert_int_equal(bed_block(bed, 0, 0)->reads, 0);
    bed_free(bed);
}

static void test_reads_of_one_page_count_once(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_op *op = bed_op(bed, NAND_OP_READ, 3, 0);

    (void)state;
    for (unsigned int i = 0; i < 12; i++) {
        /* Two pages of plane 0, one of plane 1. */
        op->units[i] = (struct nand_unit){
            .unit = (uint8_t)(i % 4), .page = i >= 4 && i < 8, .plane = i >= 8};
    }
    op->num_units = 12;
    assert_true(bed_start(bed, op));
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    assert_int_equal(bed_block(bed, 0, 0)->reads, 2);
    assert_int_equal(bed_block(bed, 1, 0)->reads, 1);
    bed_free(bed);
}

/* The sum of wrong bits of one wordline, read in this order of planes. */
static void read_bits(struct bed *bed, const uint8_t order[4],
                      uint16_t bits[4][3][4])
{
    for (unsigned int i = 0; i < 4; i++) {
        for (unsigned int k = 0; k < 12; k++) {
            struct nand_unit unit;

            assert_int_equal(
                bed_read_unit(bed, order[i], 0, 0, k / 4, k % 4, &unit),
                NAND_VERDICT_OK);
            bits[order[i]][k / 4][k % 4] = unit.bits;
        }
    }
}

static void test_errors_do_not_depend_on_the_order_of_blocks(void **state)
{
    uint16_t one[4][3][4], other[4][3][4];
    struct bed *bed = bed_new("tlc2021", 1, 1);

    (void)state;
    assert_int_equal(bed_program(bed, ALL, 0, 0, 1, true), NAND_VERDICT_OK);
    bed->now_ns += 30 * DAY_NS;
    read_bits(bed, (const uint8_t[]){0, 1, 2, 3}, one);
    bed_free(bed);

    bed = bed_new("tlc2021", 1, 1);
    assert_int_equal(bed_program(bed, ALL, 0, 0, 1, false), NAND_VERDICT_OK);
    bed->now_ns += 30 * DAY_NS;
    read_bits(bed, (const uint8_t[]){3, 1, 0, 2}, other);
    assert_memory_equal(one, other, sizeof(one));
    assert_true(one[0][0][0] > 20 && one[0][0][0] < 200);
    bed_free(bed);
}

static void test_time_goes_on_when_the_array_is_opened_again(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_unit fresh, old;

    (void)state;
    bed->now_ns = 5000 * DAY_NS; /* only differences count */
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 1, 0, &fresh),
                     NAND_VERDICT_OK);
    for (unsigned int i = 0; i < 10; i++) {
        bed->now_ns += 100 * DAY_NS;
        assert_true(bed_sync(bed));
        bed_reopen(bed);
        bed->now_ns = i * DAY_NS;
        assert_int_equal(bed_read_unit(bed, 0, 0, 0, 1, 0, &old),
                         NAND_VERDICT_OK);
    }
    /* About 6.28e-5 * 1000^0.54 * 37120 * 77/64 = 117 more, on average. */
    assert_in_range(old.bits - fresh.bits, 70, 170);
    bed_free(bed);
}

static void test_time_goes_on_from_the_last_record_after_a_power_cut(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 2, 1);
    struct nand_unit fresh, old;

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 1, 0, &fresh),
                     NAND_VERDICT_OK);
    bed->now_ns += 1000 * DAY_NS;
    assert_int_equal(bed_erase(bed, 1, 1, false, true), NAND_VERDICT_OK);
    bed_reopen(bed);
    bed->now_ns = 0;
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 1, 0, &old), NAND_VERDICT_OK);
    assert_in_range(old.bits - fresh.bits, 70, 170);
    bed_free(bed);
}

static void test_damage_of_stored_data_is_uncorrectable(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_layout layout;
    uint8_t *slot, *unit;

    (void)state;
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    nand_layout(&layout, nand_array_geometry(bed->array));
    slot = bed->ram.bytes + nand_layout_slot(&layout, 0, 0);
    for (unsigned int i = 0; i < NAND_SLOT_UNIT_LEN - 4; i += 13) {
        unit = slot + nand_slot_unit(5);
        unit[i] ^= 0x10;
        assert_int_equal(bed_read(bed, 0, 0, 0, 1, 1, 1),
                         NAND_UNIT_UNCORRECTABLE);
        unit[i] ^= 0x10;
    }
    /* Another unit's bytes are not those of this place. */
    memcpy(slot + nand_slot_unit(5), slot + nand_slot_unit(6),
           NAND_SLOT_UNIT_LEN);
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 1, 1), NAND_UNIT_UNCORRECTABLE);
    assert_int_equal(bed_read(bed, 0, 0, 0, 1, 2, 1), NAND_UNIT_GOOD);
    bed_free(bed);
}

/* Read a part of a unit's data, and the rest of it if `rest` is set. */
static enum nand_unit_status read_part(struct bed *bed, unsigned int page,
                                       unsigned int unit, bool rest)
{
    struct nand_op *op = bed_op(bed, NAND_OP_READ, 1, 0);
    enum nand_unit_status status;

    op->num_units = 1;
    op->units[0] = (struct nand_unit){.data = bed->data[0],
                                      .length = 512,
                                      .page = (uint8_t)page,
                                      .unit = (uint8_t)unit};
    if (rest) {
        op->units[0].meta = bed->meta[0];
        op->units[0].system = bed->system[0];
    }
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_OK);
    status = op->units[0].status;
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    return status;
}

static void test_a_unit_of_another_place_or_erasure_is_uncorrectable(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    uint8_t old[NAND_SLOT_UNIT_LEN], *slot;
    struct nand_layout layout;

    (void)state;
    nand_layout(&layout, nand_array_geometry(bed->array));
    slot = bed->ram.bytes + nand_layout_slot(&layout, 0, 0);
    assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
    memcpy(old, slot + nand_slot_unit(4), sizeof(old));
    assert_int_equal(read_part(bed, 1, 0, true), NAND_UNIT_GOOD);

    memcpy(slot + nand_slot_unit(5), old, sizeof(old));
    assert_int_equal(read_part(bed, 1, 1, true), NAND_UNIT_UNCORRECTABLE);

    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    assert_int_equal(bed_program(bed, 1, 0, 0, 2, true), NAND_VERDICT_OK);
    assert_int_equal(read_part(bed, 1, 0, false), NAND_UNIT_GOOD);
    memcpy(slot + nand_slot_unit(4), old, sizeof(old));
    assert_int_equal(read_part(bed, 1, 0, false), NAND_UNIT_UNCORRECTABLE);
    bed_free(bed);
}

static void test_an_erasure_gives_storage_back(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_layout layout;
    uint8_t *slot;

    (void)state;
    nand_layout(&layout, nand_array_geometry(bed->array));
    slot = bed->ram.bytes + nand_layout_slot(&layout, 0, 1);
    for (unsigned int at_once = 0; at_once < 2; at_once++) {
        assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
        assert_int_equal(bed_program(bed, 1, 0, 1, 1, true), NAND_VERDICT_OK);
        assert_int_equal(slot[0], 'B');
        assert_int_equal(bed_erase(bed, 1, 0, false, at_once != 0),
                         NAND_VERDICT_OK);
        assert_int_equal(slot[0], 0);
    }
    /* Power may fail between an erasure and the discard of its storage, so
     * that an empty block still has what it held before. */
    slot[0] = 'B';
    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    assert_int_equal(slot[0], 0);
    bed_free(bed);
}

/* The old contents are still in storage, but nothing of the array shows them.
 */
static void test_an_erasure_may_keep_the_storage_of_its_blocks(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_layout layout;
    uint8_t *slot;

    (void)state;
    nand_layout(&layout, nand_array_geometry(bed->array));
    slot = bed->ram.bytes + nand_layout_slot(&layout, 0, 1);
    for (unsigned int i = 0; i < 4; i++) {
        struct nand_op *op;

        assert_int_equal(bed_program(bed, 1, 0, 0, i, i % 2 != 0),
                         NAND_VERDICT_OK);
        assert_int_equal(bed_read(bed, 0, 0, 1, 0, 0, i), NAND_UNIT_ERASED);
        assert_int_equal(bed_program(bed, 1, 0, 1, i, i % 2 != 0),
                         NAND_VERDICT_OK);
        op = bed_op(bed, NAND_OP_ERASE, 1, 0);
        op->keeps_storage = true;
        op->finishes_at_once = i < 2;
        assert_true(bed_start(bed, op) && bed_finish(bed, op));
        assert_int_equal(op->verdict, NAND_VERDICT_OK);
        nand_op_put(bed->array, op);
        assert_int_equal(slot[0], 'B');
        bed_reopen(bed);
        assert_int_equal(bed_read(bed, 0, 0, 0, 0, 0, i), NAND_UNIT_ERASED);
        assert_int_equal(bed_read(bed, 0, 0, 1, 0, 0, i), NAND_UNIT_ERASED);
    }
    bed_free(bed);
}

static void test_the_next_wordline_is_found_in_storage(void **state)
{
    enum { WORDLINES = 9 };
    struct bed *bed = bed_new("slc", 1, WORDLINES);

    (void)state;
    for (unsigned int programmed = 0; programmed <= WORDLINES; programmed++) {
        uint64_t requests;

        bed_reopen(bed);
        requests = bed->ram.queue.started;
        if (programmed != 0) {
            assert_int_equal(bed_read(bed, 0, 0, programmed - 1, 0, 0, 4),
                             NAND_UNIT_GOOD);
        }
        if (programmed < WORDLINES) {
            assert_int_equal(bed_read(bed, 0, 0, programmed, 0, 0, 4),
                             NAND_UNIT_ERASED);
        }
        assert_int_equal(bed_block(bed, 0, 0)->next, programmed);
        /* At most first, last, three between, two ends; and the data. */
        assert_in_range(bed->ram.queue.started - requests, 1, 8);
        bed_reopen(bed);
        if (programmed < WORDLINES) {
            assert_int_equal(
                bed_program(bed, 1, 0, programmed, 4, programmed % 2 == 0),
                NAND_VERDICT_OK);
        }
    }
    bed_free(bed);
}

static void test_the_pool_of_operations_is_bounded(void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 1);
    struct nand_op *ops[BED_OPS];

    (void)state;
    for (unsigned int i = 0; i < BED_OPS; i++) {
        ops[i] = nand_op_get(bed->array);
        assert_non_null(ops[i]);
        assert_ptr_equal(
            nand_op_at(bed->array, nand_op_index(bed->array, ops[i])), ops[i]);
    }
    assert_null(nand_op_get(bed->array));
    assert_false(nand_array_is_quiet(bed->array));
    for (unsigned int i = 0; i < BED_OPS; i++) {
        nand_op_put(bed->array, ops[i]);
    }
    assert_true(nand_array_is_quiet(bed->array));
    bed_free(bed);
}

static void test_four_operations_go_on_at_the_same_time(void **state)
{
    struct bed *bed = bed_new_geometry("slc",
                                       &(struct nand_geometry){.channels = 2,
                                                               .dies = 2,
                                                               .planes = 4,
                                                               .units = 1,
                                                               .pages = 1,
                                                               .blocks = 2,
                                                               .wordlines = 4},
                                       3);
    struct nand_op *ops[4];
    uint8_t data[4][NAND_UNIT_DATA];

    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        memset(data[i], (int)i + 1, sizeof(data[i]));
        ops[i] = bed_op(bed, NAND_OP_PROGRAM, 1, 0);
        ops[i]->channel = (uint8_t)(i / 2);
        ops[i]->die = (uint8_t)(i % 2);
        ops[i]->num_units = 1;
        ops[i]->units[0].data = data[i];
        /* All wait for one record of the generation. */
        assert_false(nand_op_start(bed->array, ops[i], 0));
    }
    while (bed->ram.queue.count != 0) {
        assert_true(nand_ram_step(&bed->ram, bed->ram.queue.count - 1));
    }
    for (unsigned int i = 0; i < 4; i++) {
        assert_int_equal(ops[i]->verdict, NAND_VERDICT_OK);
        assert_true(bed_finish(bed, ops[i]));
        nand_op_put(bed->array, ops[i]);
    }
    bed_reopen(bed);
    for (unsigned int i = 0; i < 4; i++) {
        struct nand_op *op = bed_op(bed, NAND_OP_READ, 1, 0);
        uint8_t back[NAND_UNIT_DATA];
        uint8_t meta[NAND_UNIT_META];

        op->channel = (uint8_t)(i / 2);
        op->die = (uint8_t)(i % 2);
        op->num_units = 1;
        op->units[0] = (struct nand_unit){
            .data = back, .length = sizeof(back), .meta = meta};
        assert_true(bed_start(bed, op));
        assert_int_equal(op->units[0].status, NAND_UNIT_GOOD);
        assert_memory_equal(back, data[i], sizeof(back));
        assert_int_equal(meta[63], 0xff);
        assert_true(bed_finish(bed, op));
        nand_op_put(bed->array, op);
    }
    bed_free(bed);
}
