/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of the peer: order, windows, acknowledgements, attacks. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/net/tcp/script.h"

static void play_config(const struct tcp_config *config, const char *first,
                        const char *lines)
{
    struct script script;

    script_begin(&script, config, 0xfffffc00, 0xfffff800);
    script_run(&script, first);
    script_run(&script, lines);
    script_end(&script);
}

static void play_script(const char *lines)
{
    struct tcp_config config = script_config();

    play_config(&config, script_open, lines);
}

static void play_plain(const char *lines)
{
    struct tcp_config config = script_config();

    play_config(&config, script_open_plain, lines);
}

/* ---- Acknowledgements. */

/* RFC 9293 section 3.8.6.3 (MUST-58, SHLD-18). */
static void test_single_segment_is_acknowledged_after_a_delay(void **state)
{
    (void)state;
    play_script("< P. 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "received 100\n"
                "quiet\n"
                "+0.039 quiet\n"
                "+0.001 > . 1:1(0) ack 101 <TS 0 ecr 101>\n"
                "quiet\n");
}

/* RFC 9293 section 3.8.6.3 (MUST-59): every second segment at once. */
static void test_every_second_segment_is_acknowledged_at_once(void **state)
{
    (void)state;
    play_script("< . 1:1449(1448) ack 1 win 512 <TS 101 ecr last>\n"
                "quiet\n"
                "< . 1449:2897(1448) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 2897\n"
                "received 2896\n");
}

/* The sequence numbers of these 2000 bytes wrap inside of the segment. */
static void test_sequence_numbers_wrap_inside_a_segment(void **state)
{
    (void)state;
    play_plain("< . 1:1001(1000) ack 1 win 65535\n"
               "< . 1001:2001(1000) ack 1 win 65535\n"
               "> . 1:1(0) ack 2001\n"
               "received 2000\n"
               "send 3000\n"
               "> . 1:1001(1000) ack 2001\n"
               "> . 1001:2001(1000) ack 2001\n"
               "> P. 2001:3001(1000) ack 2001\n"
               "< . 2001:2001(0) ack 3001 win 65535\n"
               "quiet\n"
               "+70 quiet\n");
}

/* RFC 5681 section 4.2; RFC 2018 section 4: the newest block comes first. */
static void test_gaps_are_reported_with_the_newest_block_first(void **state)
{
    (void)state;
    play_script("< . 101:201(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 101:201>\n"
                "< . 301:401(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 301:401 101:201>\n"
                "< . 501:601(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 501:601 301:401 101:201>\n"
                "< . 701:801(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 701:801 501:601 301:401>\n"
                "< . 201:301(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 101:401 701:801 501:601>\n"
                "received 0\n"
                "uses 1 0 0 1\n"
                "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 401 <sack 701:801 501:601>\n"
                "received 400\n"
                "< . 401:501(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 601 <sack 701:801>\n"
                "< . 601:701(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 801\n"
                "received 800\n"
                "uses 1 0 0 0\n");
}

/* RFC 2018 section 2: only if the peer has permitted SACK. */
static void test_peer_without_sack_gets_plain_duplicate_acks(void **state)
{
    (void)state;
    play_plain("< . 101:201(100) ack 1 win 65535\n"
               "> . 1:1(0) ack 1\n"
               "< . 201:301(100) ack 1 win 65535\n"
               "> . 1:1(0) ack 1\n"
               "< . 1:101(100) ack 1 win 65535\n"
               "> . 1:1(0) ack 301\n"
               "received 300\n");
}

/* RFC 2883 section 4.1.1: the same segment twice. */
static void test_duplicate_is_reported_by_d_sack(void **state)
{
    (void)state;
    play_script("< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "+0.04 > . 1:1(0) ack 101\n"
                "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 101 <sack 1:101>\n"
                "received 100\n"
                "counter rx_duplicate 1\n");
}

/* RFC 2883 section 4.1.2: early, and twice. */
static void test_early_duplicate_is_reported_with_its_range(void **state)
{
    (void)state;
    play_script("< . 101:301(200) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 101:301>\n"
                "< . 151:201(50) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 151:201 101:301>\n");
}

