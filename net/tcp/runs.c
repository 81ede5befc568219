/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in flight, as runs of bytes that have had the same fate: the
 * scoreboard of RFC 6675 section 3 and the segment list of RFC 8985 section 5.1
 * in one.
 *
 * Bytes that leave within a sixteenth of the round-trip time of each other
 * share a run and the time of the first, so that 64 runs are enough for a
 * window of hundreds of segments.  When there is no place to split a run,
 * information is lost (a SACK block is ignored, or a whole run counts as sent
 * again), but never data: the retransmission time-out begins anew with one run.
 */
#include <string.h>

#include "net/tcp/internal.h"

enum {
    NEW_RESERVE = 8,  /* runs that new data must leave free */
    SACK_RESERVE = 2, /* runs that SACK blocks must leave free */
};

static uint32_t run_end(const struct tcp_run *run)
{
    return run->seq + run->len;
}

static void run_remove(struct tcp_conn *conn, uint16_t at)
{
    conn->run_count--;
    memmove(&conn->runs[at], &conn->runs[at + 1],
            (size_t)(conn->run_count - at) * sizeof(conn->runs[0]));
}

/* Split run `at` before `seq`, which is inside of it. */
static bool run_split(struct tcp_conn *conn, uint16_t at, uint32_t seq,
                      uint16_t reserve)
{
    struct tcp_run *run = &conn->runs[at];

    if (conn->run_count + reserve >= TCP_RUNS) {
        return false;
    }
    memmove(run + 1, run,
            (size_t)(conn->run_count - at) * sizeof(conn->runs[0]));
    conn->run_count++;
    run[0].len = seq - run[0].seq;
    run[1].len -= run[0].len;
    run[1].seq = seq;
    return true;
}

/* Whether bytes that leave now can be appended to the last run. */
static bool last_is_open(const struct tcp *tcp, const struct tcp_conn *conn)
{
    const struct tcp_run *last;

    if (conn->run_count == 0) {
        return false;
    }
    last = &conn->runs[conn->run_count - 1];
    return !last->is_sacked && !last->is_lost && !last->is_again &&
           tcp->now_us - last->sent_us <= conn->srtt_us / 16;
}

bool tcp_runs_have_room(const struct tcp *tcp, const struct tcp_conn *conn)
{
    return conn->run_count + NEW_RESERVE < TCP_RUNS || last_is_open(tcp, conn);
}

void tcp_runs_sent(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                   uint32_t len)
{
    if (last_is_open(tcp, conn)) {
        conn->runs[conn->run_count - 1].len += len;
        return;
    }
    ASSERT(conn->run_count < TCP_RUNS);
    conn->runs[conn->run_count++] =
        (struct tcp_run){.seq = seq, .len = len, .sent_us = tcp->now_us};
}

/* ---- Acknowledged and SACKed. */

uint32_t tcp_runs_ack(struct tcp *tcp, struct tcp_conn *conn, uint32_t ack,
                      const struct tcp_rx *rx)
{
    uint32_t delivered = 0;
    bool has_sample = false;
    bool has_acked = false;
    uint64_t sent_us = 0;

    while (conn->run_count != 0 && seq_before(conn->runs[0].seq, ack)) {
        struct tcp_run part = conn->runs[0];

        if (seq_after(run_end(&part), ack)) {
            part.len = ack - part.seq;
            conn->runs[0].len -= part.len;
            conn->runs[0].seq = ack;
        } else {
            run_remove(conn, 0);
        }
        if (!part.is_sacked) {
            tcp_rack_delivered(tcp, conn, &part, rx);
            delivered += part.len;
            has_acked = true;
        }
        if (!part.is_again && !part.is_sacked) {
            has_sample = true;
            sent_us = part.sent_us;
        }
    }
    /* Karn's algorithm (RFC 6298 section 3): what was sent twice gives no
     * sample, unless timestamps tell which one was received. */
    if (has_sample) {
        tcp_rtt_sample(tcp, conn,
                       (uint32_t)MIN(tcp->now_us - sent_us, UINT32_MAX / 8),
                       true);
    } else if (has_acked && conn->has_times && rx->header.options.has_times &&
               rx->header.options.tsecr != 0) {
        uint32_t rtt_ms =
            tcp_times_now(tcp, conn->times_base) - rx->header.options.tsecr;

        if (rtt_ms < 300000) {
            tcp_rtt_sample(tcp, conn, MAX(rtt_ms, 1) * 1000, false);
        }
    }
    return delivered;
}

static uint32_t sack_block(struct tcp *tcp, struct tcp_conn *conn,
                           const struct tcp_block *block,
                           const struct tcp_rx *rx)
{
    uint32_t sacked = 0;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        struct tcp_run *run = &conn->runs[i];

        if (run->is_sacked || !seq_before(block->left, run_end(run)) ||
            !seq_after(block->right, run->seq)) {
            continue;
        }
        if (seq_after(block->left, run->seq)) {
            (void)run_split(conn, i, block->left, SACK_RESERVE);
            continue; /* the second half is next */
        }
        if (seq_before(block->right, run_end(run)) &&
            !run_split(conn, i, block->right, SACK_RESERVE)) {
            continue;
        }
        run->is_sacked = true;
        run->is_lost = false;
        sacked += run->len;
        tcp_rack_delivered(tcp, conn, run, rx);
    }
    return sacked;
}

