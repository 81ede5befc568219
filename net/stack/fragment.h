/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP fragments: reassembly of received packets within bounds, and echo replies
 * that are too long for the path, which are sent in fragments.
 * Spec: RFC 791 section 3.2, RFC 1122 section 3.3.2, RFC 8200 section 4.5;
 * RFC 5722 (overlapping fragments discard the whole packet, here for IPv4 too),
 * RFC 6946.
 *
 * At most NET_REASSEMBLIES packets are reassembled at a time, at most half of
 * them from one source; a further packet evicts the oldest.  A fragment costs
 * one copy and a look at the bitmap of the blocks that it covers.
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
    NET_PAYLOAD_MAX = 65535,      /* of an IP packet, in bytes */
    NET_FRAGMENT_BLOCKS = (NET_PAYLOAD_MAX + 1) / 8,
};

enum reassembly_state {
    REASSEMBLY_FREE,       /* Unused; waits for a packet. */
    REASSEMBLY_COLLECTING, /* Waits for the missing fragments. */
    REASSEMBLY_REFUSED,    /* Fragments overlapped; drops the rest until the
                            * time is over. */
    REASSEMBLY_ANSWERING,  /* Holds our reply until all fragments are sent. */
    REASSEMBLY_STATES,
};

/* Opaque. */
struct net_reassembly {
    struct ip_addr src;
    struct ip_addr dst;
    struct mac_addr mac; /* source of the last fragment */
    uint64_t deadline_us;
    uint32_t id;
    uint32_t received_bytes; /* so far, while COLLECTING */
    uint32_t highest_bytes;  /* highest end of a fragment so far */
    uint32_t total_bytes;    /* of the payload; 0 without the last fragment */
    uint32_t sent_bytes;     /* of total_bytes, while ANSWERING */
    uint16_t first_bytes;    /* of the first fragment; 0 if it is missing */
    uint16_t vlan;
    int16_t local;
    uint8_t port;
    uint8_t priority;
    uint8_t tos;
    uint8_t protocol; /* for IPv6 from the first fragment */
    uint8_t header_len;
    uint8_t state; /* enum reassembly_state; written by reassembly_enter() only
                    */
    uint32_t blocks[NET_FRAGMENT_BLOCKS / 32]; /* bitmap of received blocks */
    uint8_t header[40]; /* IP header, right-aligned; `payload` follows it */
    uint8_t payload[NET_PAYLOAD_MAX + 1];
};

#endif
