/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of unreadable blocks, alone: its ranges, and what happens when it is
 * full. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "nvmeof/target/base/lba_list.h"
#include "tests/test_fixture.h"

enum { BLOCKS = 48, STEPS = 40000, NSIDS = 2 };

static struct lba_list list; /* static, because tests run one by one */
static uint64_t number;

static int setup(void **state)
{
    (void)state;
    memset(&list, 0, sizeof(list));
    number = 0;
    return 0;
}

static enum lba_added add_blocks(uint8_t nsid, uint64_t lba, uint32_t count)
{
    return lba_list_add(&list, nsid, lba, count, count == 1, ++number);
}

static void expect_range(uint16_t i, uint8_t nsid, uint64_t first,
                         uint32_t count, bool is_certain)
{
    assert_true(i < list.count);
    assert_int_equal(list.range[i].nsid, nsid);
    assert_int_equal(list.range[i].first_lba, first);
    assert_int_equal(list.range[i].count_blocks, count);
    assert_int_equal(list.range[i].is_certain, is_certain);
}

static void test_adjacent_blocks_of_one_kind_become_one_range(void **state)
{
    (void)state;
    assert_int_equal(add_blocks(1, 10, 1), LBA_ADDED);
    assert_int_equal(add_blocks(1, 12, 1), LBA_ADDED);
    assert_int_equal(add_blocks(2, 11, 1), LBA_ADDED);
    assert_int_equal(list.count, 3);
    assert_int_equal(add_blocks(1, 11, 1), LBA_ADDED);
    assert_int_equal(list.count, 2);
    expect_range(0, 1, 10, 3, true);
    assert_int_equal(list.range[0].number, 4);
    expect_range(1, 2, 11, 1, true);
    assert_int_equal(add_blocks(1, 13, 4), LBA_ADDED); /* only suspected */
    expect_range(1, 1, 13, 4, false);
}

static void test_a_certain_block_divides_a_suspected_range(void **state)
{
    (void)state;
    assert_int_equal(add_blocks(1, 8, 8), LBA_ADDED);
    assert_int_equal(add_blocks(1, 10, 1), LBA_KNOWN);
    assert_int_equal(list.count, 3);
    expect_range(0, 1, 8, 2, false);
    expect_range(1, 1, 10, 1, true);
    expect_range(2, 1, 11, 5, false);
    assert_int_equal(list.range[1].number, 1);
    /* A read of more blocks has failed because of block 10. */
    assert_int_equal(add_blocks(1, 0, 256), LBA_KNOWN);
    assert_int_equal(list.count, 3);
    assert_int_equal(add_blocks(1, 10, 1), LBA_KNOWN);
}

static void test_written_blocks_leave_the_list(void **state)
{
    (void)state;
    add_blocks(1, 100, 50);
    assert_true(lba_list_remove(&list, 2, 0, 1000));
    assert_true(lba_list_remove(&list, 1, 150, 10));
    assert_true(lba_list_remove(&list, 1, 90, 10));
    expect_range(0, 1, 100, 50, false);
    assert_true(lba_list_remove(&list, 1, 110, 5));
    expect_range(0, 1, 100, 10, false);
    expect_range(1, 1, 115, 35, false);
    assert_true(lba_list_remove(&list, 1, 105, 20));
    expect_range(0, 1, 100, 5, false);
    expect_range(1, 1, 125, 25, false);
    assert_true(lba_list_remove(&list, 1, 0, UINT64_MAX));
    assert_int_equal(list.count, 0);
}

static void fill_list(void)
{
    for (uint32_t i = 0; i < LBA_LIST_MAX; i++) {
        assert_int_equal(add_blocks(1, 100 * i, 4), LBA_ADDED);
    }
    assert_int_equal(list.count, LBA_LIST_MAX);
}

static void test_a_full_list_takes_only_blocks_beside_others(void **state)
{
    (void)state;
    fill_list();
    assert_int_equal(add_blocks(1, 50, 4), LBA_FULL);
    assert_int_equal(add_blocks(2, 0, 4), LBA_FULL);
    assert_int_equal(add_blocks(1, 104, 4), LBA_ADDED);
    expect_range(1, 1, 100, 8, false);
    assert_int_equal(add_blocks(1, 201, 1), LBA_KNOWN); /* stays suspected */
    assert_int_equal(list.count, LBA_LIST_MAX);
}

static void test_a_full_list_says_that_it_has_lost_blocks(void **state)
{
    (void)state;
    fill_list();
    /* The block that was written must not be in the list any more. */
    assert_false(lba_list_remove(&list, 1, 301, 1));
    expect_range(3, 1, 300, 1, false);
    assert_int_equal(list.count, LBA_LIST_MAX);
    assert_true(lba_list_remove(&list, 1, 300, 4));
    assert_int_equal(list.count, LBA_LIST_MAX - 1);
}

static void test_forgetting_a_namespace_leaves_the_others(void **state)
{
    (void)state;
    add_blocks(1, 1, 1);
    add_blocks(2, 2, 1);
    add_blocks(3, 3, 1);
    assert_true(lba_list_has(&list, 2));
    lba_list_forget(&list, 2);
    assert_false(lba_list_has(&list, 2));
    assert_int_equal(list.count, 2);
    expect_range(1, 3, 3, 1, true);
    lba_list_forget(&list, 0);
    assert_int_equal(list.count, 0);
}

static uint32_t random_below(uint32_t below)
{
    static uint64_t state = 1;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* What the list should hold of each block: 0 nothing, 1 suspected, 2 certain.
 */
static uint8_t model[NSIDS][BLOCKS];

static void change_both(void)
{
    uint8_t nsid = (uint8_t)random_below(NSIDS);
    uint32_t first = random_below(BLOCKS);
    uint32_t count = 1 + random_below(MIN(BLOCKS - first, 6));
    bool overlaps = false;

    for (uint32_t i = first; i < first + count; i++) {
        overlaps |= model[nsid][i] != 0;
    }
    assert_int_equal(
        lba_list_overlaps(&list, (uint8_t)(nsid + 1), first, count), overlaps);
    if (random_below(2) == 0) {
        assert_true(lba_list_remove(&list, (uint8_t)(nsid + 1), first, count));
        memset(&model[nsid][first], 0, count);
        return;
    }
    assert_int_equal(add_blocks((uint8_t)(nsid + 1), first, count),
                     overlaps ? LBA_KNOWN : LBA_ADDED);
    if (count == 1) {
        model[nsid][first] = 2;
    } else if (!overlaps) {
        memset(&model[nsid][first], 1, count);
    }
}

static void compare_both(void)
{
    uint8_t found[NSIDS][BLOCKS] = {{0}};

    for (uint16_t i = 0; i < list.count; i++) {
        const struct lba_range *range = &list.range[i];

        assert_true(range->count_blocks != 0 && lba_range_end(range) <= BLOCKS);
        if (i > 0 && range[-1].nsid == range->nsid) {
            assert_true(lba_range_end(&range[-1]) < range->first_lba ||
                        (lba_range_end(&range[-1]) == range->first_lba &&
                         range[-1].is_certain != range->is_certain));
        }
        memset(&found[range->nsid - 1][range->first_lba],
               range->is_certain ? 2 : 1, range->count_blocks);
    }
    assert_memory_equal(found, model, sizeof(model));
}

static void test_random_changes_leave_what_a_map_of_blocks_has(void **state)
{
    (void)state;
    memset(model, 0, sizeof(model));
    for (unsigned int i = 0; i < STEPS; i++) {
        change_both();
        compare_both();
    }
}

TEST_FIXTURE(setup, NULL)
