/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Responder of a reliable connection: requests of the peer's are judged, then
 * acted on; READ responses and acknowledgements wait for their turn.
 * Spec: IBTA Vol 1 sections 9.7.4 (inbound requests), 9.7.5 (responses),
 * 9.7.8 (duplicates), 9.9.3 (responder errors).
 *
 * One acknowledgement waits at most: it says "everything before epsn", so a
 * later one replaces it, and it never leaves before READs that came earlier.
 * A duplicate READ moves the place in reads[] back; what follows it there is
 * answered again too, as a peer that goes back will ask for it anyway.
 */
#include "net/roce/internal.h"

#include <string.h>

enum rx_verdict {
    RX_ACCEPT,
    RX_DUPLICATE,
    RX_AHEAD,
    RX_RNR,
    RX_INVALID,   /* NAK invalid request */
    RX_TOO_LONG,  /* the same, for a buffer too short */
    RX_ACCESS,    /* NAK remote access error */
    RX_OPERATION, /* NAK remote operational error: our buffer */
};

/* A request under judgement, and what judging it has found out. */
struct request {
    const struct roce *roce;
    const struct rdma_qp *rqp;
    const struct roce_qp *qp;
    const struct roce_rx *rx;
    struct rdma_recv recv; /* SEND that starts: its buffer */
    struct reth reth;      /* with ROCE_RETH */
    uint32_t inv_key;      /* with ROCE_IETH */
    uint8_t *dest;         /* where the payload goes */
};

static bool starts(const struct request *r)
{
    return r->rx->flags & ROCE_STARTS;
}

static enum rx_verdict check_psn(struct request *r)
{
    int32_t ahead = psn_diff(r->rx->bth.psn, r->qp->resp.epsn);

    return ahead == 0 ? RX_ACCEPT : ahead < 0 ? RX_DUPLICATE : RX_AHEAD;
}

static enum rx_verdict check_opcode_order(struct request *r)
{
    uint32_t flags = r->rx->flags;
    enum roce_message expected = starts(r)           ? ROCE_BETWEEN
                                 : flags & ROCE_SEND ? ROCE_IN_SEND
                                                     : ROCE_IN_WRITE;

    if (flags & (ROCE_ATOMIC | ROCE_IMMDT)) {
        return RX_INVALID; /* not supported */
    }
    return r->qp->resp.message == expected ? RX_ACCEPT : RX_INVALID;
}

static enum rx_verdict check_receive_buffer(struct request *r)
{
    const struct rdma_objects *o = &r->roce->state->objects;
    const struct roce_responder *resp = &r->qp->resp;

    if ((r->rx->flags & ROCE_READ_REQUEST) &&
        (uint16_t)(resp->read_tail - resp->read_next) >= r->qp->path.reads_in &&
        (r->qp->path.access & VERBS_ACCESS_REMOTE_READ)) {
        return RX_INVALID; /* more READs than agreed */
    }
    if ((r->rx->flags & ROCE_SEND) && starts(r) &&
        !rdma_rq_peek(&o->rqs[r->rqp->rq], &r->roce->dram, &r->recv)) {
        return RX_RNR;
    }
    return RX_ACCEPT;
}

static enum rx_verdict check_packet_length(const struct request *r)
{
    uint32_t mtu = roce_mtu(r->qp);
    uint32_t len = r->rx->payload_len;

    if (r->rx->flags & ROCE_READ_REQUEST) {
        return len == 0 ? RX_ACCEPT : RX_INVALID;
    }
    if (r->rx->flags & (ROCE_FIRST | ROCE_MIDDLE)) {
        return len == mtu && r->rx->bth.pad_bytes == 0 ? RX_ACCEPT : RX_INVALID;
    }
    if (r->rx->flags & ROCE_LAST) {
        return len != 0 && len <= mtu ? RX_ACCEPT : RX_INVALID;
    }
    return len <= mtu ? RX_ACCEPT : RX_INVALID;
}

