/* SPDX-License-Identifier: BSD-2-Clause */
/* The route of each segment: what its owner uses for ports, VLANs, priorities
 * and DSCPs. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

enum { FIRST = 0x1005, OTHER = 0x2007 };

/* All that was sent has this route. @return how many there were */
static unsigned int frames_check(struct script *script, uint32_t route)
{
    unsigned int count = script->host->frame_count;
    struct host *host = script->host;

    for (unsigned int i = 0; i < count; i++) {
        assert_int_equal(
            host->frames[(host->frame_head + i) % HOST_FRAMES].route, route);
    }
    script_run(script, "drop\n");
    return count;
}

static void script_open_route(struct script *script)
{
    struct tcp_config config = script_config();

    script_begin(script, &config, 0xfffffc00, 0xfffff800);
    script->host->route = FIRST;
    script_run(script, script_open);
}

/* The route of the SYN is that of every segment of its connection, also of
 * retransmissions, and of ACKs of what came by another one. */
static void test_connection_keeps_the_route_of_its_syn(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script.host->route = OTHER;
    script_run(&script, "send 4000\n+5\n"
                        "< . 101:201(100) ack 1 win 512 <TS 101 ecr last>\n"
                        "< . 1:1(0) ack 4001 win 512 <TS 102 ecr last>\n"
                        "close\n"
                        "< F. 1:1(0) ack 4002 win 512 <TS 103 ecr last>\n");
    assert_in_range(frames_check(&script, FIRST), 7, 20);
    script_end(&script);
}

/* Half-open connections, TIME-WAIT, resets and answers of no connection. */
static void test_answers_have_the_route_of_the_segment(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script_run(&script, "close\n"
                        "< F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n"
                        "+1 < F. 1:1(0) ack 2 win 512 <TS 101 ecr last>\n");
    assert_int_equal(frames_check(&script, FIRST), 3);
    script.host->route = OTHER;
    script.ends.remote_port++;
    script_run(&script, "< . 1:1(0) ack 1 win 512\n" /* RST */
                        "< S 0:0(0) win 65535 <mss 1000>\n"
                        "+1.5\n");
    assert_int_equal(frames_check(&script, OTHER), 3);
    script_end(&script);
}

/* A cable is out for 30 s, and the other one takes over: the connection stays,
 * and what was in flight is sent at once, not after a minute. */
static void test_connection_survives_a_change_of_route(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script_run(&script, "send 14480\n+30 drop\n");
    tcp_reroute(script.host->tcp, FIRST, OTHER, script.host->now_us);
    script_run(&script, "+0.2\n");
    assert_int_equal(frames_check(&script, OTHER), 1);
    script_run(&script, "< . 1:1(0) ack 14481 win 512 <TS 102 ecr last>\n"
                        "send 100\n");
    assert_int_equal(frames_check(&script, OTHER), 1);
    tcp_set_route(script.host->tcp, script.id, FIRST, script.host->now_us);
    script_run(&script, "send 100\n");
    assert_int_equal(frames_check(&script, FIRST), 1);
    script_run(&script, "state ESTABLISHED\n");
    script_end(&script);
}

/* What has another route, or none of its own, stays as it is. */
static void test_other_routes_stay(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script.host->route = OTHER;
    script.ends.remote_port++;
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\ndrop\n");
    tcp_reroute(script.host->tcp, FIRST, 7, script.host->now_us);
    script_run(&script, "+1\n");
    assert_int_equal(frames_check(&script, OTHER), 1);
    tcp_reroute(script.host->tcp, OTHER, 8, script.host->now_us);
    script_run(&script, "+2\n");
    assert_int_equal(frames_check(&script, 8), 1);
    script_end(&script);
}

/* RFC 9293 section 3.8.3: the time without an answer was that of the old route.
 * The new one has give_up_ms again, in every state, before a connection ends.
 */
static void test_new_route_has_all_the_time(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script_run(&script, "send 14480\n+99.9 drop\nstate ESTABLISHED\n");
    tcp_reroute(script.host->tcp, FIRST, OTHER, script.host->now_us);
    script_run(&script, "+0.3\n");
    assert_int_equal(frames_check(&script, OTHER), 1);
    script_run(&script, "+90 drop\n"
                        "< . 1:1(0) ack 14481 win 512 <TS 102 ecr last>\n"
                        "state ESTABLISHED\n");
    script_end(&script);
}

