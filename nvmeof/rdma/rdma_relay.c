/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_relay.h"

#include "nvmeof/rdma/rdma_state.h"

void rdma_relay_install(struct rdma_transport *rdma)
{
    const struct rdma_relay *relay = rdma->config.relay;

    rdma->direct = rdma->transport;
    if (relay == NULL) {
        return;
    }
    rdma->transport.ctx = relay->ctx;
    rdma->transport.fetch = relay->fetch;
    rdma->transport.send = relay->send;
    rdma->transport.respond = relay->respond;
    rdma->transport.disconnect = relay->disconnect;
    rdma->transport.drained = relay->drained;
}

bool rdma_relay_is_plain(const void *ctx)
{
    const struct rdma_queue *qp = ctx;

    return qp->state == RDMA_QUEUE_OPEN && qp->is_heard && qp->qid != 0;
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
