/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/tcp/nvme_socket.h"

#include <string.h>

static uint32_t slot_of(uint32_t tid)
{
    return (uint16_t)tid % TOE_SLOTS;
}

/* ---- The seam. */

static bool has_room(const struct nvme_socket *socket)
{
    return toe_room(socket->config.toe) > socket->config.commands_left;
}

static void socket_accept(void *ctx, uint32_t id, void *ring)
{
    struct nvme_socket *socket = ctx;
    bool is_posted;

    if (socket->adopts) {
        socket->has_moved = toe_move_ring(socket->config.toe, id, ring);
        return;
    }
    is_posted = toe_accept(socket->config.toe, id, ring);
    ASSERT(is_posted); /* nvme_socket_take() has room */
}

static void socket_reject(void *ctx, uint32_t id)
{
    struct nvme_socket *socket = ctx;
    bool is_posted = socket->adopts ? toe_abort(socket->config.toe, id, 0)
                                    : toe_reject(socket->config.toe, id);

    ASSERT(is_posted); /* nvme_socket_take() has room */
}

_Static_assert((int)NVME_TCP_SEND_PIECES == (int)TOE_PIECES_MAX,
               "as many as a command has");

static bool socket_send(void *ctx, uint32_t id,
                        const struct nvme_tcp_piece *pieces, uint8_t count)
{
    struct nvme_socket *socket = ctx;
    struct toe_piece all[TOE_PIECES_MAX];

    for (uint8_t i = 0; i < count; i++) {
        all[i] = (struct toe_piece){pieces[i].data, pieces[i].len_bytes};
    }
    return has_room(socket) &&
           toe_send_pieces(socket->config.toe, id, all, count, 0);
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len_bytes)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) && toe_credit(socket->config.toe, id, len_bytes);
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct nvme_socket *socket = ctx;

    if (!has_room(socket) || !toe_close(socket->config.toe, id, 0)) {
        return false;
    }
    toe_settle(socket->config.toe); /* the buffers may be given back */
    return true;
}

static bool socket_abort(void *ctx, uint32_t id)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) && toe_abort(socket->config.toe, id, 0);
}

static bool socket_release(void *ctx, uint32_t id)
{
    struct nvme_socket *socket = ctx;

    if (!has_room(socket) || !toe_release(socket->config.toe, id)) {
        return false;
    }
    socket->conn_of[slot_of(id)] = NVME_TCP_NONE;
    return true;
}

/* ---- Following the stream of PDUs. */

_Static_assert((int)FOLLOW_STOP == (int)TOE_PDU_STOP &&
                   (int)FOLLOW_STOP_LEN == (int)TOE_PDU_STOP_LEN &&
                   (int)FOLLOW_FOLLOWED == (int)TOE_PDU_FOLLOWED &&
                   (int)FOLLOW_PLACED == (int)TOE_PDU_PLACED &&
                   (int)FOLLOW_BAD_DIGEST == (int)TOE_PDU_BAD_DIGEST,
               "as the engine has them");
_Static_assert((int)FOLLOW_BEGUN_NOTHING == (int)TOE_BEGUN_NOTHING &&
                   (int)FOLLOW_BEGUN_PDU == (int)TOE_BEGUN_PDU &&
                   (int)FOLLOW_BEGUN_PLACED == (int)TOE_BEGUN_PLACED,
               "as the engine has them");
_Static_assert((int)NVMF_MAX_PIECES <= (int)TOE_PLACE_PIECES,
               "the pieces of a window have room");
/* What is longer, firmware judges when the header has come. */
_Static_assert((int)NVMF_IN_CAPSULE_LEN == (int)TOE_CAPSULE_MAX &&
                   (int)NVME_TCP_H2C_MAX == (int)TOE_H2C_MAX,
               "as the engine has them");

static bool socket_follow(void *ctx, uint32_t id, uint32_t received,
                          bool has_header_digest, bool has_data_digest)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) && toe_follow(socket->config.toe, id, received,
                                          has_header_digest, has_data_digest);
}

static bool socket_place(void *ctx, uint32_t id,
                         const struct nvme_tcp_place *place)
{
    enum {
        COMMANDS = (TOE_PLACE_PIECES + TOE_PIECES_MAX - 1) / TOE_PIECES_MAX
    };
    struct nvme_socket *socket = ctx;
    const struct toe_place head = {place->ttag, place->cccid, place->offset};
    const struct nvmf_piece *piece = place->pieces;
    uint32_t left = place->len_bytes;
    bool is_posted = true;

    if (toe_room(socket->config.toe) <
        socket->config.commands_left + COMMANDS) {
        return false;
    }
    while (left != 0) {
        struct toe_piece pieces[TOE_PIECES_MAX];
        uint8_t count = 0;

        for (; left != 0 && count < TOE_PIECES_MAX; piece++) {
            uint32_t len = MIN(piece->len_bytes, left);

            pieces[count++] = (struct toe_piece){piece->ptr, len};
            left -= len;
        }
        is_posted &= toe_place(socket->config.toe, id, &head, pieces, count);
    }
    ASSERT(is_posted); /* there was room */
    return true;
}

