/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requester of a reliable connection: work requests become packets.
 * Spec: IBTA Vol 1 section 9.7.2 (sequence numbers), 9.7.3 (requests),
 * 10.8.3.3 (ordering), 9.7.7 (acknowledgement requests).
 *
 * A started request has a record in sent[] with its range of PSNs.  Its entry
 * in DRAM is read again for every packet, so that no copy of it is kept and
 * going back only sets tx_psn.
 */
#include "net/roce/internal.h"

#include <string.h>

static struct roce_sent *sent_at(struct roce_requester *req, uint16_t i)
{
    return &req->sent[i % ROCE_INFLIGHT];
}

/* The PSN after a request's last one. */
static uint32_t end_of(const struct roce_sent *sent)
{
    return psn_add(sent->first_psn, sent->packets);
}

/* Search from the present position, which is seldom far away. */
void roce_request_seek(struct roce_qp *qp, uint32_t psn)
{
    struct roce_requester *req = &qp->req;
    uint16_t i = req->sent_tx;

    while (i != req->sent_head &&
           psn_diff(psn, end_of(sent_at(req, (uint16_t)(i - 1)))) < 0) {
        i--;
    }
    while (i != req->sent_tail && psn_diff(psn, end_of(sent_at(req, i))) >= 0) {
        i++;
    }
    req->tx_psn = psn;
    req->sent_tx = i;
}

void roce_request_undo(struct roce *roce, uint32_t slot,
                       const struct roce_note *note)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    roce_request_seek(qp, note->psn);
    if (!note->again) {
        qp->req.high_psn = note->psn;
    }
    if (qp->req.unacked > 0) {
        qp->req.unacked--;
    }
    qp->req.since_ack_req = ROCE_ACK_EVERY; /* the next packet sets AckReq */
}

/* ---- Work requests. */

/* LOCAL_INV is executed when it is started. */
static enum verbs_wc_status local_invalidate(struct roce *roce, uint32_t slot,
                                             uint32_t key)
{
    struct rdma_objects *o = roce->objects;
    const struct rdma_mr *mr = rdma_mr_find(o, key);

    if (mr == NULL || mr->pd != roce_rdma_qp(roce, slot)->pd) {
        return VERBS_WC_LOCAL_PROTECTION;
    }
    return rdma_mr_destroy(o, key >> 8) ? VERBS_WC_SUCCESS
                                        : VERBS_WC_LOCAL_PROTECTION;
}

/* Whether the request has to wait for outstanding READs. */
static bool must_wait(const struct roce_qp *qp, const struct rdma_wr *wr)
{
    return (wr->fence && qp->req.reads != 0) ||
           (wr->opcode == VERBS_WR_READ &&
            qp->req.reads >= qp->path.max_rd_atomic);
}

/* Whether the last started request failed; then no further one is started. */
static bool has_failed(struct roce_requester *req)
{
    return req->sent_head != req->sent_tail &&
           sent_at(req, (uint16_t)(req->sent_tail - 1))->status !=
               VERBS_WC_SUCCESS;
}

/* Start the next work request, if there is one and it need not wait. */
static bool start_next(struct roce *roce, uint32_t slot)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_requester *req = &qp->req;
    struct rdma_wr wr;
    struct roce_sent *sent;

    if (rqp->sq_next == rqp->sq_pi ||
        (uint16_t)(req->sent_tail - req->sent_head) == ROCE_INFLIGHT ||
        has_failed(req)) {
        return false;
    }
    if (!rdma_sq_read(rqp, &roce->dram, rqp->sq_next, &wr)) {
        roce_qp_fail(roce, slot, VERBS_WC_LOCAL_OPERATION);
        return false;
    }
    if (must_wait(qp, &wr)) {
        return false;
    }
    sent = sent_at(req, req->sent_tail++);
    *sent = (struct roce_sent){
        .wr_id = wr.wr_id,
        .first_psn = req->next_psn,
        .wqe = (uint16_t)rqp->sq_next++,
        .opcode = wr.opcode,
        .status = (uint8_t)rdma_wr_check(&wr),
        .signaled = wr.signaled,
    };
    if (sent->status != VERBS_WC_SUCCESS) {
        return true;
    }
    if (wr.opcode == VERBS_WR_LOCAL_INV) {
        sent->status = (uint8_t)local_invalidate(roce, slot, wr.inv_key);
        return true;
    }
    sent->len_bytes = (uint32_t)rdma_wr_length(&wr);
    sent->packets = roce_packets(sent->len_bytes, roce_mtu(qp));
    req->next_psn = psn_add(req->next_psn, sent->packets);
    req->reads = (uint8_t)(req->reads + (wr.opcode == VERBS_WR_READ));
    return true;
}

/* ---- Pieces of a request's memory. */

