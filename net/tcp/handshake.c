/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening: what both sides agree, and listeners with their half-open
 * connections; the active side is in connect.c.
 * Spec: RFC 9293 sections 3.5, 3.10.7.2 (LISTEN) and 3.10.7.4 (SYN-RECEIVED);
 * RFC 4987 (floods of SYNs).
 *
 * A half-open connection has a small entry of its own, so that a flood of SYNs
 * takes no connection.  When no entry is free, the oldest one goes: a peer that
 * answers at once still gets in.  If a source has more than its part of them,
 * its oldest one goes instead: one source does not push others out.
 */
#include "net/tcp/internal.h"
#include "net/tcp/notes.h"

enum {
    DEFAULT_MSS_V4 = 536, /* RFC 9293 section 3.7.1 */
    DEFAULT_MSS_V6 = 1220,
    LEAST_MSS = 64, /* a peer that asks for less gets this much */
    HALF_ANSWER_US = 1000000,
    HALF_RETRIES_MAX = 5, /* an entry of the small pool, for 63 s */
};

/* ---- Options. */

uint16_t tcp_mss_of(const struct tcp_ends *ends, uint32_t mtu_bytes)
{
    return (uint16_t)(mtu_bytes - TCP_LEN -
                      (ip_addr_is_v4(&ends->remote) ? 20u : 40u));
}

/* The smallest shift with which the largest window can be told. */
uint8_t tcp_rcv_shift(const struct tcp *tcp)
{
    uint8_t shift = 0;

    while (tcp->config.window_bytes >> shift > UINT16_MAX) {
        shift++;
    }
    return shift;
}

struct tcp_options tcp_syn_options(const struct tcp *tcp,
                                   const struct tcp_ends *ends)
{
    return (struct tcp_options){
        .has_mss = true,
        .mss = tcp_mss_of(ends, tcp->config.mtu_bytes),
        .has_shift = true,
        .shift = tcp_rcv_shift(tcp),
        .has_times = true,
        .tsval = tcp_times_now(tcp, tcp_times_base(tcp, ends)),
        .sack_permitted = true,
    };
}

static uint16_t offered_mss(const struct tcp_ends *ends,
                            const struct tcp_options *options)
{
    if (!options->has_mss || options->mss == 0) {
        return ip_addr_is_v4(&ends->remote) ? DEFAULT_MSS_V4 : DEFAULT_MSS_V6;
    }
    return (uint16_t)MAX(options->mss, LEAST_MSS);
}

void tcp_conn_agree(struct tcp *tcp, struct tcp_conn *conn,
                    const struct tcp_options *options)
{
    const struct tcp_ends *ends = &tcp->nodes[tcp_node_of(tcp, conn)].ends;

    conn->peer_mss = offered_mss(ends, options);
    conn->mss = MIN(conn->peer_mss, tcp_mss_of(ends, tcp->config.mtu_bytes));
    conn->has_sack = options->sack_permitted;
    conn->has_times = options->has_times;
    conn->ts_recent = options->tsval;
    conn->ts_recent_us = tcp->now_us;
    conn->snd_shift = options->has_shift ? options->shift : 0;
    conn->rcv_shift = options->has_shift ? tcp_rcv_shift(tcp) : 0;
}

/* Both sides have synchronized: iss, irs, options and snd_wnd are set. */
void tcp_conn_begin(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->snd_una = conn->iss + 1;
    conn->snd_nxt = seq_max(conn->snd_nxt, conn->snd_una);
    conn->syn_due = false;
    conn->rtx_due_us = DEADLINE_NONE;
    conn->backoff = 0;
    tcp_progress(tcp, conn);
    conn->heard_us = tcp->now_us;
    conn->max_wnd = MAX(conn->snd_wnd, conn->max_wnd);
    conn->cwnd = conn->syn_tries > 1 ? conn->mss : tcp_initial_window(conn);
    if (conn->syn_tries > 1) { /* RFC 6298 section 5.7 */
        conn->rto_us = 3000000;
    }
    tcp_conn_enter(conn, TCP_STATE_ESTABLISHED);
    if (conn->fin_wanted) { /* tcp_close() came during the handshake */
        tcp_conn_enter(conn, TCP_STATE_FIN_WAIT_1);
    }
    tcp_count(tcp, TCP_ESTABLISHED_COUNT);
    tcp_life_arm(tcp, conn);
    tcp_user_established(tcp, tcp_conn_id(tcp, conn), conn->asked);
}

/* ---- Listeners. */

