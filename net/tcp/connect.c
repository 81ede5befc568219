/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening actively: tcp_connect(), and what comes in SYN-SENT.
 * Spec: RFC 9293 sections 3.5, 3.6.1 and 3.10.7.3; RFC 6191 (TIME-WAIT).
 */
#include "net/tcp/internal.h"

enum { REUSE_US = 1000000 }; /* our timestamps have moved on for sure */

uint32_t tcp_connect(struct tcp *tcp, const struct tcp_ends *ends,
                     uint32_t route, uint64_t now_us)
{
    uint16_t node = tcp_node_find(tcp, ends);
    struct tcp_time_wait *wait = NULL;
    struct tcp_conn *conn;
    uint32_t iss;

    tcp_call_begin(tcp, now_us);
    if (node != TCP_NO_NODE && node >= tcp_first_wait(tcp)) {
        wait = tcp_wait(tcp, node); /* RFC 9293 section 3.6.1, RFC 6191 */
        if (!wait->has_times || now_us + TCP_MS(tcp->config.time_wait_ms) <
                                    wait->due_us + REUSE_US) {
            return TCP_NO_ID;
        }
    } else if (node != TCP_NO_NODE) {
        return TCP_NO_ID;
    }
    if (tcp->saved->free_conn == TCP_NO_NODE) {
        return TCP_NO_ID;
    }
    iss = tcp_isn_beyond(tcp, ends, wait);
    if (wait != NULL) {
        tcp_time_wait_end(tcp, node);
    }
    conn = tcp_conn_take(tcp, ends, route);
    conn->iss = iss;
    conn->snd_una = conn->iss;
    conn->snd_nxt = conn->iss + 1;
    conn->mss = tcp_mss_of(ends, tcp->config.mtu_bytes);
    conn->syn_due = true;
    conn->syn_tries = 1;
    conn->rtx_due_us = now_us + tcp_rto_us(tcp, conn);
    tcp_conn_enter(conn, TCP_STATE_SYN_SENT);
    tcp_output_want(tcp, conn);
    tcp_timer_sync(tcp, conn);
    return tcp_conn_id(tcp, conn);
}

/* Section 3.10.7.3: a SYN or SYN-ACK has passed the checks. */
static void syn_sent_take(struct tcp *tcp, struct tcp_conn *conn,
                          struct tcp_rx *rx)
{
    uint8_t flags = rx->header.flags;
    bool is_acked = (flags & TCP_ACK) != 0;

    conn->irs = rx->header.seq;
    conn->rcv_nxt = conn->irs + 1;
    conn->last_ack_sent = conn->irs; /* nothing is acknowledged */
    conn->rcv_edge = conn->rcv_nxt + MIN(tcp->config.window_bytes, UINT16_MAX);
    tcp_conn_agree(tcp, conn, &rx->header.options);
    conn->snd_wnd = conn->max_wnd = rx->header.window; /* never scaled */
    conn->snd_wl1 = rx->header.seq;
    conn->snd_wl2 = rx->header.ack;
    if (is_acked) {
        conn->echoes_ecn =
            tcp->config.uses_ecn && (flags & (TCP_ECE | TCP_CWR)) == TCP_ECE;
        /* RFC 3168 section 6.1.1: the SYN again was without ECN. */
        conn->has_ecn = conn->echoes_ecn && conn->syn_tries == 1;
        tcp_conn_begin(tcp, conn);
        if (conn->syn_tries == 1) {
            tcp_rtt_sample(tcp, conn, (uint32_t)(tcp->now_us - conn->sent_us),
                           true);
        }
        tcp_rtx_arm(tcp, conn, false); /* for what the user has sent so far */
        conn->ack_due = true;
    } else { /* both open at once: section 3.5, figure 7 */
        tcp_conn_enter(conn, TCP_STATE_SYN_RECEIVED);
        conn->syn_due = true;
    }
}

void tcp_syn_sent_input(struct tcp *tcp, struct tcp_conn *conn,
                        struct tcp_rx *rx)
{
    uint8_t flags = rx->header.flags;
    bool is_acked = (flags & TCP_ACK) != 0;

    if (is_acked && rx->header.ack != conn->iss + 1) {
        tcp_count(tcp, TCP_RX_BAD_ACK);
        if ((flags & TCP_RST) == 0) {
            tcp_answer_rst(tcp, rx);
        }
    } else if ((flags & TCP_RST) != 0) {
        if (is_acked) {
            tcp_conn_end(tcp, conn, TCP_END_REFUSED);
        }
    } else if ((flags & TCP_SYN) != 0) {
        syn_sent_take(tcp, conn, rx);
    }
}