static enum rx_verdict check_write_length(const struct request *r)
{
    uint32_t left = starts(r) ? r->reth.dma_len_bytes : r->qp->resp.write_left;
    uint32_t len = r->rx->payload_len;

    if (r->rx->flags & ROCE_ENDS) {
        return len == left ? RX_ACCEPT : RX_INVALID;
    }
    return len < left ? RX_ACCEPT : RX_INVALID;
}

static enum rx_verdict check_length(struct request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    enum rx_verdict verdict = check_packet_length(r);

    if (verdict != RX_ACCEPT) {
        return verdict;
    }
    if ((r->rx->flags & ROCE_RETH) &&
        (!reth_parse(&r->reth, r->rx->ext, RETH_LEN) ||
         r->reth.dma_len_bytes > ROCE_MAX_MSG)) {
        return RX_INVALID;
    }
    if (r->rx->flags & ROCE_WRITE) {
        return check_write_length(r);
    }
    if (r->rx->flags & ROCE_SEND) {
        uint32_t room =
            starts(r) ? r->recv.len_bytes : resp->recv_len - resp->offset;

        return r->rx->payload_len <= room ? RX_ACCEPT : RX_TOO_LONG;
    }
    return RX_ACCEPT;
}

/* `len` bytes of a region of ours that the peer may use with `right`. */
static uint8_t *remote_map(const struct request *r, unsigned int right,
                           uint32_t key, uint64_t va, uint32_t len)
{
    return rdma_mr_map(&r->roce->state->objects, &r->roce->dram, r->rqp->pd,
                       key, right, va, len);
}

static enum rx_verdict check_send_access(struct request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    uint64_t addr = starts(r) ? r->recv.addr : resp->recv_addr + resp->offset;
    uint32_t lkey = starts(r) ? r->recv.lkey : resp->recv_lkey;

    if (r->rx->payload_len != 0) {
        r->dest = remote_map(r, VERBS_ACCESS_LOCAL_WRITE, lkey, addr,
                             r->rx->payload_len);
        if (r->dest == NULL) {
            return RX_OPERATION;
        }
    }
    if (r->rx->flags & ROCE_IETH) {
        const struct rdma_mr *mr;

        if (!ieth_parse(&r->inv_key, roce_rx_ieth(r->rx), IETH_LEN)) {
            return RX_INVALID;
        }
        /* A peer may take away what it was given, nothing else. */
        mr = rdma_mr_find(&r->roce->state->objects, r->inv_key);
        if (mr != NULL && (mr->pd != r->rqp->pd ||
                           (mr->access & (VERBS_ACCESS_REMOTE_READ |
                                          VERBS_ACCESS_REMOTE_WRITE)) == 0)) {
            return RX_ACCESS;
        }
    }
    return RX_ACCEPT;
}

static enum rx_verdict check_write_access(struct request *r)
{
    const struct roce_responder *resp = &r->qp->resp;
    uint32_t len = r->rx->payload_len;

    if (!(r->qp->path.access & VERBS_ACCESS_REMOTE_WRITE)) {
        return RX_ACCESS;
    }
    if (len == 0) {
        return RX_ACCEPT;
    }
    if (!starts(r)) {
        r->dest = remote_map(r, VERBS_ACCESS_REMOTE_WRITE, resp->write_rkey,
                             resp->write_va, len);
    } else { /* the whole of it is judged before its first byte lands */
        r->dest = remote_map(r, VERBS_ACCESS_REMOTE_WRITE, r->reth.rkey,
                             r->reth.va, r->reth.dma_len_bytes);
    }
    return r->dest != NULL ? RX_ACCEPT : RX_ACCESS;
}

static enum rx_verdict check_read_access(struct request *r)
{
    if (!(r->qp->path.access & VERBS_ACCESS_REMOTE_READ)) {
        return RX_ACCESS;
    }
    return r->reth.dma_len_bytes == 0 ||
                   remote_map(r, VERBS_ACCESS_REMOTE_READ, r->reth.rkey,
                              r->reth.va, r->reth.dma_len_bytes) != NULL
               ? RX_ACCEPT
               : RX_ACCESS;
}

