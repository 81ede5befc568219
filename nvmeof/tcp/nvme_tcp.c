/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tcp/tcp_state.h"

#include <string.h>

#include "nvmeof/wire/identify.h"

/* How long a connection may take to end. */
enum { END_US = 5000000 };

/* Where each state may go. */
static const uint8_t queue_next[TCP_QUEUE_STATES] = {
    [TCP_QUEUE_FREE] = BIT(TCP_QUEUE_OPENING),
    [TCP_QUEUE_OPENING] =
        BIT(TCP_QUEUE_OPEN) | BIT(TCP_QUEUE_ABORTING) | BIT(TCP_QUEUE_ENDED),
    [TCP_QUEUE_OPEN] = BIT(TCP_QUEUE_ENDING) | BIT(TCP_QUEUE_CLOSING) |
                       BIT(TCP_QUEUE_ABORTING) | BIT(TCP_QUEUE_ENDED),
    [TCP_QUEUE_ENDING] =
        BIT(TCP_QUEUE_CLOSING) | BIT(TCP_QUEUE_ABORTING) | BIT(TCP_QUEUE_ENDED),
    [TCP_QUEUE_CLOSING] = BIT(TCP_QUEUE_ABORTING) | BIT(TCP_QUEUE_ENDED),
    [TCP_QUEUE_ABORTING] = BIT(TCP_QUEUE_ENDED),
    [TCP_QUEUE_ENDED] = BIT(TCP_QUEUE_FREE),
};

/* The only writer of queue->state. */
static void queue_enter(struct nvme_tcp_queue *queue,
                        enum nvme_tcp_queue_state next)
{
    ASSERT(queue_next[queue->state] & BIT(next));
    queue->state = (uint8_t)next;
    queue->tcp->awaiting -= queue->awaits_number;
    queue->awaits_number = false;
}

void tcp_queue_needs_step(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;

    if (queue->needs_step) {
        return;
    }
    queue->needs_step = true;
    queue->next_step = NULL;
    if (tcp->step_first == NULL) {
        tcp->step_first = queue;
    } else {
        tcp->step_last->next_step = queue;
    }
    tcp->step_last = queue;
}

static void begin_end(struct nvme_tcp_queue *queue,
                      enum nvme_tcp_queue_state state)
{
    if (queue->state == TCP_QUEUE_OPENING || queue->state == TCP_QUEUE_OPEN) {
        queue->ending_us = queue->tcp->now_us;
    }
    queue_enter(queue, state);
    tcp_queue_needs_step(queue);
}

void tcp_queue_close(struct nvme_tcp_queue *queue)
{
    if (queue->state == TCP_QUEUE_OPEN || queue->state == TCP_QUEUE_ENDING) {
        queue->waiting.first = NULL;
        queue->fetching.first = NULL;
        begin_end(queue, TCP_QUEUE_CLOSING);
    }
}

void tcp_queue_abort(struct nvme_tcp_queue *queue)
{
    if (queue->state != TCP_QUEUE_FREE && queue->state < TCP_QUEUE_ABORTING) {
        tcp_queue_drop_unsent(queue);
        queue->fetching.first = NULL;
        begin_end(queue, TCP_QUEUE_ABORTING);
    }
}

static void report_conn_event(struct nvme_tcp_queue *queue, bool is_connected)
{
    const struct nvme_tcp_config *config = &queue->tcp->config;

    if (config->conn_event != NULL &&
        queue->event.is_connected != is_connected) {
        queue->event.is_connected = is_connected;
        config->conn_event(config->conn_event_ctx, &queue->event);
    }
}

void tcp_queue_connected(struct nvme_tcp_queue *queue)
{
    queue->is_connected = true;
    queue->qid = queue->event.qid;
    report_conn_event(queue, true);
}

/* ---- The end of a queue. */

static void qpair_release(struct nvme_tcp_queue *queue)
{
    tcp_request_release_all(queue);
    queue->qpair_state = TCP_QPAIR_NONE;
    queue->tcp->qpairs_used--;
    report_conn_event(queue, false);
}

