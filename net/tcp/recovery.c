/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much may be sent while losses are repaired, and when that ends.
 * Spec: RFC 9937 (PRR); RFC 6582 (without SACK); RFC 5681 sections 3.2, 4.1.
 */
#include "net/tcp/internal.h"
#include "net/tcp/notes.h"

enum {
    DUP_THRESH = 3,
    CWND_MAX = 1 << 30, /* more than any window of a peer */
};

static void recovery_note(struct tcp *tcp, const struct tcp_conn *conn,
                          enum tcp_note note)
{
    tcp_user_note(tcp, tcp_node_of(tcp, conn), note, conn->cwnd,
                  conn->ssthresh);
}

/* RFC 3168 section 6.1.2: whatever the reason, the peer is told, and marks of
 * what was in flight then are no further reason. */
static void note_reduction(struct tcp_conn *conn)
{
    conn->cwr_due = conn->has_ecn;
    conn->was_reduced = true;
    conn->reduced_at = conn->snd_nxt;
}

void tcp_recovery_enter(struct tcp *tcp, struct tcp_conn *conn, uint32_t acked)
{
    uint32_t flight = conn->snd_nxt - conn->snd_una + acked;

    if (conn->recovery != TCP_OPEN) {
        return;
    }
    tcp_count(tcp, TCP_RECOVERIES);
    conn->ssthresh = tcp_cc(tcp)->lost(tcp, conn, flight);
    conn->recovery = TCP_RECOVERY;
    conn->recovery_point = conn->snd_nxt;
    conn->prr_flight = MAX(flight, 1);
    conn->prr_delivered = 0;
    conn->prr_out = 0;
    conn->rack.probe_out = false;
    if (conn->has_ecn) {
        note_reduction(conn);
    }
    recovery_note(tcp, conn, TCP_NOTE_RECOVERY);
}

/* RFC 9937 section 5.
 * @param must_send  one segment leaves, whatever the count is */
static void prr_update(struct tcp_conn *conn, uint32_t bytes, bool is_safe,
                       bool must_send)
{
    uint32_t pipe = tcp_pipe(conn);
    uint64_t count;

    conn->prr_delivered += bytes;
    if (pipe > conn->ssthresh) {
        uint64_t share = ((uint64_t)conn->prr_delivered * conn->ssthresh +
                          conn->prr_flight - 1) /
                         conn->prr_flight;

        count = share > conn->prr_out ? share - conn->prr_out : 0;
    } else {
        uint32_t owed = conn->prr_delivered > conn->prr_out
                            ? conn->prr_delivered - conn->prr_out
                            : 0;

        count = MAX(owed, bytes) + (is_safe ? conn->mss : 0);
        count = MIN(count, conn->ssthresh - pipe);
    }
    if (conn->prr_out == 0 || must_send) {
        count = MAX(count, conn->mss); /* the retransmission leaves at once */
    }
    conn->cwnd = MAX((uint32_t)MIN(pipe + count, CWND_MAX), conn->mss);
}

static void recovery_exit(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->recovery == TCP_RECOVERY) {
        conn->cwnd = MAX(conn->ssthresh, conn->mss);
        if (conn->rack.window_persist != 0 &&
            --conn->rack.window_persist == 0) {
            conn->rack.window_mult = 1;
        }
    }
    conn->recovery = TCP_OPEN;
    conn->dup_acks = 0;
    recovery_note(tcp, conn, TCP_NOTE_RECOVERED);
}

/* RFC 6582 section 3.2 step 3: without SACK, an ACK of less than all has passed
 * a retransmission, and the next segment is lost.  Duplicate ACKs have told of
 * the segments between the two: they are not delivered again. */
static void partial_ack(struct tcp_conn *conn, uint32_t bytes)
{
    uint32_t segments = (bytes + conn->mss - 1) / conn->mss;
    uint32_t told = MIN(conn->dup_acks, MAX(segments, 1) - 1);

    conn->dup_acks -= told;
    tcp_runs_lose_first(conn, conn->mss);
    prr_update(conn, bytes - told * conn->mss, false, true);
}

