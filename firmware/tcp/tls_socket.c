/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/tcp/tls_socket.h"

#include <string.h>

#include "lib/wipe.h"

enum { FIRST_BYTE = TLS_TYPE_HANDSHAKE, WATCH_US = 100000 };

/* Where each state may go. */
static const uint8_t conn_next[TLS_CONN_STATES] = {
    [TLS_CONN_FREE] = BIT(TLS_CONN_OPENING),
    [TLS_CONN_OPENING] = BIT(TLS_CONN_WAITING) | BIT(TLS_CONN_ENDING),
    [TLS_CONN_WAITING] = BIT(TLS_CONN_SHAKING) | BIT(TLS_CONN_ENDING),
    [TLS_CONN_SHAKING] = BIT(TLS_CONN_OPEN) | BIT(TLS_CONN_ENDING),
    [TLS_CONN_OPEN] = BIT(TLS_CONN_ENDING),
};

/* The only writer of conn->state. */
void tls_conn_enter(struct tls_socket *socket, struct tls_conn *conn,
                    enum tls_conn_state next)
{
    ASSERT(next == TLS_CONN_FREE || (conn_next[conn->state] & BIT(next)));
    socket->open_count =
        (uint16_t)(socket->open_count - (conn->state == TLS_CONN_OPEN) +
                   (next == TLS_CONN_OPEN));
    if (conn->handshake != TLS_HANDSHAKES && next != TLS_CONN_SHAKING) {
        tls_server_wipe(&socket->handshakes[conn->handshake]);
        conn->handshake = TLS_HANDSHAKES;
    }
    conn->state = (uint8_t)next;
    conn->since_us = socket->now_us;
    conn->needs_step = true;
}

static uint32_t slot_of(uint32_t tid)
{
    return (uint16_t)tid % TOE_SLOTS;
}

/* @return NULL when the connection is not here */
static struct tls_conn *conn_of(struct tls_socket *socket, uint32_t tid)
{
    uint8_t number = socket->conn_of[slot_of(tid)];

    return number != TLS_CONNS && socket->conns[number].tid == tid
               ? &socket->conns[number]
               : NULL;
}

/* Give the connection up; its place is free. */
static void free_conn(struct tls_socket *socket, struct tls_conn *conn)
{
    socket->conn_of[slot_of(conn->tid)] = TLS_CONNS;
    tls_conn_enter(socket, conn, TLS_CONN_FREE);
    conn->needs_step = false;
    wipe_bytes(&conn->key, sizeof(conn->key));
    wipe_bytes(&conn->receives, sizeof(conn->receives));
    wipe_bytes(&conn->sends, sizeof(conn->sends));
    wipe_bytes(&conn->from_client, sizeof(conn->from_client));
    wipe_bytes(&conn->from_server, sizeof(conn->from_server));
    socket->used--;
}

void tls_conn_end(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state != TLS_CONN_ENDING) {
        tls_conn_enter(socket, conn, TLS_CONN_ENDING);
    }
    conn->wants_abort = true;
    conn->needs_step = true;
}

/* ---- The seam, as NVMe/TCP has it. */

/* NVMe/TCP has given something that a step has to do. */
static void want_step(struct tls_socket *socket, struct tls_conn *conn)
{
    conn->needs_step = true;
    socket->has_work = true;
}

static void socket_accept(void *ctx, uint32_t id, void *ring)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    if (conn == NULL) {
        socket->config.plain.accept(socket->config.plain.ctx, id, ring);
        return;
    }
    conn->plain_ring = ring;
}

static void socket_reject(void *ctx, uint32_t id)
{
    struct tls_socket *socket = ctx;

    if (conn_of(socket, id) == NULL) {
        socket->config.plain.reject(socket->config.plain.ctx, id);
    }
}

