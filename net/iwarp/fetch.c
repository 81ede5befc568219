/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes out: the FPDUs at an offset of the stream, made of the work requests
 * and the responses that have this range.
 * Spec: RFC 5044 section 5.1 (FPDUs in segments), RFC 5041 section 4, RFC 5040
 * section 4.
 *
 * Headers and CRCs are made again when bytes are sent again.  A peer that
 * writes to a region while a READ of the same bytes is being answered may get a
 * wrong CRC.
 */
#include "net/iwarp/internal.h"

#include <string.h>

enum { FPDU_PIECES = 2 + RDMA_SGES }; /* header, payload, trailer */

/* A message, and which of its bytes are in an FPDU. */
struct message {
    uint64_t first;
    uint32_t header; /* of a segment, and a READ request's or Terminate's
                      * body */
    uint32_t len_bytes;
    const struct iwarp_sent *sent; /* one of these, or the Terminate */
    const struct iwarp_read *read;
};

struct fpdu {
    uint32_t len_bytes; /* of all of it */
    unsigned int count;
    struct rdma_stream_piece pieces[FPDU_PIECES];
};

/* The answer that is being made. */
struct answer {
    struct iwarp *iwarp;
    uint32_t slot;
    struct rdma_stream_piece *pieces;
    unsigned int count;
    uint32_t scratch_used;
};

static uint8_t *take_scratch(struct answer *answer, uint32_t len)
{
    uint8_t *at = answer->iwarp->scratch + answer->scratch_used;

    if (len > IWARP_SCRATCH - answer->scratch_used) {
        return NULL;
    }
    answer->scratch_used += len;
    return at;
}

/* ---- Which message has a byte. */

static bool find_sent(struct iwarp_qp *qp, uint64_t offset,
                      struct message *message)
{
    uint16_t low = qp->tx.head;
    uint16_t high = qp->tx.tail;
    const struct iwarp_sent *sent;

    while (low != high) { /* the first one that ends beyond the byte */
        uint16_t mid = (uint16_t)(low + (uint16_t)(high - low) / 2);

        if (iwarp_sent_at(qp, mid)->end > offset) {
            high = mid;
        } else {
            low = (uint16_t)(mid + 1);
        }
    }
    sent = iwarp_sent_at(qp, low);
    if (low == qp->tx.tail || sent->first > offset) {
        return false;
    }
    *message = (struct message){
        .first = sent->first,
        .header = iwarp_request_header(sent->opcode),
        .len_bytes = sent->opcode == VERBS_WR_READ ? 0 : sent->len_bytes,
        .sent = sent,
    };
    return true;
}

static bool find_read(struct iwarp_qp *qp, uint64_t offset,
                      struct message *message)
{
    for (uint16_t i = qp->rx.read_head; i != qp->rx.read_next; i++) {
        const struct iwarp_read *read = iwarp_read_at(qp, i);

        if (read->first <= offset && offset < read->end) {
            *message = (struct message){
                .first = read->first,
                .header = DDP_TAGGED_LEN,
                .len_bytes = read->len_bytes,
                .read = read,
            };
            return true;
        }
    }
    return false;
}

static bool find_message(struct iwarp_qp *qp, uint64_t offset,
                         struct message *message)
{
    if (qp->terminate_len != 0 && offset >= qp->terminate_first) {
        *message = (struct message){
            .first = qp->terminate_first,
            .header = qp->terminate_len,
        };
        return offset < qp->terminate_first + mpa_fpdu_bytes(qp->terminate_len);
    }
    return find_sent(qp, offset, message) || find_read(qp, offset, message);
}

/* ---- One FPDU. */

static void emit_read_request(const struct iwarp_sent *sent,
                              const struct rdma_wr *wr, uint8_t *buf)
{
    rdmap_read_emit(
        &(struct rdmap_read){
            .sink_stag = sent->sink_key,
            .len_bytes = sent->len_bytes,
            .source_stag = wr->rkey,
            .source_to = wr->remote_addr,
        },
        buf);
}

static void emit_request(const struct iwarp_sent *sent,
                         const struct rdma_wr *wr, uint32_t offset,
                         struct ddp *ddp, uint8_t *buf)
{
    uint32_t len;

