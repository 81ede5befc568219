/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * InfiniBand's five-bit time codes: 4.096 us x 2^code.
 * Spec: IBTA Vol 1 sections 9.9.2.1.1 (ACK timeout), 12.7.14 (CM timeouts).
 */
#ifndef ESSD_NET_WIRE_IB_TIME_H
#define ESSD_NET_WIRE_IB_TIME_H

#include <stdint.h>

/**
 * @param code  0..31.  The caller handles code 0 of an ACK timeout, which
 *              means "no timeout".
 * @return microseconds, rounded up: 5 .. 8796093023 (2.4 hours)
 */
static inline uint64_t ib_time_us(uint8_t code)
{
    return ((4096ull << (code & 31)) + 999) / 1000;
}

#endif
