/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of one connection, and how it ends. */
#include <string.h>

#include "firmware/tcp/tls_socket.h"
#include "lib/bytes.h"

enum {
    CREDIT_MIN = NVME_TCP_RING_LEN / 4,
    RECORD_COST = 512, /* bytes that take as long as an empty record */
};

static bool has_room(const struct tls_socket *socket)
{
    return toe_room(socket->config.toe) > socket->config.commands_left;
}

/* ---- Records that are sent. */

static uint8_t *free_slot(const struct tls_conn *conn)
{
    return (uint16_t)(conn->made - conn->sent) == TLS_TX_SLOTS
               ? NULL
               : conn->slots + conn->made % TLS_TX_SLOTS * TLS_TX_SLOT_LEN;
}

static void add_slot(struct tls_conn *conn, uint32_t len_bytes)
{
    conn->slot_len[conn->made % TLS_TX_SLOTS] = (uint16_t)len_bytes;
    conn->made++;
}

bool tls_conn_put(struct tls_conn *conn, const uint8_t *record,
                  uint16_t len_bytes)
{
    uint8_t *slot = free_slot(conn);

    if (slot == NULL) {
        return false;
    }
    memcpy(slot, record, len_bytes);
    add_slot(conn, len_bytes);
    return true;
}

/* Bytes that wait to be encrypted, at most those of a record. */
static uint32_t waiting_bytes(const struct tls_conn *conn)
{
    uint32_t len = 0;

    for (uint16_t i = conn->span_tail; i != conn->span_head; i++) {
        len += conn->spans[i % NVME_TCP_SPANS].len_bytes;
        if (len >= TLS_TX_CONTENT) {
            return TLS_TX_CONTENT;
        }
    }
    return len;
}

/* Make a record of what waits.  @return how many calls of send() are complete
 */
static unsigned int seal_spans(struct tls_socket *socket, struct tls_conn *conn,
                               uint8_t *slot, uint32_t len)
{
    const struct tls_crypto *crypto = socket->config.crypto;
    uint8_t *at = slot + TLS_HEADER_LEN;
    unsigned int ended = 0;

    tls_seal_begin(&conn->sends, crypto, len, slot);
    for (uint32_t left = len; left != 0;) {
        struct tls_span *span = &conn->spans[conn->span_tail % NVME_TCP_SPANS];
        uint32_t part = MIN(span->len_bytes, left);

        crypto->aead_add(&conn->sends.aead, span->data, at, part);
        span->data += part;
        span->len_bytes -= part;
        at += part;
        left -= part;
        if (span->len_bytes == 0) {
            conn->span_tail++;
            ended += span->ends_send;
        }
    }
    tls_seal_end(&conn->sends, crypto, TLS_TYPE_DATA, at);
    add_slot(conn, TLS_HEADER_LEN + len + TLS_OVERHEAD);
    tls_note_work(socket, len);
    return ended;
}

/* Nothing is sent after an alert: NVMe/TCP gets its memory back. */
static void drop_spans(struct tls_socket *socket, struct tls_conn *conn)
{
    while (conn->state == TLS_CONN_OPEN && conn->has_goodbye &&
           conn->nvme_sends == 0 && conn->span_tail != conn->span_head) {
        const struct tls_span *span =
            &conn->spans[conn->span_tail++ % NVME_TCP_SPANS];

        if (span->ends_send) {
            nvme_tcp_sent(socket->config.nvme->config.tcp, conn->nvme, false);
        }
    }
}

static bool make_records(struct tls_socket *socket, struct tls_conn *conn)
{
    bool any = false;
    uint8_t *slot;
    uint32_t len;

    while (conn->state == TLS_CONN_OPEN && conn->engine == TLS_ENGINE_NONE &&
           !conn->has_ended && !conn->has_goodbye && !conn->wants_update &&
           socket->bytes_left != 0 && (slot = free_slot(conn)) != NULL &&
           (len = waiting_bytes(conn)) != 0) {
        unsigned int ended;

        if (tls_half_is_spent(&conn->sends)) {
            conn->wants_abort = true;
            break;
        }
        ended = seal_spans(socket, conn, slot, len);
        any = true;
        while (ended-- != 0 && conn->state == TLS_CONN_OPEN) {
            nvme_tcp_sent(socket->config.nvme->config.tcp, conn->nvme, true);
        }
    }
    return any;
}

