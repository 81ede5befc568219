/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's memory, its configuration, and calls of its user: see tcp.h. */
#include "net/tcp/tcp.h"

#include <string.h>

#include "net/tcp/internal.h"

enum { ALIGNMENT = 16, LEAST_WINDOW = 2048 };

struct tcp_config tcp_config_default(void)
{
    return (struct tcp_config){
        .connections = TCP_CONNECTIONS_MAX,
        .half_open = TCP_HALF_OPEN_MAX,
        .time_waits = TCP_TIME_WAITS_MAX,
        .pages = TCP_PAGES_MAX,
        .mtu_bytes = 1500,
        .window_bytes = 256 * 1024,
        .congestion = TCP_CUBIC,
        .uses_ecn = true,
        .rto_min_ms = 200,
        .ack_delay_ms = 40,
        .give_up_ms = 100000,
        .syn_retries = 7, /* 183 s: RFC 9293 section 3.8.3, MUST-23 */
        .keep_alive_ms = 0,
        .keep_alive_interval_ms = 10000,
        .keep_alive_probes = 5,
        .fin_wait_2_ms = 60000,
        .time_wait_ms = 60000,
    };
}

static bool sizes_are_valid(const struct tcp_config *c)
{
    return c->connections >= 1 && c->connections <= TCP_CONNECTIONS_MAX &&
           c->half_open >= 1 && c->half_open <= TCP_HALF_OPEN_MAX &&
           c->time_waits >= 1 && c->time_waits <= TCP_TIME_WAITS_MAX &&
           c->pages >= 1 && c->pages <= TCP_PAGES_MAX && c->mtu_bytes >= 576 &&
           c->mtu_bytes <= 9000 && c->window_bytes >= LEAST_WINDOW &&
           c->window_bytes <= TCP_WINDOW_MAX;
}

static bool config_is_valid(const struct tcp_config *c)
{
    return sizes_are_valid(c) && c->congestion < TCP_CONGESTIONS &&
           c->rto_min_ms >= 1 && c->rto_min_ms <= 60000 &&
           c->ack_delay_ms >= 1 && c->ack_delay_ms <= 500 &&
           c->give_up_ms >= 1000 && c->syn_retries >= 1 &&
           c->syn_retries <= 8 && c->fin_wait_2_ms >= 1 &&
           c->time_wait_ms >= 1 && c->keep_alive_interval_ms >= 1 &&
           (c->keep_alive_ms == 0 || c->keep_alive_probes >= 2);
}

static uint32_t nodes_of(const struct tcp_config *c)
{
    return (uint32_t)c->connections + c->half_open + c->time_waits;
}

/* The least power of 2 that is not below the number of nodes. */
static uint32_t buckets_of(const struct tcp_config *c)
{
    uint32_t buckets = 1;

    while (buckets < nodes_of(c)) {
        buckets *= 2;
    }
    return buckets;
}

/* Give a part of the memory out; with `memory` NULL only count it. */
static void *memory_take(uint8_t *memory, size_t *at, size_t len)
{
    void *part = memory != NULL ? memory + *at : NULL;

    *at += (len + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return part;
}

/* The saved parts stand together, from `saved` to the bytes of the pages. */
static size_t memory_divide(uint8_t *memory, const struct tcp_config *c,
                            struct tcp *tcp)
{
    size_t nodes = nodes_of(c);
    size_t at = 0;

    (void)memory_take(memory, &at, sizeof(struct tcp));
    tcp->saved = memory_take(memory, &at, sizeof(struct tcp_saved));
    tcp->buckets = memory_take(memory, &at, buckets_of(c) * sizeof(uint16_t));
    tcp->nodes = memory_take(memory, &at, nodes * sizeof(struct tcp_node));
    tcp->conns =
        memory_take(memory, &at, c->connections * sizeof(struct tcp_conn));
    tcp->halves =
        memory_take(memory, &at, c->half_open * sizeof(struct tcp_half));
    tcp->waits =
        memory_take(memory, &at, c->time_waits * sizeof(struct tcp_time_wait));
    tcp->deadlines.table =
        memory_take(memory, &at, nodes * sizeof(struct deadline));
    tcp->page_next = memory_take(memory, &at, c->pages * sizeof(uint16_t));
    tcp->page_bytes =
        memory_take(memory, &at, (size_t)c->pages * TCP_PAGE_BYTES);
    return at;
}

size_t tcp_bytes(const struct tcp_config *config)
{
    struct tcp unused = {0};

    return memory_divide(NULL, config, &unused);
}

void tcp_empty(struct tcp *tcp)
{
    const struct tcp_config *c = &tcp->config;

    tcp->now_us = 0;
    memset(tcp->saved, 0, sizeof(*tcp->saved));
    memset(tcp->nodes, 0, tcp->nodes_count * sizeof(tcp->nodes[0]));
    memset(tcp->conns, 0, c->connections * sizeof(tcp->conns[0]));
    memset(tcp->halves, 0, c->half_open * sizeof(tcp->halves[0]));
    memset(tcp->waits, 0, c->time_waits * sizeof(tcp->waits[0]));
    tcp_nodes_init(tcp);
    tcp_pages_init(tcp);
    tcp_resets_init(tcp);
    deadlines_init(&tcp->deadlines, tcp->deadlines.table, tcp->nodes_count);
}

struct tcp *tcp_init(void *memory, const struct tcp_config *config,
                     const struct tcp_user *user)
{
    struct tcp *tcp = memory;

    if (!config_is_valid(config)) {
        return NULL;
    }
    tcp->config = *config;
    tcp->user = user;
    tcp->nodes_count = (uint16_t)nodes_of(config);
    tcp->bucket_mask = (uint16_t)(buckets_of(config) - 1);
    (void)memory_divide(memory, config, tcp);
    tcp_empty(tcp);
    return tcp;
}

/* More connections may time out in one call than RSTs have places. */
static void make_room(struct tcp *tcp)
{
    unsigned int budget = TCP_ANSWERS;

    if (tcp->saved->answer_count == TCP_ANSWERS) {
        (void)tcp_answers_send(tcp, &budget);
    }
}

void tcp_timer(struct tcp *tcp, uint64_t now_us)
{
    uint16_t node;

    tcp_call_begin(tcp, now_us);
    while (deadlines_take(&tcp->deadlines, now_us, &node)) {
        make_room(tcp);
        if (node < tcp_first_half(tcp)) {
            tcp_conn_timer(tcp, &tcp->conns[node]);
        } else if (node < tcp_first_wait(tcp)) {
            tcp_half_timer(tcp, node);
        } else {
            tcp_time_wait_end(tcp, node);
        }
    }
}

uint64_t tcp_deadline(const struct tcp *tcp)
{
    return deadlines_next(&tcp->deadlines);
}

bool tcp_send(struct tcp *tcp, uint32_t id, uint32_t len, uint64_t now_us)
{
    struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (conn == NULL || conn->fin_wanted) {
        return false;
    }
    conn->queued += len;
    tcp_output_want(tcp, conn);
    tcp_rtx_arm(tcp, conn, false);
    tcp_timer_sync(tcp, conn);
    return true;
}

void tcp_consume(struct tcp *tcp, uint32_t id, uint32_t len, uint64_t now_us)
{
    struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (conn != NULL) {
        ASSERT(len <= conn->unread);
        conn->unread -= len;
        tcp_output_want(tcp, conn);
    }
}
