/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the engine by themselves: CUBIC, deadlines, initial numbers. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/random.h"
#include "net/tcp/internal.h"

/* One round trip of 100 ms in which the whole window is acknowledged. */
static void cubic_round(struct tcp *tcp, struct tcp_conn *conn)
{
    uint32_t left = conn->cwnd;

    tcp->now_us += 100000;
    for (; left >= 1000; left -= 1000) {
        tcp_cc_cubic.acked(tcp, conn, 1000);
    }
}

/* RFC 9438 sections 4.2 and 4.6: after a loss at 100 segments the window is 70,
 * and is 100 again after K = cubic root of 30 / 0.4 = 4.2 s, at first fast. */
static void test_cubic_returns_to_its_plateau_after_k(void **state)
{
    struct tcp tcp = {.now_us = 1000000};
    struct tcp_conn conn = {.mss = 1000, .cwnd = 100000, .srtt_us = 100000};

    (void)state;
    conn.ssthresh = tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    assert_int_equal(conn.ssthresh, 70000);
    conn.cwnd = conn.ssthresh;
    for (int i = 0; i < 21; i++) {
        cubic_round(&tcp, &conn);
    }
    assert_in_range(conn.cwnd, 95000, 98500);
    for (int i = 0; i < 21; i++) {
        cubic_round(&tcp, &conn);
    }
    assert_in_range(conn.cwnd, 98500, 101500);
    for (int i = 0; i < 42; i++) { /* beyond the plateau it probes */
        cubic_round(&tcp, &conn);
    }
    assert_in_range(conn.cwnd, 120000, 140000);
}

/* RFC 9438 section 4.7: a second loss below the old maximum yields. */
static void test_cubic_converges_fast(void **state)
{
    struct tcp tcp = {.now_us = 1000000};
    struct tcp_conn conn = {.mss = 1000, .cwnd = 100000};

    (void)state;
    conn.cwnd = tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    (void)tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    assert_int_equal(conn.cubic.w_max, 59500);
}

/* RFC 9438 section 4.8: after a time-out the window that it grows from is its
 * plateau: what it was before the time-out is no aim. */
static void test_cubic_starts_anew_after_a_time_out(void **state)
{
    struct tcp tcp = {.now_us = 1000000};
    struct tcp_conn conn = {.mss = 1000, .cwnd = 100000, .srtt_us = 100000};

    (void)state;
    conn.ssthresh = tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    tcp_cc_cubic.timed_out(&tcp, &conn);
    conn.cwnd = conn.ssthresh;
    for (int i = 0; i < 21; i++) { /* as NewReno: 9/17 a round trip */
        cubic_round(&tcp, &conn);
    }
    assert_in_range(conn.cwnd, 79000, 83000);
}

/* RFC 9438 section 4.3: alpha is 1 from the window on that there was at the
 * last loss, not from the maximum that fast convergence has lowered. */
static void test_cubic_grows_as_newreno_up_to_the_window_of_the_loss(
    void **state)
{
    struct tcp tcp = {.now_us = 1000000};
    struct tcp_conn conn = {.mss = 1000, .cwnd = 100000, .srtt_us = 100000};

    (void)state;
    conn.cwnd = tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    conn.cwnd = conn.ssthresh = tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd);
    cubic_round(&tcp, &conn);
    conn.cubic.w_est = 65000; /* between 59.5 and 70 segments */
    conn.cubic.acked = 0;
    tcp_cc_cubic.acked(&tcp, &conn, 17000);
    assert_int_equal(conn.cubic.acked, 9000);
    conn.cubic.w_est = 70000;
    tcp_cc_cubic.acked(&tcp, &conn, 17000);
    assert_int_equal(conn.cubic.acked, 26000);
}

/* RFC 9438 section 4.9: never below two segments. */
static void test_ssthresh_is_at_least_two_segments(void **state)
{
    struct tcp tcp = {0};
    struct tcp_conn conn = {.mss = 1000, .cwnd = 1000, .snd_nxt = 1000};

    (void)state;
    assert_int_equal(tcp_cc_cubic.lost(&tcp, &conn, conn.cwnd), 2000);
    assert_int_equal(tcp_cc_newreno.lost(&tcp, &conn, 1000), 2000);
}