/* RFC 9293 section 3.10.7.4: a segment with old and new bytes. */
static void test_only_the_new_part_of_a_segment_is_delivered(void **state)
{
    (void)state;
    play_script("< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "+0.04 > . 1:1(0) ack 101\n"
                "< . 51:151(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 151 <sack 51:101>\n"
                "received 150\n");
}

/* A range that the next segment overlaps is not delivered twice. */
static void test_overlap_with_an_early_range_is_delivered_once(void **state)
{
    (void)state;
    play_script("< . 101:301(200) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 101:301>\n"
                "< . 1:201(200) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 301\n"
                "received 300\n"
                "< . 301:401(100) ack 1 win 512 <TS 101 ecr last>\n"
                "+0.04 > . 1:1(0) ack 401\n"
                "received 400\n");
}

/* RFC 9293 section 3.10.7.4, eighth check: only after all bytes before it. */
static void test_early_fin_waits_for_the_bytes_before_it(void **state)
{
    (void)state;
    play_script("< F. 101:201(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 1 <sack 101:201>\n"
                "state ESTABLISHED\n"
                "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                "> . 1:1(0) ack 202\n"
                "received 200\n"
                "finished\n"
                "state CLOSE-WAIT\n");
}

/* A peer that fills a gap byte by byte, with a hole after each, costs 16 ranges
 * and one page; more is dropped, and nothing is lost. */
static void test_one_byte_of_every_hole_is_bounded(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    char line[96];

    (void)state;
    script_begin(&script, &config, 0xfffffff0, 0);
    script_run(&script, script_open);
    for (unsigned int i = 1; i <= 40; i++) {
        struct host_frame *frame;

        (void)snprintf(line, sizeof(line),
                       "< . %u:%u(1) ack 1 win 512 <TS 101 ecr last>\n",
                       1 + 2 * i, 2 + 2 * i);
        script_run(&script, line);
        frame = host_frame(script.host);
        assert_non_null(frame);
        host_frame_done(script.host);
    }
    script_run(&script, "counter rx_early 16\n"
                        "counter rx_no_page 24\n"
                        "uses 1 0 0 1\n"
                        "< . 1:100(99) ack 1 win 512 <TS 101 ecr last>\n"
                        "> . 1:1(0) ack 100\n"
                        "received 99\n"
                        "uses 1 0 0 0\n");
    script_end(&script);
}

/* ---- The window. */

/* RFC 9293 section 3.8.6.2.2: the window closes, and opens in large steps. */
static void test_window_closes_and_opens_in_large_steps(void **state)
{
    struct tcp_config config = script_config();

    (void)state;
    config.window_bytes = 4096;
    play_config(&config, script_open_plain,
                "< . 1:1001(1000) ack 1 win 65535\n"
                "< . 1001:2001(1000) ack 1 win 65535\n"
                "> . 1:1(0) ack 2001 win 2096\n"
                "< . 2001:3001(1000) ack 1 win 65535\n"
                "< . 3001:4001(1000) ack 1 win 65535\n"
                "> . 1:1(0) ack 4001 win 96\n"
                "< . 4001:4101(100) ack 1 win 65535\n" /* 4 beyond its edge */
                "+0.04 > . 1:1(0) ack 4097 win 0\n"
                "received 4096\n"
                "counter rx_beyond 1\n"
                "consume 500\n"
                "quiet\n"
                "consume 500\n"
                "> . 1:1(0) ack 4097 win 1000\n"
                "consume 3096\n"
                "> . 1:1(0) ack 4097 win 4096\n");
}

/* RFC 9293 section 3.10.7.4, first check: a segment is acceptable if its first
 * or its last byte is in the window.  One that begins before it and ends beyond
 * it is neither, and is answered; its peer has ignored the window. */
static void test_segment_around_the_whole_window_is_answered(void **state)
{
    struct tcp_config config = script_config();

    (void)state;
    config.window_bytes = 2048;
    play_config(&config, script_open_plain,
                "< . 1:1001(1000) ack 1 win 65535\n"
                "< . 1001:2001(1000) ack 1 win 65535\n"
                "> . 1:1(0) ack 2001 win 48\n"
                "< . 1901:2101(200) ack 1 win 65535\n"
                "> . 1:1(0) ack 2001 win 48\n"
                "received 2000\n"
                "counter rx_unacceptable 1\n"
                "< . 2001:2049(48) ack 1 win 65535\n"
                "+0.04 > . 1:1(0) ack 2049 win 0\n"
                "received 2048\n");
}

