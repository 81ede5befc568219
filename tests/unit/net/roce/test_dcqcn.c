/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the reaction point with the equations of Zhu et al., SIGCOMM 2015,
 * computed in floating point.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#include "net/roce/dcqcn.h"

enum { LINE = 25000000 };

static void assert_near(double value, double expected)
{
    double off = value > expected ? value - expected : expected - value;

    if (off > expected / 10000 + 2) {
        fail_msg("%f is not %f", value, expected);
    }
}

/* (1): R_T = R_C, R_C = R_C (1 - a/2), a = (1 - g) a + g; the first a is 1. */
static void test_the_first_cnp_halves_the_rate(void **state)
{
    struct dcqcn d = {0};

    (void)state;
    assert_true(dcqcn_may_send(&d, LINE, 5000));
    dcqcn_cnp(&d, LINE, 5000);
    assert_true(d.is_limited);
    assert_int_equal(d.target_kbps, LINE);
    assert_int_equal(d.current_kbps, LINE / 2);
    assert_int_equal(d.alpha, DCQCN_ALPHA_ONE);
    assert_true(dcqcn_valid(&d));
}

/* CNPs every 50 us allow no recovery: the rate falls to the minimum. */
static void test_repeated_cnps_lower_the_rate_to_the_minimum(void **state)
{
    struct dcqcn d = {0};
    uint64_t now_ns = 1;
    const double least = DCQCN_MIN_KBPS;
    double current = LINE;

    (void)state;
    for (unsigned int i = 0; i < 40; i++, now_ns += DCQCN_CNP_NS) {
        dcqcn_cnp(&d, LINE, now_ns);
        current = current / 2 > least ? current / 2 : least;
        assert_near(d.current_kbps, current);
    }
    assert_int_equal(d.current_kbps, DCQCN_MIN_KBPS);
    assert_true(dcqcn_valid(&d));
}

/* (2): without CNPs a = (1 - g) a every 55 us; a late CNP lowers R_C less. */
static void test_alpha_falls_without_cnps(void **state)
{
    struct dcqcn d = {0};
    double alpha = 1;

    (void)state;
    dcqcn_cnp(&d, LINE, 1);
    for (unsigned int k = 0; k < 300; k++) {
        alpha *= 255.0 / 256;
    }
    (void)!dcqcn_may_send(&d, LINE, 1 + 2000 * DCQCN_TIME_NS);
    assert_false(d.is_limited); /* back at the line rate */
    dcqcn_cnp(&d, LINE, 1 + 300 * DCQCN_ALPHA_NS + 17);
    assert_near(d.current_kbps, (double)LINE * (1 - alpha / 2));
    assert_near(d.alpha,
                (alpha * 255 / 256 + 1.0 / 256) * (double)DCQCN_ALPHA_ONE);
}

/* (3), (4): fast recovery for F stages, then R_T grows by R_AI. */
static void test_recovery_by_the_timer_is_fast_then_additive(void **state)
{
    struct dcqcn d = {0};
    double current, target;

    (void)state;
    dcqcn_cnp(&d, LINE, 1);
    dcqcn_cnp(&d, LINE, 2);
    dcqcn_cnp(&d, LINE, 3);
    target = d.target_kbps;
    current = d.current_kbps;
    for (unsigned int stage = 1; stage < 30; stage++) {
        uint64_t now_ns = 3 + stage * DCQCN_TIME_NS;

        (void)!dcqcn_may_send(&d, LINE, now_ns - 1);
        assert_near(d.current_kbps, current);
        (void)!dcqcn_may_send(&d, LINE, now_ns);
        if (stage >= DCQCN_F) {
            target += (double)DCQCN_AI_KBPS;
        }
        current = (target + current) / 2;
        assert_near(d.target_kbps, target);
        assert_near(d.current_kbps, current);
    }
}

/* (5): when both counters exceed F, R_T grows by i R_HAI. */
static void test_recovery_by_timer_and_bytes_is_hyper(void **state)
{
    struct dcqcn d = {0};
    uint64_t now_ns = 1;
    unsigned int stages = 0;
    uint32_t before;

    (void)state;
    for (unsigned int i = 0; i < 12; i++) {
        dcqcn_cnp(&d, LINE, now_ns);
    }
    for (; stages < DCQCN_F + 1; stages++) {
        dcqcn_sent(&d, LINE, DCQCN_BYTES);
        now_ns += DCQCN_TIME_NS;
        (void)!dcqcn_may_send(&d, LINE, now_ns);
    }
    assert_int_equal(d.byte_stages, DCQCN_F + 1);
    before = d.target_kbps;
    dcqcn_sent(&d, LINE, DCQCN_BYTES); /* i = min - F = 1 */
    assert_int_equal(d.target_kbps, before + DCQCN_HAI_KBPS);
    (void)!dcqcn_may_send(&d, LINE, now_ns + DCQCN_TIME_NS);
    assert_int_equal(d.target_kbps, before + 3 * DCQCN_HAI_KBPS); /* i = 2 */
}

