/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completer: processes the responses to the requester's packets.
 * Spec: IBTA Vol 1 section 9.7.5 (responses), 9.7.6 and 9.9.2 (requester
 * errors and retries).
 *
 * A response for a PSN acknowledges everything before it.  If a READ before it
 * has no response yet, that response was lost, and we go back to the READ.
 */
#include "net/roce/internal.h"

static struct roce_sent *head_of(struct roce_requester *req)
{
    return req->sent_head != req->sent_tail
               ? &req->sent[req->sent_head % ROCE_INFLIGHT]
               : NULL;
}

static void complete_head(struct roce *roce, uint32_t slot)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    const struct roce_sent *sent = head_of(req);

    if (req->sent_tx == req->sent_head) {
        req->sent_tx++;
    }
    req->sent_head++;
    if (sent->opcode == VERBS_WR_READ) {
        req->reads--;
    }
    roce_complete_send(roce, slot, sent, VERBS_WC_SUCCESS);
}

void roce_complete_ready(struct roce *roce, uint32_t slot)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    const struct roce_sent *sent;

    while ((sent = head_of(req)) != NULL) {
        if (sent->status != VERBS_WC_SUCCESS) {
            roce_send_fail(roce, slot, (enum verbs_wc_status)sent->status);
            return;
        }
        if (sent->packets != 0) {
            return;
        }
        complete_head(roce, slot);
    }
}

/* Advance una_psn: the packets before it are acknowledged. */
static void note_progress(struct roce *roce, uint32_t slot, uint32_t una,
                          uint32_t packets)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_requester *req = &qp->req;

    req->una_psn = una;
    req->retries = req->rnr_retries = 0;
    req->gap_seen = false;
    if (psn_diff(una, req->tx_psn) >= 0) {
        roce_request_seek(qp, una);
        req->unacked = 0;
    } else {
        req->unacked = (uint16_t)(req->unacked - MIN(req->unacked, packets));
    }
}

/* The timer runs while packets are unacknowledged. */
static void settle_timer(struct roce *roce, uint32_t slot)
{
    const struct roce_qp *qp = roce_qp(roce, slot);

    if (qp->req.rnr_waiting ||
        roce_rdma_qp(roce, slot)->state != VERBS_QPS_RTS) {
        return;
    }
    roce_timer_set(roce, slot,
                   qp->req.tx_psn != qp->req.una_psn ? roce_ack_due(roce, qp)
                                                     : TIMERS_NONE);
}

/*
 * Everything before `psn` is acknowledged.
 *
 * @return false when a READ before it has no response: its responses were lost
 */
static bool acknowledge_until(struct roce *roce, uint32_t slot, uint32_t psn)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    const struct roce_sent *sent;

    while (psn_diff(psn, req->una_psn) > 0) {
        uint32_t end;

        roce_complete_ready(roce, slot);
        sent = head_of(req);
        if (sent == NULL) {
            return true; /* the QP has failed meanwhile */
        }
        if (sent->opcode == VERBS_WR_READ) {
            return false;
        }
        end = psn_add(sent->first_psn, sent->packets);
        if (psn_diff(psn, end) < 0) {
            note_progress(roce, slot, psn,
                          (uint32_t)psn_diff(psn, req->una_psn));
            return true;
        }
        note_progress(roce, slot, end, (uint32_t)psn_diff(end, req->una_psn));
        complete_head(roce, slot);
    }
    roce_complete_ready(roce, slot);
    return true;
}

/* Go back to the oldest unacknowledged packet. */
static void go_back(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    roce_trace(roce, TRACE_GROUP_ROCE, slot, TRACE_RETRANSMIT, qp->req.una_psn,
               (qp->req.tx_psn - qp->req.una_psn) & PSN_MASK, 0);
    roce_request_seek(qp, qp->req.una_psn);
    qp->req.unacked = 0;
    qp->req.since_ack_req = 0;
}

static void retry_requests(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    if (qp->req.retries >= qp->path.retries) {
        roce_send_fail(roce, slot, VERBS_WC_RETRY_EXCEEDED);
        return;
    }
    qp->req.retries++;
    go_back(roce, slot);
    roce_timer_set(roce, slot, TIMERS_NONE); /* set when the packet is sent */
    roce_schedule(roce, slot, ROCE_LIST_DATA);
}

