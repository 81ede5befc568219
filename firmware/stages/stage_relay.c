/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages between transport and target: see stages.h.  The transport uses
 * the relay while the stages are apart.
 */
#include "firmware/stages/stages_inside.h"

#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/plain.h"

_Static_assert((int)RDMA_REQUESTS <= (int)STAGE_MESSAGES,
               "a ring has room for a message of each request");
_Static_assert((int)NVMF_MAX_REQUESTS + (int)NVMF_MAX_QPAIRS <=
                   (int)STAGE_MESSAGES,
               "the orders have room for one of each running command, and for "
               "a disconnect of each queue pair");

/* ---- Messages from the transport to the target. */

static void relay_capsule(void *ctx, uint16_t qpair,
                          struct nvmf_transfer *transfer, const uint8_t *sqe,
                          const struct nvmf_data *data, uint64_t now_us)
{
    struct stages *stages = ctx;
    struct stage_ring *ring = &stages->capsules;

    stages->capsule[ring->put++ % STAGE_MESSAGES] = (struct stage_capsule){
        .transfer = transfer,
        .sqe = sqe,
        .now_us = now_us,
        .data = *data,
        .qpair = qpair,
    };
}

static void put_moved(struct stages *stages, struct nvmf_transfer *transfer,
                      bool is_fetched, bool is_ok)
{
    struct stage_ring *ring = &stages->moved;

    stages->moves_ended[ring->put++ % STAGE_MESSAGES] =
        (struct stage_moved){transfer, is_fetched, is_ok};
}

static void relay_fetched(void *ctx, struct nvmf_transfer *transfer, bool is_ok)
{
    put_moved(ctx, transfer, true, is_ok);
}

static void relay_sent(void *ctx, struct nvmf_transfer *transfer, bool is_ok)
{
    put_moved(ctx, transfer, false, is_ok);
}

static void relay_done(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    stages->ended[stages->done.put++ % STAGE_MESSAGES] = transfer;
}

/* The end of a request is shown before its next capsule. */
void stages_show_calls(struct stages *stages)
{
    stage_ring_show(&stages->done, STAGE_MESSAGES);
    stage_ring_show(&stages->moved, STAGE_MESSAGES);
    stage_ring_show(&stages->capsules, STAGE_MESSAGES);
}

bool stages_have_calls(const struct stages *stages)
{
    return (stage_ring_count(&stages->done) | stage_ring_count(&stages->moved) |
            stage_ring_count(&stages->capsules)) != 0;
}

/* A message that is not plain stays for a turn of the main loop.
 * @return whether to stop */
static inline bool must_wait(struct stages *stages, bool is_plain)
{
    if (__builtin_expect(!is_plain, 0) && stages->is_apart) {
        stages_request_turn(stages);
        return true;
    }
    return false;
}

static bool take_done(struct stages *stages)
{
    struct nvmf_target *target = stages->parts.target;
    struct stage_ring *ring = &stages->done;
    uint32_t i = ring->taken, end = i + stage_ring_count(ring);

    for (; i != end; i++) {
        struct nvmf_transfer *transfer = stages->ended[i % STAGE_MESSAGES];

        if (must_wait(stages, nvmf_transfer_is_plain(target, transfer))) {
            break;
        }
        nvmf_request_done(target, transfer);
    }
    stages->lines[STAGE_TARGET] += stage_ring_take(ring, i, sizeof(void *));
    return i == end;
}

static void take_moved(struct stages *stages)
{
    struct nvmf_target *target = stages->parts.target;
    struct stage_ring *ring = &stages->moved;
    uint32_t i = ring->taken;
    uint32_t end = stage_ring_end(ring, STAGE_BUDGET);

    for (; i != end; i++) {
        const struct stage_moved *moved =
            &stages->moves_ended[i % STAGE_MESSAGES];

        if (must_wait(stages,
                      nvmf_transfer_is_plain(target, moved->transfer))) {
            break;
        }
        if (moved->is_fetched) {
            nvmf_request_fetched(target, moved->transfer, moved->is_ok);
        } else {
            nvmf_request_sent(target, moved->transfer, moved->is_ok);
        }
    }
    stages->lines[STAGE_TARGET] +=
        stage_ring_take(ring, i, sizeof(stages->moves_ended[0]));
}

