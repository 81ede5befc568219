/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 8 bytes that open every ICMP and ICMPv6 message.
 * Spec: RFC 792; RFC 4443 section 2.1 (checksum: 2.3).
 */
#ifndef ESSD_NET_WIRE_ICMP_H
#define ESSD_NET_WIRE_ICMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       ICMP_TYPE = 0,
       ICMP_CODE = 1,
       ICMP_CHECKSUM = 2,
       ICMP_REST = 4, /* by type: echo has identifier:16 sequence:16 */
       ICMP_LEN = 8,
};

enum {
    ICMP_ECHO_REPLY = 0,
    ICMP_UNREACHABLE = 3,
    ICMP_SOURCE_QUENCH = 4,
    ICMP_REDIRECT = 5,
    ICMP_ECHO_REQUEST = 8,
    ICMP_TIME_EXCEEDED = 11,
    ICMP_PARAMETER_PROBLEM = 12,
    ICMP_CODE_PROTOCOL_UNREACHABLE = 2, /* of ICMP_UNREACHABLE */
    ICMP_CODE_PORT_UNREACHABLE = 3,
    ICMP_CODE_FRAGMENTATION_NEEDED = 4,
};

enum {
    ICMPV6_UNREACHABLE = 1,
    ICMPV6_TOO_BIG = 2,
    ICMPV6_TIME_EXCEEDED = 3,
    ICMPV6_PARAMETER_PROBLEM = 4,
    ICMPV6_ECHO_REQUEST = 128,
    ICMPV6_ECHO_REPLY = 129,
    ICMPV6_CODE_PORT_UNREACHABLE = 4, /* of ICMPV6_UNREACHABLE */
};

struct icmp {
    uint8_t type;
    uint8_t code;
    uint32_t rest;
};

/**
 * @param len  the whole message
 * @return false when cut or when the checksum is wrong
 */
MUST_USE bool icmp_parse(struct icmp *icmp, const uint8_t *buf, size_t len);

/** icmp_parse() for ICMPv6, whose checksum covers a pseudo header too. */
MUST_USE bool icmpv6_parse(struct icmp *icmp, const struct ip_addr *src,
                           const struct ip_addr *dst, const uint8_t *buf,
                           size_t len);

/**
 * Write ICMP_LEN bytes, checksum included.
 *
 * @param len  the whole message; what follows the header is already there
 */
void icmp_emit(const struct icmp *icmp, uint8_t *buf, size_t len);

void icmpv6_emit(const struct icmp *icmp, const struct ip_addr *src,
                 const struct ip_addr *dst, uint8_t *buf, size_t len);

#endif
