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

/* ---- Units of which some bytes are damaged. */

/* What a read wants of a unit. */
struct wish {
    uint16_t offset[2], length[2]; /* of parts of the data; 0: no part */
    bool wants_meta, wants_system;
};

/* Read unit 1 of page 0 of wordline 0 in this way.  If it is good, it has what
 * was programmed. */
static enum nand_unit_status read_wish(struct bed *bed, const struct wish *wish)
{
    struct nand_op *op = bed_op(bed, NAND_OP_READ, 1, 0);
    struct nand_op *programmed = bed_program_op(bed, 1, 0, 0, 1, true);
    uint8_t meta[NAND_UNIT_META], system[NAND_UNIT_SYSTEM];
    static uint8_t data[2][NAND_UNIT_DATA];
    enum nand_unit_status status;

    op->num_units = wish->length[1] != 0 ? 2 : 1;
    for (unsigned int i = 0; i < op->num_units; i++) {
        op->units[i] = (struct nand_unit){
            .data = wish->length[i] != 0 ? data[i] : NULL,
            .meta = wish->wants_meta ? meta : NULL,
            .system = wish->wants_system ? system : NULL,
            .offset = wish->offset[i],
            .length = wish->length[i],
            .unit = 1,
            .more = i + 1u < op->num_units,
        };
    }
    assert_true(bed_start(bed, op));
    assert_int_equal(op->verdict, NAND_VERDICT_OK);
    assert_true(bed_finish(bed, op));
    status = op->units[0].status;
    for (unsigned int i = 0; i < op->num_units; i++) {
        assert_int_equal(op->units[i].status, status);
        if (status == NAND_UNIT_GOOD) {
            assert_memory_equal(data[i],
                                programmed->units[1].data + wish->offset[i],
                                wish->length[i]);
        }
    }
    if (status == NAND_UNIT_GOOD && wish->wants_meta) {
        assert_memory_equal(meta, programmed->units[1].meta, NAND_UNIT_META);
    }
    if (status == NAND_UNIT_GOOD && wish->wants_system) {
        assert_memory_equal(system, programmed->units[1].system,
                            NAND_UNIT_SYSTEM);
    }
    nand_op_put(bed->array, op);
    nand_op_put(bed->array, programmed);
    return status;
}

/* A unit is one codeword: a damaged byte of it is found whatever of the unit is
 * wanted, also if nothing is. */
static void test_a_damaged_unit_is_damaged_for_every_reader(void **state)
{
    static const struct wish wishes[] = {
        {.length = {NAND_UNIT_DATA}, .wants_meta = true, .wants_system = true},
        {.length = {NAND_UNIT_DATA}},
        {.length = {512}},
        {.offset = {2048}, .length = {512}, .wants_meta = true},
        {.offset = {8, 4088}, .length = {16, 8}},
        {.offset = {0, 4088}, .length = {8, 8}, .wants_system = true},
        {.wants_meta = true},
        {.wants_system = true},
        {.wants_meta = true, .wants_system = true},
        {.length = {0}},
    };
    static const uint32_t bytes[] = {
        0,
        511,
        512,
        2047,
        2048,
        4095,
        NAND_SLOT_META,
        NAND_SLOT_META + NAND_UNIT_META - 1,
        NAND_SLOT_SYSTEM,
        NAND_SLOT_SYSTEM + NAND_UNIT_SYSTEM - 1,
        NAND_SLOT_TRAILER,
        NAND_SLOT_TRAILER + 19, /* of the last CRC */
    };

    (void)state;
    for (unsigned int wish = 0; wish < ARRAY_LEN(wishes); wish++) {
        struct bed *bed = bed_new("tlc2021", 1, 1);

        assert_int_equal(bed_erase(bed, 1, 0, false, true), NAND_VERDICT_OK);
        assert_int_equal(bed_program(bed, 1, 0, 0, 1, true), NAND_VERDICT_OK);
        assert_int_equal(read_wish(bed, &wishes[wish]), NAND_UNIT_GOOD);
        for (unsigned int i = 0; i < ARRAY_LEN(bytes); i++) {
            uint8_t *at = slot_of(bed, 0) + nand_slot_unit(1) + bytes[i];

            *at ^= 0x10;
            assert_int_equal(read_wish(bed, &wishes[wish]),
                             NAND_UNIT_UNCORRECTABLE);
            *at ^= 0x10;
        }
        assert_int_equal(read_wish(bed, &wishes[wish]), NAND_UNIT_GOOD);
        bed_free(bed);
    }
}
