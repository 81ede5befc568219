/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay between the RDMA transport and the target, for firmware in which they
 * run on different harts: each call becomes a message.
 *
 * The target's calls are the functions of struct nvmf_transport.  The relay
 * passes them on to those of rdma_transport_direct().  While it is not used,
 * calls are calls, and cost nothing more.
 */
#ifndef ESSD_NVMEOF_RDMA_RELAY_H
#define ESSD_NVMEOF_RDMA_RELAY_H

#include "nvmeof/target/transport.h"

struct rdma_transport;

struct rdma_relay {
    void *ctx; /* first argument of every function below */

    /* The calls of the target: see struct nvmf_transport. */
    void (*fetch)(void *ctx, struct nvmf_transfer *transfer);
    void (*send)(void *ctx, struct nvmf_transfer *transfer);
    void (*respond)(void *ctx, struct nvmf_transfer *transfer);
    void (*disconnect)(void *ctx, uint16_t qpair);
    void (*drained)(void *ctx, uint16_t qpair);

    /* The calls of the transport: nvmf_capsule() and so on.  *data is copied.
     * After done(), the transport may use the request for another capsule. */
    void (*capsule)(void *ctx, uint16_t qpair, struct nvmf_transfer *transfer,
                    const uint8_t *sqe, const struct nvmf_data *data,
                    uint64_t now_us);
    void (*fetched)(void *ctx, struct nvmf_transfer *transfer, bool is_ok);
    void (*sent)(void *ctx, struct nvmf_transfer *transfer, bool is_ok);
    void (*done)(void *ctx, struct nvmf_transfer *transfer);
};

/** Use config.relay from now on, or not.  At the start it is not used. */
void rdma_transport_use_relay(struct rdma_transport *rdma, bool is_used);

/** The functions that the target would call without a relay. */
const struct nvmf_transport *rdma_transport_direct(
    const struct rdma_transport *rdma);

/** Whether queues wait for rdma_transport_step(). */
bool rdma_transport_needs_step(const struct rdma_transport *rdma);

#endif
