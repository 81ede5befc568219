/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One address type for IPv4 and IPv6, in the form that RoCE uses as a GID:
 * IPv4 a.b.c.d is ::ffff:a.b.c.d.
 * Spec: RFC 4291 sections 2.5 and 2.7; IBTA Vol 1 annex A17.4.5.2 (GIDs).
 */
#ifndef ESSD_NET_WIRE_IP_ADDR_H
#define ESSD_NET_WIRE_IP_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/bytes.h"

struct ip_addr {
    uint8_t bytes[16]; /* network order; all zero is "no address" */
};

/** @param v4  host order: 10.0.0.1 is 0x0a000001 */
static inline struct ip_addr ip_addr_from_v4(uint32_t v4)
{
    struct ip_addr ip = {.bytes = {[10] = 0xff, [11] = 0xff}};

    put_be32(ip.bytes + 12, v4);
    return ip;
}

static inline struct ip_addr ip_addr_from_bytes(const uint8_t bytes[16])
{
    struct ip_addr ip;

    memcpy(ip.bytes, bytes, sizeof(ip.bytes));
    return ip;
}

static inline bool ip_addr_is_v4(const struct ip_addr *ip)
{
    return get_be64(ip->bytes) == 0 && get_be32(ip->bytes + 8) == 0xffff;
}

/** The IPv4 address in host order; meaningless unless ip_addr_is_v4(). */
static inline uint32_t ip_addr_to_v4(const struct ip_addr *ip)
{
    return get_be32(ip->bytes + 12);
}

static inline bool ip_addr_equal(const struct ip_addr *a,
                                 const struct ip_addr *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/** True for :: and for 0.0.0.0 (::ffff:0.0.0.0). */
static inline bool ip_addr_is_unspecified(const struct ip_addr *ip)
{
    uint64_t low = get_be64(ip->bytes + 8);

    return get_be64(ip->bytes) == 0 && (low == 0 || low == 0xffff00000000);
}

/** True for 224.0.0.0/4, 255.255.255.255 and ff00::/8. */
static inline bool ip_addr_is_multicast(const struct ip_addr *ip)
{
    if (ip_addr_is_v4(ip)) {
        return ip->bytes[12] >> 4 == 0xe || ip_addr_to_v4(ip) == 0xffffffff;
    }
    return ip->bytes[0] == 0xff;
}

/** True for 127.0.0.0/8 and ::1. */
static inline bool ip_addr_is_loopback(const struct ip_addr *ip)
{
    if (ip_addr_is_v4(ip)) {
        return ip->bytes[12] == 127;
    }
    return get_be64(ip->bytes) == 0 && get_be64(ip->bytes + 8) == 1;
}

/** True for 169.254.0.0/16 and fe80::/10. */
static inline bool ip_addr_is_link_local(const struct ip_addr *ip)
{
    if (ip_addr_is_v4(ip)) {
        return get_be16(ip->bytes + 12) == 0xa9fe;
    }
    return ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

/** True when the first `bits` bits agree; for IPv4 count from bit 96 on. */
static inline bool ip_addr_prefix_equal(const struct ip_addr *a,
                                        const struct ip_addr *b, unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;

    return memcmp(a->bytes, b->bytes, whole) == 0 &&
           (rest == 0 ||
            (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0);
}

#endif
