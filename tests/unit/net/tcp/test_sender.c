/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer's acknowledgements may and may not do to a sender. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/script.h"

static void script_open_with(struct script *script, const char *first)
{
    struct tcp_config config = script_config();

    script_begin(script, &config, 0xfffffc00, 0xfffff800);
    script_run(script, first);
}

static struct tcp_conn *conn_of(struct script *script)
{
    return tcp_conn_by_id(script->host->tcp, script->id);
}

/* ---- SACK. */

/* RFC 2018 section 3: a block tells of bytes beyond the acknowledged ones.  A
 * peer whose block holds the next byte, and whose window closes and opens, must
 * not gain a congestion window of 4 GiB (RFC 5681 section 3.1). */
static void test_block_at_the_next_byte_opens_no_window(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    struct tcp_info info;
    char line[200];
    unsigned int at = 1;

    (void)state;
    config.congestion = TCP_CUBIC;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    script_run(&script, "send 20000\n"
                        "drop\n"
                        "+0.35 < . 1:1(0) ack 1 win 512 <TS 101 ecr last>\n"
                        "drop\n");
    for (int i = 0; i < 6; i++) {
        at += 1448;
        (void)snprintf(
            line, sizeof(line),
            "+0.04 < . 1:1(0) ack %u win 512 <TS 102 ecr last>\ndrop\n", at);
        script_run(&script, line);
    }
    (void)snprintf(
        line, sizeof(line),
        "+0.04 < . 1:1(0) ack %u win 0 <TS 103 ecr last,sack %u:%u>\ndrop\n",
        at + 500, at, at + 1448);
    script_run(&script, line);
    (void)snprintf(line, sizeof(line),
                   "+0.04 < . 1:1(0) ack %u win 512 <TS 104 ecr last>\ndrop\n",
                   at + 500);
    script_run(&script, line);
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_in_range(info.cwnd, 1448, 20000);
    script_end(&script);
}

/* RFC 2018 section 3; RFC 2883 section 4: a block at the next byte contradicts
 * the acknowledgement beside it. */
static void test_block_at_the_next_byte_is_counted(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1460,sackOK,ws 7>\n"
                "> S. 0:0(0) ack 1\n"
                "+0.04 < . 1:1(0) ack 1 win 512\n"
                "send 3000\n"
                "drop\n"
                "+0.04 < . 1:1(0) ack 1 win 512 <sack 1:1461>\n"
                "counter rx_bad_sack 1\n"
                "+0.04 < . 1:1(0) ack 501 win 512 <sack 400:1000>\n"
                "counter rx_bad_sack 2\n"
                "+0.04 < . 1:1(0) ack 3001 win 512 <sack 501:1000>\n" /* D-SACK
                                                                       */
                "counter rx_bad_sack 2\n");
}

/* RFC 8985 section 6.2 step 3: the blocks of one ACK are looked at in the order
 * of their sequence numbers, although the newest comes first. */
static void test_order_of_blocks_is_no_reordering(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open);
    for (int i = 0; i < 4; i++) {
        script_run(&script, "send 1000\ndrop\n+0.003\n");
    }
    /* The ACK with the block 1001:2001 alone was lost. */
    script_run(&script, "+0.001 < . 1:1(0) ack 1 win 512 "
                        "<TS 102 ecr last,sack 3001:4001 1001:2001>\n");
    assert_false(conn_of(&script)->rack.reordering_seen);
    script_run(&script, "< . 1:1(0) ack 1 win 512 "
                        "<TS 103 ecr last,sack 1001:4001>\n");
    assert_true(conn_of(&script)->rack.reordering_seen);
    script_end(&script);
}

/* ---- Duplicate acknowledgements. */

/* RFC 5681 section 3.2: three in a row are a loss.  Single ones between ACKs of
 * new bytes are not added up. */
static void test_duplicate_acks_count_only_in_a_row(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "+0.04 < . 1:1(0) ack 1 win 65535\n"
                "send 9000\n"
                "drop\n"
                "+0.01 < . 1:1(0) ack 1 win 65535\n"
                "+0.01 < . 1:1(0) ack 1001 win 65535\n"
                "+0.01 < . 1:1(0) ack 1001 win 65535\n"
                "+0.01 < . 1:1(0) ack 2001 win 65535\n"
                "+0.01 < . 1:1(0) ack 2001 win 65535\n"
                "+0.01 < . 1:1(0) ack 3001 win 65535\n"
                "counter recoveries 0\n"
                "quiet\n");
}

