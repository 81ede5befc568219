/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Untagged messages of the peer: SENDs, READ requests and Terminates.
 * Spec: RFC 5041 sections 5.2 and 5.4 (MSN and MO), RFC 5040 sections 4.4, 4.5
 * and 5.2.
 */
#include "net/iwarp/internal.h"

#include <string.h>

static bool is_invalidating(uint8_t opcode)
{
    return opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;
}

/* RFC 5041 section 5.4: messages and their segments come in order. */
static bool check_place(const struct iwarp_segment *segment, uint32_t msn,
                        uint32_t mo, struct iwarp_fault *fault)
{
    if (segment->ddp.msn != msn) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, DDP_UNTAGGED_MSN);
    }
    if (segment->ddp.mo != mo) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, DDP_UNTAGGED_MO);
    }
    return true;
}

/* ---- SEND. */

/* Whether the peer may invalidate this key: of a region to which it has
 * rights, by the same protection domain. */
static bool may_invalidate(struct iwarp *iwarp, uint32_t slot, uint32_t stag)
{
    const struct rdma_mr *mr = rdma_mr_find(iwarp->objects, stag);

    return mr != NULL && mr->pd == iwarp_rdma_qp(iwarp, slot)->pd &&
           (mr->access &
            (VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE)) != 0;
}

/* The receive buffer of a SEND that begins. */
static void begin_send(struct iwarp *iwarp, uint32_t slot, uint8_t opcode,
                       const struct rdma_recv *recv)
{
    struct iwarp_receiver *rx = &iwarp_qp(iwarp, slot)->rx;

    rx->in_send = true;
    rx->opcode = opcode;
    rx->recv_wr_id = recv->wr_id;
    rx->recv_addr = recv->addr;
    rx->recv_len = recv->len_bytes;
    rx->recv_lkey = recv->lkey;
    rx->offset = 0;
    iwarp_rq_advance(iwarp, slot);
}

/* Find the buffer of the SEND that a segment belongs to. */
static bool find_buffer(struct iwarp *iwarp, uint32_t slot,
                        const struct iwarp_segment *segment,
                        struct rdma_recv *recv, struct iwarp_fault *fault)
{
    const struct rdma_qp *rqp = iwarp_rdma_qp(iwarp, slot);
    const struct iwarp_receiver *rx = &iwarp_qp(iwarp, slot)->rx;

    if (rx->in_send) {
        *recv = (struct rdma_recv){rx->recv_wr_id, rx->recv_addr, rx->recv_len,
                                   rx->recv_lkey};
        return segment->ddp.opcode == rx->opcode ||
               iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, RDMAP_BAD_OPCODE);
    }
    if (!rdma_rq_peek(&iwarp->objects->rqs[rqp->rq], &iwarp->dram, recv)) {
        iwarp_count(iwarp, IWARP_RX_NO_BUFFER);
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            DDP_UNTAGGED_NO_BUFFER);
    }
    return true;
}

static void end_send(struct iwarp *iwarp, uint32_t slot,
                     const struct iwarp_segment *segment)
{
    struct iwarp_receiver *rx = &iwarp_qp(iwarp, slot)->rx;
    bool with_inv = is_invalidating(segment->ddp.opcode);

    if (with_inv) {
        ASSERT(rdma_mr_destroy(iwarp->objects, segment->ddp.stag >> 8));
    }
    rx->in_send = false;
    rx->send_msn++;
    iwarp_complete_recv(iwarp, slot,
                        &(struct rdma_completion){
                            .wr_id = rx->recv_wr_id,
                            .status = VERBS_WC_SUCCESS,
                            .len_bytes = rx->offset,
                            .with_inv = with_inv,
                            .inv_key = with_inv ? segment->ddp.stag : 0,
                        });
}

/* The empty SEND by which a connection may begin is for nobody: RFC 6581. */
static bool is_rtr(const struct iwarp_qp *qp,
                   const struct iwarp_segment *segment)
{
    return qp->attr.has_send_rtr && !qp->rx.heard && segment->len == 0 &&
           segment->ddp.is_last && segment->ddp.opcode == RDMAP_SEND;
}