static bool socket_send(void *ctx, uint32_t id,
                        const struct nvme_tcp_piece *pieces, uint8_t count)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    if (conn == NULL) {
        return socket->config.plain.send(socket->config.plain.ctx, id, pieces,
                                         count);
    }
    if (conn->engine != TLS_ENGINE_NONE && !conn->has_goodbye) {
        return tls_engine_send(socket, conn, pieces, count);
    }
    if (conn->has_ended || (uint16_t)(conn->span_head - conn->span_tail) >
                               NVME_TCP_SPANS - count) {
        return false;
    }
    for (uint8_t i = 0; i < count; i++) {
        conn->spans[conn->span_head++ % NVME_TCP_SPANS] =
            (struct tls_span){.data = pieces[i].data,
                              .len_bytes = pieces[i].len_bytes,
                              .ends_send = i + 1 == count};
    }
    want_step(socket, conn);
    return true;
}

static bool socket_awaits_peer(void *ctx, uint32_t id)
{
    const struct tls_conn *conn = conn_of(ctx, id);

    return conn != NULL && tls_engine_awaits_peer(conn);
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len_bytes)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    if (conn == NULL) {
        return socket->config.plain.credit(socket->config.plain.ctx, id,
                                           len_bytes);
    }
    if (conn->engine == TLS_ENGINE_ON) {
        return socket->config.plain.credit(socket->config.plain.ctx, id,
                                           len_bytes);
    }
    conn->credited += len_bytes;
    want_step(socket, conn);
    return true;
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    if (conn == NULL) {
        return socket->config.plain.close(socket->config.plain.ctx, id);
    }
    if (conn->engine == TLS_ENGINE_ON) {
        return tls_engine_close(socket, conn);
    }
    conn->wants_close = true;
    conn->wants_abort |= conn->engine == TLS_ENGINE_WANTED;
    want_step(socket, conn);
    return true;
}

static bool socket_abort(void *ctx, uint32_t id)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    if (conn == NULL) {
        return socket->config.plain.abort(socket->config.plain.ctx, id);
    }
    conn->wants_abort = true;
    conn->nvme_aborts = true;
    want_step(socket, conn);
    return true;
}

/* Give the engine's number back, if the engine has completed everything. */
static bool release_conn(struct tls_socket *socket, struct tls_conn *conn)
{
    if (!conn->has_ended || conn->has_close || conn->has_abort ||
        conn->sent != conn->given || conn->records_out != 0) {
        return false;
    }
    if (toe_room(socket->config.toe) <= socket->config.commands_left ||
        !toe_release(socket->config.toe, conn->tid)) {
        conn->needs_step = true;
        return false;
    }
    free_conn(socket, conn);
    return true;
}

static bool socket_release(void *ctx, uint32_t id)
{
    struct tls_socket *socket = ctx;
    struct tls_conn *conn = conn_of(socket, id);

    return conn == NULL
               ? socket->config.plain.release(socket->config.plain.ctx, id)
               : release_conn(socket, conn);
}

/* The engine cannot follow the bytes in records that the firmware opens. */
static bool socket_follow(void *ctx, uint32_t id, uint32_t received,
                          bool has_header_digest, bool has_data_digest)
{
    struct tls_socket *socket = ctx;
    const struct nvme_tcp_socket *plain = &socket->config.plain;
    const struct tls_conn *conn = conn_of(socket, id);

    return (conn == NULL || conn->engine == TLS_ENGINE_ON) &&
           plain->follow(plain->ctx, id, received, has_header_digest,
                         has_data_digest);
}

static bool socket_place(void *ctx, uint32_t id,
                         const struct nvme_tcp_place *place)
{
    struct tls_socket *socket = ctx;

    return socket->config.plain.place(socket->config.plain.ctx, id, place);
}

/* Whether the key of a connection still is one of its host.  It may have been
 * changed since the ClientHello. */
static bool key_is_in_force(const struct tls_socket *socket,
                            const struct tls_conn *conn)
{
    const struct tls_socket_config *config = &socket->config;
    size_t len = auth_hash_len(conn->identity.hash);
    struct tls_secret keys[TLS_STYLES];
    unsigned int count = config->find_keys(config->ctx, &conn->identity, keys);
    bool is_found = false;

    for (unsigned int i = 0; i < count; i++) {
        is_found |= tls_is_equal(keys[i].bytes, conn->key.bytes, len);
    }
    wipe_bytes(keys, sizeof(keys));
    return is_found;
}