/* RFC 9293 section 3.10.7.4: with a window of 0, probes are answered and ACKs
 * are still processed (MUST-66). */
static void test_closed_window_answers_probes_and_takes_acks(void **state)
{
    struct tcp_config config = script_config();

    (void)state;
    config.window_bytes = 2048;
    play_config(&config, script_open_plain,
                "< . 1:1001(1000) ack 1 win 65535\n"
                "< . 1001:2001(1000) ack 1 win 65535\n"
                "> . 1:1(0) ack 2001 win 48\n"
                "< . 2001:2049(48) ack 1 win 65535\n"
                "+0.04 > . 1:1(0) ack 2049 win 0\n"
                "send 100\n"
                "> P. 1:101(100) ack 2049 win 0\n"
                "< . 2049:2050(1) ack 101 win 65535\n"
                "> . 101:101(0) ack 2049 win 0\n"
                "received 2048\n"
                "+70 quiet\n");
}

/* ---- RFC 5961 and 7323: what blind attackers and old segments achieve. */

/* RFC 5961 section 3.2. */
static void test_rst_inside_the_window_is_challenged(void **state)
{
    (void)state;
    play_script("< R 100:100(0) win 0\n"
                "> . 1:1(0) ack 1\n"
                "state ESTABLISHED\n"
                "< R 101:101(0) win 0\n"
                "quiet\n"
                "counter tx_limited 1\n"
                "+0.5 < R 102:102(0) win 0\n"
                "> . 1:1(0) ack 1\n"
                "< R 70000:70000(0) win 0\n"
                "quiet\n"
                "state ESTABLISHED\n");
}

/* RFC 5961 section 4.2: a SYN, wherever it is. */
static void test_syn_is_challenged(void **state)
{
    (void)state;
    play_script("< S 1:1(0) win 65535 <mss 1460,TS 101 ecr 0>\n"
                "> . 1:1(0) ack 1\n"
                "+0.5 < S 500000:500000(0) win 65535 <mss 1460,TS 101 ecr 0>\n"
                "> . 1:1(0) ack 1\n"
                "+0.5 < S. 0:0(0) ack 1 win 65535 <mss 1460,TS 101 ecr 0>\n"
                "> . 1:1(0) ack 1\n"
                "state ESTABLISHED\n"
                "counter tx_challenge 3\n");
}

/* RFC 5961 section 5.2: ACKs of what was not sent, or of long ago. */
static void test_impossible_acks_are_challenged(void **state)
{
    (void)state;
    play_script(
        "< P. 1:101(100) ack 2 win 512 <TS 101 ecr last>\n"
        "> . 1:1(0) ack 1\n"
        "received 0\n"
        "+0.5 < P. 1:101(100) ack 4294000000 win 512 <TS 101 ecr last>\n"
        "> . 1:1(0) ack 1\n"
        "received 0\n"
        "counter rx_bad_ack 2\n"
        "< P. 1:101(100) ack 0 win 512 <TS 101 ecr last>\n"
        "received 100\n");
}

/* RFC 9293 section 3.10.7.4, fifth check: without ACK it is dropped. */
static void test_segment_without_ack_is_dropped(void **state)
{
    (void)state;
    play_script("< P 1:101(100) win 512 <TS 101 ecr last>\n"
                "quiet\n"
                "received 0\n");
}

/* Scanners' flags: nothing, SYN with FIN or RST, FIN without ACK. */
static void test_flags_that_make_no_sense_are_dropped(void **state)
{
    (void)state;
    play_script("< - 1:1(0) win 512\n"
                "< SF 1:1(0) win 512\n"
                "< SR 1:1(0) win 512\n"
                "< FPU 1:1(0) win 512\n"
                "< FR. 1:1(0) ack 1 win 512\n"
                "quiet\n"
                "state ESTABLISHED\n"
                "counter rx_malformed 5\n");
}

