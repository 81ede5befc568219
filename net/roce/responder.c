/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Responder of a reliable connection: executes requests that were accepted.
 * Spec: IBTA Vol 1 sections 9.7.4 (inbound requests), 9.7.8 (duplicates).
 *
 * READs wait in reads[].  At most one acknowledgement waits: it covers
 * everything before epsn, so a later one replaces it.  response.c sends both.
 * A duplicate READ moves read_next back; the READs after it are answered again
 * too, since a peer that goes back asks for these next.
 */
#include "net/roce/judge.h"

#include <string.h>

static void schedule_reply(struct roce *roce, uint32_t slot)
{
    roce_schedule(roce, slot,
                  roce_reads_wait(roce_qp(roce, slot)) ? ROCE_LIST_DATA
                                                       : ROCE_LIST_CONTROL);
}

void roce_reply_nak(struct roce *roce, uint32_t slot, enum aeth_kind kind,
                    uint8_t value)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    resp->reply = ROCE_REPLY_NAK;
    resp->reply_syndrome = (uint8_t)((unsigned int)kind << 5 | value);
    resp->reply_psn = resp->epsn;
    resp->nak_sent = true;
    schedule_reply(roce, slot);
}

static void start_send(struct roce *roce, uint32_t slot,
                       const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    resp->recv_wr_id = r->recv.wr_id;
    resp->recv_addr = r->recv.addr;
    resp->recv_len = r->recv.len_bytes;
    resp->recv_lkey = r->recv.lkey;
    resp->offset = 0;
    resp->message = ROCE_IN_SEND;
    roce_rq_advance(roce, slot);
}

static void accept_send(struct roce *roce, uint32_t slot,
                        const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    bool with_inv = r->rx->flags & ROCE_IETH;

    if (roce_starts(r)) {
        start_send(roce, slot, r);
    }
    if (r->rx->payload_len != 0) {
        memcpy(r->dest, r->rx->payload, r->rx->payload_len);
    }
    resp->offset += r->rx->payload_len;
    if (!(r->rx->flags & ROCE_ENDS)) {
        return;
    }
    if (with_inv) {
        ASSERT(rdma_mr_destroy(roce->objects, r->inv_key >> 8));
    }
    resp->message = ROCE_BETWEEN;
    roce_complete_recv(roce, slot,
                       &(struct rdma_completion){
                           .wr_id = resp->recv_wr_id,
                           .len_bytes = resp->offset,
                           .with_inv = with_inv,
                           .inv_key = r->inv_key,
                           .status = VERBS_WC_SUCCESS,
                       });
}

static void accept_write(struct roce *roce, uint32_t slot,
                         const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    if (roce_starts(r)) {
        resp->write_va = r->reth.va;
        resp->write_rkey = r->reth.rkey;
        resp->write_left = r->reth.dma_len_bytes;
    }
    if (r->rx->payload_len != 0) {
        memcpy(r->dest, r->rx->payload, r->rx->payload_len);
    }
    resp->write_va += r->rx->payload_len;
    resp->write_left -= r->rx->payload_len;
    resp->message = r->rx->flags & ROCE_ENDS ? ROCE_BETWEEN : ROCE_IN_WRITE;
}

static uint32_t accept_read(struct roce *roce, uint32_t slot,
                            const struct roce_request *r)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    uint32_t packets = roce_packets(r->reth.dma_len_bytes, roce_mtu(qp));

    if ((uint16_t)(resp->read_tail - resp->read_head) ==
        ROCE_MAX_DEST_RD_ATOMIC) {
        if (resp->read_next == resp->read_head) {
            /*
             * The oldest READ is being repeated.  The peer sent a new READ, so
             * it has had the first response to the oldest: stop repeating.
             */
            resp->read_next++;
            resp->read_packet = resp->read_first = 0;
        }
        resp->read_head++;
    }
    resp->reads[resp->read_tail++ % ROCE_MAX_DEST_RD_ATOMIC] =
        (struct roce_read){
            .va = r->reth.va,
            .first_psn = r->rx->bth.psn,
            .packets = packets,
            .len_bytes = r->reth.dma_len_bytes,
            .rkey = r->reth.rkey,
        };
    roce_schedule(roce, slot, ROCE_LIST_DATA);
    return packets;
}

