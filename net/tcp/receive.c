/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of the peer, and what acknowledgements tell it.
 * Spec: RFC 9293 sections 3.8.6.2.2 (window), 3.8.6.3 (delayed ACKs) and
 * 3.10.7.4 (seventh and eighth check); RFC 5681 section 4.2; RFC 2018 section
 * 4; RFC 2883 section 4.
 */
#include <string.h>

#include "net/tcp/internal.h"
#include "net/tcp/notes.h"

/* ---- Ranges that have come early. */

static bool range_add(struct tcp_conn *conn, uint32_t left, uint32_t right)
{
    struct tcp_range *ranges = conn->ranges;
    uint8_t at = 0;
    uint8_t end;

    while (at < conn->range_count && seq_before(ranges[at].block.right, left)) {
        at++;
    }
    for (end = at;
         end < conn->range_count && !seq_after(ranges[end].block.left, right);
         end++) {
        left = seq_before(ranges[end].block.left, left) ? ranges[end].block.left
                                                        : left;
        right = seq_max(right, ranges[end].block.right);
    }
    if (at == end && conn->range_count == TCP_RANGES) {
        return false;
    }
    memmove(&ranges[at + 1], &ranges[end],
            (size_t)(conn->range_count - end) * sizeof(ranges[0]));
    conn->range_count = (uint8_t)(conn->range_count + 1 - (end - at));
    ranges[at] = (struct tcp_range){{left, right}, ++conn->stamp};
    return true;
}

/* The range that holds all of these bytes, or NULL. */
static struct tcp_range *range_around(struct tcp_conn *conn, uint32_t left,
                                      uint32_t right)
{
    for (uint8_t i = 0; i < conn->range_count; i++) {
        struct tcp_block *block = &conn->ranges[i].block;

        if (!seq_before(left, block->left) && !seq_after(right, block->right)) {
            return &conn->ranges[i];
        }
    }
    return NULL;
}

/* The blocks of the newest ranges come first, so that a lost ACK loses no
 * information (RFC 2018 section 4). */
static uint8_t newest_ranges(const struct tcp_conn *conn,
                             struct tcp_block *blocks, uint8_t max)
{
    uint32_t below = UINT32_MAX;
    uint8_t count = 0;

    while (count < max) {
        const struct tcp_range *best = NULL;

        for (uint8_t i = 0; i < conn->range_count; i++) {
            const struct tcp_range *range = &conn->ranges[i];

            if (range->stamp < below &&
                (best == NULL || range->stamp > best->stamp)) {
                best = range;
            }
        }
        if (best == NULL) {
            break;
        }
        below = best->stamp;
        blocks[count++] = best->block;
    }
    return count;
}

uint8_t tcp_sack_take(struct tcp_conn *conn, struct tcp_block *blocks,
                      uint8_t max)
{
    uint8_t count = 0;

    if (!conn->has_sack) {
        return 0;
    }
    if (conn->has_dsack && max != 0) {
        conn->has_dsack = false;
        blocks[count++] = conn->dsack;
    }
    return (uint8_t)(count + newest_ranges(conn, blocks + count,
                                           (uint8_t)(max - count)));
}

/* ---- The window. */

uint32_t tcp_window_edge(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint32_t most = (uint32_t)UINT16_MAX << conn->rcv_shift;
    uint32_t size = MIN(tcp->config.window_bytes, most);
    uint32_t edge = conn->rcv_nxt + size - MIN(conn->unread, size);
    int32_t step = (int32_t)MIN(size / 2, conn->mss);

    /* Small steps would lead to small segments (RFC 9293 section 3.8.6.2.2). */
    return seq_diff(edge, conn->rcv_edge) >= step ? edge : conn->rcv_edge;
}

uint16_t tcp_window_take(struct tcp *tcp, struct tcp_conn *conn)
{
    uint32_t window;

    conn->rcv_edge = tcp_window_edge(tcp, conn);
    window = (conn->rcv_edge - conn->rcv_nxt) >> conn->rcv_shift;
    return (uint16_t)MIN(window, UINT16_MAX);
}

/* ---- Bytes in order. */

static void advance_next(struct tcp *tcp, struct tcp_conn *conn, uint32_t len)
{
    conn->rcv_nxt += len;
    conn->rcv_offset += len;
    conn->unread += len;
    tcp->saved->counters[TCP_RX_BYTES] += len;
}

/* Deliver what was early and is next now. */
static void drain_ranges(struct tcp *tcp, struct tcp_conn *conn)
{
    while (conn->range_count != 0 &&
           !seq_after(conn->ranges[0].block.left, conn->rcv_nxt)) {
        int32_t len = seq_diff(conn->ranges[0].block.right, conn->rcv_nxt);

        if (len > 0) {
            tcp_pages_deliver(tcp, conn, (uint32_t)len);
            advance_next(tcp, conn, (uint32_t)len);
        }
        conn->range_count--;
        memmove(&conn->ranges[0], &conn->ranges[1],
                conn->range_count * sizeof(conn->ranges[0]));
    }
    tcp_pages_free(tcp, conn, false);
}

