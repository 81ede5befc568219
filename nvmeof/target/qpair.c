/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs: the budget, and a connection's life from CM REQ to the last
 * request.
 * Spec: NVMe over Fabrics 1.1 sections 2.2, 4.3 and 7.3.6.
 */
#include "nvmeof/target/internal.h"

/* A peer that is gone answers neither responses nor a request to disconnect:
 * what it had comes back to the others after this, not when all retries end. */
enum { CLOSE_TIMEOUT_MS = 5000 };

static const uint8_t qpair_next[QPAIR_STATES] = {
    [QPAIR_FREE] = BIT(QPAIR_RESERVED),
    [QPAIR_RESERVED] = BIT(QPAIR_CONNECTING) | BIT(QPAIR_DRAINING),
    [QPAIR_CONNECTING] =
        BIT(QPAIR_LIVE) | BIT(QPAIR_CLOSING) | BIT(QPAIR_DRAINING),
    [QPAIR_LIVE] = BIT(QPAIR_CLOSING) | BIT(QPAIR_DRAINING),
    [QPAIR_CLOSING] = BIT(QPAIR_DRAINING),
    [QPAIR_DRAINING] = BIT(QPAIR_FREE),
};

/* The only writer of qpair->state. */
static void qpair_enter(struct nvmf_qpair *qpair, enum qpair_state next)
{
    ASSERT(qpair_next[qpair->state] & BIT(next));
    qpair->state = (uint8_t)next;
}

static uint16_t qpair_timer(uint16_t qpair)
{
    return (uint16_t)(WHEEL_QPAIR + qpair);
}

static void timer_start(struct nvmf_target *target, uint16_t index,
                        uint32_t timeout_ms)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair->deadline_us = target->now_us + timeout_ms * 1000ull;
    wheel_start(&target->wheel, qpair_timer(index), qpair->deadline_us);
}

static enum nvme_rdma_status check_sizes(const struct nvmf_target *target,
                                         const struct nvmf_qpair_params *params)
{
    uint16_t max_depth = params->qid == 0 ? NVMF_ADMIN_DEPTH : NVMF_MAX_DEPTH;

    if (params->qid > target->config.max_io_queues) {
        return NVME_RDMA_INVALID_QID;
    }
    if (params->hsqsize == 0 || params->hsqsize >= max_depth) {
        return NVME_RDMA_INVALID_HSQSIZE;
    }
    if (params->hrqsize == 0) {
        return NVME_RDMA_INVALID_HRQSIZE;
    }
    return NVME_RDMA_OK;
}

/*
 * The sum of all depths, and of what Set Features promised to associations,
 * stays below the total.  An admin queue counts in full even if the host wants
 * less: so there are never more of them than controllers.
 */
static enum nvme_rdma_status charge(struct nvmf_target *target,
                                    const struct nvmf_qpair_params *params,
                                    uint16_t depth, struct nvmf_ctrl *ctrl)
{
    uint32_t promised = target->queues_promised;

    if (ctrl != NULL && ctrl->promised > 0) {
        promised--; /* its own */
    } else if (params->qid != 0 && params->cntlid == 0) {
        promised = 0; /* an older host, which may well own some */
    }
    if (target->qpair_count >= NVMF_MAX_QPAIRS ||
        target->depth_used + depth + promised * NVMF_MAX_DEPTH >=
            NVMF_TOTAL_DEPTH) {
        return NVME_RDMA_NO_RESOURCES;
    }
    if (ctrl != NULL && ctrl->promised > 0) {
        ctrl_forget_promise(target, ctrl, 1);
    }
    target->depth_used += depth;
    return NVME_RDMA_OK;
}

