/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose records the TCP offload engine opens and seals.
 * Reference: docs/hardware/toe.md, section 4.3.
 *
 * What was sealed is kept until the peer has acknowledged it, so that it is
 * never sealed twice: a retransmission has the same bytes, whatever has become
 * of the memory that firmware has named.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

#include "lib/wipe.h"

/* A record with data has as much content, or all that is left of its SEND. */
enum { CONTENT_MIN = 4096 };

/* The smallest ring: the longest record, of which bytes are missing, and a
 * capsule before it (data and header: less than twice TOE_CAPSULE_MAX). */
enum { RECORD_RING_MIN = 1 << TOE_RECORD_RING_LOG2_MIN };

_Static_assert((int)RECORD_RING_MIN >= (int)RECORD_HEADER_LEN +
                                           (int)RECORD_CIPHER_MAX +
                                           2 * (int)TOE_CAPSULE_MAX,
               "the longest record has room");

_Static_assert((int)RECORDS_RX_LEN == 1 << TOE_RECORD_RING_LOG2_MAX,
               "the whole window has room");
_Static_assert((int)RECORD_KEY_MAX == (int)TOE_KEY_MAX &&
                   (int)RECORD_IV_LEN == (int)TOE_KEY_IV_LEN &&
                   TOE_KEY_BYTES + TOE_KEY_MAX <= TOE_KEY_IV &&
                   TOE_KEY_HELD + 4 <= TOE_CMD_LEN,
               "a key fits into its command");

void hw_toe_tls_reset(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        hw_toe_tls_end(toe, &toe->state.conns[i]);
    }
}

void hw_toe_tls_end(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    if (tls != NULL) {
        wipe_bytes(tls, sizeof(*tls));
        wipe_bytes(toe->record, sizeof(toe->record));
        toe->tls_of[hw_toe_slot(toe, conn)] = 0;
    }
}

bool hw_toe_tls_receives(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    const struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    return tls != NULL && tls->rx.half.is_on;
}

bool hw_toe_tls_sends(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    const struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    return tls != NULL && tls->tx.half.is_on;
}

/* ---- Received. */

struct target {
    struct hw_toe *toe;
    struct hw_toe_conn *conn;
};

static void deliver_content(void *ctx, const uint8_t *data, uint32_t len)
{
    const struct target *to = ctx;

    hw_toe_put_bytes(to->toe, to->conn, data, len);
}

static void consume_rest(void *ctx, uint32_t len)
{
    const struct target *to = ctx;
    struct hw_toe_follow *follow = hw_toe_follow_of(to->toe, to->conn);

    follow->consumed += len;
    follow->absent += len;
    hw_toe_rdma_due(to->toe, to->conn); /* hw_toe_follow_settle() */
}

static void take_stream(struct hw_toe *toe, struct hw_toe_conn *conn,
                        const uint8_t *data, uint32_t len)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);
    struct target to = {toe, conn};
    const struct records_sink sink = {&to, deliver_content, consume_rest};
    bool was_stopped = tls->rx.is_held || tls->rx.alert != RECORD_FINE;

    records_take(&tls->rx, toe->aead, &sink, data, len);
    if (!was_stopped && (tls->rx.is_held || tls->rx.alert != RECORD_FINE)) {
        tls->note_due = true;
        hw_toe_conn_due(toe, conn);
    }
}

void hw_toe_tls_take(struct hw_toe *toe, struct hw_toe_conn *conn,
                     const uint8_t *data, uint32_t len)
{
    take_stream(toe, conn, data, len);
}

bool hw_toe_tls_finished(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    if (tls != NULL && tls->rx.is_held) {
        tls->finished_waits = true;
        return false;
    }
    return true;
}

/* ---- Sent. */

static struct hw_toe_send *first_unsealed(struct hw_toe_conn *conn)
{
    for (unsigned int i = conn->sends_done; i < conn->send_count; i++) {
        struct hw_toe_send *send = hw_toe_send_at(conn, i);

        if (send->is_tls && !send->is_sealed) {
            return send;
        }
    }
    return NULL;
}

static uint8_t count_unsealed(struct hw_toe_conn *conn)
{
    uint8_t count = 0;

    for (unsigned int i = conn->sends_done; i < conn->send_count; i++) {
        const struct hw_toe_send *send = hw_toe_send_at(conn, i);

        count = (uint8_t)(count + (send->is_tls && !send->is_sealed));
    }
    return count;
}

static void begin_sending(struct hw_toe *toe, struct hw_toe_tls *tls)
{
    const struct hw_toe_tls_next *next = &tls->next;

    record_half_begin(&tls->tx.half, toe->aead, next->bytes, next->len_bytes,
                      next->iv, next->sequence);
    wipe_bytes(&tls->next, sizeof(tls->next));
}

