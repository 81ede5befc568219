/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcp_world.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "lib/regfields.h"
#include "hw-model/regs/toe.h"
#include "net/wire/checksum.h"

enum event_kind {
    EVENT_ASKED,
    EVENT_ESTABLISHED,
    EVENT_RECEIVED,
    EVENT_ACKED,
    EVENT_FINISHED,
    EVENT_ENDED,
};

enum {
    MTU = 1500,
    SECOND_US = 1000000,
    HOSTS = 16,
    PORTS_OF_HOST = 2048,
    PEER_PORTS = HOSTS * PORTS_OF_HOST, /* lower ones: world_forge_syn() */
};

static const struct ip_addr drive_ip = {{[10] = 0xff, 0xff, 10, 0, 0, 10}};

/* ---- The wire. */

static bool send_frame(struct world *w, const struct tcp_segment *segment,
                       bool is_to_drive)
{
    struct world_frame *frame;

    w->frames++;
    if (w->lose != 0 && w->frames % w->lose == 0) {
        w->lost++;
        return true;
    }
    assert_true(w->wire_count < WORLD_WIRE);
    frame = &w->wire[(w->wire_first + w->wire_count++) % WORLD_WIRE];
    frame->is_to_drive = is_to_drive;
    frame->due_us = w->now_us + WORLD_DELAY_US;
    memcpy(frame->data, segment->header, segment->header_len);
    frame->len = segment->header_len;
    for (uint8_t i = 0; i < segment->num_pieces; i++) {
        assert_true(frame->len + segment->pieces[i].len_bytes <=
                    sizeof(frame->data));
        memcpy(frame->data + frame->len, segment->pieces[i].data,
               segment->pieces[i].len_bytes);
        frame->len = (uint16_t)(frame->len + segment->pieces[i].len_bytes);
    }
    return true;
}

/* The peer's address depends on its port. */
static struct ip_addr host_ip(uint16_t port)
{
    return (struct ip_addr){{[10] = 0xff,
                             0xff,
                             10,
                             0,
                             0,
                             (uint8_t)(100 + port / PORTS_OF_HOST % HOSTS)}};
}

static bool deliver_frame(struct world *w)
{
    struct world_frame *frame = &w->wire[w->wire_first];
    struct tcp_packet packet = {.data = frame->data, .len_bytes = frame->len};

    if (w->wire_count == 0 || frame->due_us > w->now_us) {
        return false;
    }
    w->wire_first = (w->wire_first + 1) % WORLD_WIRE;
    w->wire_count--;
    if (frame->is_to_drive) {
        packet.local = drive_ip;
        packet.remote = host_ip(get_be16(frame->data));
        tcp_input(w->drive, &packet, w->now_us);
    } else if (get_be16(frame->data + 2) >= PEER_PORTS) {
        packet.local = host_ip(get_be16(frame->data + 2));
        packet.remote = drive_ip;
        tcp_input(w->host, &packet, w->now_us);
    }
    return true;
}

/* ---- The drive's engine. */

static struct world_conn *conn_of(struct world *w, uint32_t id)
{
    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        if (w->conns[i].conn != NVME_TCP_NONE && w->conns[i].id == id) {
            return &w->conns[i];
        }
    }
    return NULL;
}

/* The socket's number of a connection is the first one of the engine. */
static struct world_conn *conn_asked(struct world *w, uint32_t asked)
{
    unsigned int i = 0;

    while (w->conns[i].conn == NVME_TCP_NONE || w->conns[i].asked != asked) {
        assert_true(++i < NVME_TCP_QUEUES);
    }
    return &w->conns[i];
}

static void add_event(struct world *w, enum event_kind kind, uint32_t id,
                      uint32_t value)
{
    assert_true(w->event_count < WORLD_EVENTS);
    w->events[w->event_count++] =
        (struct world_event){(uint8_t)kind, id, value, 0};
}

static bool drive_send(void *ctx, const struct tcp_segment *segment)
{
    return send_frame(ctx, segment, false);
}

