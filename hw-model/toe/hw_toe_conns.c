/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the TCP offload engine: what net/tcp reports about them.  The
 * functions that net/tcp calls only note what has happened.
 * Reference: docs/hardware/toe.md, section 4.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

enum { ABORTS_A_RUN = 128 };

void hw_toe_conn_due(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    uint16_t slot = hw_toe_slot(toe, conn);

    toe->state.due[slot / 64] |= UINT64_C(1) << slot % 64;
}

struct hw_toe_conn *hw_toe_conn_of(struct hw_toe *toe, uint32_t id)
{
    uint16_t at = (uint16_t)id;
    uint16_t slot = at < HW_TOE_IDS ? toe->slot_of[at] : HW_TOE_NO_SLOT;

    return slot != HW_TOE_NO_SLOT && toe->state.conns[slot].id == id
               ? &toe->state.conns[slot]
               : NULL;
}

static void conn_rename(struct hw_toe *toe, struct hw_toe_conn *conn,
                        uint32_t id)
{
    if (conn->id != TCP_NO_ID) {
        toe->slot_of[(uint16_t)conn->id] = HW_TOE_NO_SLOT;
    }
    conn->id = id;
    if (id != TCP_NO_ID) {
        toe->slot_of[(uint16_t)id] = hw_toe_slot(toe, conn);
    }
}

void hw_toe_conn_end(struct hw_toe *toe, struct hw_toe_conn *conn,
                     enum toe_end end)
{
    conn_rename(toe, conn, TCP_NO_ID);
    hw_toe_follow_end(toe, conn);
    hw_toe_tls_end(toe, conn);
    conn->state = TOE_SLOT_ENDED;
    conn->rst_lost |= conn->abort_due && end == TOE_END_STOPPED;
    conn->abort_due = false;
    conn->end = (uint8_t)(conn->is_lost ? TOE_END_LOST_WORD : end);
    if (conn->end != TOE_END_CLOSED) {
        /* RFC 9293 3.10.7.4 and 3.10.5: what was received is flushed. */
        conn->received = conn->reported;
        conn->finished_due = false;
    }
    conn->ended_due = true;
    hw_toe_conn_due(toe, conn);
    hw_toe_rdma_end(toe, conn);
    hw_toe_trace_ended(toe, conn);
}

void hw_toe_conn_free(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    uint16_t generation = conn->generation;

    if (conn->has_path) {
        toe->state.paths[conn->path].refs--;
    }
    generation =
        generation == UINT16_MAX ? (uint16_t)1 : (uint16_t)(generation + 1);
    *conn = (struct hw_toe_conn){.generation = generation, .id = TCP_NO_ID};
}

void hw_toe_conn_lose(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    if (!conn->is_lost) {
        hw_toe_count(toe, TOE_COUNT_LOST_WORDS);
    }
    conn->is_lost = true;
    toe->has_lost = true;
}

/* ---- What net/tcp calls. */

static struct hw_toe_conn *conn_find_free(struct hw_toe_state *state)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        if (state->conns[i].state == TOE_SLOT_FREE) {
            return &state->conns[i];
        }
    }
    return NULL;
}

static void note_asked(void *ctx, uint32_t id, uint32_t listener,
                       const struct tcp_ends *ends)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = conn_find_free(&toe->state);

    (void)listener;
    if (conn == NULL) {
        hw_toe_count(toe, TOE_COUNT_NO_SLOT);
        hw_toe_trace_no_slot(toe, ends);
        toe->unslotted = id;
        return;
    }
    conn->state = TOE_SLOT_ASKED;
    *hw_toe_follow_of(toe, conn) = (struct hw_toe_follow){0};
    conn->local = ends->local;
    conn->remote = ends->remote;
    conn->local_port = ends->local_port;
    conn->remote_port = ends->remote_port;
    conn->path = toe->rx_path;
    conn->has_path = true;
    toe->state.paths[conn->path].refs++;
    conn->asked_due = true;
    conn_rename(toe, conn, id);
    hw_toe_conn_due(toe, conn);
}

