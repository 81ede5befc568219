/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_list.h"
#include "storage/ftl/base/ftl_system_row.h"

static const struct ftl_geometry tlc = {
    .dies = 6,
    .planes = 4,
    .pages = 3,
    .units = 4,
    .blocks = 200,
    .wordlines = 20,
};

static void test_places_follow_the_order_of_programming(void **state)
{
    struct ftl_layout layout;
    uint32_t place = 0;

    (void)state;
    assert_true(ftl_layout_init(&layout, &tlc));
    assert_int_equal(layout.row_units, 48);
    for (unsigned int block = 0; block < 2; block++) {
        for (unsigned int row = 0; row < 120; row++) {
            for (unsigned int index = 0; index < 48; index++) {
                struct ftl_flash_op op;
                struct ftl_flash_unit unit;

                assert_int_equal(ftl_place(&layout, block, row, index), place);
                assert_int_equal(ftl_place_superblock(&layout, place), block);
                ftl_layout_row(&layout, ftl_place_row(&layout, place), &op);
                assert_int_equal(op.block, block);
                assert_int_equal(op.wordline, row / 6);
                assert_int_equal(op.die, row % 6);
                ftl_layout_unit(&layout, index, &unit);
                assert_int_equal(unit.page, index / 16);
                assert_int_equal(unit.plane, index / 4 % 4);
                assert_int_equal(unit.unit, index % 4);
                assert_int_equal(ftl_layout_index(&layout, &unit), index);
                place++;
            }
        }
    }
}

static void test_a_flash_that_is_too_large_is_refused(void **state)
{
    struct ftl_geometry geometry = tlc;
    struct ftl_layout layout;

    (void)state;
    geometry.dies = 256;
    geometry.wordlines = 2000;
    geometry.blocks = 65535;
    assert_false(ftl_layout_init(&layout, &geometry));
    geometry = tlc;
    geometry.planes = 5;
    assert_false(ftl_layout_init(&layout, &geometry));
    geometry = tlc;
    geometry.units = 0;
    assert_false(ftl_layout_init(&layout, &geometry));
}

static void test_system_bytes_have_this_format(void **state)
{
    static const uint8_t golden[FTL_UNIT_SYSTEM - 1] = {
        0x78, 0x56, 0x34, 0x12,       /* number */
        0x05, 0x04, 0x03, 0x02, 0x91, /* version, bits 3:0 of the marks */
        0x0a, 0x09, 0x08, 0x07, 0xc6, /* row, bits 7:4 of the marks */
        0x95,                         /* kind, attempt, of a mount */
    };
    const struct ftl_system system = {
        .kind = FTL_KIND_DATA,
        .is_of_mount = true,
        .number = 0x12345678,
        .version = UINT64_C(0x0102030405),
        .row = UINT64_C(0x060708090a),
        .attempt = 5,
        .marks = 0xc9,
    };
    struct ftl_system parsed;
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    ftl_system_emit(&system, buf);
    assert_memory_equal(buf, golden, sizeof(golden));
    assert_true(ftl_system_parse(&parsed, buf));
    assert_int_equal(parsed.kind, system.kind);
    assert_true(parsed.is_of_mount);
    assert_int_equal(parsed.number, system.number);
    assert_int_equal(parsed.version, system.version);
    assert_int_equal(parsed.row, system.row);
    assert_int_equal(parsed.attempt, system.attempt);
    assert_int_equal(parsed.marks, system.marks);
}

static void test_units_of_a_row_differ_in_number_and_check_byte(void **state)
{
    static const uint32_t numbers[] = {
        0, 1, 0xff, 0x100, 0x12345678, 0x00ff0000, 0x3fffffff, 0x7fffffff};
    struct ftl_system system = {
        .kind = FTL_KIND_DATA,
        .is_of_mount = true,
        .version = UINT64_C(0x0102030405),
        .row = UINT64_C(0x0102030405),
    };
    struct ftl_system_sums sums;
    uint8_t row[FTL_UNIT_SYSTEM], expected[FTL_UNIT_SYSTEM];
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    ftl_system_sums_init(&sums);
    ftl_system_emit(&system, row);
    for (unsigned int i = 0; i < ARRAY_LEN(numbers); i++) {
        system.number = numbers[i];
        ftl_system_emit(&system, expected);
        ftl_system_emit_number(&sums, row, numbers[i], buf);
        assert_memory_equal(buf, expected, sizeof(buf));
    }
    for (uint32_t bit = 0; bit < 31; bit++) {
        system.number = (uint32_t)(BIT(bit) | BIT(bit / 2));
        ftl_system_emit(&system, expected);
        ftl_system_emit_number(&sums, row, system.number, buf);
        assert_memory_equal(buf, expected, sizeof(buf));
    }
}