static unsigned int drive_fetch(void *ctx, uint32_t id, uint64_t offset,
                                uint32_t len, struct tcp_piece *pieces)
{
    const struct world_conn *conn = conn_of(ctx, id);
    uint64_t begin = conn->acked;
    unsigned int count = 0;

    for (uint8_t i = 0; i < conn->send_count && len != 0; i++) {
        const struct world_send *send = &conn->sends[i];
        uint32_t done = send->len_bytes - send->left;

        if (offset < begin + send->left && count < TCP_PIECES_MAX) {
            uint32_t skipped = (uint32_t)(offset - begin);
            uint32_t n = MIN(send->left - skipped, len);

            pieces[count++] =
                (struct tcp_piece){send->data + done + skipped, n};
            offset += n;
            len -= n;
        }
        begin += send->left;
    }
    return count;
}

static void drive_asked(void *ctx, uint32_t id, uint32_t listener,
                        const struct tcp_ends *ends)
{
    (void)listener;
    add_event(ctx, EVENT_ASKED, id, ends->remote.bytes[15]);
}

static void drive_established(void *ctx, uint32_t id, uint32_t asked)
{
    struct world_conn *conn = conn_of(ctx, asked);

    conn->id = id;
    add_event(ctx, EVENT_ESTABLISHED, id, 0);
}

/* A stream of PDUs that is followed. */
struct followed {
    struct world *w;
    struct world_conn *conn;
};

static bool store_bytes(void *ctx, uint32_t at, const uint8_t *data,
                        uint32_t len)
{
    const struct world_conn *conn = ((const struct followed *)ctx)->conn;

    for (uint32_t i = 0; i < len; i++) {
        conn->ring[(conn->received + at + i) % NVME_TCP_RING_LEN] = data[i];
    }
    return true;
}

/* Whether these bytes belong to a request that waits for them. */
static bool is_waited_for(const struct nvme_tcp_queue *queue, uint64_t addr,
                          uint32_t len)
{
    const struct nvme_tcp_request *req = queue->requests;

    for (; req != NULL; req = req->next) {
        for (unsigned int i = 0; i < NVMF_MAX_PIECES; i++) {
            const struct nvmf_piece *piece = &req->nvmf->pieces[i];
            uint64_t from = (uintptr_t)piece->ptr;

            if (req->state == TCP_REQUEST_FETCHING && addr >= from &&
                addr + len <= from + piece->len_bytes) {
                return true;
            }
        }
    }
    return false;
}

static bool place_bytes(void *ctx, uint64_t addr, const uint8_t *data,
                        uint32_t len)
{
    const struct followed *to = ctx;

    assert_true(is_waited_for(&to->w->tcp->queues[to->conn->conn], addr, len));
    memcpy((void *)(uintptr_t)addr, data, len);
    return true;
}

static void publish_bytes(void *ctx, uint32_t len)
{
    struct world_conn *conn = ((const struct followed *)ctx)->conn;

    conn->received += len;
    assert_true(conn->received - conn->credited <= NVME_TCP_RING_LEN);
}

static void consume_bytes(void *ctx, uint32_t len)
{
    struct world_conn *conn = ((const struct followed *)ctx)->conn;

    conn->consumed += len;
}

static void drive_deliver(void *ctx, uint32_t id, const uint8_t *data,
                          uint32_t len)
{
    struct world *w = ctx;
    struct world_conn *conn = conn_of(w, id);
    struct followed to = {w, conn};
    const struct pdu_memory memory = {
        .ctx = &to,
        .store = store_bytes,
        .place = place_bytes,
        .publish = publish_bytes,
        .consume = consume_bytes,
    };
    uint32_t before = conn->received;
    uint32_t taken =
        pdu_follow_take(&conn->follow, &w->places, &memory, data, len);

    (void)store_bytes(&to, 0, data + taken, len - taken);
    publish_bytes(&to, len - taken);
    add_event(w, EVENT_RECEIVED, id, conn->received - before);
    w->events[w->event_count - 1].begun = pdu_follow_begun(&conn->follow);
}

