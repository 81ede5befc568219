/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening and closing: every state of RFC 9293 section 3.3.2. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

static void play_both(const char *first, const char *lines)
{
    struct tcp_config config = script_config();
    struct script script;

    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, first);
    script_run(&script, lines);
    script_end(&script);
}

/* RFC 9293 section 3.5, figure 6, seen from the passive side. */
static void test_passive_open_agrees_all_options(void **state)
{
    (void)state;
    play_both(script_open, "quiet\n"
                           "uses 1 0 0 0\n");
}

/* RFC 9293 section 3.2 (MUST-5): options are optional. */
static void test_passive_open_without_options_uses_none(void **state)
{
    (void)state;
    play_both(script_open_plain, "send 2000\n"
                                 "> . 1:1001(1000) ack 1\n"
                                 "> P. 1001:2001(1000) ack 1\n"
                                 "quiet\n");
}

/* RFC 9293 section 3.7.1 (MUST-15): without the option it is 536. */
static void test_mss_without_the_option_is_536(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535\n"
                "> S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "send 600\n"
                "> . 1:537(536) ack 1\n"
                "> P. 537:601(64) ack 1\n");
}

/* A peer that asks for tiny segments would cost a frame for each byte. */
static void test_mss_below_64_counts_as_64(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1>\n"
                "> S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "send 65\n"
                "> . 1:65(64) ack 1\n"
                "> P. 65:66(1) ack 1\n");
}

/* RFC 9293 section 3.10.7.2: data in a SYN are sent again by the peer. */
static void test_data_in_a_syn_are_not_lost(void **state)
{
    (void)state;
    script_play("< S 0:100(100) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "< . 1:101(100) ack 1 win 65535\n"
                "received 100\n");
}

/* RFC 9293 section 3.10.7.4, SYN-RECEIVED: the SYN-ACK was lost. */
static void test_syn_again_is_answered_again(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "+0.5 < S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "uses 0 1 0 0\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "state ESTABLISHED\n");
}

/* RFC 6298 section 3 (Karn): which SYN-ACK the peer has answered is unknown.
 * RFC 7323 section 4.3: the newest timestamp of the peer is echoed. */
static void test_syn_again_measures_no_round_trip(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    struct tcp_info info;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000,TS 100 ecr 0>\n"
                        "> S. 0:0(0) ack 1 <mss 1460,TS 0 ecr 100,ws 0>\n"
                        "+0.6 < S 0:0(0) win 65535 <mss 1000,TS 700 ecr 0>\n"
                        "> S. 0:0(0) ack 1 <mss 1460,TS 0 ecr 700,ws 0>\n"
                        "+0.04 < . 1:1(0) ack 1 win 65535 <TS 740 ecr last>\n");
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(info.srtt_us, 0);
    script_end(&script);
}

/* RFC 9293 section 3.8.3: SYN-ACKs are repeated, with growing pauses. */
static void test_syn_ack_is_repeated_and_given_up(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "+1 > S. 0:0(0) ack 1\n"
                "+2 > S. 0:0(0) ack 1\n"
                "+4 > S. 0:0(0) ack 1\n"
                "+8 > S. 0:0(0) ack 1\n"
                "+16 > S. 0:0(0) ack 1\n"
                "+33 quiet\n"
                "ended timeout\n"
                "uses 0 0 0 0\n");
}

/* RFC 9293 section 3.5.2: an old SYN-ACK's RST frees the half-open entry. */
static void test_rst_ends_a_half_open_connection(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "< R 5:5(0) win 0\n"
                "uses 0 1 0 0\n"
                "< R 1:1(0) win 0\n"
                "uses 0 0 0 0\n"
                "ended reset\n"
                "quiet\n");
}

/* RFC 9293 section 3.10.7.4: an ACK of something else is answered by RST. */
static void test_wrong_ack_of_the_syn_ack_is_reset(void **state)
{
    (void)state;
    script_play("< S 0:0(0) win 65535 <mss 1000>\n"
                "> S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 77 win 65535\n"
                "> R 77:77(0)\n"
                "uses 0 1 0 0\n");
}

