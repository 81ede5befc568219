/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RSTs, and how many of those to segments of no connection there may be.
 * Spec: RFC 9293 section 3.10.7.1; RFC 5961 section 7.
 */
#ifndef ESSD_NET_TCP_ANSWERS_H
#define ESSD_NET_TCP_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp;
struct tcp_conn;
struct tcp_ends;
struct tcp_half;
struct tcp_header;
struct tcp_rx;

enum { TCP_RESET_GROUPS = 32 }; /* of sources, by a keyed hash */

/* How many RSTs may still be sent to a group of sources. */
struct tcp_resets {
    uint16_t left;
    uint64_t filled_us; /* time up to which `left` was filled */
};

/* At first, each group may cause as many as ever. */
void tcp_resets_init(struct tcp *tcp);

/* Answer a segment of no connection with a RST, if the limits allow it. */
void tcp_answer_rst(struct tcp *tcp, const struct tcp_rx *rx);

/* Whether the limits allow such a RST: the caller sends it. */
bool tcp_reset_allowed(struct tcp *tcp, const struct tcp_ends *ends,
                       uint32_t route);

/* The RST that ends a connection, or a half-open one. */
struct tcp_header tcp_conn_rst(const struct tcp *tcp,
                               const struct tcp_conn *conn);
struct tcp_header tcp_half_rst(const struct tcp *tcp,
                               const struct tcp_half *half);

/* How many bytes of a peer's address tell its source. */
size_t tcp_source_len(const struct tcp_ends *ends);

#endif