/* Tell the engine of bytes that need no room. */
static void settle_conns(struct world *w)
{
    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        struct world_conn *conn = &w->conns[i];

        if (conn->consumed != 0 && conn->conn != NVME_TCP_NONE) {
            tcp_consume(w->drive, conn->id, conn->consumed, w->now_us);
        }
        conn->consumed = 0;
    }
}

static void drive_finished(void *ctx, uint32_t id)
{
    add_event(ctx, EVENT_FINISHED, id, 0);
}

static void drive_acked(void *ctx, uint32_t id, uint32_t len)
{
    struct world_conn *conn = conn_of(ctx, id);

    conn->acked += len;
    while (len != 0) {
        struct world_send *send = &conn->sends[0];
        uint32_t n = MIN(len, send->left);

        send->left -= n;
        len -= n;
        if (send->left == 0) {
            bool is_last = send->is_last;

            conn->send_count--;
            memmove(conn->sends, conn->sends + 1,
                    conn->send_count * sizeof(*send));
            if (is_last) {
                conn->calls--;
                add_event(ctx, EVENT_ACKED, id, 0);
            }
        }
    }
}

static void drive_ended(void *ctx, uint32_t id, enum tcp_end end)
{
    struct world *w = ctx;
    struct world_conn *conn = conn_of(w, id);

    if (conn != NULL) {
        pdu_follow_end(&conn->follow, &w->places, PDU_FOLLOW_OFF);
        add_event(ctx, EVENT_ENDED, id, end);
    }
}

/* ---- The seam to the drive's engine. */

static bool is_busy(struct world *w)
{
    if (w->busy == 0) {
        return false;
    }
    w->busy--;
    return true;
}

static void socket_accept(void *ctx, uint32_t id, void *ring)
{
    struct world *w = ctx;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        if (w->conns[i].conn == NVME_TCP_NONE) {
            w->conns[i] =
                (struct world_conn){.asked = id, .id = id, .ring = ring};
            break;
        }
    }
    tcp_accept(w->drive, id, w->now_us);
}

static void socket_reject(void *ctx, uint32_t id)
{
    struct world *w = ctx;

    tcp_reject(w->drive, id, w->now_us);
}

static bool socket_send(void *ctx, uint32_t id,
                        const struct nvme_tcp_piece *pieces, uint8_t count)
{
    struct world *w = ctx;
    struct world_conn *conn = conn_asked(w, id);
    uint32_t total = 0;

    assert_true(conn->calls < NVME_TCP_SENDS);
    assert_in_range(count, 1, NVME_TCP_SEND_PIECES);
    if (w->awaits_peer || is_busy(w)) {
        return false;
    }
    for (uint8_t i = 0; i < count; i++) {
        uint32_t len = pieces[i].len_bytes;

        assert_true(len != 0 && total < NVME_TCP_SEND_BYTES);
        total += len;
        if (conn->follow.fills) {
            pdu_fill_digests(&conn->follow.fill,
                             (uint8_t *)(uintptr_t)pieces[i].data, len);
        }
        conn->sends[conn->send_count++] =
            (struct world_send){pieces[i].data, len, len, i + 1 == count};
    }
    conn->calls++;
    w->sends++;
    w->turn_bytes += total;
    /* If it has ended, the end completes this. */
    (void)!tcp_send(w->drive, conn->id, total, w->now_us);
    return true;
}

static bool socket_awaits_peer(void *ctx, uint32_t id)
{
    (void)id;
    return ((const struct world *)ctx)->awaits_peer;
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len)
{
    struct world *w = ctx;

    if (is_busy(w)) {
        return false;
    }
    conn_asked(w, id)->credited += len;
    tcp_consume(w->drive, conn_asked(w, id)->id, len, w->now_us);
    return true;
}