    switch (sent->opcode) {
    case VERBS_WR_WRITE:
        ddp->is_tagged = true;
        ddp->opcode = RDMAP_WRITE;
        ddp->stag = wr->rkey;
        ddp->to = wr->remote_addr + offset;
        break;
    case VERBS_WR_READ:
        ddp->opcode = RDMAP_READ_REQUEST;
        ddp->qn = DDP_QN_READ;
        ddp->msn = sent->msn;
        break;
    default:
        ddp->opcode = sent->opcode == VERBS_WR_SEND_INV
                          ? (wr->solicited ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV)
                          : (wr->solicited ? RDMAP_SEND_SE : RDMAP_SEND);
        ddp->stag = sent->opcode == VERBS_WR_SEND_INV ? wr->inv_key : 0;
        ddp->qn = DDP_QN_SEND;
        ddp->msn = sent->msn;
        ddp->mo = offset;
        break;
    }
    len = ddp_emit(ddp, buf);
    if (sent->opcode == VERBS_WR_READ) {
        emit_read_request(sent, wr, buf + len);
    }
}

static void emit_response(const struct iwarp_read *read, uint32_t offset,
                          struct ddp *ddp, uint8_t *buf)
{
    ddp->is_tagged = true;
    ddp->opcode = RDMAP_READ_RESPONSE;
    ddp->stag = read->sink_stag;
    ddp->to = read->sink_to + offset;
    (void)ddp_emit(ddp, buf);
}

/* Find payload bytes of a request of this queue pair: as find_payload(). */
static int find_own_payload(struct iwarp *iwarp, uint32_t slot,
                            const struct rdma_wr *wr, uint32_t offset,
                            uint32_t len, struct rdma_stream_piece *pieces)
{
    struct rdma_piece memory[RDMA_SGES];
    int count;

    if (wr->inline_data) {
        pieces[0] = (struct rdma_stream_piece){wr->inline_bytes + offset, len};
        return 1;
    }
    count =
        rdma_wr_map(iwarp->objects, &iwarp->dram,
                    iwarp_rdma_qp(iwarp, slot)->pd, wr, 0, offset, len, memory);
    for (int i = 0; i < count; i++) {
        pieces[i] =
            (struct rdma_stream_piece){memory[i].data, memory[i].len_bytes};
    }
    return count;
}

/* Find the memory of payload bytes.  @return the number of pieces, or -1 */
static int find_payload(struct iwarp *iwarp, uint32_t slot,
                        const struct message *message, const struct rdma_wr *wr,
                        uint32_t offset, uint32_t len,
                        struct rdma_stream_piece *pieces)
{
    uint8_t *data;

    if (len == 0) {
        return 0;
    }
    if (iwarp_transfer_fails(iwarp, slot, false)) {
        return -1;
    }
    if (message->sent != NULL) {
        return find_own_payload(iwarp, slot, wr, offset, len, pieces);
    }
    if (iwarp_map_remote(
            iwarp, slot, VERBS_ACCESS_REMOTE_READ, message->read->source_stag,
            message->read->source_to + offset, len, &data) != IWARP_ACCESS_OK) {
        return -1;
    }
    pieces[0] = (struct rdma_stream_piece){data, len};
    return 1;
}

/* Make FPDU `k` of a message; only its first `until` bytes are wanted.
 * @return false: its memory is lost, or there is no room for its header */
static bool make_fpdu(struct answer *answer, const struct message *message,
                      uint32_t k, uint32_t until, struct fpdu *fpdu)
{
    struct iwarp *iwarp = answer->iwarp;
    struct iwarp_qp *qp = iwarp_qp(iwarp, answer->slot);
    uint32_t payload_max = iwarp_payload_max(qp->max_fpdu, message->header);
    uint32_t offset = k * payload_max;
    uint32_t len = MIN(payload_max, message->len_bytes - offset);
    uint32_t ulpdu = message->header + len;
    struct ddp ddp = {
        .is_last = offset + len == message->len_bytes,
        .version = DDP_VERSION,
        .rdmap_version = RDMAP_VERSION,
    };
    uint8_t *header = take_scratch(answer, MPA_FPDU_HEADER + message->header);
    uint32_t trailer_len = mpa_pad_bytes(ulpdu) + MPA_FPDU_CRC;
    uint8_t *trailer = take_scratch(answer, trailer_len);
    struct rdma_wr wr;
    int count;

    if (header == NULL || trailer == NULL ||
        (message->sent != NULL &&
         !iwarp_read_again(iwarp, answer->slot, message->sent, &wr))) {
        return false;
    }
    put_be16(header, (uint16_t)ulpdu);
    if (message->sent != NULL) {
        emit_request(message->sent, &wr, offset, &ddp,
                     header + MPA_FPDU_HEADER);
    } else if (message->read != NULL) {
        emit_response(message->read, offset, &ddp, header + MPA_FPDU_HEADER);
    } else {
        memcpy(header + MPA_FPDU_HEADER, qp->terminate, qp->terminate_len);
    }
    count = find_payload(iwarp, answer->slot, message, &wr, offset, len,
                         fpdu->pieces + 1);
    if (count < 0) {
        qp->lost_status = VERBS_WC_LOCAL_PROTECTION;
        return false;
    }
    fpdu->pieces[0] =
        (struct rdma_stream_piece){header, MPA_FPDU_HEADER + message->header};
    fpdu->count = (unsigned int)count + 1;
    fpdu->len_bytes = mpa_fpdu_bytes(ulpdu);
    if (until > fpdu->len_bytes - trailer_len) {
        (void)mpa_trailer(fpdu->pieces, fpdu->count, qp->attr.has_crc, trailer);
    }
    fpdu->pieces[fpdu->count++] =
        (struct rdma_stream_piece){trailer, trailer_len};
    return true;
}

