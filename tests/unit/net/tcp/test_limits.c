/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer can occupy, and for how long. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

static void script_open_with(struct script *script,
                             const struct tcp_config *config, const char *first)
{
    script_begin(script, config, 0xfffffc00, 0xfffff800);
    script_run(script, first);
}

static const char open_then_close[] = "< S 0:0(0) win 65535 <mss 1000>\n"
                                      "> S. 0:0(0) ack 1\n"
                                      "+0.04 < . 1:1(0) ack 1 win 65535\n"
                                      "close\n"
                                      "> F. 1:1(0) ack 1\n"
                                      "+0.01 < . 1:1(0) ack 2 win 65535\n"
                                      "state FIN-WAIT-2\n";

/* ---- After tcp_close(). */

/* RFC 9293 section 3.6: the peer may go on in FIN-WAIT-2, but not for ever,
 * whether it acknowledges, probes our window or sends bytes. */
static void test_fin_wait_2_ends_although_the_peer_is_heard(void **state)
{
    static const char *const lines[] = {
        "+6 < . 1:1(0) ack 2 win 65535\ndrop\n",
        "+6 < . 1:2(1) ack 2 win 65535\ndrop\n",
        NULL, /* one more byte each time */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct tcp_config config = script_config();
        struct script script;
        char next[80];

        script_open_with(&script, &config, open_then_close);
        for (unsigned int n = 1; n <= 9; n++) {
            (void)snprintf(next, sizeof(next),
                           "+6 < . %u:%u(1) ack 2 win 65535\ndrop\n", n, n + 1);
            script_run(&script, lines[i] != NULL ? lines[i] : next);
        }
        script_run(&script, "state FIN-WAIT-2\n"
                            "+5.9 state FIN-WAIT-2\n"
                            "drop\n"
                            "+0.1 > R. 2:2(0)\n"
                            "ended timeout\n"
                            "uses 0 0 0 0\n");
        script_end(&script);
    }
}

/* RFC 9293 section 3.8.6.1: a closed window does not end a connection that its
 * user keeps; RFC 6429: one that is closed has a limit (give_up_ms). */
static void test_closed_window_ends_after_close(void **state)
{
    static const char *const closes[] = {
        "close\n",
        "< F. 1:1(0) ack 1 win 0\nclose\nstate LAST-ACK\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(closes); i++) {
        struct tcp_config config = script_config();
        struct script script;

        script_open_with(&script, &config, script_open_plain);
        script_run(&script, "< . 1:1(0) ack 1 win 0\n"
                            "send 100\n");
        for (int n = 0; n < 20; n++) { /* 600 s: it stays */
            script_run(&script, "+30 < . 1:1(0) ack 1 win 0\ndrop\n");
        }
        script_run(&script, "state ESTABLISHED\n");
        script_run(&script, closes[i]);
        for (int n = 0; n < 3; n++) {
            script_run(&script, i == 0 ? "+30 < . 1:1(0) ack 1 win 0\ndrop\n"
                                       : "+30 < . 2:2(0) ack 1 win 0\ndrop\n");
        }
        script_run(&script, "+95 ended timeout\nuses 0 0 0 0\n");
        script_end(&script);
    }
}

/* RFC 9293 section 3.8.3: a connection ends after retransmissions without an
 * answer, not because this machine was stopped for as long. */
static void test_pause_of_the_machine_is_no_silence(void **state)
{
    static const char *const before[] = {
        "send 100\ndrop\n",
        /* Some retransmissions were without an answer before. */
        "send 100\n+50\ndrop\n",
        /* Zero-window probes, too. */
        "< . 1:1(0) ack 1 win 0\nsend 100\n+50\ndrop\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        struct tcp_config config = script_config();
        struct script script;

        script_open_with(&script, &config, script_open_plain);
        script_run(&script, before[i]);
        script.host->now_us += UINT64_C(3600) * 1000000;
        host_settle(script.host);
        script_run(&script, "state ESTABLISHED\n");
        assert_true(script.host->frame_count != 0);
        script_run(&script, "drop\n"
                            "< . 1:1(0) ack 1 win 65535\n"
                            "drop\n"
                            "< . 1:1(0) ack 101 win 65535\n"
                            "+200 state ESTABLISHED\n"
                            "quiet\n");
        script_end(&script);
    }
}

/* RFC 6298 section 5.3: the ACK of new bytes starts the timer again, also when
 * it comes after the deadline and before tcp_timer(). */
static void test_late_timer_does_not_end_the_connection(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_open_with(&script, &config, script_open_plain);
    script_run(&script, "send 3000\ndrop\n");
    script.host->now_us += 1000000; /* tcp_input() is called first */
    script_run(&script, "< . 1:1(0) ack 1001 win 65535\n"
                        "drop\n"
                        "+0.1 < . 1:1(0) ack 3001 win 65535\n"
                        "state ESTABLISHED\n");
    script_end(&script);
}