/* RFC 3168 section 6.1.1: who has sent a SYN-ACK with ECN processes the marks
 * of the peer, although the next one was without; it sends no ECT itself. */
static void test_marks_count_after_the_syn_ack_was_repeated(void **state)
{
    (void)state;
    script_play("< SEW 0:0(0) win 65535 <mss 1000>\n"
                "> SE. 0:0(0) ack 1\n"
                "+1 > S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "< . 1:1001(1000) ack 1 win 65535 ce\n"
                "> E. 1:1(0) ack 1001\n"
                "send 100\n"
                "> PE. 1:101(100) ack 1001\n");
}

/* The same for the SYN of an active open. */
static void test_marks_count_after_the_syn_was_repeated(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "+1 > S 0:0(0)\n"
                "< SE. 0:0(0) ack 1 win 65535 <mss 1000>\n"
                "> . 1:1(0) ack 1\n"
                "send 100\n"
                "> P. 1:101(100) ack 1\n"
                "< . 1:1001(1000) ack 101 win 65535 ce\n"
                "> E. 101:101(0) ack 1001\n");
}

/* RFC 9293 section 3.10.7.4: the user gives up a connection whose SYN-ACK has
 * left.  The peer may be established: it takes the next number only. */
static void test_reject_after_the_syn_ack_is_heard(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 1\n");
    tcp_reject(script.host->tcp,
               tcp_id_of(script.host->tcp,
                         tcp_node_find(script.host->tcp, &script.ends)),
               script.host->now_us);
    script_run(&script, "+0 > R. 1:1(0) ack 1\n"
                        "uses 0 0 0 0\n");
    script_end(&script);
}

static void test_rejected_syn_is_reset(void **state)
{
    (void)state;
    script_play("refuse\n"
                "< S 0:0(0) win 65535 <mss 1000>\n"
                "> R. 2048:2048(0) ack 1\n");
}

/* RFC 9293 section 3.10.7.1. */
static void test_segment_to_no_port_is_reset(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 1000, 0);
    script.ends.local_port = 81;
    script_run(&script, "< S 0:0(0) win 100\n"
                        "> R. 0:0(0) ack 1\n"
                        "< . 5:5(0) ack 9 win 100\n"
                        "> R 9:9(0)\n"
                        "< F. 5:15(10) ack 9 win 100\n"
                        "> R 9:9(0)\n"
                        "< R 5:5(0) win 0\n"
                        "quiet\n"
                        "counter rx_no_port 3\n");
    script_end(&script);
}

/* RFC 9293 section 3.6, figure 12: this side closes first. */
static void test_active_close_ends_in_time_wait(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "state FIN-WAIT-1\n"
                           "> F. 1:1(0) ack 1\n"
                           "< . 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "state FIN-WAIT-2\n"
                           "< F. 1:1(0) ack 2 win 512 <TS 102 ecr last>\n"
                           "> . 2:2(0) ack 2 <TS 0 ecr 102>\n"
                           "ended closed\n"
                           "uses 0 0 1 0\n"
                           "+59 uses 0 0 1 0\n"
                           "+1 uses 0 0 0 0\n"
                           "quiet\n");
}

static void test_passive_close_ends_with_the_last_ack(void **state)
{
    (void)state;
    play_both(script_open, "< F. 1:1(0) ack 1 win 512 <TS 101 ecr last>\n"
                           "> . 1:1(0) ack 2\n"
                           "finished\n"
                           "state CLOSE-WAIT\n"
                           "close\n"
                           "state LAST-ACK\n"
                           "> F. 1:1(0) ack 2\n"
                           "< . 2:2(0) ack 2 win 512 <TS 102 ecr last>\n"
                           "ended closed\n"
                           "uses 0 0 0 0\n");
}

/* RFC 9293 section 3.6, figure 13. */
static void test_simultaneous_close_passes_closing(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< F. 1:1(0) ack 1 win 512 <TS 101 ecr last>\n"
                           "state CLOSING\n"
                           "> . 2:2(0) ack 2\n"
                           "< . 2:2(0) ack 2 win 512 <TS 102 ecr last>\n"
                           "ended closed\n"
                           "uses 0 0 1 0\n");
}