static void note_established(void *ctx, uint32_t id, uint32_t asked)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, asked);

    if (conn != NULL) {
        conn_rename(toe, conn, id);
        conn->state = TOE_SLOT_OPEN;
        conn->established_due = true;
        hw_toe_conn_due(toe, conn);
        hw_toe_trace_opened(toe, conn);
    }
}

/* In the ring, they may wrap. */
void hw_toe_put_bytes(struct hw_toe *toe, struct hw_toe_conn *conn,
                      const uint8_t *data, uint32_t len)
{
    uint32_t size = hw_toe_ring_bytes(toe);

    if (!conn->is_lost && hw_toe_is_followed(toe, conn)) {
        uint32_t taken = hw_toe_follow_take(toe, conn, data, len);

        data += taken;
        len -= taken;
    }
    while (!conn->is_lost && len != 0) {
        uint32_t at = (uint32_t)conn->received & (size - 1);
        uint32_t part = MIN(len, size - at);
        uint8_t *to = toe->env.dma_write(toe->env.ctx, conn->ring + at, part);

        if (to == NULL) {
            hw_toe_conn_lose(toe, conn);
            return;
        }
        memcpy(to, data, part);
        conn->received += part;
        data += part;
        len -= part;
        if (conn->is_rdma || conn->is_deaf) {
            hw_toe_rdma_due(toe, conn);
        } else {
            hw_toe_conn_due(toe, conn);
        }
    }
}

static void take_bytes(void *ctx, uint32_t id, const uint8_t *data,
                       uint32_t len)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);

    if (conn == NULL || conn->is_lost) {
        return;
    }
    if (hw_toe_tls_receives(toe, conn)) {
        hw_toe_tls_take(toe, conn, data, len);
    } else {
        hw_toe_put_bytes(toe, conn, data, len);
    }
}

/* The bytes to send that net/tcp asks for. */
struct wanted {
    uint64_t begin;  /* where the next piece of a SEND begins in the stream */
    uint64_t offset; /* of the first byte that was not found yet */
    uint32_t len_bytes;       /* that were not found yet */
    unsigned int count;       /* of `pieces` */
    struct tcp_piece *pieces; /* what was found */
};

/* Find those of them that a SEND has.  @return false when a word is lost */
static bool find_sent(struct hw_toe *toe, const struct hw_toe_send *send,
                      struct wanted *wanted)
{
    if (wanted->offset - wanted->begin >= send->len_bytes) {
        wanted->begin += send->len_bytes;
        return true;
    }
    for (unsigned int i = 0; i < send->count && wanted->len_bytes != 0 &&
                             wanted->count < TCP_PIECES_MAX;
         i++) {
        const struct hw_toe_piece *piece = &send->pieces[i];
        uint64_t skip = wanted->offset - wanted->begin;
        struct tcp_piece *found = &wanted->pieces[wanted->count];
        uint32_t part;

        wanted->begin += piece->len_bytes;
        if (skip >= piece->len_bytes) {
            continue;
        }
        part = MIN(wanted->len_bytes, piece->len_bytes - (uint32_t)skip);
        found->data = toe->env.dma(toe->env.ctx, piece->addr + skip, part);
        found->len_bytes = part;
        if (found->data == NULL) {
            return false;
        }
        wanted->count++;
        wanted->offset += part;
        wanted->len_bytes -= part;
    }
    return true;
}

static unsigned int find_bytes(void *ctx, uint32_t id, uint64_t offset,
                               uint32_t len, struct tcp_piece *pieces)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);
    struct wanted wanted = {
        .offset = offset, .len_bytes = len, .pieces = pieces};

    if (conn == NULL || conn->is_lost || offset < conn->send_offset) {
        return 0;
    }
    if (offset >= conn->send_end && hw_toe_tls_sends(toe, conn)) {
        return hw_toe_tls_fetch(toe, conn, offset, len, pieces);
    }
    if (offset >= conn->send_end) {
        return hw_toe_rdma_fetch(toe, conn, offset - conn->send_end, len,
                                 pieces);
    }
    wanted.begin = conn->send_offset;
    for (unsigned int i = 0;
         i < conn->send_count && wanted.len_bytes != 0 &&
         wanted.count < TCP_PIECES_MAX && !hw_toe_send_at(conn, i)->is_tls;
         i++) {
        if (!find_sent(toe, hw_toe_send_at(conn, i), &wanted)) {
            hw_toe_conn_lose(toe, conn);
            return 0;
        }
    }
    return wanted.count;
}

