/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments in: what they belong to, and the checks in their order.
 * Spec: RFC 9293 section 3.10.7 as changed by RFC 5961 (sections 3 to 5) and
 * RFC 7323 (section 5.3, PAWS).
 */
#include "net/tcp/internal.h"

enum { CE = 3 };
#define PAWS_VALID_US (UINT64_C(24) * 24 * 3600 * 1000000) /* RFC 7323 5.5 */

/* ---- Challenge ACKs, limited for each connection (RFC 5961 section 7). */

bool tcp_challenge_allowed(struct tcp *tcp, uint64_t *next_us)
{
    if (tcp->now_us < *next_us) {
        tcp_count(tcp, TCP_TX_LIMITED);
        return false;
    }
    *next_us = tcp->now_us + TCP_CHALLENGE_US;
    tcp_count(tcp, TCP_TX_CHALLENGE);
    return true;
}

void tcp_challenge(struct tcp *tcp, struct tcp_conn *conn)
{
    if (tcp_challenge_allowed(tcp, &conn->challenge_us)) {
        conn->ack_due = true;
    }
}

/* Whether a segment begins with a byte that has been received, and that the
 * peer may still have to send again: not further back than a window. */
static bool is_again(const struct tcp *tcp, const struct tcp_conn *conn,
                     const struct tcp_rx *rx)
{
    uint64_t most = MIN(conn->rcv_offset + (conn->fin_received ? 1 : 0),
                        MAX(tcp->config.window_bytes, (uint32_t)UINT16_MAX));
    uint32_t behind = conn->rcv_nxt - rx->seq;

    return (rx->len != 0 || rx->fin) && behind != 0 && behind <= most;
}

/* An ACK for a segment that is not taken.  One that has come before needs it
 * always: the peer may have lost the ACK that it waits for.  RFC 2883: it is
 * told which bytes have come twice. */
static void answer_outside(struct tcp *tcp, struct tcp_conn *conn,
                           const struct tcp_rx *rx)
{
    uint32_t behind = conn->rcv_nxt - rx->seq;

    if (!is_again(tcp, conn, rx)) {
        tcp_challenge(tcp, conn);
        return;
    }
    conn->ack_due = true;
    if (rx->len != 0) {
        tcp_count(tcp, TCP_RX_DUPLICATE);
        conn->has_dsack = true;
        conn->dsack =
            (struct tcp_block){rx->seq, rx->seq + MIN(rx->len, behind)};
    }
}

/* ---- The checks.  Each returns whether the segment is done with. */

/* RFC 5961 section 4.2: a SYN never changes anything, and is challenged
 * wherever it is; hence it is looked at first. */
static bool check_syn(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    if ((rx->header.flags & TCP_SYN) == 0) {
        return false;
    }
    tcp_challenge(tcp, conn);
    return true;
}

static bool check_times(struct tcp *tcp, struct tcp_conn *conn,
                        struct tcp_rx *rx)
{
    const struct tcp_options *options = &rx->header.options;

    if (!conn->has_times || (rx->header.flags & TCP_RST) != 0) {
        return false;
    }
    if (!options->has_times) { /* RFC 7323 section 3.2 */
        tcp_count(tcp, TCP_RX_NO_TIMES);
        return true;
    }
    if (!seq_before(options->tsval, conn->ts_recent) ||
        tcp->now_us - conn->ts_recent_us > PAWS_VALID_US) {
        return false;
    }
    tcp_count(tcp, TCP_RX_PAWS);
    answer_outside(tcp, conn, rx);
    return true;
}

/* RFC 9293 section 3.10.7.4, first: the four cases of the table. */
static bool sequence_is_acceptable(const struct tcp_conn *conn,
                                   const struct tcp_rx *rx)
{
    uint32_t window = conn->rcv_edge - conn->rcv_nxt;
    uint32_t space = tcp_rx_space(rx);
    uint32_t last = rx->seq + space - 1;

    if (space == 0) {
        return window == 0 ? rx->seq == conn->rcv_nxt
                           : rx->seq - conn->rcv_nxt < window;
    }
    return window != 0 &&
           (rx->seq - conn->rcv_nxt < window || last - conn->rcv_nxt < window);
}

/* An ACK, RST or urgent pointer counts even with a closed window, if the
 * segment is where it should be (RFC 9293 section 3.10.7.4, MUST-66). */
static bool check_sequence(struct tcp *tcp, struct tcp_conn *conn,
                           struct tcp_rx *rx)
{
    if (sequence_is_acceptable(conn, rx)) {
        return false;
    }
    tcp_count(tcp, TCP_RX_UNACCEPTABLE);
    if ((rx->header.flags & TCP_RST) != 0) {
        return true;
    }
    if (rx->seq == conn->rcv_nxt) {
        conn->ack_due = true;
        rx->len = 0;
        rx->fin = false;
        return false;
    }
    answer_outside(tcp, conn, rx);
    return true;
}

/* RFC 5961 section 3.2: only the exact sequence number resets. */
static bool check_rst(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    if ((rx->header.flags & TCP_RST) == 0) {
        return false;
    }
    if (rx->seq != conn->rcv_nxt) {
        tcp_challenge(tcp, conn);
    } else {
        tcp_conn_end(tcp, conn,
                     conn->state == TCP_STATE_SYN_RECEIVED ? TCP_END_REFUSED
                                                           : TCP_END_RESET);
    }
    return true;
}

/* RFC 5961 section 5.2. */
bool tcp_ack_is_known(const struct tcp_conn *conn, uint32_t ack)
{
    uint32_t flight = conn->snd_nxt - conn->snd_una;

    return conn->snd_nxt - ack <= flight + conn->max_wnd;
}