/* A peer that opens and closes its window in turn and acknowledges nothing does
 * not put the time-out off for ever, when the user has closed. */
static void test_window_in_turn_open_and_closed_ends(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_open_with(&script, &config, script_open_plain);
    script_run(&script, "< . 1:1(0) ack 1 win 0\n"
                        "send 1\n"
                        "close\n");
    for (int n = 0; n < 4000 && script.host->ended_count == 0; n++) {
        script_run(&script, "+0.15 < . 1:1(0) ack 1 win 1\ndrop\n");
        if (script.host->ended_count == 0) {
            script_run(&script, "+0.15 < . 1:1(0) ack 1 win 0\ndrop\n");
        }
    }
    script_run(&script, "ended timeout\nuses 0 0 0 0\n");
    script_end(&script);
}

/* RFC 6429 section 5, RFC 9293 section 3.8.3: a peer that acknowledges one byte
 * now and then does not keep the place of a connection that is closed. */
static void test_trickle_of_acks_ends_after_close(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    char line[100];
    unsigned int n;

    (void)state;
    script_open_with(&script, &config, script_open_plain);
    script_run(&script, "send 60000\n"
                        "drop\n");
    for (n = 1; n <= 5; n++) { /* the user still has it: it stays */
        (void)snprintf(line, sizeof(line),
                       "+90 < . 1:1(0) ack %u win 1\ndrop\n", n + 1);
        script_run(&script, line);
    }
    script_run(&script, "close\n");
    for (; n <= 10 && script.host->ended_count == 0; n++) {
        (void)snprintf(line, sizeof(line),
                       "+90 < . 1:1(0) ack %u win 1\ndrop\n", n + 1);
        script_run(&script, line);
    }
    script_run(&script, "ended timeout\nuses 0 0 0 0\n");
    script_end(&script);
}

/* What is slow and goes on is not ended: 4 KiB in every give_up_ms. */
static void test_slow_peer_gets_all_after_close(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    char line[100];

    (void)state;
    script_open_with(&script, &config, script_open_plain);
    script_run(&script, "send 20000\n"
                        "close\n"
                        "drop\n");
    for (unsigned int n = 1; n <= 20; n++) {
        (void)snprintf(line, sizeof(line),
                       "+15 < . 1:1(0) ack %u win 1000\ndrop\n", n * 1000 + 1);
        script_run(&script, line);
    }
    script_run(&script, "+1 < . 1:1(0) ack 20002 win 1000\n"
                        "state FIN-WAIT-2\n");
    script_end(&script);
}

/* ---- Configurations. */

static bool config_is_taken(const struct tcp_config *config)
{
    static uint8_t memory[1 << 20] __attribute__((aligned(16)));
    static const struct tcp_user user;

    assert_true(tcp_bytes(config) <= sizeof(memory));
    return tcp_init(memory, config, &user) != NULL;
}

/* RFC 9293 section 3.8.4, MUST-26: one probe without an answer is not a dead
 * connection, much less none. */
static void test_keep_alive_needs_probes(void **state)
{
    struct tcp_config config = script_config();

    (void)state;
    config.keep_alive_ms = 1000;
    config.keep_alive_probes = 2;
    assert_true(config_is_taken(&config));
    config.keep_alive_probes = 1;
    assert_false(config_is_taken(&config));
    config.keep_alive_probes = 0;
    assert_false(config_is_taken(&config));
    config.keep_alive_ms = 0;
    assert_true(config_is_taken(&config));
}

/* RFC 9293 section 3.8.3, MUST-23: a SYN is repeated for at least 3 minutes,
 * if the user does not ask for less. */
static void test_syn_is_repeated_for_3_minutes(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_begin(&script, &config, 5, 0);
    script_run(&script, "connect\n"
                        "drop\n"
                        "+180 state SYN-SENT\n"
                        "drop\n"
                        "+60 ended timeout\n");
    script_end(&script);
}

/* ---- Pages for early bytes. */

