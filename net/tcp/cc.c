/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all kinds of congestion control share, and the choice of one.
 * Spec: RFC 5681 section 3.1; RFC 6928; RFC 3465 (bytes are counted, at most
 * two segments for each ACK).
 */
#include "net/tcp/internal.h"

const struct tcp_cc *tcp_cc(const struct tcp *tcp)
{
    static const struct tcp_cc *const kinds[TCP_CONGESTIONS] = {
        [TCP_NEWRENO] = &tcp_cc_newreno,
        [TCP_CUBIC] = &tcp_cc_cubic,
    };

    return kinds[tcp->config.congestion];
}

uint32_t tcp_initial_window(const struct tcp_conn *conn)
{
    uint32_t mss = conn->mss;

    return MIN(10 * mss, MAX(2 * mss, 14600));
}

uint32_t tcp_slow_start(struct tcp_conn *conn, uint32_t bytes)
{
    uint32_t room = conn->ssthresh - MIN(conn->cwnd, conn->ssthresh);
    uint32_t step = MIN(MIN(bytes, 2 * (uint32_t)conn->mss), room);

    conn->cwnd += step;
    return room > step ? 0 : bytes - MIN(bytes, step);
}