/* RFC 5681 section 3.2: a duplicate ACK says that a segment has left the
 * network; there cannot be more of them than segments. */
static void test_duplicate_acks_are_not_more_than_segments(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open_plain);
    script_run(&script, "send 60000\ndrop\n");
    for (int i = 0; i < 200; i++) {
        script_run(&script, "< . 1:1(0) ack 1 win 65535\ndrop\n");
    }
    assert_in_range(conn_of(&script)->snd_nxt - conn_of(&script)->snd_una, 1000,
                    20000);
    script_end(&script);
}

/* ---- Numbers that are compared long after they were noted. */

/* Let the connection acknowledge `gib` without sending them. */
static void una_move(struct script *script, uint32_t bytes)
{
    struct tcp_conn *conn = conn_of(script);
    struct host_conn *user = host_conn(script->host, script->id);

    assert_int_equal(conn->run_count, 0);
    conn->snd_una += bytes;
    conn->snd_nxt += bytes;
    conn->snd_wl2 += bytes;
    conn->una_offset += bytes;
    conn->queued += bytes;
    user->sent += bytes;
    user->acked += bytes;
}

/* RFC 3168 section 6.1.2: an echo of congestion counts once a window, also when
 * the window before is more than 2 GiB ago. */
static void test_echo_counts_after_2_gib(void **state)
{
    struct script script;
    uint32_t before;

    (void)state;
    script_open_with(
        &script, "< SEW 0:0(0) win 65535 <mss 1460,sackOK,TS 100 ecr 0,ws 7>\n"
                 "> SE. 0:0(0) ack 1\n"
                 "+0.04 < . 1:1(0) ack 1 win 512 <TS 100 ecr last>\n"
                 "send 2000\n"
                 "drop\n"
                 "+0.04 < .E 1:1(0) ack 2001 win 512 <TS 101 ecr last>\n"
                 "send 1000\n"
                 "drop\n"
                 "+0.04 < . 1:1(0) ack 3001 win 512 <TS 102 ecr last>\n");
    una_move(&script, 0x7fffffff);
    una_move(&script, 0x10);
    script.iss += 0x8000000f;
    script_run(&script, "send 2000\ndrop\n");
    before = conn_of(&script)->cwnd = 20000;
    script_run(&script,
               "+0.04 < .E 1:1(0) ack 5001 win 512 <TS 103 ecr last>\n");
    assert_true(conn_of(&script)->cwnd < before);
    script_end(&script);
}

/* RFC 8985 section 6.2 step 4: the reordering window grows once a round trip,
 * also when the round trip before is more than 2 GiB ago. */
static void test_d_sack_counts_after_2_gib(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open);
    script_run(&script,
               "send 1000\n"
               "drop\n"
               "+0.04 < . 1:1(0) ack 1001 win 512 <TS 101 ecr last,sack "
               "1:1001>\n"
               "send 1000\n"
               "drop\n"
               "+0.04 < . 1:1(0) ack 2001 win 512 <TS 102 ecr last>\n");
    assert_int_equal(conn_of(&script)->rack.window_mult, 2);
    una_move(&script, 0x7fffffff);
    una_move(&script, 0x10);
    script.iss += 0x8000000f;
    script_run(&script, "send 1000\n"
                        "drop\n"
                        "+0.04 < . 1:1(0) ack 3001 win 512 <TS 103 ecr "
                        "last,sack 2001:3001>\n");
    assert_int_equal(conn_of(&script)->rack.window_mult, 3);
    script_end(&script);
}

/* RFC 5961 section 5.2: 2 GiB is not within the largest window. */
static void test_ack_2_gib_away_is_challenged(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "+0.04 < . 1:1(0) ack 1 win 65535\n"
                "< . 1:101(100) ack 2147483649 win 65535\n"
                "received 0\n"
                "> . 1:1(0) ack 1\n"
                "counter rx_bad_ack 1\n");
}

/* ---- Round trips, ECN, back-pressure. */

/* RFC 8985 section 6.2 step 1: the minimum comes from exact times.  Timestamps
 * of 1 ms tell 0 for a round trip below 1 ms. */