static bool give_records(struct tls_socket *socket, struct tls_conn *conn)
{
    bool any = false;

    while (conn->given != conn->made && !conn->has_ended && !conn->was_closed &&
           !conn->was_aborted && has_room(socket) &&
           toe_send(socket->config.toe, conn->tid,
                    conn->slots + conn->given % TLS_TX_SLOTS * TLS_TX_SLOT_LEN,
                    conn->slot_len[conn->given % TLS_TX_SLOTS], 0)) {
        conn->given++;
        any = true;
    }
    conn->needs_step |= conn->given != conn->made && !has_room(socket);
    return any;
}

bool tls_conn_say(struct tls_socket *socket, struct tls_conn *conn,
                  enum tls_type type, const uint8_t *message, uint32_t len)
{
    uint8_t *slot = free_slot(conn);

    if (conn->engine != TLS_ENGINE_NONE) {
        return tls_engine_say(socket, conn, type, message, len);
    }
    if (slot == NULL || tls_half_is_spent(&conn->sends)) {
        return false;
    }
    add_slot(conn, (uint32_t)tls_seal(&conn->sends, socket->config.crypto, type,
                                      message, len, slot));
    return true;
}

bool tls_conn_say_goodbye(struct tls_socket *socket, struct tls_conn *conn,
                          enum tls_alert alert)
{
    const uint8_t message[TLS_ALERT_LEN] = {alert == TLS_ALERT_CLOSE ? 1 : 2,
                                            (uint8_t)alert};

    conn->has_goodbye =
        tls_conn_say(socket, conn, TLS_TYPE_ALERT, message, TLS_ALERT_LEN);
    return conn->has_goodbye;
}

/* ---- Records that come. */

static void copy_ring(const struct tls_conn *conn, uint32_t from, uint8_t *to,
                      uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        to[i] = conn->ring[(from + i) % NVME_TCP_RING_LEN];
    }
}

static void skip_bytes(struct tls_conn *conn, uint32_t len)
{
    conn->read += len;
    conn->credit_due += len;
}

/* What the peer sent is not allowed.  NVMe/TCP learns that nothing more comes,
 * and closes.  After CLOSE nothing counts: a RST could destroy what the peer
 * has not read yet. */
void tls_conn_refuse(struct tls_socket *socket, struct tls_conn *conn,
                     enum tls_alert alert)
{
    if (conn->was_closed) {
        /* It has said all it had to say, and NVMe/TCP limits the time. */
        conn->has_fin = true;
        return;
    }
    socket->counters[TLS_COUNT_BAD]++;
    if (!tls_conn_say_goodbye(socket, conn, alert)) {
        conn->wants_abort = true;
    }
    conn->has_fin = true;
    skip_bytes(conn, conn->received - conn->read);
}

/* Decrypt from one ring into the other.  @return whether it is authentic */
static bool open_record(struct tls_socket *socket, struct tls_conn *conn,
                        const uint8_t *header, uint32_t inner)
{
    const struct tls_crypto *crypto = socket->config.crypto;
    uint32_t from = conn->read + TLS_HEADER_LEN;
    uint32_t to = conn->delivered;
    uint8_t tag[TLS_TAG_LEN];

    tls_open_begin(&conn->receives, crypto, header);
    copy_ring(conn, from + inner, tag, TLS_TAG_LEN);
    for (uint32_t left = inner; left != 0;) {
        uint32_t from_at = from % NVME_TCP_RING_LEN;
        uint32_t to_at = to % NVME_TCP_RING_LEN;
        uint32_t part = MIN(left, NVME_TCP_RING_LEN - MAX(from_at, to_at));

        crypto->aead_add(&conn->receives.aead, conn->ring + from_at,
                         conn->plain_ring + to_at, part);
        from += part;
        to += part;
        left -= part;
    }
    tls_note_work(socket, inner + RECORD_COST);
    return tls_open_end(&conn->receives, crypto, tag);
}