static bool has_lost(void *ctx, uint32_t id)
{
    const struct hw_toe_conn *conn = hw_toe_conn_of(ctx, id);

    return conn != NULL && conn->is_lost;
}

static void note_finished(void *ctx, uint32_t id)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);

    if (conn != NULL) {
        conn->is_finished = true;
        conn->finished_due = hw_toe_tls_finished(toe, conn);
        hw_toe_conn_due(toe, conn);
        if (conn->is_rdma) {
            conn->tell_finished = true;
            hw_toe_rdma_due(toe, conn);
        }
    }
}

static void note_acked(void *ctx, uint32_t id, uint32_t len)
{
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);
    uint64_t before;
    uint64_t end;

    if (conn == NULL) {
        return;
    }
    before = MAX(conn->acked, conn->send_end);
    conn->acked += len;
    if (conn->acked > before && conn->is_rdma) {
        toe->rdma.acked(toe->rdma.ctx, conn->qp_slot,
                        (uint32_t)(conn->acked - before));
    }
    end = conn->send_offset;
    for (unsigned int i = 0;
         i < conn->send_count && !hw_toe_send_at(conn, i)->is_tls; i++) {
        end += hw_toe_send_at(conn, i)->len_bytes;
        if (end <= MIN(conn->acked, conn->send_end) && i >= conn->sends_done) {
            conn->sends_done = (uint8_t)(i + 1);
            hw_toe_conn_due(toe, conn);
        }
    }
    hw_toe_tls_acked(toe, conn);
}

static struct tcp_ends ends_of(const struct hw_toe_conn *conn)
{
    return (struct tcp_ends){.local = conn->local,
                             .remote = conn->remote,
                             .local_port = conn->local_port,
                             .remote_port = conn->remote_port};
}

/* net/tcp has ended a connection by itself.  Its RST may wait for room, and may
 * have found no place. */
static void note_rst(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    const struct tcp_ends ends = ends_of(conn);

    conn->rst_due = tcp_answer_waits(toe->tcp, &ends);
    conn->rst_lost |= conn->abort_due && !conn->rst_due;
    if (conn->rst_due) {
        toe->has_rst_due = true;
        if (!conn->abort_due) {
            toe->late_us[hw_toe_slot(toe, conn)] =
                hw_toe_now_us(toe) + HW_TOE_RST_US;
        }
    }
}

static void note_ended(void *ctx, uint32_t id, enum tcp_end end)
{
    static const uint8_t ends[TCP_ENDS] = {
        [TCP_END_CLOSED] = TOE_END_CLOSED,
        [TCP_END_ABORTED] = TOE_END_ABORTED,
        [TCP_END_RESET] = TOE_END_RESET,
        [TCP_END_REFUSED] = TOE_END_REFUSED,
        [TCP_END_TIMED_OUT] = TOE_END_TIMED_OUT,
        [TCP_END_UNREACHABLE] = TOE_END_UNREACHABLE,
    };
    struct hw_toe *toe = ctx;
    struct hw_toe_conn *conn = hw_toe_conn_of(toe, id);

    if (conn == NULL) {
        return;
    }
    if (end == TCP_END_ABORTED || end == TCP_END_TIMED_OUT) {
        note_rst(toe, conn);
    }
    hw_toe_conn_end(toe, conn, (enum toe_end)ends[end]);
}

static bool note_room(void *ctx, uint32_t route)
{
    return hw_toe_path_has_room(ctx, route);
}

