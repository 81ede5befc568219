/* SPDX-License-Identifier: BSD-2-Clause */
/* Deadlines expire in order, whatever was set before. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/roce/timers.h"

static void test_deadlines_expire_in_order(void **state)
{
    static struct timers timers;
    uint64_t last = 0;
    uint16_t slot;
    unsigned int n = 0;

    (void)state;
    timers_reset(&timers);
    for (uint16_t i = 0; i < TIMERS_MAX; i++) {
        timers_set(&timers, i, (i * 7919u) % TIMERS_MAX + 1);
    }
    while (timers_next(&timers) != TIMERS_NONE) {
        uint64_t due = timers_next(&timers);

        assert_true(due >= last);
        last = due;
        assert_false(timers_expired(&timers, due - 1, &slot));
        assert_true(timers_expired(&timers, due, &slot));
        assert_int_equal((slot * 7919u) % TIMERS_MAX + 1, due);
        n++;
    }
    assert_int_equal(n, TIMERS_MAX);
}

/* Compare with a list of deadlines that is searched completely each time. */
static void test_moving_deadlines_agree_with_a_plain_list(void **state)
{
    enum { SLOTS = 16 };
    static struct timers timers;
    uint64_t due[SLOTS], now = 0;
    uint32_t seed = 1;
    uint16_t slot;

    (void)state;
    timers_reset(&timers);
    for (unsigned int i = 0; i < SLOTS; i++) {
        due[i] = TIMERS_NONE;
    }
    for (unsigned int i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        slot = seed >> 8 & (SLOTS - 1);
        due[slot] = seed >> 12 & 3 ? now + (seed >> 16 & 0xff) : TIMERS_NONE;
        timers_set(&timers, slot, due[slot]);
        now += seed >> 24 & 15;
        while (timers_expired(&timers, now, &slot)) {
            assert_true(due[slot] <= now);
            due[slot] = TIMERS_NONE;
        }
        for (unsigned int k = 0; k < SLOTS; k++) {
            assert_true(due[k] > now);
            assert_true(due[k] == TIMERS_NONE ||
                        timers_next(&timers) <= due[k]);
        }
    }
}