/* A response is missing.  Later responses show the same gap; act only once. */
static void handle_gap(struct roce *roce, uint32_t slot)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;

    if (!req->gap_seen && !req->rnr_waiting) {
        req->gap_seen = true;
        retry_requests(roce, slot);
    }
}

static bool is_live(struct roce *roce, uint32_t slot)
{
    return roce_rdma_qp(roce, slot)->state == VERBS_QPS_RTS;
}

static void rx_ack(struct roce *roce, uint32_t slot, uint32_t psn)
{
    if (!acknowledge_until(roce, slot, psn_add(psn, 1))) {
        handle_gap(roce, slot);
    }
}

static void rx_rnr(struct roce *roce, uint32_t slot, uint32_t psn, uint8_t code)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    if (!acknowledge_until(roce, slot, psn)) {
        handle_gap(roce, slot);
        return;
    }
    if (!is_live(roce, slot) || qp->req.rnr_waiting) {
        return;
    }
    if (qp->path.rnr_retries != 7 &&
        qp->req.rnr_retries >= qp->path.rnr_retries) {
        roce_send_fail(roce, slot, VERBS_WC_RNR_EXCEEDED);
        return;
    }
    qp->req.rnr_retries = (uint8_t)MIN(qp->req.rnr_retries + 1, 7);
    go_back(roce, slot);
    qp->req.rnr_waiting = true;
    roce_timer_set(roce, slot,
                   roce->now_ns + UINT64_C(1000) * rnr_timer_us(code));
}

static void rx_nak(struct roce *roce, uint32_t slot, uint32_t psn, uint8_t code)
{
    static const uint8_t status[] = {
        [AETH_NAK_INVALID_REQUEST] = VERBS_WC_REMOTE_INVALID,
        [AETH_NAK_REMOTE_ACCESS] = VERBS_WC_REMOTE_ACCESS,
        [AETH_NAK_REMOTE_OPERATION] = VERBS_WC_REMOTE_OPERATION,
        [AETH_NAK_INVALID_RD_REQUEST] = VERBS_WC_REMOTE_INVALID,
    };
    struct roce_requester *req = &roce_qp(roce, slot)->req;

    if (!acknowledge_until(roce, slot, psn)) {
        handle_gap(roce, slot);
    } else if (code == AETH_NAK_PSN_SEQUENCE) {
        /* Ignore a second NAK for packets that are already being resent. */
        if (is_live(roce, slot) && req->tx_psn != req->una_psn &&
            !req->rnr_waiting) {
            retry_requests(roce, slot);
        }
    } else {
        roce_send_fail(roce, slot,
                       code < ARRAY_LEN(status)
                           ? (enum verbs_wc_status)status[code]
                           : VERBS_WC_BAD_RESPONSE);
    }
}

/* Process one response packet, in order, of the READ at the head. */
static void take_read(struct roce *roce, uint32_t slot,
                      const struct roce_sent *sent, const struct roce_rx *rx)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    uint32_t mtu = roce_mtu(qp);
    uint32_t k = (rx->bth.psn - sent->first_psn) & PSN_MASK;
    bool is_last = k == sent->packets - 1;

    if (is_last != ((rx->flags & ROCE_ENDS) != 0) ||
        rx->payload_len != roce_packet_len(sent->len_bytes, mtu, k)) {
        roce_send_fail(roce, slot, VERBS_WC_BAD_RESPONSE);
        return;
    }
    if (!roce_request_place(roce, slot, sent, k * mtu, rx->payload,
                            rx->payload_len)) {
        roce_send_fail(roce, slot, VERBS_WC_LOCAL_PROTECTION);
        return;
    }
    note_progress(roce, slot, psn_add(rx->bth.psn, 1), is_last);
    if (is_last) {
        complete_head(roce, slot);
        roce_complete_ready(roce, slot);
    }
}

