/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 header.
 * Spec: RFC 791; RFC 6864 (the identification of unfragmented packets).
 *
 * Left out: options.  parse skips them (header_len_bytes above 20 shows that
 * there are some), emit never writes any.
 */
#ifndef ESSD_NET_WIRE_IPV4_H
#define ESSD_NET_WIRE_IPV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       IPV4_VERSION_IHL = 0,
       IPV4_TOS = 1, /* DSCP:6 ECN:2 */
       IPV4_TOTAL_LEN = 2,
       IPV4_ID = 4,
       IPV4_FRAGMENT = 6, /* reserved:1 DF:1 MF:1 offset:13, in 8 bytes */
       IPV4_TTL = 8,
       IPV4_PROTOCOL = 9,
       IPV4_CHECKSUM = 10,
       IPV4_SRC = 12,
       IPV4_DST = 16,
       IPV4_LEN = 20,
};

enum {
    IP_PROTOCOL_ICMP = 1,
    IP_PROTOCOL_TCP = 6,
    IP_PROTOCOL_UDP = 17,
    IP_PROTOCOL_ICMPV6 = 58,
};

struct ipv4 {
    struct ip_addr src; /* ::ffff:a.b.c.d */
    struct ip_addr dst;
    uint16_t total_len_bytes; /* header and payload, without padding */
    uint16_t id;
    uint16_t fragment_offset_bytes; /* a multiple of 8 */
    uint8_t header_len_bytes;       /* 20..60; emit always writes 20 */
    uint8_t tos;
    uint8_t ttl;
    uint8_t protocol;
    bool dont_fragment;
    bool more_fragments;
};

/**
 * @param len  bytes in `buf`: total_len_bytes, or more with Ethernet padding
 * @return false when the header is cut short, inconsistent, or has a wrong
 *         checksum
 */
MUST_USE bool ipv4_parse(struct ipv4 *ip, const uint8_t *buf, size_t len);

/** Write IPV4_LEN bytes, checksum included. */
void ipv4_emit(const struct ipv4 *ip, uint8_t *buf);

#endif
