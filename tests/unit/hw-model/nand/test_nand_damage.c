/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots whose beginning is damaged: no wordline is programmed a second time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/hw-model/nand/nand_bed.h"

enum { WORDLINES = 9 };

static uint8_t *slot_of(struct bed *bed, unsigned int wordline)
{
    struct nand_layout layout;

    nand_layout(&layout, nand_array_geometry(bed->array));
    return bed->ram.bytes + nand_layout_slot(&layout, 0, wordline);
}

static void emit_begin(unsigned int wordline, uint32_t number, uint8_t *at)
{
    nand_wordline_emit(&(struct nand_wordline){.block = 0,
                                               .number = number,
                                               .wordline = (uint16_t)wordline,
                                               .pages = 1},
                       false, at);
}

/* Bytes that are no beginning of this wordline since the last erasure. */
static void damage_begin(struct bed *bed, unsigned int wordline,
                         unsigned int kind)
{
    uint8_t *at = slot_of(bed, wordline);

    switch (kind) {
    case 0:
        at[20] ^= 1;
        break;
    case 1:
        memset(at, 0, NAND_WORDLINE_LEN);
        break;
    case 2:
        memset(at, 0xff, NAND_WORDLINE_LEN);
        break;
    case 3: /* The host has lost the write of this page. */
        emit_begin(wordline, 0, at);
        break;
    default: /* Of another wordline. */
        emit_begin(wordline + 1, 1, at);
        break;
    }
}

/* Wordlines 0 to `programmed` - 1 are programmed, and the next one can be. */
static void check_block(struct bed *bed, unsigned int programmed)
{
    struct nand_unit unit;

    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 0, 0, &unit), NAND_VERDICT_OK);
    assert_int_equal(bed_block(bed, 0, 0)->next, programmed);
    for (unsigned int i = 0; i < programmed; i++) {
        assert_int_equal(bed_read(bed, 0, 0, i, 0, 0, 1), NAND_UNIT_GOOD);
        assert_int_equal(bed_program(bed, 1, 0, i, 2, true), NAND_VERDICT_RULE);
    }
    if (programmed < WORDLINES) {
        assert_int_equal(bed_read(bed, 0, 0, programmed, 0, 0, 1),
                         NAND_UNIT_ERASED);
        assert_int_equal(bed_program(bed, 1, 0, programmed, 1, true),
                         NAND_VERDICT_OK);
    }
}

static struct bed *new_block(unsigned int programmed)
{
    struct bed *bed = bed_new("slc", 1, WORDLINES);

    assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
    for (unsigned int i = 0; i < programmed; i++) {
        assert_int_equal(bed_program(bed, 1, 0, i, 1, i % 2 == 0),
                         NAND_VERDICT_OK);
    }
    return bed;
}

static void test_a_wordline_whose_beginning_is_damaged_is_programmed(
    void **state)
{
    (void)state;
    for (unsigned int programmed = 1; programmed <= WORDLINES; programmed++) {
        for (unsigned int i = 0; i < programmed; i++) {
            for (unsigned int kind = 0; kind < 5; kind++) {
                struct bed *bed = new_block(programmed);

                damage_begin(bed, i, kind);
                bed_reopen(bed);
                check_block(bed, programmed);
                bed_free(bed);
            }
        }
    }
}

static void test_any_number_of_beginnings_can_be_damaged(void **state)
{
    (void)state;
    for (unsigned int set = 0; set < BIT(WORDLINES); set++) {
        unsigned int programmed = 1 + set % WORDLINES;
        struct bed *bed = new_block(programmed);

        for (unsigned int i = 0; i < programmed; i++) {
            if ((set & BIT(i)) != 0) {
                damage_begin(bed, i, 1);
            }
        }
        bed_reopen(bed);
        check_block(bed, programmed);
        bed_free(bed);
    }
}

/* A half programmed wordline has no end that could be found. */
static void test_a_half_programmed_wordline_is_found_after_damage(void **state)
{
    (void)state;
    for (unsigned int torn = 1; torn < WORDLINES; torn++) {
        for (unsigned int i = 0; i < torn; i++) {
            struct bed *bed = new_block(torn);
            struct nand_op *op = bed_program_op(bed, 1, 0, torn, 1, false);
            struct nand_unit unit;

            assert_true(bed_start(bed, op)); /* Then the power fails. */
            damage_begin(bed, i, 1);
            bed_reopen(bed);
            assert_int_equal(bed_read_unit(bed, 0, 0, torn, 0, 0, &unit),
                             NAND_VERDICT_OK);
            assert_int_not_equal(unit.status, NAND_UNIT_ERASED);
            assert_int_equal(bed_program(bed, 1, 0, torn, 2, true),
                             NAND_VERDICT_RULE);
            bed_free(bed);
        }
    }
}

/* A host can write such data if it knows the block's erase number. */
static void test_data_of_a_host_is_no_end_of_a_wordline_in_slc_mode(
    void **state)
{
    struct bed *bed = bed_new("tlc2021", 1, 2);
    struct nand_op *op;
    struct nand_unit unit;

    (void)state;
    op = bed_program_op(bed, 1, 0, 0, 1, true);
    /* The first unit of page 1 is where SLC mode has the end of the slot. */
    nand_wordline_emit(&(struct nand_wordline){.number = 1, .pages = 1}, true,
                       op->units[4].data);
    assert_true(bed_start(bed, op));
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    op = bed_op(bed, NAND_OP_ERASE, 1, 0);
    op->is_slc = true;
    op->keeps_storage = true;
    assert_true(bed_start(bed, op));
    assert_true(bed_finish(bed, op));
    nand_op_put(bed->array, op);
    bed_reopen(bed);
    assert_int_equal(bed_read_unit(bed, 0, 0, 0, 0, 0, &unit), NAND_VERDICT_OK);
    assert_int_equal(unit.status, NAND_UNIT_ERASED);
    assert_int_equal(bed_program(bed, 1, 0, 0, 2, true), NAND_VERDICT_OK);
    bed_free(bed);
}