bool tls_socket_admits(void *ctx, uint32_t id, const char *hostnqn)
{
    const struct tls_conn *conn = conn_of(ctx, id);

    return conn == NULL || (strcmp(conn->identity.hostnqn, hostnqn) == 0 &&
                            key_is_in_force(ctx, conn));
}

struct nvmf_channel tls_socket_channel(void *ctx, uint32_t id)
{
    const struct tls_socket *socket = ctx;
    const struct tls_socket_config *config = &socket->config;
    const struct tls_conn *conn = conn_of(ctx, id);

    if (conn == NULL) {
        return (struct nvmf_channel){.kind = NVMF_CHANNEL_PLAIN};
    }
    if (!conn->identity.is_generated) {
        return (struct nvmf_channel){.kind = NVMF_CHANNEL_RETAINED};
    }
    return (struct nvmf_channel){
        .kind = NVMF_CHANNEL_GENERATED,
        .key = config->key_number(config->ctx, &conn->identity),
    };
}

struct nvme_tcp_socket tls_socket_init(struct tls_socket *socket,
                                       const struct tls_socket_config *config)
{
    memset(socket, 0, sizeof(*socket));
    socket->config = *config;
    memset(socket->conn_of, TLS_CONNS, sizeof(socket->conn_of));
    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        socket->conns[i].ring = config->memory + (size_t)i * TLS_CONN_BYTES;
        socket->conns[i].slots = socket->conns[i].ring + NVME_TCP_RING_LEN;
        socket->conns[i].handshake = TLS_HANDSHAKES;
    }
    return (struct nvme_tcp_socket){
        .ctx = socket,
        .accept = socket_accept,
        .reject = socket_reject,
        .send = socket_send,
        .awaits_peer = socket_awaits_peer,
        .credit = socket_credit,
        .close = socket_close,
        .abort = socket_abort,
        .release = socket_release,
        .follow = socket_follow,
        .place = socket_place,
    };
}

/* ---- New connections. */

static struct tls_conn *take_place(struct tls_socket *socket, uint32_t tid,
                                   const struct nvme_tcp_peer *peer)
{
    struct tls_conn *conn = socket->conns;
    struct tls_conn before;

    if (socket->used == TLS_CONNS) {
        socket->counters[TLS_COUNT_REFUSED]++;
        return NULL;
    }
    while (conn->state != TLS_CONN_FREE) {
        conn++;
    }
    before = *conn;
    memset(conn, 0, sizeof(*conn));
    conn->ring = before.ring;
    conn->slots = before.slots;
    conn->handshake = TLS_HANDSHAKES;
    conn->tid = tid;
    conn->nvme = NVME_TCP_NONE;
    conn->peer = *peer;
    socket->conn_of[slot_of(tid)] = (uint8_t)(conn - socket->conns);
    socket->used++;
    tls_conn_enter(socket, conn, TLS_CONN_OPENING);
    return conn;
}

static void must_post(bool is_posted)
{
    ASSERT(is_posted); /* tls_socket_take() has room */
}

static void take_asked(struct tls_socket *socket, const struct toe_entry *entry)
{
    const struct nvme_socket_config *nvme = &socket->config.nvme->config;
    const uint8_t *tcb = toe_query(socket->config.toe, entry->tid);
    struct nvme_tcp_peer peer = {0};
    struct tls_conn *conn = NULL;

    if (tcb != NULL) {
        memcpy(peer.host, tcb + TOE_TCB_REMOTE_IP, sizeof(peer.host));
        peer.laddr = nvme->find_laddr(nvme->ctx, tcb);
        if (peer.laddr < NVMF_MAX_ADDRESSES) {
            conn = take_place(socket, entry->tid, &peer);
        }
    }
    must_post(conn == NULL
                  ? toe_reject(socket->config.toe, entry->tid)
                  : toe_accept(socket->config.toe, entry->tid, conn->ring));
}

