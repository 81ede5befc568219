/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which segment a connection sends next, and whose turn it is.
 * Spec: RFC 9293 sections 3.8.6.1 (zero window) and 3.8.6.2.1 (small segments);
 * RFC 6675 section 5; RFC 8985 section 7.3 (tail loss probes).
 *
 * Nagle's algorithm is left out: users of this engine send whole messages.
 */
#include "net/tcp/internal.h"

enum { QUANTUM = 8 }; /* segments that a connection sends in its turn */

bool tcp_is_synchronized(const struct tcp_conn *conn)
{
    return conn->state >= TCP_STATE_ESTABLISHED;
}

/* ---- The list of connections that have something to send. */

void tcp_output_want(struct tcp *tcp, struct tcp_conn *conn)
{
    struct tcp_queue *queue = &tcp->saved->queue;
    uint16_t node = tcp_node_of(tcp, conn);

    if (conn->is_listed) {
        return;
    }
    conn->is_listed = true;
    if (queue->count++ == 0) {
        queue->head = node;
    } else {
        tcp->conns[queue->tail].list_next = node;
    }
    queue->tail = node;
}

static struct tcp_conn *output_take(struct tcp *tcp)
{
    struct tcp_queue *queue = &tcp->saved->queue;
    struct tcp_conn *conn = &tcp->conns[queue->head];

    queue->count--;
    queue->head = conn->list_next;
    conn->is_listed = false;
    return conn;
}

/* ---- What comes next. */

/* Bytes of the stream that were never sent; the FIN is one. */
uint32_t tcp_unsent(const struct tcp_conn *conn)
{
    uint64_t end = conn->queued + (conn->fin_wanted ? 1 : 0);
    uint64_t sent = conn->una_offset + (conn->snd_nxt - conn->snd_una);

    return (uint32_t)MIN(end - sent, UINT32_MAX);
}

/* The number of a segment without data.  A peer drops what is beyond its
 * window, the ACK in it, too: after the probe of a closed window, snd_nxt is
 * beyond.  A peer whose window scale rounds down seems to take back less than
 * one unit of it, and may have received those bytes: they do not count. */
uint32_t tcp_bare_seq(const struct tcp_conn *conn)
{
    uint32_t edge = conn->snd_una + conn->snd_wnd;
    int32_t beyond = seq_diff(conn->snd_nxt, edge);
    int32_t unit = conn->snd_wnd == 0 ? 1 : (int32_t)1 << conn->snd_shift;

    return tcp_is_synchronized(conn) && beyond >= unit ? edge : conn->snd_nxt;
}

static uint32_t payload_max(const struct tcp_conn *conn)
{
    return (uint32_t)conn->mss - tcp_options_len(conn);
}

/* A lost run goes first, if the congestion window permits. */
static bool plan_lost(struct tcp_conn *conn, struct tcp_plan *plan)
{
    const struct tcp_run *run = tcp_runs_lost(conn);
    uint32_t pipe = tcp_pipe(conn);
    uint32_t len;

    if (run == NULL) {
        return false;
    }
    len = MIN(run->len, payload_max(conn));
    if (pipe != 0 && pipe + len > conn->cwnd) {
        conn->was_limited = true;
        return false;
    }
    *plan = (struct tcp_plan){.seq = run->seq, .len = len};
    return true;
}

/* How much new data may be sent in one segment now. */
static uint32_t new_len(struct tcp *tcp, struct tcp_conn *conn)
{
    uint32_t unsent = tcp_unsent(conn);
    int32_t room = seq_diff(conn->snd_una + conn->snd_wnd, conn->snd_nxt);
    uint32_t most = payload_max(conn);
    uint32_t len, pipe;

    if (unsent == 0 || room <= 0) {
        return 0;
    }
    len = MIN(MIN(unsent, most), (uint32_t)room);
    if (len < most && len < unsent && len < conn->max_wnd / 2) {
        return 0; /* RFC 9293 section 3.8.6.2.1 */
    }
    tcp_idle_restart(tcp, conn, 0);
    pipe = tcp_pipe(conn);
    if (pipe + len > conn->cwnd) {
        conn->was_limited = true;
        return 0;
    }
    return tcp_runs_have_room(tcp, conn) ? len : 0;
}

/* RFC 8985 section 7.3: new data if there are any, or the last segment. */
static bool plan_probe(struct tcp *tcp, struct tcp_conn *conn,
                       struct tcp_plan *plan)
{
    int32_t room = seq_diff(conn->snd_una + conn->snd_wnd, conn->snd_nxt);
    uint32_t len;

    if (conn->run_count == 0 || conn->rack.probe_out) {
        conn->probe_due = false;
        return false;
    }
    len = MIN(tcp_unsent(conn), payload_max(conn));
    if (len != 0 && (int64_t)len <= room && tcp_runs_have_room(tcp, conn)) {
        *plan =
            (struct tcp_plan){conn->snd_nxt, len, true, TCP_PLAN_TAIL_PROBE};
    } else {
        len = MIN(conn->runs[conn->run_count - 1].len, payload_max(conn));
        *plan = (struct tcp_plan){conn->snd_nxt - len, len, false,
                                  TCP_PLAN_TAIL_PROBE};
    }
    return true;
}

/* One byte beyond a closed window; or what fits in a small one. */
static bool plan_window_probe(struct tcp_conn *conn, struct tcp_plan *plan)
{
    int32_t room = seq_diff(conn->snd_una + conn->snd_wnd, conn->snd_nxt);
    uint32_t len = room > 0 ? MIN((uint32_t)room, payload_max(conn)) : 1;

    if (conn->run_count != 0) {
        len = MIN(conn->runs[0].len, len);
        *plan =
            (struct tcp_plan){conn->snd_una, len, false, TCP_PLAN_WINDOW_PROBE};
    } else {
        len = MIN(tcp_unsent(conn), len);
        *plan =
            (struct tcp_plan){conn->snd_nxt, len, true, TCP_PLAN_WINDOW_PROBE};
    }
    conn->window_probe_due = len != 0;
    return len != 0;
}

