/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of group PDUS: each PDU that comes, is sent or is refused. */
#include "nvmeof/tcp/tcp_state.h"

#include "lib/trace.h"

void tcp_trace_pdu_now(const struct nvme_tcp_queue *queue, bool is_sent,
                       uint32_t request, const struct tcp_pdu_head *head,
                       const struct tcp_pdu_data *data)
{
    const struct trace *trace = queue->tcp->config.trace;
    const struct trace_record record = {
        .type = is_sent ? TRACE_PDU_SENT : TRACE_PDU_RECEIVED,
        .qpn = queue->id,
        .request = request,
        .arg = {head->type,
                (head->has_header_digest ? 1u : 0) |
                    (head->has_data_digest ? 2u : 0) |
                    (head->is_last ? 4u : 0) | (head->is_success ? 8u : 0),
                queue->qid, data->cccid, data->ttag, data->offset,
                data->len_bytes},
    };

    trace->emit(trace->ctx, &record, NULL);
}

void tcp_trace_term_now(const struct nvme_tcp_queue *queue,
                        struct tcp_pdu_term term, const uint8_t *header)
{
    const struct trace *trace = queue->tcp->config.trace;
    const struct trace_record record = {
        .type = TRACE_PDU_REFUSED,
        .qpn = queue->id,
        .request = TRACE_NO_REQUEST,
        .arg = {header[PDU_TYPE], queue->qid, term.fes, term.fei},
    };

    trace->emit(trace->ctx, &record, NULL);
}
