/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many peers at an engine of full size: dead ones, hostile ones, floods.  What
 * they do costs themselves; the others are served, and nothing is left.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/bytes.h"
#include "net/tcp/internal.h"
#include "tests/unit/net/tcp/invariant.h"
#include "tests/unit/net/tcp/script.h"

enum {
    ECHO = 7,
    DRIVE = 0x0a000002,
    HOST = 0x0a000001,
    FIRST_PORT = 10000,
    WINDOW = 65535,
    LEN = 1000, /* of most segments */
};

/* A peer that answers at once, unless it is dead. */
struct peer {
    uint32_t address;
    uint16_t port, mss;
    uint32_t isn, snd_nxt, rcv_nxt;
    uint32_t back; /* bytes of the echo */
    uint16_t window;
    bool is_open, is_dead, is_closed, is_reset, is_wrong;
};

struct crowd {
    struct host *host;
    struct peer *peers;
    unsigned int count;
};

static void crowd_begin(struct crowd *crowd, unsigned int count)
{
    struct tcp_config config = tcp_config_default();

    *crowd = (struct crowd){.host = host_new(&config), .count = count};
    crowd->peers = calloc(count, sizeof(crowd->peers[0]));
    assert_non_null(crowd->peers);
    crowd->host->now_us = UINT64_C(1000000000);
    host_listen(crowd->host, ECHO, HOST_ECHO);
    for (unsigned int i = 0; i < count; i++) {
        crowd->peers[i] = (struct peer){
            .address = HOST,
            .port = (uint16_t)(FIRST_PORT + i),
            .mss = LEN,
            .isn = i * 77777,
            .window = WINDOW,
        };
    }
}

static void crowd_end(struct crowd *crowd)
{
    tcp_check(crowd->host->tcp);
    host_free(crowd->host);
    free(crowd->peers);
}

static struct tcp_usage usage_of(const struct crowd *crowd)
{
    return tcp_usage(crowd->host->tcp);
}

/* ---- A peer sends. */

static void segment_send(struct crowd *crowd, const struct peer *peer,
                         uint8_t flags, uint32_t seq, uint32_t len)
{
    struct tcp_ends ends = {ip_addr_from_v4(peer->address),
                            ip_addr_from_v4(DRIVE), peer->port, ECHO};
    struct tcp_header header = {
        .src_port = peer->port,
        .dst_port = ECHO,
        .seq = seq,
        .ack = (flags & TCP_ACK) != 0 ? peer->rcv_nxt : 0,
        .flags = flags,
        .window = peer->window,
        .options = {.has_mss = (flags & TCP_SYN) != 0, .mss = peer->mss},
    };
    uint8_t bytes[TCP_LEN_MAX + LEN];
    size_t at = tcp_header_emit(&header, bytes);

    assert_in_range(len, 0, LEN);
    for (uint32_t i = 0; i < len; i++) {
        bytes[at++] = host_pattern(seq - peer->isn - 1 + i);
    }
    put_be16(bytes + TCP_CHECKSUM, 0);
    put_be16(bytes + TCP_CHECKSUM,
             tcp_checksum(&ends.local, &ends.remote, bytes, at));
    host_input(crowd->host, &ends, 0, bytes, at);
}

static void peer_send(struct crowd *crowd, struct peer *peer, uint32_t len)
{
    segment_send(crowd, peer, TCP_ACK, peer->snd_nxt, len);
    peer->snd_nxt += len;
}

static void peer_open(struct crowd *crowd, struct peer *peer)
{
    peer->snd_nxt = peer->isn + 1;
    peer->is_open = peer->is_closed = peer->is_reset = false;
    peer->back = 0;
    segment_send(crowd, peer, TCP_SYN, peer->isn, 0);
}

static void peer_close(struct crowd *crowd, struct peer *peer)
{
    segment_send(crowd, peer, TCP_FIN | TCP_ACK, peer->snd_nxt, 0);
    peer->snd_nxt++;
}

/* ---- What the engine sends. */

static void echo_check(struct peer *peer, const uint8_t *data, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        peer->is_wrong |= data[i] != host_pattern(peer->back + i);
    }
    peer->back += len;
}