static bool socket_follow(void *ctx, uint32_t id, uint32_t received,
                          bool has_header_digest, bool has_data_digest)
{
    struct world *w = ctx;
    struct world_conn *conn = conn_asked(w, id);

    if (!world_follows || conn->received - conn->credited != received) {
        return false;
    }
    conn->credited = conn->received;
    tcp_consume(w->drive, conn->id, received - TOE_PDU_STOP_LEN, w->now_us);
    pdu_follow_begin(&conn->follow, has_header_digest, has_data_digest);
    return true;
}

static bool socket_place(void *ctx, uint32_t id,
                         const struct nvme_tcp_place *place)
{
    struct world *w = ctx;
    struct world_conn *conn = conn_asked(w, id);
    struct pdu_place to = {
        .ttag = place->ttag, .cccid = place->cccid, .offset = place->offset};
    uint32_t left = place->len_bytes;

    if (is_busy(w)) {
        return false;
    }
    while (left != 0) {
        const struct nvmf_piece *piece = &place->pieces[to.count];
        uint32_t len = MIN(piece->len_bytes, left);

        to.pieces[to.count++] =
            (struct pdu_place_piece){(uintptr_t)piece->ptr, len};
        left -= len;
    }
    if (pdu_follow_is_on(&conn->follow)) {
        assert_null(pdu_place_find(&conn->follow, &w->places, place->ttag));
        assert_non_null(pdu_place_add(&conn->follow, &w->places, &to));
    }
    return true;
}

static void stop_placing(struct world *w, struct world_conn *conn)
{
    if (pdu_follow_is_on(&conn->follow)) {
        pdu_follow_end(&conn->follow, &w->places, PDU_FOLLOW_DEAF);
    }
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct world *w = ctx;

    if (is_busy(w)) {
        return false;
    }
    stop_placing(w, conn_asked(w, id));
    conn_asked(w, id)->has_close = true;
    tcp_close(w->drive, conn_asked(w, id)->id, w->now_us);
    return true;
}

static bool socket_abort(void *ctx, uint32_t id)
{
    struct world *w = ctx;

    if (is_busy(w)) {
        return false;
    }
    stop_placing(w, conn_asked(w, id));
    conn_asked(w, id)->has_abort = true;
    tcp_reject(w->drive, conn_asked(w, id)->id, w->now_us); /* half-open */
    tcp_abort(w->drive, conn_asked(w, id)->id, w->now_us);
    return true;
}

static bool socket_release(void *ctx, uint32_t id)
{
    struct world *w = ctx;

    if (is_busy(w)) {
        return false;
    }
    conn_asked(w, id)->conn = NVME_TCP_NONE;
    return true;
}

static void end_conn(struct world *w, struct world_conn *conn)
{
    uint16_t number = conn->conn;

    nvme_tcp_ended(w->tcp, number);
    while (conn->send_count != 0) {
        if (conn->sends[--conn->send_count].is_last) {
            nvme_tcp_sent(w->tcp, number, false);
        }
    }
    if (conn->has_close) {
        nvme_tcp_closed(w->tcp, number);
    }
    if (conn->has_abort) {
        nvme_tcp_aborted(w->tcp, number);
    }
}

static void take_event(struct world *w, const struct world_event *event)
{
    struct world_conn *conn = conn_of(w, event->id);
    struct nvme_tcp_peer peer = {.host = {[10] = 0xff, 0xff, 10, 0, 0}};
    uint16_t number;

    if (event->kind == EVENT_ASKED) {
        peer.host[15] = (uint8_t)event->value;
        peer.is_behind_tls = w->is_behind_tls;
        number = nvme_tcp_asked(w->tcp, event->id, &peer);
        if (number != NVME_TCP_NONE) {
            conn_of(w, event->id)->conn = number;
        }
        return;
    }
    if (conn == NULL) {
        return;
    }
    switch ((enum event_kind)event->kind) {
    case EVENT_ESTABLISHED:
        nvme_tcp_established(w->tcp, conn->conn);
        break;
    case EVENT_RECEIVED:
        nvme_tcp_received(w->tcp, conn->conn, event->value);
        if (event->begun != FOLLOW_BEGUN_NOTHING) {
            nvme_tcp_begun(w->tcp, conn->conn,
                           (enum nvme_tcp_begun)event->begun);
        }
        break;
    case EVENT_ACKED:
        nvme_tcp_sent(w->tcp, conn->conn, true);
        break;
    case EVENT_FINISHED:
        nvme_tcp_finished(w->tcp, conn->conn);
        break;
    case EVENT_ENDED:
        end_conn(w, conn);
        break;
    case EVENT_ASKED:
        break;
    }
}

