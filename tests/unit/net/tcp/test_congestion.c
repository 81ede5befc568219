/* SPDX-License-Identifier: BSD-2-Clause */
/* How much is sent: after a loss or a mark, during recovery, after a pause. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/script.h"

static void script_open_with(struct script *script,
                             enum tcp_congestion congestion, const char *lines)
{
    struct tcp_config config = script_config();

    config.congestion = congestion;
    script_begin(script, &config, 0xfffffc00, 0xfffff800);
    script_run(script, lines);
}

static struct tcp_conn *conn_of(struct script *script)
{
    return tcp_conn_by_id(script->host->tcp, script->id);
}

static const char open_ecn[] = "< SEW 0:0(0) win 65535 <mss 1000>\n"
                               "> SE. 0:0(0) ack 1\n"
                               "+0.04 < . 1:1(0) ack 1 win 65535\n";

/* ---- What is halved. */

/* RFC 3168 section 6.1.2: ECE halves cwnd.  When the burst is over, the last
 * ACK leaves nothing in flight that could be halved. */
static void test_echo_at_the_end_of_a_burst_halves_the_window(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, open_ecn);
    script_run(&script, "send 10000\n"
                        "drop\n"
                        "+0.04 < . 1:1(0) ack 8001 win 65535\n"
                        "< E. 1:1(0) ack 10001 win 65535\n");
    assert_int_equal(conn_of(&script)->ssthresh, 5000);
    script_end(&script);
}

/* RFC 5681 section 3.1, equation 4; RFC 9937 section 5 (RecoverFS): the ACK
 * that tells of a loss may also acknowledge what was in flight before it. */
static void test_loss_halves_what_was_in_flight_before_the_ack(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open);
    script_run(&script, "send 14480\n"
                        "drop\n"
                        "+0.04 < . 1:1(0) ack 8689 win 512 <TS 101 ecr last,"
                        "sack 10137:14481>\n"
                        "counter recoveries 1\n");
    assert_int_equal(conn_of(&script)->ssthresh, 7240);
    assert_int_equal(conn_of(&script)->prr_flight, 14480);
    script_end(&script);
}

/* ---- During recovery. */

/* RFC 9937 section 5: without SACK, what duplicate ACKs have told of is not
 * delivered a second time by the ACK that passes it.  RFC 6582 section 3.2
 * step 3: that ACK sends the next lost segment. */
static void test_partial_ack_counts_no_segment_twice(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open_plain);
    conn_of(&script)->cwnd = 20000;
    script_run(&script, "send 40000\n"
                        "drop\n");
    for (int i = 0; i < 6; i++) { /* 1 and 8 of 20 are lost */
        script_run(&script, "< . 1:1(0) ack 1 win 65535\n");
    }
    script_run(&script, "> . 20001:21001(1000) ack 1\n" /* RFC 3042 */
                        "> . 21001:22001(1000) ack 1\n"
                        "> . 1:1001(1000) ack 1\n"
                        "> . 22001:23001(1000) ack 1\n"
                        "> . 23001:24001(1000) ack 1\n"
                        "quiet\n"
                        "< . 1:1(0) ack 7001 win 65535\n"
                        "> . 7001:8001(1000) ack 1\n"
                        "quiet\n");
    assert_int_equal(conn_of(&script)->prr_delivered, 7000);
    assert_int_equal(conn_of(&script)->dup_acks, 0);
    script_end(&script);
}

/* RFC 9937 section 5 (SafeACK): an ACK that advances and tells of a further
 * loss is no reason to send more than has left the network. */
static void test_further_loss_ends_the_growth_in_recovery(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open);
    script_run(&script,
               "send 14480\n"
               "drop\n"
               "+0.04 < . 1:1(0) ack 1 win 512 <TS 101 ecr last,"
               "sack 8689:13033>\n"
               "> . 1:1449(1448) ack 1\n"
               "> . 1449:2897(1448) ack 1\n"
               "> . 2897:4345(1448) ack 1\n"
               "quiet\n"
               /* The last of the ten was sent before what this ACK is for. */
               "+0.04 < . 1:1(0) ack 1449 win 512 <TS 102 ecr last,"
               "sack 8689:13033>\n"
               "> . 4345:5793(1448) ack 1\n"
               "quiet\n"
               "< . 1:1(0) ack 2897 win 512 <TS 102 ecr last,"
               "sack 8689:13033>\n"
               "> . 5793:7241(1448) ack 1\n"
               "> . 7241:8689(1448) ack 1\n"
               "quiet\n");
    script_end(&script);
}

/* RFC 6298 section 5.3: only what is acknowledged restarts the timer, else a
 * peer that goes on to tell of single segments delays it for ever.  RFC 6675
 * section 6: it may begin anew with the retransmission. */
