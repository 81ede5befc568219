/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of net/stack share; nobody else includes it.
 */
#ifndef ESSD_NET_STACK_INTERNAL_H
#define ESSD_NET_STACK_INTERNAL_H

#include "net/stack/stack.h"

enum { NET_NOT_OURS = -1 };

/* A received frame on its way up, and the buffer its answer may be built in. */
struct net_rx {
    struct eth eth;
    const uint8_t *l3;
    size_t l3_len; /* from IP on: the packet, without Ethernet's padding */
    const uint8_t *l4;
    size_t l4_len;
    struct ip_addr src;
    struct ip_addr dst;
    uint8_t *answer;
    uint64_t now_us;
    uint16_t vlan;
    uint8_t port;
    uint8_t tos;                       /* or traffic class */
    uint8_t hop_limit;                 /* or TTL */
    int local;                         /* dst's index; NET_NOT_OURS: a group */
    uint16_t pointer;                  /* IPv6: offset of what is wrong */
    bool is_fragmented;                /* it came in fragments, be it in one */
    struct net_reassembly *reassembly; /* where l3 is then, or NULL */
};

/* An IP packet to build: everything but its payload. */
struct net_ip_out {
    struct ip_addr src;
    struct ip_addr dst;
    const struct mac_addr *mac;
    size_t payload_len; /* behind the fragment header, if there is one: too */
    uint32_t fragment_id;
    uint16_t fragment_offset_bytes;
    bool is_fragment; /* these count then */
    bool more_fragments;
    uint16_t vlan;
    uint8_t port;
    uint8_t priority;
    uint8_t protocol;
    uint8_t tos;
    uint8_t hop_limit;
};

static inline void net_count(struct net_stack *stack, uint8_t port,
                             enum net_counter counter)
{
    stack->counters[port][counter]++;
}

/** The longest packet on a port's link: RFC 4861 section 6.3.4 for IPv6. */
static inline uint16_t net_link_mtu(const struct net_stack *stack, uint8_t port,
                                    bool v4)
{
    uint16_t told =
        v4 ? stack->mtu4_bytes[port] : stack->routers[port].mtu_bytes;

    return told == 0 ? stack->config.ports[port].mtu_bytes : told;
}

/** Whether frames may go to `mac`: one station, and not ourselves. */
static inline bool net_mac_is_station(const struct net_stack *stack,
                                      uint8_t port, const struct mac_addr *mac)
{
    return !mac_addr_is_multicast(mac) && !mac_addr_is_zero(mac) &&
           !mac_addr_equal(mac, &stack->config.ports[port].mac);
}

/* tx.c: building and sending frames */

/** @return NULL when there is no room, which is counted */
uint8_t *net_tx_begin(struct net_stack *stack, uint8_t port);
void net_tx_commit(struct net_stack *stack, uint8_t port, size_t len,
                   uint8_t priority);
/** Write the Ethernet header. @return its length */
size_t net_eth_emit(const struct net_stack *stack, uint8_t port, uint16_t vlan,
                    uint8_t priority, const struct mac_addr *dst, uint16_t type,
                    uint8_t *frame);
/** Write Ethernet and IP headers. @return their length */
size_t net_ip_emit(const struct net_stack *stack, const struct net_ip_out *out,
                   uint8_t *frame);

/** The smaller of what is there and a new deadline. */
static inline void net_due(uint64_t *due_us, uint64_t deadline_us)
{
    *due_us = MIN(*due_us, deadline_us);
}

/* address.c: our own addresses */

/** Spreads drives that were switched on together. @return 0..limit - 1 */
uint64_t net_random_below(struct net_stack *stack, uint64_t limit);

void net_address_init(struct net_stack *stack);
void net_address_link(struct net_stack *stack, uint8_t port, bool is_up,
                      uint64_t now_us);
uint64_t net_address_timer(struct net_stack *stack, uint64_t now_us);
/** Somebody else claims it. `frame`: a buffer for our objection. */
void net_address_conflict(struct net_stack *stack, uint8_t local,
                          const struct mac_addr *mac, uint8_t *frame,
                          uint64_t now_us);
/** The usable own address that `ip` is, on this port and VLAN, or -1. */
int net_address_usable(const struct net_stack *stack, uint8_t port,
                       uint16_t vlan, const struct ip_addr *ip);
/** An address of this port and family whose prefix covers `ip`, or -1. */
int net_address_on_link(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip);

/* neigh.c */

struct neigh_heard {
    struct mac_addr mac;
    bool has_mac;
    bool is_solicited; /* it answers us */
    bool is_override;  /* it knows better than what we have */
    bool may_create;
};

void net_neigh_init(struct net_stack *stack);
void net_neigh_link(struct net_stack *stack, uint8_t port, uint64_t now_us);
uint64_t net_neigh_timer(struct net_stack *stack, uint64_t now_us);
/** ARP or ND said something about `ip`. */
void net_neigh_hear(struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip, const struct neigh_heard *heard,
                    uint64_t now_us);

/* arp.c, nd.c: the two protocols */

void net_arp_input(struct net_stack *stack, struct net_rx *rx);
size_t net_arp_announce(const struct net_stack *stack, uint8_t local,
                        uint8_t *frame);
