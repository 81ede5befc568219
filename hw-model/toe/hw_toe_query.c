/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command QUERY: what a connection is doing.
 * Reference: docs/hardware/toe.md, section 2.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

enum {
    SEARCH = 1, /* in TOE_CMD_LENGTH */
    QUERY_END = TOE_SLOTS + TOE_TIME_WAITS,
};

static void put_tcp_info(uint8_t *to, const struct tcp_info *info)
{
    to[TOE_TCB_STATE] = (uint8_t)info->state;
    to[TOE_TCB_FLAGS] =
        (uint8_t)((info->has_times ? TOE_TCB_HAS_TIMES : 0) |
                  (info->has_sack ? TOE_TCB_HAS_SACK : 0) |
                  (info->has_ecn ? TOE_TCB_HAS_ECN : 0) |
                  (info->is_recovering ? TOE_TCB_IS_RECOVERING : 0));
    put_le16(to + TOE_TCB_MSS, info->mss);
    to[TOE_TCB_SENT_RUNS] = info->sent_runs;
    to[TOE_TCB_SACK_RANGES] = info->received_ranges;
    put_le32(to + TOE_TCB_SND_UNA, info->snd_una);
    put_le32(to + TOE_TCB_SND_NXT, info->snd_nxt);
    put_le32(to + TOE_TCB_SND_WND, info->snd_wnd);
    put_le32(to + TOE_TCB_RCV_NXT, info->rcv_nxt);
    put_le32(to + TOE_TCB_RCV_WND, info->rcv_wnd);
    put_le32(to + TOE_TCB_CWND, info->cwnd);
    put_le32(to + TOE_TCB_SSTHRESH, info->ssthresh);
    put_le32(to + TOE_TCB_PIPE, info->pipe);
    put_le32(to + TOE_TCB_SRTT_US, info->srtt_us);
    put_le32(to + TOE_TCB_RTTVAR_US, info->rttvar_us);
    put_le32(to + TOE_TCB_RTO_US, info->rto_us);
    put_le32(to + TOE_TCB_MIN_RTT_US, info->min_rtt_us);
    put_le32(to + TOE_TCB_RETRANSMITS, info->retransmits);
    to[TOE_TCB_SND_SHIFT] = info->snd_shift;
    to[TOE_TCB_RCV_SHIFT] = info->rcv_shift;
    put_le32(to + TOE_TCB_SACKED, info->sacked);
}

static void put_ends(uint8_t *to, const struct tcp_ends *ends)
{
    put_le16(to + TOE_TCB_LOCAL_PORT, ends->local_port);
    put_le16(to + TOE_TCB_REMOTE_PORT, ends->remote_port);
    memcpy(to + TOE_TCB_LOCAL_IP, ends->local.bytes, TOE_LADDR_IP_LEN);
    memcpy(to + TOE_TCB_REMOTE_IP, ends->remote.bytes, TOE_LADDR_IP_LEN);
}

static void put_path(uint8_t *to, const struct hw_toe_path *path)
{
    to[TOE_TCB_PORT] = path->port;
    put_le16(to + TOE_TCB_VLAN,
             path->is_tagged ? path->tci & 0xfff : (uint16_t)0xffff);
}

static void put_conn(const struct hw_toe *toe, const struct hw_toe_conn *conn,
                     uint8_t *to)
{
    const struct tcp_ends ends = {.local = conn->local,
                                  .remote = conn->remote,
                                  .local_port = conn->local_port,
                                  .remote_port = conn->remote_port};
    const struct hw_toe_follow *follow = &toe->follows[hw_toe_slot(toe, conn)];
    struct tcp_info info;

    put_le32(to + TOE_TCB_TID, hw_toe_tid(toe, conn));
    to[TOE_TCB_SLOT_STATE] = conn->state;
    put_ends(to, &ends);
    put_path(to, &toe->state.paths[conn->path]);
    put_le64(to + TOE_TCB_SENT_BYTES, conn->acked);
    put_le64(to + TOE_TCB_RECEIVED_BYTES, conn->received + follow->absent);
    if (conn->state == TOE_SLOT_OPEN && tcp_info(toe->tcp, conn->id, &info)) {
        put_tcp_info(to, &info);
    }
    if (conn->is_rdma) {
        to[TOE_TCB_FLAGS] |= TOE_TCB_IS_RDMA;
    }
    if (pdu_follow_is_on(&follow->stream)) {
        to[TOE_TCB_FLAGS] |= TOE_TCB_IS_FOLLOWED;
    }
    if (toe->tls_of[hw_toe_slot(toe, conn)] != 0) {
        to[TOE_TCB_FLAGS] |= TOE_TCB_HAS_KEYS;
    }
}

/* @return false when this entry of TIME-WAIT is not in use */
static bool put_wait(const struct hw_toe *toe, uint32_t index, uint64_t now_us,
                     uint8_t *to)
{
    struct tcp_wait_info info;

    if (toe->tcp == NULL ||
        !tcp_wait_info(toe->tcp, (uint16_t)index, now_us, &info)) {
        return false;
    }
    put_le32(to + TOE_TCB_TID, TOE_SLOTS + index);
    to[TOE_TCB_SLOT_STATE] = TOE_TCB_TIME_WAIT;
    put_ends(to, &info.ends);
    put_path(to, &toe->state.paths[info.route % HW_TOE_PATHS]);
    put_le32(to + TOE_TCB_LEFT_MS, (uint32_t)(info.left_us / 1000));
    return true;
}

/* @return false when this place, of a slot or of TIME-WAIT, is free */
static bool put_place(const struct hw_toe *toe, uint32_t place, uint64_t now_us,
                      uint8_t *to)
{
    if (place >= HW_TOE_SLOTS) {
        return put_wait(toe, place - HW_TOE_SLOTS, now_us, to);
    }
    if (toe->state.conns[place].state == TOE_SLOT_FREE) {
        return false;
    }
    put_conn(toe, &toe->state.conns[place], to);
    return true;
}

/* A TID below QUERY_END stands for a place, whatever has it. */
enum toe_status hw_toe_query(struct hw_toe *toe, struct hw_toe_conn *conn,
                             const uint8_t *cmd, uint64_t now_us)
{
    uint32_t place = get_le32(cmd + TOE_CMD_TID);
    uint64_t addr = get_le64(cmd + TOE_CMD_ADDR);
    bool searches = get_le32(cmd + TOE_CMD_LENGTH) == SEARCH;
    uint8_t tcb[TOE_TCB_LEN] = {0};
    uint8_t *to;

    if (conn != NULL) {
        put_conn(toe, conn, tcb);
    } else if (searches) {
        while (place < QUERY_END && !put_place(toe, place, now_us, tcb)) {
            place++;
        }
    } else if (place >= QUERY_END || !put_place(toe, place, now_us, tcb)) {
        return TOE_BAD_TID;
    }
    to = addr % 64 == 0 ? toe->env.dma_write(toe->env.ctx, addr, TOE_TCB_LEN)
                        : NULL;
    if (to == NULL) {
        return TOE_BAD_ADDRESS;
    }
    memcpy(to, tcb, TOE_TCB_LEN);
    return TOE_OK;
}
