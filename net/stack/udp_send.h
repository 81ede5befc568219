/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending UDP datagrams, for clients of network services.
 * Spec: RFC 768.
 *
 * Left out: fragments, so the MTU limits the payload.
 */
#ifndef ESSD_NET_STACK_UDP_SEND_H
#define ESSD_NET_STACK_UDP_SEND_H

#include "net/stack/stack.h"

struct net_udp_tx {
    struct ip_addr dst;
    const uint8_t *payload; /* copied */
    size_t len_bytes;
    uint16_t src_port;
    uint16_t dst_port;
    uint8_t local; /* index of the source address, of dst's family */
};

enum net_udp_sent {
    NET_UDP_SENT,
    NET_UDP_WAIT,     /* no buffer, or neighbour unresolved: try again later */
    NET_UDP_NO_ROUTE, /* no route from `local`, or longer than the MTU */
};

/** Send a datagram.  Must not be called from the stack's callbacks. */
MUST_USE enum net_udp_sent net_stack_udp_send(struct net_stack *stack,
                                              const struct net_udp_tx *tx,
                                              uint64_t now_us);

/* A datagram to a known MAC or to all stations of a link. */
struct net_udp_direct {
    struct mac_addr mac;
    struct ip_addr src;     /* 0.0.0.0 while there is no address */
    struct ip_addr dst;     /* of the same family */
    const uint8_t *payload; /* copied */
    size_t len_bytes;       /* within the MTU */
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t vlan;
    uint8_t port;
    uint8_t hop_limit; /* 0: the usual one */
};

/**
 * Send without neighbours and routes, for DHCP and groups.  Must not be called
 * from the stack's callbacks.
 *
 * @return false when there is no transmit buffer or the link is down
 */
MUST_USE bool net_stack_udp_direct(struct net_stack *stack,
                                   const struct net_udp_direct *tx);

/**
 * Choose the own address from which to send to `dst`: one with `dst` on its
 * link, else one whose gateway may reach it.
 *
 * @param skip  how many candidates to pass over, cyclically; lets a caller try
 *              the other port when no answer comes
 * @return its index, or -1 when there is none
 */
int net_stack_source(const struct net_stack *stack, const struct ip_addr *dst,
                     unsigned int skip);

#endif