/** "Does anybody have it?", from nobody: RFC 5227. */
size_t net_arp_probe(const struct net_stack *stack, uint8_t local,
                     uint8_t *frame);
size_t net_arp_ask(const struct net_stack *stack, uint8_t local,
                   const struct ip_addr *ip, const struct mac_addr *unicast,
                   uint8_t *frame);

void net_nd_input(struct net_stack *stack, struct net_rx *rx);
size_t net_nd_announce(const struct net_stack *stack, uint8_t local,
                       uint8_t *frame);
size_t net_nd_detect_duplicate(const struct net_stack *stack, uint8_t local,
                               uint8_t *frame);
size_t net_nd_ask(const struct net_stack *stack, uint8_t local,
                  const struct ip_addr *ip, const struct mac_addr *unicast,
                  uint8_t *frame);

/* mld.c */

/** Say that we listen to the address' solicited-node group, from then on. */
void net_mld_join(struct net_stack *stack, uint8_t local, uint64_t due_us);
void net_mld_report(struct net_stack *stack, uint8_t local, uint8_t *frame,
                    uint64_t now_us);
void net_mld_input(struct net_stack *stack, struct net_rx *rx);

/* router.c */

void net_router_init(struct net_stack *stack);
void net_router_link(struct net_stack *stack, uint8_t port, bool is_up,
                     uint64_t now_us);
uint64_t net_router_timer(struct net_stack *stack, uint64_t now_us);
void net_router_input(struct net_stack *stack, struct net_rx *rx);
/** Where packets to addresses elsewhere go; all zero: nowhere. */
const struct ip_addr *net_gateway(const struct net_stack *stack, uint8_t port,
                                  uint16_t vlan, bool v4, uint64_t now_us);
/** It does not answer: try others first. */
void net_router_failed(struct net_stack *stack, uint8_t port,
                       const struct ip_addr *ip);

/* limit.c */

void net_limit_init(struct net_stack *stack);
/** May the port send `count` more frames of this kind now? */
bool net_limit_take(struct net_stack *stack, uint8_t port, enum net_limit limit,
                    uint32_t count, uint64_t now_us);

/* fragment.c */

struct net_fragment {
    uint32_t id;
    uint16_t offset_bytes; /* a multiple of 8 */
    bool more_fragments;
    uint8_t protocol;
    const uint8_t *payload;
};

/**
 * One fragment of `len` bytes, checked by itself: not 0, a multiple of 8 but
 * for the last, and within what a packet may have.
 *
 * @return true when its packet is complete: `rx` is that packet then, and
 *         wants net_fragment_done() when it has been dealt with
 */
bool net_fragment_input(struct net_stack *stack, struct net_rx *rx,
                        const struct net_fragment *f, size_t len);
void net_fragment_done(struct net_stack *stack, struct net_rx *rx);
/**
 * Answer the ICMP message `rx` with one as long, `len` bytes, in fragments.
 *
 * @return that message, to be changed before the call ends; NULL: no room
 */
uint8_t *net_fragment_answer(struct net_stack *stack, struct net_rx *rx,
                             uint8_t local, size_t len);
uint64_t net_fragment_timer(struct net_stack *stack, uint64_t now_us);

/* ip.c, ip6.c, icmp.c, udp.c */

/** The longest packet that gets from a port to `ip` in one piece. */
uint16_t net_path_mtu(const struct net_stack *stack, uint8_t port,
                      uint16_t vlan, const struct ip_addr *ip, uint64_t now_us);
/** Whose the packet is: sets rx->local. @return false when not for us */
bool net_ip_is_for_us(const struct net_stack *stack, struct net_rx *rx);
/** All hosts of one of our subnets on that link, by IPv4. */
bool net_ip_is_subnet_broadcast(const struct net_stack *stack, uint8_t port,
                                uint16_t vlan, const struct ip_addr *ip);
/** Whether the sender claims to be us. */
bool net_ip_is_from_us(const struct net_stack *stack, const struct net_rx *rx);

void net_ipv4_input(struct net_stack *stack, struct net_rx *rx);
void net_ipv6_input(struct net_stack *stack, struct net_rx *rx);
void net_icmp_input(struct net_stack *stack, struct net_rx *rx);
void net_icmpv6_input(struct net_stack *stack, struct net_rx *rx);
void net_udp_input(struct net_stack *stack, struct net_rx *rx);
void net_ether_input(struct net_stack *stack, const struct net_rx *rx);

enum net_icmp_error {
    NET_PORT_UNREACHABLE,
    NET_PROTOCOL_UNREACHABLE,
    NET_REASSEMBLY_TIME_EXCEEDED,
    NET_HEADER_PROBLEM, /* IPv6, as the next two: rx->pointer says where */
    NET_OPTION_PROBLEM, /* told even if it went to a group */
    NET_OPTION_PROBLEM_UNICAST,
    NET_ICMP_ERROR_KINDS,
};
/** Only if one may be sent, and not too many. */
void net_icmp_error(struct net_stack *stack, struct net_rx *rx,
                    enum net_icmp_error error);

#endif