static bool read_again(struct roce *roce, uint32_t slot,
                       const struct roce_sent *sent, struct rdma_wr *wr)
{
    return rdma_wr_read_again(roce_rdma_qp(roce, slot), &roce->dram, sent->wqe,
                              sent->opcode, sent->len_bytes, wr);
}

bool roce_request_place(struct roce *roce, uint32_t slot,
                        const struct roce_sent *sent, uint32_t offset,
                        const uint8_t *data, uint32_t len)
{
    struct rdma_piece pieces[RDMA_SGES];
    struct rdma_wr wr;
    int count;

    if (!read_again(roce, slot, sent, &wr) ||
        (len != 0 && roce_transfer_fails(roce, slot, true))) {
        return false;
    }
    count =
        rdma_wr_map(roce->objects, &roce->dram, roce_rdma_qp(roce, slot)->pd,
                    &wr, VERBS_ACCESS_LOCAL_WRITE, offset, len, pieces);
    for (int i = 0; i < count; i++) {
        memcpy(pieces[i].data, data, pieces[i].len_bytes);
        data += pieces[i].len_bytes;
    }
    return count >= 0;
}

/* ---- Packets. */

static uint8_t request_opcode(const struct roce_sent *sent, uint32_t k)
{
    static const uint8_t opcodes[][4] = {
        /* middle, first, last, only */
        [VERBS_WR_SEND] = {RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST,
                           RC_SEND_ONLY},
        [VERBS_WR_SEND_INV] = {RC_SEND_MIDDLE, RC_SEND_FIRST,
                               RC_SEND_LAST_INVALIDATE,
                               RC_SEND_ONLY_INVALIDATE},
        [VERBS_WR_WRITE] = {RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST,
                            RC_WRITE_ONLY},
        [VERBS_WR_READ] = {RC_READ_REQUEST, RC_READ_REQUEST, RC_READ_REQUEST,
                           RC_READ_REQUEST},
    };
    unsigned int first = k == 0;
    unsigned int last = k == sent->packets - 1;

    return opcodes[sent->opcode][first | last << 1];
}

static void emit_extended(const struct bth *bth, const struct rdma_wr *wr,
                          uint32_t skip, uint32_t len, uint8_t *ext)
{
    if (roce_opcode_is(bth->opcode, ROCE_RETH)) {
        reth_emit(&(struct reth){.va = wr->remote_addr + skip,
                                 .rkey = wr->rkey,
                                 .dma_len_bytes = len},
                  ext);
    } else if (roce_opcode_is(bth->opcode, ROCE_IETH)) {
        ieth_emit(wr->inv_key, ext);
    }
}

/*
 * Gather the payload of packet `k`; for a READ check its target buffers.
 */
static bool gather_payload(struct roce *roce, uint32_t slot,
                           const struct roce_sent *sent,
                           const struct rdma_wr *wr, uint32_t offset,
                           uint32_t len, struct rdma_piece *pieces, int *count)
{
    uint16_t pd = roce_rdma_qp(roce, slot)->pd;

    if (wr->inline_data) {
        pieces[0] = (struct rdma_piece){
            (uint8_t *)(uintptr_t)wr->inline_bytes + offset, len};
        *count = 1;
        return true;
    }
    if (sent->opcode == VERBS_WR_READ) {
        *count = rdma_wr_map(roce->objects, &roce->dram, pd, wr,
                             VERBS_ACCESS_LOCAL_WRITE, offset,
                             sent->len_bytes - offset, pieces);
    } else if (len != 0 && roce_transfer_fails(roce, slot, false)) {
        return false;
    } else {
        *count = rdma_wr_map(roce->objects, &roce->dram, pd, wr, 0, offset, len,
                             pieces);
    }
    return *count >= 0;
}

/*
 * Whether the request after `sent` is posted already and will ask for an
 * acknowledgement that covers both.
 */
static bool next_asks_too(struct roce *roce, uint32_t slot,
                          const struct roce_sent *sent)
{
    const struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    uint16_t wqe = (uint16_t)(sent->wqe + 1);
    struct rdma_wr next;

    return !sent->signaled && wqe != (uint16_t)rqp->sq_pi &&
           rdma_sq_read(rqp, &roce->dram, wqe, &next) && next.linked &&
           (next.opcode == VERBS_WR_SEND || next.opcode == VERBS_WR_SEND_INV ||
            next.opcode == VERBS_WR_WRITE) &&
           rdma_wr_check(&next) == VERBS_WC_SUCCESS;
}

/*
 * Whether the packet sets AckReq.  An acknowledgement costs the peer a packet,
 * so ask at the end of a request, not within a group of linked requests, and
 * often enough for the window.  Retransmitted packets always ask.
 */
