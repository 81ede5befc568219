/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/verbs/done.h"

void rdma_qp_event(struct rdma_objects *o, const struct rdma_dram *dram,
                   const struct rdma_qp *qp, enum rdma_event_type type,
                   uint32_t info)
{
    rdma_eq_write(o, dram, o->cqs[qp->send_cq].hart, type, qp->qpn, info);
}

void rdma_qp_check_drained(struct rdma_objects *o, const struct rdma_dram *dram,
                           struct rdma_qp *qp)
{
    if (qp->drain_wanted && (int32_t)(qp->sq_done - qp->drain_at) >= 0) {
        qp->drain_wanted = false;
        rdma_qp_event(o, dram, qp, RDMA_EVENT_QP_DRAINED, 0);
    }
}

void rdma_rq_advance(struct rdma_objects *o, const struct rdma_dram *dram,
                     const struct rdma_qp *qp)
{
    struct rdma_rq *rq = &o->rqs[qp->rq];

    rq->ci++;
    if (rq->low == 0) {
        return;
    }
    if (rdma_rq_waiting(rq, dram) >= rq->low) {
        rq->low_raised = false;
    } else if (!rq->low_raised) {
        rq->low_raised = true;
        rdma_eq_write(o, dram, o->cqs[qp->recv_cq].hart, RDMA_EVENT_RQ_LOW,
                      qp->rq, 0);
    }
}

void rdma_settle(struct rdma_objects *o, enum rdma_engine_id id,
                 void (*fail)(void *engine, uint32_t slot), void *engine)
{
    uint64_t *lost = &o->cqs_lost[id];

    /* A flush may overflow further CQs, or the same one again: a queue pair
     * fails only once. */
    while (*lost != 0) {
        uint64_t cqs = *lost;

        *lost = 0;
        for (uint32_t slot = 0; slot < RDMA_QPS; slot++) {
            if (o->qps[slot].exists && rdma_qp_has_lost(&o->qps[slot], cqs)) {
                fail(engine, slot);
            }
        }
    }
}
