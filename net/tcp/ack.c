/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgement in a segment that has passed the checks of input.c.
 * Spec: RFC 9293 section 3.10.7.4, fifth check; RFC 5681; RFC 2883 section 4;
 * RFC 3168 section 6.1.2.
 */
#include "net/tcp/internal.h"
#include "net/tcp/notes.h"

/* RFC 2883: the first block names bytes that have come twice. */
static bool has_dsack(const struct tcp_rx *rx)
{
    const struct tcp_options *options = &rx->header.options;
    const struct tcp_block *first = &options->sacks[0];

    if (options->sack_count == 0 || !seq_before(first->left, first->right)) {
        return false;
    }
    if (!seq_after(first->right, rx->header.ack)) {
        return true;
    }
    return options->sack_count > 1 &&
           !seq_before(first->left, options->sacks[1].left) &&
           !seq_after(first->right, options->sacks[1].right);
}

/* RFC 9293: WL1 and WL2 keep old segments from changing the window.  One that
 * acknowledges more than any before is not old, although bytes beyond its own
 * have come earlier: its window goes with its acknowledgement. */
static void update_window(struct tcp *tcp, struct tcp_conn *conn,
                          const struct tcp_rx *rx, bool has_advanced)
{
    uint32_t seq = rx->header.seq;
    uint32_t ack = rx->header.ack;
    uint32_t window = (uint32_t)rx->header.window << conn->snd_shift;

    if (!has_advanced && !seq_before(conn->snd_wl1, seq) &&
        (conn->snd_wl1 != seq || seq_after(conn->snd_wl2, ack))) {
        return;
    }
    if (conn->snd_wnd == 0 && window != 0 && conn->run_count != 0 &&
        ack == conn->snd_una) {
        /* The probe that found the window closed was dropped. */
        tcp_runs_lose_first(conn, conn->mss);
    }
    if (conn->snd_wnd == 0 && window != 0) {
        conn->backoff = 0; /* the pauses between probes end */
        tcp_idle_restart(tcp, conn, 1);
    }
    if (window > conn->snd_wnd) {
        conn->window_probe_due = false;
    }
    if ((conn->snd_wnd == 0) != (window == 0)) {
        tcp_user_note(tcp, tcp_node_of(tcp, conn),
                      window == 0 ? TCP_NOTE_PEER_CLOSED : TCP_NOTE_PEER_OPENED,
                      window, 0);
    }
    conn->snd_wnd = window;
    conn->max_wnd = MAX(conn->max_wnd, window);
    conn->snd_wl1 = seq;
    conn->snd_wl2 = ack;
    /* It answers: RFC 9293 section 3.8.6.1, MUST-37.  That is enough only as
     * long as the user keeps the connection (RFC 6429 section 5). */
    if (window == 0 && !conn->fin_wanted) {
        tcp_progress(tcp, conn);
    }
}

/* What is compared with snd_una is forgotten as soon as it has passed: 2 GiB
 * later the comparison would be wrong. */
static void forget_passed(struct tcp_conn *conn)
{
    if (conn->mss_sent && !conn->mss_proven &&
        !seq_before(conn->snd_una, conn->mss_end)) {
        conn->mss_proven = true;
    }
    if (conn->was_reduced && seq_after(conn->snd_una, conn->reduced_at)) {
        conn->was_reduced = false;
    }
    if (conn->rack.has_dsack_round &&
        !seq_before(conn->snd_una, conn->rack.dsack_round)) {
        conn->rack.has_dsack_round = false;
    }
}

/* @return bytes that the peer has told of for the first time */
static uint32_t advance_una(struct tcp *tcp, struct tcp_conn *conn,
                            const struct tcp_rx *rx)
{
    uint64_t before = MIN(conn->una_offset, conn->queued);
    uint32_t len = rx->header.ack - conn->snd_una;
    uint32_t delivered = tcp_runs_ack(tcp, conn, rx->header.ack, rx);
    uint64_t after;

    conn->snd_una = rx->header.ack;
    conn->una_offset += len;
    tcp_progress_by(tcp, conn, len);
    conn->backoff = 0;
    conn->probe_due = false; /* RFC 8985 section 7.2: its time begins anew */
    forget_passed(conn);
    after = MIN(conn->una_offset, conn->queued);
    if (after != before) {
        tcp_user_acked(tcp, tcp_conn_id(tcp, conn), (uint32_t)(after - before));
    }
    return delivered;
}