static int listener_of(const struct tcp *tcp, uint16_t port)
{
    for (int i = 0; i < TCP_LISTENERS_MAX; i++) {
        if (tcp->saved->listeners[i].port == port) {
            return i;
        }
    }
    return -1;
}

int tcp_listen(struct tcp *tcp, uint16_t port)
{
    int free = listener_of(tcp, 0);

    if (port == 0 || free < 0 || listener_of(tcp, port) >= 0) {
        return -1;
    }
    tcp->saved->listeners[free].port = port;
    return free;
}

static void half_release(struct tcp *tcp, uint16_t node)
{
    if (tcp_half(tcp, node)->syn_due) {
        tcp->saved->half_due--;
    }
    tcp_node_release(tcp, &tcp->saved->free_half, node);
}

void tcp_half_drop(struct tcp *tcp, uint16_t node, enum tcp_end end)
{
    uint32_t id = tcp_id_of(tcp, node);
    struct tcp_half half = *tcp_half(tcp, node);
    struct tcp_ends ends = tcp->nodes[node].ends;
    uint32_t route = tcp->nodes[node].route;

    half_release(tcp, node);
    if (half.was_waiting) {
        tcp_time_wait_return(tcp, &ends, route, &half.wait);
    }
    tcp_user_ended(tcp, id, end);
}

static void half_begin(struct tcp *tcp, const struct tcp_rx *rx, int listener,
                       const struct tcp_time_wait *wait)
{
    const struct tcp_options *options = &rx->header.options;
    const uint8_t ecn = TCP_ECE | TCP_CWR;
    bool has_ecn = tcp->config.uses_ecn && (rx->header.flags & ecn) == ecn;
    uint16_t node;

    if (tcp->saved->free_half == TCP_NO_NODE) {
        node = tcp_half_victim(tcp, &rx->ends);
        tcp_count(tcp, TCP_HALF_EVICTED);
        tcp_user_note(tcp, node, TCP_NOTE_NO_HALF_OPEN, 0, 0);
        tcp_half_drop(tcp, node, TCP_END_TIMED_OUT);
    }
    node = tcp_node_take(tcp, &tcp->saved->free_half, &rx->ends,
                         rx->packet->route);
    ASSERT(node != TCP_NO_NODE);
    *tcp_half(tcp, node) = (struct tcp_half){
        .state = TCP_HALF_ASKED,
        .listener = (uint8_t)listener,
        .shift = options->shift,
        .has_shift = options->has_shift,
        .has_times = options->has_times,
        .has_sack = options->sack_permitted,
        .has_ecn = has_ecn,
        .echoes_ecn = has_ecn,
        .mss = offered_mss(&rx->ends, options),
        .iss = tcp_isn_beyond(tcp, &rx->ends, wait),
        .irs = rx->header.seq,
        .ts_recent = options->tsval,
        .times_base = tcp_times_base(tcp, &rx->ends),
        .born_us = tcp->now_us,
        .was_waiting = wait != NULL,
    };
    if (wait != NULL) {
        tcp_half(tcp, node)->wait = *wait;
    }
    deadlines_set(&tcp->deadlines, node,
                  tcp->now_us + TCP_MS(tcp->config.give_up_ms));
    tcp_count(tcp, TCP_HALF_OPENED);
    tcp_user_asked(tcp, tcp_id_of(tcp, node), (uint32_t)listener, &rx->ends);
}

bool tcp_listener_takes(const struct tcp *tcp, const struct tcp_rx *rx)
{
    return listener_of(tcp, rx->ends.local_port) >= 0 &&
           tcp_source_has_place(tcp, &rx->ends);
}

/* A segment for which there is no connection (sections 3.10.7.1, 3.10.7.2).
 * Data in a SYN are not acknowledged; the peer sends them again. */
void tcp_listener_input(struct tcp *tcp, const struct tcp_rx *rx,
                        const struct tcp_time_wait *wait)
{
    int listener = listener_of(tcp, rx->ends.local_port);

    if ((rx->header.flags & TCP_RST) != 0) {
        return;
    }
    if (listener < 0 || (rx->header.flags & TCP_SYN) == 0 ||
        (rx->header.flags & TCP_ACK) != 0) {
        tcp_count(tcp, TCP_RX_NO_PORT);
        tcp_answer_rst(tcp, rx);
    } else if (!tcp_source_has_place(tcp, &rx->ends)) {
        tcp_count(tcp, TCP_HALF_REFUSED); /* it tries again */
        tcp_user_note_refusal(tcp, &rx->ends);
    } else {
        half_begin(tcp, rx, listener, wait);
    }
}