/* A CNP restarts recovery: F stages without increase, and a full byte stage. */
static void test_a_cnp_during_recovery_restarts_it(void **state)
{
    struct dcqcn d = {0};
    uint64_t now_ns = 1;
    uint32_t target;

    (void)state;
    for (unsigned int i = 0; i < 12; i++) {
        dcqcn_cnp(&d, LINE, now_ns);
    }
    for (unsigned int stage = 0; stage < DCQCN_F + 2; stage++) {
        dcqcn_sent(&d, LINE, DCQCN_BYTES);
        now_ns += DCQCN_TIME_NS;
        (void)!dcqcn_may_send(&d, LINE, now_ns);
    }
    dcqcn_sent(&d, LINE, DCQCN_BYTES - 1);
    dcqcn_cnp(&d, LINE, now_ns);
    target = d.target_kbps;
    dcqcn_sent(&d, LINE, DCQCN_BYTES - 1);
    assert_int_equal(d.byte_stages, 0);
    for (unsigned int stage = 1; stage < DCQCN_F; stage++) {
        (void)!dcqcn_may_send(&d, LINE, now_ns + stage * DCQCN_TIME_NS);
        assert_int_equal(d.target_kbps, target);
    }
    (void)!dcqcn_may_send(&d, LINE, now_ns + DCQCN_F * DCQCN_TIME_NS);
    assert_int_equal(d.target_kbps, target + DCQCN_AI_KBPS);
}

static void test_the_limit_ends_at_the_line_rate(void **state)
{
    struct dcqcn d = {0};
    uint64_t now_ns = 1;

    (void)state;
    dcqcn_cnp(&d, LINE, now_ns);
    while (d.is_limited) {
        now_ns += DCQCN_TIME_NS;
        (void)!dcqcn_may_send(&d, LINE, now_ns);
        assert_in_range(now_ns, 1, 1000000);
    }
    /* At first half of the rate is missing, after 7 stages less than 2^-7. */
    assert_int_equal(now_ns, 1 + 7 * DCQCN_TIME_NS);
    /* A slower line rate ends the limit at once. */
    dcqcn_cnp(&d, LINE, now_ns);
    (void)!dcqcn_may_send(&d, LINE / 100, now_ns + DCQCN_TIME_NS);
    assert_false(d.is_limited);
}

/* The number of bytes depends only on the rate, not on the number of calls. */
static void test_packets_are_sent_at_the_limited_rate(void **state)
{
    static const uint64_t steps_ns[] = {100, 1000, 7777, 15000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps_ns); i++) {
        struct dcqcn d = {.is_limited = true,
                          .current_kbps = 1000000,
                          .target_kbps = 1000000,
                          .alpha_ns = 1,
                          .time_ns = UINT64_MAX / 2};
        uint64_t bytes = 0;

        for (uint64_t now_ns = 0; now_ns < 10000000; now_ns += steps_ns[i]) {
            while (dcqcn_may_send(&d, LINE, now_ns)) {
                assert_int_equal(dcqcn_take(&d, 1250, now_ns), 10000);
                bytes += 1250;
            }
        }
        /* 1 Gb/s for 10 ms, and the burst that may be ahead */
        assert_in_range(bytes, 1250000 - 4000, 1250000 + 4000);
    }
}

static void test_idle_time_gives_no_credit(void **state)
{
    struct dcqcn d = {.is_limited = true,
                      .current_kbps = 1000000,
                      .target_kbps = 1000000,
                      .time_ns = UINT64_MAX / 2};
    unsigned int n = 0;
    uint32_t taken = 0;

    (void)state;
    while (dcqcn_may_send(&d, LINE, 1000000000)) {
        taken = dcqcn_take(&d, 1250, 1000000000);
        n++;
    }
    assert_int_equal(n, 4); /* 32 us at 10 us each */
    dcqcn_undo(&d, taken);
    assert_true(dcqcn_may_send(&d, LINE, 1000000000));
}

static void test_invalid_states_are_refused(void **state)
{
    struct dcqcn good = {.is_limited = true,
                         .current_kbps = DCQCN_MIN_KBPS,
                         .target_kbps = DCQCN_MIN_KBPS};
    struct dcqcn bad;

    (void)state;
    assert_true(dcqcn_valid(&good));
    bad = good;
    bad.current_kbps = 0; /* a divisor */
    assert_false(dcqcn_valid(&bad));
    bad = good;
    bad.alpha = DCQCN_ALPHA_ONE + 1;
    assert_false(dcqcn_valid(&bad));
    bad = good;
    bad.bytes = DCQCN_BYTES;
    assert_false(dcqcn_valid(&bad));
}