static void peer_hear(struct crowd *crowd, struct peer *peer,
                      const struct tcp_header *header, const uint8_t *data,
                      uint32_t len)
{
    if ((header->flags & TCP_RST) != 0) {
        peer->is_reset = true;
        return;
    }
    if ((header->flags & TCP_SYN) != 0) {
        peer->rcv_nxt = header->seq + 1;
        peer->is_open = true;
    } else if (header->seq != peer->rcv_nxt) {
        return;
    } else if (len == 0 && (header->flags & TCP_FIN) == 0) {
        return;
    } else if (peer->window != 0) {
        echo_check(peer, data, len);
        peer->rcv_nxt += len;
        if ((header->flags & TCP_FIN) != 0) {
            peer->rcv_nxt++;
            peer->is_closed = true;
        }
    }
    segment_send(crowd, peer, TCP_ACK, peer->snd_nxt, 0);
}

static struct peer *peer_of(struct crowd *crowd, const struct tcp_ends *ends)
{
    unsigned int at = (unsigned int)(ends->remote_port - FIRST_PORT);
    struct ip_addr address;

    if (at >= crowd->count) {
        return NULL;
    }
    address = ip_addr_from_v4(crowd->peers[at].address);
    return ip_addr_equal(&ends->remote, &address) ? &crowd->peers[at] : NULL;
}

/* Deliver what waits to be sent, and the answers, until nothing waits. */
static void crowd_settle(struct crowd *crowd)
{
    struct host_frame *frame;

    while ((frame = host_frame(crowd->host)) != NULL) {
        struct peer *peer = peer_of(crowd, &frame->ends);
        uint8_t bytes[TCP_LEN_MAX + HOST_SEGMENT_MAX];
        uint32_t len = frame->len_bytes;
        struct tcp_header header;

        memcpy(bytes, frame->data, len);
        host_frame_done(crowd->host);
        assert_true(tcp_header_parse(&header, bytes, len));
        if (peer != NULL && !peer->is_dead) {
            peer_hear(crowd, peer, &header, bytes + header.header_len,
                      len - header.header_len);
        }
        if (crowd->host->frame_count == 0) {
            host_settle(crowd->host); /* there is room again */
        }
    }
}

static void time_pass(struct crowd *crowd, uint64_t ms)
{
    uint64_t end_us = crowd->host->now_us + TCP_MS(ms);
    uint64_t next_us;

    while ((next_us = tcp_deadline(crowd->host->tcp)) <= end_us) {
        crowd->host->now_us = MAX(next_us, crowd->host->now_us);
        host_settle(crowd->host);
        crowd_settle(crowd);
    }
    crowd->host->now_us = end_us;
    host_settle(crowd->host);
    crowd_settle(crowd);
}

static void open_all(struct crowd *crowd)
{
    for (unsigned int i = 0; i < crowd->count; i++) {
        peer_open(crowd, &crowd->peers[i]);
        crowd_settle(crowd);
    }
}

/* Send some bytes, and have them back. */
static void echo_exchange(struct crowd *crowd, struct peer *peer)
{
    uint32_t before = peer->back;

    peer_send(crowd, peer, LEN);
    crowd_settle(crowd);
    assert_int_equal(peer->back, before + LEN);
    assert_false(peer->is_wrong);
}

static void nothing_is_left(struct crowd *crowd)
{
    struct tcp_usage usage = usage_of(crowd);

    assert_int_equal(usage.connections, 0);
    assert_int_equal(usage.half_open, 0);
    assert_int_equal(usage.time_waits, 0);
    assert_int_equal(usage.pages, 0);
    for (uint16_t i = 0; i < crowd->host->tcp->nodes_count; i++) {
        assert_true(crowd->host->tcp->deadlines.table[i].due == UINT64_MAX);
    }
    tcp_check(crowd->host->tcp);
}

/* ---- Dead peers, and many that come and go. */

/* RFC 9293 section 3.8.3: every second peer falls silent with bytes on their
 * way to it, some with early bytes in pages.  The others do not notice, and the
 * places of the dead are free after R2. */
