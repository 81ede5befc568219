/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshakes of TLS, and who makes room for others. */
#include <string.h>

#include "firmware/tcp/tls_socket.h"

/* Of a handshake in a turn: a record takes two of them. */
enum { ROUNDS = 16 };

/* ---- Room. */

static unsigned int count_state(const struct tls_socket *socket,
                                enum tls_conn_state state, const uint8_t *host)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        const struct tls_conn *conn = &socket->conns[i];

        count += conn->state == state && !conn->wants_abort &&
                 (host == NULL ||
                  memcmp(conn->peer.host, host, NVMF_ADDRESS_LEN) == 0);
    }
    return count;
}

static bool is_known(const struct tls_socket *socket,
                     const struct tls_conn *conn)
{
    return conn->handshake != TLS_HANDSHAKES &&
           socket->handshakes[conn->handshake].is_known;
}

/* A connection that may make room for another one. */
struct candidate {
    struct tls_conn *conn; /* NULL: none */
    bool is_known;
    unsigned int of_host; /* connections of its address in the same state */
};

/* Whether `a` is to make room rather than `b`: first those whose key is not
 * known, then those of the address that has most, then the oldest. */
static bool goes_first(const struct candidate *a, const struct candidate *b)
{
    if (b->conn == NULL || a->is_known != b->is_known) {
        return b->conn == NULL || !a->is_known;
    }
    return a->of_host != b->of_host ? a->of_host > b->of_host
                                    : a->conn->since_us < b->conn->since_us;
}

/* End one of the connections in a state, so that another one may enter it. */
static void displace_one(struct tls_socket *socket, enum tls_conn_state state)
{
    struct candidate victim = {0};

    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        struct tls_conn *conn = &socket->conns[i];

        if (conn->state == state && !conn->wants_abort) {
            const struct candidate one = {
                conn, is_known(socket, conn),
                count_state(socket, state, conn->peer.host)};

            if (goes_first(&one, &victim)) {
                victim = one;
            }
        }
    }
    ASSERT(victim.conn != NULL);
    socket->counters[TLS_COUNT_DISPLACED]++;
    tls_conn_end(socket, victim.conn);
}

void tls_make_room(struct tls_socket *socket, enum tls_conn_state state,
                   unsigned int limit)
{
    if (count_state(socket, state, NULL) >= limit) {
        displace_one(socket, state);
    }
}

/* ---- Handshakes. */

/* Whether an address has so many that none of others has to make room. */
static bool has_most(const struct tls_socket *socket,
                     const struct tls_conn *conn)
{
    return count_state(socket, TLS_CONN_SHAKING, conn->peer.host) >=
           TLS_HANDSHAKES / 2;
}

void tls_conn_begin(struct tls_socket *socket, struct tls_conn *conn)
{
    const struct tls_server_config config = {
        socket->config.crypto, socket->config.find_keys, socket->config.ctx};
    uint8_t number = 0;

    if (!nvme_tcp_has_room_behind_tls(socket->config.nvme->config.tcp) ||
        has_most(socket, conn)) {
        socket->counters[TLS_COUNT_REFUSED]++;
        tls_conn_end(socket, conn);
        return;
    }
    tls_make_room(socket, TLS_CONN_SHAKING, TLS_HANDSHAKES);
    while (socket->handshakes[number].state != TLS_SERVER_IDLE) {
        number++;
    }
    conn->handshake = number;
    tls_conn_enter(socket, conn, TLS_CONN_SHAKING);
    tls_server_start(&socket->handshakes[number], &config);
}

/* The handshake is over: NVMe/TCP gets the connection. */
static void attach_nvme(struct tls_socket *socket, struct tls_conn *conn)
{
    const struct tls_server *server = &socket->handshakes[conn->handshake];
    struct nvme_tcp *tcp = socket->config.nvme->config.tcp;
    enum auth_hash hash = (enum auth_hash)server->hash;

    conn->identity = server->identity;
    conn->key = server->key;
    conn->hash = server->hash;
    conn->from_client = server->from_client;
    conn->from_server = server->from_server;
    if (toe_record_contexts(socket->config.toe) >= TLS_OPEN_MAX) {
        conn->engine = TLS_ENGINE_WANTED;
    } else {
        tls_half_init(&conn->receives, socket->config.crypto, hash,
                      &server->from_client);
        tls_half_init(&conn->sends, socket->config.crypto, hash,
                      &server->from_server);
    }
    socket->counters[TLS_COUNT_HANDSHAKES]++;
    conn->peer.is_behind_tls = true;
    conn->nvme = nvme_tcp_asked(tcp, conn->tid, &conn->peer);
    if (conn->nvme == NVME_TCP_NONE) {
        tls_conn_end(socket, conn);
        return;
    }
    tls_conn_enter(socket, conn, TLS_CONN_OPEN);
    nvme_tcp_established(tcp, conn->nvme);
    socket->counters[TLS_COUNT_REFUSED] += conn->nvme_aborts; /* no room */
}

/* Give bytes of the ring to the handshake.  @return whether it took any */
static bool feed_handshake(struct tls_conn *conn, struct tls_server *server)
{
    uint32_t at = conn->read % NVME_TCP_RING_LEN;
    uint32_t len =
        MIN(conn->received - conn->read, (uint32_t)NVME_TCP_RING_LEN - at);
    uint32_t taken = tls_server_take(server, conn->ring + at, len);

    conn->read += taken;
    conn->credit_due += taken;
    return taken != 0;
}

/* A multiplication of X25519 has a turn of its own. */
static bool is_computing(const struct tls_server *server)
{
    return server->state == TLS_SERVER_PUBLIC ||
           server->state == TLS_SERVER_SHARED;
}

static void end_handshake(struct tls_socket *socket, struct tls_conn *conn,
                          const struct tls_server *server)
{
    if (server->state == TLS_SERVER_DONE) {
        attach_nvme(socket, conn);
    } else if (server->state == TLS_SERVER_FAILED) {
        socket->counters[TLS_COUNT_FAILED]++;
        tls_make_room(socket, TLS_CONN_ENDING, TLS_ENDING_MAX);
        tls_conn_enter(socket, conn, TLS_CONN_ENDING);
        conn->wants_close = true;
    }
}

static bool step_server(const struct tls_socket *socket,
                        struct tls_server *server)
{
    bool was_computing = is_computing(server);
    bool any = tls_server_step(server);

    if (was_computing && server->state == TLS_SERVER_FINISHED) {
        tls_key_log_add(&socket->config.key_log, server);
    }
    return any;
}

bool tls_conn_shake(struct tls_socket *socket, struct tls_conn *conn)
{
    struct tls_server *server = &socket->handshakes[conn->handshake];
    bool any = false;
    bool goes_on = true;

    for (unsigned int round = 0; goes_on && round < ROUNDS; round++) {
        goes_on = false;
        if (server->out_len != 0) {
            if (!tls_conn_put(conn, server->out, server->out_len)) {
                break; /* until the peer has acknowledged a record */
            }
            server->out_len = 0;
        }
        if (step_server(socket, server)) {
            any = true;
            goes_on = !is_computing(server) || server->out_len != 0;
        } else if (feed_handshake(conn, server)) {
            any = true;
            goes_on = true;
        }
    }
    if (server->out_len == 0) {
        end_handshake(socket, conn, server);
    }
    return any;
}