/* Deadlines come in their order, moved ones at their last time. */
static void test_deadlines_come_in_order(void **state)
{
    enum { ENTRIES = 300 };
    static struct deadline table[ENTRIES];
    struct deadlines deadlines;
    uint64_t random = 3, now_us = 0, due[ENTRIES];
    uint16_t entry, count = 0;

    (void)state;
    deadlines_init(&deadlines, table, ENTRIES);
    for (unsigned int i = 0; i < 4 * ENTRIES; i++) {
        entry = (uint16_t)(random_next(&random) % ENTRIES);
        due[entry] = random_next(&random) % 8 == 0
                         ? DEADLINE_NONE
                         : random_next(&random) % 1000;
        deadlines_set(&deadlines, entry, due[entry]);
    }
    for (; now_us < 1000; now_us++) {
        assert_true(deadlines_next(&deadlines) >= now_us);
        while (deadlines_take(&deadlines, now_us, &entry)) {
            assert_int_equal(due[entry], now_us);
            count++;
        }
    }
    assert_in_range(count, 200, ENTRIES);
    assert_true(deadlines_next(&deadlines) == DEADLINE_NONE);
}

/* RFC 6528 section 3: a clock of 4 us for each pair of ends, and offsets that
 * do not follow from each other. */
static void test_initial_numbers_follow_a_clock(void **state)
{
    struct tcp tcp = {.now_us = 1000};
    struct tcp_ends ends = {.local_port = 80, .remote_port = 1};
    uint32_t first = tcp_isn(&tcp, &ends);
    uint32_t last = first;

    (void)state;
    tcp.now_us += 400;
    assert_int_equal(tcp_isn(&tcp, &ends), first + 100);
    tcp.now_us -= 400;
    for (uint16_t port = 2; port < 1000; port++) {
        ends.remote_port = port;
        assert_true(tcp_isn(&tcp, &ends) - last > 1000);
        last = tcp_isn(&tcp, &ends);
    }
    ends.remote_port = 1;
    tcp.config.secret[15] = 1;
    assert_int_not_equal(tcp_isn(&tcp, &ends), first);
}

/* Every value that is out of its range is refused. */
static void test_config_is_checked(void **state)
{
    static uint8_t memory[1 << 20] __attribute__((aligned(16)));
    static const struct tcp_user user;
    struct tcp_config good = tcp_config_default();
    struct tcp_config bad;

    (void)state;
    good.connections = good.half_open = good.time_waits = good.pages = 4;
    assert_in_range(tcp_bytes(&good), 1, sizeof(memory));
    assert_non_null(tcp_init(memory, &good, &user));
#define REFUSED(field, value)                                                  \
    bad = good;                                                                \
    bad.field = (value);                                                       \
    assert_null(tcp_init(memory, &bad, &user))
    bad = good; /* the sum of all entries is beyond 16 bits */
    bad.connections = UINT16_MAX;
    assert_true(tcp_bytes(&bad) > UINT16_MAX * sizeof(struct tcp_conn));
    assert_true(tcp_image_bytes(&bad) > tcp_bytes(&bad));
    REFUSED(connections, UINT16_MAX);
    REFUSED(connections, 0);
    REFUSED(connections, TCP_CONNECTIONS_MAX + 1);
    REFUSED(half_open, 0);
    REFUSED(time_waits, TCP_TIME_WAITS_MAX + 1);
    REFUSED(pages, 0);
    REFUSED(mtu_bytes, 575);
    REFUSED(window_bytes, TCP_WINDOW_MAX + 1);
    REFUSED(congestion, TCP_CONGESTIONS);
    REFUSED(ack_delay_ms, 501);
    REFUSED(syn_retries, 0);
#undef REFUSED
}

/* The memory budget of the drive: docs/tcp.md. */
static void test_full_size_needs_less_than_12_mib(void **state)
{
    struct tcp_config config = tcp_config_default();

    (void)state;
    print_message("%zu bytes, %zu a connection\n", tcp_bytes(&config),
                  sizeof(struct tcp_conn));
    assert_in_range(tcp_bytes(&config), 8 << 20, 12 << 20);
}