/* ---- The host. */

static struct world_peer *peer_of(struct world *w, uint32_t id)
{
    unsigned int i = 0;

    while (w->peers[i].id != id) {
        assert_true(++i < w->peer_count);
    }
    return &w->peers[i];
}

static bool host_send(void *ctx, const struct tcp_segment *segment)
{
    return send_frame(ctx, segment, true);
}

static unsigned int host_fetch(void *ctx, uint32_t id, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    pieces[0] = (struct tcp_piece){peer_of(ctx, id)->out + offset, len};
    return 1;
}

static void host_asked(void *ctx, uint32_t id, uint32_t listener,
                       const struct tcp_ends *ends)
{
    (void)ctx, (void)id, (void)listener, (void)ends;
    fail_msg("the drive opens no connections");
}

static void host_established(void *ctx, uint32_t id, uint32_t asked)
{
    (void)asked;
    peer_of(ctx, id)->is_open = true;
}

static void host_deliver(void *ctx, uint32_t id, const uint8_t *data,
                         uint32_t len)
{
    struct world_peer *peer = peer_of(ctx, id);

    assert_true(peer->received + len <= WORLD_STREAM);
    memcpy(peer->in + peer->received, data, len);
    peer->received += len;
}

static void host_finished(void *ctx, uint32_t id)
{
    peer_of(ctx, id)->is_finished = true;
}

static void host_acked(void *ctx, uint32_t id, uint32_t len)
{
    (void)ctx, (void)id, (void)len;
}

static void host_ended(void *ctx, uint32_t id, enum tcp_end end)
{
    struct world_peer *peer = peer_of(ctx, id);

    peer->is_ended = true;
    peer->end = end;
}

static bool consume_received(struct world *w)
{
    bool is_any = false;

    for (unsigned int i = 0; i < w->peer_count; i++) {
        struct world_peer *peer = &w->peers[i];

        if (!peer->is_deaf && peer->taken != peer->received &&
            !peer->is_ended) {
            tcp_consume(w->host, peer->id, peer->received - peer->taken,
                        w->now_us);
            is_any = true;
        }
        if (!peer->is_deaf) {
            peer->taken = peer->received;
        }
    }
    return is_any;
}

/* ---- Time. */

static bool run_drive(struct world *w)
{
    bool is_busy_now = false;

    w->turn_most = MAX(w->turn_most, w->turn_bytes);
    w->turn_bytes = 0;
    w->fake->now_us = w->now_us;
    w->binding.ops->tick(w->binding.ctx, w->now_us);
    for (unsigned int i = 0; i < w->event_count; i++) {
        const struct world_event event = w->events[i];

        take_event(w, &event);
        is_busy_now = true;
    }
    w->event_count = 0;
    nvmf_target_timer(w->fake->target, w->now_us);
    (void)w->binding.ops->watch(w->binding.ctx);
    if (w->fake->media_count != 0 && !w->fake->hold_media) {
        fake_run(w->fake);
        is_busy_now = true;
    }
    return w->binding.ops->step(w->binding.ctx) || is_busy_now;
}

static bool run_once(struct world *w)
{
    bool is_any = consume_received(w);

    while (deliver_frame(w)) {
        settle_conns(w);
        is_any = true;
    }
    is_any |= run_drive(w);
    is_any |= tcp_transmit(w->drive, 64, w->now_us);
    is_any |= tcp_transmit(w->host, 64, w->now_us);
    return is_any;
}

