/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes are lost, by the time at which they and later ones were sent.
 * Spec: RFC 8985 sections 6 (RACK) and 7 (tail loss probes).
 *
 * Connections without SACK count duplicate ACKs instead (recovery.c).
 */
#include "net/tcp/internal.h"

enum {
    DUP_THRESH = 3,
    PERSIST_RECOVERIES = 16, /* RFC 8985 section 6.2 step 4 */
    MAX_ACK_DELAY_US = 200000,
    LEAST_DELAY_US = 2000, /* a peer needs some time to be scheduled */
};

static bool sent_after(uint64_t us_1, uint32_t end_1, uint64_t us_2,
                       uint32_t end_2)
{
    return us_1 > us_2 || (us_1 == us_2 && seq_after(end_1, end_2));
}

/* Section 6.2 step 2: whether an ACK may be that of the first transmission. */
static bool is_ambiguous(const struct tcp *tcp, const struct tcp_conn *conn,
                         const struct tcp_run *run, const struct tcp_rx *rx)
{
    uint32_t sent_ms = (uint32_t)(run->sent_us / 1000) + conn->times_base;

    if (!run->is_again) {
        return false;
    }
    if (conn->has_times && rx->header.options.has_times &&
        seq_before(rx->header.options.tsecr, sent_ms)) {
        return true;
    }
    return conn->min_rtt_us != UINT32_MAX &&
           tcp->now_us - run->sent_us < conn->min_rtt_us;
}

void tcp_rack_delivered(struct tcp *tcp, struct tcp_conn *conn,
                        const struct tcp_run *run, const struct tcp_rx *rx)
{
    struct tcp_rack *rack = &conn->rack;
    uint32_t end = run->seq + run->len;

    if (!rack->is_valid || seq_after(end, rack->fack)) {
        rack->fack = end;
    } else if (seq_before(end, rack->fack) && !run->is_again) {
        rack->reordering_seen = true;
    }
    if (is_ambiguous(tcp, conn, run, rx)) {
        return;
    }
    if (!rack->is_valid ||
        sent_after(run->sent_us, end, rack->xmit_us, rack->end_seq)) {
        rack->xmit_us = run->sent_us;
        rack->end_seq = end;
        rack->rtt_us = (uint32_t)MIN(tcp->now_us - run->sent_us, UINT32_MAX);
    }
    rack->is_valid = true;
}

/* Section 6.2 step 4. */
static uint64_t reorder_window_us(const struct tcp_conn *conn)
{
    uint64_t window = (uint64_t)conn->rack.window_mult * conn->min_rtt_us / 4;

    if (!conn->rack.reordering_seen &&
        (conn->recovery != TCP_OPEN ||
         tcp_sacked(conn) > (DUP_THRESH - 1) * (uint32_t)conn->mss)) {
        return 0;
    }
    return MIN(window, conn->srtt_us);
}

void tcp_rack_dsack(struct tcp_conn *conn)
{
    struct tcp_rack *rack = &conn->rack;

    if (rack->has_dsack_round) {
        return; /* one step a round trip: see forget_passed() */
    }
    rack->has_dsack_round = true;
    rack->dsack_round = conn->snd_nxt;
    rack->window_mult = (uint8_t)MIN(rack->window_mult + 1, 255);
    rack->window_persist = PERSIST_RECOVERIES;
}

/* Section 6.2 step 5. */
bool tcp_rack_detect(struct tcp *tcp, struct tcp_conn *conn)
{
    const struct tcp_rack *rack = &conn->rack;
    uint64_t allowance_us = rack->rtt_us + reorder_window_us(conn);
    uint64_t due_us = 0;
    bool has_lost = false;

    conn->reorder_due_us = DEADLINE_NONE;
    if (!conn->has_sack || !rack->is_valid) {
        return false;
    }
    for (uint16_t i = 0; i < conn->run_count; i++) {
        struct tcp_run *run = &conn->runs[i];

        if (run->is_sacked || run->is_lost ||
            !sent_after(rack->xmit_us, rack->end_seq, run->sent_us,
                        run->seq + run->len)) {
            continue;
        }
        if (run->sent_us + allowance_us <= tcp->now_us) {
            run->is_lost = true;
            has_lost = true;
        } else {
            due_us = MAX(due_us, run->sent_us + allowance_us);
        }
    }
    if (due_us != 0) {
        conn->reorder_due_us = due_us;
    }
    if (has_lost) {
        tcp_runs_merge(conn);
    }
    return has_lost;
}

/* ---- Tail loss probes. */

bool tcp_probe_wanted(const struct tcp_conn *conn)
{
    return conn->has_sack && conn->recovery == TCP_OPEN &&
           conn->run_count != 0 && !conn->rack.probe_out &&
           tcp_sacked(conn) == 0;
}

uint64_t tcp_probe_due(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint64_t delay_us = conn->srtt_us != 0
                            ? 2 * (uint64_t)conn->srtt_us + LEAST_DELAY_US
                            : 1000000;

    if (conn->snd_nxt - conn->snd_una <= conn->mss) {
        delay_us += MAX_ACK_DELAY_US;
    }
    return tcp->now_us + MIN(delay_us, tcp_rto_us(tcp, conn));
}

/* Section 7.4.2: a probe that was a retransmission and filled a gap shows that
 * there was a loss.  An ACK that reaches the probe's end may be that of either
 * copy: the next ones tell. */
void tcp_probe_acked(struct tcp *tcp, struct tcp_conn *conn,
                     const struct tcp_rx *rx, bool has_dsack, bool has_advanced)
{
    struct tcp_rack *rack = &conn->rack;
    uint32_t ack = rx->header.ack;

    if (!rack->probe_out || seq_before(ack, rack->probe_end)) {
        return;
    }
    if (!rack->probe_is_again || has_dsack) {
        rack->probe_out = false; /* nothing was lost */
    } else if (seq_after(ack, rack->probe_end)) {
        rack->probe_out = false;
        if (!conn->was_reduced) { /* once a window, with ECE counted */
            tcp_recovery_reduce(tcp, conn);
        }
    } else if (rx->len == 0 && rx->header.options.sack_count == 0 &&
               !has_advanced) {
        rack->probe_out = false; /* both copies have arrived */
    }
}
