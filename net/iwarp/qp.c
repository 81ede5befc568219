/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, state changes, completions, and failure.
 * Spec: RFC 5040 sections 5.1 (connections), 5.5 (order of completions), 6.2
 * (errors).
 */
#include "net/iwarp/internal.h"

#include <string.h>

#include "net/verbs/done.h"

enum { SHORTEST_FPDU = 128 }; /* of a peer that takes almost nothing */

/* Where each stage may go. */
static const uint8_t stage_next[IWARP_STAGES] = {
    [IWARP_NO_STREAM] = BIT(IWARP_OPEN),
    [IWARP_OPEN] =
        BIT(IWARP_TERMINATING) | BIT(IWARP_LEAVING) | BIT(IWARP_NO_STREAM),
    [IWARP_TERMINATING] = BIT(IWARP_LEAVING) | BIT(IWARP_NO_STREAM),
    [IWARP_LEAVING] = BIT(IWARP_NO_STREAM),
};

void iwarp_stage_enter(struct iwarp *iwarp, uint32_t slot,
                       enum iwarp_stage next)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

    ASSERT(stage_next[qp->stage] & BIT(next));
    if (qp->stage == IWARP_TERMINATING) {
        iwarp->state->terminating--;
    }
    if (next == IWARP_TERMINATING) {
        iwarp->state->terminating++;
    }
    qp->stage = (uint8_t)next;
}

void iwarp_qp_event(struct iwarp *iwarp, uint32_t slot,
                    enum rdma_event_type type, uint32_t info)
{
    rdma_qp_event(iwarp->objects, &iwarp->dram, iwarp_rdma_qp(iwarp, slot),
                  type, info);
}

static void write_completion(struct iwarp *iwarp, uint16_t cq,
                             struct rdma_completion *completion)
{
    completion->timestamp_ns = iwarp->now_ns;
    if (rdma_cq_complete(iwarp->objects, &iwarp->dram, cq, completion)) {
        iwarp_count(iwarp, IWARP_CQ_OVERFLOWS);
    }
}

static void check_drained(struct iwarp *iwarp, uint32_t slot)
{
    rdma_qp_check_drained(iwarp->objects, &iwarp->dram,
                          iwarp_rdma_qp(iwarp, slot));
}

static void complete_send(struct iwarp *iwarp, uint32_t slot,
                          const struct iwarp_sent *sent,
                          enum verbs_wc_status status)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);

    if (sent->signaled || status != VERBS_WC_SUCCESS) {
        write_completion(iwarp, rqp->send_cq,
                         &(struct rdma_completion){
                             .wr_id = sent->wr_id,
                             .qpn = rqp->qpn,
                             .wqe = (uint16_t)rqp->sq_done,
                             .opcode = sent->opcode,
                             .status = (uint8_t)status,
                         });
    }
    rqp->sq_done++;
    check_drained(iwarp, slot);
}

void iwarp_complete_recv(struct iwarp *iwarp, uint32_t slot,
                         struct rdma_completion *completion)
{
    const struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);

    completion->qpn = rqp->qpn;
    completion->opcode = RDMA_WC_RECV;
    write_completion(iwarp, rqp->recv_cq, completion);
}

/* The end of the bytes of messages that the peer has acknowledged.  A Terminate
 * can take the place of the rest of a message: what is acknowledged from its
 * first byte on belongs to no message. */
static uint64_t acked_end(const struct iwarp_qp *qp)
{
    return qp->terminate_len != 0 ? MIN(qp->tx.acked, qp->terminate_first)
                                  : qp->tx.acked;
}

void iwarp_complete_ready(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_sender *tx = &qp->tx;
    uint64_t acked = acked_end(qp);

    while (tx->head != tx->tail) {
        const struct iwarp_sent *sent = iwarp_sent_at(qp, tx->head);

        if (sent->status != VERBS_WC_SUCCESS) {
            iwarp_terminate(
                iwarp, slot,
                &(struct iwarp_fault){(enum verbs_wc_status)sent->status,
                                      RDMAP_LOCAL_CATASTROPHIC},
                NULL);
            return;
        }
        if (acked < sent->end ||
            (sent->opcode == VERBS_WR_READ && !sent->is_answered)) {
            return;
        }
        complete_send(iwarp, slot, sent, VERBS_WC_SUCCESS);
        tx->head++;
    }
}

void iwarp_rq_advance(struct iwarp *iwarp, uint32_t slot)
{
    rdma_rq_advance(iwarp->objects, &iwarp->dram, iwarp_rdma_qp(iwarp, slot));
}

/* ---- Failure. */

/* Complete all posted send requests, in order: the one that has failed with its
 * status, the others as flushed. */