static bool asks_for_ack(struct roce *roce, uint32_t slot,
                         const struct roce_sent *sent, bool is_last)
{
    const struct roce_requester *req = &roce_qp(roce, slot)->req;
    uint32_t window = roce->state->window;

    if (req->since_ack_req + 1 >=
        (int)MIN((uint32_t)ROCE_ACK_EVERY, (window + 1) / 2)) {
        return true;
    }
    return is_last && (psn_diff(req->tx_psn, req->high_psn) < 0 ||
                       !next_asks_too(roce, slot, sent));
}

/* Build packet tx_psn of `sent`.  A status other than SUCCESS fails `sent`. */
static enum verbs_wc_status build_packet(struct roce *roce, uint32_t slot,
                                         const struct roce_sent *sent,
                                         struct frame_tx *tx, struct bth *bth,
                                         bool *is_lost)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    uint32_t k = (qp->req.tx_psn - sent->first_psn) & PSN_MASK;
    uint32_t offset = k * roce_mtu(qp);
    bool is_read = sent->opcode == VERBS_WR_READ;
    uint32_t len = roce_packet_len(sent->len_bytes, roce_mtu(qp), k);
    struct rdma_piece pieces[RDMA_SGES];
    struct roce_route route;
    struct rdma_wr wr;
    uint8_t *ext;
    int count;

    if (!read_again(roce, slot, sent, &wr)) {
        return VERBS_WC_LOCAL_OPERATION;
    }
    if (!gather_payload(roce, slot, sent, &wr, offset, len, pieces, &count)) {
        return VERBS_WC_LOCAL_PROTECTION;
    }
    *bth = (struct bth){
        .opcode = request_opcode(sent, k),
        .solicited = wr.solicited && k == sent->packets - 1,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = qp->path.dest_qpn,
        .psn = qp->req.tx_psn,
        .ack_requested =
            !is_read && asks_for_ack(roce, slot, sent, k == sent->packets - 1),
    };
    roce_route_of(qp, &route);
    ext = roce_packet_begin(roce->objects, &route, bth, is_read ? 0 : len, tx);
    *is_lost = ext == NULL;
    if (ext == NULL) {
        return VERBS_WC_SUCCESS;
    }
    emit_extended(bth, &wr, offset, sent->len_bytes - offset, ext);
    for (int i = 0; i < count && !is_read; i++) {
        roce_packet_add(tx, pieces[i].data, pieces[i].len_bytes);
    }
    roce_packet_end(bth, tx);
    return VERBS_WC_SUCCESS;
}

/* The packet was sent: advance to the next one. */
static void advance_request(struct roce_requester *req,
                            const struct roce_sent *sent, const struct bth *bth)
{
    uint32_t end = end_of(sent);

    req->tx_psn = sent->opcode == VERBS_WR_READ ? end : psn_add(req->tx_psn, 1);
    if (req->tx_psn == end) {
        req->sent_tx++;
    }
    if (psn_diff(req->tx_psn, req->high_psn) > 0) {
        req->high_psn = req->tx_psn;
    }
    req->unacked++;
    req->since_ack_req =
        bth->ack_requested ? 0 : (uint16_t)(req->since_ack_req + 1);
}

/* The request of the next packet, or NULL when nothing may be sent. */
static struct roce_sent *next_sent(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_requester *req = &qp->req;

    while (roce_rdma_qp(roce, slot)->state == VERBS_QPS_RTS &&
           !req->rnr_waiting && req->unacked < roce->state->window) {
        struct roce_sent *sent;

        if (req->sent_tx == req->sent_tail && !start_next(roce, slot)) {
            return NULL;
        }
        sent = sent_at(req, req->sent_tx);
        if (sent->status != VERBS_WC_SUCCESS) {
            roce_complete_ready(roce, slot);
            return NULL;
        }
        if (sent->packets != 0) {
            return sent;
        }
        req->sent_tx++;
        roce_complete_ready(roce, slot);
    }
    return NULL;
}

bool roce_request_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                        struct roce_note *note)
{
    struct roce_requester *req = &roce_qp(roce, slot)->req;
    struct roce_sent *sent = next_sent(roce, slot);
    enum verbs_wc_status status;
    bool is_lost = false;
    struct bth bth;

    if (sent == NULL) {
        return false;
    }
    status = build_packet(roce, slot, sent, tx, &bth, &is_lost);
    if (status != VERBS_WC_SUCCESS) {
        sent->status = (uint8_t)status;
        roce_complete_ready(roce, slot);
        return false;
    }
    *note = (struct roce_note){
        .slot = (uint16_t)slot,
        .kind = ROCE_NOTE_REQUEST,
        .psn = bth.psn,
        .again = psn_diff(bth.psn, req->high_psn) < 0,
    };
    if (is_lost) { /* no address: treat the packet as sent and lost */
        roce_timer_set(roce, slot, roce_ack_due(roce, roce_qp(roce, slot)));
        return false;
    }
    advance_request(req, sent, &bth);
    return true;
}
