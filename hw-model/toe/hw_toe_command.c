/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of the TCP offload engine.
 * Reference: docs/hardware/toe.md, section 2.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

#include "hw-model/core/dev_queue_rings.h"
#include "lib/wipe.h"

typedef enum toe_status command_run(struct hw_toe *toe, const uint8_t *cmd,
                                    uint64_t now_us);

static bool is_dram(const struct hw_toe *toe, uint64_t addr, uint64_t len)
{
    return toe->env.is_dram(toe->env.ctx, addr, len);
}

/* @return the connection that has this TID, or NULL */
static struct hw_toe_conn *conn_find(struct hw_toe *toe, const uint8_t *cmd)
{
    uint32_t tid = get_le32(cmd + TOE_CMD_TID);
    struct hw_toe_conn *conn = &toe->state.conns[(uint16_t)tid % HW_TOE_SLOTS];

    return (uint16_t)tid < HW_TOE_SLOTS && conn->state != TOE_SLOT_FREE &&
                   conn->generation == tid >> 16
               ? conn
               : NULL;
}

/* ---- Listeners. */

static int listener_find(const struct hw_toe_state *state, uint16_t port)
{
    for (int i = 0; i < HW_TOE_LISTENERS; i++) {
        if (state->listeners[i] == port) {
            return i;
        }
    }
    return -1;
}

void hw_toe_listen_again(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_LISTENERS; i++) {
        uint16_t port = toe->state.listeners[i];

        toe->tcp_listener[i] =
            port != 0 ? (int8_t)tcp_listen(toe->tcp, port) : (int8_t)-1;
    }
}

static enum toe_status run_listen(struct hw_toe *toe, const uint8_t *cmd,
                                  uint64_t now_us)
{
    uint16_t port = get_le16(cmd + TOE_CMD_PORT);
    int at = listener_find(&toe->state, 0);

    (void)now_us;
    if (toe->tcp == NULL) {
        return TOE_BAD_STATE;
    }
    if (port == 0 || listener_find(&toe->state, port) >= 0) {
        return TOE_BAD_ARGUMENT;
    }
    if (at < 0) {
        return TOE_NO_ROOM;
    }
    toe->tcp_listener[at] = (int8_t)tcp_listen(toe->tcp, port);
    toe->state.listeners[at] = port;
    return TOE_OK;
}

static enum toe_status run_unlisten(struct hw_toe *toe, const uint8_t *cmd,
                                    uint64_t now_us)
{
    uint16_t port = get_le16(cmd + TOE_CMD_PORT);
    int at = port != 0 ? listener_find(&toe->state, port) : -1;

    (void)now_us;
    if (at < 0 || toe->tcp == NULL) {
        return TOE_BAD_ARGUMENT;
    }
    tcp_listen_end(toe->tcp, toe->tcp_listener[at]);
    toe->tcp_listener[at] = -1;
    toe->state.listeners[at] = 0;
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if ((conn->state == TOE_SLOT_ASKED ||
             conn->state == TOE_SLOT_OPENING) &&
            conn->local_port == port) {
            hw_toe_want_abort(toe, conn);
        }
    }
    return TOE_OK;
}

/* ---- Connections. */

static enum toe_status run_accept(struct hw_toe *toe, const uint8_t *cmd,
                                  uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);
    uint64_t ring = get_le64(cmd + TOE_CMD_ADDR);

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state == TOE_SLOT_ENDED || conn->abort_due) {
        return TOE_ENDED;
    }
    if (conn->state != TOE_SLOT_ASKED) {
        return TOE_BAD_STATE;
    }
    if (ring % 64 != 0 || !is_dram(toe, ring, hw_toe_ring_bytes(toe))) {
        return TOE_BAD_ADDRESS;
    }
    conn->ring = ring;
    conn->state = TOE_SLOT_OPENING;
    tcp_accept(toe->tcp, conn->id, now_us);
    return TOE_OK;
}