static void accept_request(struct roce *roce, uint32_t slot,
                           const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    uint32_t packets = 1;

    if (r->rx->flags & ROCE_SEND) {
        accept_send(roce, slot, r);
    } else if (r->rx->flags & ROCE_WRITE) {
        accept_write(roce, slot, r);
    } else {
        packets = accept_read(roce, slot, r);
    }
    if (r->rx->flags & ROCE_ENDS) {
        resp->msn = (resp->msn + 1) & 0xffffff;
    }
    resp->epsn = psn_add(resp->epsn, packets);
    resp->nak_sent = false;
    if (resp->reply == ROCE_REPLY_NAK) {
        /* The packet that the waiting NAK asks for has arrived. */
        resp->reply = ROCE_REPLY_NONE;
    }
    if (resp->has_dropped && psn_diff(resp->dropped_psn, resp->epsn) >= 0) {
        /* The NAK for the packet that was just accepted has not been sent, so
         * the requester does not know that a later packet was dropped. */
        roce_reply_nak(roce, slot, AETH_NAK, AETH_NAK_PSN_SEQUENCE);
        return;
    }
    resp->has_dropped = false;
    if (r->rx->bth.ack_requested && !(r->rx->flags & ROCE_READ_REQUEST)) {
        resp->reply = ROCE_REPLY_ACK;
        schedule_reply(roce, slot);
    }
}

/* A duplicate READ may begin in the middle of the original one: 9.7.4.5.3. */
static void repeat_read(struct roce *roce, uint32_t slot,
                        const struct roce_request *r)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    struct reth reth;

    if (!reth_parse(&reth, r->rx->ext, RETH_LEN)) {
        return;
    }
    for (uint16_t i = resp->read_head; i != resp->read_tail; i++) {
        const struct roce_read *read =
            &resp->reads[i % ROCE_MAX_DEST_RD_ATOMIC];
        uint32_t k = (r->rx->bth.psn - read->first_psn) & PSN_MASK;
        uint64_t skip = (uint64_t)k * roce_mtu(qp);
        bool is_to_come = (int16_t)(i - resp->read_next) > 0 ||
                          (i == resp->read_next && k >= resp->read_packet);

        if (k >= read->packets) {
            continue;
        }
        if (!is_to_come && reth.va == read->va + skip &&
            reth.rkey == read->rkey &&
            reth.dma_len_bytes == read->len_bytes - skip) {
            resp->read_next = i;
            resp->read_packet = resp->read_first = k;
            roce_schedule(roce, slot, ROCE_LIST_DATA);
        }
        return;
    }
}

static void answer_duplicate(struct roce *roce, uint32_t slot,
                             const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    roce_count(roce, ROCE_RX_DUPLICATE);
    if (r->rx->flags & ROCE_READ_REQUEST) {
        repeat_read(roce, slot, r);
    } else if (resp->reply == ROCE_REPLY_NONE) {
        resp->reply = ROCE_REPLY_ACK;
        schedule_reply(roce, slot);
    }
}

static void handle_ahead(struct roce *roce, uint32_t slot,
                         const struct roce_request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    uint32_t psn = r->rx->bth.psn;

    roce_count(roce, ROCE_RX_OUT_OF_ORDER);
    if (!resp->nak_sent) {
        roce_reply_nak(roce, slot, AETH_NAK, AETH_NAK_PSN_SEQUENCE);
    }
    if (resp->reply != ROCE_REPLY_NAK) {
        return; /* a NAK was sent: the requester resends this packet */
    }
    if (!resp->has_dropped || psn_diff(psn, resp->dropped_psn) > 0) {
        resp->has_dropped = true;
        resp->dropped_psn = psn;
    }
}