static void test_dead_half_does_not_harm_the_other(void **state)
{
    struct crowd crowd;

    (void)state;
    crowd_begin(&crowd, TCP_CONNECTIONS_MAX);
    for (unsigned int i = 0; i < crowd.count; i++) { /* of two addresses */
        crowd.peers[i].address = HOST + i / (TCP_CONNECTIONS_MAX / 2);
    }
    open_all(&crowd);
    assert_int_equal(usage_of(&crowd).connections, TCP_CONNECTIONS_MAX);
    for (unsigned int i = 0; i < crowd.count; i += 2) {
        struct peer *peer = &crowd.peers[i];

        peer->is_dead = true;
        segment_send(&crowd, peer, TCP_ACK, peer->snd_nxt + 2 * LEN, LEN);
        peer_send(&crowd, peer, LEN);
        crowd_settle(&crowd);
    }
    assert_in_range(usage_of(&crowd).pages, 512, 2048);
    for (unsigned int second = 0; second < 110; second += 10) {
        for (unsigned int i = 1; i < crowd.count; i += 2) {
            echo_exchange(&crowd, &crowd.peers[i]);
        }
        time_pass(&crowd, 10000);
    }
    time_pass(&crowd, 60000); /* the pauses have grown to a minute */
    assert_int_equal(usage_of(&crowd).connections, TCP_CONNECTIONS_MAX / 2);
    assert_int_equal(usage_of(&crowd).pages, 0);
    for (unsigned int i = 0; i < crowd.count; i += 2) { /* they return */
        crowd.peers[i].is_dead = false;
        crowd.peers[i].isn += 1000000;
        peer_open(&crowd, &crowd.peers[i]);
        crowd_settle(&crowd);
    }
    for (unsigned int i = 0; i < crowd.count; i++) {
        echo_exchange(&crowd, &crowd.peers[i]);
        peer_close(&crowd, &crowd.peers[i]);
        crowd_settle(&crowd);
        assert_true(crowd.peers[i].is_closed && !crowd.peers[i].is_reset);
    }
    nothing_is_left(&crowd);
    crowd_end(&crowd);
}

/* 10,000 connections that end in four ways; the last ones stay open. */
static void test_10000_connections_come_and_go(void **state)
{
    struct crowd crowd;

    (void)state;
    crowd_begin(&crowd, 1000);
    for (unsigned int n = 0; n < 10000; n++) {
        struct peer *peer = &crowd.peers[n % crowd.count];

        peer->isn += 100000;
        peer_open(&crowd, peer);
        crowd_settle(&crowd);
        assert_true(peer->is_open);
        echo_exchange(&crowd, peer);
        switch (n % 4) {
        case 0: /* the peer closes */
            peer_close(&crowd, peer);
            break;
        case 1: /* the drive closes first */
            tcp_close(crowd.host->tcp, crowd.host->established_id,
                      crowd.host->now_us);
            host_settle(crowd.host);
            crowd_settle(&crowd);
            peer_close(&crowd, peer);
            break;
        case 2:
            segment_send(&crowd, peer, TCP_RST, peer->snd_nxt, 0);
            break;
        default:
            tcp_abort(crowd.host->tcp, crowd.host->established_id,
                      crowd.host->now_us);
            host_settle(crowd.host);
            break;
        }
        crowd_settle(&crowd);
        crowd.host->now_us += 1000;
        assert_int_equal(usage_of(&crowd).connections, 0);
        assert_int_equal(usage_of(&crowd).half_open, 0);
    }
    assert_true(tcp_counter(crowd.host->tcp, TCP_ESTABLISHED_COUNT) == 10000);
    assert_int_equal(usage_of(&crowd).time_waits, crowd.count / 4);
    time_pass(&crowd, 60000);
    nothing_is_left(&crowd);
    crowd_end(&crowd);
}

/* ---- Floods. */

/* RFC 4987: 100,000 SYNs from as many addresses.  A connection goes on
 * meanwhile, hosts that answer at once get in, and a minute later there is no
 * trace of the flood. */
static void test_syns_of_100000_addresses(void **state)
{
    struct crowd crowd;
    struct peer flood = {.port = 4444, .mss = LEN, .window = WINDOW};

    (void)state;
    crowd_begin(&crowd, 11);
    peer_open(&crowd, &crowd.peers[0]);
    crowd_settle(&crowd);
    for (uint32_t n = 0; n < 100000; n++) {
        flood.address = 0x0b000000 + n * 167;
        flood.isn = n;
        segment_send(&crowd, &flood, TCP_SYN, flood.isn, 0);
        crowd_settle(&crowd);
        crowd.host->now_us += 10;
        if (n % 1000 == 0) {
            echo_exchange(&crowd, &crowd.peers[0]);
            assert_in_range(usage_of(&crowd).half_open, 1, TCP_HALF_OPEN_MAX);
        }
        if (n % 10000 == 5000) {
            peer_open(&crowd, &crowd.peers[1 + n / 10000]);
            crowd_settle(&crowd);
        }
    }
    assert_int_equal(usage_of(&crowd).connections, 11);
    for (unsigned int i = 0; i < crowd.count; i++) {
        echo_exchange(&crowd, &crowd.peers[i]);
        peer_close(&crowd, &crowd.peers[i]);
        crowd_settle(&crowd);
    }
    assert_int_equal(usage_of(&crowd).connections, 0);
    time_pass(&crowd, 64000);
    nothing_is_left(&crowd);
    crowd_end(&crowd);
}

