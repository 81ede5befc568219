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

static bool is_send(uint8_t opcode)
{
    return opcode == VERBS_WR_SEND || opcode == VERBS_WR_SEND_INV;
}

/* The SEND whose last packet has this PSN; NULL if there is none. */
static const struct roce_sent *find_send(const struct roce_requester *req,
                                         uint32_t psn)
{
    for (uint16_t i = req->sent_head; i != req->sent_tail; i++) {
        const struct roce_sent *sent = &req->sent[i % ROCE_INFLIGHT];

        if (is_send(sent->opcode) && sent->packets != 0 &&
            psn_diff(psn, sent->first_psn) == (int32_t)sent->packets - 1) {
            return sent;
        }
    }
    return NULL;
}

void roce_observe_sent(struct roce *roce, unsigned int port,
                       const struct roce_note *note)
{
    const struct roce_sent *sent =
        find_send(&roce_qp(roce, note->slot)->req, note->psn);
    struct trace_record record = {
        .source = TRACE_SOURCE_RNIC,
        .type = TRACE_RESPONSE_SENT,
        .qpn = roce_rdma_qp(roce, note->slot)->qpn,
        .arg = {note->psn, port, note->again},
    };

    if (sent != NULL) {
        record.request = (uint32_t)sent->wr_id;
        roce->trace->emit(roce->trace->ctx, &record, NULL);
    }
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
