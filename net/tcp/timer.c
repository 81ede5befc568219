/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timers of a connection.
 * Spec: RFC 6298 section 5; RFC 8985 section 7.2; RFC 9293 sections 3.8.3 (R2),
 * 3.8.4 (keep-alive), 3.8.6.1 (persist).
 */
#include "net/tcp/internal.h"

enum {
    /* What a peer has to acknowledge in give_up_ms after tcp_close(). */
    CLOSED_STEP_BYTES = 4096,
};

bool tcp_window_closed(const struct tcp_conn *conn)
{
    return conn->snd_wnd == 0 && conn->snd_nxt - conn->snd_una <= 1;
}

/* Waiting begins anew: the peer has made progress. */
void tcp_progress(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->waited_us = 0;
    conn->rtx_set_us = tcp->now_us;
}

/* Add the time that the timer has run.  A timer that expires late counts with
 * the time it was set for: when this machine was stopped, nobody was asked. */
static void wait_add(struct tcp *tcp, struct tcp_conn *conn)
{
    uint64_t until_us = MIN(tcp->now_us, conn->rtx_due_us);

    /* Progress may come after the deadline and before tcp_timer(). */
    if (conn->rtx_due_us != DEADLINE_NONE && until_us > conn->rtx_set_us) {
        conn->waited_us += until_us - conn->rtx_set_us;
    }
}

/* The peer has acknowledged `len` bytes.  As long as the user keeps the
 * connection, every one is progress.  Of one that is closed, few bytes take
 * back only their part of the time waited: a peer that acknowledges one byte
 * now and then does not keep its place for years. */
void tcp_progress_by(struct tcp *tcp, struct tcp_conn *conn, uint32_t len)
{
    if (!conn->fin_wanted || len >= CLOSED_STEP_BYTES) {
        tcp_progress(tcp, conn);
        return;
    }
    wait_add(tcp, conn);
    conn->waited_us -= conn->waited_us * len / CLOSED_STEP_BYTES;
    conn->rtx_set_us = tcp->now_us;
}

static bool wait_is_over(const struct tcp *tcp, const struct tcp_conn *conn)
{
    return conn->waited_us >= TCP_MS(tcp->config.give_up_ms);
}

static void rtx_set(struct tcp *tcp, struct tcp_conn *conn,
                    enum tcp_rtx_timer kind, uint64_t due_us)
{
    wait_add(tcp, conn);
    conn->rtx_timer = (uint8_t)kind;
    conn->rtx_set_us = tcp->now_us;
    /* A peer that makes the kind change again and again has no more time. */
    conn->rtx_due_us = wait_is_over(tcp, conn) ? tcp->now_us : due_us;
}

static void rtx_stop(struct tcp_conn *conn)
{
    conn->rtx_timer = TCP_TIMER_RTO;
    conn->rtx_due_us = DEADLINE_NONE;
}

void tcp_rtx_arm(struct tcp *tcp, struct tcp_conn *conn, bool restart)
{
    uint64_t rto_due = tcp->now_us + tcp_rto_us(tcp, conn);
    bool is_on = conn->rtx_due_us != DEADLINE_NONE;

    if (!tcp_is_synchronized(conn)) {
        return;
    }
    if (!is_on) { /* nothing was waiting: give_up_ms counts from here */
        tcp_progress(tcp, conn);
    }
    if (conn->run_count == 0 && tcp_unsent(conn) == 0) {
        rtx_stop(conn);
        conn->probe_due = conn->window_probe_due = false;
    } else if (conn->run_count == 0 || tcp_window_closed(conn)) {
        if (!is_on || conn->rtx_timer != TCP_TIMER_PERSIST) {
            rtx_set(tcp, conn, TCP_TIMER_PERSIST, rto_due);
        }
    } else if (tcp_probe_wanted(conn)) {
        if (restart || !is_on || conn->rtx_timer != TCP_TIMER_TLP) {
            rtx_set(tcp, conn, TCP_TIMER_TLP, tcp_probe_due(tcp, conn));
        }
    } else if (restart || !is_on || conn->rtx_timer != TCP_TIMER_RTO) {
        rtx_set(tcp, conn, TCP_TIMER_RTO, rto_due);
    }
}

/* RFC 9293 section 3.8.3: what was waited for the old way does not count. */
void tcp_conn_hurry(struct tcp *tcp, struct tcp_conn *conn)
{
    uint64_t due_us;

    conn->backoff = 0;
    due_us = MIN(conn->rtx_due_us, tcp->now_us + tcp_rto_us(tcp, conn));
    if (!tcp_is_synchronized(conn)) {
        /* More than one SYN has left: the next round trip is not exact. */
        conn->syn_tries = MIN(conn->syn_tries, 2);
        conn->rtx_due_us = due_us;
    } else {
        tcp_progress(tcp, conn);
        if (conn->rtx_due_us != DEADLINE_NONE) {
            rtx_set(tcp, conn, (enum tcp_rtx_timer)conn->rtx_timer, due_us);
        }
        conn->keep_alives = 0;
        tcp_life_arm(tcp, conn);
    }
    tcp_timer_sync(tcp, conn);
}