enum nvme_rdma_status nvmf_qpair_reserve(struct nvmf_target *target,
                                         const struct nvmf_qpair_params *params,
                                         uint16_t *index)
{
    enum nvme_rdma_status status = check_sizes(target, params);
    struct nvmf_ctrl *ctrl = NULL;
    struct nvmf_qpair *qpair;
    uint16_t depth = (uint16_t)(params->hsqsize + 1);
    uint16_t cost = params->qid == 0 ? NVMF_ADMIN_DEPTH : depth;

    if (status != NVME_RDMA_OK) {
        return status;
    }
    if (params->qid != 0 && params->cntlid != 0) {
        uint8_t found = ctrl_find(target, params->cntlid);

        if (found == NO_CTRL) {
            return NVME_RDMA_INVALID_CNTLID;
        }
        ctrl = &target->ctrl[found];
    }
    status = charge(target, params, cost, ctrl);
    if (status != NVME_RDMA_OK) {
        return status;
    }
    *index = target->free_qpair[NVMF_MAX_QPAIRS - 1 - target->qpair_count];
    target->qpair_count++;
    qpair = &target->qpair[*index];
    qpair_enter(qpair, QPAIR_RESERVED);
    qpair->ctrl = NO_CTRL;
    qpair->qid = params->qid;
    qpair->portid = params->portid;
    qpair->depth = depth;
    qpair->charge = cost;
    qpair->sqsize = depth;
    qpair->sqhd = 0;
    qpair->has_sq_flow_control = true;
    qpair->in_flight = 0;
    return NVME_RDMA_OK;
}

uint16_t nvmf_qpair_depth(const struct nvmf_target *target, uint16_t index)
{
    return target->qpair[index].depth;
}

void nvmf_qpair_open(struct nvmf_target *target, uint16_t index,
                     uint64_t now_us)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    target->now_us = now_us;
    qpair_enter(qpair, QPAIR_CONNECTING);
    timer_start(target, index, target->config.connect_timeout_ms);
}

/* The timer fired: no Connect, or no end, though perhaps too early to say. */
void qpair_expired(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    if (target->now_us < qpair->deadline_us) {
        wheel_start(&target->wheel, qpair_timer(index), qpair->deadline_us);
    } else if (qpair->state == QPAIR_CLOSING) {
        target->transport.disconnect(target->transport.ctx, index);
    } else {
        qpair_disconnect(target, index);
    }
}

/* Connect succeeded. */
void qpair_connect(struct nvmf_target *target, uint16_t index, uint8_t ctrl)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair_enter(qpair, QPAIR_LIVE);
    wheel_stop(&target->wheel, qpair_timer(index));
    qpair->ctrl = ctrl;
    ctrl_attach(target, ctrl, qpair->qid, index);
}

void qpair_disconnect(struct nvmf_target *target, uint16_t index)
{
    qpair_enter(&target->qpair[index], QPAIR_CLOSING);
    timer_start(target, index, CLOSE_TIMEOUT_MS);
    target->transport.disconnect(target->transport.ctx, index);
}

static void qpair_free(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    qpair_enter(qpair, QPAIR_FREE);
    target->depth_used -= qpair->charge;
    target->qpair_count--;
    target->free_qpair[NVMF_MAX_QPAIRS - 1 - target->qpair_count] = index;
    if (qpair->ctrl != NO_CTRL) {
        ctrl_release(target, qpair->ctrl, qpair->qid);
    }
}

/* A request of this queue pair was handed back to the transport. */
void qpair_request_ended(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    ASSERT(qpair->in_flight > 0);
    qpair->in_flight--;
    if (qpair->in_flight == 0 && qpair->state == QPAIR_DRAINING) {
        qpair_free(target, index);
        target->transport.drained(target->transport.ctx, index);
    }
}

bool nvmf_qpair_closed(struct nvmf_target *target, uint16_t index)
{
    struct nvmf_qpair *qpair = &target->qpair[index];

    wheel_stop(&target->wheel, qpair_timer(index));
    qpair_enter(qpair, QPAIR_DRAINING);
    qpair->in_flight++; /* so that nothing below ends it */
    request_drop_waiting(target, index);
    if (qpair->ctrl != NO_CTRL) {
        ctrl_detach(target, qpair->ctrl, qpair->qid);
    }
    qpair->in_flight--;
    if (qpair->in_flight > 0) {
        return false;
    }
    qpair_free(target, index);
    return true;
}
