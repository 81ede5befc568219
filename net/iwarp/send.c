/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests and responses become messages, one after the other, in the
 * stream of bytes to send.
 * Spec: RFC 5040 sections 5.5 (order), 5.2 (READ); RFC 5044 section 7.1.2 (who
 * speaks first).
 *
 * A message gets its range in the stream when it begins.  Its bytes are
 * announced in whole FPDUs, as far as IWARP_WINDOW allows, and made by fetch.c
 * when TCP asks for them.
 */
#include "net/iwarp/internal.h"

#include "lib/random.h"

/* ---- Keys of READs: a peer can use one only while it is outstanding, on its
 * own connection, and for the next byte of its response. */

static uint32_t next_key(struct iwarp_qp *qp, uint16_t index)
{
    return IWARP_SINK_KEY | (uint32_t)(index % IWARP_INFLIGHT) << 24 |
           (uint32_t)(random_next(&qp->keys) >> 40);
}

struct iwarp_sent *iwarp_open_read(struct iwarp_qp *qp)
{
    struct iwarp_sender *tx = &qp->tx;
    struct iwarp_sent *sent;

    if ((int16_t)(tx->answering - tx->head) < 0) {
        tx->answering = tx->head;
    }
    for (; tx->answering != tx->tail; tx->answering++) {
        sent = iwarp_sent_at(qp, tx->answering);
        if (sent->opcode == VERBS_WR_READ && !sent->is_answered) {
            /* The peer cannot answer what it has not been asked. */
            return sent->status == VERBS_WC_SUCCESS &&
                           tx->announced >= sent->end
                       ? sent
                       : NULL;
        }
    }
    return NULL;
}

/* ---- Work requests. */

/* LOCAL_INV is executed when it is started. */
static enum verbs_wc_status local_invalidate(struct iwarp *iwarp, uint32_t slot,
                                             uint32_t key)
{
    struct rdma_objects *o = iwarp->objects;
    const struct rdma_mr *mr = rdma_mr_find(o, key);

    if (mr == NULL || mr->pd != iwarp_rdma_qp(iwarp, slot)->pd) {
        return VERBS_WC_LOCAL_PROTECTION;
    }
    return rdma_mr_destroy(o, key >> 8) ? VERBS_WC_SUCCESS
                                        : VERBS_WC_LOCAL_PROTECTION;
}

/* Whether the request has to wait for outstanding READs. */
static bool must_wait(const struct iwarp_qp *qp, const struct rdma_wr *wr)
{
    return (wr->fence && qp->tx.reads != 0) ||
           (wr->opcode == VERBS_WR_READ && qp->attr.max_rd_atomic != 0 &&
            qp->tx.reads >= qp->attr.max_rd_atomic);
}

/* Whether the last started request failed; then no further one is started. */
static bool has_failed(struct iwarp_qp *qp)
{
    return qp->tx.head != qp->tx.tail &&
           iwarp_sent_at(qp, (uint16_t)(qp->tx.tail - 1))->status !=
               VERBS_WC_SUCCESS;
}

/* Whether a request can be executed. */
static enum verbs_wc_status check_request(struct iwarp *iwarp, uint32_t slot,
                                          const struct rdma_wr *wr)
{
    enum verbs_wc_status status = rdma_wr_check(wr);
    struct rdma_piece pieces[RDMA_SGES];
    bool is_read = wr->opcode == VERBS_WR_READ;

    if (status != VERBS_WC_SUCCESS || wr->opcode == VERBS_WR_LOCAL_INV) {
        return status;
    }
    if (is_read && iwarp_qp(iwarp, slot)->attr.max_rd_atomic == 0) {
        return VERBS_WC_LOCAL_OPERATION; /* the peer serves no READ */
    }
    if (!wr->inline_data &&
        rdma_wr_map(iwarp->objects, &iwarp->dram,
                    iwarp_rdma_qp(iwarp, slot)->pd, wr,
                    is_read ? VERBS_ACCESS_LOCAL_WRITE : 0, 0,
                    (uint32_t)rdma_wr_length(wr), pieces) < 0) {
        return VERBS_WC_LOCAL_PROTECTION;
    }
    return VERBS_WC_SUCCESS;
}

/* Give a request its range of the stream, and its numbers. */
static void place_request(struct iwarp_qp *qp, struct iwarp_sent *sent)
{
    struct iwarp_sender *tx = &qp->tx;
    bool is_read = sent->opcode == VERBS_WR_READ;

    sent->first = tx->message_end;
    sent->end =
        sent->first + iwarp_message_bytes(qp->max_fpdu,
                                          iwarp_request_header(sent->opcode),
                                          is_read ? 0 : sent->len_bytes);
    if (is_read) {
        sent->msn = tx->read_msn++;
        sent->sink_key = next_key(qp, (uint16_t)(tx->tail - 1));
        tx->reads++;
    } else if (sent->opcode != VERBS_WR_WRITE) {
        sent->msn = tx->send_msn++;
    }
}