/* The socket uses no memory of requests any more. */
static void qpair_take_down(struct nvme_tcp_queue *queue)
{
    if (queue->qpair_state == TCP_QPAIR_HELD) {
        queue->qpair_state = TCP_QPAIR_DRAINING;
        if (nvmf_qpair_closed(queue->tcp->config.target, queue->number)) {
            qpair_release(queue);
            return;
        }
    }
    if (queue->qpair_state == TCP_QPAIR_DRAINING) {
        tcp_request_fail_all(queue);
    }
    if (queue->qpair_state == TCP_QPAIR_DRAINED) {
        qpair_release(queue);
    }
}

/* All that may be sent has been: send a FIN. */
static void close_when_sent(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    if (!tcp_queue_is_idle(queue)) {
        return;
    }
    if (!queue->was_closed) {
        if (!socket->close(socket->ctx, queue->id)) {
            tcp_queue_needs_step(queue);
            return;
        }
        queue->was_closed = true;
        queue->has_close = true;
    }
    qpair_take_down(queue);
}

static void abort_once(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    if (queue->was_aborted) {
        return;
    }
    if (socket->abort(socket->ctx, queue->id)) {
        queue->was_aborted = true;
        queue->has_abort = true;
    } else {
        tcp_queue_needs_step(queue);
    }
}

static void finish_ended(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_socket *socket = &queue->tcp->config.socket;

    if (queue->sends != 0) {
        return; /* the socket still completes them */
    }
    qpair_take_down(queue);
    if (queue->qpair_state != TCP_QPAIR_NONE || queue->has_close ||
        queue->has_abort) {
        return;
    }
    if (socket->release(socket->ctx, queue->id)) {
        queue_enter(queue, TCP_QUEUE_FREE);
        queue->tcp->queues_used--;
    } else {
        tcp_queue_needs_step(queue);
    }
}

static void queue_step(struct nvme_tcp_queue *queue)
{
    if (queue->state != TCP_QUEUE_FREE) {
        tcp_queue_receive(queue);
        tcp_queue_send(queue);
    }
    switch ((enum nvme_tcp_queue_state)queue->state) {
    case TCP_QUEUE_ENDING:
    case TCP_QUEUE_CLOSING:
        close_when_sent(queue);
        break;
    case TCP_QUEUE_ABORTING:
        abort_once(queue);
        break;
    case TCP_QUEUE_ENDED:
        finish_ended(queue);
        break;
    case TCP_QUEUE_FREE:
    case TCP_QUEUE_OPENING:
    case TCP_QUEUE_OPEN:
    case TCP_QUEUE_STATES:
        break;
    }
}

/* Queues that need another turn come after those whose turn it was not. */
static __attribute__((noinline)) void queues_step(struct nvme_tcp *tcp)
{
    const struct nvme_tcp_queue *last = tcp->step_last;
    struct nvme_tcp_queue *queue;

    do {
        queue = tcp->step_first;
        tcp->step_first = queue->next_step;
        queue->needs_step = false;
        queue_step(queue);
    } while (queue != last && tcp->bytes_left != 0);
}

bool nvme_tcp_step(struct nvme_tcp *tcp)
{
    if (__builtin_expect(tcp->awaiting != 0, 0)) {
        tcp_room_serve(tcp);
    }
    if (__builtin_expect(tcp->step_first == NULL, 1)) {
        return false;
    }
    queues_step(tcp);
    return true;
}

/* ---- The transport seam. */

static struct nvme_tcp_queue *queue_of(struct nvme_tcp *tcp, uint16_t qpair)
{
    return &tcp->queues[tcp->by_qpair[qpair]];
}

static void disconnect_queue(void *ctx, uint16_t qpair)
{
    struct nvme_tcp_queue *queue = queue_of(ctx, qpair);

    if (queue->state == TCP_QUEUE_OPEN) {
        queue->fetching.first = NULL;
        begin_end(queue, TCP_QUEUE_ENDING);
    } else if (queue->was_disconnected) {
        tcp_queue_abort(queue); /* called again: stop waiting for the peer */
    }
    queue->was_disconnected = true;
}

