/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/ib_time.h"
#include "net/wire/psn.h"

static void test_psn_diff_is_right_across_the_wrap(void **state)
{
    static const struct {
        uint32_t a, b;
        int32_t diff;
    } rows[] = {
        {0, 0, 0},
        {1, 0, 1},
        {0, 1, -1},
        {0, 0xffffff, 1},
        {0xffffff, 0, -1},
        {0x7fffff, 0, 0x7fffff},
        {0x800000, 0, -0x800000},
        {5, 0xfffffb, 10},
        {0xfffffb, 5, -10},
        {0xff000001, 0, 1}, /* only 24 bits count */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(psn_diff(rows[i].a, rows[i].b), rows[i].diff);
    }
}

static void test_psn_add_wraps(void **state)
{
    (void)state;
    assert_int_equal(psn_add(0xffffff, 1), 0);
    assert_int_equal(psn_add(0xfffff0, 0x20), 0x10);
    assert_int_equal(psn_add(0, (uint32_t)-1), 0xffffff);
}

static void test_ib_time_us_converts_codes(void **state)
{
    (void)state;
    assert_int_equal(ib_time_us(0), 5);
    assert_int_equal(ib_time_us(17), 536871); /* rxe's ACK timeout */
    assert_int_equal(ib_time_us(20), 4294968);
    assert_true(ib_time_us(31) == 8796093023ull);
}