static enum rx_verdict check_access(struct request *r)
{
    return r->rx->flags & ROCE_SEND    ? check_send_access(r)
           : r->rx->flags & ROCE_WRITE ? check_write_access(r)
                                       : check_read_access(r);
}

/* IBTA Vol 1 section 9.7.4: the first that does not accept decides. */
static enum rx_verdict judge(struct request *r)
{
    static enum rx_verdict (*const checks[])(struct request *) = {
        check_psn,    check_opcode_order, check_receive_buffer,
        check_length, check_access,
    };

    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        enum rx_verdict verdict = checks[i](r);

        if (verdict != RX_ACCEPT) {
            return verdict;
        }
    }
    return RX_ACCEPT;
}

/* ---- Acting. */

static void schedule_reply(struct roce *roce, uint32_t slot)
{
    roce_schedule(roce, slot,
                  roce_reads_wait(roce_qp(roce, slot)) ? ROCE_LIST_DATA
                                                       : ROCE_LIST_CONTROL);
}

static void reply_nak(struct roce *roce, uint32_t slot, enum aeth_kind kind,
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
                       const struct request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    resp->recv_cookie = r->recv.cookie;
    resp->recv_addr = r->recv.addr;
    resp->recv_len = r->recv.len_bytes;
    resp->recv_lkey = r->recv.lkey;
    resp->offset = 0;
    resp->message = ROCE_IN_SEND;
    roce_rq_advance(roce, slot);
}

static void accept_send(struct roce *roce, uint32_t slot,
                        const struct request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    bool with_inv = r->rx->flags & ROCE_IETH;

    if (starts(r)) {
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
        (void)(rdma_mr_find(&roce->state->objects, r->inv_key) != NULL &&
               rdma_mr_destroy(&roce->state->objects, r->inv_key >> 8));
    }
    resp->message = ROCE_BETWEEN;
    roce_complete_recv(roce, slot,
                       &(struct rdma_completion){
                           .cookie = resp->recv_cookie,
                           .len_bytes = resp->offset,
                           .with_inv = with_inv,
                           .inv_key = r->inv_key,
                           .status = VERBS_WC_SUCCESS,
                       });
}

static void accept_write(struct roce *roce, uint32_t slot,
                         const struct request *r)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    if (starts(r)) {
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
                            const struct request *r)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    uint32_t packets = roce_packets(r->reth.dma_len_bytes, roce_mtu(qp));

    if ((uint16_t)(resp->read_tail - resp->read_head) == ROCE_READS_IN) {
        resp->read_head++;
    }
    resp->reads[resp->read_tail++ % ROCE_READS_IN] = (struct roce_read){
        .va = r->reth.va,
        .first_psn = r->rx->bth.psn,
        .packets = packets,
        .len_bytes = r->reth.dma_len_bytes,
        .rkey = r->reth.rkey,
    };
    roce_schedule(roce, slot, ROCE_LIST_DATA);
    return packets;
}

static void accept(struct roce *roce, uint32_t slot, const struct request *r)
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
        resp->reply = ROCE_REPLY_NONE; /* what it asked for has come */
    }
    if (r->rx->bth.ack_requested && !(r->rx->flags & ROCE_READ_REQUEST)) {
        resp->reply = ROCE_REPLY_ACK;
        schedule_reply(roce, slot);
    }
}

