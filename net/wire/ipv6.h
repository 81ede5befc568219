/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 fixed header.
 * Spec: RFC 8200 section 3.
 *
 * Left out: extension headers (ipv6_ext.h); next_header names the first one.
 */
#ifndef ESSD_NET_WIRE_IPV6_H
#define ESSD_NET_WIRE_IPV6_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       IPV6_VERSION = 0, /* version:4 traffic class:8 flow label:20 */
       IPV6_PAYLOAD_LEN = 4,
       IPV6_NEXT_HEADER = 6, /* numbers as IPv4's protocol: IP_PROTOCOL_* */
       IPV6_HOP_LIMIT = 7,
       IPV6_SRC = 8,
       IPV6_DST = 24,
       IPV6_LEN = 40,
};

struct ipv6 {
    struct ip_addr src;
    struct ip_addr dst;
    uint32_t flow_label; /* 20 bits */
    uint16_t payload_len_bytes;
    uint8_t traffic_class;
    uint8_t next_header;
    uint8_t hop_limit;
};

/**
 * @param len  bytes in `buf`: the frame may be longer than the packet
 * @return false when the header is cut short, its version is not 6, or an
 *         address is IPv4-mapped: no IPv6 header may carry one (RFC 4942
 *         section 2.2), and upper layers would take it for IPv4
 */
MUST_USE bool ipv6_parse(struct ipv6 *ip, const uint8_t *buf, size_t len);

/** Write IPV6_LEN bytes. */
void ipv6_emit(const struct ipv6 *ip, uint8_t *buf);

#endif
