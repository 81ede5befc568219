/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold between any two calls of the TCP engine. */
#ifndef ESSD_TESTS_TCP_INVARIANT_H
#define ESSD_TESTS_TCP_INVARIANT_H

#include "net/tcp/tcp.h"

/** Stop the test with a failed assertion when something does not hold. */
void tcp_check(struct tcp *tcp);

/** The sequence number of our SYN; meaningless without such a connection. */
uint32_t tcp_check_iss(struct tcp *tcp, const struct tcp_ends *ends);

/** The time, not before `after_us`, at which a SYN-ACK would have this one. */
uint64_t tcp_check_time_of_iss(struct tcp *tcp, const struct tcp_ends *ends,
                               uint32_t iss);

#endif