static void flush_sends(struct iwarp *iwarp, uint32_t slot)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct rdma_wr wr;

    if (qp->tx.head != qp->tx.tail) {
        const struct iwarp_sent *sent = iwarp_sent_at(qp, qp->tx.head);

        if (sent->status != VERBS_WC_SUCCESS) {
            complete_send(iwarp, slot, sent,
                          (enum verbs_wc_status)sent->status);
        }
    }
    qp->tx.head = qp->tx.tail;
    while (rqp->sq_done != rqp->sq_pi) {
        if (!rdma_sq_read(rqp, &iwarp->dram, rqp->sq_done, &wr)) {
            rqp->sq_done = rqp->sq_pi;
            break;
        }
        complete_send(
            iwarp, slot,
            &(struct iwarp_sent){.wr_id = wr.wr_id, .opcode = wr.opcode},
            VERBS_WC_FLUSHED);
    }
    rqp->sq_next = rqp->sq_pi;
    check_drained(iwarp, slot);
}

static void flush_receives(struct iwarp *iwarp, uint32_t slot)
{
    const struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    struct rdma_rq *rq = &iwarp->objects->rqs[rqp->rq];
    struct iwarp_receiver *rx = &iwarp_qp(iwarp, slot)->rx;
    struct rdma_recv recv;

    if (rx->in_send) {
        rx->in_send = false;
        iwarp_complete_recv(iwarp, slot,
                            &(struct rdma_completion){
                                .wr_id = rx->recv_wr_id,
                                .status = VERBS_WC_FLUSHED,
                            });
    }
    while (rq->users == 1 && rdma_rq_peek(rq, &iwarp->dram, &recv)) {
        rq->ci++;
        iwarp_complete_recv(iwarp, slot,
                            &(struct rdma_completion){
                                .wr_id = recv.wr_id,
                                .status = VERBS_WC_FLUSHED,
                            });
    }
}

/* The only place that moves a queue pair to another state. */
static void enter_state(struct iwarp *iwarp, uint32_t slot,
                        enum verbs_qp_state next, enum verbs_wc_status reason)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);

    iwarp_trace(iwarp, slot, TRACE_QP_STATE, rqp->state, (uint32_t)next,
                (uint32_t)reason);
    rdma_qp_enter(rqp, next);
}

/* The stream is not used any more: its memory is firmware's again. */
static void let_go(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

    if (qp->stage == IWARP_OPEN || qp->stage == IWARP_TERMINATING) {
        qp->is_reset = qp->tx.acked != qp->tx.announced;
        iwarp_stage_enter(iwarp, slot, IWARP_LEAVING);
        iwarp_schedule(iwarp, slot);
    }
}

static void enter_error(struct iwarp *iwarp, uint32_t slot,
                        enum verbs_wc_status reason)
{
    enter_state(iwarp, slot, VERBS_QPS_ERROR, reason);
    flush_sends(iwarp, slot);
    flush_receives(iwarp, slot);
    let_go(iwarp, slot);
}

void iwarp_qp_fail(struct iwarp *iwarp, uint32_t slot,
                   enum verbs_wc_status status)
{
    uint8_t state = iwarp_rdma_qp(iwarp, slot)->state;

    if (state == VERBS_QPS_ERROR || state == VERBS_QPS_RESET) {
        return;
    }
    iwarp_qp_event(iwarp, slot, RDMA_EVENT_QP_FATAL, (uint32_t)status);
    enter_error(iwarp, slot, status);
}

void iwarp_leave(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    const struct rdma_streams *streams = iwarp->streams;

    if (qp->stage == IWARP_NO_STREAM) {
        return;
    }
    if (qp->is_reset) {
        streams->abort(streams->ctx, qp->attr.stream);
    } else if (!qp->terminate_sent) {
        streams->close(streams->ctx, qp->attr.stream);
    }
    streams->detach(streams->ctx, qp->attr.stream);
    iwarp_stage_enter(iwarp, slot, IWARP_NO_STREAM);
}

static void fail_of_lost(void *engine, uint32_t slot)
{
    struct iwarp *iwarp = engine;

    if (iwarp_has_qp(iwarp, slot)) {
        iwarp_qp_fail(iwarp, slot, VERBS_WC_LOCAL_OPERATION);
    }
}

void iwarp_settle(struct iwarp *iwarp)
{
    rdma_settle(iwarp->objects, RDMA_ENGINE_IWARP, fail_of_lost, iwarp);
}

/* ---- Commands. */

static void clear_qp(struct iwarp *iwarp, uint32_t slot)
{
    memset(iwarp_qp(iwarp, slot), 0, sizeof(struct iwarp_qp));
}

void iwarp_qp_create(struct iwarp *iwarp, uint32_t slot)
{
    clear_qp(iwarp, slot);
}

/* End what the stream of a queue pair is used for, now. */
static void drop_stream(struct iwarp *iwarp, uint32_t slot)
{
    let_go(iwarp, slot);
    iwarp_leave(iwarp, slot);
}

/* Discard all posted requests; the ring indices keep their values. */
static void enter_reset(struct iwarp *iwarp, uint32_t slot)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);

    drop_stream(iwarp, slot);
    clear_qp(iwarp, slot);
    rqp->sq_pi = rdma_read_word(&iwarp->dram, rqp->sq_record);
    rqp->sq_next = rqp->sq_done = rqp->sq_pi;
    rqp->drain_wanted = false;
}