static void test_the_check_byte_of_a_sum_follows_from_its_parts(void **state)
{
    struct ftl_system_sums sums;
    uint8_t sum[FTL_UNIT_SYSTEM] = {0};

    (void)state;
    ftl_system_sums_init(&sums);
    for (uint32_t count = 0; count < 9; count++) {
        const struct ftl_system system = {
            .kind = count % 2 != 0 ? FTL_KIND_TRIM : FTL_KIND_DATA,
            .number = 77 * count,
            .version = 3 + count,
            .row = 1000 + count,
            .marks = (uint8_t)(19 * count)};
        uint8_t expected[FTL_UNIT_SYSTEM], buf[FTL_UNIT_SYSTEM];

        memcpy(expected, sum, sizeof(sum));
        ftl_system_mark_parity(expected);
        memcpy(buf, sum, sizeof(sum));
        ftl_system_mark_sum(&sums, buf, count % 2 != 0);
        assert_memory_equal(buf, expected, sizeof(buf));
        ftl_system_emit(&system, buf);
        for (unsigned int i = 0; i < sizeof(sum); i++) {
            sum[i] ^= buf[i];
        }
    }
}

static void test_damaged_system_bytes_are_refused(void **state)
{
    struct ftl_system system = {.kind = FTL_KIND_TRIM, .number = 7, .row = 9};
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    ftl_system_emit(&system, buf);
    for (unsigned int i = 0; i < 8 * FTL_UNIT_SYSTEM; i++) {
        buf[i / 8] ^= (uint8_t)BIT(i % 8);
        assert_false(ftl_system_parse(&system, buf));
        buf[i / 8] ^= (uint8_t)BIT(i % 8);
    }
    assert_true(ftl_system_parse(&system, buf));
    memset(buf, 0xff, sizeof(buf));
    assert_false(ftl_system_parse(&system, buf));
}

/* No row has the number 0, and no version is later than the row. */
static void test_system_bytes_of_no_row_are_refused(void **state)
{
    struct ftl_system system = {.kind = FTL_KIND_DATA, .number = 7};
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    ftl_system_emit(&system, buf);
    assert_false(ftl_system_parse(&system, buf));
    system = (struct ftl_system){.row = 9, .version = 10};
    ftl_system_emit(&system, buf);
    assert_false(ftl_system_parse(&system, buf));
    system = (struct ftl_system){.row = 9, .version = 9};
    ftl_system_emit(&system, buf);
    assert_true(ftl_system_parse(&system, buf));
}

static void test_system_bytes_say_that_contents_are_lost(void **state)
{
    struct ftl_system system = {
        .kind = FTL_KIND_DATA,
        .is_lost = true,
        .number = FTL_PLACES_MAX,
        .row = 9,
    };
    struct ftl_system parsed;
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    ftl_system_emit(&system, buf);
    assert_true(ftl_system_parse(&parsed, buf));
    assert_true(parsed.is_lost);
    assert_int_equal(parsed.number, system.number);
}

static void test_nothing_is_rebuilt_from_spoilt_system_bytes(void **state)
{
    (void)state;
    for (uint8_t kind = FTL_KIND_DATA; kind < FTL_KINDS; kind++) {
        struct ftl_system system = {.kind = kind, .number = 7, .row = 9};
        uint8_t buf[FTL_UNIT_SYSTEM];

        ftl_system_emit(&system, buf);
        ftl_system_spoil(buf);
        ftl_system_mark_data(buf);
        assert_false(ftl_system_parse(&system, buf));
    }
}