/* The same for keep-alive probes and for FIN-WAIT-2. */
static void test_new_route_has_all_keep_alives(void **state)
{
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.keep_alive_ms = 10000;
    config.keep_alive_interval_ms = 1000;
    config.keep_alive_probes = 3;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script.host->route = FIRST;
    script_run(&script, script_open);
    script_run(&script, "+12.5 counter tx_keep_alives 3\ndrop\n");
    tcp_reroute(script.host->tcp, FIRST, OTHER, script.host->now_us);
    script_run(&script, "+1 state ESTABLISHED\n"
                        "< . 1:1(0) ack 1 win 512 <TS 102 ecr last>\n"
                        "+5 state ESTABLISHED\n");
    assert_in_range(frames_check(&script, OTHER), 1, 2);
    script_end(&script);
}

/* The SYN of an active open, and the SYN-ACK of a passive one. */
static void test_new_route_shortens_the_pauses_of_syns(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script.ends.remote_port++;
    script_run(&script, "connect\n+40 drop\n"); /* the next one at 63 s */
    tcp_reroute(script.host->tcp, 0, OTHER, script.host->now_us);
    script_run(&script, "+1\n");
    assert_int_equal(frames_check(&script, OTHER), 1);
    script_run(&script, "abort\n");
    script.host->route = FIRST;
    script.ends.remote_port++;
    script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\n"
                        "+20 drop\n"); /* the next one at 31 s */
    tcp_reroute(script.host->tcp, FIRST, 9, script.host->now_us);
    script_run(&script, "+1\n");
    assert_int_equal(frames_check(&script, 9), 1);
    script_end(&script);
}

/* ---- A route that has no room. */

enum { OTHER_PORT = 6000 };

/* One route may be full; others have room. */
static bool route_has_room(void *ctx, uint32_t route)
{
    const struct host *host = ctx;

    return host->full_route == 0 || route != host->full_route;
}

static void segment_from(struct script *script, uint32_t route,
                         uint16_t remote_port, const char *line)
{
    uint16_t before = script->ends.remote_port;

    script->host->route = route;
    script->ends.remote_port = remote_port;
    script_run(script, line);
    script->ends.remote_port = before;
}

/* What waits for one route holds nothing of another one up: data of
 * connections, SYN-ACKs, and RSTs to nobody, which do not wait at all. */
static void test_a_full_route_holds_up_nothing_of_others(void **state)
{
    struct tcp_config config = script_config();
    struct script script;
    uint32_t first, second;

    (void)state;
    config.connections = config.half_open = 4;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    script.host->route = FIRST;
    script_run(&script, script_open);
    script.host->user.has_room = route_has_room;
    first = script.host->established_id;
    segment_from(&script, OTHER, OTHER_PORT,
                 "< S 0:0(0) win 65535 <mss 1000>\n"
                 "> S. 0:0(0) ack 1\n"
                 "< . 1:1(0) ack 1 win 65535\n");
    second = script.host->established_id;
    script.host->full_route = FIRST;
    host_send(script.host, first, 1000);
    host_send(script.host, second, 1000);
    segment_from(&script, FIRST, OTHER_PORT + 1,
                 "< S 0:0(0) win 65535 <mss 1000>\n");
    segment_from(&script, FIRST, OTHER_PORT + 2, "< . 1:1(0) ack 1 win 512\n");
    segment_from(&script, OTHER, OTHER_PORT + 3,
                 "< S 0:0(0) win 65535 <mss 1000>\n");
    segment_from(&script, OTHER, OTHER_PORT + 4, "< . 1:1(0) ack 1 win 512\n");
    assert_int_equal(frames_check(&script, OTHER), 3);
    script.host->full_route = 0;
    host_settle(script.host);
    assert_int_equal(frames_check(&script, FIRST), 2);
    script_end(&script);
}

/* A connection that ends while its route is full sends its RST afterwards. */
static void test_the_rst_of_an_abort_waits_for_its_route(void **state)
{
    struct script script;

    (void)state;
    script_open_route(&script);
    script.host->user.has_room = route_has_room;
    script.host->full_route = FIRST;
    script_run(&script, "abort\n"
                        "quiet\n");
    script.host->full_route = 0;
    host_settle(script.host);
    assert_int_equal(frames_check(&script, FIRST), 1);
    script_end(&script);
}

/* ---- The places of answers. */

enum { HALVES = 60 };

/* Peers that are half open at a route wait for the RST of a listener that ends
 * while this route is full. */
