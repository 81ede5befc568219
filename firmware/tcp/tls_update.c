/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * KeyUpdate: other keys for the records of a connection.  The peer's is the
 * last record with its old key, and so is ours.
 * Spec: RFC 8446 sections 4.6.3 and 7.2.
 */
#include <string.h>

#include "firmware/tcp/tls_socket.h"

enum {
    KEY_UPDATE = 24, /* type of the handshake message */
    KEY_UPDATE_LEN = 5,
    REQUEST_AT = 4, /* 1: the peer wants another key from us, too */
};

static const uint8_t update[KEY_UPDATE_LEN] = {KEY_UPDATE, 0, 0, 1, 0};

/* Another secret, and its key. */
static void next_key(struct tls_socket *socket, struct tls_conn *conn,
                     bool receives)
{
    const struct tls_crypto *crypto = socket->config.crypto;
    enum auth_hash hash = (enum auth_hash)conn->hash;
    struct tls_secret *secret =
        receives ? &conn->from_client : &conn->from_server;

    tls_update_secret(crypto, hash, secret);
    if (conn->engine == TLS_ENGINE_NONE) {
        tls_note_work(socket, TLS_KEY_COST);
        tls_half_init(receives ? &conn->receives : &conn->sends, crypto, hash,
                      secret);
    } else if (receives) {
        conn->key_due = true; /* tls_engine_step() */
    } else {
        tls_note_work(socket, TLS_KEY_COST);
        /* There is room after tls_engine_say(). */
        (void)tls_engine_set_key(socket, conn, false);
    }
}

void tls_update_take(struct tls_socket *socket, struct tls_conn *conn,
                     const uint8_t *message, uint32_t len)
{
    if (len != KEY_UPDATE_LEN || memcmp(message, update, REQUEST_AT) != 0) {
        tls_conn_refuse(socket, conn, TLS_ALERT_UNEXPECTED);
    } else if (message[REQUEST_AT] > 1) {
        tls_conn_refuse(socket, conn, TLS_ALERT_ILLEGAL);
    } else {
        conn->wants_update |= message[REQUEST_AT] == 1;
        next_key(socket, conn, true);
    }
}

bool tls_update_send(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state != TLS_CONN_OPEN || !conn->wants_update ||
        conn->has_goodbye || socket->bytes_left == 0 ||
        !tls_conn_say(socket, conn, TLS_TYPE_HANDSHAKE, update,
                      KEY_UPDATE_LEN)) {
        return false;
    }
    conn->wants_update = false;
    next_key(socket, conn, false);
    return true;
}

bool tls_update_awaits_peer(const struct tls_conn *conn)
{
    if (!conn->wants_update || conn->has_goodbye) {
        return false;
    }
    if (conn->engine == TLS_ENGINE_NONE) {
        return (uint16_t)(conn->made - conn->sent) == TLS_TX_SLOTS;
    }
    return conn->records_out != 0 || !tls_engine_can_send(conn);
}
