/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose records the TCP offload engine opens and seals: NVMe/TCP
 * uses the engine as without TLS.  The firmware has the handshake before, and
 * records that have no data.
 * Reference: docs/hardware/toe.md, section 4.3.
 */
#include <string.h>

#include "firmware/tcp/tls_socket.h"
#include "lib/bytes.h"
#include "lib/wipe.h"

enum {
    ALERT_AT = TLS_TX_SLOTS * TLS_TX_SLOT_LEN - 16, /* in the slots */
    UPDATE_AT = ALERT_AT + 8,
};

_Static_assert(TLS_TX_CONTENT + TLS_HEADER_LEN + TLS_OVERHEAD + 16 <=
                   TLS_TX_SLOT_LEN,
               "no record of the firmware has these bytes");

static bool has_room(const struct tls_socket *socket, uint32_t commands)
{
    return toe_room(socket->config.toe) >=
           socket->config.commands_left + commands;
}

/* What follows from the engine's answer to a key.  @return whether it has it */
static bool judge_key(struct tls_socket *socket, struct tls_conn *conn,
                      enum toe_status status)
{
    if (status == TOE_PENDING) {
        conn->needs_step = true;
    } else if (status != TOE_OK && status != TOE_ENDED &&
               (status != TOE_BAD_STATE || conn->engine == TLS_ENGINE_ON)) {
        /* It would answer the same again. */
        socket->counters[TLS_COUNT_REFUSED]++;
        conn->wants_abort = true;
    }
    return status == TOE_OK;
}

/* Otherwise its entry comes next: the connection has ended, or further bytes
 * have come, if these are the first keys. */
bool tls_engine_set_key(struct tls_socket *socket, struct tls_conn *conn,
                        bool receives)
{
    struct toe_key key = {
        .receives = receives,
        .held = conn->received - conn->read,
    };
    enum toe_status status;

    key.len_bytes = (uint8_t)tls_traffic_key(
        socket->config.crypto, (enum auth_hash)conn->hash,
        receives ? &conn->from_client : &conn->from_server, key.bytes, key.iv);
    status = toe_set_key(socket->config.toe, conn->tid, &key);
    wipe_bytes(&key, sizeof(key));
    return judge_key(socket, conn, status);
}

/* Whether the engine has a free context.  A connection that was displaced keeps
 * its context until its ENDED. */
static bool has_context(const struct tls_socket *socket)
{
    unsigned int used = 0;

    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        used += socket->conns[i].state == TLS_CONN_OPEN &&
                socket->conns[i].engine == TLS_ENGINE_ON &&
                !socket->conns[i].has_ended;
    }
    return used < toe_record_contexts(socket->config.toe);
}

void tls_engine_ended(struct tls_socket *socket)
{
    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        struct tls_conn *conn = &socket->conns[i];

        if (conn->state == TLS_CONN_OPEN && conn->engine == TLS_ENGINE_WANTED) {
            conn->needs_step = true;
            socket->has_work = true;
        }
    }
}

/* Give it the keys when all of the handshake is sent and given back.  It does
 * not take them when it has reported further bytes: their entry comes next. */
static bool start_engine(struct tls_socket *socket, struct tls_conn *conn)
{
    struct toe *toe = socket->config.toe;

    if (conn->has_ended || conn->wants_abort || conn->given != conn->made ||
        conn->credit_due != 0 || !has_context(socket)) {
        return false; /* or tls_engine_ended() follows */
    }
    if (!has_room(socket, 3)) {
        conn->needs_step = true;
        return false;
    }
    if (!tls_engine_set_key(socket, conn, true)) {
        return false;
    }
    conn->received = conn->read = 0;
    conn->engine = TLS_ENGINE_ON;
    conn->has_fin |= conn->got_fin;
    /* Otherwise it has ended, and its entry follows. */
    return toe_move_ring(toe, conn->tid, conn->plain_ring) &&
           tls_engine_set_key(socket, conn, false);
}

/* A record of the firmware's, and a command that follows it. */
static bool can_say(const struct tls_socket *socket,
                    const struct tls_conn *conn)
{
    return has_room(socket, 3) && tls_engine_can_send(conn) &&
           !conn->has_ended && !conn->was_closed && !conn->was_aborted;
}

bool tls_engine_say(struct tls_socket *socket, struct tls_conn *conn,
                    enum tls_type type, const uint8_t *message, uint32_t len)
{
    uint8_t *to = conn->slots + (type == TLS_TYPE_ALERT ? ALERT_AT : UPDATE_AT);

    /* The engine takes one key more while another one waits for its turn. */
    if (conn->engine != TLS_ENGINE_ON || !can_say(socket, conn) ||
        (type == TLS_TYPE_HANDSHAKE && conn->records_out != 0)) {
        conn->needs_step |= !has_room(socket, 3);
        return false;
    }
    memcpy(to, message, len);
    if (!toe_send_record(socket->config.toe, conn->tid, (uint8_t)type, to, len,
                         TLS_ENGINE_COOKIE)) {
        return false;
    }
    conn->records_out++;
    return true;
}