/* Each connection is guaranteed two pages, whatever others have taken. */
static void test_one_peer_does_not_take_all_pages(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    char line[100];

    (void)state;
    config.connections = 4;
    config.pages = 12;
    script_open_with(&script, &config, script_open_plain);
    for (unsigned int n = 1; n <= 15; n++) { /* 1 byte of every page */
        (void)snprintf(line, sizeof(line),
                       "< . %u:%u(1) ack 1 win 65535\ndrop\n", n * 2048 + 10,
                       n * 2048 + 11);
        script_run(&script, line);
    }
    script_run(&script, "uses 1 0 0 6\n"); /* 12 without 2 for each other */
    for (unsigned int n = 1; n <= 3; n++) {
        script.ends.remote_port++;
        script.id = TCP_NO_ID;
        script.host->established_count = 0;
        script_run(&script, script_open_plain);
        script_run(&script, "< . 3001:4001(1000) ack 1 win 65535\n"
                            "< . 2001:3001(1000) ack 1 win 65535\n"
                            "drop\n");
    }
    script_run(&script, "uses 4 0 0 12\n"
                        "< . 1:2001(2000) ack 1 win 65535\n"
                        "received 4000\n"
                        "uses 4 0 0 10\n");
    script_end(&script);
}

/* ---- Half-open connections. */

static void syn_from(struct script *script, uint32_t address, uint16_t port)
{
    script->ends.remote = ip_addr_from_v4(address);
    script->ends.remote_port = port;
    script->host->now_us++; /* the one before is older */
    script_run(script, "< S 0:0(0) win 65535 <mss 1000>\n");
}

/* RFC 4987 section 3.3: when the pool is full, the oldest entry of the address
 * with the most goes: one source does not push others out. */
static void test_one_source_does_not_take_the_half_open_pool(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.half_open = 8;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    syn_from(&script, 0x0a000001, 40000); /* honest and slow */
    for (uint16_t n = 0; n < 1000; n++) {
        syn_from(&script, 0x0a000063, (uint16_t)(1000 + n));
        syn_from(&script, 0x0a000064, (uint16_t)(1000 + n));
    }
    script_run(&script, "drop\n");
    script.ends.remote = ip_addr_from_v4(0x0a000001);
    script.ends.remote_port = 40000;
    script.iss = tcp_check_iss(script.host->tcp, &script.ends);
    script_run(&script, "< . 1:1(0) ack 1 win 65535\n"
                        "state ESTABLISHED\n");
    script_end(&script);
}

static void half_is_complete(struct script *script, uint32_t address,
                             uint16_t port)
{
    script->ends.remote = ip_addr_from_v4(address);
    script->ends.remote_port = port;
    script->iss = tcp_check_iss(script->host->tcp, &script->ends);
    script->id = TCP_NO_ID;
    script->host->established_count = 0;
    script_run(script, "drop\n"
                       "< . 1:1(0) ack 1 win 65535\n"
                       "state ESTABLISHED\n");
}

/* RFC 4987 section 3.3: a flood of SYNs from random addresses has one entry for
 * each; a host with a few queues has more, and its ones do not go first. */
static void test_flood_of_addresses_spares_newer_entries(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.connections = 4;
    config.half_open = 16;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    for (uint32_t n = 0; n < 16; n++) {
        syn_from(&script, 0x0b000000 + n, 40000);
    }
    for (uint16_t port = 1; port <= 3; port++) {
        syn_from(&script, 0x0a000001, port);
    }
    for (uint32_t n = 0; n < 12; n++) {
        syn_from(&script, 0x0c000000 + n, 40000);
    }
    for (uint16_t port = 1; port <= 3; port++) {
        half_is_complete(&script, 0x0a000001, port);
    }
    script_end(&script);
}

/* A newer SYN of another source takes an entry of the one that has more than a
 * quarter of them, not the oldest of all. */
static void test_newer_source_takes_the_place_of_a_greedy_one(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.half_open = 8;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    syn_from(&script, 0x0a000001, 40000); /* honest and slow */
    for (uint16_t n = 0; n < 4; n++) {
        syn_from(&script, 0x0a000063, (uint16_t)(1000 + n));
    }
    for (uint32_t n = 0; n < 5; n++) { /* two of them find it full */
        syn_from(&script, 0x0c000000 + n, 40000);
    }
    half_is_complete(&script, 0x0a000001, 40000);
    script_end(&script);
}

static struct ip_addr v6_addr(uint8_t first, uint8_t second, uint8_t net,
                              uint8_t host)
{
    struct ip_addr addr = {.bytes = {first, second}};

    addr.bytes[7] = net;
    addr.bytes[15] = host;
    return addr;
}

static void syn_from_v6(struct script *script, struct ip_addr from,
                        uint16_t port)
{
    script->ends.remote = from;
    script->ends.remote_port = port;
    script_run(script, "< S 0:0(0) win 65535 <mss 1000>\n");
}

/* RFC 4291 sections 2.5.4 and 2.5.6: each host of the drive's own subnet and of
 * the link is a source, although they share the first 64 bits: the oldest entry
 * goes.  Behind a router, the hosts of a /64 are one. */
