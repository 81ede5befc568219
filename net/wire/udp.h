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
    uint16_t checksum;     /* as on the wire; 0: none */
};

/** @return false when cut, or when length_bytes is below 8 or above `len` */
MUST_USE bool udp_parse(struct udp *udp, const uint8_t *buf, size_t len);

/** Write UDP_LEN bytes, the checksum as it is in `udp`. */
void udp_emit(const struct udp *udp, uint8_t *buf);

/**
 * The checksum of a datagram whose header and payload are in place.
 *
 * @param len  header and payload
 * @return for emitting (checksum field zero in `buf`): the value to put, never
 *         0.  For checking (field as received): 0xffff when it is right.
 */
uint16_t udp_checksum(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len);

#endif