struct nvme_tcp_socket nvme_socket_init(struct nvme_socket *socket,
                                        const struct nvme_socket_config *config)
{
    socket->config = *config;
    socket->adopts = false;
    socket->has_moved = false;
    for (unsigned int i = 0; i < TOE_SLOTS; i++) {
        socket->conn_of[i] = NVME_TCP_NONE;
    }
    return (struct nvme_tcp_socket){
        .ctx = socket,
        .accept = socket_accept,
        .reject = socket_reject,
        .send = socket_send,
        .credit = socket_credit,
        .close = socket_close,
        .abort = socket_abort,
        .release = socket_release,
        .follow = socket_follow,
        .place = socket_place,
    };
}

bool nvme_socket_listen(struct nvme_socket *socket, bool is_alone)
{
    return (!is_alone || toe_listen(socket->config.toe, NVME_SOCKET_PORT)) &&
           toe_listen(socket->config.toe, NVME_SOCKET_DISCOVERY_PORT);
}

/* ---- Entries. */

static void take_asked(struct nvme_socket *socket,
                       const struct toe_entry *entry)
{
    const uint8_t *tcb = toe_query(socket->config.toe, entry->tid);
    struct nvme_tcp_peer peer = {0};
    uint16_t conn;

    if (tcb == NULL) {
        socket_reject(socket, entry->tid); /* it has ended already */
        return;
    }
    memcpy(peer.host, tcb + TOE_TCB_REMOTE_IP, sizeof(peer.host));
    peer.laddr = socket->config.find_laddr(socket->config.ctx, tcb);
    if (peer.laddr >= NVMF_MAX_ADDRESSES) {
        socket_reject(socket, entry->tid);
        return;
    }
    conn = nvme_tcp_asked(socket->config.tcp, entry->tid, &peer);
    socket->tid_of[slot_of(entry->tid)] = entry->tid;
    socket->conn_of[slot_of(entry->tid)] = conn;
}

bool nvme_socket_adopt(struct nvme_socket *socket, uint32_t tid,
                       const struct nvme_tcp_peer *peer, uint32_t received)
{
    struct nvme_tcp *tcp = socket->config.tcp;
    uint16_t conn;

    socket->adopts = true;
    socket->has_moved = false;
    conn = nvme_tcp_asked(tcp, tid, peer);
    socket->adopts = false;
    socket->tid_of[slot_of(tid)] = tid;
    socket->conn_of[slot_of(tid)] = conn;
    /* Otherwise it has ended, and its bytes are not in the ring. */
    if (conn != NVME_TCP_NONE && socket->has_moved) {
        nvme_tcp_established(tcp, conn);
        nvme_tcp_received(tcp, conn, received);
    }
    return conn != NVME_TCP_NONE;
}

static void take_conn_entry(struct nvme_tcp *tcp, uint16_t conn,
                            const struct toe_entry *entry)
{
    switch ((enum toe_kind)entry->kind) {
    case TOE_KIND_ESTABLISHED:
        nvme_tcp_established(tcp, conn);
        break;
    case TOE_KIND_DATA:
        nvme_tcp_received(tcp, conn, entry->value);
        if (entry->port != TOE_BEGUN_NOTHING) {
            nvme_tcp_begun(tcp, conn, (enum nvme_tcp_begun)entry->port);
        }
        break;
    case TOE_KIND_SENT:
        nvme_tcp_sent(tcp, conn, entry->status == TOE_OK);
        break;
    case TOE_KIND_FINISHED:
        nvme_tcp_finished(tcp, conn);
        break;
    case TOE_KIND_CLOSED:
        nvme_tcp_closed(tcp, conn);
        break;
    case TOE_KIND_ABORTED:
        nvme_tcp_aborted(tcp, conn);
        break;
    case TOE_KIND_ENDED:
        nvme_tcp_ended(tcp, conn);
        break;
    case TOE_KIND_ASKED:
    case TOE_KIND_RECORD:
        break;
    }
}

static bool is_own(const struct nvme_socket *socket,
                   const struct toe_entry *entry)
{
    uint32_t slot = slot_of(entry->tid);

    return socket->conn_of[slot] != NVME_TCP_NONE &&
           socket->tid_of[slot] == entry->tid;
}

bool nvme_socket_take(struct nvme_socket *socket, const struct toe_entry *entry)
{
    if (entry->kind == TOE_KIND_ASKED) {
        if (socket->config.is_second ||
            (entry->port != NVME_SOCKET_PORT &&
             entry->port != NVME_SOCKET_DISCOVERY_PORT)) {
            return false;
        }
        take_asked(socket, entry);
        return true;
    }
    if (!is_own(socket, entry)) {
        return false;
    }
    take_conn_entry(socket->config.tcp, socket->conn_of[slot_of(entry->tid)],
                    entry);
    return true;
}

bool nvme_socket_take_bytes(struct nvme_socket *socket,
                            const struct toe_entry *entry)
{
    if ((entry->kind != TOE_KIND_DATA && entry->kind != TOE_KIND_SENT) ||
        !is_own(socket, entry)) {
        return false;
    }
    take_conn_entry(socket->config.tcp, socket->conn_of[slot_of(entry->tid)],
                    entry);
    return true;
}