static void delay_ack(struct tcp *tcp, struct tcp_conn *conn)
{
    conn->since_ack++;
    if (conn->since_ack >= 2) {
        conn->ack_due = true;
    } else if (conn->ack_due_us == DEADLINE_NONE) {
        conn->ack_due_us = tcp->now_us + TCP_MS(tcp->config.ack_delay_ms);
    }
}

static void take_next(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_rx *rx)
{
    if (rx->len != 0) {
        tcp_user_deliver(tcp, tcp_conn_id(tcp, conn), rx->data, rx->len);
        if (tcp_user_has_lost(tcp, tcp_conn_id(tcp, conn))) {
            return;
        }
        advance_next(tcp, conn, rx->len);
        delay_ack(tcp, conn);
    }
    if (rx->fin) {
        conn->fin_early = true;
        conn->fin_seq = conn->rcv_nxt;
    }
    if (conn->range_count != 0) { /* RFC 5681 section 4.2: ACK at once */
        drain_ranges(tcp, conn);
        conn->ack_due = true;
    }
    if (conn->fin_early && conn->fin_seq == conn->rcv_nxt &&
        !tcp_user_has_lost(tcp, tcp_conn_id(tcp, conn))) {
        conn->rcv_nxt++;
        conn->rcv_edge = seq_max(conn->rcv_edge, conn->rcv_nxt);
        conn->range_count = 0;
        tcp_pages_free(tcp, conn, true);
        conn->ack_due = true;
        tcp_fin_received(tcp, conn);
    }
}

/* ---- Bytes before the next one, and beyond it. */

static void note_duplicate(struct tcp *tcp, struct tcp_conn *conn,
                           uint32_t left, uint32_t len)
{
    tcp_count(tcp, TCP_RX_DUPLICATE);
    conn->has_dsack = true;
    conn->dsack = (struct tcp_block){left, left + len};
    conn->ack_due = true;
}

static void take_early(struct tcp *tcp, struct tcp_conn *conn,
                       const struct tcp_rx *rx)
{
    uint32_t right = rx->seq + rx->len;
    struct tcp_range *around = range_around(conn, rx->seq, right);

    conn->ack_due = true;
    if (rx->fin &&
        (conn->range_count == 0 ||
         !seq_after(conn->ranges[conn->range_count - 1].block.right, right))) {
        conn->fin_early = true;
        conn->fin_seq = right;
    }
    if (rx->len == 0) {
        return;
    }
    if (around != NULL) {
        around->stamp = ++conn->stamp;
        note_duplicate(tcp, conn, rx->seq, rx->len);
    } else if (tcp_pages_store(tcp, conn, rx->seq, rx->data, rx->len) &&
               range_add(conn, rx->seq, right)) {
        tcp_count(tcp, TCP_RX_EARLY);
    } else {
        tcp_count(tcp, TCP_RX_NO_PAGE);
        tcp_user_note(tcp, tcp_node_of(tcp, conn), TCP_NOTE_NO_PAGE, rx->seq,
                      rx->len);
        tcp_pages_free(tcp, conn, false);
    }
}

static void trim_left(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    int32_t behind = seq_diff(conn->rcv_nxt, rx->seq);
    uint32_t cut;

    if (behind <= 0) {
        return;
    }
    cut = MIN((uint32_t)behind, rx->len);
    if (cut != 0) {
        note_duplicate(tcp, conn, rx->seq, cut);
    }
    rx->data += cut;
    rx->len -= cut;
    rx->seq += cut;
    rx->fin = rx->fin && rx->seq == conn->rcv_nxt;
}

static void trim_right(struct tcp *tcp, const struct tcp_conn *conn,
                       struct tcp_rx *rx)
{
    uint32_t edge = conn->fin_early ? conn->fin_seq : conn->rcv_edge;
    int32_t room = seq_diff(edge, rx->seq);

    /* A FIN occupies one byte of the window, unless it is where it was. */
    if (rx->fin && !conn->fin_early && (int64_t)rx->len + 1 > room) {
        rx->fin = (int64_t)rx->len == room && rx->seq == conn->rcv_nxt;
    }
    if (room < 0 || rx->len > (uint32_t)room) {
        tcp_count(tcp, TCP_RX_BEYOND);
        rx->len = room < 0 ? 0 : (uint32_t)room;
        rx->fin = false;
    }
}

void tcp_receive(struct tcp *tcp, struct tcp_conn *conn, struct tcp_rx *rx)
{
    if (rx->len == 0 && !rx->fin) {
        return;
    }
    if (conn->fin_received) { /* RFC 9293: what comes after a FIN is ignored */
        conn->ack_due = true;
        return;
    }
    trim_left(tcp, conn, rx);
    trim_right(tcp, conn, rx);
    if (rx->len == 0 && !rx->fin) {
        conn->ack_due = true;
    } else if (rx->seq == conn->rcv_nxt) {
        take_next(tcp, conn, rx);
    } else if (seq_after(rx->seq, conn->rcv_nxt)) {
        take_early(tcp, conn, rx);
    }
}
