/* SPDX-License-Identifier: BSD-2-Clause */
/* A user of the TCP engine: see host.h. */
#include "tests/unit/net/tcp/host.h"

#include <stdlib.h>
#include <string.h>

#include "lib/random.h"

enum { PATTERN_BYTES = 1 << 16 };

uint8_t host_pattern(uint64_t offset)
{
    return (uint8_t)(random_mix(offset / 8) >> offset % 8 * 8);
}

/* A part of the pattern in memory, as fetch() needs it. */
static uint32_t pattern_piece(uint64_t offset, uint32_t len, uint8_t *to)
{
    for (uint32_t i = 0; i < len; i++) {
        to[i] = host_pattern(offset + i);
    }
    return len;
}

/* ---- The engine's callbacks. */

static bool take_segment(void *ctx, const struct tcp_segment *segment)
{
    struct host *host = ctx;
    struct host_frame *frame;

    if (host->is_full || host->frame_count == HOST_FRAMES ||
        (host->full_route != 0 && segment->route == host->full_route)) {
        return false;
    }
    frame =
        &host->frames[(host->frame_head + host->frame_count++) % HOST_FRAMES];
    frame->ends = segment->ends;
    if (host->rooms != 0 && --host->rooms == 0) {
        host->is_full = true;
    }
    frame->at_us = host->now_us;
    frame->route = segment->route;
    frame->ecn = segment->ecn;
    frame->len_bytes = segment->header_len;
    memcpy(frame->data, segment->header, segment->header_len);
    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        const struct tcp_piece *piece = &segment->pieces[i];

        ASSERT(frame->len_bytes + piece->len_bytes <= HOST_SEGMENT_MAX);
        memcpy(frame->data + frame->len_bytes, piece->data, piece->len_bytes);
        frame->len_bytes += piece->len_bytes;
    }
    return true;
}

/* Two pieces where the ring wraps, and pieces of odd lengths otherwise. */
static unsigned int find_bytes(void *ctx, uint32_t id, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    static uint8_t pattern[PATTERN_BYTES]; /* the tests have one thread */
    struct host *host = ctx;
    struct host_conn *conn = &host->conns[id & 0xffff];
    uint32_t size = host->config.window_bytes;
    const uint8_t *from = pattern;
    uint32_t first;

    ASSERT(conn->id == id && offset >= conn->acked &&
           offset + len <= conn->sent);
    if (offset + len > host->lost_from) {
        return 0;
    }
    len = host->fetch_most != 0 ? MIN(len, host->fetch_most) : len;
    if (conn->service == HOST_ECHO) {
        from = conn->ring + offset % size;
        first = (uint32_t)MIN(len, size - offset % size);
    } else {
        (void)pattern_piece(offset, len, pattern);
        first = MIN(len, 3);
    }
    pieces[0] = (struct tcp_piece){from, first};
    if (first == len) {
        return 1;
    }
    from = conn->service == HOST_ECHO ? conn->ring : pattern + first;
    pieces[1] = (struct tcp_piece){from, len - first};
    return 2;
}

static void note_asked(void *ctx, uint32_t id, uint32_t listener,
                       const struct tcp_ends *ends)
{
    struct host *host = ctx;

    (void)ends;
    ASSERT(host->asked_count < ARRAY_LEN(host->asked));
    (void)listener;
    host->asked[host->asked_count++] = id;
}

static void note_established(void *ctx, uint32_t id, uint32_t asked)
{
    struct host *host = ctx;
    struct host_conn *conn = &host->conns[id & 0xffff];

    ASSERT(conn->id == TCP_NO_ID || conn->id == id);
    if (asked != TCP_NO_ID) { /* the service of its port */
        struct tcp_info info;

        ASSERT(tcp_info(host->tcp, id, &info));
        *conn = (struct host_conn){.id = id};
        conn->service = host->services[info.ends.local_port];
    }
    conn->id = id;
    if (conn->service == HOST_ECHO) {
        conn->ring = malloc(host->config.window_bytes);
        ASSERT(conn->ring != NULL);
    }
    if (conn->service == HOST_SOURCE) {
        conn->to_send = (uint32_t)host->source_bytes;
        conn->closes = true;
    }
    host->established_id = id;
    host->established_count++;
}

static void take_bytes(void *ctx, uint32_t id, const uint8_t *data,
                       uint32_t len)
{
    struct host *host = ctx;
    struct host_conn *conn = &host->conns[id & 0xffff];
    uint32_t size = host->config.window_bytes;

    ASSERT(conn->id == id && !conn->finished && len != 0);
    for (uint32_t i = 0; i < len; i++) {
        if (conn->service == HOST_ECHO) {
            conn->ring[(conn->received + i) % size] = data[i];
        } else if ((conn->service == HOST_PATTERN ||
                    conn->service == HOST_MANUAL) &&
                   data[i] != host_pattern(conn->received + i)) {
            conn->is_wrong = true;
        }
    }
    conn->received += len;
    ASSERT(conn->received - conn->consumed <= size);
    if (conn->service == HOST_ECHO) {
        conn->to_send += len;
    } else if (conn->service != HOST_MANUAL) {
        conn->to_consume += len;
    }
}

static void note_finished(void *ctx, uint32_t id)
{
    struct host *host = ctx;
    struct host_conn *conn = &host->conns[id & 0xffff];

    ASSERT(conn->id == id && !conn->finished);
    conn->finished = true;
    conn->closes |= conn->service != HOST_MANUAL;
}