/* The place of a SYN is free at once, whatever the port does. */
static enum toe_status run_reject(struct hw_toe *toe, const uint8_t *cmd,
                                  uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state == TOE_SLOT_ENDED || conn->abort_due) {
        return TOE_ENDED;
    }
    if (conn->state != TOE_SLOT_ASKED && conn->state != TOE_SLOT_OPENING) {
        return TOE_BAD_STATE;
    }
    if (!tcp_abort_now(toe->tcp, conn->id, now_us)) {
        tcp_reject(toe->tcp, conn->id, now_us);
        conn->rst_due = false;
    }
    return TOE_OK;
}

/* Read the pieces of a SEND. */
static enum toe_status read_send(const struct hw_toe *toe, const uint8_t *cmd,
                                 struct hw_toe_send *send)
{
    *send = (struct hw_toe_send){
        .cookie = get_le64(cmd + TOE_CMD_COOKIE),
        .record = cmd[TOE_SEND_RECORD],
    };
    if (cmd[TOE_SEND_MORE] >= HW_TOE_SEND_PIECES ||
        (send->record != 0 && send->record != RECORD_ALERT &&
         send->record != RECORD_HANDSHAKE)) {
        return TOE_BAD_ARGUMENT;
    }
    while (send->count <= cmd[TOE_SEND_MORE]) {
        struct hw_toe_piece *piece = &send->pieces[send->count];
        const uint8_t *at =
            cmd + TOE_PLACE_PIECE + send->count++ * (size_t)TOE_PIECE_LEN;

        piece->addr = get_le64(at + TOE_PIECE_ADDR);
        piece->len_bytes = get_le32(at + TOE_PIECE_LENGTH);
        if (piece->len_bytes == 0 ||
            piece->len_bytes > (uint32_t)TOE_SEND_MAX - send->len_bytes) {
            return TOE_BAD_ARGUMENT;
        }
        send->len_bytes += piece->len_bytes;
        if (!is_dram(toe, piece->addr, piece->len_bytes)) {
            return TOE_BAD_ADDRESS;
        }
    }
    return send->record != 0 && send->len_bytes > RECORD_PLAIN_MAX
               ? TOE_BAD_ARGUMENT
               : TOE_OK;
}

/* A SEND to a connection that has ended is completed like the others. */
static enum toe_status run_send(struct hw_toe *toe, const uint8_t *cmd,
                                uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);
    struct hw_toe_send send;
    enum toe_status status;

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if ((conn->state != TOE_SLOT_OPEN && conn->state != TOE_SLOT_ENDED) ||
        conn->has_close || (conn->is_rdma && conn->rdma_bytes != 0)) {
        return TOE_BAD_STATE;
    }
    status = read_send(toe, cmd, &send);
    if (status != TOE_OK) {
        return status;
    }
    send.is_tls = hw_toe_tls_sends(toe, conn);
    if (send.record != 0 && !send.is_tls && conn->state == TOE_SLOT_OPEN) {
        return TOE_BAD_STATE;
    }
    if (conn->send_count == HW_TOE_SENDS) {
        return TOE_NO_ROOM;
    }
    *hw_toe_send_at(conn, conn->send_count++) = send;
    if (conn->state == TOE_SLOT_ENDED) {
        hw_toe_conn_due(toe, conn);
    } else if (conn->is_deaf) {
        hw_toe_want_abort(toe, conn); /* which completes it */
        return TOE_OK;
    } else if (send.is_tls) {
        hw_toe_follow_send(toe, conn, &send);
        hw_toe_tls_settle(toe, conn);
        return TOE_OK;
    } else if (!tcp_send(toe->tcp, conn->id, send.len_bytes, now_us)) {
        conn->send_count--;
        return TOE_BAD_STATE;
    }
    conn->send_end += send.len_bytes;
    hw_toe_follow_send(toe, conn, &send);
    return TOE_OK;
}

