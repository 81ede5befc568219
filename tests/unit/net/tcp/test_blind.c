/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments that somebody else may have sent: what they cause, and how much is
 * sent in answer to them. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/net/tcp/script.h"

static void play_with(const struct tcp_config *config, const char *first,
                      const char *lines)
{
    struct script script;

    script_begin(&script, config, 0xfffffc00, 0xfffff800);
    script_run(&script, first);
    script_run(&script, lines);
    script_end(&script);
}

static void play_after(const char *first, const char *lines)
{
    struct tcp_config config = script_config();

    play_with(&config, first, lines);
}

static unsigned int frames_count(struct script *script)
{
    unsigned int count = script->host->frame_count;

    script_run(script, "drop\n");
    return count;
}

/* A window of 2048 bytes that is full after two segments. */
static void play_full_window(const char *lines)
{
    struct tcp_config config = script_config();

    config.window_bytes = 2048;
    play_with(&config,
              "< S 0:0(0) win 65535 <mss 1460,sackOK>\n"
              "> S. 0:0(0) ack 1\n"
              "+0.04 < . 1:1(0) ack 1 win 65535\n"
              "< . 1:1001(1000) ack 1 win 65535\n"
              "< . 1001:2049(1048) ack 1 win 65535\n"
              "> . 1:1(0) ack 2049 win 0\n",
              lines);
}

/* ---- D-SACK. */

/* RFC 2883 section 4: the block tells of bytes that have come twice, not of the
 * new ones beside them, which were not taken. */
static void test_d_sack_ends_at_the_next_byte(void **state)
{
    (void)state;
    play_after(script_open,
               "< . 1:1001(1000) ack 1 win 512 <TS 101 ecr last>\n"
               "+0.04 > . 1:1(0) ack 1001\n"
               "< . 501:1501(1000) ack 1 win 512 <TS 50 ecr last>\n" /* PAWS */
               "> . 1:1(0) ack 1001 <sack 501:1001>\n");
    play_full_window("+0.3 < . 1549:2549(1000) ack 1 win 65535\n"
                     "> . 1:1(0) ack 2049 <sack 1549:2049>\n");
}

/* RFC 2883 section 4: bytes before the first one of the stream were never
 * received. */
static void test_d_sack_names_no_bytes_before_the_stream(void **state)
{
    (void)state;
    play_after(script_open, "< . 1:11(10) ack 1 win 512 <TS 101 ecr last>\n"
                            "+0.04 > . 1:1(0) ack 11\n"
                            "< . 4294966296:4294966396(100) ack 1 win 512 "
                            "<TS 101 ecr last>\n"
                            "> . 1:1(0) ack 11\n");
}

/* ---- SYN and RST. */

/* RFC 5961 section 4.2: a SYN is always challenged, wherever it is and whatever
 * options and bytes it has. */
static void test_syn_without_timestamps_is_challenged(void **state)
{
    (void)state;
    play_after(script_open, "+1 < S 5000:5000(0) win 65535 <mss 1460>\n"
                            "> . 1:1(0) ack 1\n"
                            "counter tx_challenge 1\n"
                            "+1 < S 5000:5000(0) win 65535 <mss 1460,TS 1 ecr "
                            "0>\n" /* PAWS would drop it */
                            "> . 1:1(0) ack 1\n"
                            "counter tx_challenge 2\n");
}

/* RFC 5961 section 7: SYNs with bytes in them are limited as others are. */
static void test_syns_with_data_are_limited(void **state)
{
    (void)state;
    play_after(script_open, "< S 900000:900100(100) win 65535 <mss 1460>\n"
                            "< S 900000:900100(100) win 65535 <mss 1460>\n"
                            "< S 900000:900100(100) win 65535 <mss 1460>\n"
                            "> . 1:1(0) ack 1\n"
                            "quiet\n"
                            "counter tx_challenge 1\n"
                            "counter tx_limited 2\n");
}

/* RFC 9293 section 3.5.3, SHLD-2, and section 3.10.7.4, MUST-66: a RST may have
 * data, and counts at a closed window. */
static void test_rst_with_data_resets_at_a_closed_window(void **state)
{
    (void)state;
    play_full_window("< R. 2049:2059(10) ack 1 win 65535\n"
                     "ended reset\n"
                     "quiet\n");
    play_after(script_open, "< R. 1:11(10) ack 1 win 0\n"
                            "ended reset\n"
                            "quiet\n");
}

