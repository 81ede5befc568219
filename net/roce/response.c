/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The responder's packets: READ responses, acknowledgements and NAKs.
 * Spec: IBTA Vol 1 section 9.7.5 (responses).
 *
 * An acknowledgement is sent after the responses to all earlier READs.
 */
#include "net/roce/internal.h"

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
        &resp->reads[resp->read_next % ROCE_MAX_DEST_RD_ATOMIC];
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
        data = rdma_mr_map(roce->objects, &roce->dram,
                           roce_rdma_qp(roce, slot)->pd, read->rkey,
                           VERBS_ACCESS_REMOTE_READ,
                           read->va + (uint64_t)k * roce_mtu(qp), len);
        /* The region was destroyed meanwhile, or the data had an error on its
         * way from DRAM. */
        if (data == NULL || roce_transfer_fails(roce, slot, false)) {
            resp->epsn = psn_add(read->first_psn, k);
            roce_reply_nak(roce, slot, AETH_NAK, AETH_NAK_REMOTE_ACCESS);
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
    ext = roce_packet_begin(roce->objects, &route, &bth, len, tx);
    if (ext == NULL) { /* without an address, no responses */
        resp->read_next = resp->read_fresh = resp->read_tail;
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

void roce_response_sent(struct roce *roce, uint32_t slot,
                        const struct roce_note *note)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    const struct roce_read *read =
        &resp->reads[resp->read_fresh % ROCE_MAX_DEST_RD_ATOMIC];

    if (resp->read_fresh != resp->read_tail &&
        note->psn == psn_add(read->first_psn, read->packets - 1)) {
        resp->read_fresh++;
    }
}

void roce_response_undo(struct roce *roce, uint32_t slot,
                        const struct roce_note *note)
{
    struct roce_responder *resp = &roce_qp(roce, slot)->resp;
    const struct roce_read *read;

    if (resp->read_packet == 0) {
        resp->read_next--;
        read = &resp->reads[resp->read_next % ROCE_MAX_DEST_RD_ATOMIC];
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
    ext = roce_packet_begin(roce->objects, &route, &bth, 0, tx);
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
