/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines and a cable that misbehaves: each frame of a session in turn is
 * lost, doubled, held back, cut or changed; then many of them at random.  Every
 * byte has to arrive once, and both connections have to end.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "lib/random.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

enum {
    CABLE_FRAMES = 2048,
    DELAY_US = 5000,
    HELD_US = 30000,
    STEPS_MAX = 200000,
    ONE_FAULT_US = 2000000, /* a lost SYN costs a second */
    MANY_US = 120000000,
    PERCENT = 100,
};

enum fault { FAULT_NONE, LOSE, DOUBLE, HOLD, CUT, CHANGE, FAULTS };

static const char *const fault_name[FAULTS] = {"nothing", "lost", "doubled",
                                               "held",    "cut",  "changed"};

struct carried {
    uint64_t due_us;
    bool to_server;
    struct host_frame frame;
};

struct session {
    struct host *client, *server;
    uint32_t id; /* of the client */
    uint64_t random;
    unsigned int count, carried; /* frames on the cable, and so far */
    struct carried *cable[CABLE_FRAMES];
    enum fault fault;    /* of frame number `at`, from 1 */
    unsigned int at;     /* 0: any, with the next field */
    unsigned int chance; /* percent */
    bool is_plain;
    bool reloads;                /* after every step */
    uint64_t began_us, ended_us; /* until nobody has a connection */
};

struct session_config {
    uint32_t bytes, window_bytes;
    enum tcp_congestion congestion;
    enum host_service service;
    bool is_reversed; /* the server sends */
    bool is_plain;    /* without SACK, timestamps and window scale */
};

static void cable_put(struct session *s, bool to_server,
                      const struct host_frame *frame, uint64_t due_us)
{
    struct carried *carried = malloc(sizeof(*carried));
    unsigned int at = s->count;

    assert_non_null(carried);
    assert_true(s->count < CABLE_FRAMES);
    carried->due_us = due_us;
    carried->to_server = to_server;
    memcpy(&carried->frame, frame,
           offsetof(struct host_frame, data) + frame->len_bytes);
    for (; at != 0 && s->cable[at - 1]->due_us > due_us; at--) {
        s->cable[at] = s->cable[at - 1];
    }
    s->cable[at] = carried;
    s->count++;
}

/* A middlebox that takes all options but the MSS out of SYNs. */
static void options_strip(struct host_frame *frame)
{
    struct tcp_header header;

    assert_true(tcp_header_parse(&header, frame->data, frame->len_bytes));
    if ((header.flags & TCP_SYN) != 0) {
        header.options.has_times = header.options.has_shift = false;
        header.options.sack_permitted = false;
        frame->len_bytes = (uint32_t)tcp_header_emit(&header, frame->data);
        put_be16(frame->data + TCP_CHECKSUM, 0);
        put_be16(frame->data + TCP_CHECKSUM,
                 tcp_checksum(&frame->ends.local, &frame->ends.remote,
                              frame->data, frame->len_bytes));
    }
}

static enum fault fault_choose(struct session *s)
{
    s->carried++;
    if (s->at != 0) {
        return s->carried == s->at ? s->fault : FAULT_NONE;
    }
    if (random_next(&s->random) % PERCENT >= s->chance) {
        return FAULT_NONE;
    }
    return (enum fault)(1 + random_next(&s->random) % (FAULTS - 1));
}

static void cable_carry(struct session *s, bool to_server,
                        struct host_frame *frame)
{
    uint64_t due_us = s->client->now_us + DELAY_US;

    if (s->is_plain) {
        options_strip(frame);
    }

    switch (fault_choose(s)) {
    case LOSE:
        return;
    case DOUBLE:
        cable_put(s, to_server, frame, due_us);
        break;
    case HOLD:
        due_us += HELD_US;
        break;
    case CUT:
        frame->len_bytes /= 2;
        break;
    case CHANGE:
        frame->data[random_next(&s->random) % frame->len_bytes] ^=
            (uint8_t)BIT(random_next(&s->random) % 8);
        break;
    default:
        break;
    }
    cable_put(s, to_server, frame, due_us);
}

