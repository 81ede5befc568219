/* SPDX-License-Identifier: BSD-2-Clause */
/* Lost segments, timers, the peer's window, congestion. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/net/tcp/script.h"

static void play_script(const char *first, const char *lines)
{
    struct tcp_config config = script_config();
    struct script script;

    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, first);
    script_run(&script, lines);
    script_end(&script);
}

/* ---- Time-outs. */

/* RFC 6298 section 5.5: the time-out doubles. */
static void test_time_out_doubles(void **state)
{
    (void)state;
    play_script(script_open_plain, "send 100\n"
                                   "> P. 1:101(100) ack 1\n"
                                   "+0.2 > P. 1:101(100) ack 1\n"
                                   "+0.4 > P. 1:101(100) ack 1\n"
                                   "+0.8 > P. 1:101(100) ack 1\n"
                                   "+1.6 > P. 1:101(100) ack 1\n"
                                   "< . 1:1(0) ack 101 win 65535\n"
                                   "counter rtos 4\n"
                                   "+60 quiet\n");
}

/* RFC 9293 section 3.8.3 (R2): after 100 s the connection ends. */
static void test_silent_peer_is_given_up(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open_plain);
    script_run(&script, "send 100\n"
                        "+99 state ESTABLISHED\n"
                        "+60 ended timeout\n"
                        "uses 0 0 0 0\n");
    assert_true(tcp_counter(script.host->tcp, TCP_TX_RST) == 1);
    script_end(&script);
}

/* RFC 2018 section 8: after a time-out nothing of SACK is believed. */
static void test_time_out_forgets_sack(void **state)
{
    (void)state;
    play_script(
        script_open,
        "send 4344\n"
        "> . 1:1449(1448) ack 1\n"
        "> . 1449:2897(1448) ack 1\n"
        "> P. 2897:4345(1448) ack 1\n"
        "+0.01 < . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:2897>\n"
        "+0.01 > . 1:1449(1448) ack 1\n"
        "+0.2 > . 1:1449(1448) ack 1\n"
        "< . 1:1(0) ack 1449 win 512 <TS 102 ecr last>\n"
        "> . 1449:2897(1448) ack 1\n"
        "> P. 2897:4345(1448) ack 1\n"
        "< . 1:1(0) ack 4345 win 512 <TS 102 ecr last>\n"
        "quiet\n");
}

/* A second time-out of the same data does not halve ssthresh again: RFC 5681
 * section 3.1. */
static void test_second_time_out_keeps_ssthresh(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    struct tcp_info info;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open_plain);
    script_run(&script, "send 8000\n"
                        "+0.2 < . 1:1(0) ack 5001 win 65535\n"
                        "+0.3\n");
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(info.ssthresh, 4000);
    assert_int_equal(info.cwnd, 1000);
    assert_true(tcp_counter(script.host->tcp, TCP_RTOS) == 2);
    script_end(&script);
}

/* ---- RACK and tail loss probes. */

/* RFC 8985 section 6.2: three SACKed segments beyond it show the loss. */
static void test_lost_segment_is_sent_again_after_sacks(void **state)
{
    (void)state;
    play_script(
        script_open,
        "send 7240\n"
        "> . 1:1449(1448) ack 1\n"
        "> . 1449:2897(1448) ack 1\n"
        "> . 2897:4345(1448) ack 1\n"
        "> . 4345:5793(1448) ack 1\n"
        "> P. 5793:7241(1448) ack 1\n"
        "+0.05 < . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:2897>\n"
        "quiet\n"
        "< . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:5793>\n"
        "> . 1:1449(1448) ack 1\n"
        "counter recoveries 1\n"
        "< . 1:1(0) ack 7241 win 512 <TS 102 ecr last>\n"
        "+70 quiet\n"
        "counter tx_retransmits 1\n"
        "counter rtos 0\n");
}

/* RFC 8985 section 7: the last segment's loss is found by a probe. */
static void test_lost_tail_is_probed(void **state)
{
    (void)state;
    play_script(script_open,
                "send 1448\n"
                "> P. 1:1449(1448) ack 1\n"
                "+0.03 < . 1:1(0) ack 1449 win 512 <TS 101 ecr last>\n"
                "send 2896\n"
                "> . 1449:2897(1448) ack 1\n"
                "> P. 2897:4345(1448) ack 1\n"
                "+0.03 < . 1:1(0) ack 2897 win 512 <TS 102 ecr last>\n"
                "+0.199 quiet\n"
                "+0.001 > P. 2897:4345(1448) ack 1\n"
                "counter tx_probes 1\n"
                "counter rtos 0\n"
                "< . 1:1(0) ack 4345 win 512 <TS 103 ecr last>\n"
                "+70 quiet\n");
}

