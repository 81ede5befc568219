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

static bool socket_send(void *ctx, uint32_t id, const void *data,
                        uint32_t len_bytes)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) &&
           toe_send(socket->config.toe, id, data, len_bytes, 0);
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len_bytes)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) && toe_credit(socket->config.toe, id, len_bytes);
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct nvme_socket *socket = ctx;

    return has_room(socket) && toe_close(socket->config.toe, id, 0);
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

void nvme_socket_adopt(struct nvme_socket *socket, uint32_t tid,
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
        break;
    }
}

bool nvme_socket_take(struct nvme_socket *socket, const struct toe_entry *entry)
{
    uint32_t slot = slot_of(entry->tid);

    if (entry->kind == TOE_KIND_ASKED) {
        if (entry->port != NVME_SOCKET_PORT &&
            entry->port != NVME_SOCKET_DISCOVERY_PORT) {
            return false;
        }
        take_asked(socket, entry);
        return true;
    }
    if (socket->conn_of[slot] == NVME_TCP_NONE ||
        socket->tid_of[slot] != entry->tid) {
        return false;
    }
    take_conn_entry(socket->config.tcp, socket->conn_of[slot], entry);
    return true;
}