static void queue_drained(void *ctx, uint16_t qpair)
{
    struct nvme_tcp_queue *queue = queue_of(ctx, qpair);

    ASSERT(queue->qpair_state == TCP_QPAIR_DRAINING);
    queue->qpair_state = TCP_QPAIR_DRAINED;
    tcp_queue_needs_step(queue);
}

static bool admits_host(void *ctx, uint16_t qpair, const char *hostnqn)
{
    const struct nvme_tcp_config *config = &((struct nvme_tcp *)ctx)->config;

    return config->admits(config->admits_ctx, queue_of(ctx, qpair)->id,
                          hostnqn);
}

static struct nvmf_channel channel_of(void *ctx, uint16_t qpair)
{
    const struct nvme_tcp_config *config = &((struct nvme_tcp *)ctx)->config;

    return config->channel(config->admits_ctx, queue_of(ctx, qpair)->id);
}

/* ---- New connections. */

static void queue_init(struct nvme_tcp_queue *queue, uint32_t id,
                       const struct nvme_tcp_peer *peer)
{
    struct nvme_tcp *tcp = queue->tcp;

    /* Keep needs_step and next_step: the queue may still be in that list. */
    queue->id = id;
    queue->qpair_state = TCP_QPAIR_NONE;
    queue->qid = 0;
    queue->is_behind_tls = peer->is_behind_tls;
    queue->is_connected = false;
    queue->awaits_number = false;
    queue->has_flow_control = true;
    queue->has_close = false;
    queue->has_abort = false;
    queue->was_disconnected = false;
    queue->wants_reset = false;
    queue->was_closed = false;
    queue->was_aborted = false;
    queue->bytes_us = tcp->now_us;
    queue->data_us = tcp->now_us;
    queue->window_us = tcp->now_us;
    queue->acked_us = tcp->now_us;
    queue->rules = (struct tcp_pdu_rules){.data_max = NVME_TCP_H2C_MAX};
    queue->hpda = 0;
    queue->is_followed = false;
    queue->fills_digests = false;
    queue->begun = FOLLOW_BEGUN_NOTHING;
    queue->received = 0;
    queue->read = 0;
    queue->credit_due = 0;
    queue->in_use = 0;
    queue->responding = 0;
    queue->slots_used = 0;
    queue->digest_errors = 0;
    queue->requests = NULL;
    queue->fetching.first = NULL;
    queue->waiting.first = NULL;
    queue->stage_head = 0;
    queue->stage_tail = 0;
    queue->span_head = 0;
    queue->span_next = 0;
    queue->span_tail = 0;
    queue->sends = 0;
    queue->awaits_peer = false;
    queue->event =
        (struct nvmf_conn_event){.trtype = TRTYPE_TCP, .laddr = peer->laddr};
    memcpy(queue->event.host, peer->host, sizeof(queue->event.host));
    tcp_queue_reader_init(queue);
}

uint16_t nvme_tcp_asked(struct nvme_tcp *tcp, uint32_t id,
                        const struct nvme_tcp_peer *peer)
{
    const struct nvme_tcp_socket *socket = &tcp->config.socket;
    struct nvme_tcp_queue *queue = NULL;

    if (tcp->is_on) {
        queue = tcp_room_take(tcp);
    }
    if (queue == NULL) {
        tcp->counters[NVME_TCP_REFUSED]++;
        socket->reject(socket->ctx, id);
        return NVME_TCP_NONE;
    }
    queue_init(queue, id, peer);
    socket->accept(socket->ctx, id, queue->ring);
    queue_enter(queue, TCP_QUEUE_OPENING);
    tcp->queues_used++;
    return (uint16_t)(queue - tcp->queues);
}