static void test_timestamps_do_not_spoil_the_least_round_trip(void **state)
{
    struct script script;
    struct tcp_info info;

    (void)state;
    script_open_with(&script, script_open);
    script_run(&script, "send 1000\n"
                        "> P. 1:1001(1000) ack 1\n"
                        "+0.2 > P. 1:1001(1000) ack 1\n"
                        "< . 1:1(0) ack 1001 win 512 <TS 101 ecr last>\n");
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(info.min_rtt_us, 40000);
    assert_true(info.srtt_us >= 30000);
    script_end(&script);
}

/* RFC 3168 section 6.1.6: a zero-window probe is neither ECT nor has it CWR. */
static void test_window_probe_is_not_ect(void **state)
{
    (void)state;
    script_play("< SEW 0:0(0) win 65535 <mss 1460>\n"
                "> SE. 0:0(0) ack 1\n"
                "+0.04 < . 1:1(0) ack 1 win 65535\n"
                "send 1000\n"
                "> P. 1:1001(1000) ack 1 ect\n"
                "+0.04 < .E 1:1(0) ack 1001 win 0\n"
                "send 1000\n"
                "+0.2 > . 1001:1002(1) ack 1\n"
                "< . 1:1(0) ack 1001 win 65535\n"
                "+0.001 > . 1001:1002(1) ack 1\n"
                "> PW. 1002:2001(999) ack 1 ect\n");
}

/* RFC 6298 section 5.1: the timer runs whenever there are bytes in flight, also
 * when the segments after them found no room. */
static void test_segment_before_back_pressure_has_its_timer(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open);
    script_run(&script, "rooms 2\n"
                        "send 4000\n"
                        "> . 1:1449(1448) ack 1\n"
                        "> . 1449:2897(1448) ack 1\n"
                        "+0.1 quiet\n");
    assert_true(script.host->now_us <= tcp_deadline(script.host->tcp));
    assert_true(conn_of(&script)->probe_due);
    script_end(&script);
}

/* RFC 8985 section 7.3: the probe ends where its bytes end, although the user's
 * bytes were in more pieces than a segment takes. */
static void test_short_probe_ends_at_its_last_byte(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open);
    script.host->fetch_most = 500;
    script_run(&script, "send 1000\n"
                        "> . 1:501(500) ack 1\n"
                        "> P. 501:1001(500) ack 1\n"
                        "+0.3\n"
                        "drop\n");
    assert_true(conn_of(&script)->rack.probe_out);
    assert_int_equal(conn_of(&script)->rack.probe_end - script.iss, 501);
    script_end(&script);
}

/* ---- Behind a closed window. */

/* RFC 9293 section 3.10.7.4: with a window of 0 the peer takes only what has
 * the next number.  The byte of a zero-window probe (section 3.8.6.1) was
 * dropped, so that acknowledgements and RSTs have the number of this byte. */
static void test_ack_behind_a_window_probe_is_in_the_window(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open_plain);
    script_run(&script, "< . 1:1(0) ack 1 win 0\n"
                        "send 3000\n"
                        "+0.2 > . 1:2(1) ack 1\n"
                        "< . 1:1(0) ack 1 win 0\n"
                        "< . 1:1001(1000) ack 1 win 0\n"
                        "< . 1001:2001(1000) ack 1 win 0\n"
                        "> . 1:1(0) ack 2001\n"
                        "abort\n"
                        "> R. 1:1(0) ack 2001\n");
    script_end(&script);
}

/* The same for a peer that has taken back a part of its window. */
static void test_ack_is_not_beyond_a_smaller_window(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open_plain);
    script_run(&script, "send 3000\n"
                        "drop\n"
                        "< . 1:1(0) ack 1001 win 500\n"
                        "< . 1:1001(1000) ack 1001 win 500\n"
                        "< . 1001:2001(1000) ack 1001 win 500\n"
                        "> . 1501:1501(0) ack 2001\n"
                        "abort\n"
                        "> R. 1501:1501(0) ack 2001\n");
    script_end(&script);
}

/* RFC 7323 section 2.4: a scaled window that is rounded down may seem smaller
 * by less than one unit (128 bytes here): the peer has the bytes, and a smaller
 * number would be an old one. */
static void test_rounded_window_is_not_a_smaller_one(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, script_open);
    script_run(&script, "< . 1:1(0) ack 1 win 16 <TS 101 ecr last>\n"
                        "send 2048\n"
                        "drop\n"
                        "< . 1:1001(1000) ack 1449 win 4 <TS 102 ecr last>\n"
                        "< . 1001:2001(1000) ack 1449 win 4 <TS 102 ecr last>\n"
                        "> . 2049:2049(0) ack 2001\n");
    script_end(&script);
}