static void test_hosts_of_one_ipv6_link_are_different_sources(void **state)
{
    static const struct {
        uint8_t first, second, net;
        bool is_one;
    } links[] = {
        {0x20, 0x01, 1, false}, {0xfe, 0x80, 0, false}, {0x20, 0x01, 2, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        struct tcp_config config = script_config();
        struct script script;

        config.half_open = 8;
        script_begin(&script, &config, 0xfffffc00, 0xfffff800);
        script.ends.local = v6_addr(0x20, 0x01, 1, 1);
        syn_from_v6(&script, v6_addr(0x20, 0x01, 3, 9), 1);
        for (uint8_t n = 0; n < 12; n++) {
            script.host->now_us += 10;
            syn_from_v6(&script,
                        v6_addr(links[i].first, links[i].second, links[i].net,
                                (uint8_t)(10 + n)),
                        1);
        }
        script.ends.remote = v6_addr(0x20, 0x01, 3, 9);
        assert_int_equal(tcp_check_iss(script.host->tcp, &script.ends) != 0,
                         links[i].is_one);
        script_end(&script);
    }
}

/* ---- TIME-WAIT. */

/* RFC 9293 section 3.6.1: a SYN takes the place of TIME-WAIT only if it becomes
 * a connection: not when nobody listens, or when there is no free one. */
static void test_time_wait_stays_when_the_syn_is_not_taken(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.connections = 1;
    script_open_with(&script, &config, open_then_close);
    script_run(&script, "< F. 1:1(0) ack 2 win 65535\n"
                        "drop\n"
                        "uses 0 0 1 0\n");
    script.ends.remote_port++; /* takes the only connection */
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "drop\n");
    script.iss = tcp_check_iss(script.host->tcp, &script.ends);
    script_run(&script, "< . 1:1(0) ack 1 win 65535\n"
                        "uses 1 0 1 0\n");
    script.ends.remote_port--;
    script_run(&script, "+1 < S 5000:5000(0) win 65535 <mss 1000>\n"
                        "uses 1 0 1 0\n");
    tcp_unlisten(script.host->tcp, 0);
    script_run(&script, "+1 < S 5000:5000(0) win 65535 <mss 1000>\n"
                        "uses 1 0 1 0\n");
    script_end(&script);
}

/* RFC 9293 section 3.6.1 (MAY-2): a SYN that leads to nothing gives the place
 * back to TIME-WAIT, for the rest of its time. */
static void test_time_wait_returns_after_a_syn_for_nothing(void **state)
{
    static const char *const nothing[] = {
        "refuse\n+1 < S 5000:5000(0) win 65535 <mss 1000>\n",
        "+1 < S 5000:5000(0) win 65535 <mss 1000>\nuses 0 1 0 0\n"
        "< R 5001:5001(0) win 0\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        struct tcp_config config = script_config();
        struct script script;

        script_open_with(&script, &config, open_then_close);
        script_run(&script, "< F. 1:1(0) ack 2 win 65535\n"
                            "drop\n");
        script_run(&script, nothing[i]);
        script_run(&script, "uses 0 0 1 0\n"
                            "+58.9 uses 0 0 1 0\n"
                            "+0.1 uses 0 0 0 0\n");
        script_end(&script);
    }
}

/* RFC 6191 section 2, MUST-13 of RFC 9293: our own SYN takes the place of
 * TIME-WAIT only if timestamps tell the peer that it is a new one. */
static void test_connect_waits_for_time_wait(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_open_with(&script, &config, open_then_close);
    script_run(&script, "< F. 1:1(0) ack 2 win 65535\n"
                        "drop\n"
                        "uses 0 0 1 0\n"
                        "+59\n");
    assert_int_equal(
        tcp_connect(script.host->tcp, &script.ends, 0, script.host->now_us),
        TCP_NO_ID);
    script_run(&script, "uses 0 0 1 0\n"
                        "+1 uses 0 0 0 0\n");
    assert_int_not_equal(
        tcp_connect(script.host->tcp, &script.ends, 0, script.host->now_us),
        TCP_NO_ID);
    script_end(&script);
}

static void test_connect_after_time_wait_with_timestamps(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    script_open_with(&script, &config, script_open);
    script_run(&script, "close\n"
                        "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                        "drop\n"
                        "+0.5 uses 0 0 1 0\n");
    /* Our timestamp would not be greater than the last one for sure. */
    assert_int_equal(
        tcp_connect(script.host->tcp, &script.ends, 0, script.host->now_us),
        TCP_NO_ID);
    script_run(&script, "+0.5\n");
    assert_int_not_equal(
        tcp_connect(script.host->tcp, &script.ends, 0, script.host->now_us),
        TCP_NO_ID);
    script_run(&script, "uses 1 0 0 0\n");
    script_end(&script);
}
