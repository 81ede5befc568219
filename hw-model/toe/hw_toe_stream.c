/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that belong to queue pairs of the RNIC: net/verbs/stream.h.
 * Reference: docs/hardware/toe.md, section 4.1.
 *
 * The stream that a connection sends has the bytes of firmware's SENDs first,
 * up to send_end, and those that the queue pair has announced after these.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

_Static_assert((int)RDMA_STREAM_PIECES <= (int)TCP_PIECES_MAX,
               "what fetch() finds has room");

/* @return the connection with this TID, if it is open */
static struct hw_toe_conn *stream_find(struct hw_toe *toe, uint32_t stream)
{
    struct hw_toe_conn *conn = &toe->state.conns[(uint16_t)stream % TOE_SLOTS];

    return (uint16_t)stream < TOE_SLOTS && conn->state == TOE_SLOT_OPEN &&
                   conn->generation == stream >> 16
               ? conn
               : NULL;
}

/* @return the connection of a queue pair */
static struct hw_toe_conn *stream_of_pair(struct hw_toe *toe, uint32_t stream)
{
    struct hw_toe_conn *conn = stream_find(toe, stream);

    return conn != NULL && conn->is_rdma ? conn : NULL;
}

/* ---- What the queue pair asks for. */

static bool attach_pair(void *ctx, uint32_t stream, uint32_t slot,
                        uint32_t *ring_bytes)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = stream_find(toe, stream);

    if (conn == NULL || conn->is_rdma || conn->is_deaf || conn->has_close ||
        conn->abort_due || conn->is_lost || conn->is_finished ||
        conn->received != conn->credited || hw_toe_is_followed(toe, conn) ||
        hw_toe_tls_of(toe, conn) != NULL || toe->rdma.receive == NULL) {
        return false;
    }
    conn->is_rdma = true;
    conn->is_closed = false;
    conn->qp_slot = (uint16_t)slot;
    conn->rdma_bytes = 0;
    *ring_bytes = hw_toe_ring_bytes(toe);
    return true;
}

static bool send_bytes(void *ctx, uint32_t stream, uint32_t len)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = stream_of_pair(toe, stream);

    if (conn == NULL || conn->is_closed || conn->abort_due ||
        !tcp_send(toe->tcp, conn->id, len, hw_toe_now_us(toe))) {
        return false;
    }
    conn->rdma_bytes += len;
    toe->env.defer(toe->env.ctx);
    return true;
}

static void close_stream(void *ctx, uint32_t stream)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = stream_of_pair(toe, stream);

    if (conn != NULL && !conn->is_closed) {
        conn->is_closed = true;
        tcp_close(toe->tcp, conn->id, hw_toe_now_us(toe));
        toe->env.defer(toe->env.ctx);
    }
}

/* The queue pair forgets the stream by its own account. */
static void leave_pair(struct hw_toe_conn *conn)
{
    conn->is_rdma = false;
    conn->is_deaf = true;
    conn->tell_finished = false;
}

static void abort_stream(void *ctx, uint32_t stream)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = stream_of_pair(toe, stream);

    if (conn != NULL) {
        hw_toe_want_abort(toe, conn);
        toe->env.defer(toe->env.ctx);
    }
}

/* What waits in the ring is dropped in the next run. */
static void detach_pair(void *ctx, uint32_t stream)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = stream_of_pair(toe, stream);

    if (conn == NULL) {
        return;
    }
    leave_pair(conn);
    if (conn->acked != conn->send_end + conn->rdma_bytes) {
        hw_toe_want_abort(toe, conn);
    }
    hw_toe_rdma_due(toe, conn);
    toe->env.defer(toe->env.ctx);
}

/* An MSS counts the bytes of options, too (RFC 6691). */
static uint16_t find_segment_bytes(void *ctx, uint32_t stream)
{
    enum { TIMES_LEN = 12 }; /* of the option, aligned: RFC 7323 appendix A */
    struct hw_toe *toe = ctx;
    const struct hw_toe_conn *conn = stream_find(toe, stream);
    struct tcp_info info;

    if (conn == NULL || !tcp_info(toe->tcp, conn->id, &info)) {
        return 0;
    }
    return (uint16_t)(info.mss - (info.has_times ? TIMES_LEN : 0));
}

struct rdma_streams hw_toe_streams(struct hw_toe *toe)
{
    return (struct rdma_streams){
        .ctx = toe,
        .attach = attach_pair,
        .detach = detach_pair,
        .send = send_bytes,
        .close = close_stream,
        .abort = abort_stream,
        .segment_bytes = find_segment_bytes,
    };
}