static bool plan_data(struct tcp *tcp, struct tcp_conn *conn,
                      struct tcp_plan *plan)
{
    uint32_t len;

    if (conn->window_probe_due && plan_window_probe(conn, plan)) {
        return true;
    }
    if (plan_lost(conn, plan)) {
        return true;
    }
    if (conn->probe_due && plan_probe(tcp, conn, plan)) {
        return true;
    }
    len = new_len(tcp, conn);
    *plan = (struct tcp_plan){conn->snd_nxt, len, true, TCP_PLAN_DATA};
    return len != 0;
}

static bool plan_next(struct tcp *tcp, struct tcp_conn *conn,
                      struct tcp_plan *plan)
{
    if (conn->syn_due) {
        return true;
    }
    *plan = (struct tcp_plan){.seq = conn->snd_nxt};
    if (conn->state == TCP_STATE_SYN_RECEIVED) {
        return conn->ack_due; /* for the peer's SYN-ACK, or its SYN again */
    }
    if (!tcp_is_synchronized(conn)) {
        return false;
    }
    if (plan_data(tcp, conn, plan)) {
        return true;
    }
    *plan = (struct tcp_plan){.seq = tcp_bare_seq(conn)};
    if (conn->keep_alive_due) { /* RFC 9293 section 3.8.4 */
        plan->seq = conn->snd_una - 1;
        plan->kind = TCP_PLAN_KEEP_ALIVE;
        return true;
    }
    return conn->ack_due;
}

/* A segment that was asked for by a timer has left. */
static void plan_done(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_plan *plan)
{
    switch (plan->kind) {
    case TCP_PLAN_TAIL_PROBE:
        conn->probe_due = false;
        conn->rack.probe_out = true;
        conn->rack.probe_is_again = !plan->is_new;
        conn->rack.probe_end = plan->seq + plan->len;
        tcp_count(tcp, TCP_TX_PROBES);
        break;
    case TCP_PLAN_WINDOW_PROBE:
        conn->window_probe_due = false;
        tcp_count(tcp, TCP_TX_ZERO_WINDOW_PROBES);
        break;
    case TCP_PLAN_KEEP_ALIVE:
        conn->keep_alive_due = false;
        tcp_count(tcp, TCP_TX_KEEP_ALIVES);
        break;
    default:
        break;
    }
}

/* Whether the peer needs to hear of a larger window: it has used up half of
 * what a SYN can tell, or of the whole. */
static void want_window_update(struct tcp *tcp, struct tcp_conn *conn)
{
    if (tcp_is_synchronized(conn) && !conn->fin_received &&
        tcp_window_edge(tcp, conn) != conn->rcv_edge &&
        (conn->rcv_edge - conn->rcv_nxt) <
            MIN(tcp->config.window_bytes, UINT16_MAX) / 2) {
        conn->ack_due = true;
    }
}

/* One connection's turn. @return false when there is no room */
static bool conn_transmit(struct tcp *tcp, struct tcp_conn *conn,
                          unsigned int *budget)
{
    struct tcp_plan plan = {0};
    unsigned int turn = MIN(*budget, (unsigned int)QUANTUM);
    bool has_room = true;

    want_window_update(tcp, conn);
    for (; has_room && turn != 0 && plan_next(tcp, conn, &plan); turn--) {
        switch (tcp_segment_send(tcp, conn, &plan)) {
        case TCP_NO_ROOM:
            has_room = false;
            break;
        case TCP_DATA_LOST:
            tcp_conn_reset(tcp, conn, TCP_END_ABORTED);
            return true;
        case TCP_SENT:
            plan_done(tcp, conn, &plan);
            (*budget)--;
        }
        plan.kind = TCP_PLAN_DATA;
    }
    if (turn == 0 || !has_room) {
        tcp_output_want(tcp, conn);
    }
    tcp_rtx_arm(tcp, conn, false);
    tcp_timer_sync(tcp, conn);
    return has_room;
}

/* Give each listed connection a turn.  @return false when there is no room for
 * any */
static bool conns_transmit(struct tcp *tcp, unsigned int *budget)
{
    for (uint16_t left = tcp->saved->queue.count; left != 0 && *budget != 0;
         left--) {
        struct tcp_conn *conn = output_take(tcp);

        if (conn->state == TCP_STATE_FREE) {
            continue;
        }
        if (!tcp_user_has_room(tcp, tcp->nodes[tcp_node_of(tcp, conn)].route)) {
            tcp_output_want(tcp, conn);
        } else if (!conn_transmit(tcp, conn, budget) &&
                   tcp->user->has_room == NULL) {
            return false;
        }
    }
    return true;
}

bool tcp_transmit(struct tcp *tcp, unsigned int budget, uint64_t now_us)
{
    unsigned int before;

    tcp_call_begin(tcp, now_us);
    if (!tcp_answers_send(tcp, &budget) || !tcp_halves_send(tcp, &budget)) {
        return false;
    }
    do { /* until what is left has no room */
        before = budget;
        if (!conns_transmit(tcp, &budget)) {
            return false;
        }
    } while (tcp->saved->queue.count != 0 && budget != 0 && budget != before);
    (void)tcp_answers_send(tcp, &budget); /* RSTs of connections that ended */
    return budget == 0 &&
           (tcp->saved->queue.count != 0 || tcp->saved->answer_count != 0 ||
            tcp->saved->half_due != 0);
}