/* Copy bytes of a SEND.  @return false when a word is lost */
static bool gather_bytes(struct hw_toe *toe, const struct hw_toe_send *send,
                         uint32_t skip, uint8_t *to, uint32_t len)
{
    for (unsigned int i = 0; len != 0; i++) {
        const struct hw_toe_piece *piece = &send->pieces[i];
        uint32_t part;
        const uint8_t *from;

        if (skip >= piece->len_bytes) {
            skip -= piece->len_bytes;
            continue;
        }
        part = MIN(len, piece->len_bytes - skip);
        from = toe->env.dma(toe->env.ctx, piece->addr + skip, part);
        if (from == NULL) {
            return false;
        }
        memcpy(to, from, part);
        to += part;
        len -= part;
        skip = 0;
    }
    return true;
}

/* Make one record.  @return false when nothing more can be done now */
static bool seal_record(struct hw_toe *toe, struct hw_toe_conn *conn,
                        struct hw_toe_tls *tls, struct hw_toe_send *send)
{
    uint32_t left = send->len_bytes - tls->send_done;
    uint32_t room = records_room(&tls->tx);
    uint32_t least =
        send->record != 0 ? left : MIN(left, (uint32_t)CONTENT_MIN);
    uint32_t len = MIN(MIN(left, room), (uint32_t)RECORD_PLAIN_MAX);
    uint64_t before = tls->tx.made;

    if (room < least) {
        return false;
    }
    if (record_half_is_spent(&tls->tx.half)) {
        hw_toe_want_abort(toe, conn);
        return false;
    }
    if (!gather_bytes(toe, send, tls->send_done,
                      toe->record + RECORD_HEADER_LEN, len)) {
        hw_toe_conn_lose(toe, conn);
        return false;
    }
    records_seal(&tls->tx, toe->aead,
                 send->record != 0 ? (enum record_type)send->record
                                   : RECORD_DATA,
                 toe->record, len);
    if (!tcp_send(toe->tcp, conn->id, (uint32_t)(tls->tx.made - before),
                  hw_toe_now_us(toe))) {
        hw_toe_want_abort(toe, conn);
        return false;
    }
    tls->send_done += len;
    if (tls->send_done == send->len_bytes) {
        tls->send_done = 0;
        send->is_sealed = true;
        if (tls->next.is_there && --tls->next.after == 0) {
            begin_sending(toe, tls);
        }
    }
    return true;
}

void hw_toe_tls_settle(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);
    struct hw_toe_send *send = NULL;

    if (tls == NULL || conn->is_lost || conn->abort_due) {
        return;
    }
    while ((send = first_unsealed(conn)) != NULL &&
           seal_record(toe, conn, tls, send)) {
    }
    while (conn->sends_done < conn->send_count &&
           hw_toe_send_at(conn, conn->sends_done)->is_sealed) {
        conn->sends_done++;
        hw_toe_conn_due(toe, conn);
    }
    if (tls->close_waits && send == NULL) {
        tls->close_waits = false;
        tcp_close(toe->tcp, conn->id, hw_toe_now_us(toe));
    }
}

bool hw_toe_tls_close(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    if (tls == NULL) {
        return false;
    }
    tls->close_waits = true;
    hw_toe_rdma_due(toe, conn);
    return true;
}

unsigned int hw_toe_tls_fetch(struct hw_toe *toe,
                              const struct hw_toe_conn *conn, uint64_t offset,
                              uint32_t len, struct tcp_piece *pieces)
{
    const struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);
    uint32_t at = (uint32_t)((offset - tls->tx_base) % RECORDS_TX_LEN);
    uint32_t part = MIN(len, (uint32_t)RECORDS_TX_LEN - at);

    ASSERT(offset - tls->tx_base + len <= tls->tx.made &&
           offset - tls->tx_base >= tls->tx.acked);
    pieces[0] = (struct tcp_piece){tls->tx.bytes + at, part};
    pieces[1] = (struct tcp_piece){tls->tx.bytes, len - part};
    return part == len ? 1 : 2;
}

void hw_toe_tls_acked(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);

    if (tls != NULL && tls->tx.half.is_on) {
        if (conn->acked > tls->tx_base) {
            tls->tx.acked = conn->acked - tls->tx_base;
        }
        hw_toe_rdma_due(toe, conn); /* hw_toe_tls_settle() */
    }
}

/* ---- Keys. */

/* @return the records of a connection; NULL: there is no room */
static struct hw_toe_tls *tls_get(struct hw_toe *toe,
                                  const struct hw_toe_conn *conn)
{
    bool is_used[HW_TOE_TLS] = {false};

    if (hw_toe_tls_of(toe, conn) != NULL) {
        return hw_toe_tls_of(toe, conn);
    }
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        if (toe->tls_of[i] != 0) {
            is_used[toe->tls_of[i] - 1] = true;
        }
    }
    for (unsigned int i = 0; i < HW_TOE_TLS; i++) {
        if (!is_used[i]) {
            toe->tls_of[hw_toe_slot(toe, conn)] = (uint8_t)(i + 1);
            memset(&toe->tls[i], 0, sizeof(toe->tls[i]));
            toe->tls[i].rx.alert = RECORD_FINE;
            return &toe->tls[i];
        }
    }
    return NULL;
}

