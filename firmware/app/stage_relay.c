/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages between transport and target: see stages.h. */
#include "firmware/app/stages_inside.h"

#include "firmware/app/drive.h"
#include "nvmeof/target/plain.h"

/* ---- Messages from the transport to the target. */

static struct stage_call *put_call(struct stages *stages,
                                   enum stage_call_kind kind,
                                   struct nvmf_transfer *transfer)
{
    struct stage_ring *ring = &stages->calls;
    struct stage_call *call;

    ASSERT(stage_ring_used(ring) < STAGE_CALLS);
    call = &stages->call[ring->put++ % STAGE_CALLS];
    call->kind = (uint8_t)kind;
    call->transfer = transfer;
    return call;
}

static void relay_capsule(void *ctx, uint16_t qpair,
                          struct nvmf_transfer *transfer, const uint8_t *sqe,
                          const struct nvmf_data *data, uint64_t now_us)
{
    struct stages *stages = ctx;
    struct stage_call *call;

    if (!stages->is_apart) {
        nvmf_capsule(stages->drive->target, qpair, transfer, sqe, data, now_us);
        return;
    }
    call = put_call(stages, CALL_CAPSULE, transfer);
    call->qpair = qpair;
    call->sqe = sqe;
    call->now_us = now_us;
    call->data = *data;
}

static void relay_fetched(void *ctx, struct nvmf_transfer *transfer, bool is_ok)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        nvmf_request_fetched(stages->drive->target, transfer, is_ok);
        return;
    }
    put_call(stages, CALL_FETCHED, transfer)->is_ok = is_ok;
}

static void relay_sent(void *ctx, struct nvmf_transfer *transfer, bool is_ok)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        nvmf_request_sent(stages->drive->target, transfer, is_ok);
        return;
    }
    put_call(stages, CALL_SENT, transfer)->is_ok = is_ok;
}

static void relay_done(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        nvmf_request_done(stages->drive->target, transfer);
        return;
    }
    (void)put_call(stages, CALL_DONE, transfer);
}

static bool call_is_plain(const struct stages *stages,
                          const struct stage_call *call)
{
    const struct nvmf_target *target = stages->drive->target;

    return call->kind == CALL_CAPSULE
               ? nvmf_capsule_is_plain(target, call->qpair, call->sqe)
               : nvmf_transfer_is_plain(target, call->transfer);
}

static void make_call(struct nvmf_target *target, const struct stage_call *call)
{
    switch ((enum stage_call_kind)call->kind) {
    case CALL_CAPSULE:
        nvmf_capsule(target, call->qpair, call->transfer, call->sqe,
                     &call->data, call->now_us);
        break;
    case CALL_FETCHED:
        nvmf_request_fetched(target, call->transfer, call->is_ok);
        break;
    case CALL_SENT:
        nvmf_request_sent(target, call->transfer, call->is_ok);
        break;
    case CALL_DONE:
        nvmf_request_done(target, call->transfer);
        break;
    }
}

void stages_take_calls(struct stages *stages)
{
    struct stage_ring *ring = &stages->calls;

    for (unsigned int n = 0; n < STAGE_BUDGET && stage_ring_has_message(ring);
         n++) {
        const struct stage_call *call =
            &stages->call[ring->taken % STAGE_CALLS];

        if (stages->is_apart && !call_is_plain(stages, call)) {
            stages_request_turn(stages);
            return;
        }
        make_call(stages->drive->target, call);
        stages->messages++;
        stage_ring_take(ring);
    }
}

/* ---- Messages from the target to the transport. */

static struct stage_answer *put_answer(struct stages *stages,
                                       enum stage_answer_kind kind)
{
    struct stage_ring *ring = &stages->answers;
    struct stage_answer *answer;

    ASSERT(stage_ring_used(ring) < STAGE_ANSWERS);
    answer = &stages->answer[ring->put++ % STAGE_ANSWERS];
    answer->kind = (uint8_t)kind;
    return answer;
}

static const struct nvmf_transport *direct_transport(
    const struct stages *stages)
{
    return rdma_transport_direct(stages->drive->rdma);
}

static void relay_fetch(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        direct_transport(stages)->fetch(direct_transport(stages)->ctx,
                                        transfer);
        return;
    }
    put_answer(stages, ANSWER_FETCH)->transfer = transfer;
}

static void relay_send(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        direct_transport(stages)->send(direct_transport(stages)->ctx, transfer);
        return;
    }
    put_answer(stages, ANSWER_SEND)->transfer = transfer;
}

static void relay_respond(void *ctx, struct nvmf_transfer *transfer)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        direct_transport(stages)->respond(direct_transport(stages)->ctx,
                                          transfer);
        return;
    }
    put_answer(stages, ANSWER_RESPOND)->transfer = transfer;
}

static void relay_disconnect(void *ctx, uint16_t qpair)
{
    struct stages *stages = ctx;

    if (!stages->is_apart) {
        direct_transport(stages)->disconnect(direct_transport(stages)->ctx,
                                             qpair);
        return;
    }
    put_answer(stages, ANSWER_DISCONNECT)->qpair = qpair;
}

/* A queue pair that is not live has no plain commands, so this is in a turn. */
static void relay_drained(void *ctx, uint16_t qpair)
{
    struct stages *stages = ctx;

    ASSERT(!stages->is_apart);
    direct_transport(stages)->drained(direct_transport(stages)->ctx, qpair);
}

static void give_answer(const struct nvmf_transport *to,
                        const struct stage_answer *answer)
{
    switch ((enum stage_answer_kind)answer->kind) {
    case ANSWER_FETCH:
        to->fetch(to->ctx, answer->transfer);
        break;
    case ANSWER_SEND:
        to->send(to->ctx, answer->transfer);
        break;
    case ANSWER_RESPOND:
        to->respond(to->ctx, answer->transfer);
        break;
    case ANSWER_DISCONNECT:
        to->disconnect(to->ctx, answer->qpair);
        break;
    }
}

void stages_take_answers(struct stages *stages)
{
    struct stage_ring *ring = &stages->answers;

    for (unsigned int n = 0; n < STAGE_BUDGET && stage_ring_has_message(ring);
         n++) {
        give_answer(direct_transport(stages),
                    &stages->answer[ring->taken % STAGE_ANSWERS]);
        stages->messages++;
        stage_ring_take(ring);
    }
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