static void test_fin_with_ack_of_our_fin_skips_fin_wait_2(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "> . 2:2(0) ack 2\n"
                           "ended closed\n"
                           "uses 0 0 1 0\n");
}

/* RFC 9293 section 3.10.4: the FIN follows what was announced. */
static void test_close_sends_all_data_first(void **state)
{
    (void)state;
    play_both(script_open, "send 2000\n"
                           "close\n"
                           "> . 1:1449(1448) ack 1\n"
                           "> P. 1449:2001(552) ack 1\n"
                           "> F. 2001:2001(0) ack 1\n"
                           "< . 1:1(0) ack 2002 win 512 <TS 101 ecr last>\n"
                           "state FIN-WAIT-2\n");
}

/* RFC 9293 section 3.6: data of the peer still arrive in FIN-WAIT-2. */
static void test_half_closed_connection_still_receives(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< . 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "< P. 1:501(500) ack 2 win 512 <TS 102 ecr last>\n"
                           "received 500\n"
                           "+0.04 > . 2:2(0) ack 501\n");
}

/* A peer that never closes would keep the slot for ever. */
static void test_fin_wait_2_ends_after_its_limit(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< . 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "+59.9 state FIN-WAIT-2\n"
                           "+0.1 ended timeout\n"
                           "uses 0 0 0 0\n");
}

/* RFC 9293 section 3.10.7.4, eighth check: a FIN again restarts 2 MSL. */
static void test_time_wait_acknowledges_a_fin_again(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "> . 2:2(0) ack 2\n"
                           "+30 < F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "> . 2:2(0) ack 2\n"
                           "+59 uses 0 0 1 0\n"
                           "+1 uses 0 0 0 0\n");
}

/* RFC 1337. */
static void test_rst_in_time_wait_is_ignored(void **state)
{
    (void)state;
    play_both(script_open, "close\n"
                           "> F. 1:1(0) ack 1\n"
                           "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                           "> . 2:2(0) ack 2\n"
                           "< R 2:2(0) win 0\n"
                           "uses 0 0 1 0\n"
                           "quiet\n");
}

/* RFC 6191 section 2: a newer timestamp shows that the SYN is new. */
static void test_time_wait_gives_way_to_a_new_syn(void **state)
{
    (void)state;
    play_both(script_open,
              "close\n"
              "> F. 1:1(0) ack 1\n"
              "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
              "> . 2:2(0) ack 2\n"
              "+1 < S 0:0(0) win 65535 <mss 1460,sackOK,TS 101 ecr 0,ws 7>\n"
              "> . 2:2(0) ack 2\n"
              "uses 0 0 1 0\n"
              "< S 0:0(0) win 65535 <mss 1460,sackOK,TS 500 ecr 0,ws 7>\n"
              "> S. 0:0(0) ack 1\n"
              "uses 0 1 0 0\n");
}

/* RFC 6191 section 2: the new numbers are beyond the old ones, even if the old
 * connection has sent faster than the clock of RFC 6528 runs. */
static void test_new_connection_after_time_wait_has_greater_numbers(
    void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    uint32_t old_iss;

    (void)state;
    config.congestion = TCP_CUBIC;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open_plain);
    old_iss = script.iss;
    for (unsigned int i = 0; i < 50; i++) {
        char line[64];

        script_run(&script, "send 10000\n");
        while (host_frame(script.host) != NULL) {
            host_frame_done(script.host);
        }
        (void)snprintf(line, sizeof(line), "< . 1:1(0) ack %u win 65535\n",
                       1 + 10000 * (i + 1));
        script_run(&script, line);
    }
    script_run(&script, "close\n"
                        "> F. 500001:500001(0) ack 1\n"
                        "< F. 1:1(0) ack 500002 win 65535\n"
                        "> . 500002:500002(0) ack 2\n"
                        "< S 9:9(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 10\n");
    assert_true(script.iss - old_iss > 500002);
    assert_true(script.iss - old_iss < 0x80000000u);
    script_end(&script);
}

/* RFC 3168 section 6.1.1.2: a SYN-ACK that is sent again offers no ECN, and
 * then nothing may be sent with ECT. */