static void take_open(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state != TLS_CONN_OPENING) {
        return;
    }
    tls_make_room(socket, TLS_CONN_WAITING, TLS_WAITING_MAX);
    tls_conn_enter(socket, conn, TLS_CONN_WAITING);
}

/* Give a plain connection to NVMe/TCP. */
static void hand_over(struct tls_socket *socket, struct tls_conn *conn)
{
    uint8_t *number = &socket->conn_of[slot_of(conn->tid)];
    const uint8_t before = *number;

    *number = TLS_CONNS; /* NVMe/TCP is to use the plain socket */
    if (nvme_socket_adopt(socket->config.nvme, conn->tid, &conn->peer,
                          conn->received)) {
        free_conn(socket, conn);
        return;
    }
    *number = before; /* the engine still writes to the ring */
    tls_conn_end(socket, conn);
    conn->was_aborted = true;
    conn->has_abort = true;
}

/* The first bytes have come. */
static void look_at_first(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->ring[0] == FIRST_BYTE) {
        tls_conn_begin(socket, conn);
    } else if (socket->config.is_required) {
        socket->counters[TLS_COUNT_PLAIN]++;
        tls_conn_end(socket, conn);
    } else {
        hand_over(socket, conn);
    }
}

void tls_socket_adopt(struct tls_socket *socket, uint32_t tid,
                      const struct nvme_tcp_peer *peer, uint32_t received)
{
    struct tls_conn *conn = take_place(socket, tid, peer);

    if (conn == NULL) {
        must_post(toe_abort(socket->config.toe, tid, 0));
        return;
    }
    if (!toe_move_ring(socket->config.toe, tid, conn->ring)) {
        tls_conn_end(socket, conn); /* it has ended, and its entry follows */
        return;
    }
    take_open(socket, conn);
    conn->received = received;
    look_at_first(socket, conn);
}

/* ---- Entries. */

/* Tell NVMe/TCP that its connection has ended; it gives the number back. */
static void tell_ended(struct tls_socket *socket, struct tls_conn *conn)
{
    struct nvme_tcp *tcp = socket->config.nvme->config.tcp;

    while (conn->span_tail != conn->span_head) {
        const struct tls_span *span =
            &conn->spans[conn->span_tail++ % NVME_TCP_SPANS];

        if (span->ends_send) { /* a call of send() is completed once */
            nvme_tcp_sent(tcp, conn->nvme, false);
        }
    }
    if (conn->wants_close && !conn->was_closed) {
        nvme_tcp_closed(tcp, conn->nvme);
    }
    if (conn->nvme_aborts && !conn->has_abort) {
        conn->nvme_aborts = false;
        nvme_tcp_aborted(tcp, conn->nvme);
    }
    nvme_tcp_ended(tcp, conn->nvme);
}

static void take_end(struct tls_socket *socket, struct tls_conn *conn)
{
    conn->has_ended = true;
    tls_engine_ended(socket);
    if (conn->state == TLS_CONN_OPEN) {
        tell_ended(socket, conn);
    } else if (conn->state != TLS_CONN_ENDING) {
        tls_conn_enter(socket, conn, TLS_CONN_ENDING);
    }
}

static void take_completion(struct tls_socket *socket, struct tls_conn *conn,
                            enum toe_kind kind)
{
    struct nvme_tcp *tcp = socket->config.nvme->config.tcp;
    bool is_open = conn->state == TLS_CONN_OPEN;

    if (kind == TOE_KIND_CLOSED) {
        conn->has_close = false;
        if (is_open) {
            nvme_tcp_closed(tcp, conn->nvme);
        }
    } else {
        conn->has_abort = false;
        if (is_open && conn->nvme_aborts) {
            conn->nvme_aborts = false;
            nvme_tcp_aborted(tcp, conn->nvme);
        }
    }
}