static void note_acked(void *ctx, uint32_t id, uint32_t len)
{
    struct host *host = ctx;
    struct host_conn *conn = &host->conns[id & 0xffff];

    ASSERT(conn->id == id && conn->acked + len <= conn->sent);
    conn->acked += len;
    if (conn->service == HOST_ECHO) {
        conn->to_consume += len;
    }
}

static void note_ended(void *ctx, uint32_t id, enum tcp_end end)
{
    struct host *host = ctx;

    for (unsigned int i = 0; i < host->asked_count; i++) {
        if (host->asked[i] == id) {
            host->asked[i] = host->asked[--host->asked_count];
        }
    }
    if ((id & 0xffff) < host->config.connections) {
        struct host_conn *conn = &host->conns[id & 0xffff];

        ASSERT(conn->id == id);
        free(conn->ring);
        conn->ring = NULL;
        conn->id = TCP_NO_ID;
    }
    host->ended_id = id;
    host->end = end;
    host->ended_count++;
}

/* ---- Between calls of the engine. */

struct host *host_new(const struct tcp_config *config)
{
    struct host *host = calloc(1, sizeof(*host));

    ASSERT(host != NULL);
    host->memory = aligned_alloc(16, tcp_bytes(config));
    ASSERT(host->memory != NULL);
    memset(host->memory, 0, tcp_bytes(config));
    host->config = *config;
    host->lost_from = UINT64_MAX;
    host->user = (struct tcp_user){
        .ctx = host,
        .send = take_segment,
        .fetch = find_bytes,
        .asked = note_asked,
        .established = note_established,
        .deliver = take_bytes,
        .finished = note_finished,
        .acked = note_acked,
        .ended = note_ended,
    };
    host->tcp = tcp_init(host->memory, config, &host->user);
    ASSERT(host->tcp != NULL);
    return host;
}

void host_reload(struct host *host)
{
    size_t room = tcp_image_bytes(&host->config);
    uint8_t *image = malloc(room);
    size_t len;

    ASSERT(image != NULL);
    len = tcp_save(host->tcp, image, room);
    ASSERT(len != 0);
    free(host->memory);
    host->memory = aligned_alloc(16, tcp_bytes(&host->config));
    ASSERT(host->memory != NULL);
    memset(host->memory, 0, tcp_bytes(&host->config));
    host->tcp = tcp_init(host->memory, &host->config, &host->user);
    ASSERT(host->tcp != NULL && tcp_load(host->tcp, image, len));
    free(image);
}

void host_free(struct host *host)
{
    for (unsigned int i = 0; i < HOST_CONNS; i++) {
        free(host->conns[i].ring);
    }
    free(host->memory);
    free(host);
}

void host_listen(struct host *host, uint16_t port, enum host_service service)
{
    int listener = tcp_listen(host->tcp, port);

    ASSERT(listener >= 0 && port < HOST_PORTS);
    host->services[port] = service;
}

static void asked_answer(struct host *host)
{
    while (host->asked_count != 0 && !host->ignores) {
        uint32_t id = host->asked[--host->asked_count];

        if (host->refuses) {
            tcp_reject(host->tcp, id, host->now_us);
        } else {
            tcp_accept(host->tcp, id, host->now_us);
        }
    }
}

static void conn_settle(struct host *host, struct host_conn *conn)
{
    uint32_t consume = conn->to_consume;
    uint32_t send = conn->to_send;

    conn->to_consume = conn->to_send = 0;
    if (consume != 0) {
        conn->consumed += consume;
        tcp_consume(host->tcp, conn->id, consume, host->now_us);
    }
    if (send != 0) {
        host_send(host, conn->id, send);
    }
    if (conn->closes) {
        conn->closes = false;
        tcp_close(host->tcp, conn->id, host->now_us);
    }
}

void host_settle(struct host *host)
{
    tcp_timer(host->tcp, host->now_us);
    asked_answer(host);
    for (unsigned int i = 0; i < host->config.connections; i++) {
        if (host->conns[i].id != TCP_NO_ID) {
            conn_settle(host, &host->conns[i]);
        }
    }
    (void)tcp_transmit(host->tcp, UINT32_MAX, host->now_us);
}

void host_input(struct host *host, const struct tcp_ends *from_peer,
                uint8_t ecn, const uint8_t *data, size_t len)
{
    struct tcp_packet packet = {
        .local = from_peer->remote,
        .remote = from_peer->local,
        .route = host->route,
        .ecn = ecn,
        .data = data,
        .len_bytes = len,
    };

    tcp_input(host->tcp, &packet, host->now_us);
    host_settle(host);
}

struct host_conn *host_conn(struct host *host, uint32_t id)
{
    struct host_conn *conn = &host->conns[id & 0xffff];

    return conn->id == id ? conn : NULL;
}

void host_send(struct host *host, uint32_t id, uint32_t len)
{
    struct host_conn *conn = host_conn(host, id);

    ASSERT(conn != NULL);
    conn->sent += len;
    if (!tcp_send(host->tcp, id, len, host->now_us)) {
        conn->sent -= len;
    }
}

struct host_frame *host_frame(struct host *host)
{
    return host->frame_count != 0 ? &host->frames[host->frame_head] : NULL;
}

void host_frame_done(struct host *host)
{
    host->frame_head = (host->frame_head + 1) % HOST_FRAMES;
    host->frame_count--;
}