static void test_syn_ack_again_gives_up_ecn(void **state)
{
    (void)state;
    script_play("< SEW 0:0(0) win 65535 <mss 1000>\n"
                "> SE. 0:0(0) ack 1\n"
                "+1 > S. 0:0(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "send 100\n"
                "> P. 1:101(100) ack 1\n");
}

/* RFC 9293 section 3.10.7.4, second check; RFC 5961 section 3.2. */
static void test_rst_at_the_next_byte_resets(void **state)
{
    (void)state;
    play_both(script_open, "< R 1:1(0) win 0\n"
                           "ended reset\n"
                           "uses 0 0 0 0\n"
                           "quiet\n");
}

/* RFC 9293 section 3.10.5; RFC 7323 section 3.2: with a timestamp. */
static void test_abort_sends_a_reset(void **state)
{
    (void)state;
    play_both(script_open, "send 100\n"
                           "> P. 1:101(100) ack 1\n"
                           "abort\n"
                           "> R. 101:101(0) ack 1 <TS 0 ecr 100>\n"
                           "ended aborted\n"
                           "uses 0 0 0 0\n");
}

/* A segment for a connection that has ended. */
static void test_data_after_the_end_are_reset(void **state)
{
    (void)state;
    play_both(script_open, "abort\n"
                           "> R. 1:1(0) ack 1\n"
                           "< P. 1:101(100) ack 1 win 512 <TS 101 ecr last>\n"
                           "> R 1:1(0)\n");
}

/* ---- Active open. */

static void test_active_open_agrees_options(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0) win 65535 <mss 1460,sackOK,ws 3>\n"
                "state SYN-SENT\n"
                "+0.05 < S. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS 7 ecr "
                "last,ws 7>\n"
                "> . 1:1(0) ack 1 <TS 0 ecr 7>\n"
                "state ESTABLISHED\n");
}

/* RFC 7323 section 4.3: the echo is that of the first segment which waits for
 * its ACK, whatever the sequence numbers are. */
static void test_active_open_echoes_the_first_timestamp(void **state)
{
    static const uint32_t peer_isns[] = {5, 0xfffffc00};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(peer_isns); i++) {
        struct tcp_config config = script_config();
        struct script script;

        script_begin(&script, &config, peer_isns[i], 0);
        script_run(&script,
                   "connect\n"
                   "> SEW 0:0(0)\n"
                   "full\n"
                   "< S. 0:0(0) ack 1 win 65535 <mss 1460,TS 7 ecr last>\n"
                   "< . 1:101(100) ack 1 win 65535 <TS 9 ecr last>\n"
                   "room\n"
                   "> . 1:1(0) ack 101 <TS 0 ecr 7>\n");
        script_end(&script);
    }
}

/* RFC 9293 section 3.8.3: SYNs are repeated, and given up. */
static void test_active_open_times_out(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "+1 > S 0:0(0)\n"
                "+2 > S 0:0(0)\n"
                "+4 > S 0:0(0)\n"
                "+8 > S 0:0(0)\n"
                "+16 > S 0:0(0)\n"
                "+32 > S 0:0(0)\n"
                "+60 > S 0:0(0)\n"
                "+61 ended timeout\n"
                "uses 0 0 0 0\n"
                "quiet\n");
}

/* RFC 9293 section 3.10.7.3. */
static void test_active_open_is_refused(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "< R 0:0(0) win 0\n"
                "state SYN-SENT\n"
                "< R. 0:0(0) ack 5 win 0\n"
                "state SYN-SENT\n"
                "< R. 0:0(0) ack 1 win 0\n"
                "ended refused\n"
                "quiet\n");
}

/* RFC 9293 section 3.5.1, figure 9: an old SYN-ACK is answered by RST. */
static void test_active_open_resets_an_old_syn_ack(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "< S. 0:0(0) ack 99 win 1000\n"
                "> R 99:99(0)\n"
                "state SYN-SENT\n");
}

/* RFC 9293 section 3.5, figure 7. */
static void test_simultaneous_open(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "< S 0:0(0) win 65535 <mss 1000>\n"
                "state SYN-RECEIVED\n"
                "> S. 0:0(0) ack 1\n"
                "< S. 0:0(0) ack 1 win 65535 <mss 1000>\n"
                "> . 1:1(0) ack 1\n"
                "< . 1:1(0) ack 1 win 65535\n"
                "state ESTABLISHED\n");
}

