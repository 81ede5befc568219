/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What engines of every RDMA protocol do when work of a queue pair is done or
 * lost: raise events, notice that a send queue has drained, take entries of
 * receive queues, and fail the queue pairs of completion queues that have
 * overflowed.  Spec: docs/hardware/rnic.md.
 */
#ifndef ESSD_NET_VERBS_DONE_H
#define ESSD_NET_VERBS_DONE_H

#include "net/verbs/rings.h"

/** Raise an event of a queue pair. */
void rdma_qp_event(struct rdma_objects *o, const struct rdma_dram *dram,
                   const struct rdma_qp *qp, enum rdma_event_type type,
                   uint32_t info);

/** Raise QP_DRAINED if it was asked for and all requests until then are done.
 */
void rdma_qp_check_drained(struct rdma_objects *o, const struct rdma_dram *dram,
                           struct rdma_qp *qp);

/** Take one entry of the receive queue; raises RQ_LOW when few are left. */
void rdma_rq_advance(struct rdma_objects *o, const struct rdma_dram *dram,
                     const struct rdma_qp *qp);

/**
 * Fail the queue pairs whose completion queues have overflowed.
 *
 * @param fail  moves the queue pair to ERROR if the engine serves it
 */
void rdma_settle(struct rdma_objects *o, enum rdma_engine_id id,
                 void (*fail)(void *engine, uint32_t slot), void *engine);

#endif