/* Leave only bytes [at, at + len) of an FPDU. */
static void cut_fpdu(struct fpdu *fpdu, uint32_t at, uint32_t len)
{
    unsigned int kept = 0;

    for (unsigned int i = 0; i < fpdu->count; i++) {
        struct rdma_stream_piece piece = fpdu->pieces[i];
        uint32_t skip = MIN(at, piece.len_bytes);
        uint32_t n = MIN(len, piece.len_bytes - skip);

        at -= skip;
        len -= n;
        if (n != 0) {
            fpdu->pieces[kept++] =
                (struct rdma_stream_piece){piece.data + skip, n};
        }
    }
    fpdu->count = kept;
}

/* Put the pieces of an FPDU into the answer: as they are, or in one copy if
 * there are too many.  @return false: there is no room */
static bool add_fpdu(struct answer *answer, const struct fpdu *fpdu,
                     uint32_t len)
{
    uint8_t *copy;

    if (fpdu->count <= RDMA_STREAM_PIECES - answer->count) {
        memcpy(answer->pieces + answer->count, fpdu->pieces,
               fpdu->count * sizeof(fpdu->pieces[0]));
        answer->count += fpdu->count;
        return true;
    }
    copy =
        answer->count < RDMA_STREAM_PIECES ? take_scratch(answer, len) : NULL;
    if (copy == NULL) {
        return false;
    }
    answer->pieces[answer->count++] = (struct rdma_stream_piece){copy, len};
    for (unsigned int i = 0; i < fpdu->count; i++) {
        memcpy(copy, fpdu->pieces[i].data, fpdu->pieces[i].len_bytes);
        copy += fpdu->pieces[i].len_bytes;
    }
    return true;
}

/* Add bytes from `offset` on, to the end of their FPDU at most.
 *
 * @param whole  only if all bytes of the FPDU are among them
 * @return their number; 0: nothing was added */
static uint32_t add_bytes(struct answer *answer, uint64_t offset, uint32_t len,
                          bool whole)
{
    struct iwarp_qp *qp = iwarp_qp(answer->iwarp, answer->slot);
    struct message message;
    struct fpdu fpdu;
    uint32_t full, at;
    uint64_t k;

    if (!find_message(qp, offset, &message)) {
        return 0;
    }
    full = iwarp_full_fpdu(qp->max_fpdu, message.header);
    k = message.len_bytes == 0 ? 0 : (offset - message.first) / full;
    at = (uint32_t)(offset - message.first - k * full);
    if (!make_fpdu(answer, &message, (uint32_t)k, at + len, &fpdu) ||
        (whole && fpdu.len_bytes > len)) {
        return 0;
    }
    len = MIN(len, fpdu.len_bytes - at);
    cut_fpdu(&fpdu, at, len);
    return add_fpdu(answer, &fpdu, len) ? len : 0;
}

unsigned int iwarp_fetch(struct iwarp *iwarp, uint32_t slot, uint64_t offset,
                         uint32_t len_bytes, struct rdma_stream_piece *pieces)
{
    struct iwarp_qp *qp = iwarp_qp(iwarp, slot);
    struct answer answer = {.iwarp = iwarp, .slot = slot, .pieces = pieces};
    uint32_t done = 0;

    if ((qp->stage != IWARP_OPEN && qp->stage != IWARP_TERMINATING) ||
        qp->lost_status != 0) {
        return 0;
    }
    while (done < len_bytes && answer.count < RDMA_STREAM_PIECES) {
        uint32_t n =
            add_bytes(&answer, offset + done, len_bytes - done, done != 0);

        if (n == 0) {
            break;
        }
        done += n;
    }
    if (done == 0) {
        qp->lost_status = VERBS_WC_LOCAL_PROTECTION;
    }
    return answer.count;
}
