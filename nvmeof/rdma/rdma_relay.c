/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_relay.h"

#include "nvmeof/rdma/rdma_state.h"

void rdma_transport_use_relay(struct rdma_transport *rdma, bool is_used)
{
    const struct rdma_relay *relay = rdma->config.relay;
    struct nvmf_transport *to = &rdma->transport;

    rdma->relay = is_used ? relay : NULL;
    to->ctx = is_used ? relay->ctx : rdma;
    to->fetch = is_used ? relay->fetch : rdma->direct.fetch;
    to->send = is_used ? relay->send : rdma->direct.send;
    to->respond = is_used ? relay->respond : rdma->direct.respond;
    to->disconnect = is_used ? relay->disconnect : rdma->direct.disconnect;
    to->drained = is_used ? relay->drained : rdma->direct.drained;
}

/* Without branches: this is asked for each completion. */
bool rdma_relay_is_plain(const void *ctx)
{
    const struct rdma_queue *qp = ctx;

    return (qp->state == RDMA_QUEUE_OPEN) & qp->is_heard & (qp->qid != 0);
}

const struct nvmf_transport *rdma_transport_direct(
    const struct rdma_transport *rdma)
{
    return &rdma->direct;
}

bool rdma_transport_needs_step(const struct rdma_transport *rdma)
{
    return rdma->step_first != NULL;
}