/* ---- What it is told. */

void hw_toe_rdma_due(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    uint16_t slot = hw_toe_slot(toe, conn);

    toe->rdma_due[slot / 64] |= UINT64_C(1) << slot % 64;
    toe->has_rdma_due = true;
}

/* The bytes that wait in the ring.  @return the number of pieces, or -1: they
 * have a memory error */
static int find_pieces(struct hw_toe *toe, const struct hw_toe_conn *conn,
                       struct rdma_stream_piece pieces[2])
{
    uint32_t size = hw_toe_ring_bytes(toe);
    uint64_t from = conn->credited;
    int count = 0;

    while (from != conn->received) {
        uint32_t at = (uint32_t)from & (size - 1);
        uint32_t len = MIN((uint32_t)(conn->received - from), size - at);

        pieces[count].data = toe->env.dma(toe->env.ctx, conn->ring + at, len);
        pieces[count].len_bytes = len;
        if (pieces[count++].data == NULL) {
            return -1;
        }
        from += len;
    }
    return count;
}

/* Offer what has come.  @return how much was taken */
static uint32_t offer_bytes(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    struct rdma_stream_piece pieces[2];
    int count;

    if (conn->is_deaf) {
        return (uint32_t)(conn->received - conn->credited);
    }
    count = find_pieces(toe, conn, pieces);
    if (count < 0) {
        hw_toe_conn_lose(toe, conn);
        return 0;
    }
    return count == 0 ? 0
                      : toe->rdma.receive(toe->rdma.ctx, conn->qp_slot, pieces,
                                          (unsigned int)count);
}

static void settle_conn(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    uint32_t taken;

    if ((!conn->is_rdma && !conn->is_deaf) || conn->is_lost) {
        return;
    }
    taken = offer_bytes(toe, conn);
    conn->credited += taken;
    conn->reported = conn->credited;
    if (conn->id != TCP_NO_ID) {
        tcp_consume(toe->tcp, conn->id, taken, hw_toe_now_us(toe));
    }
    if (conn->tell_finished) {
        conn->tell_finished = false;
        toe->rdma.finished(toe->rdma.ctx, conn->qp_slot);
    }
}

void hw_toe_rdma_settle(struct hw_toe *toe)
{
    if (!toe->has_rdma_due) {
        return;
    }
    toe->has_rdma_due = false;
    for (unsigned int i = 0; i < ARRAY_LEN(toe->rdma_due); i++) {
        uint64_t due = toe->rdma_due[i];

        toe->rdma_due[i] = 0;
        for (; due != 0; due &= due - 1) {
            unsigned int bit = (unsigned int)__builtin_ctzll(due);

            settle_conn(toe, &toe->state.conns[i * 64 + bit]);
            hw_toe_follow_settle(toe, &toe->state.conns[i * 64 + bit]);
            hw_toe_tls_settle(toe, &toe->state.conns[i * 64 + bit]);
        }
    }
}

void hw_toe_rdma_end(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    static const uint8_t ends[TOE_ENDS] = {
        [TOE_END_CLOSED] = RDMA_STREAM_CLOSED,
        [TOE_END_ABORTED] = RDMA_STREAM_RESET,
        [TOE_END_RESET] = RDMA_STREAM_RESET,
        [TOE_END_REFUSED] = RDMA_STREAM_RESET,
        [TOE_END_TIMED_OUT] = RDMA_STREAM_TIMED_OUT,
        [TOE_END_UNREACHABLE] = RDMA_STREAM_TIMED_OUT,
        [TOE_END_LOST_WORD] = RDMA_STREAM_LOST,
        [TOE_END_STOPPED] = RDMA_STREAM_LOST,
    };

    settle_conn(toe, conn);
    if (conn->is_rdma) {
        leave_pair(conn);
        toe->rdma.ended(toe->rdma.ctx, conn->qp_slot,
                        (enum rdma_stream_end)ends[conn->end]);
    }
}

unsigned int hw_toe_rdma_fetch(struct hw_toe *toe,
                               const struct hw_toe_conn *conn, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    struct rdma_stream_piece found[RDMA_STREAM_PIECES];
    unsigned int count;

    if (!conn->is_rdma) {
        return 0;
    }
    count = toe->rdma.fetch(toe->rdma.ctx, conn->qp_slot, offset, len, found);
    for (unsigned int i = 0; i < count; i++) {
        pieces[i] = (struct tcp_piece){found[i].data, found[i].len_bytes};
    }
    return count;
}