/* The XOR of valid system bytes may look valid itself. */
static void test_system_bytes_of_parity_are_not_those_of_data(void **state)
{
    struct ftl_system system = {.kind = FTL_KIND_DATA, .number = 7, .row = 9};
    uint8_t buf[FTL_UNIT_SYSTEM];

    (void)state;
    ftl_system_emit(&system, buf);
    assert_false(ftl_system_is_parity(buf));
    assert_false(ftl_system_is_old(buf));
    ftl_system_mark_parity(buf);
    assert_true(ftl_system_is_parity(buf));
    assert_false(ftl_system_is_old(buf));
    assert_false(ftl_system_parse(&system, buf));
    ftl_system_mark_data(buf);
    assert_true(ftl_system_parse(&system, buf));
}

static void test_a_list_keeps_the_order_of_its_entries(void **state)
{
    struct ftl_link links[8];
    struct ftl_list list;

    (void)state;
    ftl_list_init(&list, links);
    assert_int_equal(ftl_list_pop(&list), FTL_LIST_END);
    ftl_list_append(&list, 3);
    ftl_list_append(&list, 5);
    ftl_list_insert(&list, 1, 5); /* 3 1 5 */
    ftl_list_insert(&list, 7, 3); /* 7 3 1 5 */
    ftl_list_remove(&list, 1);
    ftl_list_remove(&list, 5);
    ftl_list_append(&list, 2); /* 7 3 2 */
    assert_int_equal(list.count, 3);
    assert_int_equal(ftl_list_pop(&list), 7);
    assert_int_equal(ftl_list_pop(&list), 3);
    assert_int_equal(ftl_list_pop(&list), 2);
    assert_int_equal(ftl_list_pop(&list), FTL_LIST_END);
    assert_int_equal(list.count, 0);
}

static void test_entries_are_moved_between_lists_together(void **state)
{
    static const uint16_t begin[] = {2, 0};
    struct ftl_link links[6], other_links[6];
    struct ftl_list list, other;
    uint16_t taken[6];

    (void)state;
    ftl_list_init(&list, links);
    ftl_list_init(&other, other_links);
    ftl_list_append_all(&list, begin, 0);
    assert_int_equal(ftl_list_pop_all(&list, taken, 6), 0);
    ftl_list_append_all(&list, begin, 2);
    ftl_list_append(&list, 4);
    ftl_list_append_all(&list, &(const uint16_t){1}, 1);
    assert_int_equal(list.count, 4);
    assert_int_equal(ftl_list_pop_all(&list, taken, 3), 3);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.head, 1);
    assert_int_equal(list.tail, 1);
    assert_int_equal(links[1].prev, FTL_LIST_END);
    ftl_list_append_all(&other, taken, 3);
    ftl_list_remove(&other, 0); /* The links to the predecessors are right. */
    assert_int_equal(ftl_list_pop(&other), 2);
    assert_int_equal(ftl_list_pop(&other), 4);
    assert_int_equal(ftl_list_pop(&other), FTL_LIST_END);
    assert_int_equal(ftl_list_pop_all(&list, taken, 6), 1);
    assert_int_equal(taken[0], 1);
    assert_int_equal(list.head, FTL_LIST_END);
    assert_int_equal(list.tail, FTL_LIST_END);
    assert_int_equal(list.count, 0);
}

static void test_a_stack_gives_the_entry_that_was_pushed_last(void **state)
{
    struct ftl_link links[4];
    struct ftl_list stack;

    (void)state;
    ftl_list_init(&stack, links);
    assert_int_equal(ftl_stack_pop(&stack), FTL_LIST_END);
    assert_int_equal(stack.count, 0);
    for (uint16_t i = 0; i < 3; i++) {
        ftl_list_append(&stack, i);
    }
    assert_int_equal(ftl_stack_pop(&stack), 0);
    assert_int_equal(ftl_stack_pop(&stack), 1);
    ftl_stack_push(&stack, 0);
    ftl_stack_push(&stack, 3);
    assert_int_equal(stack.count, 3);
    assert_int_equal(ftl_stack_pop(&stack), 3);
    assert_int_equal(ftl_stack_pop(&stack), 0);
    assert_int_equal(ftl_stack_pop(&stack), 2);
    assert_int_equal(ftl_stack_pop(&stack), FTL_LIST_END);
    assert_int_equal(stack.count, 0);
}