static void take_fin(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state == TLS_CONN_OPEN) {
        conn->got_fin = true;
        conn->has_fin |= conn->engine == TLS_ENGINE_ON;
    } else if (conn->state != TLS_CONN_ENDING) {
        tls_conn_end(socket, conn);
    }
}

static void take_conn_entry(struct tls_socket *socket, struct tls_conn *conn,
                            const struct toe_entry *entry)
{
    conn->needs_step = true;
    if (tls_engine_take(socket, conn, entry)) {
        return;
    }
    switch ((enum toe_kind)entry->kind) {
    case TOE_KIND_ESTABLISHED:
        take_open(socket, conn);
        break;
    case TOE_KIND_DATA:
        conn->received += entry->value;
        if (conn->state == TLS_CONN_WAITING) {
            look_at_first(socket, conn);
        }
        break;
    case TOE_KIND_SENT:
        conn->sent++;
        break;
    case TOE_KIND_FINISHED:
        take_fin(socket, conn);
        break;
    case TOE_KIND_CLOSED:
    case TOE_KIND_ABORTED:
        take_completion(socket, conn, (enum toe_kind)entry->kind);
        break;
    case TOE_KIND_ENDED:
        take_end(socket, conn);
        break;
    case TOE_KIND_ASKED:
    case TOE_KIND_RECORD:
        break;
    }
    conn->needs_step = conn->state != TLS_CONN_FREE;
}

bool tls_socket_take(struct tls_socket *socket, const struct toe_entry *entry)
{
    struct tls_conn *conn;

    if (entry->kind == TOE_KIND_ASKED) {
        if (entry->port != NVME_SOCKET_PORT &&
            entry->port != NVME_SOCKET_DISCOVERY_PORT) {
            return false;
        }
        take_asked(socket, entry);
        return true;
    }
    conn = conn_of(socket, entry->tid);
    if (conn == NULL) {
        return false;
    }
    take_conn_entry(socket, conn, entry);
    return true;
}

/* ---- Time. */

static void watch_conn(struct tls_socket *socket, struct tls_conn *conn)
{
    if (conn->state == TLS_CONN_FREE || conn->state == TLS_CONN_OPENING ||
        conn->state == TLS_CONN_OPEN ||
        socket->now_us - conn->since_us < TLS_PATIENCE_US) {
        return;
    }
    if (conn->state != TLS_CONN_ENDING) {
        socket->counters[TLS_COUNT_SILENT]++;
    }
    tls_conn_end(socket, conn);
}

bool tls_socket_step(struct tls_socket *socket, uint64_t now_us)
{
    bool watches = now_us >= socket->next_watch_us;
    bool any = false;
    uint8_t first;

    socket->now_us = now_us;
    socket->has_work = false;
    socket->bytes_left = TLS_TURN_BYTES;
    if (socket->used == 0) {
        return false;
    }
    if (watches) {
        socket->next_watch_us = now_us + WATCH_US;
    }
    first = socket->first;
    for (unsigned int i = 0; i < TLS_CONNS; i++) {
        unsigned int number = (first + i) % TLS_CONNS;
        struct tls_conn *conn = &socket->conns[number];
        bool had_bytes = socket->bytes_left != 0;

        if (watches) {
            watch_conn(socket, conn);
        }
        if (!conn->needs_step || conn->state == TLS_CONN_FREE) {
            continue;
        }
        any |= tls_conn_step(socket, conn);
        if (had_bytes && socket->bytes_left == 0) {
            socket->first = (uint8_t)((number + 1) % TLS_CONNS);
        }
        if (conn->state == TLS_CONN_ENDING && conn->has_ended) {
            (void)release_conn(socket, conn);
        }
        socket->has_work |= conn->needs_step;
    }
    return any;
}

uint64_t tls_socket_deadline(const struct tls_socket *socket)
{
    if (socket->has_work) {
        return socket->now_us;
    }
    return socket->used == 0 ? UINT64_MAX : socket->next_watch_us;
}
