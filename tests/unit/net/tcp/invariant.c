/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold between two calls: see invariant.h. */
#include "tests/unit/net/tcp/invariant.h"

#include "net/tcp/internal.h"

/* Runs cover what is in flight, in order and without gaps. */
static void check_runs(const struct tcp_conn *conn)
{
    uint32_t at = conn->snd_una;

    ASSERT(!seq_after(conn->snd_una, conn->snd_nxt));
    ASSERT(conn->run_count <= TCP_RUNS);
    for (uint16_t i = 0; i < conn->run_count; i++) {
        const struct tcp_run *run = &conn->runs[i];

        ASSERT(run->seq == at && run->len != 0);
        ASSERT(!(run->is_lost && run->is_sacked));
        at += run->len;
    }
    ASSERT(at == conn->snd_nxt);
    ASSERT(tcp_pipe(conn) <= conn->snd_nxt - conn->snd_una);
    ASSERT(tcp_sacked(conn) <= conn->snd_nxt - conn->snd_una);
    /* What was sent is a part of what the user has announced. */
    ASSERT(conn->una_offset + (conn->snd_nxt - conn->snd_una) <=
           conn->queued + (conn->fin_wanted ? 1 : 0));
    ASSERT(conn->cwnd >= conn->mss);
}

/* Ranges are beyond the next byte, in order and apart, and have pages. */
static uint16_t check_ranges(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint32_t last = conn->rcv_nxt;
    uint16_t pages = 0;

    ASSERT(!seq_before(conn->rcv_edge, conn->rcv_nxt));
    ASSERT(conn->unread <= tcp->config.window_bytes);
    for (uint8_t i = 0; i < conn->range_count; i++) {
        const struct tcp_block *block = &conn->ranges[i].block;
        uint64_t at = conn->rcv_offset + (block->left - conn->rcv_nxt);
        uint64_t end = conn->rcv_offset + (block->right - conn->rcv_nxt);

        ASSERT(seq_after(block->left, last));
        ASSERT(seq_after(block->right, block->left));
        ASSERT(!seq_after(block->right, conn->rcv_edge));
        for (; at < end; at = (at / TCP_PAGE_BYTES + 1) * TCP_PAGE_BYTES) {
            ASSERT(conn->pages[at / TCP_PAGE_BYTES % TCP_HOLD_PAGES] !=
                   TCP_NO_PAGE);
        }
        last = block->right;
    }
    for (unsigned int i = 0; i < TCP_HOLD_PAGES; i++) {
        pages = (uint16_t)(pages + (conn->pages[i] != TCP_NO_PAGE));
    }
    ASSERT(conn->range_count != 0 || pages == 0);
    ASSERT(conn->page_count == pages);
    return pages;
}

/* Nothing may wait for ever: what is in flight or cannot be sent has a timer,
 * and the connection's deadline is not later than any of its timers. */
static void check_timers(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint16_t node = tcp_node_of(tcp, conn);
    uint64_t due = tcp->deadlines.table[node].due;
    bool waits = conn->run_count != 0 || tcp_unsent(conn) != 0;

    ASSERT(due <= conn->rtx_due_us && due <= conn->ack_due_us &&
           due <= conn->reorder_due_us && due <= conn->life_due_us);
    ASSERT(due == DEADLINE_NONE || tcp->deadlines.table[node].place != 0);
    if (tcp_is_synchronized(conn)) {
        ASSERT(!waits || conn->rtx_due_us != DEADLINE_NONE);
    } else {
        ASSERT(conn->rtx_due_us != DEADLINE_NONE);
    }
    if (conn->ack_due || conn->probe_due || conn->window_probe_due ||
        conn->syn_due || conn->keep_alive_due) {
        ASSERT(conn->is_listed);
    }
    ASSERT(conn->state != TCP_STATE_FIN_WAIT_2 ||
           conn->life_due_us != DEADLINE_NONE);
}

/* What is free suffices for the guaranteed pages of every connection. */
static void check_guarantee(const struct tcp *tcp)
{
    uint32_t share = (uint32_t)tcp->config.pages / tcp->config.connections;
    uint32_t due = MIN(share, 2);
    uint32_t owed = 0;
    uint32_t used = 0;

    for (uint16_t i = 0; i < tcp->config.connections; i++) {
        uint32_t has = tcp->nodes[i].used ? tcp->conns[i].page_count : 0;

        owed += due - MIN(has, due);
        used += MIN(has, due);
    }
    ASSERT((uint32_t)tcp->config.pages - tcp->saved->usage.pages >= owed);
    ASSERT(tcp->saved->pages_due_used == used);
}

void tcp_check(struct tcp *tcp)
{
    struct tcp_usage usage = {0};

    for (uint16_t i = 0; i < tcp->nodes_count; i++) {
        const struct tcp_node *node = &tcp->nodes[i];

        ASSERT(node->generation != 0);
        if (i < tcp->config.connections) {
            ASSERT(node->used == (tcp->conns[i].state != TCP_STATE_FREE));
        }
        if (!node->used) {
            continue;
        }
        ASSERT(tcp_node_find(tcp, &node->ends) == i);
        if (i >= tcp_first_wait(tcp)) {
            usage.time_waits++;
        } else if (i >= tcp_first_half(tcp)) {
            usage.half_open++;
        } else {
            usage.connections++;
            check_timers(tcp, &tcp->conns[i]);
            usage.pages =
                (uint16_t)(usage.pages + check_ranges(tcp, &tcp->conns[i]));
            if (tcp_is_synchronized(&tcp->conns[i])) {
                check_runs(&tcp->conns[i]);
            }
        }
    }
    ASSERT(usage.connections == tcp->saved->usage.connections);
    ASSERT(usage.half_open == tcp->saved->usage.half_open);
    ASSERT(usage.time_waits == tcp->saved->usage.time_waits);
    ASSERT(usage.pages == tcp->saved->usage.pages);
    check_guarantee(tcp);
}

uint32_t tcp_check_iss(struct tcp *tcp, const struct tcp_ends *ends)
{
    uint16_t node = tcp_node_find(tcp, ends);

    if (node < tcp_first_half(tcp)) {
        return tcp->conns[node].iss;
    }
    return node < tcp_first_wait(tcp) ? tcp_half(tcp, node)->iss : 0;
}

uint64_t tcp_check_time_of_iss(struct tcp *tcp, const struct tcp_ends *ends,
                               uint32_t iss)
{
    return (uint64_t)(uint32_t)(iss - tcp_hash(tcp, ends, 1)) * 4;
}