static struct tcp_info info_of(struct script *script)
{
    struct tcp_info info;

    assert_true(tcp_info(script->host->tcp, script->id, &info));
    return info;
}

/* RFC 8985 section 7.4.2: the probe repaired a loss, for which the window is
 * halved, when the ACK of later bytes comes without a D-SACK.  A D-SACK, or a
 * second ACK of the same number, shows that both copies have arrived. */
static void test_loss_that_a_probe_repaired_counts(void **state)
{
    static const struct {
        const char *lines;
        bool is_loss;
    } cases[] = {
        {"", true},
        {"+0.01 < . 1:1(0) ack 14481 win 512 <TS 104 ecr last>\n", false},
        {"+0.01 < . 1:1(0) ack 14481 win 512 <TS 104 ecr last,"
         "sack 13033:14481>\n",
         false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tcp_config config = script_config();
        struct script script;
        uint32_t before;

        script_begin(&script, &config, 0xfffffc00, 0xfffff800);
        script_run(&script, script_open);
        script_run(&script,
                   "send 14480\n"
                   "drop\n"
                   "+0.04 < . 1:1(0) ack 13033 win 512 <TS 102 ecr last>\n"
                   "+0.3 drop\n"
                   "counter tx_probes 1\n"
                   "counter rtos 0\n"
                   "< . 1:1(0) ack 14481 win 512 <TS 103 ecr last>\n");
        script_run(&script, cases[i].lines);
        before = info_of(&script).cwnd;
        script_run(&script,
                   "send 14480\n"
                   "drop\n"
                   "+0.04 < . 1:1(0) ack 15929 win 512 <TS 105 ecr last>\n");
        if (cases[i].is_loss) {
            assert_in_range(info_of(&script).cwnd, 2 * 1448, before * 3 / 4);
        } else {
            assert_in_range(info_of(&script).cwnd, before, UINT32_MAX);
        }
        script_end(&script);
    }
}

/* RFC 5681 section 4.3: bytes that were sent in recovery and are lost are a new
 * loss, also when the ACK that ends the recovery tells of it. */
static void test_loss_after_the_recovery_point_is_a_new_one(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    uint32_t before;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    script_run(
        &script,
        "send 43440\n"
        "drop\n"
        "+0.04 < . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:5793>\n"
        "> . 1:1449(1448) ack 1\n"
        "counter recoveries 1\n"
        "< . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:14481>\n"
        "drop\n");
    before = info_of(&script).ssthresh;
    script_run(&script, "+0.04 < . 1:1(0) ack 14481 win 512 <TS 102 ecr last,"
                        "sack 15929:18825>\n"
                        "counter recoveries 2\n"
                        "> . 14481:15929(1448) ack 1\n");
    assert_in_range(info_of(&script).ssthresh, 2 * 1448, before - 1);
    assert_true(info_of(&script).is_recovering);
    script_end(&script);
}

/* RFC 8985 section 6.2 step 5: a reordered segment gets a quarter of the round
 * trip before it counts as lost. */
static void test_reordered_segment_is_not_sent_again(void **state)
{
    (void)state;
    play_script(
        script_open,
        "send 1448\n"
        "> P. 1:1449(1448) ack 1\n"
        "+0.04 < . 1:1(0) ack 1449 win 512 <TS 101 ecr last>\n"
        "send 2896\n"
        "> . 1449:2897(1448) ack 1\n"
        "> P. 2897:4345(1448) ack 1\n"
        "+0.04 < . 1:1(0) ack 1449 win 512 <TS 102 ecr last,sack 2897:4345>\n"
        "quiet\n"
        "+0.005 < . 1:1(0) ack 4345 win 512 <TS 102 ecr last>\n"
        "+70 quiet\n"
        "counter tx_retransmits 0\n");
}

/* The reordering timer: RFC 8985 section 6.3. */
static void test_reordering_timer_finds_the_loss(void **state)
{
    (void)state;
    play_script(
        script_open,
        "send 1448\n"
        "> P. 1:1449(1448) ack 1\n"
        "+0.04 < . 1:1(0) ack 1449 win 512 <TS 101 ecr last>\n"
        "send 2896\n"
        "> . 1449:2897(1448) ack 1\n"
        "> P. 2897:4345(1448) ack 1\n"
        "+0.04 < . 1:1(0) ack 1449 win 512 <TS 102 ecr last,sack 2897:4345>\n"
        "quiet\n"
        "+0.01 > . 1449:2897(1448) ack 1\n"
        "counter recoveries 1\n");
}

/* RFC 2018: blocks that make no sense change nothing. */
static void test_impossible_sack_blocks_are_ignored(void **state)
{
    (void)state;
    play_script(script_open,
                "send 2896\n"
                "> . 1:1449(1448) ack 1\n"
                "> P. 1449:2897(1448) ack 1\n"
                "< . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 2897:5000>\n"
                "< . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:1449>\n"
                "< . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 2000:1449>\n"
                "counter rx_bad_sack 3\n"
                "quiet\n");
}

/* ---- Without SACK. */

/* RFC 5681 section 3.2; RFC 6582: three duplicate ACKs, then a partial ACK. */
static void test_fast_retransmit_without_sack(void **state)
{
    (void)state;
    play_script(script_open_plain, "send 6000\n"
                                   "> . 1:1001(1000) ack 1\n"
                                   "> . 1001:2001(1000) ack 1\n"
                                   "> . 2001:3001(1000) ack 1\n"
                                   "> . 3001:4001(1000) ack 1\n"
                                   "> . 4001:5001(1000) ack 1\n"
                                   "> P. 5001:6001(1000) ack 1\n"
                                   "< . 1:1(0) ack 1 win 65535\n"
                                   "< . 1:1(0) ack 1 win 65535\n"
                                   "quiet\n"
                                   "< . 1:1(0) ack 1 win 65535\n"
                                   "> . 1:1001(1000) ack 1\n"
                                   "< . 1:1(0) ack 2001 win 65535\n"
                                   "> . 2001:3001(1000) ack 1\n"
                                   "< . 1:1(0) ack 6001 win 65535\n"
                                   "+70 quiet\n"
                                   "counter rtos 0\n"
                                   "counter recoveries 1\n");
}

/* ---- The peer's window. */

/* RFC 9293 section 3.8.6.1: a closed window is probed, with growing pauses and
 * without an end while the peer answers (MUST-36, MUST-37). */
static void test_closed_window_is_probed_without_an_end(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 1\n"
                        "< . 1:1(0) ack 1 win 0\n"
                        "send 3000\n"
                        "quiet\n"
                        "+0.2 > . 1:2(1) ack 1\n"
                        "< . 1:1(0) ack 1 win 0\n"
                        "+0.4 > . 1:2(1) ack 1\n"
                        "< . 1:1(0) ack 1 win 0\n"
                        "+0.8 > . 1:2(1) ack 1\n"
                        "< . 1:1(0) ack 2 win 0\n");
    for (unsigned int i = 0; i < 30; i++) {
        struct host_frame *frame;

        script_run(&script, "+60\n");
        while ((frame = host_frame(script.host)) != NULL) {
            host_frame_done(script.host);
        }
        script_run(&script, "< . 1:1(0) ack 2 win 0\n");
    }
    script_run(&script, "state ESTABLISHED\n"
                        "< . 1:1(0) ack 2 win 65535\n"
                        "> . 2:3(1) ack 1\n"
                        "> . 3:1003(1000) ack 1\n"
                        "> . 1003:2003(1000) ack 1\n"
                        "> P. 2003:3001(998) ack 1\n");
    script_end(&script);
}

