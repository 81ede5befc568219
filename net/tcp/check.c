/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether state that was loaded can be one of this engine: every value that is
 * an index, a divisor or a length, and what other files assert.
 */
#include "net/tcp/internal.h"

enum {
    LEAST_MSS = 64,
    BACKOFF_MAX = 10,
    WINDOW_BITS = 30, /* of the largest window of a peer */
    ACK_DELAY_MAX_MS = 500,
};

static bool flags_fit_state(const struct tcp_conn *conn)
{
    switch (conn->state) {
    case TCP_STATE_SYN_SENT:
        return !conn->fin_wanted && !conn->fin_acked && !conn->fin_received;
    case TCP_STATE_SYN_RECEIVED:
        return !conn->fin_acked && !conn->fin_received;
    case TCP_STATE_ESTABLISHED:
        return !conn->fin_wanted && !conn->fin_acked && !conn->fin_received;
    case TCP_STATE_FIN_WAIT_1:
        return conn->fin_wanted && !conn->fin_acked && !conn->fin_received;
    case TCP_STATE_FIN_WAIT_2:
        return conn->fin_acked && conn->fin_wanted && !conn->fin_received &&
               conn->life_due_us != DEADLINE_NONE;
    case TCP_STATE_CLOSE_WAIT:
        return !conn->fin_wanted && !conn->fin_acked && conn->fin_received;
    case TCP_STATE_CLOSING:
    case TCP_STATE_LAST_ACK:
        return conn->fin_wanted && !conn->fin_acked && conn->fin_received;
    default:
        return false;
    }
}

static bool times_are_past(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint64_t now_us = tcp->now_us;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        if (conn->runs[i].sent_us > now_us) {
            return false;
        }
    }
    return conn->heard_us <= now_us && conn->sent_us <= now_us &&
           conn->rtx_set_us <= now_us && conn->ts_recent_us <= now_us &&
           conn->min_rtt_since_us <= now_us && conn->rack.xmit_us <= now_us &&
           conn->cubic.epoch_us <= conn->cubic.ack_us &&
           conn->cubic.ack_us <= now_us;
}

static bool is_due_within(const struct tcp *tcp, uint64_t due_us,
                          uint64_t most_us)
{
    return due_us == DEADLINE_NONE || due_us <= tcp->now_us + most_us;
}

/* A timer that is due in years is none: the connection would be mute.  Those of
 * which the configuration says how long they last are shortened instead. */
static bool timers_end(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint64_t reorder_us = (uint64_t)conn->rack.rtt_us + conn->srtt_us;

    return is_due_within(tcp, conn->ack_due_us, TCP_MS(ACK_DELAY_MAX_MS)) &&
           is_due_within(tcp, conn->rtx_due_us, TCP_RTO_MAX_US) &&
           is_due_within(tcp, conn->reorder_due_us, reorder_us) &&
           conn->challenge_us <= tcp->now_us + TCP_CHALLENGE_US;
}

static bool runs_are_sound(const struct tcp_conn *conn)
{
    uint32_t at = conn->snd_una;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        const struct tcp_run *run = &conn->runs[i];

        if (run->seq != at || run->len == 0 || run->len > BIT(WINDOW_BITS) ||
            (run->is_lost && run->is_sacked)) {
            return false;
        }
        at += run->len;
    }
    return at == conn->snd_nxt;
}

static bool sending_is_sound(const struct tcp *tcp, const struct tcp_conn *conn,
                             const struct tcp_ends *ends)
{
    uint32_t flight = conn->snd_nxt - conn->snd_una;
    uint64_t end = conn->queued + (conn->fin_wanted ? 1 : 0);

    if (conn->snd_shift > TCP_SHIFT_MAX || conn->mss < LEAST_MSS ||
        conn->mss > tcp_mss_of(ends, tcp->config.mtu_bytes) ||
        conn->snd_wnd > conn->max_wnd || conn->max_wnd > BIT(WINDOW_BITS)) {
        return false;
    }
    if (!tcp_is_synchronized(conn)) {
        return conn->snd_una == conn->iss && flight == 1 &&
               conn->una_offset == 0 && conn->run_count == 0 &&
               conn->rtx_due_us != DEADLINE_NONE;
    }
    return flight <= BIT(WINDOW_BITS) && runs_are_sound(conn) &&
           conn->una_offset <= end && flight <= end - conn->una_offset &&
           conn->snd_una == conn->iss + 1 + (uint32_t)conn->una_offset &&
           conn->fin_acked == (conn->una_offset == conn->queued + 1) &&
           (end == conn->una_offset || conn->rtx_due_us != DEADLINE_NONE);
}

