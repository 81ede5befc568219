/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP errors: which are believed (RFC 5927; RFC 9293 section 3.9.2.2). */
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

/* RFC 5927 section 7.2: segments of full size have arrived, hence the path has
 * not become narrower while the peer acknowledges; after a time-out it may
 * have. */
static void test_packet_too_big_counts_only_without_progress(void **state)
{
    (void)state;
    play_script(script_open,
                "send 1448\n"
                "> P. 1:1449(1448) ack 1\n"
                "+0.04 < . 1:1(0) ack 1449 win 512 <TS 101 ecr last>\n"
                "send 2896\n"
                "> . 1449:2897(1448) ack 1\n"
                "> P. 2897:4345(1448) ack 1\n"
                "icmp big 600 1449\n"
                "icmp big 1499 1449\n"
                "counter rx_bad_icmp 2\n"
                "quiet\n"
                "+0.082 > P. 2897:4345(1448) ack 1\n" /* the tail probe */
                "+0.2 > . 1449:2897(1448) ack 1\n"
                "counter rtos 1\n"
                "icmp big 1000 1449\n"
                "counter rx_icmp 1\n"
                "> . 1449:2397(948) ack 1\n");
}

/* A connection that sends nothing long learns of a narrow path at once: nothing
 * shows the contrary. */
static void test_packet_too_big_counts_at_the_beginning(void **state)
{
    (void)state;
    play_script(script_open,
                "send 500\n"
                "> P. 1:501(500) ack 1\n"
                "+0.04 < . 1:1(0) ack 501 win 512 <TS 101 ecr last>\n"
                "send 1448\n"
                "> P. 501:1949(1448) ack 1\n"
                "icmp big 1000 501\n"
                "> . 501:1449(948) ack 1\n"
                "> P. 1449:1949(500) ack 1\n"
                "counter rx_icmp 1\n"
                "+0.04 < . 1:1(0) ack 1949 win 512 <TS 102 ecr last>\n"
                "send 948\n"
                "> P. 1949:2897(948) ack 1\n"
                "icmp big 600 1949\n" /* 948 bytes have arrived */
                "counter rx_bad_icmp 1\n"
                "quiet\n");
}

/* RFC 5927 section 7.2: what was short enough for the router was not too big.
 */
static void test_packet_too_big_needs_a_long_segment(void **state)
{
    (void)state;
    play_script(script_open, "send 500\n"
                             "> P. 1:501(500) ack 1\n"
                             "icmp big 1000 1\n"
                             "counter rx_bad_icmp 1\n"
                             "quiet\n"
                             "send 2000\n"
                             "> . 501:1949(1448) ack 1\n");
}

/* RFC 9293 section 3.9.2.2, MUST-56: no route and an unreachable host may pass;
 * a port or a protocol that nobody has does not. */
static void test_soft_error_ends_nothing(void **state)
{
    (void)state;
    play_script("connect\n"
                "> SEW 0:0(0)\n",
                "icmp soft 0\n"
                "counter rx_icmp 1\n"
                "state SYN-SENT\n"
                "+1 > S 0:0(0)\n"
                "icmp unreachable 0\n"
                "ended unreachable\n");
}
