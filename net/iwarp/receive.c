/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of the peer: FPDUs, and what is checked of every DDP segment.
 * Spec: RFC 5044 sections 4 and 8, RFC 5041 sections 6 and 7, RFC 5040 sections
 * 4 and 7.
 *
 * Each segment is checked and executed as a whole.  The first one that is
 * refused ends the connection, and nothing that comes after it is looked at.
 */
#include "net/iwarp/internal.h"

/* What a segment with an opcode looks like, and who executes it. */
struct op {
    bool is_tagged;
    uint8_t qn;
    bool (*take)(struct iwarp *iwarp, uint32_t slot,
                 const struct iwarp_segment *segment,
                 struct iwarp_fault *fault);
};

static const struct op ops[RDMAP_OPCODES] = {
    [RDMAP_WRITE] = {true, 0, iwarp_take_write},
    [RDMAP_READ_REQUEST] = {false, DDP_QN_READ, iwarp_take_read_request},
    [RDMAP_READ_RESPONSE] = {true, 0, iwarp_take_read_response},
    [RDMAP_SEND] = {false, DDP_QN_SEND, iwarp_take_send},
    [RDMAP_SEND_INV] = {false, DDP_QN_SEND, iwarp_take_send},
    [RDMAP_SEND_SE] = {false, DDP_QN_SEND, iwarp_take_send},
    [RDMAP_SEND_SE_INV] = {false, DDP_QN_SEND, iwarp_take_send},
    [RDMAP_TERMINATE] = {false, DDP_QN_TERMINATE, iwarp_take_terminate},
};

/* RFC 5041 section 7.1: the version comes first, then the queue number. */
static bool check_ddp(const struct iwarp_segment *segment,
                      struct iwarp_fault *fault)
{
    const struct ddp *ddp = &segment->ddp;

    if (ddp->version != DDP_VERSION) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE,
                            ddp->is_tagged ? DDP_TAGGED_VERSION
                                           : DDP_UNTAGGED_VERSION);
    }
    if (!ddp->is_tagged && ddp->qn > DDP_QN_TERMINATE) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, DDP_UNTAGGED_QN);
    }
    return true;
}

/* RFC 5040 section 7: the version, then whether the opcode fits the place. */
static bool check_rdmap(const struct iwarp_segment *segment,
                        struct iwarp_fault *fault)
{
    const struct ddp *ddp = &segment->ddp;

    if (ddp->rdmap_version != RDMAP_VERSION) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, RDMAP_BAD_VERSION);
    }
    if (ddp->opcode >= RDMAP_OPCODES ||
        ddp->is_tagged != ops[ddp->opcode].is_tagged ||
        (!ddp->is_tagged && ddp->qn != ops[ddp->opcode].qn)) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, RDMAP_BAD_OPCODE);
    }
    return true;
}

/* A message that begins may be refused on demand. */
static bool judge_message(const struct iwarp *iwarp, uint32_t slot,
                          const struct iwarp_segment *segment,
                          struct iwarp_fault *fault)
{
    const struct ddp *ddp = &segment->ddp;
    int error;

    if (iwarp->faults == NULL || ddp->opcode == RDMAP_READ_RESPONSE ||
        ddp->opcode == RDMAP_TERMINATE || (!ddp->is_tagged && ddp->mo != 0)) {
        return true;
    }
    error = iwarp->faults->judge(iwarp->faults->ctx,
                                 iwarp->objects->qps[slot].qpn, ddp->opcode);
    return error == IWARP_EXECUTE ||
           iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, (enum rdmap_error)error);
}

/* The first FPDU tells that the peer is ready. */
static void note_heard(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_receiver *rx = &iwarp_qp(iwarp, slot)->rx;

    if (!rx->heard) {
        rx->heard = true;
        iwarp_qp_event(iwarp, slot, RDMA_EVENT_QP_ESTABLISHED, 0);
        iwarp_schedule(iwarp, slot);
    }
}

static void take_segment(struct iwarp *iwarp, uint32_t slot,
                         const struct rdma_stream_piece *ulpdu)
{
    struct iwarp_segment segment = {
        .bytes = ulpdu->data,
        .segment_len = ulpdu->len_bytes,
    };
    uint32_t header = ddp_parse(&segment.ddp, ulpdu->data, ulpdu->len_bytes);
    struct iwarp_fault fault;

    if (header == 0) {
        iwarp_count(iwarp, IWARP_RX_BAD_LENGTH);
        fault = (struct iwarp_fault){VERBS_WC_BAD_RESPONSE, MPA_ERROR_LENGTH};
        iwarp_terminate(iwarp, slot, &fault, NULL);
        return;
    }
    segment.payload = ulpdu->data + header;
    segment.len = ulpdu->len_bytes - header;
    if (check_ddp(&segment, &fault) && check_rdmap(&segment, &fault) &&
        judge_message(iwarp, slot, &segment, &fault) &&
        ops[segment.ddp.opcode].take(iwarp, slot, &segment, &fault)) {
        if (iwarp_qp(iwarp, slot)->stage == IWARP_OPEN) {
            note_heard(iwarp, slot);
        }
        return;
    }
    iwarp_count(iwarp, IWARP_RX_REFUSED);
    iwarp_terminate(iwarp, slot, &fault, &segment);
}

