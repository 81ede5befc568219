/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets in fragments: those that come are put together within bounds, and
 * echoes too long for the link are answered in fragments.
 * Spec: RFC 791 section 3.2, RFC 1122 section 3.3.2, RFC 8200 section 4.5;
 * RFC 5722 (overlaps refuse the whole packet: for IPv4 too), RFC 6946.
 *
 * NET_REASSEMBLIES packets at a time, half of them from one source at most;
 * one more takes the place of the oldest.  A fragment costs one copy and a
 * look at the bits of what it covers.
 */
#ifndef ESSD_NET_STACK_FRAGMENT_H
#define ESSD_NET_STACK_FRAGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/stack/limits.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

enum {
    NET_REASSEMBLIES = 8,
    NET_REASSEMBLY_US = 60000000, /* RFC 1122 3.3.2, RFC 8200 4.5 */
    NET_PAYLOAD_MAX = 65535,      /* what IP carries */
    NET_FRAGMENT_BLOCKS = (NET_PAYLOAD_MAX + 1) / 8,
};

enum reassembly_state {
    REASSEMBLY_FREE,
    REASSEMBLY_COLLECTING, /* waits for fragments */
    REASSEMBLY_REFUSED,   /* fragments overlapped: waits for the last of them */
    REASSEMBLY_ANSWERING, /* holds our answer: waits for room to send it */
    REASSEMBLY_STATES,
};

/* Opaque. */
struct net_reassembly {
    struct ip_addr src;
    struct ip_addr dst;
    struct mac_addr mac; /* of the peer's last fragment */
    uint64_t deadline_us;
    uint32_t id;
    uint32_t received_bytes; /* COLLECTING */
    uint32_t highest_bytes;  /* the end of the furthest fragment */
    uint32_t total_bytes;    /* 0: the last fragment has not come */
    uint32_t sent_bytes;     /* ANSWERING, of total_bytes */
    uint16_t first_bytes;    /* of the first fragment; 0: has not come */
    uint16_t vlan;
    int16_t local;
    uint8_t port;
    uint8_t priority;
    uint8_t tos;
    uint8_t protocol; /* IPv6: as the first fragment says */
    uint8_t header_len;
    uint8_t state; /* enum reassembly_state; enter() is the only writer */
    uint32_t blocks[NET_FRAGMENT_BLOCKS / 32]; /* those that have come */
    uint8_t header[40]; /* the packet's, then its payload */
    uint8_t payload[NET_PAYLOAD_MAX + 1];
};

#endif
