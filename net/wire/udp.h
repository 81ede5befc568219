/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP header.
 * Spec: RFC 768; RFC 6935 (zero checksum over IPv6); RoCEv2 sends zero too.
 */
#ifndef ESSD_NET_WIRE_UDP_H
#define ESSD_NET_WIRE_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; big-endian */
       UDP_SRC_PORT = 0,
       UDP_DST_PORT = 2,
       UDP_LENGTH = 4,
       UDP_CHECKSUM = 6,
       UDP_LEN = 8,
};

enum { UDP_PORT_ROCE = 4791 };

struct udp {
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t length_bytes; /* header and payload */
    uint16_t checksum;     /* 0 if the sender computed none */
};

/** @return false when cut, or when length_bytes is below 8 or above `len` */
MUST_USE bool udp_parse(struct udp *udp, const uint8_t *buf, size_t len);

/** Write UDP_LEN bytes, with the checksum that `udp` holds. */
void udp_emit(const struct udp *udp, uint8_t *buf);

/**
 * Compute the checksum of a datagram whose header and payload are in place.
 *
 * @param len  header and payload
 * @return when the checksum field in `buf` is zero: the value to send, never 0.
 *         When the field is as received: 0xffff if it is correct.
 */
uint16_t udp_checksum(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len);

#endif