/* The last byte of a record that is not padding is its type.
 * @return the length of the content; the type is 0 if there is none */
static uint32_t find_type(const struct tls_conn *conn, uint32_t inner,
                          uint8_t *type)
{
    *type = 0;
    while (inner != 0 && *type == 0) {
        inner--;
        *type = conn->plain_ring[(conn->delivered + inner) % NVME_TCP_RING_LEN];
    }
    return inner;
}

static void take_alert(struct tls_socket *socket, struct tls_conn *conn,
                       uint32_t len)
{
    uint8_t what = conn->plain_ring[(conn->delivered + 1) % NVME_TCP_RING_LEN];

    if (len != TLS_ALERT_LEN) {
        tls_conn_refuse(socket, conn,
                        len == 0 ? TLS_ALERT_UNEXPECTED : TLS_ALERT_DECODE);
        return;
    }
    if (what != TLS_ALERT_CLOSE) {
        conn->wants_abort = true;
    }
    conn->has_fin = true; /* nothing that follows counts */
    skip_bytes(conn, conn->received - conn->read);
}

static void take_handshake(struct tls_socket *socket, struct tls_conn *conn,
                           uint32_t len)
{
    uint8_t message[8] = {0};

    for (uint32_t i = 0; i < MIN(len, (uint32_t)sizeof(message)); i++) {
        message[i] =
            conn->plain_ring[(conn->delivered + i) % NVME_TCP_RING_LEN];
    }
    tls_update_take(socket, conn, message, len);
}

static void take_content(struct tls_socket *socket, struct tls_conn *conn,
                         uint32_t inner)
{
    uint8_t type;
    uint32_t len = find_type(conn, inner, &type);

    if (len > TLS_PLAIN_MAX) {
        tls_conn_refuse(socket, conn, TLS_ALERT_OVERFLOW);
    } else if (type == TLS_TYPE_ALERT) {
        take_alert(socket, conn, len);
    } else if (type == TLS_TYPE_HANDSHAKE) {
        take_handshake(socket, conn, len);
    } else if (type != TLS_TYPE_DATA) {
        tls_conn_refuse(socket, conn, TLS_ALERT_UNEXPECTED);
    } else if (len != 0) {
        conn->delivered += len;
        nvme_tcp_received(socket->config.nvme->config.tcp, conn->nvme, len);
    }
}

/* @return whether a record was taken */
static bool take_record(struct tls_socket *socket, struct tls_conn *conn)
{
    uint32_t available = conn->received - conn->read;
    uint8_t bytes[TLS_HEADER_LEN];
    struct tls_header header;
    enum tls_alert alert;
    uint32_t inner;

    if (available < TLS_HEADER_LEN) {
        return false;
    }
    copy_ring(conn, conn->read, bytes, sizeof(bytes));
    alert = tls_header_parse(&header, bytes);
    if (alert == TLS_ALERT_NONE && header.type != TLS_TYPE_DATA) {
        alert = TLS_ALERT_UNEXPECTED;
    } else if (alert == TLS_ALERT_NONE && header.len_bytes < TLS_OVERHEAD) {
        alert = TLS_ALERT_BAD_MAC;
    }
    if (alert != TLS_ALERT_NONE) {
        tls_conn_refuse(socket, conn, alert);
        return true;
    }
    inner = header.len_bytes - (uint32_t)TLS_TAG_LEN;
    if (available < TLS_HEADER_LEN + (uint32_t)header.len_bytes ||
        inner > NVME_TCP_RING_LEN - (conn->delivered - conn->credited)) {
        return false;
    }
    if (tls_half_is_spent(&conn->receives)) {
        conn->wants_abort = true;
        return false;
    }
    if (!open_record(socket, conn, bytes, inner)) {
        tls_conn_refuse(socket, conn, TLS_ALERT_BAD_MAC);
        return true;
    }
    skip_bytes(conn, TLS_HEADER_LEN + (uint32_t)header.len_bytes);
    take_content(socket, conn, inner);
    return true;
}