/* End the connection: tell the peer by a NAK and firmware by an event. */
static void refuse_request(struct roce *roce, uint32_t slot,
                           const struct roce_request *r, enum aeth_nak nak,
                           enum verbs_wc_status status)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    roce_reply_nak(roce, slot, AETH_NAK, (uint8_t)nak);
    if (status == VERBS_WC_LOCAL_LENGTH ||
        status == VERBS_WC_LOCAL_PROTECTION) {
        if (roce_starts(r)) {
            start_send(roce, slot, r);
        }
        resp->message = ROCE_BETWEEN;
        roce_complete_recv(roce, slot,
                           &(struct rdma_completion){
                               .wr_id = resp->recv_wr_id,
                               .status = (uint8_t)status,
                           });
    }
    roce_qp_fail(roce, slot, status);
}

static void execute_request(struct roce *roce, uint32_t slot,
                            const struct roce_request *r,
                            enum roce_verdict verdict)
{
    switch (verdict) {
    case ROCE_RSP_ACCEPT:
        accept_request(roce, slot, r);
        break;
    case ROCE_RSP_DUPLICATE:
        answer_duplicate(roce, slot, r);
        break;
    case ROCE_RSP_AHEAD:
        handle_ahead(roce, slot, r);
        break;
    case ROCE_RSP_RNR:
        roce_reply_nak(roce, slot, AETH_RNR_NAK, r->qp->path.rnr_timer);
        break;
    case ROCE_RSP_INVALID:
        refuse_request(roce, slot, r, AETH_NAK_INVALID_REQUEST,
                       VERBS_WC_REMOTE_INVALID);
        break;
    case ROCE_RSP_TOO_LONG:
        refuse_request(roce, slot, r, AETH_NAK_INVALID_REQUEST,
                       VERBS_WC_LOCAL_LENGTH);
        break;
    case ROCE_RSP_ACCESS:
        refuse_request(roce, slot, r, AETH_NAK_REMOTE_ACCESS,
                       VERBS_WC_REMOTE_ACCESS);
        break;
    case ROCE_RSP_OPERATION:
        refuse_request(roce, slot, r, AETH_NAK_REMOTE_OPERATION,
                       VERBS_WC_LOCAL_PROTECTION);
        break;
    }
}

static bool syndrome_is_nak(uint8_t syndrome, enum aeth_nak nak)
{
    return syndrome == ((unsigned int)AETH_NAK << 5 | nak);
}

/*
 * Refuse a message because a fault rule says so.  Sequence errors and RNR NAKs
 * make the requester try again; the other NAKs end the connection.
 *
 * @return true when the message must not be executed
 */
static bool inject_fault(struct roce *roce, uint32_t slot,
                         const struct roce_request *r)
{
    uint8_t syndrome = roce->faults->judge(
        roce->faults->ctx, roce_rdma_qp(roce, slot)->qpn, r->rx->bth.opcode);

    if (syndrome == 0) {
        return false;
    }
    roce_reply_nak(roce, slot, (enum aeth_kind)(syndrome >> 5),
                   syndrome & 0x1f);
    if (syndrome >> 5 == AETH_NAK &&
        !syndrome_is_nak(syndrome, AETH_NAK_PSN_SEQUENCE)) {
        roce_qp_fail(roce, slot, VERBS_WC_REMOTE_OPERATION);
    }
    return true;
}

void roce_responder_rx(struct roce *roce, uint32_t slot,
                       const struct roce_rx *rx)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_request r = {
        .roce = roce,
        .rqp = roce_rdma_qp(roce, slot),
        .qp = qp,
        .rx = rx,
    };
    enum roce_verdict verdict;

    if (!qp->resp.heard && r.rqp->state == VERBS_QPS_RTR) {
        qp->resp.heard = true;
        roce_qp_event(roce, slot, RDMA_EVENT_QP_ESTABLISHED, 0);
    }
    verdict = roce_judge(&r);
    if (verdict == ROCE_RSP_ACCEPT && roce->faults != NULL && roce_starts(&r) &&
        inject_fault(roce, slot, &r)) {
        return;
    }
    if (verdict == ROCE_RSP_ACCEPT && r.dest != NULL &&
        roce_transfer_fails(roce, slot, true)) {
        verdict = rx->flags & ROCE_SEND ? ROCE_RSP_OPERATION : ROCE_RSP_ACCESS;
    }
    execute_request(roce, slot, &r, verdict);
}