static bool is_duplicate_ack(const struct tcp_conn *conn,
                             const struct tcp_rx *rx, uint32_t window_before)
{
    return rx->header.ack == conn->snd_una && conn->run_count != 0 &&
           rx->len == 0 && !rx->fin &&
           (uint32_t)rx->header.window << conn->snd_shift == window_before &&
           window_before != 0;
}

static bool is_marked(const struct tcp_conn *conn, const struct tcp_rx *rx)
{
    return conn->has_ecn && (rx->header.flags & TCP_ECE) != 0;
}

static void take_ece(struct tcp *tcp, struct tcp_conn *conn,
                     const struct tcp_rx *rx)
{
    if (is_marked(conn, rx) && !conn->was_reduced) {
        tcp_recovery_reduce(tcp, conn);
    }
}

static void take_acknowledgement(struct tcp *tcp, struct tcp_conn *conn,
                                 const struct tcp_rx *rx)
{
    uint32_t una = conn->snd_una;
    uint32_t window = conn->snd_wnd;
    bool is_twice = has_dsack(rx) && conn->has_sack;
    bool has_advanced = seq_after(rx->header.ack, una);
    uint32_t acked = has_advanced ? rx->header.ack - una : 0;
    uint32_t delivered = 0;
    struct tcp_delivery delivery;

    update_window(tcp, conn, rx, has_advanced);
    if (has_advanced) {
        delivered = advance_una(tcp, conn, rx);
        tcp_dup_acks_end(conn);
    }
    if (conn->has_sack) {
        delivered += tcp_runs_sack(tcp, conn, rx, is_twice);
        if (is_twice) {
            tcp_rack_dsack(conn);
        }
        tcp_probe_acked(tcp, conn, rx, is_twice, has_advanced);
    } else if (!has_advanced && is_duplicate_ack(conn, rx, window)) {
        tcp_dup_ack(tcp, conn);
    }
    take_ece(tcp, conn, rx);
    if (is_marked(conn, rx) && conn->recovery == TCP_OPEN) {
        delivered = 0; /* no reason to send more (RFC 3168 section 6.1.2) */
    }
    delivery = (struct tcp_delivery){delivered, has_advanced,
                                     tcp_rack_detect(tcp, conn)};
    if (delivery.has_lost) {
        tcp_recovery_enter(tcp, conn, acked);
    }
    if (has_advanced || delivered != 0) {
        tcp_recovery_ack(tcp, conn, &delivery);
    }
    if (delivery.has_lost && conn->recovery == TCP_OPEN) {
        /* A recovery has just ended; what is lost was sent during it, which is
         * a new loss (RFC 5681 section 4.3). */
        delivery = (struct tcp_delivery){.has_lost = true};
        tcp_recovery_enter(tcp, conn, 0);
        tcp_recovery_ack(tcp, conn, &delivery);
    }
    tcp_rtx_arm(tcp, conn, has_advanced); /* RFC 6298 section 5.3 */
}

bool tcp_ack_input(struct tcp *tcp, struct tcp_conn *conn,
                   const struct tcp_rx *rx)
{
    if (conn->state == TCP_STATE_SYN_RECEIVED) { /* both have opened at once */
        if (rx->header.ack != conn->iss + 1) {
            tcp_answer_rst(tcp, rx);
            return false;
        }
        tcp_conn_begin(tcp, conn);
        conn->snd_wl1 = rx->header.seq - 1; /* this window counts */
    }
    if (seq_before(rx->header.ack, conn->snd_una)) {
        return true; /* old: only its data may be new */
    }
    take_acknowledgement(tcp, conn, rx);
    if (conn->fin_wanted && !conn->fin_acked &&
        conn->una_offset == conn->queued + 1) {
        tcp_fin_acked(tcp, conn);
    }
    return conn->state != TCP_STATE_FREE;
}
