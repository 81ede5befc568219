/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUBIC.
 * Spec: RFC 9438 section 4.  C is 0.4, beta 0.7, windows are in bytes, times in
 * milliseconds.
 *
 * Left out: HyStart++ (slow start ends with the first loss).
 */
#include "net/tcp/internal.h"

/* The whole part of the cube root. */
static uint32_t cube_root(uint64_t x)
{
    uint64_t root = 0;

    for (int bit = 20; bit >= 0; bit--) {
        uint64_t next = root | UINT64_C(1) << bit;

        if (next * next * next <= x) {
            root = next;
        }
    }
    return (uint32_t)root;
}

/* Bytes by which C t^3 moves the window: t in ms, 0.4 segments a cubic second
 */
static uint64_t cubic_bytes(const struct tcp_conn *conn, uint64_t t_ms)
{
    uint64_t t = MIN(t_ms, 1000000);

    return t * t * t / 1000000 * conn->mss / 1000 * 4 / 10;
}

/* Section 4.2: begin an epoch of congestion avoidance. */
static void epoch_begin(struct tcp *tcp, struct tcp_conn *conn)
{
    struct tcp_cubic *cubic = &conn->cubic;

    cubic->epoch_us = cubic->ack_us = MAX(tcp->now_us, 1);
    cubic->w_est = conn->cwnd;
    cubic->acked = 0;
    cubic->k_ms = 0;
    cubic->origin = conn->cwnd;
    if (cubic->w_max > conn->cwnd) {
        uint64_t gap = cubic->w_max - conn->cwnd;

        /* K^3 = gap / (C mss), in cubic milliseconds. */
        cubic->k_ms =
            cube_root(gap * 10 / 4 * UINT64_C(1000000000) / conn->mss);
        cubic->origin = cubic->w_max;
    }
}

/* Section 4.2: the window one round trip ahead. */
static uint32_t cubic_target(struct tcp *tcp, const struct tcp_conn *conn)
{
    const struct tcp_cubic *cubic = &conn->cubic;
    uint64_t t_ms = (tcp->now_us - cubic->epoch_us + conn->srtt_us) / 1000;
    uint64_t target;

    if (t_ms < cubic->k_ms) {
        uint64_t below = cubic_bytes(conn, cubic->k_ms - t_ms);

        target = cubic->origin - MIN(below, cubic->origin);
    } else {
        target = cubic->origin + cubic_bytes(conn, t_ms - cubic->k_ms);
    }
    target = MAX(target, conn->cwnd);
    return (uint32_t)MIN(target, (uint64_t)conn->cwnd * 3 / 2);
}

/* Section 4.3: the window that NewReno would have; alpha is 3 (1 - beta) /
 * (1 + beta) = 9/17 until it has reached the window of the loss, then 1. */
static void estimate_newreno(struct tcp_conn *conn, uint32_t bytes)
{
    struct tcp_cubic *cubic = &conn->cubic;
    uint32_t share = cubic->w_est < cubic->cwnd_prior ? bytes * 9 / 17 : bytes;

    cubic->acked += share;
    if (cubic->acked >= conn->cwnd) {
        cubic->acked -= conn->cwnd;
        cubic->w_est += conn->mss;
    }
}

static void cubic_acked(struct tcp *tcp, struct tcp_conn *conn, uint32_t bytes)
{
    uint32_t target;

    if (conn->cwnd < conn->ssthresh) {
        bytes = tcp_slow_start(conn, bytes);
        if (bytes == 0) {
            return;
        }
    }
    if (conn->cubic.epoch_us == 0) {
        epoch_begin(tcp, conn);
    }
    conn->cubic.ack_us = tcp->now_us;
    estimate_newreno(conn, bytes);
    target = MAX(cubic_target(tcp, conn), conn->cubic.w_est);
    if (target > conn->cwnd) { /* (target - cwnd) / cwnd for each byte */
        uint64_t step = (uint64_t)(target - conn->cwnd) * bytes;

        conn->cwnd_acked += (uint32_t)(step / conn->cwnd);
    }
    if (conn->cwnd_acked >= conn->mss) {
        conn->cwnd += conn->cwnd_acked;
        conn->cwnd_acked = 0;
    }
}

/* Sections 4.2 and 5.8: time in which the window was not in use does not count.
 */
static void cubic_paused(struct tcp *tcp, struct tcp_conn *conn)
{
    struct tcp_cubic *cubic = &conn->cubic;

    if (cubic->epoch_us != 0) {
        cubic->epoch_us += tcp->now_us - cubic->ack_us;
        cubic->ack_us = tcp->now_us;
    }
}

/* Sections 4.6 and 4.7 (fast convergence). */
static uint32_t cubic_lost(struct tcp *tcp, struct tcp_conn *conn,
                           uint32_t used)
{
    struct tcp_cubic *cubic = &conn->cubic;
    uint32_t cwnd = conn->cwnd;
    uint32_t left = (uint32_t)((uint64_t)cwnd * 7 / 10);

    (void)tcp;
    (void)used;
    cubic->cwnd_prior = cwnd;
    cubic->w_max =
        cwnd < cubic->w_max ? (uint32_t)((uint64_t)cwnd * 17 / 20) : cwnd;
    cubic->epoch_us = 0;
    conn->cwnd_acked = 0;
    return MAX(left, 2 * (uint32_t)conn->mss);
}

/* Section 4.8: the next epoch begins at its plateau, with K = 0. */
static void cubic_timed_out(struct tcp *tcp, struct tcp_conn *conn)
{
    (void)tcp;
    conn->cubic.epoch_us = 0;
    conn->cubic.w_max = 0;
    conn->cwnd_acked = 0;
}

const struct tcp_cc tcp_cc_cubic = {
    .acked = cubic_acked,
    .paused = cubic_paused,
    .lost = cubic_lost,
    .timed_out = cubic_timed_out,
};
