/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIME-WAIT, in a small table of its own: a connection that waits there needs
 * no windows and no buffers.  When the table is full, the oldest entry goes.
 * Spec: RFC 9293 sections 3.6.1 and 3.10.7.4; RFC 6191 (a SYN that may take the
 * place); RFC 1337 (RSTs are ignored).
 */
#include "net/tcp/internal.h"
#include "net/tcp/notes.h"

static uint16_t oldest_wait(const struct tcp *tcp)
{
    uint16_t oldest = 0;

    for (uint16_t i = 1; i < tcp->config.time_waits; i++) {
        if (tcp->waits[i].born_us < tcp->waits[oldest].born_us) {
            oldest = i;
        }
    }
    return (uint16_t)(tcp_first_wait(tcp) + oldest);
}

void tcp_time_wait_end(struct tcp *tcp, uint16_t node)
{
    tcp_node_release(tcp, &tcp->saved->free_wait, node);
}

static void wait_restart(struct tcp *tcp, uint16_t node)
{
    struct tcp_time_wait *wait = tcp_wait(tcp, node);

    wait->due_us = tcp->now_us + TCP_MS(tcp->config.time_wait_ms);
    deadlines_set(&tcp->deadlines, node, wait->due_us);
}

static void wait_answer(struct tcp *tcp, uint16_t node)
{
    const struct tcp_time_wait *wait = tcp_wait(tcp, node);
    struct tcp_header header = {
        .seq = wait->snd_nxt,
        .ack = wait->rcv_nxt,
        .flags = TCP_ACK,
        .window = (uint16_t)wait->window,
        .options = {.has_times = wait->has_times,
                    .tsval = tcp_times_now(tcp, wait->times_base),
                    .tsecr = wait->ts_recent},
    };

    tcp_answer(tcp, &tcp->nodes[node].ends, tcp->nodes[node].route, &header);
}

/* The connection goes, and its entry acknowledges the FIN. */
void tcp_time_wait_begin(struct tcp *tcp, struct tcp_conn *conn)
{
    uint16_t from = tcp_node_of(tcp, conn);
    struct tcp_ends ends = tcp->nodes[from].ends;
    uint32_t route = tcp->nodes[from].route;
    struct tcp_time_wait wait = {
        .snd_nxt = conn->snd_nxt,
        .rcv_nxt = conn->rcv_nxt,
        .ts_recent = conn->ts_recent,
        .times_base = conn->times_base,
        .window = tcp_window_take(tcp, conn),
        .has_times = conn->has_times,
        .born_us = tcp->now_us,
    };
    uint16_t node;

    tcp_conn_end(tcp, conn, TCP_END_CLOSED);
    if (tcp->saved->free_wait == TCP_NO_NODE) {
        node = oldest_wait(tcp);
        tcp_count(tcp, TCP_TIME_WAIT_EVICTED);
        tcp_user_note(tcp, node, TCP_NOTE_NO_TIME_WAIT, 0, 0);
        tcp_time_wait_end(tcp, node);
    }
    node = tcp_node_take(tcp, &tcp->saved->free_wait, &ends, route);
    ASSERT(node != TCP_NO_NODE);
    *tcp_wait(tcp, node) = wait;
    wait_restart(tcp, node);
    wait_answer(tcp, node);
}

/* RFC 9293 section 3.6.1: the SYN that took the place has led to nothing. */
void tcp_time_wait_return(struct tcp *tcp, const struct tcp_ends *ends,
                          uint32_t route, const struct tcp_time_wait *wait)
{
    uint16_t node;

    if (wait->due_us <= tcp->now_us) {
        return;
    }
    node = tcp_node_take(tcp, &tcp->saved->free_wait, ends, route);
    if (node == TCP_NO_NODE) {
        tcp_count(tcp, TCP_TIME_WAIT_EVICTED);
        return;
    }
    *tcp_wait(tcp, node) = *wait;
    deadlines_set(&tcp->deadlines, node, wait->due_us);
}

/* RFC 6191 section 2: a SYN that cannot be an old one. */
static bool is_new_syn(const struct tcp_time_wait *wait,
                       const struct tcp_rx *rx)
{
    const struct tcp_options *options = &rx->header.options;

    if ((rx->header.flags & (TCP_SYN | TCP_ACK | TCP_RST)) != TCP_SYN) {
        return false;
    }
    if (wait->has_times && options->has_times) {
        return seq_after(options->tsval, wait->ts_recent) ||
               (options->tsval == wait->ts_recent &&
                seq_after(rx->header.seq, wait->rcv_nxt));
    }
    return seq_after(rx->header.seq, wait->rcv_nxt);
}

void tcp_time_wait_input(struct tcp *tcp, uint16_t node, struct tcp_rx *rx)
{
    struct tcp_time_wait *wait = tcp_wait(tcp, node);

    if ((rx->header.flags & TCP_RST) != 0) {
        return; /* RFC 1337 */
    }
    if (is_new_syn(wait, rx) && tcp_listener_takes(tcp, rx)) {
        struct tcp_time_wait old = *wait;

        tcp_time_wait_end(tcp, node);
        tcp_listener_input(tcp, rx, &old);
        return;
    }
    if (rx->fin && rx->seq + rx->len + 1 == wait->rcv_nxt) {
        wait_restart(tcp, node); /* the FIN again: our ACK was lost */
    } else if (tcp_rx_space(rx) == 0 && rx->header.seq == wait->rcv_nxt) {
        return;
    }
    if (tcp_challenge_allowed(tcp, &wait->challenge_us)) {
        wait_answer(tcp, node);
    }
}