static void frames_collect(struct session *s, struct host *host)
{
    struct host_frame *frame;

    while ((frame = host_frame(host)) != NULL) {
        cable_carry(s, host == s->client, frame);
        host_frame_done(host);
        if (host->frame_count == 0) {
            host_settle(host);
        }
    }
}

static void frames_deliver(struct session *s, uint64_t now_us)
{
    while (s->count != 0 && s->cable[0]->due_us <= now_us) {
        struct carried *first = s->cable[0];

        s->count--;
        memmove(&s->cable[0], &s->cable[1], s->count * sizeof(s->cable[0]));
        host_input(first->to_server ? s->server : s->client, &first->frame.ends,
                   first->frame.ecn, first->frame.data, first->frame.len_bytes);
        tcp_check(first->to_server ? s->server->tcp : s->client->tcp);
        free(first);
    }
}

/* One step: to the next time at which anything happens. */
static bool session_step(struct session *s)
{
    uint64_t next_us =
        MIN(tcp_deadline(s->client->tcp), tcp_deadline(s->server->tcp));

    frames_collect(s, s->client);
    frames_collect(s, s->server);
    if (s->count != 0) {
        next_us = MIN(next_us, s->cable[0]->due_us);
    }
    if (next_us == UINT64_MAX) {
        return false;
    }
    next_us = MAX(next_us, s->client->now_us);
    s->client->now_us = s->server->now_us = next_us;
    frames_deliver(s, next_us);
    host_settle(s->client);
    host_settle(s->server);
    if (s->reloads) {
        host_reload(s->client);
        host_reload(s->server);
    }
    tcp_check(s->client->tcp);
    tcp_check(s->server->tcp);
    if (tcp_usage(s->client->tcp).connections != 0 ||
        tcp_usage(s->server->tcp).connections != 0) {
        s->ended_us = next_us;
    }
    return true;
}

static void session_begin(struct session *s, const struct session_config *c)
{
    struct tcp_config config = script_config();
    struct tcp_ends ends = {ip_addr_from_v4(0x0a000001),
                            ip_addr_from_v4(0x0a000002), 50000, 80};

    config.window_bytes = c->window_bytes;
    config.congestion = c->congestion;
    s->client = host_new(&config);
    config.secret[0] ^= 1;
    s->server = host_new(&config);
    s->server->source_bytes = c->bytes;
    host_listen(s->server, 80, c->service);
    /* The client's numbers wrap in its second segment. */
    s->client->now_us =
        tcp_check_time_of_iss(s->client->tcp, &ends, 0xfffff800);
    s->server->now_us = s->began_us = s->client->now_us;
    s->id = tcp_connect(s->client->tcp, &ends, 0, s->client->now_us);
    assert_int_not_equal(s->id, TCP_NO_ID);
    s->client->conns[s->id & 0xffff] =
        (struct host_conn){.id = s->id, .service = HOST_PATTERN};
    host_settle(s->client);
}

static void session_end(struct session *s)
{
    for (; s->count != 0; s->count--) {
        free(s->cable[s->count - 1]);
    }
    host_free(s->client);
    host_free(s->server);
}

/* Whether everything has arrived and nothing is left. */
static bool session_is_right(const struct session *s,
                             const struct session_config *c)
{
    const struct host_conn *client = &s->client->conns[s->id & 0xffff];
    const struct host_conn *server = &s->server->conns[0];
    struct tcp_usage ours = tcp_usage(s->client->tcp);
    struct tcp_usage theirs = tcp_usage(s->server->tcp);
    bool echoes = c->service != HOST_PATTERN;

    return s->client->ended_count == 1 && s->client->end == TCP_END_CLOSED &&
           !client->is_wrong && !server->is_wrong &&
           s->ended_us - s->began_us < (s->at != 0 ? ONE_FAULT_US : MANY_US) &&
           client->received == (echoes ? c->bytes : 0) &&
           (c->is_reversed || server->received == c->bytes) &&
           ours.connections + ours.half_open + ours.pages == 0 &&
           theirs.connections + theirs.half_open + theirs.pages == 0;
}

