/* SPDX-License-Identifier: BSD-2-Clause */
/* The congestion control of RFC 5681 section 3.1. */
#include "net/tcp/internal.h"

static void newreno_acked(struct tcp *tcp, struct tcp_conn *conn,
                          uint32_t bytes)
{
    (void)tcp;
    if (conn->cwnd < conn->ssthresh) {
        bytes = tcp_slow_start(conn, bytes);
    }
    conn->cwnd_acked += bytes;
    if (conn->cwnd_acked >= conn->cwnd) {
        conn->cwnd_acked -= conn->cwnd;
        conn->cwnd += conn->mss;
    }
}

static void newreno_paused(struct tcp *tcp, struct tcp_conn *conn)
{
    (void)tcp;
    (void)conn;
}

static uint32_t newreno_lost(struct tcp *tcp, struct tcp_conn *conn,
                             uint32_t used)
{
    (void)tcp;
    conn->cwnd_acked = 0;
    return MAX(used / 2, 2 * (uint32_t)conn->mss);
}

static void newreno_timed_out(struct tcp *tcp, struct tcp_conn *conn)
{
    (void)tcp;
    conn->cwnd_acked = 0;
}

const struct tcp_cc tcp_cc_newreno = {
    .acked = newreno_acked,
    .paused = newreno_paused,
    .lost = newreno_lost,
    .timed_out = newreno_timed_out,
};