static bool check_ack(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    if ((rx->header.flags & TCP_ACK) == 0) {
        return true;
    }
    if (tcp_ack_is_known(conn, rx->header.ack)) {
        return false;
    }
    tcp_count(tcp, TCP_RX_BAD_ACK);
    if (conn->state == TCP_STATE_SYN_RECEIVED) {
        tcp_answer_rst(tcp, rx);
    } else {
        tcp_challenge(tcp, conn);
    }
    return true;
}

/* RFC 7323 section 4.3: the timestamp to echo. */
static void note_times(struct tcp *tcp, struct tcp_conn *conn,
                       const struct tcp_rx *rx)
{
    bool is_stale = tcp->now_us - conn->ts_recent_us > PAWS_VALID_US;

    if (conn->has_times && rx->header.options.has_times &&
        (is_stale || !seq_before(rx->header.options.tsval, conn->ts_recent)) &&
        !seq_after(rx->header.seq, conn->last_ack_sent)) {
        conn->ts_recent = rx->header.options.tsval;
        conn->ts_recent_us = tcp->now_us;
    }
}

/* RFC 3168 section 6.1.3: echo the mark until the peer has reacted. */
static void note_congestion(struct tcp *tcp, struct tcp_conn *conn,
                            const struct tcp_rx *rx)
{
    if (!conn->echoes_ecn) {
        return;
    }
    if ((rx->header.flags & TCP_CWR) != 0 && rx->len != 0) {
        conn->ce_seen = false;
    }
    if (rx->packet->ecn == CE) {
        tcp_count(tcp, TCP_RX_CE);
        conn->ack_due |= !conn->ce_seen;
        conn->ce_seen = true;
    }
}

typedef bool segment_check(struct tcp *tcp, struct tcp_conn *conn,
                           struct tcp_rx *rx);

static segment_check *const checks[] = {
    check_syn, check_times, check_sequence, check_rst, check_ack,
};

void tcp_conn_segment(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        if (checks[i](tcp, conn, rx)) {
            return;
        }
    }
    conn->heard_us = tcp->now_us;
    conn->keep_alives = 0;
    note_times(tcp, conn, rx);
    note_congestion(tcp, conn, rx);
    if (tcp_ack_input(tcp, conn, rx)) {
        tcp_receive(tcp, conn, rx);
    }
}

/* ---- Dispatch. */

static void conn_input(struct tcp *tcp, struct tcp_conn *conn,
                       struct tcp_rx *rx)
{
    if (conn->state == TCP_STATE_SYN_SENT) {
        tcp_syn_sent_input(tcp, conn, rx);
    } else {
        tcp_conn_segment(tcp, conn, rx);
    }
    if (conn->state != TCP_STATE_FREE) {
        tcp_output_want(tcp, conn);
        tcp_timer_sync(tcp, conn);
    }
}

static void input_dispatch(struct tcp *tcp, struct tcp_rx *rx)
{
    uint16_t node = tcp_node_find(tcp, &rx->ends);

    if (node == TCP_NO_NODE) {
        tcp_listener_input(tcp, rx, NULL);
    } else if (node < tcp_first_half(tcp)) {
        conn_input(tcp, &tcp->conns[node], rx);
    } else if (node < tcp_first_wait(tcp)) {
        tcp_half_input(tcp, node, rx);
    } else {
        tcp_time_wait_input(tcp, node, rx);
    }
}

/* Combinations that no stack sends and that scanners do. */
static bool flags_make_sense(uint8_t flags)
{
    uint8_t kinds = flags & (TCP_SYN | TCP_RST | TCP_FIN);

    return (flags & (TCP_SYN | TCP_RST | TCP_FIN | TCP_ACK)) != 0 &&
           (kinds & (kinds - 1)) == 0 &&
           (kinds != TCP_FIN || (flags & TCP_ACK) != 0);
}

static bool addresses_make_sense(const struct tcp_rx *rx)
{
    return rx->header.src_port != 0 && rx->header.dst_port != 0 &&
           !ip_addr_is_multicast(&rx->ends.local) &&
           !ip_addr_is_multicast(&rx->ends.remote) &&
           !ip_addr_is_unspecified(&rx->ends.remote);
}

void tcp_input(struct tcp *tcp, const struct tcp_packet *packet,
               uint64_t now_us)
{
    struct tcp_rx rx = {.packet = packet};

    tcp_call_begin(tcp, now_us);
    tcp_count(tcp, TCP_RX_SEGMENTS);
    if (packet->len_bytes < TCP_LEN || packet->len_bytes > UINT16_MAX) {
        tcp_count(tcp, TCP_RX_MALFORMED);
        return;
    }
    if (tcp_checksum(&packet->remote, &packet->local, packet->data,
                     packet->len_bytes) != 0) {
        tcp_count(tcp, TCP_RX_CHECKSUM);
        return;
    }
    if (!tcp_header_parse(&rx.header, packet->data, packet->len_bytes) ||
        !flags_make_sense(rx.header.flags)) {
        tcp_count(tcp, TCP_RX_MALFORMED);
        return;
    }
    rx.ends = (struct tcp_ends){packet->local, packet->remote,
                                rx.header.dst_port, rx.header.src_port};
    if (!addresses_make_sense(&rx)) {
        tcp_count(tcp, TCP_RX_ADDRESS);
        return;
    }
    rx.data = packet->data + rx.header.header_len;
    rx.len = (uint32_t)(packet->len_bytes - rx.header.header_len);
    rx.seq = rx.header.seq;
    rx.fin = (rx.header.flags & TCP_FIN) != 0;
    if ((rx.header.flags & TCP_RST) != 0) {
        rx.len = 0; /* RFC 9293 section 3.5.3: data of a RST are a text */
    }
    input_dispatch(tcp, &rx);
}