static enum toe_status run_credit(struct hw_toe *toe, const uint8_t *cmd,
                                  uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);
    uint32_t len = get_le32(cmd + TOE_CMD_LENGTH);

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state != TOE_SLOT_OPEN && conn->state != TOE_SLOT_ENDED) {
        return TOE_BAD_STATE;
    }
    if (conn->is_rdma || conn->is_deaf ||
        len > conn->reported - conn->credited) {
        return TOE_BAD_ARGUMENT;
    }
    conn->credited += len;
    /* net/tcp did not take the segment in which a word was lost, of which
     * firmware may have the first bytes. */
    if (conn->state == TOE_SLOT_OPEN && !conn->is_lost) {
        tcp_consume(toe->tcp, conn->id, len, now_us);
    }
    return TOE_OK;
}

static enum toe_status run_close(struct hw_toe *toe, const uint8_t *cmd,
                                 uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if ((conn->state != TOE_SLOT_OPEN && conn->state != TOE_SLOT_ENDED) ||
        conn->has_close || conn->is_rdma) {
        return TOE_BAD_STATE;
    }
    conn->has_close = true;
    conn->close_cookie = get_le64(cmd + TOE_CMD_COOKIE);
    hw_toe_follow_close(toe, conn);
    if (conn->state == TOE_SLOT_ENDED) {
        hw_toe_conn_due(toe, conn);
    } else if (!hw_toe_tls_close(toe, conn)) {
        tcp_close(toe->tcp, conn->id, now_us);
    }
    return TOE_OK;
}

static enum toe_status run_abort(struct hw_toe *toe, const uint8_t *cmd,
                                 uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);

    (void)now_us;
    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->has_abort) {
        return TOE_BAD_STATE;
    }
    conn->has_abort = true;
    conn->abort_cookie = get_le64(cmd + TOE_CMD_COOKIE);
    hw_toe_follow_close(toe, conn);
    if (conn->state == TOE_SLOT_ENDED) {
        hw_toe_conn_due(toe, conn);
    } else {
        hw_toe_want_abort(toe, conn);
    }
    return TOE_OK;
}

/* Copy the bytes that firmware has not given back to a new ring. */
static bool ring_copy(struct hw_toe *toe, struct hw_toe_conn *conn,
                      uint64_t ring)
{
    uint32_t size = hw_toe_ring_bytes(toe);

    for (uint64_t at = conn->credited; at != conn->received;) {
        uint32_t offset = (uint32_t)at & (size - 1);
        uint32_t len = MIN((uint32_t)(conn->received - at), size - offset);
        const uint8_t *from =
            toe->env.dma(toe->env.ctx, conn->ring + offset, len);
        uint8_t *to = toe->env.dma_write(toe->env.ctx, ring + offset, len);

        if (from == NULL || to == NULL) {
            return false;
        }
        memcpy(to, from, len);
        at += len;
    }
    return true;
}

/* Move the receive ring. */
static enum toe_status run_ring(struct hw_toe *toe, const uint8_t *cmd,
                                uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);
    uint64_t ring = get_le64(cmd + TOE_CMD_ADDR);

    (void)now_us;
    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state == TOE_SLOT_ENDED) {
        return TOE_ENDED;
    }
    if (conn->state != TOE_SLOT_OPEN || conn->is_rdma || conn->is_deaf ||
        hw_toe_is_followed(toe, conn)) {
        return TOE_BAD_STATE;
    }
    if (ring % 64 != 0 || !is_dram(toe, ring, hw_toe_ring_bytes(toe))) {
        return TOE_BAD_ADDRESS;
    }
    if (!ring_copy(toe, conn, ring)) {
        hw_toe_conn_lose(toe, conn);
    }
    conn->ring = ring;
    return TOE_OK;
}

static enum toe_status run_release(struct hw_toe *toe, const uint8_t *cmd,
                                   uint64_t now_us)
{
    struct hw_toe_conn *conn = conn_find(toe, cmd);

    (void)now_us;
    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state != TOE_SLOT_ENDED || conn->ended_due ||
        conn->send_count != 0 || conn->has_close || conn->has_abort) {
        return TOE_BAD_STATE;
    }
    hw_toe_conn_free(toe, conn);
    return TOE_OK;
}

