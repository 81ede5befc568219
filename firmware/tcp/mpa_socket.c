/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/tcp/mpa_socket.h"

#include <string.h>

static uint16_t slot_of(uint32_t tid)
{
    return (uint16_t)tid % TOE_SLOTS;
}

/* ---- The socket. */

static bool has_room(const struct mpa_socket *socket)
{
    return toe_room(socket->config.toe) > socket->config.commands_left;
}

static bool socket_send(void *ctx, uint32_t id, const void *data,
                        uint32_t len_bytes)
{
    struct mpa_socket *socket = ctx;

    return has_room(socket) &&
           toe_send(socket->config.toe, id, data, len_bytes, 0);
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len_bytes)
{
    struct mpa_socket *socket = ctx;

    return has_room(socket) && toe_credit(socket->config.toe, id, len_bytes);
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct mpa_socket *socket = ctx;

    return has_room(socket) && toe_close(socket->config.toe, id, 0);
}

static bool socket_abort(void *ctx, uint32_t id)
{
    struct mpa_socket *socket = ctx;

    return has_room(socket) && toe_abort(socket->config.toe, id, 0);
}

static bool socket_release(void *ctx, uint32_t id)
{
    struct mpa_socket *socket = ctx;

    if (!has_room(socket) || !toe_release(socket->config.toe, id)) {
        return false;
    }
    socket->is_used[slot_of(id)] = false;
    return true;
}

static void socket_settle(void *ctx)
{
    toe_settle(((struct mpa_socket *)ctx)->config.toe);
}

struct mpa_cm_socket mpa_socket_init(struct mpa_socket *socket,
                                     const struct mpa_socket_config *config)
{
    socket->config = *config;
    socket->nvme = NULL;
    socket->tls = NULL;
    memset(socket->is_used, 0, sizeof(socket->is_used));
    return (struct mpa_cm_socket){
        .ctx = socket,
        .send = socket_send,
        .credit = socket_credit,
        .close = socket_close,
        .abort = socket_abort,
        .release = socket_release,
        .settle = socket_settle,
    };
}

/* ---- Entries. */

static void must_post(bool is_posted)
{
    ASSERT(is_posted); /* mpa_socket_take() has room */
}

static void take_asked(struct mpa_socket *socket, const struct toe_entry *entry)
{
    const struct mpa_socket_config *config = &socket->config;
    const uint8_t *tcb = toe_query(config->toe, entry->tid);
    uint16_t slot = slot_of(entry->tid);
    struct mpa_cm_peer *peer = &socket->peer_of[slot];

    if (tcb == NULL) {
        must_post(toe_reject(config->toe, entry->tid)); /* it has ended */
        return;
    }
    memcpy(peer->ip, tcb + TOE_TCB_REMOTE_IP, sizeof(peer->ip));
    peer->laddr = config->find_laddr(config->ctx, tcb);
    peer->local_port = entry->port;
    if (peer->laddr >= NVMF_MAX_ADDRESSES) {
        must_post(toe_reject(config->toe, entry->tid));
        return;
    }
    must_post(toe_accept(config->toe, entry->tid,
                         config->rings + ((size_t)slot << config->ring_log2)));
    socket->tid_of[slot] = entry->tid;
    socket->is_used[slot] = true;
    mpa_cm_asked(config->cm, slot, entry->tid, peer);
}

/* The connection begins with something else than MPA's. */
static void hand_over(struct mpa_socket *socket, uint16_t slot,
                      uint32_t received)
{
    struct nvme_tcp_peer peer = {.laddr = socket->peer_of[slot].laddr};

    socket->is_used[slot] = false;
    if (socket->nvme == NULL ||
        socket->peer_of[slot].local_port != MPA_SOCKET_PORT) {
        must_post(toe_abort(socket->config.toe, socket->tid_of[slot], 0));
        return;
    }
    memcpy(peer.host, socket->peer_of[slot].ip, sizeof(peer.host));
    if (socket->tls != NULL) {
        tls_socket_adopt(socket->tls, socket->tid_of[slot], &peer, received);
    } else {
        /* No other connection gets the ring of this slot before the end. */
        (void)nvme_socket_adopt(socket->nvme, socket->tid_of[slot], &peer,
                                received);
    }
}

static void take_conn_entry(struct mpa_socket *socket, uint16_t slot,
                            const struct toe_entry *entry)
{
    struct mpa_cm *cm = socket->config.cm;

    switch ((enum toe_kind)entry->kind) {
    case TOE_KIND_ESTABLISHED:
        mpa_cm_established(cm, slot);
        break;
    case TOE_KIND_DATA:
        if (!mpa_cm_received(cm, slot, entry->value)) {
            hand_over(socket, slot, entry->value);
        }
        break;
    case TOE_KIND_SENT:
        mpa_cm_sent(cm, slot, entry->status == TOE_OK);
        break;
    case TOE_KIND_FINISHED:
        mpa_cm_finished(cm, slot);
        break;
    case TOE_KIND_CLOSED:
        mpa_cm_closed(cm, slot);
        break;
    case TOE_KIND_ABORTED:
        mpa_cm_aborted(cm, slot);
        break;
    case TOE_KIND_ENDED:
        mpa_cm_ended(cm, slot);
        break;
    case TOE_KIND_ASKED:
    case TOE_KIND_RECORD:
        break;
    }
}

bool mpa_socket_take(struct mpa_socket *socket, const struct toe_entry *entry)
{
    uint16_t slot = slot_of(entry->tid);

    if (entry->kind == TOE_KIND_ASKED) {
        if (entry->port != MPA_SOCKET_PORT &&
            entry->port != socket->config.other_port) {
            return false;
        }
        take_asked(socket, entry);
        return true;
    }
    if (!socket->is_used[slot] || socket->tid_of[slot] != entry->tid) {
        return false;
    }
    take_conn_entry(socket, slot, entry);
    return true;
}