/* ---- Answers are limited. */

/* RFC 5961 section 7: bytes far outside of the window are no retransmission.
 * One answer in 500 ms tells an honest peer where we are. */
static void test_forged_data_are_answered_once(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open);
    for (int i = 0; i < 100; i++) {
        script_run(&script, "< . 900000000:900000010(10) ack 1 win 512 <TS 101 "
                            "ecr last>\n"
                            "< . 3900000000:3900000010(10) ack 1 win 512 <TS "
                            "101 ecr last>\n");
    }
    assert_int_equal(frames_count(&script), 1);
    script_run(&script, "+0.5 < . 900000000:900000010(10) ack 1 win 512 <TS "
                        "101 ecr last>\n"
                        "> . 1:1(0) ack 1\n");
    script_end(&script);
}

/* RFC 2883 section 4: every real duplicate is told, also many at once. */
static void test_duplicates_are_all_answered(void **state)
{
    (void)state;
    play_after(script_open, "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                            "+0.04 > . 1:1(0) ack 101\n"
                            "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                            "> . 1:1(0) ack 101 <sack 1:101>\n"
                            "< . 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                            "> . 1:1(0) ack 101 <sack 1:101>\n");
}

/* RFC 5961 section 7 for segments of no connection: at first a burst is
 * answered with RSTs, then so many a second. */
static void test_resets_of_no_connection_are_limited(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    unsigned int sent = 0;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    for (int i = 0; i < 1000; i++) {
        script_run(&script, "< . 1:1(0) ack 1 win 512\n");
        sent += frames_count(&script);
    }
    assert_in_range(sent, 64, 256);
    script_run(&script, "+1\n");
    for (int i = 0; i < 1000; i++) {
        script_run(&script, "< . 1:1(0) ack 1 win 512\n");
        sent += frames_count(&script);
    }
    assert_in_range(sent, 128, 512);
    assert_true(tcp_counter(script.host->tcp, TCP_TX_LIMITED) == 2000 - sent);
    script_end(&script);
}

/* RFC 4987 section 2: somebody's SYNs from a false address do not make us flood
 * that address; those of an honest peer are a second apart. */
static void test_syn_acks_are_limited(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    for (int i = 0; i < 100; i++) {
        script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n");
    }
    assert_in_range(frames_count(&script), 1, 2);
    script_run(&script, "+0.9 < S 0:0(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 1\n");
    script_end(&script);
}

/* RFC 9293 section 3.10.7.4: a FIN again in TIME-WAIT is acknowledged; a
 * thousand of them are no thousand answers. */
static void test_fins_in_time_wait_are_limited(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open_plain);
    script_run(&script, "close\n"
                        "< F. 1:1(0) ack 2 win 65535\n"
                        "drop\n");
    for (int i = 0; i < 1000; i++) {
        script_run(&script, "< F. 1:1(0) ack 2 win 65535\n");
    }
    assert_in_range(frames_count(&script), 1, 3);
    script_run(&script, "+0.5 < F. 1:1(0) ack 2 win 65535\n"
                        "> . 2:2(0) ack 2\n");
    script_end(&script);
}

/* An attacker who could use up a common limit would learn from the RSTs that
 * are left whether a segment with a false source was answered with one; and its
 * segments would silence the RSTs for honest peers. */
static void test_each_source_has_its_own_limit_of_resets(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    unsigned int answered = 0;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    for (int i = 0; i < 200; i++) {
        script_run(&script, "< . 1:1(0) ack 1 win 512\n"
                            "drop\n");
    }
    for (uint8_t i = 0; i < 100; i++) {
        script.ends.remote.bytes[15] = (uint8_t)(100 + i);
        script_run(&script, "< . 1:1(0) ack 1 win 512\n");
        answered += frames_count(&script);
        script_run(&script, "drop\n");
    }
    assert_in_range(answered, 85, 99); /* few share the group of the first */
    script_end(&script);
}

/* The RSTs of connections that end have places of their own. */
static void test_resets_of_nobody_leave_places_for_others(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, script_open_plain);
    script_run(&script, "full\n");
    script.ends.remote_port++;
    for (int i = 0; i < 64; i++) {
        script_run(&script, "< . 1:1(0) ack 1 win 512\n");
    }
    script.ends.remote_port--;
    script_run(&script, "abort\n"
                        "counter tx_no_answer 32\n"
                        "room\n");
    assert_int_equal(frames_count(&script), 33);
    script_end(&script);
}
