/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers for EtherTypes other than ARP and IP: LLDP, slow protocols, ATA over
 * Ethernet.  The ports receive the multicast group of each bound type.
 */
#ifndef ESSD_NET_STACK_ETHER_H
#define ESSD_NET_STACK_ETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/eth.h"

struct net_stack;

enum { NET_ETHER_BINDINGS = 4 };

/* A frame of a bound type; pointers are valid during the call only. */
struct net_ether_rx {
    const struct mac_addr *dst;
    const struct mac_addr *src;
    const uint8_t *payload; /* follows EtherType and tag; may have padding */
    size_t len_bytes;
    uint64_t now_us;
    uint16_t vlan; /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;
};

/* Called inside of net_stack_input().  It may send one frame from the port that
 * the frame came by, with net_ether_begin(), which finds a buffer. */
typedef void net_ether_handler(void *ctx, const struct net_ether_rx *rx);

struct net_ether_binding {
    net_ether_handler *handler; /* NULL if the binding is free */
    void *ctx;
    struct mac_addr group; /* zero: none */
    uint16_t type;
};

/**
 * Pass all frames of this EtherType, from both ports, to a handler.
 *
 * @param group  added to the list that net_stack_multicast() returns; NULL if
 *               the type has frames to this station and to all only
 * @return false when the type is bound already or no binding is free
 */
MUST_USE bool net_stack_ether_bind(struct net_stack *stack, uint16_t type,
                                   const struct mac_addr *group,
                                   net_ether_handler *handler, void *ctx);

/* Where a frame of a bound type goes. */
struct net_ether_to {
    struct mac_addr dst;
    uint16_t type;
    uint16_t vlan; /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;
};

/**
 * Begin a frame.  Nothing else may be sent from the port before
 * net_ether_commit(); without that, nothing is sent.
 *
 * @return where its payload goes, of as many bytes as the port's MTU; NULL when
 *         no buffer is free or the link is down: try again later
 */
uint8_t *net_ether_begin(struct net_stack *stack,
                         const struct net_ether_to *to);

/** Send the frame that net_ether_begin() has begun.  @param len  of the payload
 */
void net_ether_commit(struct net_stack *stack, const struct net_ether_to *to,
                      size_t len);

#endif
