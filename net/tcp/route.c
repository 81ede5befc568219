/* SPDX-License-Identifier: BSD-2-Clause */
/* Other ways to a peer: see tcp_reroute(). */
#include "net/tcp/internal.h"

static void node_reroute(struct tcp *tcp, uint16_t node, uint32_t route)
{
    tcp->nodes[node].route = route;
    if (node < tcp_first_half(tcp)) {
        struct tcp_conn *conn = &tcp->conns[node];

        conn->mss_sent = conn->mss_proven = false; /* by the old way */
        tcp_conn_hurry(tcp, conn);
    } else if (node < tcp_first_wait(tcp)) {
        tcp_half_hurry(tcp, node);
    }
}

void tcp_reroute(struct tcp *tcp, uint32_t from, uint32_t to, uint64_t now_us)
{
    tcp_call_begin(tcp, now_us);
    for (uint16_t i = 0; i < tcp->nodes_count; i++) {
        if (tcp->nodes[i].used && tcp->nodes[i].route == from) {
            node_reroute(tcp, i, to);
        }
    }
    for (unsigned int i = 0; i < TCP_ANSWERS; i++) {
        if (tcp->saved->answers[i].route == from) {
            tcp->saved->answers[i].route = to;
        }
    }
}

void tcp_set_route(struct tcp *tcp, uint32_t id, uint32_t route,
                   uint64_t now_us)
{
    struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (conn != NULL) {
        node_reroute(tcp, tcp_node_of(tcp, conn), route);
    }
}