void tcp_queue_open(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;

    queue_enter(queue, TCP_QUEUE_OPEN);
    queue->qpair_state = TCP_QPAIR_HELD;
    queue->event.qpair = queue->number;
    tcp->by_qpair[queue->number] = (uint16_t)(queue - tcp->queues);
    tcp->qpairs_used++;
    nvmf_qpair_set_label(tcp->config.target, queue->number, queue->id);
    nvmf_qpair_open(tcp->config.target, queue->number, tcp->now_us);
    nvmf_qpair_confirm(tcp->config.target, queue->number);
    tcp_queue_needs_step(queue); /* its first bytes may have come */
}

void tcp_queue_refuse(struct nvme_tcp_queue *queue)
{
    queue->tcp->counters[NVME_TCP_REFUSED]++;
    tcp_queue_abort(queue);
}

/* Those who wait for a number come first. */
static void queue_established(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;

    tcp->counters[NVME_TCP_CONNECTIONS]++;
    tcp_room_serve(tcp);
    if (tcp_room_make(queue) && tcp_room_reserve(queue)) {
        tcp_queue_open(queue);
    } else if (!queue->awaits_number) {
        tcp_queue_refuse(queue);
    }
}

/* ---- What the socket reports. */

void nvme_tcp_established(struct nvme_tcp *tcp, uint16_t conn)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    if (queue->state == TCP_QUEUE_OPENING) {
        queue_established(queue);
    }
    queue_step(queue);
}

void nvme_tcp_received(struct nvme_tcp *tcp, uint16_t conn, uint32_t len_bytes)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    queue->received += len_bytes;
    queue->bytes_us = tcp->now_us;
    queue->begun = FOLLOW_BEGUN_NOTHING;
    queue_step(queue);
}

void nvme_tcp_sent(struct nvme_tcp *tcp, uint16_t conn, bool is_ok)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    queue->acked_us = tcp->now_us;
    tcp_queue_sent(queue, is_ok && queue->state < TCP_QUEUE_ABORTING);
    tcp_queue_needs_step(queue); /* once for all completions of this turn */
}

/* This says nothing about what NVMe/TCP has sent, so the time of the latest
 * acknowledgement, acked_us, stays. */
void nvme_tcp_may_send(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp_queue_needs_step(&tcp->queues[conn]);
}

void nvme_tcp_finished(struct nvme_tcp *tcp, uint16_t conn)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    if (queue->state == TCP_QUEUE_OPEN || queue->state == TCP_QUEUE_ENDING) {
        tcp_queue_drop_unsent(queue); /* a stock host reads nothing more */
        tcp_queue_close(queue);
    } else if (queue->state == TCP_QUEUE_OPENING) {
        tcp_queue_abort(queue);
    }
    queue_step(queue);
}

void nvme_tcp_closed(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->queues[conn].has_close = false;
    queue_step(&tcp->queues[conn]);
}

void nvme_tcp_aborted(struct nvme_tcp *tcp, uint16_t conn)
{
    tcp->queues[conn].has_abort = false;
    queue_step(&tcp->queues[conn]);
}

void nvme_tcp_ended(struct nvme_tcp *tcp, uint16_t conn)
{
    struct nvme_tcp_queue *queue = &tcp->queues[conn];

    tcp_queue_drop_unsent(queue);
    queue->fetching.first = NULL;
    queue_enter(queue, TCP_QUEUE_ENDED);
    queue_step(queue);
}

/* ---- Time. */

enum {
    WATCH_US = 1000000,
    WINDOW_US = 60000000, /* for all data of the oldest R2T */
};

/*
 * Whether the drive has waited too long for the peer.  Each kind of wait has
 * its own time, so that a peer cannot hold buffers for ever by sending commands
 * only, nor by sending a byte of their data, or the data of later commands, now
 * and then.  While the drive does not read, it waits for itself.
 */
