/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: creation, state changes, completions, and failure.
 * Spec: IBTA Vol 1 section 10.3.1 (states), 10.8 (completions), 9.9 (errors).
 */
#include "net/roce/internal.h"

#include <string.h>

#include "net/verbs/done.h"

void roce_qp_event(struct roce *roce, uint32_t slot, enum rdma_event_type type,
                   uint32_t info)
{
    rdma_qp_event(roce->objects, &roce->dram, roce_rdma_qp(roce, slot), type,
                  info);
}

bool roce_judge_transfer(struct roce *roce, uint32_t slot, bool is_to_dram)
{
    if (!roce->faults->judge_transfer(
            roce->faults->ctx, roce_rdma_qp(roce, slot)->qpn, is_to_dram)) {
        return false;
    }
    roce_count(roce, ROCE_PARITY_ERRORS);
    roce_qp_event(roce, slot, RDMA_EVENT_PARITY_ERROR,
                  is_to_dram ? RDMA_TO_DRAM : RDMA_FROM_DRAM);
    return true;
}

static void write_completion(struct roce *roce, uint16_t cq,
                             struct rdma_completion *completion)
{
    completion->timestamp_ns = roce->now_ns;
    if (rdma_cq_complete(roce->objects, &roce->dram, cq, completion)) {
        roce_count(roce, ROCE_CQ_OVERFLOWS);
    }
}

static void check_drained(struct roce *roce, uint32_t slot)
{
    rdma_qp_check_drained(roce->objects, &roce->dram, roce_rdma_qp(roce, slot));
}

void roce_complete_send(struct roce *roce, uint32_t slot,
                        const struct roce_sent *sent,
                        enum verbs_wc_status status)
{
    struct rdma_qp *qp = roce_rdma_qp(roce, slot);

    if (sent->signaled || status != VERBS_WC_SUCCESS) {
        write_completion(roce, qp->send_cq,
                         &(struct rdma_completion){
                             .wr_id = sent->wr_id,
                             .qpn = qp->qpn,
                             .wqe = (uint16_t)qp->sq_done,
                             .opcode = sent->opcode,
                             .status = (uint8_t)status,
                         });
    }
    qp->sq_done++;
    check_drained(roce, slot);
}

void roce_complete_recv(struct roce *roce, uint32_t slot,
                        struct rdma_completion *completion)
{
    const struct rdma_qp *qp = roce_rdma_qp(roce, slot);

    completion->qpn = qp->qpn;
    completion->opcode = RDMA_WC_RECV;
    write_completion(roce, qp->recv_cq, completion);
}

void roce_rq_advance(struct roce *roce, uint32_t slot)
{
    rdma_rq_advance(roce->objects, &roce->dram, roce_rdma_qp(roce, slot));
}

/* Complete all posted send requests as flushed, in order. */
static void flush_sends(struct roce *roce, uint32_t slot)
{
    struct rdma_qp *qp = roce_rdma_qp(roce, slot);
    struct rdma_wr wr;

    while (qp->sq_done != qp->sq_pi) {
        if (!rdma_sq_read(qp, &roce->dram, qp->sq_done, &wr)) {
            qp->sq_done = qp->sq_pi;
            break;
        }
        roce_complete_send(
            roce, slot,
            &(struct roce_sent){.wr_id = wr.wr_id, .opcode = wr.opcode},
            VERBS_WC_FLUSHED);
    }
    qp->sq_next = qp->sq_pi;
    check_drained(roce, slot);
}

static void flush_receives(struct roce *roce, uint32_t slot)
{
    const struct rdma_qp *qp = roce_rdma_qp(roce, slot);
    struct rdma_rq *rq = &roce->objects->rqs[qp->rq];
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    struct rdma_recv recv;

    if (resp->message == ROCE_IN_SEND) {
        resp->message = ROCE_BETWEEN;
        roce_complete_recv(roce, slot,
                           &(struct rdma_completion){
                               .wr_id = resp->recv_wr_id,
                               .status = VERBS_WC_FLUSHED,
                           });
    }
    while (rq->users == 1 && rdma_rq_peek(rq, &roce->dram, &recv)) {
        rq->ci++;
        roce_complete_recv(roce, slot,
                           &(struct rdma_completion){
                               .wr_id = recv.wr_id,
                               .status = VERBS_WC_FLUSHED,
                           });
    }
}