/* The CRC of the FPDU may be wrong on demand. */
static enum mpa_deframed judge_fpdu(const struct iwarp *iwarp, uint32_t slot,
                                    enum mpa_deframed found)
{
    if (found != MPA_FPDU || iwarp->faults == NULL ||
        !iwarp->faults->judge_fpdu(iwarp->faults->ctx,
                                   iwarp->objects->qps[slot].qpn)) {
        return found;
    }
    return MPA_FPDU_BAD_CRC;
}

static void refuse_fpdu(struct iwarp *iwarp, uint32_t slot, bool is_crc)
{
    const struct iwarp_fault fault = {
        VERBS_WC_BAD_RESPONSE, is_crc ? MPA_ERROR_CRC : MPA_ERROR_LENGTH};

    iwarp_count(iwarp, is_crc ? IWARP_RX_BAD_CRC : IWARP_RX_BAD_LENGTH);
    iwarp_terminate(iwarp, slot, &fault, NULL);
}

/* Take FPDUs while the connection is open.  @return the bytes taken */
static uint32_t take_fpdus(struct iwarp *iwarp, uint32_t slot,
                           const struct rdma_stream_piece *pieces,
                           unsigned int count)
{
    const struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct rdma_stream_piece ulpdu;
    uint32_t taken = 0;

    while (qp->stage == IWARP_OPEN) {
        enum mpa_deframed found =
            mpa_deframe(pieces, count, taken, qp->max_rx_fpdu, qp->attr.has_crc,
                        iwarp->scratch, &ulpdu);

        found = judge_fpdu(iwarp, slot, found);
        if (found == MPA_FPDU_WAITS) {
            break;
        }
        if (found != MPA_FPDU) {
            refuse_fpdu(iwarp, slot, found == MPA_FPDU_BAD_CRC);
            break;
        }
        iwarp_count(iwarp, IWARP_RX_FPDUS);
        taken += mpa_fpdu_bytes(ulpdu.len_bytes);
        take_segment(iwarp, slot, &ulpdu);
    }
    return taken;
}

uint32_t iwarp_receive(struct iwarp *iwarp, uint32_t slot,
                       const struct rdma_stream_piece *pieces,
                       unsigned int count, uint64_t now_ns)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    uint32_t total = 0;
    uint32_t taken;

    iwarp->now_ns = now_ns;
    for (unsigned int i = 0; i < count; i++) {
        total += pieces[i].len_bytes;
    }
    taken = take_fpdus(iwarp, slot, pieces, count);
    iwarp_settle(iwarp);
    if (qp->stage != IWARP_OPEN) {
        return total; /* nothing of a connection that ends is looked at */
    }
    qp->rx.partial = taken != total;
    return taken;
}

void iwarp_finished(struct iwarp *iwarp, uint32_t slot, uint64_t now_ns)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

    iwarp->now_ns = now_ns;
    if (qp->stage != IWARP_OPEN) {
        return;
    }
    if (qp->rx.partial || qp->rx.in_send || qp->tx.reads != 0) {
        iwarp_qp_fail(iwarp, slot, VERBS_WC_BAD_RESPONSE);
        iwarp_settle(iwarp);
    }
}

void iwarp_ended(struct iwarp *iwarp, uint32_t slot, enum rdma_stream_end end,
                 uint64_t now_ns)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    enum iwarp_stage stage = (enum iwarp_stage)qp->stage;
    enum verbs_wc_status status = VERBS_WC_RETRY_EXCEEDED;

    (void)end;
    iwarp->now_ns = now_ns;
    if (stage == IWARP_TERMINATING) {
        status = (enum verbs_wc_status)qp->end_status;
    } else if (stage == IWARP_OPEN) {
        iwarp_count(iwarp, IWARP_STREAMS_LOST);
        status = qp->lost_status != 0 ? (enum verbs_wc_status)qp->lost_status
                                      : status;
    }
    iwarp_stage_enter(iwarp, slot, IWARP_NO_STREAM);
    if (stage == IWARP_TERMINATING || stage == IWARP_OPEN) {
        iwarp_qp_fail(iwarp, slot, status);
        iwarp_settle(iwarp);
    }
}
