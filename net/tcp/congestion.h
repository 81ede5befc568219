/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much is sent: recovery, and the kinds of congestion control.
 * Spec: RFC 9937, 6582, 5681, 9438.
 */
#ifndef ESSD_NET_TCP_CONGESTION_H
#define ESSD_NET_TCP_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

struct tcp;
struct tcp_conn;

/* recovery.c */
/** @param acked  bytes that the ACK has taken off what was in flight */
void tcp_recovery_enter(struct tcp *tcp, struct tcp_conn *conn, uint32_t acked);
/* What is known after an ACK, or when a timer has expired. */
struct tcp_delivery {
    uint32_t bytes; /* delivered */
    bool has_advanced;
    bool has_lost; /* something more is lost */
};
void tcp_recovery_ack(struct tcp *tcp, struct tcp_conn *conn,
                      const struct tcp_delivery *delivery);
void tcp_recovery_timeout(struct tcp *tcp, struct tcp_conn *conn);
void tcp_recovery_reduce(struct tcp *tcp, struct tcp_conn *conn);
void tcp_idle_restart(struct tcp *tcp, struct tcp_conn *conn, uint32_t flight);
void tcp_dup_ack(struct tcp *tcp, struct tcp_conn *conn);
/** New bytes are acknowledged: duplicate ACKs are counted anew. */
void tcp_dup_acks_end(struct tcp_conn *conn);

/* cc.c: congestion control of one kind */
struct tcp_cc {
    /* Bytes were acknowledged while the window was in full use. */
    void (*acked)(struct tcp *tcp, struct tcp_conn *conn, uint32_t bytes);
    /* Bytes were acknowledged, and the window was not in full use. */
    void (*paused)(struct tcp *tcp, struct tcp_conn *conn);
    /* A loss.
     * @param used  bytes in flight before it was known, or as many as may be
     * @return the new ssthresh */
    uint32_t (*lost)(struct tcp *tcp, struct tcp_conn *conn, uint32_t used);
    void (*timed_out)(struct tcp *tcp, struct tcp_conn *conn);
};
extern const struct tcp_cc tcp_cc_newreno, tcp_cc_cubic;
const struct tcp_cc *tcp_cc(const struct tcp *tcp);
uint32_t tcp_initial_window(const struct tcp_conn *conn);
/** Slow start, RFC 5681 section 3.1. @return the bytes that are left over */
uint32_t tcp_slow_start(struct tcp_conn *conn, uint32_t bytes);

#endif