/* R2 counts from when there was something to send, not from the last segment
 * before a long pause (RFC 9293 section 3.8.3). */
static void test_pause_before_a_closed_window_is_no_silence(void **state)
{
    (void)state;
    play_script("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 0\n",
                "+7200 send 100\n"
                "+0.2 > . 1:2(1) ack 1\n"
                "state ESTABLISHED\n"
                "+0.1 < . 1:1(0) ack 2 win 65535\n"
                "> P. 2:101(99) ack 1\n"
                "+0.2 > P. 2:101(99) ack 1\n"); /* the pause has not grown */
}

/* The update of the window was lost; the peer's answer to the probe has it. */
static void test_lost_window_update_is_found_by_a_probe(void **state)
{
    (void)state;
    play_script(script_open_plain, "send 1000\n"
                                   "> P. 1:1001(1000) ack 1\n"
                                   "< . 1:1(0) ack 1001 win 0\n"
                                   "send 500\n"
                                   "quiet\n"
                                   "+0.2 > . 1001:1002(1) ack 1\n"
                                   "< . 1:1(0) ack 1002 win 65535\n"
                                   "> P. 1002:1501(499) ack 1\n");
}

/* RFC 9293 section 3.8.6.2.1: no small segments into a small window. */
static void test_small_window_does_not_make_small_segments(void **state)
{
    (void)state;
    play_script(script_open_plain, "< . 1:1(0) ack 1 win 100\n"
                                   "send 1000\n"
                                   "quiet\n"
                                   "+0.2 > . 1:101(100) ack 1\n");
}