/* The peer's next key: the engine waits for it.  After CLOSE it takes none, and
 * what comes does not count. */
static bool give_key(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->has_ended || conn->wants_abort || conn->was_closed) {
        return false;
    }
    if (tls_update_awaits_peer(conn)) {
        return false;
    }
    if (!has_room(socket, 1) || socket->bytes_left == 0) {
        conn->needs_step = true;
        return false;
    }
    tls_note_work(socket, TLS_KEY_COST);
    conn->key_due = !tls_engine_set_key(socket, conn, true);
    return !conn->key_due;
}

bool tls_engine_step(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state != TLS_CONN_OPEN) {
        return false;
    }
    return (conn->engine == TLS_ENGINE_WANTED && start_engine(socket, conn)) ||
           (conn->key_due && give_key(socket, conn));
}

/* After ABORT, nothing more is sent, and NVMe/TCP waits for the end of the
 * connection. */
bool tls_engine_awaits_peer(const struct tls_conn *conn)
{
    return conn->engine == TLS_ENGINE_ON &&
           (conn->was_aborted || !tls_engine_can_send(conn) ||
            tls_update_awaits_peer(conn));
}

bool tls_engine_send(struct tls_socket *socket, struct tls_conn *conn,
                     const struct nvme_tcp_piece *pieces, uint8_t count)
{
    const struct nvme_tcp_socket *plain = &socket->config.plain;

    /* A KeyUpdate is answered before further data. */
    if (conn->engine != TLS_ENGINE_ON || conn->wants_update ||
        !tls_engine_can_send(conn) ||
        !plain->send(plain->ctx, conn->tid, pieces, count)) {
        return false;
    }
    conn->nvme_sends++;
    return true;
}

bool tls_engine_close(struct tls_socket *socket, struct tls_conn *conn)
{
    struct toe *toe = socket->config.toe;

    if (conn->was_aborted) { /* nothing is said any more: tell_ended() */
        conn->wants_close = true;
        toe_settle(toe);
        return true;
    }
    if (!has_room(socket, 3) ||
        (!conn->has_goodbye && !conn->has_ended &&
         !tls_conn_say_goodbye(socket, conn, TLS_ALERT_CLOSE)) ||
        !toe_close(toe, conn->tid, 0)) {
        return false;
    }
    conn->wants_close = conn->was_closed = conn->has_close = true;
    toe_settle(toe); /* the buffers may be given back */
    return true;
}

/* ---- Entries. */

static void take_alert(struct tls_socket *socket, struct tls_conn *conn,
                       const struct toe_entry *entry)
{
    if (entry->value != TLS_ALERT_LEN) {
        tls_conn_refuse(socket, conn,
                        entry->value == 0 ? TLS_ALERT_UNEXPECTED
                                          : TLS_ALERT_DECODE);
        return;
    }
    if ((uint8_t)(entry->cookie >> 8) != TLS_ALERT_CLOSE) {
        conn->wants_abort = true;
    }
    conn->has_fin = true; /* nothing that follows counts */
}

static void take_record(struct tls_socket *socket, struct tls_conn *conn,
                        const struct toe_entry *entry)
{
    uint8_t head[8];

    put_le64(head, entry->cookie);
    if (entry->status != TOE_OK) {
        tls_conn_refuse(socket, conn, (enum tls_alert)entry->value);
    } else if (entry->port == TLS_TYPE_ALERT) {
        take_alert(socket, conn, entry);
    } else if (entry->port == TLS_TYPE_HANDSHAKE) {
        tls_update_take(socket, conn, head, entry->value);
    } else {
        tls_conn_refuse(socket, conn, TLS_ALERT_UNEXPECTED);
    }
}

bool tls_engine_take(struct tls_socket *socket, struct tls_conn *conn,
                     const struct toe_entry *entry)
{
    struct nvme_tcp *tcp = socket->config.nvme->config.tcp;

    if (conn->engine != TLS_ENGINE_ON || conn->state != TLS_CONN_OPEN) {
        return false;
    }
    if (entry->kind == TOE_KIND_DATA) {
        nvme_tcp_received(tcp, conn->nvme, entry->value);
        if (entry->port != TOE_BEGUN_NOTHING) {
            nvme_tcp_begun(tcp, conn->nvme, (enum nvme_tcp_begun)entry->port);
        }
        return true;
    }
    if (entry->kind == TOE_KIND_RECORD) {
        take_record(socket, conn, entry);
        return true;
    }
    if (entry->kind != TOE_KIND_SENT || conn->sent != conn->given) {
        return false; /* records of the handshake are sent first */
    }
    if (entry->cookie == TLS_ENGINE_COOKIE) {
        conn->records_out--;
        nvme_tcp_may_send(tcp, conn->nvme);
    } else {
        conn->nvme_sends--;
        nvme_tcp_sent(tcp, conn->nvme, entry->status == TOE_OK);
    }
    return true;
}
