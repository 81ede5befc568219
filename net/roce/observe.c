/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace events of queue pairs: see lib/trace.h. */
#include "net/roce/internal.h"

/* The low half of the wr_id of the oldest unacknowledged request. */
static uint32_t oldest_request(const struct roce_qp *qp)
{
    const struct roce_requester *req = &qp->req;

    return req->sent_head == req->sent_tail
               ? TRACE_NO_REQUEST
               : (uint32_t)req->sent[req->sent_head % ROCE_INFLIGHT].wr_id;
}

void roce_observe(struct roce *roce, uint32_t slot, enum trace_type type,
                  const uint32_t args[3])
{
    bool is_of_requester = type == TRACE_NAK_RECEIVED ||
                           type == TRACE_TIMEOUT || type == TRACE_RETRANSMIT;
    const struct trace_record record = {
        .source = TRACE_SOURCE_RNIC,
        .type = (uint16_t)type,
        .qpn = roce_rdma_qp(roce, slot)->qpn,
        .request = is_of_requester ? oldest_request(roce_qp(roce, slot))
                                   : TRACE_NO_REQUEST,
        .arg = {args[0], args[1], args[2]},
    };

    roce->trace->emit(roce->trace->ctx, &record, NULL);
}