/* RFC 9293 section 3.10.7.4: an old segment does not change the window. */
static void test_old_segment_does_not_change_the_window(void **state)
{
    (void)state;
    play_script(script_open_plain, "< . 101:201(100) ack 1 win 65535\n"
                                   "> . 1:1(0) ack 1\n"
                                   "< . 1:101(100) ack 1 win 0\n"
                                   "> . 1:1(0) ack 201\n"
                                   "send 100\n"
                                   "> P. 1:101(100) ack 201\n");
}

/* ---- Congestion. */

/* RFC 6928: ten segments, then what is acknowledged. */
static void test_initial_window_is_ten_segments(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open_plain);
    script_run(&script, "send 30000\n");
    assert_int_equal(script.host->frame_count, 10);
    script_run(&script, "+0.01 < . 1:1(0) ack 2001 win 65535\n");
    assert_int_equal(script.host->frame_count, 14); /* slow start */
    script_end(&script);
}

/* RFC 5681 section 4.1: a long pause ends what the window has learned. */
static void test_idle_connection_starts_again_with_the_initial_window(
    void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open_plain);
    script_run(&script, "send 20000\n"
                        "+0.01 < . 1:1(0) ack 10001 win 65535\n"
                        "+0.01 < . 1:1(0) ack 20001 win 65535\n");
    while (host_frame(script.host) != NULL) {
        host_frame_done(script.host);
    }
    script_run(&script, "+10\n"
                        "send 50000\n");
    assert_int_equal(script.host->frame_count, 10);
    script_end(&script);
}

/* ---- Path MTU. */

/* RFC 5927 section 4.1: only about bytes in flight; RFC 1191 section 6.4. */
static void test_packet_too_big_makes_smaller_segments(void **state)
{
    (void)state;
    play_script(script_open, "send 1448\n"
                             "> P. 1:1449(1448) ack 1\n"
                             "icmp big 1000 1449\n"
                             "quiet\n"
                             "icmp big 1000 1\n"
                             "> . 1:949(948) ack 1\n"
                             "> P. 949:1449(500) ack 1\n"
                             "counter rx_icmp 1\n"
                             "counter rx_bad_icmp 1\n");
}

/* RFC 1191 section 3; 5927 section 7: a tiny MTU is an attack. */
static void test_packet_too_big_with_a_tiny_mtu_counts_as_552(void **state)
{
    (void)state;
    play_script(script_open, "send 1448\n"
                             "> P. 1:1449(1448) ack 1\n"
                             "icmp big 68 1\n"
                             "> . 1:501(500) ack 1\n"
                             "> . 501:1001(500) ack 1\n"
                             "> P. 1001:1449(448) ack 1\n");
}

/* ---- Keep-alive, memory, back-pressure. */

/* RFC 9293 section 3.8.4. */
static void test_keep_alive_ends_a_dead_connection(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.keep_alive_ms = 10000;
    config.keep_alive_interval_ms = 1000;
    config.keep_alive_probes = 2;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    script_run(&script, "+10 > . 0:0(0) ack 1\n"
                        "< . 1:1(0) ack 1 win 512 <TS 101 ecr last>\n"
                        "+10 > . 0:0(0) ack 1\n"
                        "+1 > . 0:0(0) ack 1\n"
                        "state ESTABLISHED\n"
                        "+1 > R. 1:1(0) ack 1\n"
                        "ended timeout\n");
    script_end(&script);
}

/* Lost words of the memory never become good data. */
static void test_lost_data_reset_the_connection(void **state)
{
    (void)state;
    play_script(script_open, "lose 1000\n"
                             "send 2000\n"
                             "> R. 1:1(0) ack 1\n"
                             "ended aborted\n"
                             "uses 0 0 0 0\n");
}

/* A full queue below loses nothing. */
static void test_back_pressure_delays_segments(void **state)
{
    (void)state;
    play_script(script_open,
                "full\n"
                "send 2000\n"
                "< . 101:201(100) ack 1 win 512 <TS 101 ecr last>\n"
                "quiet\n"
                "room\n"
                "> . 1:1437(1436) ack 1 <sack 101:201>\n"
                "> P. 1437:2001(564) ack 1 <sack 101:201>\n"
                "quiet\n");
}