static bool enter_rtr(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_attr *attr)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    const struct rdma_streams *streams = iwarp->streams;
    uint32_t ring_bytes = 0;
    uint32_t mss;

    if (streams == NULL ||
        !streams->attach(streams->ctx, attr->stream, slot, &ring_bytes)) {
        return false;
    }
    mss = streams->segment_bytes(streams->ctx, attr->stream);
    qp->attr = *attr;
    qp->keys = attr->key_seed;
    qp->max_fpdu = MIN((uint32_t)IWARP_MAX_FPDU,
                       mss < SHORTEST_FPDU ? SHORTEST_FPDU : mss & ~3u);
    qp->max_rx_fpdu = MIN((uint32_t)IWARP_MAX_FPDU, ring_bytes);
    qp->tx.send_msn = qp->tx.read_msn = 1;
    qp->rx.send_msn = qp->rx.read_msn = 1;
    iwarp_stage_enter(iwarp, slot, IWARP_OPEN);
    return true;
}

bool iwarp_qp_modify(struct iwarp *iwarp, uint32_t slot,
                     enum verbs_qp_state next, const struct iwarp_attr *attr,
                     uint64_t now_ns)
{
    enum verbs_qp_state from =
        (enum verbs_qp_state)iwarp_rdma_qp(iwarp, slot)->state;

    iwarp->now_ns = now_ns;
    if (next == VERBS_QPS_ERROR) {
        enter_error(iwarp, slot, VERBS_WC_SUCCESS);
        iwarp_leave(iwarp, slot);
        iwarp_settle(iwarp);
        return true;
    }
    if (next == VERBS_QPS_RTR && !enter_rtr(iwarp, slot, attr)) {
        return false;
    }
    enter_state(iwarp, slot, next, VERBS_WC_SUCCESS);
    if (next == VERBS_QPS_RESET) {
        enter_reset(iwarp, slot);
    } else if (next == VERBS_QPS_RTS && from == VERBS_QPS_RTR) {
        iwarp_qp(iwarp, slot)->attr.max_rd_atomic = attr->max_rd_atomic;
        iwarp_doorbell(iwarp, slot, now_ns);
    }
    return true;
}

void iwarp_qp_destroy(struct iwarp *iwarp, uint32_t slot)
{
    struct rdma_objects *o = iwarp->objects;
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);

    drop_stream(iwarp, slot);
    clear_qp(iwarp, slot);
    o->pds[rqp->pd].users--;
    o->cqs[rqp->send_cq].users--;
    o->cqs[rqp->recv_cq].users--;
    o->rqs[rqp->rq].users--;
    *rqp = (struct rdma_qp){0};
}

void iwarp_qp_drain(struct iwarp *iwarp, uint32_t slot)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    uint32_t pi = rdma_read_word(&iwarp->dram, rqp->sq_record);

    rqp->drain_at =
        pi - rqp->sq_done <= 1u << rqp->sq_size_log2 ? pi : rqp->sq_pi;
    rqp->drain_wanted = true;
    check_drained(iwarp, slot);
}

void iwarp_doorbell(struct iwarp *iwarp, uint32_t slot, uint64_t now_ns)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    uint32_t pi = rdma_read_word(&iwarp->dram, rqp->sq_record);

    iwarp->now_ns = now_ns;
    if (pi - rqp->sq_done > 1u << rqp->sq_size_log2) {
        iwarp_qp_fail(iwarp, slot, VERBS_WC_LOCAL_OPERATION);
        iwarp_settle(iwarp);
        return;
    }
    if (pi - rqp->sq_done < rqp->sq_pi - rqp->sq_done) {
        return; /* the index went backwards: ignore it */
    }
    rqp->sq_pi = pi;
    if (rqp->state == VERBS_QPS_ERROR) {
        flush_sends(iwarp, slot);
        flush_receives(iwarp, slot);
        iwarp_settle(iwarp);
    } else if (rqp->state == VERBS_QPS_RTS) {
        iwarp_schedule(iwarp, slot);
    }
}

void iwarp_acked(struct iwarp *iwarp, uint32_t slot, uint32_t len_bytes,
                 uint64_t now_ns)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_receiver *rx = &qp->rx;

    iwarp->now_ns = now_ns;
    if (qp->stage != IWARP_OPEN && qp->stage != IWARP_TERMINATING) {
        return;
    }
    ASSERT(len_bytes <= qp->tx.announced - qp->tx.acked);
    qp->tx.acked += len_bytes;
    while (rx->read_head != rx->read_next &&
           iwarp_read_at(qp, rx->read_head)->end <= acked_end(qp)) {
        rx->read_head++;
    }
    iwarp_complete_ready(iwarp, slot);
    if (qp->stage == IWARP_TERMINATING && iwarp_terminate_acked(qp)) {
        iwarp_qp_fail(iwarp, slot, (enum verbs_wc_status)qp->end_status);
    }
    iwarp_schedule(iwarp, slot);
    iwarp_settle(iwarp);
}