/* Start the next work request, if there is one and it need not wait. */
static bool start_request(struct iwarp *iwarp, uint32_t slot)
{
    struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_sender *tx = &qp->tx;
    struct iwarp_sent *sent;
    struct rdma_wr wr;

    if (rqp->sq_next == rqp->sq_pi ||
        (uint16_t)(tx->tail - tx->head) == IWARP_INFLIGHT || has_failed(qp)) {
        return false;
    }
    if (!rdma_sq_read(rqp, &iwarp->dram, rqp->sq_next, &wr)) {
        iwarp_terminate(iwarp, slot,
                        &(struct iwarp_fault){VERBS_WC_LOCAL_OPERATION,
                                              RDMAP_LOCAL_CATASTROPHIC},
                        NULL);
        return false;
    }
    if (must_wait(qp, &wr)) {
        return false;
    }
    sent = iwarp_sent_at(qp, tx->tail++);
    *sent = (struct iwarp_sent){
        .wr_id = wr.wr_id,
        .first = tx->message_end,
        .end = tx->message_end,
        .wqe = (uint16_t)rqp->sq_next++,
        .opcode = wr.opcode,
        .status = (uint8_t)check_request(iwarp, slot, &wr),
        .signaled = wr.signaled,
    };
    if (sent->status == VERBS_WC_SUCCESS && wr.opcode == VERBS_WR_LOCAL_INV) {
        sent->status = (uint8_t)local_invalidate(iwarp, slot, wr.inv_key);
    } else if (sent->status == VERBS_WC_SUCCESS) {
        sent->len_bytes = (uint32_t)rdma_wr_length(&wr);
        place_request(qp, sent);
    }
    tx->message_end = sent->end;
    iwarp_complete_ready(iwarp, slot);
    return true;
}

/* Begin the response to a READ of the peer. */
static bool start_response(struct iwarp_qp *qp)
{
    struct iwarp_receiver *rx = &qp->rx;
    struct iwarp_read *read;

    if (rx->read_next == rx->read_tail) {
        return false;
    }
    read = iwarp_read_at(qp, rx->read_next++);
    read->first = qp->tx.message_end;
    read->end = read->first + iwarp_message_bytes(qp->max_fpdu, DDP_TAGGED_LEN,
                                                  read->len_bytes);
    qp->tx.message_end = read->end;
    return true;
}

/* ---- Announcements. */

/* The length of full FPDUs of the message that is being announced. */
static uint32_t full_fpdu(struct iwarp_qp *qp)
{
    const struct iwarp_sender *tx = &qp->tx;
    const struct iwarp_sent *sent = iwarp_sent_at(qp, (uint16_t)(tx->tail - 1));

    if (tx->head != tx->tail && sent->end == tx->message_end &&
        sent->first != sent->end) {
        return iwarp_full_fpdu(qp->max_fpdu,
                               iwarp_request_header(sent->opcode));
    }
    return iwarp_full_fpdu(qp->max_fpdu, DDP_TAGGED_LEN);
}

/* @return the bytes that may be announced now: whole FPDUs */
static uint32_t announceable_bytes(struct iwarp_qp *qp)
{
    const struct iwarp_sender *tx = &qp->tx;
    uint64_t left = tx->message_end - tx->announced;
    uint64_t in_flight = tx->announced - tx->acked;
    uint32_t room =
        in_flight < IWARP_WINDOW ? (uint32_t)(IWARP_WINDOW - in_flight) : 0;
    uint32_t full = full_fpdu(qp);

    return left <= room ? (uint32_t)left : room / full * full;
}

static bool may_send(struct iwarp *iwarp, uint32_t slot)
{
    const struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

    return qp->stage == IWARP_OPEN &&
           iwarp_rdma_qp(iwarp, slot)->state == VERBS_QPS_RTS &&
           (qp->rx.heard || !qp->attr.is_mute);
}

/* Announce a part of a message, or all of it.  @return false: not now */
static bool announce_message(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    const struct rdma_streams *streams = iwarp->streams;
    uint32_t len = announceable_bytes(qp);
    uint32_t full = full_fpdu(qp);

    if (len == 0 || !streams->send(streams->ctx, qp->attr.stream, len)) {
        return false;
    }
    qp->tx.announced += len;
    iwarp->state->counters[IWARP_TX_FPDUS] += (len - 1) / full + 1;
    return true;
}

bool iwarp_send_turn(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

    for (unsigned int n = 0; n < IWARP_QUANTUM; n++) {
        if (!may_send(iwarp, slot)) {
            return false;
        }
        if (qp->tx.announced == qp->tx.message_end && !start_response(qp) &&
            !start_request(iwarp, slot)) {
            return false;
        }
        if (qp->tx.announced != qp->tx.message_end && may_send(iwarp, slot) &&
            !announce_message(iwarp, slot)) {
            return false;
        }
    }
    return true;
}