struct tcp_user hw_toe_user(struct hw_toe *toe)
{
    return (struct tcp_user){
        .ctx = toe,
        .send = hw_toe_send_segment,
        .has_room = note_room,
        .fetch = find_bytes,
        .asked = note_asked,
        .established = note_established,
        .deliver = take_bytes,
        .has_lost = has_lost,
        .finished = note_finished,
        .acked = note_acked,
        .ended = note_ended,
        .note = hw_toe_trace_note,
    };
}

/* ---- Ends with a RST. */

void hw_toe_want_abort(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    if (!conn->abort_due) {
        conn->abort_due = toe->has_abort_due = true;
        toe->late_us[hw_toe_slot(toe, conn)] =
            hw_toe_now_us(toe) + HW_TOE_RST_US;
    }
}

/* @return false when the RST waits for room */
static bool conn_abort(struct hw_toe *toe, struct hw_toe_conn *conn,
                       uint64_t now_us)
{
    conn->abort_due = false;
    if (!tcp_abort_now(toe->tcp, conn->id, now_us)) {
        if (now_us < toe->late_us[hw_toe_slot(toe, conn)]) {
            conn->abort_due = true;
            return false;
        }
        conn->rst_lost = true;
        tcp_abandon(toe->tcp, conn->id, now_us);
    }
    ASSERT(conn->state == TOE_SLOT_ENDED);
    return true;
}

bool hw_toe_abort_some(struct hw_toe *toe, bool waited)
{
    uint64_t now_us = hw_toe_now_us(toe);
    uint64_t new_us = toe->run_us + HW_TOE_RST_US; /* begun in this run */
    unsigned int done = 0;
    bool waits = false;

    for (unsigned int i = 0; toe->has_abort_due && i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if (!conn->abort_due) {
            continue;
        }
        if (done == ABORTS_A_RUN) {
            return true;
        }
        if (waited && toe->late_us[i] >= new_us) {
            waits = true;
        } else if (conn_abort(toe, conn, now_us)) {
            done++;
        } else {
            waits = true;
        }
    }
    toe->has_abort_due = waits;
    return false;
}

/* @return whether the RST of a connection that has ended still waits */
static bool conn_rst_waits(const struct hw_toe *toe,
                           const struct hw_toe_conn *conn)
{
    const struct tcp_ends ends = ends_of(conn);

    return tcp_answer_waits(toe->tcp, &ends);
}

void hw_toe_release_ends(struct hw_toe *toe, bool all)
{
    uint64_t now_us = hw_toe_now_us(toe);
    bool has_more = false;

    for (unsigned int i = 0; toe->has_rst_due && i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];
        bool waits;

        if (!conn->rst_due) {
            continue;
        }
        waits = all || conn_rst_waits(toe, conn);
        if (all || !waits || now_us >= toe->late_us[i]) {
            conn->rst_due = false;
            conn->rst_lost = waits;
            hw_toe_conn_due(toe, conn);
        } else {
            has_more = true;
        }
    }
    toe->has_rst_due = has_more;
}

uint64_t hw_toe_late_us(const struct hw_toe *toe)
{
    uint64_t late_us = UINT64_MAX;

    if (!toe->has_abort_due && !toe->has_rst_due) {
        return UINT64_MAX;
    }
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        const struct hw_toe_conn *conn = &toe->state.conns[i];

        if (conn->abort_due || conn->rst_due) {
            late_us = MIN(late_us, toe->late_us[i]);
        }
    }
    return late_us;
}

void hw_toe_settle(struct hw_toe *toe)
{
    uint64_t now_us = hw_toe_now_us(toe);

    if (toe->unslotted != TCP_NO_ID) {
        tcp_refuse(toe->tcp, toe->unslotted, now_us);
        toe->unslotted = TCP_NO_ID;
    }
    hw_toe_rdma_settle(toe);
    if (!toe->has_lost) {
        return;
    }
    toe->has_lost = false;
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if (conn->is_lost && conn->id != TCP_NO_ID) {
            hw_toe_want_abort(toe, conn);
            (void)conn_abort(toe, conn, now_us); /* before the next ACK */
        }
    }
}
