/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a segment may belong to, by its ends: connections, half-open ones, and
 * those in TIME-WAIT.  They share one hash table and one space of ids.
 */
#include <string.h>

#include "net/tcp/internal.h"

static bool ends_equal(const struct tcp_ends *a, const struct tcp_ends *b)
{
    return a->remote_port == b->remote_port && a->local_port == b->local_port &&
           ip_addr_equal(&a->remote, &b->remote) &&
           ip_addr_equal(&a->local, &b->local);
}

static uint16_t *bucket_of(const struct tcp *tcp, const struct tcp_ends *ends)
{
    return &tcp->buckets[tcp_hash(tcp, ends, 0) & tcp->bucket_mask];
}

/* Make a list of free nodes in ascending order. */
static uint16_t free_list(struct tcp *tcp, uint16_t first, uint16_t count)
{
    uint16_t list = TCP_NO_NODE;

    for (uint16_t i = count; i-- != 0;) {
        struct tcp_node *node = &tcp->nodes[first + i];

        if (!node->used) {
            node->next = list;
            list = (uint16_t)(first + i);
        }
    }
    return list;
}

void tcp_nodes_relink(struct tcp *tcp)
{
    tcp->saved->free_conn = free_list(tcp, 0, tcp->config.connections);
    tcp->saved->free_half =
        free_list(tcp, tcp_first_half(tcp), tcp->config.half_open);
    tcp->saved->free_wait =
        free_list(tcp, tcp_first_wait(tcp), tcp->config.time_waits);
}

void tcp_nodes_init(struct tcp *tcp)
{
    memset(tcp->buckets, 0xff,
           ((size_t)tcp->bucket_mask + 1) * sizeof(tcp->buckets[0]));
    for (uint16_t i = 0; i < tcp->nodes_count; i++) {
        tcp->nodes[i].generation = 1;
    }
    tcp_nodes_relink(tcp);
}

uint16_t tcp_node_find(const struct tcp *tcp, const struct tcp_ends *ends)
{
    uint16_t node = *bucket_of(tcp, ends);

    while (node != TCP_NO_NODE && !ends_equal(&tcp->nodes[node].ends, ends)) {
        node = tcp->nodes[node].next;
    }
    return node;
}

/* The number of entries in use that a list of free ones stands for. */
static uint16_t *usage_of(struct tcp *tcp, const uint16_t *list)
{
    struct tcp_usage *usage = &tcp->saved->usage;

    if (list == &tcp->saved->free_conn) {
        return &usage->connections;
    }
    return list == &tcp->saved->free_half ? &usage->half_open
                                          : &usage->time_waits;
}

static void node_use(struct tcp *tcp, uint16_t index,
                     const struct tcp_ends *ends, uint32_t route)
{
    struct tcp_node *node = &tcp->nodes[index];
    uint16_t *bucket = bucket_of(tcp, ends);

    node->ends = *ends;
    node->route = route;
    node->used = true;
    node->next = *bucket;
    *bucket = index;
}

uint16_t tcp_node_take(struct tcp *tcp, uint16_t *list,
                       const struct tcp_ends *ends, uint32_t route)
{
    uint16_t index = *list;

    if (index == TCP_NO_NODE) {
        return TCP_NO_NODE;
    }
    ASSERT(tcp_node_find(tcp, ends) == TCP_NO_NODE);
    *list = tcp->nodes[index].next;
    node_use(tcp, index, ends, route);
    (*usage_of(tcp, list))++;
    return index;
}

bool tcp_node_restore(struct tcp *tcp, uint16_t index,
                      const struct tcp_ends *ends, uint32_t route)
{
    struct tcp_usage *usage = &tcp->saved->usage;

    if (tcp_node_find(tcp, ends) != TCP_NO_NODE) {
        return false;
    }
    node_use(tcp, index, ends, route);
    if (index < tcp_first_half(tcp)) {
        usage->connections++;
    } else if (index < tcp_first_wait(tcp)) {
        usage->half_open++;
    } else {
        usage->time_waits++;
    }
    return true;
}

void tcp_node_release(struct tcp *tcp, uint16_t *list, uint16_t index)
{
    struct tcp_node *node = &tcp->nodes[index];
    uint16_t *link = bucket_of(tcp, &node->ends);

    ASSERT(node->used);
    while (*link != index) {
        link = &tcp->nodes[*link].next;
    }
    *link = node->next;
    node->used = false;
    node->generation = node->generation == UINT16_MAX
                           ? (uint16_t)1
                           : (uint16_t)(node->generation + 1);
    node->next = *list;
    *list = index;
    (*usage_of(tcp, list))--;
    deadlines_set(&tcp->deadlines, index, DEADLINE_NONE);
}

uint16_t tcp_node_by_id(const struct tcp *tcp, uint32_t id)
{
    uint16_t node = (uint16_t)id;

    if (node >= tcp->nodes_count || !tcp->nodes[node].used ||
        tcp->nodes[node].generation != id >> 16) {
        return TCP_NO_NODE;
    }
    return node;
}

struct tcp_conn *tcp_conn_by_id(const struct tcp *tcp, uint32_t id)
{
    uint16_t node = tcp_node_by_id(tcp, id);

    return node < tcp->config.connections ? &tcp->conns[node] : NULL;
}

struct tcp_conn *tcp_conn_take(struct tcp *tcp, const struct tcp_ends *ends,
                               uint32_t route)
{
    uint16_t node = tcp_node_take(tcp, &tcp->saved->free_conn, ends, route);
    struct tcp_conn *conn, *fresh;
    bool is_listed;
    uint16_t list_next;

    if (node == TCP_NO_NODE) {
        return NULL;
    }
    conn = fresh = &tcp->conns[node];
    /* Its predecessor may have left it in the list of those that send. */
    is_listed = conn->is_listed;
    list_next = conn->list_next;
    memset(fresh, 0, sizeof(*fresh));
    conn->is_listed = is_listed;
    conn->list_next = list_next;
    memset(conn->pages, 0xff, sizeof(conn->pages));
    conn->ack_due_us = conn->rtx_due_us = DEADLINE_NONE;
    conn->reorder_due_us = conn->life_due_us = DEADLINE_NONE;
    conn->rto_us = 1000000; /* RFC 6298 section 2.1 */
    conn->min_rtt_us = conn->next_min_rtt_us = UINT32_MAX;
    conn->ssthresh = UINT32_MAX;
    conn->heard_us = conn->sent_us = tcp->now_us;
    conn->times_base = tcp_times_base(tcp, ends);
    conn->rack.window_mult = 1;
    return conn;
}