/* Clear all packet state of requester and responder. */
static void forget_packets(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    roce_timer_set(roce, slot, TIMERS_NONE);
    qp->req.sent_head = qp->req.sent_tail = qp->req.sent_tx = 0;
    qp->req.tx_psn = qp->req.high_psn = qp->req.una_psn = qp->req.next_psn;
    qp->req.unacked = qp->req.since_ack_req = 0;
    qp->req.reads = qp->req.retries = qp->req.rnr_retries = 0;
    qp->req.rnr_waiting = qp->req.gap_seen = false;
    qp->resp.read_head = qp->resp.read_next = 0;
    qp->resp.read_fresh = qp->resp.read_tail = 0;
    qp->resp.read_packet = 0;
}

/* The only place that moves a queue pair to another state. */
static void enter_state(struct roce *roce, uint32_t slot,
                        enum verbs_qp_state next, enum verbs_wc_status reason)
{
    struct rdma_qp *qp = roce_rdma_qp(roce, slot);

    roce_trace(roce, TRACE_GROUP_QP, slot, TRACE_QP_STATE, qp->state,
               (uint32_t)next, (uint32_t)reason);
    rdma_qp_enter(qp, next);
}

static void enter_error(struct roce *roce, uint32_t slot,
                        enum verbs_wc_status reason)
{
    enter_state(roce, slot, VERBS_QPS_ERROR, reason);
    forget_packets(roce, slot);
    flush_sends(roce, slot);
    flush_receives(roce, slot);
}

void roce_qp_fail(struct roce *roce, uint32_t slot, enum verbs_wc_status status)
{
    if (roce_rdma_qp(roce, slot)->state == VERBS_QPS_ERROR) {
        return;
    }
    roce_qp_event(roce, slot, RDMA_EVENT_QP_FATAL, (uint32_t)status);
    enter_error(roce, slot, status);
}

void roce_send_fail(struct roce *roce, uint32_t slot,
                    enum verbs_wc_status status)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;

    if (req->sent_head != req->sent_tail) {
        roce_complete_send(roce, slot,
                           &req->sent[req->sent_head % ROCE_INFLIGHT], status);
    }
    roce_qp_fail(roce, slot, status);
}

static void fail_of_lost(void *engine, uint32_t slot)
{
    struct roce *roce = engine;

    if (roce_has_qp(roce, slot)) {
        roce_qp_fail(roce, slot, VERBS_WC_LOCAL_OPERATION);
    }
}

void roce_settle(struct roce *roce)
{
    rdma_settle(roce->objects, RDMA_ENGINE_ROCE, fail_of_lost, roce);
}

void roce_qp_create(struct roce *roce, uint32_t slot)
{
    memset(roce_qp(roce, slot), 0, sizeof(struct roce_qp));
    roce_timer_set(roce, slot, TIMERS_NONE);
    timers_set(&roce->state->pacing, (uint16_t)slot, TIMERS_NONE);
}

static void release_neigh(struct roce *roce, struct roce_path *path)
{
    if (path->has_neigh) {
        roce->objects->neighs[path->neigh].users--;
        path->has_neigh = false;
    }
}

static void take_route(struct roce *roce, struct roce_path *to,
                       const struct roce_path *from)
{
    release_neigh(roce, to);
    to->laddr = from->laddr;
    to->neigh = from->neigh;
    to->has_neigh = true;
    to->is_v1 = from->is_v1;
    to->priority = from->priority;
    to->dscp = from->dscp;
    to->rate_mbps = from->rate_mbps;
    roce->objects->neighs[to->neigh].users++;
}

static void enter_rtr(struct roce *roce, uint32_t slot,
                      const struct roce_path *path, uint32_t rq_psn)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    qp->path.qkey = path->qkey;
    qp->path.path_mtu = path->path_mtu;
    if (roce_rdma_qp(roce, slot)->type == VERBS_QP_UD) {
        return;
    }
    take_route(roce, &qp->path, path);
    qp->path.dest_qpn = path->dest_qpn;
    qp->path.access = path->access;
    qp->path.max_dest_rd_atomic = path->max_dest_rd_atomic;
    qp->path.rnr_timer = path->rnr_timer;
    qp->path.hop_limit = path->hop_limit;
    qp->path.flow_label = path->flow_label;
    qp->path.udp_sport = path->udp_sport;
    qp->path.ecn = roce->state->ecn.codepoint;
    qp->resp.epsn = rq_psn & PSN_MASK;
}