/* Bytes that are in the ring already are records.  Their content begins at the
 * beginning of the ring again, where bytes that wrap around are: no record is
 * opened before all of them are out of the ring. */
static bool take_back(struct hw_toe *toe, struct hw_toe_conn *conn)
{
    uint32_t size = hw_toe_ring_bytes(toe);
    uint64_t at = conn->credited;
    uint64_t end = conn->received;

    hw_toe_follow_of(toe, conn)->absent += conn->credited;
    conn->received = conn->reported = conn->credited = 0;
    while (at != end) {
        uint32_t offset = (uint32_t)at & (size - 1);
        uint32_t len = MIN((uint32_t)(end - at), size - offset);
        const uint8_t *from =
            toe->env.dma(toe->env.ctx, conn->ring + offset, len);

        if (from == NULL) {
            return false;
        }
        at += len;
        if (at != end) {
            records_keep(&hw_toe_tls_of(toe, conn)->rx, from, len);
        } else {
            take_stream(toe, conn, from, len);
        }
    }
    return true;
}

static enum toe_status begin_receiving(struct hw_toe *toe,
                                       struct hw_toe_conn *conn,
                                       const uint8_t *cmd)
{
    struct hw_toe_tls *tls = hw_toe_tls_of(toe, conn);
    bool is_first = tls == NULL || !tls->rx.half.is_on;
    struct target to = {toe, conn};
    const struct records_sink sink = {&to, deliver_content, consume_rest};

    if (is_first ? hw_toe_is_followed(toe, conn) ||
                       conn->reported != conn->received ||
                       conn->received - conn->credited !=
                           get_le32(cmd + TOE_KEY_HELD)
                 : !tls->rx.is_held || tls->note_due ||
                       tls->rx.alert != RECORD_FINE) {
        return TOE_BAD_STATE;
    }
    tls = tls_get(toe, conn);
    if (tls == NULL) {
        return TOE_NO_ROOM;
    }
    record_half_begin(&tls->rx.half, toe->aead, cmd + TOE_KEY_BYTES,
                      cmd[TOE_KEY_LENGTH], cmd + TOE_KEY_IV,
                      get_le64(cmd + TOE_KEY_SEQUENCE));
    if (is_first) {
        if (!take_back(toe, conn)) {
            hw_toe_conn_lose(toe, conn);
        }
        return TOE_OK;
    }
    records_resume(&tls->rx, toe->aead, &sink);
    tls->note_due = tls->rx.is_held || tls->rx.alert != RECORD_FINE;
    if (tls->finished_waits && !tls->rx.is_held) {
        tls->finished_waits = false;
        conn->finished_due = true;
    }
    hw_toe_conn_due(toe, conn);
    return TOE_OK;
}

static enum toe_status set_sending(struct hw_toe *toe, struct hw_toe_conn *conn,
                                   const uint8_t *cmd)
{
    struct hw_toe_tls *tls = tls_get(toe, conn);

    if (tls == NULL) {
        return TOE_NO_ROOM;
    }
    if (tls->next.is_there) {
        return TOE_BAD_STATE;
    }
    if (!tls->tx.half.is_on) {
        tls->tx_base = conn->send_end;
    }
    tls->next = (struct hw_toe_tls_next){
        .is_there = true,
        .after = count_unsealed(conn),
        .len_bytes = cmd[TOE_KEY_LENGTH],
        .sequence = get_le64(cmd + TOE_KEY_SEQUENCE),
    };
    memcpy(tls->next.bytes, cmd + TOE_KEY_BYTES, RECORD_KEY_MAX);
    memcpy(tls->next.iv, cmd + TOE_KEY_IV, RECORD_IV_LEN);
    if (tls->next.after == 0) {
        begin_sending(toe, tls);
    }
    return TOE_OK;
}

enum toe_status hw_toe_key_run(struct hw_toe *toe, struct hw_toe_conn *conn,
                               const uint8_t *cmd)
{
    uint8_t len = cmd[TOE_KEY_LENGTH];

    if (toe->aead == NULL) {
        return TOE_BAD_OPCODE;
    }
    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state == TOE_SLOT_ENDED) {
        return TOE_ENDED;
    }
    if (conn->state != TOE_SLOT_OPEN || conn->is_rdma || conn->is_deaf ||
        conn->has_close || conn->abort_due || conn->is_lost) {
        return TOE_BAD_STATE;
    }
    if ((len != 16 && len != 32) ||
        (cmd[TOE_KEY_FLAGS] & ~TOE_KEY_RECEIVES) != 0 ||
        hw_toe_ring_bytes(toe) < RECORD_RING_MIN ||
        hw_toe_ring_bytes(toe) > RECORDS_RX_LEN) {
        return TOE_BAD_ARGUMENT;
    }
    return (cmd[TOE_KEY_FLAGS] & TOE_KEY_RECEIVES) != 0
               ? begin_receiving(toe, conn, cmd)
               : set_sending(toe, conn, cmd);
}