static void test_sack_does_not_restart_the_timer(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open);
    script_run(
        &script,
        "send 14480\n"
        "drop\n"
        "+0.04 < . 1:1(0) ack 1 win 512 <TS 101 ecr last,sack 1449:5793>\n"
        "> . 1:1449(1448) ack 1\n"
        "+0.06 < . 1:1(0) ack 1 win 512 <TS 102 ecr last,sack 1449:7241>\n"
        "+0.06 < . 1:1(0) ack 1 win 512 <TS 103 ecr last,sack 1449:8689>\n"
        "+0.04 < . 1:1(0) ack 1 win 512 <TS 104 ecr last,sack 1449:10137>\n"
        "quiet\n"
        "+0.04 > . 1:1449(1448) ack 1\n"
        "counter rtos 1\n");
    script_end(&script);
}

/* ---- Behind a closed window. */

static unsigned int frames_drop(struct script *script)
{
    unsigned int count = 0;

    for (; host_frame(script->host) != NULL; count++) {
        host_frame_done(script->host);
    }
    return count;
}

/* RFC 5681 section 4.1: for an hour nothing has told how much the network
 * takes.  The probes of the window are no reason to send all at once then,
 * whether the peer has taken their byte or not. */
static void test_window_that_was_closed_for_long_opens_slowly(void **state)
{
    static const char *const opens[] = {
        "< . 1:1(0) ack 1 win 65535\n",
        "< . 1:1(0) ack 2 win 65535\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(opens); i++) {
        struct script script;

        script_open_with(&script, TCP_NEWRENO, script_open_plain);
        conn_of(&script)->cwnd = 50000;
        script_run(&script, "< . 1:1(0) ack 1 win 0\n"
                            "send 60000\n");
        for (int n = 0; n < 60; n++) {
            script_run(&script, "+60 < . 1:1(0) ack 1 win 0\n");
        }
        (void)frames_drop(&script);
        script_run(&script, opens[i]);
        assert_in_range(frames_drop(&script), 10, 11);
        script_end(&script);
    }
}

/* RFC 9293 section 3.8.6.1: a probe is for a window that is closed.  When it
 * opens before the probe has left, data leave as cwnd permits. */
static void test_probe_ends_when_the_window_opens(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open_plain);
    script_run(&script, "< . 1:1(0) ack 1 win 100\n"
                        "send 3000\n"
                        "full\n"
                        "+0.2 < . 1:1(0) ack 1 win 65535\n"
                        "room\n"
                        "> . 1:1001(1000) ack 1\n"
                        "> . 1001:2001(1000) ack 1\n"
                        "> P. 2001:3001(1000) ack 1\n"
                        "counter tx_zero_window_probes 0\n");
    script_end(&script);
}

/* RFC 8985 section 7.2: an ACK of new bytes sets the time of a tail loss probe
 * anew, also when it was due and had no room. */
static void test_tail_probe_waits_after_an_ack(void **state)
{
    struct script script;

    (void)state;
    script_open_with(&script, TCP_NEWRENO, script_open);
    script_run(&script, "send 2896\n"
                        "drop\n"
                        "full\n"
                        "+0.1 < . 1:1(0) ack 1449 win 512 <TS 101 ecr last>\n"
                        "room\n"
                        "quiet\n"
                        "counter tx_probes 0\n");
    script_end(&script);
}

/* ---- CUBIC. */

/* One round trip of 40 ms: what is in flight is acknowledged. */
static void round_trip(struct script *script)
{
    struct tcp_conn *conn = conn_of(script);
    uint32_t end = conn->snd_nxt;

    script_run(script, "+0.04\n");
    while (seq_before(conn->snd_una, end)) {
        uint32_t ack = conn->snd_una + MIN(end - conn->snd_una, 1000);
        char line[80];

        (void)snprintf(line, sizeof(line), "< . 1:1(0) ack %u win 65535\n",
                       ack - script->iss);
        script_run(script, line);
        (void)frames_drop(script);
    }
}

/* RFC 9438 sections 4.2 and 5.8: the time in which the user does not fill the
 * window does not count: what it has not used has not been shown to be free. */
static void test_cubic_does_not_grow_with_unused_time(void **state)
{
    struct script script;
    uint32_t before;

    (void)state;
    script_open_with(&script, TCP_CUBIC, open_ecn);
    script_run(&script, "send 10000\n"
                        "drop\n"
                        "+0.04 < E. 1:1(0) ack 10001 win 65535\n"
                        "send 20000\n");
    (void)frames_drop(&script);
    round_trip(&script); /* limited by cwnd: an epoch begins */
    for (int n = 0; n < 4; n++) {
        round_trip(&script);
    }
    assert_true(conn_of(&script)->cubic.epoch_us != 0);
    for (int n = 0; n < 1500; n++) { /* a minute */
        script_run(&script, "send 1000\n");
        (void)frames_drop(&script);
        round_trip(&script);
    }
    before = conn_of(&script)->cwnd;
    script_run(&script, "send 60000\n");
    (void)frames_drop(&script);
    round_trip(&script);
    assert_in_range(conn_of(&script)->cwnd, before, before + 1500);
    script_end(&script);
}