static enum toe_status run_query(struct hw_toe *toe, const uint8_t *cmd,
                                 uint64_t now_us)
{
    return hw_toe_query(toe, conn_find(toe, cmd), cmd, now_us);
}

static enum toe_status run_follow(struct hw_toe *toe, const uint8_t *cmd,
                                  uint64_t now_us)
{
    (void)now_us;
    return hw_toe_follow_run(toe, conn_find(toe, cmd), cmd);
}

static enum toe_status run_place(struct hw_toe *toe, const uint8_t *cmd,
                                 uint64_t now_us)
{
    (void)now_us;
    return hw_toe_place_run(toe, conn_find(toe, cmd), cmd);
}

static enum toe_status run_key(struct hw_toe *toe, const uint8_t *cmd,
                               uint64_t now_us)
{
    (void)now_us;
    return hw_toe_key_run(toe, conn_find(toe, cmd), cmd);
}

/* ---- Own addresses. */

static enum toe_status run_laddr_set(struct hw_toe *toe, const uint8_t *cmd,
                                     uint64_t now_us)
{
    uint32_t index = get_le32(cmd + TOE_CMD_TID);
    const struct hw_toe_laddr laddr = {
        .is_used = true,
        .port = cmd[TOE_LADDR_PORT],
        .vlan = get_le16(cmd + TOE_LADDR_VLAN),
        .ip = ip_addr_from_bytes(cmd + TOE_LADDR_IP),
    };

    (void)now_us;
    if (index >= HW_TOE_LADDRS) {
        return TOE_BAD_TID;
    }
    if (laddr.port >= HW_TOE_PORTS || ip_addr_is_unspecified(&laddr.ip) ||
        ip_addr_is_multicast(&laddr.ip)) {
        return TOE_BAD_ARGUMENT;
    }
    toe->state.laddrs[index] = laddr;
    return TOE_OK;
}

static enum toe_status run_laddr_clear(struct hw_toe *toe, const uint8_t *cmd,
                                       uint64_t now_us)
{
    uint32_t index = get_le32(cmd + TOE_CMD_TID);

    (void)now_us;
    if (index >= HW_TOE_LADDRS) {
        return TOE_BAD_TID;
    }
    toe->state.laddrs[index] = (struct hw_toe_laddr){0};
    return TOE_OK;
}

static enum toe_status run_nop(struct hw_toe *toe, const uint8_t *cmd,
                               uint64_t now_us)
{
    (void)toe;
    (void)cmd;
    (void)now_us;
    return TOE_OK;
}

/* ---- The ring. */

static void refuse_command(struct hw_toe *toe, const uint8_t *cmd,
                           enum toe_status status)
{
    uint32_t refused = 0;

    refused = FIELD_SET(refused, TOE_REFUSED, OPCODE, cmd[TOE_CMD_OPCODE]);
    refused = FIELD_SET(refused, TOE_REFUSED, STATUS, status);
    refused = FIELD_SET(refused, TOE_REFUSED, SLOT,
                        get_le32(cmd + TOE_CMD_TID) & 0xffff);
    toe->state.refused = refused;
    toe->state.irq_status |= R_TOE_IRQ_STATUS_REFUSED_MASK;
    hw_toe_count(toe, TOE_COUNT_REFUSED);
    hw_toe_update_irq(toe);
}

/* A command that cannot be read may have been one of any connection, and what
 * is sent behind it would come after a gap: all of them end. */
static void lose_command(struct hw_toe *toe)
{
    for (unsigned int i = 0; i < HW_TOE_SLOTS; i++) {
        struct hw_toe_conn *conn = &toe->state.conns[i];

        if (conn->state == TOE_SLOT_OPEN) {
            hw_toe_conn_lose(toe, conn);
        }
    }
}

