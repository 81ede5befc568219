/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP errors.  One counts only if it quotes a sequence number in flight (RFC
 * 5927 section 4.1), so that nobody can slow a connection down blindly; and a
 * packet counts as too big only if nothing shows the contrary (section 7.2).
 * Spec: RFC 5927 sections 4 and 7; RFC 1191 section 3; RFC 8201 section 4; RFC
 * 9293 section 3.9.2.2 (an error is no reason to end a connection).
 */
#include "net/tcp/internal.h"

enum { LEAST_MTU_V4 = 552, LEAST_MTU_V6 = 1280 };

/* RFC 5927 section 7.2.  The segment that is quoted has to be longer than the
 * router takes.  When the peer has acknowledged segments of full size, the path
 * may have become narrower; then they are not acknowledged any more, and what
 * is sent again causes the same error once more. */
static bool may_be_too_big(const struct tcp_conn *conn, uint16_t mss,
                           uint32_t seq)
{
    return mss < conn->mss &&
           conn->snd_nxt - seq + (TCP_LEN_MAX - TCP_LEN) > mss &&
           (!conn->mss_proven || conn->backoff != 0);
}

static void lower_mss(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_ends *ends, uint32_t seq,
                      uint32_t mtu_bytes)
{
    uint32_t least = ip_addr_is_v4(&ends->remote) ? LEAST_MTU_V4 : LEAST_MTU_V6;
    uint32_t mtu = MIN(MAX(mtu_bytes, least), tcp->config.mtu_bytes);
    uint16_t mss = tcp_mss_of(ends, mtu);

    if (!may_be_too_big(conn, mss, seq)) {
        tcp_count(tcp, TCP_RX_BAD_ICMP);
        return;
    }
    tcp_count(tcp, TCP_RX_ICMP);
    conn->mss = mss;
    conn->mss_sent = conn->mss_proven = false;
    /* What is in flight was too long: it goes out again in smaller segments,
     * without a change of the congestion window (RFC 1191 section 6.4). */
    tcp_runs_lose_all(conn);
    tcp_output_want(tcp, conn);
    tcp_timer_sync(tcp, conn);
}

void tcp_icmp(struct tcp *tcp, enum tcp_icmp type, const struct tcp_ends *ends,
              uint32_t seq, uint32_t mtu_bytes, uint64_t now_us)
{
    uint16_t node = tcp_node_find(tcp, ends);
    struct tcp_conn *conn;

    tcp_call_begin(tcp, now_us);
    if (node >= tcp->config.connections) {
        tcp_count(tcp, TCP_RX_BAD_ICMP);
        return;
    }
    conn = &tcp->conns[node];
    if (seq - conn->snd_una >= conn->snd_nxt - conn->snd_una) {
        tcp_count(tcp, TCP_RX_BAD_ICMP);
        return;
    }
    if (type == TCP_ICMP_TOO_BIG && tcp_is_synchronized(conn)) {
        lower_mss(tcp, conn, ends, seq, mtu_bytes);
    } else if (type == TCP_ICMP_UNREACHABLE &&
               conn->state == TCP_STATE_SYN_SENT) {
        tcp_count(tcp, TCP_RX_ICMP);
        tcp_conn_end(tcp, conn, TCP_END_UNREACHABLE);
    } else if (type == TCP_ICMP_SOFT) {
        tcp_count(tcp, TCP_RX_ICMP); /* MUST-56: nothing ends */
    }
}