/* Run a whole session. @return the number of frames */
static unsigned int session_run(struct session *s,
                                const struct session_config *c)
{
    struct host_conn *client;
    unsigned int frames;

    s->is_plain = c->is_plain;
    session_begin(s, c);
    client = &s->client->conns[s->id & 0xffff];
    for (unsigned int i = 0; session_step(s); i++) {
        assert_true(i < STEPS_MAX);
        if (!c->is_reversed && s->client->established_count != 0 &&
            client->id == s->id && client->sent == 0) {
            client->to_send = c->bytes;
            client->closes = true;
        }
    }
    frames = s->carried;
    if (!session_is_right(s, c)) {
        fail_msg("frame %u %s, seed %llu: client got %llu, server %llu of %u; "
                 "ended %u times, the last with %u, after %llu us",
                 s->at, fault_name[s->fault], (unsigned long long)s->random,
                 (unsigned long long)client->received,
                 (unsigned long long)s->server->conns[0].received, c->bytes,
                 s->client->ended_count, s->client->end,
                 (unsigned long long)(s->ended_us - s->began_us));
    }
    session_end(s);
    return frames;
}

static void sweep_run(const struct session_config *c)
{
    struct session *s = calloc(1, sizeof(*s));
    unsigned int frames;

    assert_non_null(s);
    s->at = UINT32_MAX;
    frames = session_run(s, c);
    assert_true(frames > 10);
    for (unsigned int fault = LOSE; fault < FAULTS; fault++) {
        for (unsigned int at = 1; at <= frames; at++) {
            memset(s, 0, sizeof(*s));
            s->fault = (enum fault)fault;
            s->at = at;
            (void)session_run(s, c);
        }
    }
    free(s);
}

static void test_each_frame_of_a_small_echo_may_fail(void **state)
{
    (void)state;
    sweep_run(&(struct session_config){.bytes = 10000,
                                       .window_bytes = 65536,
                                       .congestion = TCP_NEWRENO,
                                       .service = HOST_ECHO});
}

static void test_each_frame_with_a_small_window_may_fail(void **state)
{
    (void)state;
    sweep_run(&(struct session_config){.bytes = 9000,
                                       .window_bytes = 2048,
                                       .congestion = TCP_CUBIC,
                                       .service = HOST_PATTERN});
}

static void test_each_frame_of_a_source_may_fail(void **state)
{
    (void)state;
    sweep_run(&(struct session_config){.bytes = 20000,
                                       .window_bytes = 65536,
                                       .congestion = TCP_CUBIC,
                                       .service = HOST_SOURCE,
                                       .is_reversed = true});
}

/* RFC 6582: without SACK. */
static void test_each_frame_without_options_may_fail(void **state)
{
    (void)state;
    sweep_run(&(struct session_config){.bytes = 20000,
                                       .window_bytes = 65536,
                                       .congestion = TCP_NEWRENO,
                                       .service = HOST_SOURCE,
                                       .is_reversed = true,
                                       .is_plain = true});
}

/* Many faults at once, from seeds. */
static void test_many_frames_may_fail_at_random(void **state)
{
    static const struct session_config configs[] = {
        {60000, 65536, TCP_NEWRENO, HOST_ECHO, false, false},
        {60000, 65536, TCP_CUBIC, HOST_ECHO, false, false},
        {30000, 4096, TCP_CUBIC, HOST_PATTERN, false, false},
        {60000, 262144, TCP_CUBIC, HOST_SOURCE, true, false},
        {60000, 65536, TCP_NEWRENO, HOST_ECHO, false, true},
    };
    struct session *s = calloc(1, sizeof(*s));

    (void)state;
    assert_non_null(s);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
            memset(s, 0, sizeof(*s));
            s->random = seed * 1000 + i;
            s->reloads = seed <= 2;
            s->chance = 2 + (unsigned int)(seed % 5) * 4;
            (void)session_run(s, &configs[i]);
        }
    }
    free(s);
}
