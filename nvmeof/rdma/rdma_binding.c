/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA transport as the main loop sees it: its operations in the list of
 * transports (nvmeof/binding.h), and the search for silent peers.
 */
#include "nvmeof/rdma/rdma_state.h"

/* ---- Silent peers. */

/* The answer before the first of these checks is up to a second older. */
enum { WATCH_US = 1000000, SILENT_CHECKS = NVMF_PATIENCE_S - 1 };

static bool waits_for_peer(const struct rdma_queue *qp)
{
    const struct rdma_request *req = qp->requests;

    while (req != NULL && req->state != RDMA_REQUEST_FETCHING &&
           req->state != RDMA_REQUEST_SENDING &&
           req->state != RDMA_REQUEST_RESPONDING) {
        req = req->next;
    }
    return req != NULL;
}

static void check_silence(struct rdma_queue *qp)
{
    if (qp->state != RDMA_QUEUE_OPEN && qp->state != RDMA_QUEUE_ENDING) {
        return;
    }
    if (qp->answered_us != qp->watched_us || !waits_for_peer(qp)) {
        qp->watched_us = qp->answered_us;
        qp->silent_checks = 0;
    } else if (++qp->silent_checks == SILENT_CHECKS) {
        rdma_queue_fail(qp);
    }
}

/*
 * The RNIC gives up a peer that acknowledges nothing.  This is the limit for
 * all other peers, whatever they ask for: one that always answers with RNR
 * NAKs, for instance.  A check that comes late counts once, so that a pause of
 * the drive itself ends no connection.
 */
uint64_t rdma_transport_watch(struct rdma_transport *rdma)
{
    if (rdma->requests_in_use == 0) {
        rdma->watch_us = 0;
        return UINT64_MAX;
    }
    if (rdma->watch_us == 0) {
        rdma->watch_us = rdma->now_us + WATCH_US;
    } else if (rdma->now_us >= rdma->watch_us) {
        rdma->watch_us = rdma->now_us + WATCH_US;
        for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
            check_silence(&rdma->qps[i]);
        }
    }
    return rdma->watch_us;
}

/* ---- The transport as the main loop sees it. */

static void binding_tick(void *ctx, uint64_t now_us)
{
    rdma_transport_tick(ctx, now_us);
}

static bool binding_step(void *ctx)
{
    return rdma_transport_step(ctx);
}

static uint64_t binding_watch(void *ctx)
{
    return rdma_transport_watch(ctx);
}

static enum nvmf_turn binding_needs_turn(const void *ctx)
{
    const struct rdma_transport *rdma = ctx;

    if (rdma_transport_is_short(rdma)) {
        return NVMF_TURN_IS_NEEDED;
    }
    return rdma->responding != 0 ? NVMF_TURN_MAY_WAIT : NVMF_TURN_NOT_NEEDED;
}

static void binding_set_address(void *ctx, uint8_t service, uint8_t laddr,
                                uint16_t portid, uint32_t link)
{
    rdma_transport_set_address(ctx, service, laddr, portid, link);
}

static const struct nvmf_transfer *binding_request(const void *ctx,
                                                   uint32_t number)
{
    return rdma_transport_request(ctx, number);
}

static const struct nvmf_binding_ops binding_ops = {
    .tick = binding_tick,
    .step = binding_step,
    .watch = binding_watch,
    .needs_turn = binding_needs_turn,
    .set_address = binding_set_address,
    .request = binding_request,
};

struct nvmf_binding rdma_transport_binding(struct rdma_transport *rdma)
{
    return (struct nvmf_binding){
        .ops = &binding_ops,
        .ctx = rdma,
        .services = rdma->config.manager_count,
        .requests = RDMA_REQUESTS,
    };
}
