/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6 extension headers: options, routing and fragment.
 * Spec: RFC 8200 section 4; RFC 5095 (routing type 0 is deprecated).
 *
 * Left out: the meaning of single options; authentication and ESP.
 */
#ifndef ESSD_NET_WIRE_IPV6_EXT_H
#define ESSD_NET_WIRE_IPV6_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* next header values */
       IPV6_EXT_HOP_BY_HOP = 0,
       IPV6_EXT_ROUTING = 43,
       IPV6_EXT_FRAGMENT = 44,
       IPV6_EXT_NONE = 59, /* nothing follows */
       IPV6_EXT_DESTINATION = 60,
};

enum { /* byte offsets */
       IPV6_EXT_NEXT_HEADER = 0,
       IPV6_EXT_HDR_LEN = 1, /* in 8 bytes, not counting the first */
       IPV6_EXT_OPTIONS = 2,
       IPV6_ROUTING_TYPE = 2,
       IPV6_ROUTING_SEGMENTS_LEFT = 3,
       IPV6_EXT_MIN_LEN = 8,

       IPV6_FRAGMENT_OFFSET = 2, /* offset:13 in 8 bytes, reserved:2, M:1 */
       IPV6_FRAGMENT_ID = 4,
       IPV6_FRAGMENT_LEN = 8,
};

enum { IPV6_OPTION_PAD1 = 0, IPV6_OPTION_PADN = 1 };

struct ipv6_fragment {
    uint32_t id;
    uint16_t offset_bytes; /* a multiple of 8 */
    uint8_t next_header;
    bool more_fragments;
};

/** @return false when the header is cut short */
MUST_USE bool ipv6_fragment_parse(struct ipv6_fragment *fragment,
                                  const uint8_t *buf, size_t len);

/** Write IPV6_FRAGMENT_LEN bytes. */
void ipv6_fragment_emit(const struct ipv6_fragment *fragment, uint8_t *buf);

/** Length of any header but the fragment header; 0 when it is cut short. */
size_t ipv6_ext_len(const uint8_t *buf, size_t len);

/* What a node that knows none of a header's options must do: RFC 8200 4.2. */
enum ipv6_options {
    IPV6_OPTIONS_SKIP,
    IPV6_OPTIONS_MALFORMED,
    IPV6_OPTIONS_DISCARD,
    IPV6_OPTIONS_REPORT,         /* discard, and send an ICMPv6 error */
    IPV6_OPTIONS_REPORT_UNICAST, /* the same, but no error for a multicast */
};

/**
 * Look through a hop-by-hop or destination options header.
 *
 * @param len     the header's length, from ipv6_ext_len()
 * @param offset  set to the offset in `buf` of the option that decided
 */
enum ipv6_options ipv6_options_check(const uint8_t *buf, size_t len,
                                     size_t *offset);

#endif