static bool take_records(struct tls_socket *socket, struct tls_conn *conn)
{
    bool any = false;

    while (conn->state == TLS_CONN_OPEN && conn->engine == TLS_ENGINE_NONE &&
           !conn->has_fin && !conn->wants_close && !conn->wants_abort &&
           !tls_update_awaits_peer(conn) && socket->bytes_left != 0 &&
           take_record(socket, conn)) {
        any = true;
    }
    /* What is left of a record that was cut off counts for nothing. */
    if (conn->engine != TLS_ENGINE_NONE) {
        return false;
    }
    if (conn->got_fin && !any && socket->bytes_left != 0 &&
        !tls_update_awaits_peer(conn) &&
        NVME_TCP_RING_LEN - (conn->delivered - conn->credited) >=
            NVME_TCP_RING_LEN / 2 + TLS_CIPHER_MAX - TLS_PLAIN_MAX) {
        conn->has_fin = true;
    }
    return any;
}

static void give_credit(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->engine == TLS_ENGINE_ON) {
        return;
    }
    if (conn->wants_close || conn->has_fin || conn->state == TLS_CONN_ENDING) {
        skip_bytes(conn, conn->received - conn->read); /* nobody reads it */
    }
    if (conn->credit_due == 0 || conn->has_ended || conn->was_aborted ||
        (conn->credit_due < CREDIT_MIN && conn->received != conn->read &&
         conn->engine == TLS_ENGINE_NONE)) {
        return;
    }
    if (has_room(socket) &&
        toe_credit(socket->config.toe, conn->tid, conn->credit_due)) {
        conn->credit_due = 0;
    } else {
        conn->needs_step = true;
    }
}

/* ---- The end. */

static void tell_finished(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state == TLS_CONN_OPEN && conn->has_fin && !conn->said_fin &&
        !conn->has_ended) {
        conn->said_fin = true;
        nvme_tcp_finished(socket->config.nvme->config.tcp, conn->nvme);
    }
}

/* Everything that is to be sent is in the engine. */
static bool is_all_given(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state == TLS_CONN_OPEN) {
        if (conn->span_tail != conn->span_head) {
            return false;
        }
        if (!conn->has_goodbye &&
            !tls_conn_say_goodbye(socket, conn, TLS_ALERT_CLOSE)) {
            return false;
        }
        (void)give_records(socket, conn);
    }
    return conn->given == conn->made;
}

static bool end_conn(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->has_ended || conn->was_aborted) {
        return false;
    }
    if (conn->wants_abort) {
        if (has_room(socket) && toe_abort(socket->config.toe, conn->tid, 0)) {
            conn->was_aborted = true;
            conn->has_abort = true;
            return true;
        }
        conn->needs_step = true;
    } else if (conn->wants_close && !conn->was_closed &&
               is_all_given(socket, conn)) {
        if (has_room(socket) && toe_close(socket->config.toe, conn->tid, 0)) {
            conn->was_closed = true;
            conn->has_close = true;
            return true;
        }
        conn->needs_step = true;
    }
    return false;
}

bool tls_conn_step(struct tls_socket *socket, struct tls_conn *conn)
{
    bool any = false;

    conn->needs_step = false;
    if (conn->state == TLS_CONN_SHAKING) {
        any |= tls_conn_shake(socket, conn);
    }
    any |= take_records(socket, conn);
    tell_finished(socket, conn);
    any |= tls_update_send(socket, conn);
    any |= make_records(socket, conn);
    drop_spans(socket, conn);
    any |= give_records(socket, conn);
    give_credit(socket, conn);
    any |= tls_engine_step(socket, conn);
    any |= end_conn(socket, conn);
    if (socket->bytes_left == 0 || any) {
        conn->needs_step = true;
    }
    return any;
}