static void script_fill_route(struct script *script)
{
    struct tcp_config config = script_config();

    config.connections = config.half_open = 64;
    script_begin(script, &config, 0xfffffc00, 0xfffff800);
    script->host->user.has_room = route_has_room;
    for (uint16_t i = 0; i < HALVES; i++) {
        segment_from(script, FIRST, (uint16_t)(OTHER_PORT + i),
                     "< S 0:0(0) win 65535 <mss 1000>\ndrop\n");
    }
    script->host->full_route = FIRST;
    tcp_unlisten(script->host->tcp, 0);
    host_settle(script->host);
}

/* What waits for a full route has one half of the places. */
static void test_a_full_route_has_half_of_the_places(void **state)
{
    struct script script;

    (void)state;
    script_fill_route(&script);
    for (uint16_t i = 0; i < HALVES; i++) {
        segment_from(&script, OTHER, (uint16_t)(OTHER_PORT + HALVES + i),
                     "< . 1:1(0) ack 1 win 512\n");
    }
    assert_int_equal(frames_check(&script, OTHER), HALVES);
    assert_int_equal(tcp_counter(script.host->tcp, TCP_TX_NO_ANSWER),
                     HALVES - 32);
    script.host->full_route = 0;
    host_settle(script.host);
    assert_int_equal(frames_check(&script, FIRST), 32);
    script_end(&script);
}

/* Also if all places were taken while the route had room. */
static void test_answers_of_a_route_that_fills_up_give_way(void **state)
{
    struct tcp_ends ends = {.local_port = 7};
    struct tcp_header header = {.flags = TCP_RST};
    struct script script;

    (void)state;
    script_open_route(&script);
    script.host->user.has_room = route_has_room;
    for (uint16_t i = 0; i < TCP_ANSWERS; i++) {
        ends.remote_port = i;
        tcp_answer(script.host->tcp, &ends, FIRST, &header);
    }
    script.host->full_route = FIRST;
    for (uint16_t i = 0; i < TCP_ANSWERS; i++) {
        ends.remote_port = (uint16_t)(TCP_ANSWERS + i);
        tcp_answer(script.host->tcp, &ends, OTHER, &header);
    }
    ends.remote_port = 0;
    assert_false(tcp_answer_waits(script.host->tcp, &ends));
    ends.remote_port = TCP_ANSWERS - 1;
    assert_true(tcp_answer_waits(script.host->tcp, &ends));
    assert_true(tcp_route_is_needed(script.host->tcp, FIRST));
    host_settle(script.host);
    assert_int_equal(frames_check(&script, OTHER), 32);
    assert_false(tcp_route_is_needed(script.host->tcp, OTHER));
    script.host->full_route = 0;
    host_settle(script.host);
    assert_int_equal(frames_check(&script, FIRST), 32);
    script_end(&script);
}

/* More connections than there are places time out in one call: each peer hears
 * of it, because the route has room. */
static void test_each_of_many_time_outs_sends_its_rst(void **state)
{
    enum { MANY = 100 };
    struct tcp_config config = script_config();
    struct script script;

    (void)state;
    config.connections = MANY + MANY / 8; /* one source may not have all */
    config.half_open = 4;
    script_begin(&script, &config, 0xfffffc00, 0xfffff800);
    for (uint16_t i = 0; i < MANY; i++) {
        script.ends.remote_port = (uint16_t)(OTHER_PORT + i);
        script_run(&script, "< S 0:0(0) win 65535 <mss 1000>\ndrop\n");
        script.iss = tcp_check_iss(script.host->tcp, &script.ends);
        script_run(&script, "< . 1:1(0) ack 1 win 65535\n");
        tcp_close(script.host->tcp, script.host->established_id,
                  script.host->now_us);
        host_settle(script.host);
        script_run(&script, "drop\n< . 1:1(0) ack 2 win 65535\n");
    }
    script.host->now_us += 70000000;
    host_settle(script.host);
    assert_int_equal(tcp_counter(script.host->tcp, TCP_TX_RST), MANY);
    script_run(&script, "drop\n");
    script_end(&script);
}

/* A RST that leaves at once, or not at all. */
static void test_an_abort_now_ends_only_if_the_rst_leaves(void **state)
{
    struct script script;
    struct tcp_info info;

    (void)state;
    script_open_route(&script);
    script.host->user.has_room = route_has_room;
    script.host->full_route = FIRST;
    assert_false(
        tcp_abort_now(script.host->tcp, script.id, script.host->now_us));
    assert_true(tcp_info(script.host->tcp, script.id, &info));
    script.host->full_route = 0;
    assert_true(
        tcp_abort_now(script.host->tcp, script.id, script.host->now_us));
    assert_false(tcp_info(script.host->tcp, script.id, &info));
    assert_int_equal(frames_check(&script, FIRST), 1);
    script_end(&script);
}