static void enter_rts(struct roce *roce, uint32_t slot,
                      const struct roce_path *path, uint32_t sq_psn)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    qp->req.next_psn = sq_psn & PSN_MASK;
    qp->req.una_psn = qp->req.tx_psn = qp->req.high_psn = qp->req.next_psn;
    if (roce_rdma_qp(roce, slot)->type == VERBS_QP_UD) {
        return;
    }
    qp->path.ack_timeout = path->ack_timeout;
    qp->path.retries = path->retries;
    qp->path.rnr_retries = path->rnr_retries;
    qp->path.max_rd_atomic = path->max_rd_atomic;
}

/* Discard all posted requests; the ring indices keep their values. */
static void enter_reset(struct roce *roce, uint32_t slot)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);

    release_neigh(roce, &roce_qp(roce, slot)->path);
    roce_qp_create(roce, slot);
    rqp->sq_pi = rdma_read_word(&roce->dram, rqp->sq_record);
    rqp->sq_next = rqp->sq_done = rqp->sq_pi;
    rqp->drain_wanted = false;
}

void roce_qp_modify(struct roce *roce, uint32_t slot, enum verbs_qp_state next,
                    const struct roce_path *path, uint32_t sq_psn,
                    uint32_t rq_psn, uint64_t now_ns)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    enum verbs_qp_state from = (enum verbs_qp_state)rqp->state;

    roce->now_ns = now_ns;
    if (next == VERBS_QPS_ERROR) {
        enter_error(roce, slot, VERBS_WC_SUCCESS);
        return;
    }
    enter_state(roce, slot, next, VERBS_WC_SUCCESS);
    if (next == VERBS_QPS_RESET) {
        enter_reset(roce, slot);
    } else if (next == VERBS_QPS_RTR) {
        enter_rtr(roce, slot, path, rq_psn);
    } else if (next == VERBS_QPS_RTS && from == VERBS_QPS_RTR) {
        enter_rts(roce, slot, path, sq_psn);
        roce_doorbell(roce, slot, now_ns);
    } else if (next == VERBS_QPS_RTS && rqp->type == VERBS_QP_RC) {
        uint16_t neigh = roce_qp(roce, slot)->path.neigh;

        take_route(roce, &roce_qp(roce, slot)->path, path);
        roce_port_left(roce, roce->objects->neighs[neigh].port);
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}

void roce_qp_destroy(struct roce *roce, uint32_t slot)
{
    struct rdma_objects *o = roce->objects;
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);

    release_neigh(roce, &roce_qp(roce, slot)->path);
    roce_qp_create(roce, slot);
    o->pds[rqp->pd].users--;
    o->cqs[rqp->send_cq].users--;
    o->cqs[rqp->recv_cq].users--;
    o->rqs[rqp->rq].users--;
    *rqp = (struct rdma_qp){0};
}

void roce_qp_drain(struct roce *roce, uint32_t slot)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    uint32_t pi = rdma_read_word(&roce->dram, rqp->sq_record);

    rqp->drain_at =
        pi - rqp->sq_done <= 1u << rqp->sq_size_log2 ? pi : rqp->sq_pi;
    rqp->drain_wanted = true;
    check_drained(roce, slot);
}

void roce_doorbell(struct roce *roce, uint32_t slot, uint64_t now_ns)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    uint32_t pi = rdma_read_word(&roce->dram, rqp->sq_record);

    roce->now_ns = now_ns;
    if (pi - rqp->sq_done > 1u << rqp->sq_size_log2) {
        roce_qp_fail(roce, slot, VERBS_WC_LOCAL_OPERATION);
        return;
    }
    if (pi - rqp->sq_done < rqp->sq_pi - rqp->sq_done) {
        return; /* the index went backwards: ignore it */
    }
    rqp->sq_pi = pi;
    if (rqp->state == VERBS_QPS_ERROR) {
        flush_sends(roce, slot);
        flush_receives(roce, slot);
        roce_settle(roce);
    } else if (rqp->state == VERBS_QPS_RTS) {
        if (rqp->type == VERBS_QP_UD) {
            roce_ud_make_way(roce, slot);
        }
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}
