/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Round-trip time and retransmission time-out.
 * Spec: RFC 6298 sections 2 and 5; RFC 8985 section 6.2 step 1 (minimum).
 */
#include "net/tcp/internal.h"

enum {
    GRANULARITY_US = 1000,
    MIN_RTT_US = 10000000, /* half of the time that a minimum counts for */
};

/* The minimum of the last 10 to 20 seconds. */
static void note_min_rtt(struct tcp *tcp, struct tcp_conn *conn, uint32_t rtt)
{
    if (tcp->now_us - conn->min_rtt_since_us > MIN_RTT_US) {
        conn->min_rtt_us = conn->next_min_rtt_us;
        conn->next_min_rtt_us = UINT32_MAX;
        conn->min_rtt_since_us = tcp->now_us;
    }
    conn->next_min_rtt_us = MIN(conn->next_min_rtt_us, rtt);
    conn->min_rtt_us = MIN(conn->min_rtt_us, rtt);
}

void tcp_rtt_sample(struct tcp *tcp, struct tcp_conn *conn, uint32_t rtt_us,
                    bool is_exact)
{
    uint32_t rtt = MAX(rtt_us, 1);

    if (is_exact) {
        note_min_rtt(tcp, conn, rtt);
    }
    if (conn->srtt_us == 0) {
        conn->srtt_us = rtt;
        conn->rttvar_us = rtt / 2;
    } else {
        uint32_t away =
            conn->srtt_us > rtt ? conn->srtt_us - rtt : rtt - conn->srtt_us;

        conn->rttvar_us =
            (uint32_t)((3 * (uint64_t)conn->rttvar_us + away) / 4);
        conn->srtt_us =
            (uint32_t)MAX((7 * (uint64_t)conn->srtt_us + rtt) / 8, 1);
    }
    conn->rto_us = (uint32_t)MIN(
        conn->srtt_us + MAX(GRANULARITY_US, 4 * (uint64_t)conn->rttvar_us),
        TCP_RTO_MAX_US);
}

uint64_t tcp_rto_us(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint64_t rto = MAX(conn->rto_us, TCP_MS(tcp->config.rto_min_ms));

    return MIN(rto << MIN(conn->backoff, 10), TCP_RTO_MAX_US);
}
