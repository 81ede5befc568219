/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's objects: see objects.h. */
#include "net/verbs/objects.h"

#define QP_STATES (VERBS_QPS_ERROR + 1u)

/* Allowed transitions; every state may also go to RESET and ERROR. */
static const uint8_t qp_next[QP_STATES] = {
    [VERBS_QPS_RESET] = BIT(VERBS_QPS_INIT),
    [VERBS_QPS_INIT] = BIT(VERBS_QPS_RTR),
    [VERBS_QPS_RTR] = BIT(VERBS_QPS_RTS),
    [VERBS_QPS_RTS] = BIT(VERBS_QPS_RTS), /* change of path */
};

bool rdma_qp_may_enter(enum verbs_qp_state from, enum verbs_qp_state to)
{
    return (unsigned int)from < QP_STATES && (unsigned int)to < QP_STATES &&
           ((qp_next[from] | BIT(VERBS_QPS_RESET) | BIT(VERBS_QPS_ERROR)) &
            BIT(to)) != 0;
}

void rdma_qp_enter(struct rdma_qp *qp, enum verbs_qp_state next)
{
    ASSERT(rdma_qp_may_enter((enum verbs_qp_state)qp->state, next));
    qp->state = (uint8_t)next;
}

const struct rdma_mr *rdma_mr_find(const struct rdma_objects *o, uint32_t key)
{
    uint32_t index = key >> 8;
    const struct rdma_mr *mr;

    if (index >= RDMA_MRS) {
        return NULL;
    }
    mr = &o->mrs[index];
    return mr->exists && mr->variant == (key & 0xff) ? mr : NULL;
}

void *rdma_mr_map(const struct rdma_objects *o, const struct rdma_dram *dram,
                  uint16_t pd, uint32_t key, unsigned int rights, uint64_t va,
                  uint64_t len)
{
    const unsigned int writes =
        VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_WRITE;
    const struct rdma_mr *mr = rdma_mr_find(o, key);
    uint64_t addr;

    if (mr == NULL || mr->pd != pd || (mr->access & rights) != rights ||
        va < mr->va || va - mr->va > mr->len_bytes ||
        len > mr->len_bytes - (va - mr->va)) {
        return NULL;
    }
    addr = mr->dram + (va - mr->va);
    return (rights & writes) != 0 ? rdma_map_write(dram, addr, len)
                                  : rdma_map(dram, addr, len);
}

bool rdma_mr_destroy(struct rdma_objects *o, uint32_t index)
{
    struct rdma_mr *mr;

    if (index >= RDMA_MRS || !o->mrs[index].exists) {
        return false;
    }
    mr = &o->mrs[index];
    o->pds[mr->pd].users--;
    *mr = (struct rdma_mr){0};
    return true;
}

static bool queues_valid(const struct rdma_objects *o)
{
    for (uint32_t i = 0; i < RDMA_CQS; i++) {
        const struct rdma_cq *cq = &o->cqs[i];

        if (cq->hart >= RDMA_EQS || cq->size_log2 > 16) {
            return false;
        }
    }
    for (uint32_t i = 0; i < RDMA_RQS; i++) {
        const struct rdma_rq *rq = &o->rqs[i];

        if (rq->pd >= RDMA_PDS || rq->size_log2 > 15) {
            return false;
        }
    }
    for (uint32_t i = 0; i < RDMA_EQS; i++) {
        if (o->eqs[i].size_log2 > 12) {
            return false;
        }
    }
    return true;
}

static bool addresses_valid(const struct rdma_objects *o)
{
    for (uint32_t i = 0; i < RDMA_LADDRS; i++) {
        if (o->laddrs[i].port >= RDMA_PORTS) {
            return false;
        }
    }
    for (uint32_t i = 0; i < RDMA_NEIGHS; i++) {
        if (o->neighs[i].port >= RDMA_PORTS) {
            return false;
        }
    }
    return true;
}

static bool qp_valid(const struct rdma_objects *o, const struct rdma_qp *qp,
                     uint32_t slot)
{
    uint32_t size = 1u << (qp->sq_size_log2 & 31);

    if (!qp->exists) {
        return true;
    }
    return qp->state < QP_STATES && qp->type < VERBS_QP_TYPES &&
           qp->sq_size_log2 <= 10 && rdma_qp_slot(qp->qpn) == slot &&
           qp->qpn <= 0xffffff && qp->pd < RDMA_PDS && o->pds[qp->pd].exists &&
           qp->send_cq < RDMA_CQS && o->cqs[qp->send_cq].exists &&
           qp->recv_cq < RDMA_CQS && o->cqs[qp->recv_cq].exists &&
           qp->rq < RDMA_RQS && o->rqs[qp->rq].exists &&
           qp->sq_pi - qp->sq_done <= size &&
           qp->sq_next - qp->sq_done <= qp->sq_pi - qp->sq_done;
}

bool rdma_objects_valid(const struct rdma_objects *o)
{
    if (!queues_valid(o) || !addresses_valid(o) || o->harts_dirty >> RDMA_EQS ||
        o->harts_urgent >> RDMA_EQS) {
        return false;
    }
    for (uint32_t i = 0; i < RDMA_MRS; i++) {
        if (o->mrs[i].pd >= RDMA_PDS) {
            return false;
        }
    }
    for (uint32_t i = 0; i < RDMA_QPS; i++) {
        if (!qp_valid(o, &o->qps[i], i)) {
            return false;
        }
    }
    return true;
}
