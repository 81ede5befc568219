/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "lib/patience.h"

#define LIMIT_US UINT64_C(1000000)

static void test_limit_ends_in_time_when_asked_all_the_time(void **state)
{
    struct patience patience;
    unsigned int asked = 0;

    (void)state;
    patience_start(&patience, 77, LIMIT_US);
    while (!patience_is_over(&patience, 77 + 1000 * (asked + UINT64_C(1)))) {
        asked++;
    }
    assert_int_equal(asked, LIMIT_US / 1000 - 1);
    assert_true(patience_is_over(&patience, 77 + LIMIT_US + 1000));
}

static void test_time_in_which_nobody_asked_counts_as_100_ms(void **state)
{
    struct patience patience;
    uint64_t now_us = 5;

    (void)state;
    patience_start(&patience, now_us, LIMIT_US);
    for (unsigned int i = 1; i < LIMIT_US / PATIENCE_STEP_US; i++) {
        now_us += 3600000000;
        assert_false(patience_is_over(&patience, now_us));
    }
    assert_true(patience_is_over(&patience, now_us + 3600000000));
}
