/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tagged segments of the peer: WRITEs, and responses to our READs.
 * Spec: RFC 5041 section 5.1 (placement), RFC 5040 sections 5.1 and 5.3.
 */
#include "net/iwarp/internal.h"

#include <string.h>

bool iwarp_take_write(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_segment *segment,
                      struct iwarp_fault *fault)
{
    static const enum rdmap_error errors[] = {
        [IWARP_ACCESS_STAG] = DDP_TAGGED_STAG,
        [IWARP_ACCESS_STREAM] = DDP_TAGGED_STREAM,
        [IWARP_ACCESS_RIGHTS] = RDMAP_PROTECT_ACCESS,
        [IWARP_ACCESS_WRAP] = DDP_TAGGED_WRAP,
        [IWARP_ACCESS_BOUNDS] = DDP_TAGGED_BOUNDS,
        [IWARP_ACCESS_MEMORY] = DDP_LOCAL_CATASTROPHIC,
    };
    enum iwarp_access access;
    uint8_t *to;

    if (segment->len == 0) { /* its STag and TO need not be valid */
        return true;
    }
    access =
        iwarp_map_remote(iwarp, slot, VERBS_ACCESS_REMOTE_WRITE,
                         segment->ddp.stag, segment->ddp.to, segment->len, &to);
    if (access != IWARP_ACCESS_OK) {
        return iwarp_refuse(fault, iwarp_access_status(access), errors[access]);
    }
    if (iwarp_transfer_fails(iwarp, slot, true)) {
        return iwarp_refuse(fault, VERBS_WC_LOCAL_PROTECTION,
                            DDP_LOCAL_CATASTROPHIC);
    }
    memcpy(to, segment->payload, segment->len);
    return true;
}

/* A response goes to the oldest READ that has none, from its first byte to its
 * last one, without gaps. */
bool iwarp_take_read_response(struct iwarp *iwarp, uint32_t slot,
                              const struct iwarp_segment *segment,
                              struct iwarp_fault *fault)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct iwarp_sent *sent = iwarp_open_read(qp);
    uint32_t at = qp->tx.answered;
    uint32_t left;

    if (sent == NULL) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, RDMAP_BAD_OPCODE);
    }
    left = sent->len_bytes - at;
    if (segment->ddp.stag != sent->sink_key) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, DDP_TAGGED_STAG);
    }
    if (segment->ddp.to != at || segment->len > left ||
        segment->ddp.is_last != (segment->len == left)) {
        return iwarp_refuse(fault, VERBS_WC_BAD_RESPONSE, DDP_TAGGED_BOUNDS);
    }
    if (!iwarp_place(iwarp, slot, sent, at, segment->payload, segment->len)) {
        return iwarp_refuse(fault, VERBS_WC_LOCAL_PROTECTION,
                            DDP_LOCAL_CATASTROPHIC);
    }
    qp->tx.answered += segment->len;
    if (segment->ddp.is_last) {
        sent->is_answered = true;
        qp->tx.answered = 0;
        qp->tx.answering++;
        qp->tx.reads--;
        iwarp_complete_ready(iwarp, slot);
        iwarp_schedule(iwarp, slot);
    }
    return true;
}