/* A source does not take all connections: a sixteenth is for others. */
static void test_one_source_leaves_connections_for_others(void **state)
{
    enum { RESERVED = TCP_CONNECTIONS_MAX / 16 };
    struct crowd crowd;
    struct peer *other;

    (void)state;
    crowd_begin(&crowd, TCP_CONNECTIONS_MAX + 1);
    other = &crowd.peers[TCP_CONNECTIONS_MAX];
    other->address = HOST + 1;
    for (unsigned int i = 0; i < TCP_CONNECTIONS_MAX; i++) {
        peer_open(&crowd, &crowd.peers[i]);
        crowd_settle(&crowd);
    }
    assert_int_equal(usage_of(&crowd).connections,
                     TCP_CONNECTIONS_MAX - RESERVED);
    assert_int_equal(usage_of(&crowd).half_open, 0);
    assert_true(tcp_counter(crowd.host->tcp, TCP_HALF_REFUSED) == RESERVED);
    peer_open(&crowd, other);
    crowd_settle(&crowd);
    echo_exchange(&crowd, other);
    segment_send(&crowd, &crowd.peers[0], TCP_RST, crowd.peers[0].snd_nxt, 0);
    peer_open(&crowd, &crowd.peers[TCP_CONNECTIONS_MAX - 1]);
    crowd_settle(&crowd);
    echo_exchange(&crowd, &crowd.peers[TCP_CONNECTIONS_MAX - 1]);
    crowd_end(&crowd);
}

/* The same when all SYNs are answered before the first handshake ends. */
static void test_one_source_does_not_pass_its_limit_with_late_acks(void **state)
{
    enum { MOST = TCP_CONNECTIONS_MAX - TCP_CONNECTIONS_MAX / 16, LATE = 10 };
    struct crowd crowd;

    (void)state;
    crowd_begin(&crowd, MOST + LATE);
    for (unsigned int i = 0; i < MOST - 1; i++) {
        peer_open(&crowd, &crowd.peers[i]);
        crowd_settle(&crowd);
    }
    for (unsigned int i = MOST - 1; i < crowd.count; i++) {
        peer_open(&crowd, &crowd.peers[i]);
    }
    crowd_settle(&crowd);
    assert_int_equal(usage_of(&crowd).connections, MOST);
    crowd_end(&crowd);
}

/* ---- Peers that do what they may, to no good end. */

/* One peer sends single bytes, one reads nothing, one has a small MSS, one
 * fills every hole with one byte: an honest one has its echo in the same time.
 */
static void test_hostile_peers_do_not_slow_an_honest_one(void **state)
{
    enum { TRICKLE, DEAF, SMALL, HOLES, HONEST, PEERS };
    struct crowd crowd;

    (void)state;
    crowd_begin(&crowd, PEERS);
    crowd.peers[SMALL].mss = 1;
    open_all(&crowd);
    crowd.peers[DEAF].window = 0;
    for (uint32_t n = 0; n < 2000; n++) {
        struct peer *holes = &crowd.peers[HOLES];

        peer_send(&crowd, &crowd.peers[TRICKLE], 1);
        if (n < WINDOW / LEN) { /* until its window is full */
            peer_send(&crowd, &crowd.peers[DEAF], LEN);
        }
        peer_send(&crowd, &crowd.peers[SMALL], LEN);
        segment_send(&crowd, holes, TCP_ACK,
                     holes->snd_nxt + 2 + 2 * (n % 30000), 1);
        crowd_settle(&crowd);
        echo_exchange(&crowd, &crowd.peers[HONEST]); /* at once */
        crowd.host->now_us += 1000;
    }
    assert_int_equal(crowd.peers[SMALL].back, 2000 * LEN);
    assert_int_equal(crowd.peers[DEAF].back, 0);
    time_pass(&crowd, 1000);
    assert_int_equal(crowd.peers[TRICKLE].back, 2000);
    assert_in_range(usage_of(&crowd).pages, 1, TCP_HOLD_PAGES);
    for (unsigned int i = 0; i < PEERS; i++) {
        segment_send(&crowd, &crowd.peers[i], TCP_RST, crowd.peers[i].snd_nxt,
                     0);
    }
    nothing_is_left(&crowd);
    crowd_end(&crowd);
}
