/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges a peer's request.  Judging changes no state; responder.c executes only
 * requests with the verdict ROCE_RSP_ACCEPT.
 */
#ifndef ESSD_NET_ROCE_JUDGE_H
#define ESSD_NET_ROCE_JUDGE_H

#include "net/roce/internal.h"

enum roce_verdict {
    ROCE_RSP_ACCEPT,
    ROCE_RSP_DUPLICATE,
    ROCE_RSP_AHEAD,
    ROCE_RSP_RNR,
    ROCE_RSP_INVALID,   /* NAK invalid request */
    ROCE_RSP_TOO_LONG,  /* the same: the receive buffer is too short */
    ROCE_RSP_ACCESS,    /* NAK remote access error */
    ROCE_RSP_OPERATION, /* NAK remote operational error: our buffer is
                         * invalid */
};

/* A request, and the results of judging it. */
struct roce_request {
    const struct roce *roce;
    const struct rdma_qp *rqp;
    const struct roce_qp *qp;
    const struct roce_rx *rx;
    struct rdma_recv recv; /* receive buffer of the first packet of a SEND */
    struct reth reth;      /* valid with ROCE_RETH */
    uint32_t inv_key;      /* valid with ROCE_IETH */
    uint8_t *dest;         /* destination of the payload */
};

static inline bool roce_starts(const struct roce_request *r)
{
    return r->rx->flags & ROCE_STARTS;
}

/** Judge `request` and fill in its result fields. */
enum roce_verdict roce_judge(struct roce_request *request);

#endif
