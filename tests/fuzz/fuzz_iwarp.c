/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iWARP engine: an input is a list of operations.  A peer sends DDP
 * segments in FPDUs with a right CRC, or any bytes; firmware posts requests and
 * buffers; bytes are acknowledged or not; the connection closes, is lost or
 * waits.  What the engine sends is made of whole FPDUs with a right CRC and
 * known headers, until the stream is reset (iw_next() checks that), and
 * everything can end afterwards: each request completes once.
 *
 * The STag and the offset of a READ response are put right, unless the
 * operation says that they are the input's.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "iw_bed.h"
#include "lib/bytes.h"
#include "net/mpa/mpa.h"

enum operation {
    OP_FPDU,     /* the bytes as a segment */
    OP_RESPONSE, /* the same, for the READ that is open */
    OP_RAW,      /* the bytes as they are */
    OP_SEND,     /* opcode, pieces, length / 16 */
    OP_RECV,     /* length */
    OP_HOLD,     /* acknowledge nothing from now on */
    OP_ACK,      /* or everything */
    OP_SEGMENT,  /* the length of segments */
    OP_FIN,
    OP_LOST,
    OP_TIME,
    OP_ERROR, /* firmware ends the queue pair */
    OPERATIONS,
};

struct world {
    struct iw_bed *bed;
    uint64_t posted, received; /* requests */
    bool has_fin;
};

static void check_that(bool good)
{
    if (!good) {
        abort();
    }
}

static void give_segment(struct world *w, const uint8_t *bytes, uint32_t len)
{
    uint8_t fpdu[MPA_FPDU_HEADER + 256 + 8];

    put_be16(fpdu, (uint16_t)len);
    memcpy(fpdu + MPA_FPDU_HEADER, bytes, len);
    (void)mpa_trailer(&(struct rdma_stream_piece){fpdu, MPA_FPDU_HEADER + len},
                      1, !w->bed->no_crc, fpdu + MPA_FPDU_HEADER + len);
    iw_give(w->bed, fpdu, mpa_fpdu_bytes(len));
}

static void give_response(struct world *w, uint8_t *bytes, uint32_t len)
{
    struct iwarp_qp *qp = &w->bed->side[0].state->qps[IW_SLOT];

    for (uint16_t i = qp->tx.head; i != qp->tx.tail; i++) {
        const struct iwarp_sent *sent = &qp->tx.sent[i % IWARP_INFLIGHT];

        if (sent->opcode == VERBS_WR_READ && !sent->is_answered &&
            len >= DDP_TAGGED_LEN) {
            bytes[DDP_CONTROL] =
                sent->len_bytes - qp->tx.answered == len - DDP_TAGGED_LEN
                    ? 0xc1
                    : 0x81;
            bytes[DDP_RDMAP] = 0x40 | RDMAP_READ_RESPONSE;
            put_be32(bytes + DDP_STAG, sent->sink_key);
            put_be64(bytes + DDP_TO, qp->tx.answered);
            break;
        }
    }
    give_segment(w, bytes, len);
}

static void post_request(struct world *w, const uint8_t *bytes, uint32_t len)
{
    struct iw_wr wr = {
        .opcode = len > 0 ? bytes[0] & 15 : 0,
        .flags = len > 0 && bytes[0] & 0x80 ? RNIC_WR_FENCE : 0,
        .sges = len > 1 ? bytes[1] & 3 : 0,
        .len = len > 2 ? bytes[2] * 16u : 0,
        .inv_key = IW_WRITE_KEY,
        .wr_id = w->posted,
    };

    if (w->bed->side[0].sq_pi - w->bed->side[0].objects->qps[IW_SLOT].sq_done >=
        1u << IW_SQ_LOG2) {
        return;
    }
    w->posted++;
    iw_send(&w->bed->side[0], &wr);
}

static void post_buffer(struct world *w, const uint8_t *bytes, uint32_t len)
{
    struct iw_side *side = &w->bed->side[0];

    if (side->rq_pi - side->objects->rqs[0].ci < 1u << IW_RQ_LOG2) {
        iw_recv(side, w->received++, 0x1000, len != 0 ? bytes[0] * 8u : 64);
    }
}

static void end_input(struct world *w, uint8_t operation)
{
    struct iw_side *side = &w->bed->side[0];

    if (operation == OP_FIN && side->is_attached && !w->has_fin) {
        w->has_fin = true;
        iwarp_finished(&side->iwarp, IW_SLOT, w->bed->now_ns);
    } else if (operation == OP_LOST && side->is_attached) {
        side->is_attached = false;
        iwarp_ended(&side->iwarp, IW_SLOT, RDMA_STREAM_RESET, w->bed->now_ns);
    } else if (operation == OP_ERROR) {
        check_that(iw_modify(side, VERBS_QPS_ERROR));
    }
}

static void pass_time(struct world *w)
{
    uint64_t due_ns = iwarp_engine_ops.deadline(&w->bed->side[0].iwarp);

    if (due_ns != UINT64_MAX) {
        w->bed->now_ns = due_ns;
        iwarp_engine_ops.timer(&w->bed->side[0].iwarp, due_ns);
    }
}

