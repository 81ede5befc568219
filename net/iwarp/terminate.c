/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terminates, both ways.
 * Spec: RFC 5040 sections 4.8 (format) and 6.1 to 6.3 (what happens then).
 *
 * A Terminate comes after all FPDUs that were announced before, which may be
 * the first ones of a message.  Their memory remains in use until the peer has
 * the Terminate; the work requests are flushed then.
 */
#include "net/iwarp/internal.h"

/* The parts of a refused segment that the peer is told (RFC 5040 section 4.8):
 * its DDP header, and that of a READ request. */
static void quote_segment(const struct iwarp_segment *segment,
                          struct rdmap_terminate *terminate)
{
    uint32_t ddp_len = ddp_header_bytes(segment->ddp.is_tagged);

    if (terminate->error >> 12 == RDMAP_LAYER_LLP) {
        return;
    }
    terminate->headers = RDMAP_TERM_M | RDMAP_TERM_D;
    terminate->segment_len = (uint16_t)segment->segment_len;
    terminate->header = segment->bytes;
    terminate->header_len = ddp_len;
    if (segment->ddp.opcode == RDMAP_READ_REQUEST && !segment->ddp.is_tagged &&
        segment->len == RDMAP_READ_LEN &&
        terminate->error >> 12 == RDMAP_LAYER_RDMAP) {
        terminate->headers |= RDMAP_TERM_R;
        terminate->header_len += RDMAP_READ_LEN;
    }
}

static void write_terminate(struct iwarp_qp *qp,
                            const struct rdmap_terminate *terminate)
{
    const struct ddp ddp = {
        .is_last = true,
        .version = DDP_VERSION,
        .rdmap_version = RDMAP_VERSION,
        .opcode = RDMAP_TERMINATE,
        .qn = DDP_QN_TERMINATE,
        .msn = 1,
    };
    uint32_t len = ddp_emit(&ddp, qp->terminate);

    _Static_assert((int)DDP_UNTAGGED_LEN + (int)RDMAP_TERM_MAX <=
                       (int)IWARP_TERMINATE_MAX,
                   "room for the longest one");
    len += rdmap_terminate_emit(terminate, qp->terminate + len);
    qp->terminate_len = (uint8_t)len;
    qp->terminate_first = qp->tx.announced;
}

void iwarp_terminate(struct iwarp *iwarp, uint32_t slot,
                     const struct iwarp_fault *fault,
                     const struct iwarp_segment *segment)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct rdmap_terminate terminate = {.error = (uint16_t)fault->error};

    if (qp->stage != IWARP_OPEN) {
        return;
    }
    if (iwarp_rdma_qp(iwarp, slot)->state != VERBS_QPS_RTS) {
        /* The peer still waits for the reply of MPA. */
        iwarp_qp_fail(iwarp, slot, fault->status);
        return;
    }
    if (segment != NULL) {
        quote_segment(segment, &terminate);
    }
    write_terminate(qp, &terminate);
    qp->end_status = (uint8_t)fault->status;
    qp->due_ns =
        iwarp->now_ns + UINT64_C(1000000) * (uint64_t)IWARP_TERMINATE_MS;
    iwarp_stage_enter(iwarp, slot, IWARP_TERMINATING);
    iwarp_trace(iwarp, slot, TRACE_TERMINATE_SENT, (uint32_t)fault->error, 0,
                0);
    iwarp_schedule(iwarp, slot);
}

void iwarp_terminate_turn(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    const struct rdma_streams *streams = iwarp->streams;
    uint32_t len = mpa_fpdu_bytes(qp->terminate_len);

    if (qp->terminate_sent ||
        !streams->send(streams->ctx, qp->attr.stream, len)) {
        return;
    }
    qp->terminate_sent = true;
    qp->tx.announced += len;
    iwarp_count(iwarp, IWARP_TX_FPDUS);
    iwarp_count(iwarp, IWARP_TX_TERMINATES);
    streams->close(streams->ctx, qp->attr.stream);
}

bool iwarp_terminate_acked(const struct iwarp_qp *qp)
{
    return qp->terminate_sent && qp->tx.acked == qp->tx.announced;
}

/* The reason is for people only: siw writes layer and type in each other's
 * place. */
bool iwarp_take_terminate(struct iwarp *iwarp, uint32_t slot,
                          const struct iwarp_segment *segment,
                          struct iwarp_fault *fault)
{
    struct rdmap_terminate terminate = {0};

    (void)fault;
    iwarp_count(iwarp, IWARP_RX_TERMINATES);
    if (rdmap_terminate_parse(&terminate, segment->payload, segment->len)) {
        iwarp_trace(iwarp, slot, TRACE_TERMINATE_RECEIVED, terminate.error,
                    terminate.headers, terminate.segment_len);
    }
    iwarp_qp_fail(iwarp, slot, VERBS_WC_REMOTE_OPERATION);
    return true;
}
