/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet sequence numbers: 24 bits that wrap.
 * Spec: IBTA Vol 1 section 9.7.1.
 */
#ifndef ESSD_NET_WIRE_PSN_H
#define ESSD_NET_WIRE_PSN_H

#include <stdint.h>

#define PSN_MASK 0xffffffu

/** `psn` advanced by `count` packets; cast a negative count to uint32_t. */
static inline uint32_t psn_add(uint32_t psn, uint32_t count)
{
    return (psn + count) & PSN_MASK;
}

/**
 * How many packets `a` is ahead of `b`: -2^23 .. 2^23 - 1.  Only the low 24
 * bits of both are used.
 */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    uint32_t forward = (a - b) & PSN_MASK;

    return forward < 0x800000 ? (int32_t)forward : (int32_t)forward - 0x1000000;
}

#endif