static bool ranges_are_sound(const struct tcp_conn *conn)
{
    uint32_t last = conn->rcv_nxt;

    for (uint8_t i = 0; i < conn->range_count; i++) {
        const struct tcp_block *block = &conn->ranges[i].block;
        uint64_t at = conn->rcv_offset + (block->left - conn->rcv_nxt);
        uint64_t end = conn->rcv_offset + (block->right - conn->rcv_nxt);

        if (!seq_after(block->left, last) ||
            !seq_after(block->right, block->left) ||
            seq_after(block->right, conn->rcv_edge) ||
            (end - 1) / TCP_PAGE_BYTES - conn->rcv_offset / TCP_PAGE_BYTES >=
                TCP_HOLD_PAGES) {
            return false;
        }
        for (; at < end; at = (at / TCP_PAGE_BYTES + 1) * TCP_PAGE_BYTES) {
            if (conn->pages[at / TCP_PAGE_BYTES % TCP_HOLD_PAGES] ==
                TCP_NO_PAGE) {
                return false;
            }
        }
        last = block->right;
    }
    return (conn->range_count != 0 || conn->page_count == 0) &&
           (!conn->fin_early || !seq_before(conn->fin_seq, last) ||
            conn->fin_received);
}

static bool receiving_is_sound(const struct tcp *tcp,
                               const struct tcp_conn *conn)
{
    uint32_t most = MAX(tcp->config.window_bytes, (uint32_t)UINT16_MAX);
    uint32_t fin = conn->fin_received ? 1 : 0;

    if (conn->state == TCP_STATE_SYN_SENT) {
        return conn->range_count == 0 && conn->page_count == 0 &&
               conn->rcv_nxt == 0 && conn->rcv_edge == 0;
    }
    return (conn->rcv_shift == 0 || conn->rcv_shift == tcp_rcv_shift(tcp)) &&
           conn->rcv_edge - conn->rcv_nxt <= most &&
           conn->unread <= tcp->config.window_bytes &&
           conn->unread <= conn->rcv_offset &&
           conn->rcv_nxt == conn->irs + 1 + (uint32_t)conn->rcv_offset + fin &&
           (!conn->fin_early || conn->fin_seq - conn->rcv_nxt + fin <=
                                    conn->rcv_edge - conn->rcv_nxt + fin) &&
           (!conn->fin_received || conn->range_count == 0) &&
           ranges_are_sound(conn);
}

static bool recovery_is_sound(const struct tcp_conn *conn)
{
    bool is_synchronized = tcp_is_synchronized(conn);

    return conn->recovery <= TCP_LOSS && conn->backoff <= BACKOFF_MAX &&
           conn->rtx_timer <= TCP_TIMER_PERSIST &&
           conn->rack.window_mult != 0 &&
           (!is_synchronized || conn->cwnd >= conn->mss) &&
           conn->cwnd <= BIT(WINDOW_BITS) &&
           conn->cwnd_acked <= BIT(WINDOW_BITS) &&
           (conn->recovery != TCP_RECOVERY ||
            (conn->prr_flight != 0 && conn->ssthresh <= BIT(WINDOW_BITS)));
}

bool tcp_conn_is_sound(const struct tcp *tcp, const struct tcp_conn *conn)
{
    const struct tcp_ends *ends = &tcp->nodes[tcp_node_of(tcp, conn)].ends;

    return flags_fit_state(conn) && times_are_past(tcp, conn) &&
           timers_end(tcp, conn) && sending_is_sound(tcp, conn, ends) &&
           receiving_is_sound(tcp, conn) && recovery_is_sound(conn);
}

bool tcp_half_is_sound(const struct tcp *tcp, const struct tcp_half *half)
{
    return half->state <= TCP_HALF_ANSWERED &&
           half->listener < TCP_LISTENERS_MAX && half->tries <= BACKOFF_MAX &&
           half->shift <= TCP_SHIFT_MAX && half->mss >= LEAST_MSS &&
           half->born_us <= tcp->now_us && half->sent_us <= tcp->now_us &&
           half->challenge_us <= tcp->now_us + TCP_CHALLENGE_US &&
           (!half->syn_due || half->state == TCP_HALF_ANSWERED) &&
           (!half->was_waiting || tcp_wait_is_sound(tcp, &half->wait));
}

bool tcp_wait_is_sound(const struct tcp *tcp, const struct tcp_time_wait *wait)
{
    return wait->window <= UINT16_MAX && wait->born_us <= tcp->now_us &&
           wait->challenge_us <= tcp->now_us + TCP_CHALLENGE_US &&
           wait->due_us != DEADLINE_NONE;
}

bool tcp_saved_is_sound(const struct tcp *tcp)
{
    const struct tcp_saved *saved = tcp->saved;

    for (size_t i = 0; i < TCP_RESET_GROUPS; i++) {
        if (saved->resets[i].filled_us > tcp->now_us) {
            return false;
        }
    }
    for (unsigned int i = 0; i < TCP_LISTENERS_MAX; i++) {
        for (unsigned int j = 0; j < i; j++) {
            if (saved->listeners[i].port != 0 &&
                saved->listeners[i].port == saved->listeners[j].port) {
                return false;
            }
        }
    }
    return saved->half_turn < tcp->config.half_open &&
           saved->answer_head < TCP_ANSWERS &&
           saved->answer_count <= TCP_ANSWERS;
}