static uint64_t next_us(struct world *w, uint64_t end_us)
{
    uint64_t us = MIN(tcp_deadline(w->drive), tcp_deadline(w->host));
    uint64_t target_us, binding_us;

    if (w->wire_count != 0) {
        us = MIN(us, w->wire[w->wire_first].due_us);
    }
    target_us = nvmf_target_timer(w->fake->target, w->now_us);
    us = MIN(us, target_us);
    binding_us = w->binding.ops->watch(w->binding.ctx);
    us = MIN(us, binding_us);
    return MIN(MAX(us, w->now_us + 1), end_us);
}

void world_run(struct world *w, uint64_t us)
{
    uint64_t end_us = w->now_us + us;

    for (;;) {
        unsigned int turns = 0;

        while (run_once(w)) {
            assert_true(turns++ < WORLD_TURNS); /* it would sleep */
        }
        if (w->now_us >= end_us) {
            return;
        }
        w->now_us = next_us(w, end_us);
        tcp_timer(w->drive, w->now_us);
        tcp_timer(w->host, w->now_us);
    }
}

/* ---- For tests. */

static struct tcp *engine_new(const struct tcp_user *user, void **memory)
{
    struct tcp_config config = tcp_config_default();
    size_t len;
    struct tcp *tcp;

    config.connections = NVME_TCP_QUEUES;
    config.time_waits = TCP_TIME_WAITS_MAX;
    config.mtu_bytes = MTU;
    config.window_bytes = NVME_TCP_RING_LEN;
    config.rto_min_ms = 200;
    len = (tcp_bytes(&config) + 15) / 16 * 16;
    *memory = aligned_alloc(16, len);
    memset(*memory, 0, len);
    tcp = tcp_init(*memory, &config, user);
    assert_non_null(tcp);
    return tcp;
}

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));
    struct nvme_tcp_config config = {
        .socket =
            {
                .ctx = w,
                .accept = socket_accept,
                .reject = socket_reject,
                .send = socket_send,
                .awaits_peer = socket_awaits_peer,
                .credit = socket_credit,
                .close = socket_close,
                .abort = socket_abort,
                .release = socket_release,
                .follow = socket_follow,
                .place = socket_place,
            },
        .portid = {1},
    };

    w->drive_user = (struct tcp_user){
        .ctx = w,
        .send = drive_send,
        .fetch = drive_fetch,
        .asked = drive_asked,
        .established = drive_established,
        .deliver = drive_deliver,
        .finished = drive_finished,
        .acked = drive_acked,
        .ended = drive_ended,
    };
    w->host_user = (struct tcp_user){
        .ctx = w,
        .send = host_send,
        .fetch = host_fetch,
        .asked = host_asked,
        .established = host_established,
        .deliver = host_deliver,
        .finished = host_finished,
        .acked = host_acked,
        .ended = host_ended,
    };
    pdu_places_init(&w->places);
    w->wire = malloc(WORLD_WIRE * sizeof(*w->wire));
    w->fake = fake_new();
    fake_start(w->fake);
    w->now_us = w->fake->now_us;
    w->memory = aligned_alloc(4096, NVME_TCP_MEMORY_BYTES);
    w->tcp = malloc(nvme_tcp_bytes());
    w->requests = malloc(nvme_tcp_request_bytes());
    config.memory = w->memory;
    config.requests = w->requests;
    config.target = w->fake->target;
    config.faults = &w->faults;
    nvme_tcp_init(w->tcp, &config);
    nvme_tcp_serve(w->tcp, true);
    w->binding = nvme_tcp_binding(w->tcp);
    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        w->conns[i].conn = NVME_TCP_NONE;
    }
    w->drive = engine_new(&w->drive_user, &w->drive_memory);
    w->host = engine_new(&w->host_user, &w->host_memory);
    assert_int_not_equal(tcp_listen(w->drive, WORLD_PORT), -1);
    return w;
}

