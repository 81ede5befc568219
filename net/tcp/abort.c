/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of connections that the user wants, and what waits to be sent of
 * connections that have ended.
 * Spec: RFC 9293 section 3.10.5.
 */
#include "net/tcp/internal.h"

/* A connection, or a half-open one; TCP_NO_NODE: it does not exist. */
static uint16_t node_to_end(const struct tcp *tcp, uint32_t id)
{
    uint16_t node = tcp_node_by_id(tcp, id);

    return node < tcp_first_wait(tcp) ? node : (uint16_t)TCP_NO_NODE;
}

static void node_end(struct tcp *tcp, uint16_t node)
{
    if (node < tcp_first_half(tcp)) {
        tcp_conn_end(tcp, &tcp->conns[node], TCP_END_ABORTED);
    } else {
        tcp_half_drop(tcp, node, TCP_END_ABORTED);
    }
}

static bool rst_send(struct tcp *tcp, uint16_t index)
{
    const struct tcp_node *node = &tcp->nodes[index];
    struct tcp_header header = index < tcp_first_half(tcp)
                                   ? tcp_conn_rst(tcp, &tcp->conns[index])
                                   : tcp_half_rst(tcp, tcp_half(tcp, index));

    return tcp_user_has_room(tcp, node->route) &&
           tcp_bare_send(tcp, &node->ends, node->route, TCP_NO_ID, &header);
}

bool tcp_abort_now(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    uint16_t node = node_to_end(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (node == TCP_NO_NODE) {
        return true;
    }
    /* The peer of SYN-SENT does not know of a connection. */
    if (!(node < tcp_first_half(tcp) &&
          tcp->conns[node].state == TCP_STATE_SYN_SENT) &&
        !rst_send(tcp, node)) {
        return false;
    }
    node_end(tcp, node);
    return true;
}

void tcp_abandon(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    uint16_t node = node_to_end(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (node != TCP_NO_NODE) {
        tcp_count(tcp, TCP_TX_NO_ANSWER);
        node_end(tcp, node);
    }
}

void tcp_refuse(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    uint16_t index = node_to_end(tcp, id);
    const struct tcp_node *node;
    struct tcp_header header;

    tcp_call_begin(tcp, now_us);
    if (index == TCP_NO_NODE || index < tcp_first_half(tcp)) {
        return;
    }
    node = &tcp->nodes[index];
    if (tcp_reset_allowed(tcp, &node->ends, node->route)) {
        header = tcp_half_rst(tcp, tcp_half(tcp, index));
        tcp_answer(tcp, &node->ends, node->route, &header);
    }
    node_end(tcp, index);
}

bool tcp_answer_waits(const struct tcp *tcp, const struct tcp_ends *ends)
{
    const struct tcp_saved *saved = tcp->saved;

    for (unsigned int i = 0; i < saved->answer_count; i++) {
        const struct tcp_ends *other =
            &saved->answers[(saved->answer_head + i) % TCP_ANSWERS].ends;

        if (other->local_port == ends->local_port &&
            other->remote_port == ends->remote_port &&
            ip_addr_equal(&other->local, &ends->local) &&
            ip_addr_equal(&other->remote, &ends->remote)) {
            return true;
        }
    }
    return false;
}

bool tcp_route_is_needed(const struct tcp *tcp, uint32_t route)
{
    const struct tcp_saved *saved = tcp->saved;

    for (unsigned int i = 0; i < saved->answer_count; i++) {
        if (saved->answers[(saved->answer_head + i) % TCP_ANSWERS].route ==
            route) {
            return true;
        }
    }
    for (uint16_t i = tcp_first_wait(tcp); i < tcp->nodes_count; i++) {
        if (tcp->nodes[i].used && tcp->nodes[i].route == route) {
            return true;
        }
    }
    return false;
}