/* RFC 9293 section 3.9.2.2: only in answer to a SYN it ends anything. */
static void test_icmp_unreachable_ends_only_syn_sent(void **state)
{
    (void)state;
    script_play("connect\n"
                "> SEW 0:0(0)\n"
                "icmp unreachable 99\n"
                "state SYN-SENT\n"
                "icmp unreachable 0\n"
                "ended unreachable\n");
    play_both(script_open, "send 100\n"
                           "> P. 1:101(100) ack 1\n"
                           "icmp unreachable 1\n"
                           "state ESTABLISHED\n");
}

/* ---- Pools. */

/* A flood of SYNs takes half-open entries only, and the oldest go. */
static void test_flood_of_syns_takes_no_connection(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    for (uint16_t i = 0; i < 100; i++) {
        script.ends.remote_port = (uint16_t)(1000 + i);
        script.host->now_us += 10;
        script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                            "> S. 0:0(0) ack 1\n");
    }
    script_run(&script, "uses 0 2 0 0\n"
                        "counter half_evicted 98\n"
                        "+0.01 < . 1:1(0) ack 1 win 65535\n"
                        "uses 1 1 0 0\n");
    script.ends.remote_port--; /* the last but one is still there, too */
    script.iss = tcp_check_iss(script.host->tcp, &script.ends);
    script_run(&script, "< . 1:1(0) ack 1 win 65535\n"
                        "uses 2 0 0 0\n");
    script_end(&script);
}

static void test_syn_without_a_free_connection_waits(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.connections = 1;
    script_begin(&script, &config, 5, 0);
    script_run(&script, script_open);
    script.ends.remote_port = 777;
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "quiet\n"
                        "counter half_refused 1\n"
                        "abort\n"
                        "> R. 1:1(0)\n"
                        "< S 0:0(0) win 65535 <mss 1000>\n"
                        "> S. 0:0(0) ack 1\n");
    script_end(&script);
}

/* 2000 connections in two places, closed by either side: nothing is left, and
 * every id is a new one. */
static void test_many_connections_leave_nothing(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    uint32_t last_id = TCP_NO_ID;

    (void)state;
    script_begin(&script, &config, 5, 0);
    for (uint16_t i = 0; i < 2000; i++) {
        script.ends.remote_port = (uint16_t)(1000 + i);
        script.id = TCP_NO_ID;
        script.host->established_count = 0;
        script_run(&script, script_open);
        assert_int_not_equal(script.id, last_id);
        last_id = script.id;
        script_run(&script, i % 2 == 0
                                ? "close\n"
                                  "> F. 1:1(0) ack 1\n"
                                  "< F. 1:1(0) ack 2 win 512 <TS 101 ecr 1>\n"
                                  "> . 2:2(0) ack 2\n"
                                : "< F. 1:1(0) ack 1 win 512 <TS 101 ecr 1>\n"
                                  "> . 1:1(0) ack 2\n"
                                  "close\n"
                                  "> F. 1:1(0) ack 2\n"
                                  "< . 2:2(0) ack 2 win 512 <TS 101 ecr 1>\n");
    }
    script_run(&script, "counter established 2000\n"
                        "uses 0 0 2 0\n"
                        "+60\n"
                        "uses 0 0 0 0\n"
                        "quiet\n");
    script_end(&script);
}

/* A full TIME-WAIT table drops its oldest entry. */
static void test_full_time_wait_table_drops_the_oldest(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    for (uint16_t i = 0; i < 3; i++) {
        script.ends.remote_port = (uint16_t)(1000 + i);
        script.id = TCP_NO_ID;
        script.host->established_count = 0;
        script_run(&script, script_open);
        script_run(&script, "close\n"
                            "> F. 1:1(0) ack 1\n"
                            "+0.1 < F. 1:1(0) ack 2 win 512 <TS 101 ecr 1>\n"
                            "> . 2:2(0) ack 2\n");
    }
    script_run(&script, "uses 0 0 2 0\n"
                        "counter time_wait_evicted 1\n");
    script_end(&script);
}