void tcp_recovery_ack(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_delivery *delivery)
{
    bool is_limited = conn->was_limited;
    uint32_t bytes = delivery->bytes;

    if (delivery->has_advanced) {
        conn->was_limited = false;
    }
    if (conn->recovery != TCP_OPEN &&
        !seq_before(conn->snd_una, conn->recovery_point)) {
        recovery_exit(tcp, conn);
        return;
    }
    if (conn->recovery == TCP_RECOVERY) {
        if (delivery->has_advanced && !conn->has_sack) {
            partial_ack(conn, bytes);
        } else {
            prr_update(conn, bytes,
                       delivery->has_advanced && !delivery->has_lost, false);
        }
        return;
    }
    if (bytes != 0 && (is_limited || conn->recovery == TCP_LOSS)) {
        tcp_cc(tcp)->acked(tcp, conn, bytes);
        conn->cwnd = MIN(conn->cwnd, CWND_MAX);
    } else if (delivery->has_advanced) {
        tcp_cc(tcp)->paused(tcp, conn);
    }
}

void tcp_dup_acks_end(struct tcp_conn *conn)
{
    if (conn->recovery != TCP_RECOVERY) { /* there, RFC 6582 counts them */
        conn->dup_acks = 0;
    }
}

/* Without SACK, three duplicate ACKs are a loss (RFC 5681 section 3.2).  No
 * more of them count than segments were in flight (the same, step 4), or a peer
 * that makes them up would be sent as much as it likes. */
void tcp_dup_ack(struct tcp *tcp, struct tcp_conn *conn)
{
    uint32_t flight = conn->recovery == TCP_RECOVERY
                          ? conn->prr_flight
                          : conn->snd_nxt - conn->snd_una;

    if ((uint64_t)conn->dup_acks * conn->mss >= flight) {
        return;
    }
    conn->dup_acks++;
    if (conn->recovery == TCP_RECOVERY) {
        prr_update(conn, conn->mss, false, false);
    } else if (conn->recovery == TCP_OPEN && conn->dup_acks == DUP_THRESH) {
        tcp_recovery_enter(tcp, conn, 0);
        tcp_runs_lose_first(conn, conn->mss);
        prr_update(conn, DUP_THRESH * (uint32_t)conn->mss, false, false);
    }
}

/* RFC 5681 section 3.1: ssthresh changes once for the same losses. */
void tcp_recovery_timeout(struct tcp *tcp, struct tcp_conn *conn)
{
    tcp_count(tcp, TCP_RTOS);
    tcp_user_note(tcp, tcp_node_of(tcp, conn), TCP_NOTE_TIMEOUT,
                  (uint32_t)tcp_rto_us(tcp, conn), conn->backoff);
    if (conn->recovery != TCP_LOSS) {
        conn->ssthresh =
            tcp_cc(tcp)->lost(tcp, conn, conn->snd_nxt - conn->snd_una);
        conn->recovery_point = conn->snd_nxt;
        if (conn->has_ecn) {
            note_reduction(conn);
        }
    }
    tcp_cc(tcp)->timed_out(tcp, conn);
    conn->recovery = TCP_LOSS;
    conn->cwnd = conn->mss;
    conn->dup_acks = 0;
    conn->rack.probe_out = false;
    conn->reorder_due_us = DEADLINE_NONE;
    tcp_runs_lose_all(conn);
}

/* ECN, or a loss that a probe has repaired: slower without recovery.  The ACK
 * that tells of it may leave little or nothing in flight, and what was in
 * flight when it happened is not known: the window is. */
void tcp_recovery_reduce(struct tcp *tcp, struct tcp_conn *conn)
{
    if (conn->recovery != TCP_OPEN) {
        return;
    }
    conn->ssthresh = tcp_cc(tcp)->lost(tcp, conn, conn->cwnd);
    conn->cwnd = MIN(conn->cwnd, conn->ssthresh);
    note_reduction(conn);
}

/* RFC 5681 section 4.1.
 * @param flight  what may be in flight: the byte of a zero-window probe */
void tcp_idle_restart(struct tcp *tcp, struct tcp_conn *conn, uint32_t flight)
{
    if (conn->snd_nxt - conn->snd_una <= flight && conn->srtt_us != 0 &&
        tcp->now_us - conn->sent_us > tcp_rto_us(tcp, conn)) {
        conn->cwnd = MIN(conn->cwnd, tcp_initial_window(conn));
        conn->cubic.epoch_us = 0;
    }
}
