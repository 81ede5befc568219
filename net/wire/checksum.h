/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum, and the pseudo headers of UDP and ICMPv6.
 * Spec: RFC 1071; RFC 768; RFC 8200 section 8.1.
 */
#ifndef ESSD_NET_WIRE_CHECKSUM_H
#define ESSD_NET_WIRE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "net/wire/ip_addr.h"

/**
 * Continue a sum over more bytes.
 *
 * @param sum  0 to start, or what an earlier call returned
 * @param len  even, except in the last call of a sum
 * @return the sum so far, folded to 16 bits
 */
uint32_t checksum_add(uint32_t sum, const uint8_t *buf, size_t len);

/** Start a sum with the IPv4 or IPv6 pseudo header of these addresses. */
uint32_t checksum_pseudo(const struct ip_addr *src, const struct ip_addr *dst,
                         uint8_t protocol, size_t len);

/** The value for the header field; 0 when a received checksum was correct. */
static inline uint16_t checksum_finish(uint32_t sum)
{
    return (uint16_t)~sum;
}

#endif