/* Spec: 9.7.4.5.3: a duplicate READ may begin in the middle of the first. */
static void repeat_read(struct roce *roce, uint32_t slot,
                        const struct request *r)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    struct reth reth;

    if (!reth_parse(&reth, r->rx->ext, RETH_LEN)) {
        return;
    }
    for (uint16_t i = resp->read_head; i != resp->read_tail; i++) {
        const struct roce_read *read = &resp->reads[i % ROCE_READS_IN];
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

static void duplicate(struct roce *roce, uint32_t slot, const struct request *r)
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

static void ahead(struct roce *roce, uint32_t slot)
{
    roce_count(roce, ROCE_RX_OUT_OF_ORDER);
    if (!roce_qp(roce, slot)->resp.nak_sent) {
        reply_nak(roce, slot, AETH_NAK, AETH_NAK_PSN_SEQUENCE);
    }
}

/* The connection is over: the peer learns why, and so does firmware. */
static void refuse(struct roce *roce, uint32_t slot, const struct request *r,
                   enum aeth_nak nak, enum verbs_wc_status status)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    reply_nak(roce, slot, AETH_NAK, (uint8_t)nak);
    if (status == VERBS_WC_LOCAL_LENGTH ||
        status == VERBS_WC_LOCAL_PROTECTION) {
        if (starts(r)) {
            start_send(roce, slot, r);
        }
        resp->message = ROCE_BETWEEN;
        roce_complete_recv(roce, slot,
                           &(struct rdma_completion){
                               .cookie = resp->recv_cookie,
                               .status = (uint8_t)status,
                           });
    }
    roce_qp_fail(roce, slot, status);
}

static void act(struct roce *roce, uint32_t slot, const struct request *r,
                enum rx_verdict verdict)
{
    switch (verdict) {
    case RX_ACCEPT:
        accept(roce, slot, r);
        break;
    case RX_DUPLICATE:
        duplicate(roce, slot, r);
        break;
    case RX_AHEAD:
        ahead(roce, slot);
        break;
    case RX_RNR:
        reply_nak(roce, slot, AETH_RNR_NAK, r->qp->path.rnr_timer);
        break;
    case RX_INVALID:
        refuse(roce, slot, r, AETH_NAK_INVALID_REQUEST,
               VERBS_WC_REMOTE_INVALID);
        break;
    case RX_TOO_LONG:
        refuse(roce, slot, r, AETH_NAK_INVALID_REQUEST, VERBS_WC_LOCAL_LENGTH);
        break;
    case RX_ACCESS:
        refuse(roce, slot, r, AETH_NAK_REMOTE_ACCESS, VERBS_WC_REMOTE_ACCESS);
        break;
    case RX_OPERATION:
        refuse(roce, slot, r, AETH_NAK_REMOTE_OPERATION,
               VERBS_WC_LOCAL_PROTECTION);
        break;
    }
}

void roce_responder_rx(struct roce *roce, uint32_t slot,
                       const struct roce_rx *rx)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct request r = {
        .roce = roce,
        .rqp = roce_rdma_qp(roce, slot),
        .qp = qp,
        .rx = rx,
    };

    if (!qp->resp.heard && r.rqp->state == VERBS_QPS_RTR) {
        qp->resp.heard = true;
        roce_qp_event(roce, slot, RDMA_EVENT_QP_ESTABLISHED, 0);
    }
    act(roce, slot, &r, judge(&r));
}

/* ---- Responses that leave. */

static uint8_t response_opcode(const struct roce_read *read, uint32_t k,
                               bool is_first)
{
    bool is_last = k == read->packets - 1;

    return is_first
               ? (is_last ? RC_READ_RESPONSE_ONLY : RC_READ_RESPONSE_FIRST)
               : (is_last ? RC_READ_RESPONSE_LAST : RC_READ_RESPONSE_MIDDLE);
}

static void next_read(struct roce_responder *resp, const struct roce_read *read)
{
    if (++resp->read_packet == read->packets) {
        resp->read_packet = resp->read_first = 0;
        resp->read_next++;
    }
}