static void half_want_syn(struct tcp *tcp, struct tcp_half *half)
{
    if (!half->syn_due) {
        half->syn_due = true;
        tcp->saved->half_due++;
    }
}

/* A half-open connection by its id, or NULL. */
static struct tcp_half *half_by_id(struct tcp *tcp, uint32_t id)
{
    uint16_t node = tcp_node_by_id(tcp, id);

    return node >= tcp_first_half(tcp) && node < tcp_first_wait(tcp)
               ? tcp_half(tcp, node)
               : NULL;
}

void tcp_accept(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    struct tcp_half *half = half_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (half == NULL || half->state != TCP_HALF_ASKED) {
        return;
    }
    half->state = TCP_HALF_ANSWERED;
    half->sent_us = now_us;
    half_want_syn(tcp, half);
    deadlines_set(&tcp->deadlines, (uint16_t)id, now_us + HALF_ANSWER_US);
}

/* A peer that has the SYN-ACK is established and takes only a RST with the next
 * number (section 3.10.7.4); in SYN-SENT its acknowledgement counts. */
struct tcp_header tcp_half_rst(const struct tcp *tcp,
                               const struct tcp_half *half)
{
    return (struct tcp_header){
        .seq = half->state == TCP_HALF_ANSWERED ? half->iss + 1 : 0,
        .ack = half->irs + 1,
        .flags = TCP_RST | TCP_ACK,
        .options =
            {
                .has_times = half->has_times,
                .tsval = tcp_times_now(tcp, half->times_base),
                .tsecr = half->ts_recent,
            },
    };
}

static void half_reset(struct tcp *tcp, uint16_t node)
{
    struct tcp_header header = tcp_half_rst(tcp, tcp_half(tcp, node));

    tcp_answer(tcp, &tcp->nodes[node].ends, tcp->nodes[node].route, &header);
}

void tcp_listen_end(struct tcp *tcp, int listener)
{
    ASSERT(listener >= 0 && listener < TCP_LISTENERS_MAX);
    tcp_call_begin(tcp, tcp->now_us);
    tcp->saved->listeners[listener].port = 0;
}

/* RFC 9293 section 3.10.5: whoever has a SYN-ACK believes in a connection. */
void tcp_unlisten(struct tcp *tcp, int listener)
{
    uint16_t port;

    ASSERT(listener >= 0 && listener < TCP_LISTENERS_MAX);
    port = tcp->saved->listeners[listener].port;
    tcp_listen_end(tcp, listener);
    for (uint16_t i = 0; i < tcp->config.half_open; i++) {
        uint16_t node = (uint16_t)(tcp_first_half(tcp) + i);

        if (tcp->nodes[node].used && tcp->nodes[node].ends.local_port == port) {
            half_reset(tcp, node);
            tcp_half_drop(tcp, node, TCP_END_ABORTED);
        }
    }
}

void tcp_reject(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    struct tcp_half *half = half_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (half != NULL) {
        half_reset(tcp, (uint16_t)id);
        tcp_half_drop(tcp, (uint16_t)id, TCP_END_ABORTED);
    }
}

void tcp_half_timer(struct tcp *tcp, uint16_t node)
{
    struct tcp_half *half = tcp_half(tcp, node);

    if (half->state == TCP_HALF_ASKED ||
        half->tries >= MIN(tcp->config.syn_retries, HALF_RETRIES_MAX)) {
        tcp_count(tcp, TCP_HALF_TIMED_OUT);
        tcp_half_drop(tcp, node, TCP_END_TIMED_OUT);
        return;
    }
    half->tries++;
    /* RFC 3168 section 6.1.1: no ECT from now on.  The peer may have the first
     * SYN-ACK, by which it sends ECT: its marks still count. */
    half->has_ecn = false;
    half_want_syn(tcp, half);
    deadlines_set(&tcp->deadlines, node,
                  tcp->now_us + ((uint64_t)HALF_ANSWER_US << half->tries));
}

void tcp_half_hurry(struct tcp *tcp, uint16_t node)
{
    struct tcp_half *half = tcp_half(tcp, node);
    uint64_t due_us = tcp->deadlines.table[node].due;

    if (half->state == TCP_HALF_ANSWERED) {
        half->tries = MIN(half->tries, 1);
        deadlines_set(&tcp->deadlines, node,
                      MIN(due_us, tcp->now_us + HALF_ANSWER_US));
    }
}