static void take_capsules(struct stages *stages, uint32_t count)
{
    struct nvmf_target *target = stages->parts.target;
    struct stage_ring *ring = &stages->capsules;
    uint32_t i = ring->taken, end = i + MIN(count, (uint32_t)STAGE_BUDGET);

    for (; i != end; i++) {
        const struct stage_capsule *capsule =
            &stages->capsule[i % STAGE_MESSAGES];

        if (must_wait(stages, nvmf_capsule_is_plain(target, capsule->qpair,
                                                    capsule->sqe))) {
            break;
        }
        nvmf_capsule(target, capsule->qpair, capsule->transfer, capsule->sqe,
                     &capsule->data, capsule->now_us);
    }
    stages->lines[STAGE_TARGET] +=
        stage_ring_take(ring, i, sizeof(stages->capsule[0]));
}

/* A capsule may use a request whose end was shown before it: so the capsules
 * are counted before the ends are taken, all of them. */
void stages_take_calls(struct stages *stages)
{
    uint32_t capsules = stage_ring_count(&stages->capsules);

    if (take_done(stages)) {
        take_moved(stages);
        take_capsules(stages, capsules);
    }
}

/* ---- Messages from the target to the transport. */

static void relay_respond(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    stages->response[stages->responses.put++ % STAGE_MESSAGES] = transfer;
}

static void put_order(struct stages *stages, struct stage_order order)
{
    stages->order[stages->orders.put++ % STAGE_MESSAGES] = order;
}

static void relay_fetch(void *ctx, struct nvmf_transfer *transfer)
{
    put_order(ctx, (struct stage_order){transfer, ORDER_FETCH, 0});
}

static void relay_send(void *ctx, struct nvmf_transfer *transfer)
{
    put_order(ctx, (struct stage_order){transfer, ORDER_SEND, 0});
}

static void relay_disconnect(void *ctx, uint16_t qpair)
{
    put_order(ctx, (struct stage_order){NULL, ORDER_DISCONNECT, qpair});
}

/* A queue pair that is not live has no plain commands, so this is in a turn. */
static void relay_drained(void *ctx, uint16_t qpair)
{
    (void)ctx;
    (void)qpair;
    ASSERT(false);
}

void stages_show_answers(struct stages *stages)
{
    stage_ring_show(&stages->responses, STAGE_MESSAGES);
    stage_ring_show(&stages->orders, STAGE_MESSAGES);
}

bool stages_have_answers(const struct stages *stages)
{
    return (stage_ring_count(&stages->responses) |
            stage_ring_count(&stages->orders)) != 0;
}

static void give_order(const struct nvmf_transport *to,
                       const struct stage_order *order)
{
    switch ((enum stage_order_kind)order->kind) {
    case ORDER_FETCH:
        to->fetch(to->ctx, order->transfer);
        break;
    case ORDER_SEND:
        to->send(to->ctx, order->transfer);
        break;
    case ORDER_DISCONNECT:
        to->disconnect(to->ctx, order->qpair);
        break;
    }
}

static void take_responses(struct stages *stages,
                           const struct nvmf_transport *to)
{
    struct stage_ring *ring = &stages->responses;
    uint32_t i = ring->taken;
    uint32_t end = stage_ring_end(ring, STAGE_BUDGET);

    for (; i != end; i++) {
        to->respond(to->ctx, stages->response[i % STAGE_MESSAGES]);
    }
    stages->lines[STAGE_TRANSPORT] +=
        stage_ring_take(ring, end, sizeof(void *));
}

static void take_orders(struct stages *stages, const struct nvmf_transport *to)
{
    struct stage_ring *ring = &stages->orders;
    uint32_t i = ring->taken;
    uint32_t end = stage_ring_end(ring, STAGE_BUDGET);

    for (; i != end; i++) {
        give_order(to, &stages->order[i % STAGE_MESSAGES]);
    }
    stages->lines[STAGE_TRANSPORT] +=
        stage_ring_take(ring, end, sizeof(stages->order[0]));
}

void stages_take_answers(struct stages *stages)
{
    const struct nvmf_transport *to = rdma_transport_direct(stages->parts.rdma);

    take_responses(stages, to);
    take_orders(stages, to);
}

struct rdma_relay stages_relay(struct stages *stages)
{
    return (struct rdma_relay){
        .ctx = stages,
        .fetch = relay_fetch,
        .send = relay_send,
        .respond = relay_respond,
        .disconnect = relay_disconnect,
        .drained = relay_drained,
        .capsule = relay_capsule,
        .fetched = relay_fetched,
        .sent = relay_sent,
        .done = relay_done,
    };
}
