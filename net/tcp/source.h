/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sources: which peers count as one, and what share of half-open entries and of
 * connections one of them may have.
 */
#ifndef ESSD_TCP_SOURCE_H
#define ESSD_TCP_SOURCE_H

#include "net/tcp/internal.h"

/*
 * How many bytes of a peer's address tell its source.  Whoever has one IPv6
 * address behind a router has the other ones of its /64, too; on the own subnet
 * and on the link, every host has the same /64.
 */
size_t tcp_source_len(const struct tcp_ends *ends);

/*
 * The node of the half-open connection that a newer one takes: all are in use.
 * Shares count only beyond a quarter of the pool: in a flood from random
 * addresses, the source with the most entries is an honest host with two.
 */
uint16_t tcp_half_victim(const struct tcp *tcp, const struct tcp_ends *newer);

/* Whether a source may have one more connection: one source alone does not take
 * all of them. */
bool tcp_source_has_place(const struct tcp *tcp, const struct tcp_ends *source);

#endif