/* The time without data until a keep-alive, or until FIN-WAIT-2 ends. */
void tcp_life_arm(struct tcp *tcp, struct tcp_conn *conn)
{
    const struct tcp_config *config = &tcp->config;

    if (conn->state == TCP_STATE_FIN_WAIT_2) {
        conn->life_due_us = tcp->now_us + TCP_MS(config->fin_wait_2_ms);
    } else if (config->keep_alive_ms != 0) {
        conn->life_due_us =
            conn->keep_alives == 0
                ? conn->heard_us + TCP_MS(config->keep_alive_ms)
                : tcp->now_us + TCP_MS(config->keep_alive_interval_ms);
    }
}

void tcp_timer_sync(struct tcp *tcp, struct tcp_conn *conn)
{
    uint64_t due = MIN(conn->ack_due_us, conn->rtx_due_us);

    due = MIN(due, conn->reorder_due_us);
    due = MIN(due, conn->life_due_us);
    deadlines_set(&tcp->deadlines, tcp_node_of(tcp, conn), due);
}

/* ---- Expiry.  Each returns whether the connection has ended. */

static bool syn_expired(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->syn_tries > tcp->config.syn_retries) {
        tcp_conn_end(tcp, conn, TCP_END_TIMED_OUT);
        return true;
    }
    conn->syn_tries++;
    conn->backoff++;
    conn->syn_due = true;
    conn->rtx_due_us = tcp->now_us + tcp_rto_us(tcp, conn);
    return false;
}

static bool rtx_expired(struct tcp *tcp, struct tcp_conn *conn)
{
    if (!tcp_is_synchronized(conn)) {
        return syn_expired(tcp, conn);
    }
    wait_add(tcp, conn);
    conn->rtx_due_us = DEADLINE_NONE;
    if (wait_is_over(tcp, conn)) { /* RFC 9293 section 3.8.3, R2 */
        tcp_conn_reset(tcp, conn, TCP_END_TIMED_OUT);
        return true;
    }
    switch (conn->rtx_timer) {
    case TCP_TIMER_TLP:
        conn->probe_due = true;
        rtx_set(tcp, conn, TCP_TIMER_RTO, tcp->now_us + tcp_rto_us(tcp, conn));
        break;
    case TCP_TIMER_PERSIST:
        conn->window_probe_due = true;
        conn->backoff = (uint8_t)MIN(conn->backoff + 1, 10);
        rtx_set(tcp, conn, TCP_TIMER_PERSIST,
                tcp->now_us + tcp_rto_us(tcp, conn));
        break;
    default:
        tcp_recovery_timeout(tcp, conn);
        conn->backoff = (uint8_t)MIN(conn->backoff + 1, 10);
        rtx_set(tcp, conn, TCP_TIMER_RTO, tcp->now_us + tcp_rto_us(tcp, conn));
    }
    return false;
}

static bool life_expired(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->life_due_us = DEADLINE_NONE;
    if (conn->state == TCP_STATE_FIN_WAIT_2) { /* also if it still sends */
        tcp_conn_reset(tcp, conn, TCP_END_TIMED_OUT);
        return true;
    }
    if (conn->run_count != 0) { /* data in flight have a timer of their own */
        conn->life_due_us = tcp->now_us + TCP_MS(tcp->config.keep_alive_ms);
        return false;
    }
    if (conn->keep_alives == 0 &&
        conn->heard_us + TCP_MS(tcp->config.keep_alive_ms) > tcp->now_us) {
        tcp_life_arm(tcp, conn); /* the peer was heard since */
        return false;
    }
    if (conn->keep_alives >= tcp->config.keep_alive_probes) {
        tcp_conn_reset(tcp, conn, TCP_END_TIMED_OUT);
        return true;
    }
    conn->keep_alives++;
    conn->keep_alive_due = true;
    tcp_life_arm(tcp, conn);
    return false;
}

void tcp_conn_timer(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->ack_due_us <= tcp->now_us) {
        conn->ack_due_us = DEADLINE_NONE;
        conn->ack_due = true;
    }
    if (conn->reorder_due_us <= tcp->now_us && tcp_rack_detect(tcp, conn)) {
        struct tcp_delivery delivery = {.has_lost = true};

        tcp_recovery_enter(tcp, conn, 0);
        tcp_recovery_ack(tcp, conn, &delivery);
        tcp_rtx_arm(tcp, conn, false);
    }
    if ((conn->rtx_due_us <= tcp->now_us && rtx_expired(tcp, conn)) ||
        (conn->life_due_us <= tcp->now_us && life_expired(tcp, conn))) {
        return;
    }
    tcp_output_want(tcp, conn);
    tcp_timer_sync(tcp, conn);
}