static void rx_read_response(struct roce *roce, uint32_t slot,
                             const struct roce_rx *rx)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    const struct roce_sent *sent;

    if (!acknowledge_until(roce, slot, rx->bth.psn)) {
        handle_gap(roce, slot);
        return;
    }
    sent = head_of(req);
    if (!is_live(roce, slot) || sent == NULL) {
        return;
    }
    if (sent->opcode != VERBS_WR_READ) {
        roce_send_fail(roce, slot, VERBS_WC_BAD_RESPONSE);
        return;
    }
    take_read(roce, slot, sent, rx);
}

static void trace_nak(struct roce *roce, uint32_t slot,
                      const struct roce_rx *rx, const struct aeth *aeth)
{
    roce_trace(roce, TRACE_GROUP_ROCE, slot, TRACE_NAK_RECEIVED,
               (uint32_t)aeth->kind << 5 | aeth->value, rx->bth.psn, 0);
}

static void rx_acknowledge(struct roce *roce, uint32_t slot,
                           const struct roce_rx *rx, const struct aeth *aeth)
{
    switch (aeth->kind) {
    case AETH_ACK:
        rx_ack(roce, slot, rx->bth.psn);
        break;
    case AETH_RNR_NAK:
        roce_count(roce, ROCE_RX_RNR);
        trace_nak(roce, slot, rx, aeth);
        rx_rnr(roce, slot, rx->bth.psn, aeth->value);
        break;
    case AETH_NAK:
        roce_count(roce, ROCE_RX_NAK);
        trace_nak(roce, slot, rx, aeth);
        rx_nak(roce, slot, rx->bth.psn, aeth->value);
        break;
    case AETH_RESERVED:
        roce_count(roce, ROCE_RX_MALFORMED);
        break;
    }
}

/*
 * Whether a response is for an outstanding packet; others are dropped.  A NAK
 * may also name the PSN after the last sent one, if a started request has it.
 * Spec: 9.7.5.1.1
 */
static bool is_outstanding(const struct roce_requester *req, uint32_t psn)
{
    return psn_diff(psn, req->una_psn) >= 0 && psn_diff(psn, req->high_psn) < 0;
}

void roce_completer_rx(struct roce *roce, uint32_t slot,
                       const struct roce_rx *rx)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    struct aeth aeth = {0};

    if (!is_live(roce, slot) || (rx->flags & ROCE_ATOMIC_ACK)) {
        roce_count(roce, ROCE_RX_DROPPED);
        return;
    }
    if ((rx->flags & ROCE_AETH) && !aeth_parse(&aeth, rx->ext, AETH_LEN)) {
        roce_count(roce, ROCE_RX_MALFORMED);
        return;
    }
    if (!is_outstanding(req, rx->bth.psn)) {
        roce_count(roce, ROCE_RX_DUPLICATE);
        return;
    }
    if (rx->flags & ROCE_READ_RESPONSE) {
        rx_read_response(roce, slot, rx);
    } else {
        rx_acknowledge(roce, slot, rx, &aeth);
    }
    if (is_live(roce, slot)) {
        settle_timer(roce, slot);
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}

void roce_completer_timer(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    unsigned int port = roce->objects->neighs[qp->path.neigh].port;

    if (!roce_rdma_qp(roce, slot)->exists || !is_live(roce, slot)) {
        return;
    }
    if (qp->req.rnr_waiting) {
        qp->req.rnr_waiting = false;
        roce_schedule(roce, slot, ROCE_LIST_DATA);
        return;
    }
    if (roce->state->port_blocked[port] || roce_is_paused(roce, port, slot)) {
        /* The port sends nothing now, so the peer cannot answer.  When the port
         * drops old frames after its transmit time-out, retries count again. */
        roce_timer_set(roce, slot, roce_ack_due(roce, qp));
        return;
    }
    if (head_of(&qp->req) != NULL) {
        roce_count(roce, ROCE_TIMEOUTS);
        roce_trace(roce, TRACE_GROUP_ROCE, slot, TRACE_TIMEOUT, qp->req.una_psn,
                   qp->req.retries, 0);
        qp->req.gap_seen = false;
        retry_requests(roce, slot);
    }
}