/* The ACK of the SYN-ACK has come: the entry becomes a connection. */
static struct tcp_conn *half_complete(struct tcp *tcp, uint16_t node,
                                      const struct tcp_rx *rx)
{
    struct tcp_half half = *tcp_half(tcp, node);
    struct tcp_ends ends = tcp->nodes[node].ends;
    uint32_t route = tcp->nodes[node].route;
    uint32_t asked = tcp_id_of(tcp, node);
    struct tcp_options options = {
        .has_mss = true,
        .mss = half.mss,
        .has_shift = half.has_shift,
        .shift = half.shift,
        .has_times = half.has_times,
        .tsval = half.ts_recent,
        .sack_permitted = half.has_sack,
    };
    struct tcp_conn *conn;

    if (!tcp_source_has_place(tcp, &ends)) {
        tcp_count(tcp, TCP_HALF_REFUSED); /* the SYN-ACK goes out again */
        tcp_user_note(tcp, node, TCP_NOTE_NO_CONNECTION, 0, 0);
        return NULL;
    }
    half_release(tcp, node);
    conn = tcp_conn_take(tcp, &ends, route);
    conn->asked = asked;
    conn->iss = conn->snd_nxt = half.iss;
    conn->irs = half.irs;
    conn->rcv_nxt = conn->last_ack_sent = half.irs + 1;
    conn->rcv_edge = conn->rcv_nxt + MIN(tcp->config.window_bytes, UINT16_MAX);
    conn->has_ecn = half.has_ecn;
    conn->echoes_ecn = half.echoes_ecn;
    conn->syn_tries = (uint8_t)(half.tries + 1);
    tcp_conn_agree(tcp, conn, &options);
    conn->snd_wl1 = rx->header.seq - 1; /* the window of this ACK counts */
    conn->snd_wl2 = half.iss;
    conn->snd_wnd = (uint32_t)rx->header.window << conn->snd_shift;
    tcp_conn_begin(tcp, conn);
    if (half.tries == 0 && !half.is_again) { /* Karn */
        tcp_rtt_sample(tcp, conn, (uint32_t)(tcp->now_us - half.sent_us), true);
    }
    return conn;
}

static bool half_old_times(const struct tcp_half *half, const struct tcp_rx *rx)
{
    return half->has_times && rx->header.options.has_times &&
           seq_before(rx->header.options.tsval, half->ts_recent);
}

/* The peer's SYN has come again: the SYN-ACK was lost, or is late.  It is not
 * sent more often than a peer sends its SYN: the address may be false. */
static void half_syn_again(struct tcp *tcp, struct tcp_half *half,
                           const struct tcp_rx *rx)
{
    const struct tcp_options *options = &rx->header.options;

    if (half->has_times && options->has_times &&
        !seq_before(options->tsval, half->ts_recent)) {
        half->ts_recent = options->tsval; /* RFC 7323 section 4.3 */
    }
    if (half->state == TCP_HALF_ANSWERED && (rx->header.flags & TCP_ACK) == 0 &&
        tcp_challenge_allowed(tcp, &half->challenge_us)) {
        half->is_again = true;
        half_want_syn(tcp, half);
    }
}

/* SYN-RECEIVED of a passive open (section 3.10.7.4). */
void tcp_half_input(struct tcp *tcp, uint16_t node, struct tcp_rx *rx)
{
    struct tcp_half *half = tcp_half(tcp, node);
    uint8_t flags = rx->header.flags;
    uint32_t ahead = rx->header.seq - (half->irs + 1);

    if ((flags & TCP_SYN) != 0 && rx->header.seq == half->irs) {
        half_syn_again(tcp, half, rx);
    } else if ((flags & TCP_RST) != 0) {
        if (ahead == 0) {
            tcp_half_drop(tcp, node, TCP_END_RESET);
        }
    } else if (ahead >= MIN(tcp->config.window_bytes, UINT16_MAX) ||
               half_old_times(half, rx) || (flags & TCP_SYN) != 0) {
        /* The SYN-ACK tells where we are. */
        if (half->state == TCP_HALF_ANSWERED &&
            tcp_challenge_allowed(tcp, &half->challenge_us)) {
            half->is_again = true;
            half_want_syn(tcp, half);
        }
    } else if ((flags & TCP_ACK) != 0) {
        if (half->state != TCP_HALF_ANSWERED ||
            rx->header.ack != half->iss + 1) {
            tcp_answer_rst(tcp, rx);
        } else {
            struct tcp_conn *conn = half_complete(tcp, node, rx);

            if (conn != NULL) {
                tcp_conn_segment(tcp, conn, rx);
                if (conn->state != TCP_STATE_FREE) {
                    tcp_output_want(tcp, conn);
                    tcp_timer_sync(tcp, conn);
                }
            }
        }
    }
}
