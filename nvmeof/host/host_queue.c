/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/host/host_queue.h"

#include <string.h>

enum wr_id_kind { WR_ID_CAPSULE, WR_ID_RESPONSE };
enum { NO_SLOT = 0xffff };

static void post_response_buffer(struct host_queue *queue, uint32_t index)
{
    struct verbs_sge sge = {
        .addr = queue->responses + (size_t)index * HOST_RESPONSE_STRIDE,
        .len_bytes = NVME_CQE_LEN,
        .lkey = verbs_local_key(queue->verbs),
    };

    if (!verbs_post_recv(queue->verbs, queue->qpn,
                         (uint64_t)WR_ID_RESPONSE << 32 | index, &sge)) {
        queue->is_failed = true;
    }
}

static void response_arrived(struct host_queue *queue,
                             const struct verbs_wc *wc)
{
    uint32_t index = (uint32_t)wc->wr_id;
    struct host_result result = {
        .with_inv = wc->with_inv,
        .inv_rkey = wc->inv_rkey,
    };
    struct host_slot *slot;
    uint16_t cid;

    nvme_cqe_parse(&result.cqe,
                   queue->responses + (size_t)index * HOST_RESPONSE_STRIDE);
    post_response_buffer(queue, index);
    cid = result.cqe.cid;
    if (wc->len_bytes != NVME_CQE_LEN || cid >= queue->depth ||
        !queue->slots[cid].is_busy || result.cqe.sqhd >= queue->depth) {
        queue->bad_responses++;
        return;
    }
    slot = &queue->slots[cid];
    queue->sqhd = result.cqe.sqhd;
    queue->outstanding--;
    slot->is_busy = false;
    slot->next_free = queue->free_slot;
    queue->free_slot = cid;
    slot->done(slot->ctx, &result);
}

static void take_completion(void *ctx, const struct verbs_wc *wc)
{
    struct host_queue *queue = ctx;

    if (wc->status != VERBS_WC_SUCCESS) {
        queue->is_failed = true;
        return;
    }
    if (wc->opcode == VERBS_WC_RECV) {
        response_arrived(queue, wc);
    }
}

static void take_event(void *ctx, const struct verbs_event *event)
{
    struct host_queue *queue = ctx;

    if (event->type == VERBS_EVENT_QP_FATAL) {
        queue->is_failed = true;
    }
}

static const struct verbs_qp_ops queue_ops = {take_completion, take_event,
                                              NULL};

bool host_queue_init(struct host_queue *queue, struct verbs *verbs,
                     uint16_t qid, uint16_t depth, void *dram)
{
    struct verbs_qp_config config = {
        .type = VERBS_QP_RC,
        .sq_depth = 2u * depth,
        .rq_depth = 2u * depth,
        .ops = &queue_ops,
        .ctx = queue,
    };

    ASSERT(depth >= 2 && depth <= NVMF_MAX_DEPTH);
    *queue = (struct host_queue){
        .verbs = verbs,
        .qid = qid,
        .depth = depth,
        .capsules = dram,
        .free_slot = NO_SLOT,
    };
    queue->responses = queue->capsules + NVMF_MAX_DEPTH * NVMF_IO_CAPSULE_LEN;
    for (uint16_t i = depth; i-- > 0;) {
        queue->slots[i].next_free = queue->free_slot;
        queue->free_slot = i;
    }
    return verbs_create_qp(verbs, &config, &queue->qpn);
}

void host_queue_post_responses(struct host_queue *queue)
{
    for (uint32_t i = 0; i < 2u * queue->depth; i++) {
        post_response_buffer(queue, i);
    }
}

/* One entry of an SQ stays empty: the SQ is full when tail + 1 == head. */
static bool is_full(const struct host_queue *queue)
{
    return (queue->sq_tail + 1) % queue->depth == queue->sqhd ||
           queue->free_slot == NO_SLOT;
}

bool host_queue_submit(struct host_queue *queue,
                       const struct host_command *command)
{
    struct verbs_send_wr wr = {
        .opcode = VERBS_WR_SEND,
        /* One of depth / 2 commands is signaled: its completion frees the send
         * ring's slots up to its own. */
        .signaled = queue->commands % (queue->depth / 2u) == 0,
        .num_sge = 1,
    };
    uint16_t cid = queue->free_slot;
    struct nvme_sqe sqe = command->sqe;
    uint8_t *capsule;

    if (queue->is_failed || is_full(queue) ||
        verbs_send_room(queue->verbs, queue->qpn) == 0) {
        return false;
    }
    capsule = queue->capsules + (size_t)cid * NVMF_IO_CAPSULE_LEN;
    sqe.cid = cid;
    sqe.psdt = SQE_PSDT_SGL;
    nvme_sqe_emit(capsule, &sqe);
    sgl_emit(capsule + SQE_SGL1, &command->sgl);
    wr.sge[0] = (struct verbs_sge){capsule, NVME_SQE_LEN,
                                   verbs_local_key(queue->verbs)};
    if (command->in_capsule != NULL) {
        memcpy(capsule + NVME_SQE_LEN + command->sgl.address,
               command->in_capsule, command->sgl.len_bytes);
        wr.sge[0].len_bytes +=
            (uint32_t)command->sgl.address + command->sgl.len_bytes;
    } else {
        wr.inline_data = true;
    }
    if (!verbs_post_send(queue->verbs, queue->qpn, &wr)) {
        return false;
    }
    queue->commands++;
    queue->free_slot = queue->slots[cid].next_free;
    queue->slots[cid] = (struct host_slot){
        .done = command->done,
        .ctx = command->ctx,
        .is_busy = true,
    };
    queue->sq_tail = (uint16_t)((queue->sq_tail + 1) % queue->depth);
    queue->outstanding++;
    return true;
}

void host_queue_close(struct host_queue *queue)
{
    static const struct host_result lost = {.is_lost = true};

    if (queue->qpn != 0) {
        verbs_destroy_qp(queue->verbs, queue->qpn);
        queue->qpn = 0;
    }
    queue->is_failed = true;
    for (uint16_t i = 0; i < queue->depth; i++) {
        struct host_slot *slot = &queue->slots[i];

        if (slot->is_busy) {
            slot->is_busy = false;
            queue->outstanding--;
            slot->done(slot->ctx, &lost);
        }
    }
}