static void take_command(struct hw_toe *toe, uint64_t now_us)
{
    static command_run *const runs[TOE_OPCODES] = {
        [TOE_CMD_NOP] = run_nop,
        [TOE_CMD_LISTEN] = run_listen,
        [TOE_CMD_UNLISTEN] = run_unlisten,
        [TOE_CMD_ACCEPT] = run_accept,
        [TOE_CMD_REJECT] = run_reject,
        [TOE_CMD_SEND] = run_send,
        [TOE_CMD_CREDIT] = run_credit,
        [TOE_CMD_CLOSE] = run_close,
        [TOE_CMD_ABORT] = run_abort,
        [TOE_CMD_RELEASE] = run_release,
        [TOE_CMD_QUERY] = run_query,
        [TOE_CMD_LADDR_SET] = run_laddr_set,
        [TOE_CMD_LADDR_CLEAR] = run_laddr_clear,
        [TOE_CMD_RING] = run_ring,
        [TOE_CMD_FOLLOW] = run_follow,
        [TOE_CMD_PLACE] = run_place,
        [TOE_CMD_KEY] = run_key,
    };
    struct dev_queue *queue = &toe->state.queue;
    uint64_t addr = queue->cmd_addr +
                    (uint64_t)(queue->cmd_ci++ & queue->cmd_mask) * TOE_CMD_LEN;
    uint8_t *slot = toe->env.dma(toe->env.ctx, addr, TOE_CMD_LEN);
    uint8_t cmd[TOE_CMD_LEN] = {0};
    enum toe_status status = TOE_BAD_ADDRESS; /* the command is lost */

    if (slot != NULL) {
        memcpy(cmd, slot, sizeof(cmd));
        status = cmd[TOE_CMD_OPCODE] < TOE_OPCODES
                     ? runs[cmd[TOE_CMD_OPCODE]](toe, cmd, now_us)
                     : TOE_BAD_OPCODE;
        if (cmd[TOE_CMD_OPCODE] == TOE_CMD_KEY) {
            wipe_bytes(slot + TOE_KEY_BYTES, TOE_CMD_LEN - TOE_KEY_BYTES);
            wipe_bytes(cmd + TOE_KEY_BYTES, TOE_CMD_LEN - TOE_KEY_BYTES);
        }
        __atomic_store_n(slot + TOE_CMD_STATUS, (uint8_t)status,
                         __ATOMIC_RELEASE);
    } else {
        lose_command(toe);
    }
    if (status != TOE_OK) {
        refuse_command(toe, cmd, status);
    }
}

static uint32_t waiting_commands(const struct hw_toe *toe, const uint8_t *page)
{
    const struct dev_queue *queue = &toe->state.queue;
    uint32_t waiting = shared_load32(page + QUEUE_PAGE_CMD_PI) - queue->cmd_ci;

    dev_rmb();
    /* With an invalid index, take nothing until it is valid. */
    return waiting > queue->cmd_mask + 1 ? 0 : waiting;
}

void hw_toe_take_commands(struct hw_toe *toe)
{
    struct dev_queue *queue = &toe->state.queue;
    uint8_t *page = dev_queue_page(queue, &toe->env);
    uint64_t now_us = hw_toe_now_us(toe);
    uint32_t waiting;

    if (page == NULL) {
        return;
    }
    shared_store32(page + QUEUE_PAGE_ASLEEP, 0);
    waiting = waiting_commands(toe, page);
    if (waiting == 0) {
        shared_store32(page + QUEUE_PAGE_ASLEEP, 1);
        dev_mb();
        waiting = waiting_commands(toe, page);
    }
    for (; waiting != 0; waiting--) {
        take_command(toe, now_us);
    }
    dev_queue_release(queue, page);
    shared_store32(page + QUEUE_PAGE_ASLEEP, 1);
    dev_mb();
    if (waiting_commands(toe, page) != 0) {
        toe->env.defer(toe->env.ctx);
    }
}
