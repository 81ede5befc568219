/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending UDP datagrams: for clients of services, not for bulk data.
 * Spec: RFC 768.
 *
 * Left out: fragments, so that payloads are limited by the MTU.
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
    uint8_t local; /* own address that it comes from; of dst's family */
};

enum net_udp_sent {
    NET_UDP_SENT,
    NET_UDP_WAIT,     /* no room, or the neighbour is being asked for: again */
    NET_UDP_NO_ROUTE, /* from `local`, or it cannot be used, or is too long */
};

/** Not from inside of callbacks. */
MUST_USE enum net_udp_sent net_stack_udp_send(struct net_stack *stack,
                                              const struct net_udp_tx *tx,
                                              uint64_t now_us);

/* A datagram to a station whose MAC the caller knows, or to all of a link. */
struct net_udp_direct {
    struct mac_addr mac;
    struct ip_addr src;     /* may be 0.0.0.0: whoever has no address yet */
    struct ip_addr dst;     /* of the same family */
    const uint8_t *payload; /* copied */
    size_t len_bytes;       /* within the MTU */
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t vlan;
    uint8_t port;
};

/**
 * Send without neighbours and routes: for DHCP.  Not from inside of callbacks.
 *
 * @return false when there is no room, or the link is down
 */
MUST_USE bool net_stack_udp_direct(struct net_stack *stack,
                                   const struct net_udp_direct *tx);

/**
 * The address of ours to send to `dst` from: one whose link `dst` is on, else
 * one behind whose gateway it may be.
 *
 * @param skip  that many candidates are passed over, round and round: for
 *              trying the other port when nothing comes back
 * @return -1 when there is none now
 */
int net_stack_source(const struct net_stack *stack, const struct ip_addr *dst,
                     unsigned int skip);

#endif