/* Put a block among those with greater sequence numbers. */
static void blocks_insert(struct tcp_block *blocks, uint8_t count,
                          const struct tcp_block *block)
{
    for (; count != 0 && seq_after(blocks[count - 1].left, block->left);
         count--) {
        blocks[count] = blocks[count - 1];
    }
    blocks[count] = *block;
}

/* A block at the next byte contradicts the acknowledgement beside it: a peer
 * that has this byte acknowledges it.  The first block may be a D-SACK. */
uint32_t tcp_runs_sack(struct tcp *tcp, struct tcp_conn *conn,
                       const struct tcp_rx *rx, bool has_dsack)
{
    const struct tcp_options *options = &rx->header.options;
    struct tcp_block blocks[TCP_SACKS_MAX];
    uint8_t count = 0;
    uint32_t sacked = 0;

    for (uint8_t i = 0; i < options->sack_count; i++) {
        const struct tcp_block *block = &options->sacks[i];

        if (seq_before(block->left, block->right) &&
            !seq_after(block->right, conn->snd_nxt) &&
            seq_after(block->left, conn->snd_una)) {
            blocks_insert(blocks, count++, block);
        } else if (i != 0 || !has_dsack) {
            tcp_count(tcp, TCP_RX_BAD_SACK);
        }
    }
    /* RFC 8985 section 6.2 step 3: lower ones first, or it would look like
     * reordering. */
    for (uint8_t i = 0; i < count; i++) {
        sacked += sack_block(tcp, conn, &blocks[i], rx);
    }
    if (sacked != 0) {
        tcp_runs_merge(conn);
    }
    return sacked;
}

static bool runs_are_alike(const struct tcp_run *a, const struct tcp_run *b)
{
    if (a->is_sacked || b->is_sacked) {
        return a->is_sacked && b->is_sacked;
    }
    return a->is_lost == b->is_lost && a->is_again == b->is_again &&
           (a->is_lost || a->sent_us == b->sent_us);
}

void tcp_runs_merge(struct tcp_conn *conn)
{
    uint16_t kept = 0;

    for (uint16_t i = 1; i < conn->run_count; i++) {
        if (runs_are_alike(&conn->runs[kept], &conn->runs[i])) {
            conn->runs[kept].len += conn->runs[i].len;
        } else {
            conn->runs[++kept] = conn->runs[i];
        }
    }
    conn->run_count = conn->run_count != 0 ? (uint16_t)(kept + 1) : 0;
}

/* ---- Lost, and sent again. */

/* After a time-out the receiver may have dropped what it SACKed (RFC 2018
 * section 8), so nothing of it is believed any more. */
void tcp_runs_lose_all(struct tcp_conn *conn)
{
    if (conn->run_count == 0) {
        return;
    }
    conn->runs[0] = (struct tcp_run){
        .seq = conn->snd_una,
        .len = conn->snd_nxt - conn->snd_una,
        .sent_us = conn->runs[0].sent_us,
        .is_lost = true,
        .is_again = true,
    };
    conn->run_count = 1;
}

void tcp_runs_lose_first(struct tcp_conn *conn, uint32_t len)
{
    struct tcp_run *run = &conn->runs[0];

    if (conn->run_count == 0) {
        return;
    }
    if (run->len > len) {
        (void)run_split(conn, 0, run->seq + len, 0);
    }
    run->is_lost = true;
    run->is_sacked = false;
}

struct tcp_run *tcp_runs_lost(struct tcp_conn *conn)
{
    for (uint16_t i = 0; i < conn->run_count; i++) {
        if (conn->runs[i].is_lost) {
            return &conn->runs[i];
        }
    }
    return NULL;
}

void tcp_runs_resent(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                     uint32_t len)
{
    uint32_t end = seq + len;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        struct tcp_run *run = &conn->runs[i];

        if (!seq_before(seq, run_end(run)) || !seq_before(run->seq, end)) {
            continue;
        }
        if (seq_after(seq, run->seq) && run_split(conn, i, seq, 0)) {
            continue; /* the second half is next */
        }
        if (seq_before(end, run_end(run))) {
            (void)run_split(conn, i, end, 0);
        }
        if (!run->is_sacked) {
            run->is_lost = false;
            run->is_again = true;
            run->sent_us = tcp->now_us;
        }
    }
    tcp_runs_merge(conn);
}

/* ---- Sums. */

uint32_t tcp_pipe(const struct tcp_conn *conn)
{
    uint32_t pipe = 0;
    uint32_t left = conn->has_sack ? 0 : conn->dup_acks * conn->mss;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        const struct tcp_run *run = &conn->runs[i];

        if (!run->is_sacked && !run->is_lost) {
            pipe += run->len;
        }
    }
    /* Each duplicate ACK without SACK says that a segment has arrived. */
    return pipe - MIN(pipe, left);
}

uint32_t tcp_sacked(const struct tcp_conn *conn)
{
    uint32_t sacked = 0;

    for (uint16_t i = 0; i < conn->run_count; i++) {
        sacked += conn->runs[i].is_sacked ? conn->runs[i].len : 0;
    }
    return sacked;
}
