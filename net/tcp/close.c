/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FINs, the states of a connection, and its end.
 * Spec: RFC 9293 sections 3.3.2, 3.6 and 3.10.7.4 (eighth check).
 */
#include "net/tcp/internal.h"

/* Where each state may go.  Every state may end: FREE. */
static const uint16_t conn_next[TCP_STATES] = {
    [TCP_STATE_FREE] = BIT(TCP_STATE_SYN_SENT) | BIT(TCP_STATE_ESTABLISHED),
    [TCP_STATE_SYN_SENT] =
        BIT(TCP_STATE_SYN_RECEIVED) | BIT(TCP_STATE_ESTABLISHED),
    [TCP_STATE_SYN_RECEIVED] = BIT(TCP_STATE_ESTABLISHED),
    [TCP_STATE_ESTABLISHED] =
        BIT(TCP_STATE_FIN_WAIT_1) | BIT(TCP_STATE_CLOSE_WAIT),
    [TCP_STATE_FIN_WAIT_1] = BIT(TCP_STATE_FIN_WAIT_2) | BIT(TCP_STATE_CLOSING),
    [TCP_STATE_CLOSE_WAIT] = BIT(TCP_STATE_LAST_ACK),
};

/* The only writer of conn->state. */
void tcp_conn_enter(struct tcp_conn *conn, enum tcp_state next)
{
    ASSERT(next == TCP_STATE_FREE || (conn_next[conn->state] & BIT(next)) != 0);
    conn->state = (uint8_t)next;
}

static void conn_release(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->range_count = 0;
    tcp_pages_free(tcp, conn, true);
    tcp_conn_enter(conn, TCP_STATE_FREE);
    tcp_node_release(tcp, &tcp->saved->free_conn, tcp_node_of(tcp, conn));
}

void tcp_conn_end(struct tcp *tcp, struct tcp_conn *conn, enum tcp_end end)
{
    uint32_t id = tcp_conn_id(tcp, conn);

    conn_release(tcp, conn);
    tcp_user_ended(tcp, id, end);
}

struct tcp_header tcp_conn_rst(const struct tcp *tcp,
                               const struct tcp_conn *conn)
{
    return (struct tcp_header){
        .seq = tcp_bare_seq(conn),
        .ack = conn->rcv_nxt,
        .flags = TCP_RST | TCP_ACK,
        .options =
            {
                .has_times = conn->has_times, /* RFC 7323 section 3.2 */
                .tsval = tcp_times_now(tcp, conn->times_base),
                .tsecr = conn->ts_recent,
            },
    };
}

void tcp_conn_reset(struct tcp *tcp, struct tcp_conn *conn, enum tcp_end end)
{
    struct tcp_node *node = &tcp->nodes[tcp_node_of(tcp, conn)];
    struct tcp_header header = tcp_conn_rst(tcp, conn);

    if (conn->state != TCP_STATE_SYN_SENT) {
        tcp_answer(tcp, &node->ends, node->route, &header);
    }
    tcp_conn_end(tcp, conn, end);
}

void tcp_fin_received(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->fin_received = true;
    tcp_user_finished(tcp, tcp_conn_id(tcp, conn));
    switch (conn->state) {
    case TCP_STATE_ESTABLISHED:
        tcp_conn_enter(conn, TCP_STATE_CLOSE_WAIT);
        break;
    case TCP_STATE_FIN_WAIT_1: /* our FIN is not acknowledged yet */
        tcp_conn_enter(conn, TCP_STATE_CLOSING);
        break;
    case TCP_STATE_FIN_WAIT_2:
        tcp_time_wait_begin(tcp, conn);
        break;
    default:
        ASSERT(false);
    }
}

void tcp_fin_acked(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->fin_acked = true;
    switch (conn->state) {
    case TCP_STATE_FIN_WAIT_1:
        tcp_conn_enter(conn, TCP_STATE_FIN_WAIT_2);
        tcp_life_arm(tcp, conn);
        break;
    case TCP_STATE_CLOSING:
        tcp_time_wait_begin(tcp, conn);
        break;
    case TCP_STATE_LAST_ACK:
        tcp_conn_end(tcp, conn, TCP_END_CLOSED);
        break;
    default:
        ASSERT(false);
    }
}

/* ---- Calls of the user. */

void tcp_close(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (conn == NULL || conn->fin_wanted) {
        return;
    }
    if (conn->state == TCP_STATE_SYN_SENT) {
        tcp_conn_end(tcp, conn, TCP_END_CLOSED);
        return;
    }
    conn->fin_wanted = true;
    if (conn->snd_wnd == 0) { /* which has a limit from now on */
        tcp_progress(tcp, conn);
    }
    if (conn->state == TCP_STATE_ESTABLISHED) {
        tcp_conn_enter(conn, TCP_STATE_FIN_WAIT_1);
    } else if (conn->state == TCP_STATE_CLOSE_WAIT) {
        tcp_conn_enter(conn, TCP_STATE_LAST_ACK);
    }
    tcp_output_want(tcp, conn);
    tcp_rtx_arm(tcp, conn, false);
    tcp_timer_sync(tcp, conn);
}

void tcp_abort(struct tcp *tcp, uint32_t id, uint64_t now_us)
{
    struct tcp_conn *conn = tcp_conn_by_id(tcp, id);

    tcp_call_begin(tcp, now_us);
    if (conn != NULL) {
        tcp_conn_reset(tcp, conn, TCP_END_ABORTED);
    }
}