/* RFC 7323 section 5.3, R1. */
static void test_old_timestamp_is_dropped_by_paws(void **state)
{
    (void)state;
    play_script("< . 1:101(100) ack 1 win 512 <TS 200 ecr last>\n"
                "+0.04 > . 1:1(0) ack 101 <TS 0 ecr 200>\n"
                "< . 101:201(100) ack 1 win 512 <TS 199 ecr last>\n"
                "> . 1:1(0) ack 101 <TS 0 ecr 200>\n"
                "received 100\n"
                "counter rx_paws 1\n"
                "< R 101:101(0) win 0 <TS 1 ecr last>\n" /* PAWS spares a RST */
                "ended reset\n");
}

/* RFC 7323 section 5.5: after 24 days the peer's clock may have wrapped. */
static void test_old_timestamp_counts_again_after_24_days(void **state)
{
    (void)state;
    play_script("+2073601 < . 1:101(100) ack 1 win 512 <TS 5 ecr last>\n"
                "+0.04 > . 1:1(0) ack 101 <TS 0 ecr 5>\n"
                "received 100\n");
}

/* RFC 7323 section 3.2: a segment without the option is dropped quietly. */
static void test_segment_without_the_agreed_timestamp_is_dropped(void **state)
{
    (void)state;
    play_script("< P. 1:101(100) ack 1 win 512\n"
                "quiet\n"
                "received 0\n"
                "counter rx_no_times 1\n");
}

/* RFC 7323 section 4.3: with a delayed ACK the first segment's is echoed, and
 * an early segment's is not. */
static void test_timestamp_of_the_right_segment_is_echoed(void **state)
{
    (void)state;
    play_script("< . 1:101(100) ack 1 win 512 <TS 110 ecr last>\n"
                "< . 101:201(100) ack 1 win 512 <TS 120 ecr last>\n"
                "> . 1:1(0) ack 201 <TS 0 ecr 110>\n"
                "< . 301:401(100) ack 1 win 512 <TS 130 ecr last>\n"
                "> . 1:1(0) ack 201 <TS 0 ecr 110 sack 301:401>\n"
                "< . 201:301(100) ack 1 win 512 <TS 140 ecr last>\n"
                "> . 1:1(0) ack 401 <TS 0 ecr 140>\n");
}

static void test_wrong_checksum_is_dropped(void **state)
{
    static const uint8_t junk[TCP_LEN] = {[TCP_DATA_OFFSET] = 5 << 4};
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 1, 0);
    host_input(script.host, &script.ends, 0, junk, sizeof(junk));
    host_input(script.host, &script.ends, 0, junk, sizeof(junk) - 1);
    script_run(&script, "counter rx_checksum 1\n"
                        "counter rx_malformed 1\n"
                        "quiet\n");
    script_end(&script);
}

/* ---- ECN. */

/* RFC 3168 sections 6.1.1 and 6.1.3. */
static void test_mark_is_echoed_until_the_peer_has_reacted(void **state)
{
    (void)state;
    script_play("< SEW 0:0(0) win 65535 <mss 1000>\n"
                "> SE. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "< . 1:101(100) ack 1 win 65535 ect\n"
                "+0.04 > . 1:1(0) ack 101\n"
                "< . 101:201(100) ack 1 win 65535 ce\n"
                "> E. 1:1(0) ack 201\n"
                "send 100\n"
                "> PE. 1:101(100) ack 201 ect\n"
                "< W. 201:301(100) ack 101 win 65535 ect\n"
                "+0.04 > . 101:101(0) ack 301\n"
                "counter rx_ce 1\n");
}

/* RFC 3168 section 6.1.2: ECE halves the window once, and CWR tells. */
static void test_echo_slows_down_once_a_window(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    struct tcp_info info;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, "< SEW 0:0(0) win 65535 <mss 1000>\n"
                        "> SE. 0:0(0) ack 1\n"
                        "< . 1:1(0) ack 1 win 65535\n"
                        "send 4000\n"
                        "> . 1:1001(1000) ack 1 ect\n"
                        "> . 1001:2001(1000) ack 1 ect\n"
                        "> . 2001:3001(1000) ack 1 ect\n"
                        "> P. 3001:4001(1000) ack 1 ect\n"
                        "< E. 1:1(0) ack 1001 win 65535\n");
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(info.ssthresh, 5000);
    script_run(&script, "< E. 1:1(0) ack 4001 win 65535\n"
                        "send 100\n"
                        "> PW. 4001:4101(100) ack 1 ect\n");
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(info.ssthresh, 5000);
    script_end(&script);
}