static bool is_silent(struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp_reader *reader = &queue->reader;
    uint64_t now_us = queue->tcp->now_us;
    uint64_t since_us;

    if (reader->state == TCP_READ_WAIT ||
        (reader->state == TCP_READ_HEADER && reader->have == 0 &&
         queue->begun == FOLLOW_BEGUN_NOTHING)) {
        queue->bytes_us = now_us;
    }
    if (reader->state == TCP_READ_WAIT || queue->fetching.first == NULL) {
        queue->data_us = now_us;
        queue->window_us = now_us;
    }
    if (queue->sends == 0 && !queue->awaits_peer) {
        queue->acked_us = now_us;
    }
    since_us = MIN(queue->bytes_us, MIN(queue->data_us, queue->acked_us));
    return now_us - since_us >= NVMF_PATIENCE_S * UINT64_C(1000000) ||
           now_us - queue->window_us >= WINDOW_US;
}

static void queue_watch(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;

    if (queue->state >= TCP_QUEUE_ENDING && queue->state < TCP_QUEUE_ABORTING &&
        tcp->now_us - queue->ending_us >= END_US) {
        tcp_queue_abort(queue);
    } else if (queue->awaits_number &&
               tcp->now_us - queue->since_us >= END_US) {
        tcp_queue_refuse(queue);
    } else if (queue->state == TCP_QUEUE_OPEN) {
        if (queue->reader.state == TCP_READ_WAIT) {
            tcp_queue_needs_step(queue); /* others may have given requests */
        }
        if (is_silent(queue)) {
            tcp->counters[NVME_TCP_SILENT]++;
            tcp_queue_abort(queue);
        }
    }
}

uint64_t nvme_tcp_watch(struct nvme_tcp *tcp)
{
    if (tcp->queues_used == 0) {
        tcp->watch_us = 0;
        return UINT64_MAX;
    }
    if (tcp->watch_us == 0) {
        tcp->watch_us = tcp->now_us + WATCH_US;
    } else if (tcp->now_us >= tcp->watch_us) {
        tcp->watch_us = tcp->now_us + WATCH_US;
        for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
            queue_watch(&tcp->queues[i]);
        }
    }
    return tcp->watch_us;
}

/* ---- The transport as a whole. */

size_t nvme_tcp_bytes(void)
{
    return sizeof(struct nvme_tcp);
}

void nvme_tcp_init(struct nvme_tcp *tcp, const struct nvme_tcp_config *config)
{
    *tcp = (struct nvme_tcp){
        .config = *config,
        .bytes_left = NVME_TCP_TURN_BYTES,
        .transport =
            {
                .ctx = tcp,
                .trtype = TRTYPE_TCP,
                .sgls = SGLS_SUPPORTED,
                .in_capsule_len = NVMF_IN_CAPSULE_LEN,
                .admin_in_capsule_len = NVME_TCP_CAPSULE_MAX,
                .max_qpairs = NVME_TCP_OPEN_MAX,
                .admits = config->admits != NULL ? admits_host : NULL,
                .channel = config->channel != NULL ? channel_of : NULL,
                .fetch = tcp_request_fetch,
                .send = tcp_request_send,
                .respond = tcp_request_respond,
                .disconnect = disconnect_queue,
                .drained = queue_drained,
            },
    };
    tcp->behind_tls = tcp->transport;
    tcp->behind_tls.within = &tcp->transport;
    tcp->behind_tls.max_qpairs = NVME_TCP_TLS_MAX;
    if (tcp->config.trace == NULL) {
        tcp->config.trace = &trace_off;
    }
    for (size_t i = 0; i < NVME_TCP_QUEUES; i++) {
        struct nvme_tcp_queue *queue = &tcp->queues[i];
        uint8_t *memory = config->memory + i * NVME_TCP_QUEUE_BYTES;

        queue->tcp = tcp;
        queue->ring = memory;
        queue->slots = memory + NVME_TCP_RING_LEN;
        queue->stage = queue->slots + NVME_TCP_SLOTS * NVME_TCP_SLOT_LEN;
    }
    tcp_request_init(tcp);
}

void nvme_tcp_serve(struct nvme_tcp *tcp, bool is_on)
{
    tcp->is_on = is_on;
    for (unsigned int i = 0; i < NVME_TCP_QUEUES && !is_on; i++) {
        tcp_queue_abort(&tcp->queues[i]);
    }
}