/* Everything ends, and nothing is left. */
void world_free(struct world *w)
{
    struct nvme_tcp_usage usage;
    uint16_t controllers, qpairs;

    w->fake->hold_media = false;
    w->busy = 0;
    nvme_tcp_serve(w->tcp, false);
    world_run(w, 20 * SECOND_US);
    usage = nvme_tcp_usage(w->tcp);
    assert_int_equal(usage.connections, 0);
    assert_int_equal(usage.qpairs, 0);
    assert_int_equal(usage.requests, 0);
    nvmf_target_stats(w->fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
    assert_int_equal(qpairs, 0);
    assert_int_equal(w->fake->target->depth_used, 0);
    assert_int_equal(w->fake->buffers_out, 0);
    fake_free(w->fake);
    for (unsigned int i = 0; i < w->peer_count; i++) {
        free(w->peers[i].out);
        free(w->peers[i].in);
    }
    free(w->wire);
    free(w->tcp);
    free(w->requests);
    free(w->memory);
    free(w->drive_memory);
    free(w->host_memory);
    free(w);
}

void world_forge_syn(struct world *w)
{
    uint16_t port =
        (uint16_t)(w->hosts * (unsigned int)PORTS_OF_HOST + 1 + w->forged++);
    struct ip_addr source = host_ip(port);
    uint8_t header[20] = {0};
    struct tcp_segment segment = {.header_len = sizeof(header)};

    put_be16(header, port);
    put_be16(header + 2, WORLD_PORT);
    put_be32(header + 4, w->forged);
    header[12] = 5 << 4;
    header[13] = 2; /* SYN */
    put_be16(header + 14, 0xffff);
    put_be16(header + 16,
             checksum_finish(checksum_add(
                 checksum_pseudo(&source, &drive_ip, 6, sizeof(header)), header,
                 sizeof(header))));
    memcpy(segment.header, header, sizeof(header));
    (void)send_frame(w, &segment, true);
}

struct world_peer *world_connect(struct world *w)
{
    struct world_peer *peer = &w->peers[w->peer_count];
    uint16_t port =
        (uint16_t)((unsigned int)PEER_PORTS +
                   w->hosts * (unsigned int)PORTS_OF_HOST + w->peer_count);
    struct tcp_ends ends = {
        .local = host_ip(port),
        .remote = drive_ip,
        .local_port = port,
        .remote_port = WORLD_PORT,
    };

    assert_true(w->peer_count < WORLD_PEERS);
    w->peer_count++;
    peer->out = malloc(WORLD_STREAM);
    peer->in = malloc(WORLD_STREAM);
    peer->id = tcp_connect(w->host, &ends, 0, w->now_us);
    assert_int_not_equal(peer->id, TCP_NO_ID);
    for (unsigned int i = 0; i < 30000 && !peer->is_open && !peer->is_ended;
         i++) {
        world_run(w, 1000);
    }
    return peer;
}

void world_send(struct world *w, struct world_peer *peer, const void *data,
                uint32_t len)
{
    assert_true(peer->sent + len <= WORLD_STREAM);
    memcpy(peer->out + peer->sent, data, len);
    peer->sent += len;
    if (!peer->is_ended) {
        (void)!tcp_send(w->host, peer->id, len, w->now_us);
    }
}

void world_close(struct world *w, struct world_peer *peer)
{
    tcp_close(w->host, peer->id, w->now_us);
}

void world_abort(struct world *w, struct world_peer *peer)
{
    tcp_abort(w->host, peer->id, w->now_us);
}

const uint8_t *world_take(struct world *w, struct world_peer *peer,
                          uint32_t len)
{
    uint32_t *at = &peer->read;

    for (unsigned int i = 0; i < 60000 && peer->received - *at < len; i++) {
        assert_false(peer->is_ended);
        world_run(w, 1000);
    }
    assert_true(peer->received - *at >= len);
    *at += len;
    return peer->in + *at - len;
}

void world_await_end(struct world *w, struct world_peer *peer)
{
    for (unsigned int i = 0; i < 40000 && !peer->is_ended; i++) {
        if (peer->is_finished) {
            world_close(w, peer);
        }
        world_run(w, 1000);
    }
    assert_true(peer->is_ended);
}