bool roce_response_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                         struct roce_note *note)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    const struct roce_read *read =
        &resp->reads[resp->read_next % ROCE_READS_IN];
    uint32_t k = resp->read_packet, len;
    struct roce_route route;
    struct bth bth;
    const void *data = NULL;
    uint8_t *ext;

    if (!roce_reads_wait(qp)) {
        return false;
    }
    len = roce_packet_len(read->len_bytes, roce_mtu(qp), k);
    if (len != 0) {
        data = rdma_mr_map(&roce->state->objects, &roce->dram,
                           roce_rdma_qp(roce, slot)->pd, read->rkey,
                           VERBS_ACCESS_REMOTE_READ,
                           read->va + (uint64_t)k * roce_mtu(qp), len);
        if (data == NULL) { /* the region went away meanwhile */
            resp->epsn = psn_add(read->first_psn, k);
            reply_nak(roce, slot, AETH_NAK, AETH_NAK_REMOTE_ACCESS);
            roce_qp_fail(roce, slot, VERBS_WC_REMOTE_ACCESS);
            return false;
        }
    }
    bth = (struct bth){
        .opcode = response_opcode(read, k, k == resp->read_first),
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = qp->path.dest_qpn,
        .psn = psn_add(read->first_psn, k),
    };
    *note = (struct roce_note){
        .slot = (uint16_t)slot,
        .kind = ROCE_NOTE_RESPONSE,
        .psn = bth.psn,
        .first = k == resp->read_first,
    };
    next_read(resp, read);
    roce_route_of(qp, &route);
    ext = roce_packet_begin(&roce->state->objects, &route, &bth, len, tx);
    if (ext == NULL) { /* no address, no answers */
        resp->read_next = resp->read_tail;
        resp->read_packet = resp->read_first = 0;
        return false;
    }
    if (roce_opcode_is(bth.opcode, ROCE_AETH)) {
        aeth_emit(&(struct aeth){.kind = AETH_ACK,
                                 .value = AETH_CREDIT_UNLIMITED,
                                 .msn = resp->msn},
                  ext);
    }
    roce_packet_add(tx, data, len);
    roce_packet_end(&bth, tx);
    return true;
}

void roce_response_undo(struct roce *roce, uint32_t slot,
                        const struct roce_note *note)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    const struct roce_read *read;

    if (resp->read_packet == 0) {
        resp->read_next--;
        read = &resp->reads[resp->read_next % ROCE_READS_IN];
        resp->read_packet = read->packets;
    }
    resp->read_packet--;
    if (note->first) {
        resp->read_first = resp->read_packet;
    }
}

bool roce_reply_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                      struct roce_note *note)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct roce_responder *resp = &qp->resp;
    bool is_nak = resp->reply == ROCE_REPLY_NAK;
    struct roce_route route;
    struct bth bth;
    uint8_t *ext;

    if (resp->reply == ROCE_REPLY_NONE || roce_reads_wait(qp)) {
        return false;
    }
    bth = (struct bth){
        .opcode = RC_ACKNOWLEDGE,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = qp->path.dest_qpn,
        .psn = is_nak ? resp->reply_psn : psn_add(resp->epsn, PSN_MASK),
    };
    *note = (struct roce_note){
        .slot = (uint16_t)slot,
        .kind = ROCE_NOTE_REPLY,
        .syndrome = is_nak ? resp->reply_syndrome : AETH_CREDIT_UNLIMITED,
        .psn = bth.psn,
    };
    resp->reply = ROCE_REPLY_NONE;
    roce_route_of(qp, &route);
    ext = roce_packet_begin(&roce->state->objects, &route, &bth, 0, tx);
    if (ext == NULL) {
        return false;
    }
    aeth_emit(&(struct aeth){.kind = (enum aeth_kind)(note->syndrome >> 5),
                             .value = note->syndrome & 0x1f,
                             .msn = resp->msn},
              ext);
    roce_packet_end(&bth, tx);
    return true;
}

void roce_reply_undo(struct roce *roce, uint32_t slot,
                     const struct roce_note *note)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;

    if (note->syndrome >> 5 == AETH_ACK) {
        resp->reply = ROCE_REPLY_ACK;
    } else {
        resp->reply = ROCE_REPLY_NAK;
        resp->reply_syndrome = note->syndrome;
        resp->reply_psn = note->psn;
    }
    roce_schedule(roce, slot, ROCE_LIST_CONTROL);
}