static void do_operation(struct world *w, uint8_t operation, uint8_t *bytes,
                         uint32_t len)
{
    struct iw_bed *bed = w->bed;

    switch (operation) {
    case OP_FPDU:
        give_segment(w, bytes, len);
        break;
    case OP_RESPONSE:
        give_response(w, bytes, len);
        break;
    case OP_RAW:
        iw_give(bed, bytes, len);
        break;
    case OP_SEND:
        post_request(w, bytes, len);
        break;
    case OP_RECV:
        post_buffer(w, bytes, len);
        break;
    case OP_HOLD:
    case OP_ACK:
        bed->holds_acks = operation == OP_HOLD;
        break;
    case OP_SEGMENT:
        bed->segment = len != 0 ? bytes[0] : 0;
        break;
    case OP_TIME:
        pass_time(w);
        break;
    default:
        end_input(w, operation);
        break;
    }
    iw_run(bed);
}

/* Everything that was posted completes once, in its order. */
static void check_completions(struct world *w)
{
    uint64_t sends = 0, receives = 0;
    struct iw_wc wc;

    while (iw_poll(&w->bed->side[0], &wc)) {
        uint64_t *count = wc.opcode == RDMA_WC_RECV ? &receives : &sends;

        check_that(wc.wr_id == (*count)++);
    }
    check_that(sends == w->posted && receives == w->received);
}

static void check_stream(struct world *w)
{
    struct iw_fpdu fpdu;

    while (!w->bed->side[0].has_rst && iw_next(w->bed, &fpdu)) {
        check_that(fpdu.ddp.opcode < RDMAP_OPCODES);
    }
}

/* A header, and the bytes 01, 02 and so on as its payload. */
static size_t add_segment(uint8_t *at, uint8_t operation, const struct ddp *ddp,
                          uint32_t len)
{
    uint32_t header = ddp_emit(ddp, at + 2);

    at[0] = operation;
    at[1] = (uint8_t)(header + len);
    for (uint32_t i = 0; i < len; i++) {
        at[2 + header + i] = (uint8_t)(i + 1);
    }
    return 2 + header + len;
}

/* SENDs and a WRITE; a READ of the peer; READs of ours with a response. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t begin[] = {0, OP_RECV, 1, 32, OP_RECV, 1, 32};
    static const uint8_t read[] = {OP_SEND, 3, VERBS_WR_READ, 3, 2};
    size_t at = sizeof(begin);
    struct ddp ddp;

    if (n > 2 || room < 512) {
        return 0;
    }
    memcpy(buf, begin, sizeof(begin));
    if (n == 0) {
        ddp = iw_write_ddp(IW_REMOTE_KEY, IW_DATA_ADDR);
        at += add_segment(buf + at, OP_FPDU, &ddp, 9);
        ddp = iw_send_ddp(1, 0, false);
        at += add_segment(buf + at, OP_FPDU, &ddp, 8);
        ddp = iw_send_ddp(1, 8, true);
        at += add_segment(buf + at, OP_FPDU, &ddp, 8);
        ddp = iw_send_ddp(2, 0, true);
        ddp.opcode = RDMAP_SEND_INV;
        ddp.stag = IW_WRITE_KEY;
        return at + add_segment(buf + at, OP_FPDU, &ddp, 3);
    }
    if (n == 1) {
        ddp = iw_read_ddp(1);
        at += add_segment(buf + at, OP_FPDU, &ddp, RDMAP_READ_LEN);
        rdmap_read_emit(&(struct rdmap_read){.source_stag = IW_READ_KEY,
                                             .source_to = IW_DATA_ADDR,
                                             .len_bytes = 100},
                        buf + at - RDMAP_READ_LEN);
        return at;
    }
    ddp = iw_write_ddp(1, 0);
    at += add_segment(buf + at, OP_FPDU, &ddp, 0);
    memcpy(buf + at, read, sizeof(read));
    at += sizeof(read);
    at += add_segment(buf + at, OP_RESPONSE, &ddp, 12);
    return at + add_segment(buf + at, OP_RESPONSE, &ddp, 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct world w = {.bed = iw_new()};
    uint8_t flags = len != 0 ? data[0] : 0;

    w.bed->no_crc = flags & 1;
    w.bed->no_mute = flags & 2;
    w.bed->has_send_rtr = flags & 4;
    w.bed->mss = flags & 8 ? 64 : 1448;
    iw_raw(w.bed);
    for (size_t at = 1; at + 1 < len;) {
        uint8_t bytes[256];
        uint32_t n = (uint32_t)MIN((size_t)data[at + 1], len - at - 2);

        memcpy(bytes, data + at + 2, n);
        do_operation(&w, data[at] % OPERATIONS, bytes, n);
        at += 2 + n;
    }
    check_stream(&w);
    do_operation(&w, OP_ERROR, NULL, 0);
    check_completions(&w);
    check_that(!w.bed->side[0].is_attached);
    iw_free(w.bed);
    return 0;
}
