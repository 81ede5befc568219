/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of net/stack share.  Only they include it.
 */
#ifndef ESSD_NET_STACK_INTERNAL_H
#define ESSD_NET_STACK_INTERNAL_H

#include "net/stack/stack.h"

enum { NET_NOT_OURS = -1 };

/* A received frame with what is parsed so far, and the buffer for its answer.
 */
struct net_rx {
    struct eth eth;
    const uint8_t *l3;
    size_t l3_len; /* once IP is parsed: the packet without padding */
    const uint8_t *l4;
    size_t l4_len;
    struct ip_addr src;
    struct ip_addr dst;
    uint8_t *answer;
    uint64_t now_us;
    uint16_t vlan;
    uint8_t port;
    uint8_t tos;        /* type of service (IPv4) or traffic class */
    uint8_t hop_limit;  /* hop limit, or time to live (IPv4) */
    int local;          /* index of dst; NET_NOT_OURS: a group */
    uint16_t pointer;   /* IPv6: offset of the offending field */
    bool is_fragmented; /* has a fragment header, or was reassembled */
    struct net_reassembly *reassembly; /* holds l3 if not NULL */
};

/* An IP packet to build: everything but its payload. */
struct net_ip_out {
    struct ip_addr src;
    struct ip_addr dst;
    const struct mac_addr *mac;
    size_t payload_len; /* includes the IPv6 fragment header, if any */
    bool is_fragment;   /* the next three fields are used */
    uint32_t fragment_id;
    uint16_t fragment_offset_bytes;
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

/** The MTU of a port's link; for IPv6 see RFC 4861 section 6.3.4. */
static inline uint16_t net_link_mtu(const struct net_stack *stack, uint8_t port,
                                    bool v4)
{
    uint16_t told =
        v4 ? stack->mtu4_bytes[port] : stack->routers[port].mtu_bytes;

    return told == 0 ? stack->config.ports[port].mtu_bytes : told;
}

/** Whether `mac` is one station's, and not the port's own. */
static inline bool net_mac_is_station(const struct net_stack *stack,
                                      uint8_t port, const struct mac_addr *mac)
{
    return !mac_addr_is_multicast(mac) && !mac_addr_is_zero(mac) &&
           !mac_addr_equal(mac, &stack->config.ports[port].mac);
}

/* tx.c: building and sending frames */

/** @return a transmit buffer; NULL when none is free, which is counted */
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

/** Make *due_us earlier if the new deadline is. */
static inline void net_due(uint64_t *due_us, uint64_t deadline_us)
{
    *due_us = MIN(*due_us, deadline_us);
}

/* address.c: our own addresses */

/**
 * A random delay, so that drives which were switched on together do not all
 * send at once.
 *
 * @return 0..limit - 1
 */
uint64_t net_random_below(struct net_stack *stack, uint64_t limit);

void net_address_init(struct net_stack *stack);
void net_address_link(struct net_stack *stack, uint8_t port, bool is_up,
                      uint64_t now_us);
uint64_t net_address_timer(struct net_stack *stack, uint64_t now_us);
/** Another host claims own address `local`; `frame` is for our defence. */
void net_address_conflict(struct net_stack *stack, uint8_t local,
                          const struct mac_addr *mac, uint8_t *frame,
                          uint64_t now_us);
/** The index of own address `ip` on this port and VLAN if usable, or -1. */
int net_address_usable(const struct net_stack *stack, uint8_t port,
                       uint16_t vlan, const struct ip_addr *ip);
/** An own address of this port and family whose prefix covers `ip`, or -1. */
int net_address_on_link(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip);

/* neigh.c */

struct neigh_heard {
    struct mac_addr mac;
    bool has_mac;
    bool is_solicited; /* an answer to our request */
    bool is_override;  /* replaces the MAC that we have */
    bool may_create;   /* may make a new entry */
};

void net_neigh_init(struct net_stack *stack);
void net_neigh_link(struct net_stack *stack, uint8_t port, uint64_t now_us);
uint64_t net_neigh_timer(struct net_stack *stack, uint64_t now_us);
/** ARP or neighbour discovery received information about `ip`. */
void net_neigh_hear(struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip, const struct neigh_heard *heard,
                    uint64_t now_us);

/* arp.c, nd.c: the two protocols */

void net_arp_input(struct net_stack *stack, struct net_rx *rx);
size_t net_arp_announce(const struct net_stack *stack, uint8_t local,
                        uint8_t *frame);
/** An ARP probe for own address `local`: RFC 5227. */
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

/** Report from due_us on that we listen to the solicited-node group of own
 * address `local`. */
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
/** The gateway for addresses that are not on the link; all zero if none. */
const struct ip_addr *net_gateway(const struct net_stack *stack, uint8_t port,
                                  uint16_t vlan, bool v4, uint64_t now_us);
/** Router `ip` does not answer: prefer others from now on. */
void net_router_failed(struct net_stack *stack, uint8_t port,
                       const struct ip_addr *ip);

/* limit.c */

void net_limit_init(struct net_stack *stack);
/** Whether the port may send `count` more frames of this kind now. */
bool net_limit_take(struct net_stack *stack, uint8_t port, enum net_limit limit,
                    uint32_t count, uint64_t now_us);

/** Whether a service has joined the group. */
bool net_group_is_joined(const struct net_stack *stack,
                         const struct ip_addr *group);
/** The MAC address of an IP group: RFC 1112 section 6.4, RFC 2464 section 7. */
struct mac_addr net_group_mac(const struct ip_addr *group);

/* fragment.c */

struct net_fragment {
    uint32_t id;
    uint16_t offset_bytes; /* a multiple of 8 */
    bool more_fragments;
    uint8_t protocol;
    const uint8_t *payload;
};

/**
 * Take one fragment.
 *
 * @param len  of its payload; the caller has checked that it is not 0, that it
 *             is a multiple of 8 unless the fragment is the last, and that the
 *             packet stays within NET_PAYLOAD_MAX
 * @return true when the packet is complete: `rx` is that packet then, and the
 *         caller calls net_fragment_done() after processing it
 */
bool net_fragment_input(struct net_stack *stack, struct net_rx *rx,
                        const struct net_fragment *f, size_t len);
void net_fragment_done(struct net_stack *stack, struct net_rx *rx);
/**
 * Answer the ICMP message `rx` with a copy of it, `len` bytes, in fragments.
 *
 * @return the copy, which the caller may change before it returns; NULL when
 *         no reassembly entry is free
 */
uint8_t *net_fragment_answer(struct net_stack *stack, struct net_rx *rx,
                             uint8_t local, size_t len);
uint64_t net_fragment_timer(struct net_stack *stack, uint64_t now_us);

/* ip.c, ip6.c, icmp.c, udp.c */

/** The path MTU from a port to `ip`. */
uint16_t net_path_mtu(const struct net_stack *stack, uint8_t port,
                      uint16_t vlan, const struct ip_addr *ip, uint64_t now_us);
/** Set rx->local for the packet's destination. @return false when not ours */
bool net_ip_is_for_us(const struct net_stack *stack, struct net_rx *rx);
/** Whether `ip` is the IPv4 broadcast address of a subnet of ours. */
bool net_ip_is_subnet_broadcast(const struct net_stack *stack, uint8_t port,
                                uint16_t vlan, const struct ip_addr *ip);
/** Whether the packet's source is an own address. */
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
    /* The following are IPv6 only; rx->pointer is the offset of the error. */
    NET_HEADER_PROBLEM,
    NET_OPTION_PROBLEM, /* sent even if the packet went to a group */
    NET_OPTION_PROBLEM_UNICAST,
    NET_ICMP_ERROR_KINDS,
};
/** Send an ICMP error if the specifications and the rate limit allow it. */
void net_icmp_error(struct net_stack *stack, struct net_rx *rx,
                    enum net_icmp_error error);

#endif