bool iwarp_take_send(struct iwarp *iwarp, uint32_t slot,
                     const struct iwarp_segment *segment,
                     struct iwarp_fault *fault)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_receiver *rx = &qp->rx;
    uint32_t at = rx->in_send ? rx->offset : 0;
    struct rdma_recv recv;
    uint8_t *to = NULL;

    if (!check_place(segment, rx->send_msn, at, fault)) {
        return false;
    }
    if (is_rtr(qp, segment)) {
        rx->send_msn++;
        return true;
    }
    if (!find_buffer(iwarp, slot, segment, &recv, fault)) {
        return false;
    }
    if (segment->len > recv.len_bytes - at) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            DDP_UNTAGGED_TOO_LONG);
    }
    if (segment->ddp.is_last && is_invalidating(segment->ddp.opcode) &&
        !may_invalidate(iwarp, slot, segment->ddp.stag)) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            RDMAP_PROTECT_INVALIDATE);
    }
    if (segment->len != 0) {
        to = iwarp_transfer_fails(iwarp, slot, true)
                 ? NULL
                 : rdma_mr_map(iwarp->objects, &iwarp->dram,
                               iwarp_rdma_qp(iwarp, slot)->pd, recv.lkey,
                               VERBS_ACCESS_LOCAL_WRITE, recv.addr + at,
                               segment->len);
        if (to == NULL) {
            return iwarp_refuse(fault, VERBS_WC_LOCAL_PROTECTION,
                                DDP_LOCAL_CATASTROPHIC);
        }
        memcpy(to, segment->payload, segment->len);
    }
    if (!rx->in_send) {
        begin_send(iwarp, slot, segment->ddp.opcode, &recv);
    }
    rx->offset = at + segment->len;
    if (segment->ddp.is_last) {
        end_send(iwarp, slot, segment);
    }
    return true;
}

/* ---- READ request. */

static bool check_source(struct iwarp *iwarp, uint32_t slot,
                         const struct rdmap_read *read,
                         struct iwarp_fault *fault)
{
    static const enum rdmap_error errors[] = {
        [IWARP_ACCESS_STAG] = RDMAP_PROTECT_STAG,
        [IWARP_ACCESS_STREAM] = RDMAP_PROTECT_STREAM,
        [IWARP_ACCESS_RIGHTS] = RDMAP_PROTECT_ACCESS,
        [IWARP_ACCESS_WRAP] = RDMAP_PROTECT_WRAP,
        [IWARP_ACCESS_BOUNDS] = RDMAP_PROTECT_BOUNDS,
        [IWARP_ACCESS_MEMORY] = RDMAP_CATASTROPHIC,
    };
    enum iwarp_access access;
    uint8_t *data;

    if (read->len_bytes == 0) {
        return true;
    }
    if (read->len_bytes > RDMA_MSG_MAX) {
        return iwarp_refuse(fault, VERBS_WC_REMOTE_ACCESS,
                            RDMAP_PROTECT_BOUNDS);
    }
    access = iwarp_map_remote(iwarp, slot, VERBS_ACCESS_REMOTE_READ,
                              read->source_stag, read->source_to,
                              read->len_bytes, &data);
    return access == IWARP_ACCESS_OK ||
           iwarp_refuse(fault, iwarp_access_status(access), errors[access]);
}

bool iwarp_take_read_request(struct iwarp *iwarp, uint32_t slot,
                             const struct iwarp_segment *segment,
                             struct iwarp_fault *fault)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_receiver *rx = &qp->rx;
    struct rdmap_read read;

    if (!check_place(segment, rx->read_msn, 0, fault)) {
        return false;
    }
    if (!segment->ddp.is_last ||
        !rdmap_read_parse(&read, segment->payload, segment->len)) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            segment->len < RDMAP_READ_LEN
                                ? RDMAP_CATASTROPHIC
                                : DDP_UNTAGGED_TOO_LONG);
    }
    if ((uint16_t)(rx->read_tail - rx->read_head) >=
        qp->attr.max_dest_rd_atomic) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            DDP_UNTAGGED_NO_BUFFER);
    }
    if (!check_source(iwarp, slot, &read, fault)) {
        return false;
    }
    rx->read_msn++;
    *iwarp_read_at(qp, rx->read_tail++) = (struct iwarp_read){
        .source_to = read.source_to,
        .sink_to = read.sink_to,
        .len_bytes = read.len_bytes,
        .source_stag = read.source_stag,
        .sink_stag = read.sink_stag,
    };
    iwarp_schedule(iwarp, slot);
    return true;
}
