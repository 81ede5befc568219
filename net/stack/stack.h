/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the drive does about control traffic: everything on its two ports that
 * the RNIC does not take.
 *
 *  + ARP: answers, learns, announces, defends its addresses (RFC 826, 5227)
 *  + neighbour discovery: the same for IPv6 (RFC 4861), with optimistic
 *    duplicate address detection (RFC 4862, 4429); a link-local address a port
 *  + ICMP and ICMPv6 echo of up to 64 KiB, in fragments if need be; the errors
 *    that the specifications ask for; a path's MTU is noted, if somebody says
 *    that our packets are too long for it
 *  + IPv6 routers: gateway, MTU, addresses of their prefixes (RFC 4862);
 *    listener reports for the groups that we are asked in (RFC 3810)
 *  + IPv6 extension headers; IPv4 options are skipped, source routes refused
 *  + limits on all that a peer can make us send
 *  + UDP ports and EtherTypes that somebody is bound to
 *
 * An address belongs to one port (and VLAN) and is answered for on that port
 * alone.  It may come and go while the drive runs.  Unless it is to be probed
 * first (net_address_config), an IPv4 address is used at once and announced,
 * an IPv6 address is optimistic: RFC 5227's probes take up to 7 seconds, and a
 * drive has to be there in one.
 *
 * All state is in struct net_stack; no heap, no clock, no randomness of its
 * own.  One loop calls everything; callbacks run inside of input() and timer()
 * and must not call back into input(), timer() or link(), nor into
 * net_neigh_resolve() or net_neigh_learn().
 *
 * Left out: redirects; routes other than the gateway; what the files say.
 */
#ifndef ESSD_NET_STACK_STACK_H
#define ESSD_NET_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/stack/ether.h"
#include "net/stack/fragment.h"
#include "net/stack/limits.h"
#include "net/stack/neigh.h"
#include "net/stack/router.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

struct net_port_config {
    struct mac_addr mac;
    uint16_t mtu_bytes;      /* 1280..9000: the longest IP packet */
    struct ip_addr gateway4; /* all zero: none */
    struct ip_addr gateway6; /* all zero: what routers advertise; link-local */
    uint8_t priority; /* 802.1p of what we begin, 0..7; if not 0, untagged */
                      /* frames carry a priority tag */
    bool has_slaac;   /* take IPv6 addresses of routers' prefixes */
};

struct net_address_config {
    struct ip_addr ip;   /* all zero: this index is not used */
    uint16_t vlan;       /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;        /* 0..NET_PORTS - 1 */
    uint8_t prefix_bits; /* IPv4 0..32, IPv6 0..128: what is on the link */
    bool is_probed;      /* not used before others had time to object */
    bool is_yielding;    /* IPv4: given up when somebody claims it a second */
                         /* time in ADDRESS_DEFEND_US: RFC 3927 section 2.5 */
    bool is_leased;      /* dhcp.h's or ipv4ll.h's, for them to remove */
};

/* A datagram for a bound port; pointers are good during the call only. */
struct net_udp_rx {
    struct ip_addr src;
    struct ip_addr dst; /* an address of ours, or a group */
    const struct mac_addr *src_mac;
    const uint8_t *payload;
    size_t len_bytes;
    uint64_t now_us;
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t vlan;
    uint8_t port;
};

typedef void net_udp_handler(void *ctx, const struct net_udp_rx *udp);

struct net_stack_config {
    struct net_port_config ports[NET_PORTS];
    /* Index i is the RNIC's local address i. */
    struct net_address_config addresses[NET_CONFIGURED];
    uint64_t random_seed; /* any value that differs from drive to drive */

    void *ctx; /* of all callbacks */
    /*
     * The next transmit buffer of a port: NET_FRAME_MAX bytes, dirty.  NULL:
     * no room now.  Without tx_commit() nothing is taken, and the next call
     * may give the same buffer.
     */
    uint8_t *(*tx_begin)(void *ctx, uint8_t port);
    /*
     * Send the frame built there: `len` bytes without FCS, unpadded.  The
     * buffer is the port's from here on.  Kick the hardware when input() or
     * timer() has returned: one doorbell a burst.
     */
    void (*tx_commit)(void *ctx, uint8_t port, size_t len, uint8_t priority);

    /* An exported entry has got an address, or another one.  May be NULL. */
    void (*neigh_update)(void *ctx, uint16_t index,
                         const struct neigh_info *info);
    /* An exported entry is gone; nobody had it pinned.  May be NULL. */
    void (*neigh_remove)(void *ctx, uint16_t index);
    /* A PENDING net_neigh_resolve() has ended.  May be NULL. */
    void (*neigh_resolved)(void *ctx, uint16_t index, bool is_ready);
    /*
     * Somebody else uses own address `local`; told at most once in
     * ADDRESS_DEFEND_US.  May be NULL.
     */
    void (*address_conflict)(void *ctx, uint8_t local,
                             const struct mac_addr *mac);
    /*
     * Own address `local` was added, became usable for the first time, was
     * found to be somebody else's, or is being removed: look at
     * net_stack_is_assigned() and net_stack_multicast().  Not told about link
     * changes, nor from net_stack_init().  May be NULL.
     */
    void (*address_changed)(void *ctx, uint8_t local);
};

/* By port.  The DROP ones each name why a frame went no further. */
enum net_counter {
    NET_RX_FRAMES,
    NET_TX_FRAMES,
    NET_TX_NO_BUFFER, /* times that we had to wait for one */
    NET_ARP_REPLIES,
    NET_ND_ADVERTS,
    NET_ECHO_REPLIES,
    NET_ICMP_ERRORS_SENT,
    NET_ICMP_ERRORS_LIMITED,
    NET_ICMP_ERRORS_RECEIVED,
    NET_PATH_MTU_NOTED, /* of them: led to smaller packets */
    NET_ROUTER_ADVERTS, /* good ones */
    NET_FRAGMENTS_RECEIVED,
    NET_FRAGMENTS_SENT,
    NET_REASSEMBLED,
    NET_UDP_DELIVERED,
    NET_ETHER_DELIVERED,
    NET_ADDRESS_CONFLICTS,
    NET_ADDRESS_REFUSED, /* the drive has as many as it can */
    NET_NEIGH_CREATED,
    NET_NEIGH_EVICTED,
    NET_NEIGH_REFUSED, /* table full of pinned entries */
    NET_NEIGH_FAILED,  /* asked often enough, no answer */
    NET_DROP_SHORT,
    NET_DROP_SOURCE_MAC, /* a group, zero or our own */
    NET_DROP_ETHERTYPE,
    NET_DROP_ARP_MALFORMED,
    NET_DROP_ARP_NOT_OURS,
    NET_DROP_IPV4_HEADER,
    NET_DROP_IPV4_OPTIONS,
    NET_DROP_IPV6_HEADER,
    NET_DROP_IPV6_EXTENSION, /* one we do not do, or in a wrong place */
    NET_DROP_IPV6_OPTION,    /* unknown, and not to be skipped */
    NET_DROP_FRAGMENT_MALFORMED,
    NET_DROP_FRAGMENT_OVERLAP,
    NET_DROP_FRAGMENT_EVICTED, /* packets: too many at a time */
    NET_DROP_FRAGMENT_TIMEOUT, /* packets: never completed */
    NET_DROP_SOURCE_IP,        /* a group, nobody, or our own */
    NET_DROP_NOT_OURS, /* sent to an address that this port does not have */
    NET_DROP_PROTOCOL,
    NET_DROP_ICMP_MALFORMED,
    NET_DROP_ICMP_TYPE,
    NET_DROP_REDIRECT, /* we never follow one */
    NET_DROP_ECHO_TO_GROUP,
    NET_DROP_ND_MALFORMED,
    NET_DROP_ND_NOT_OURS,
    NET_DROP_UDP_MALFORMED,
    NET_DROP_UDP_CLOSED,
    NET_DROP_LIMITED, /* answered too many of its kind lately */
    NET_COUNTERS,
};

enum address_state {
    ADDRESS_UNUSED,     /* not configured */
    ADDRESS_DOWN,       /* waits for its port's link */
    ADDRESS_TENTATIVE,  /* probed, not usable: waits for objections */
    ADDRESS_OPTIMISTIC, /* IPv6, usable: waits if somebody else has it */
    ADDRESS_ANNOUNCING, /* usable: waits to announce itself (again) */
    ADDRESS_READY,      /* usable: waits for nothing */
    ADDRESS_DUPLICATE,  /* not usable.  IPv4: waits to ask again; IPv6: for */
                        /* the link to go down */
    ADDRESS_STATES,
};

enum {
    ADDRESS_DAD_DELAY_US = 1000000, /* at most, before asking: RFC 4862 5.4.2 */
    ADDRESS_DAD_US = 1000000,       /* then wait that long for an objection */
    ADDRESS_PROBE_WAIT_US = 1000000, /* at most, before probing: RFC 5227 */
    ADDRESS_PROBE_US = 1000000, /* to twice that between probes: RFC 5227 */
    ADDRESS_PROBES = 3,
    ADDRESS_SETTLE_US = 2000000,   /* after the last: RFC 5227 ANNOUNCE_WAIT */
    ADDRESS_RETRY_US = 60000000,   /* after a conflict: RFC 5227 */
    ADDRESS_ANNOUNCE_US = 2000000, /* between announcements: RFC 5227 */
    ADDRESS_ANNOUNCEMENTS = 2,
    ADDRESS_DEFEND_US = 10000000, /* at most one defence in: RFC 5227 */
};

/* Opaque from here on. */
struct net_address {
    struct net_address_config config;
    uint64_t deadline_us; /* OPTIMISTIC, ANNOUNCING */
    uint64_t defended_us;
    uint8_t state; /* enum address_state; address_enter() is the only writer */
    uint8_t tries;
    bool has_defended;
    uint64_t valid_until_us; /* is_auto */
    uint64_t mld_due_us;     /* of the next listener report */
    uint8_t mld_left;        /* reports */
    bool mld_is_change;      /* they tell news, and do not answer */
    bool is_auto;            /* of a router's prefix */
    bool is_assigned;        /* ours: was usable, and nobody else has it */
};

/* What a peer can make us send, each within limits. */
enum net_limit {
    NET_LIMIT_ICMP_ERROR,
    NET_LIMIT_ECHO,
    NET_LIMIT_ARP,
    NET_LIMIT_ND,
    NET_LIMITS,
};

struct net_bucket {
    uint64_t refilled_us;
    uint32_t tokens;
};

struct net_udp_binding {
    net_udp_handler *handler; /* NULL: free */
    void *ctx;
    uint16_t port;
};

struct net_stack {
    struct net_stack_config config;
    struct net_address addresses[NET_ADDRESSES];
    struct net_udp_binding udp[NET_UDP_BINDINGS];
    struct net_ether_binding ether[NET_ETHER_BINDINGS];
    struct neigh_table neigh;
    uint64_t address_due_us; /* no address has anything to do before */
    uint64_t counters[NET_PORTS][NET_COUNTERS];
    uint64_t fragment_due_us;
    uint64_t router_due_us;
    struct net_port_routers routers[NET_PORTS];
    struct net_reassembly reassemblies[NET_REASSEMBLIES];
    struct net_bucket limits[NET_PORTS][NET_LIMITS];
    uint64_t random;
    uint16_t mtu4_bytes[NET_PORTS]; /* of IPv4 on the link; 0: not told */
    bool link_up[NET_PORTS];
};

/** Set the stack up; links are down.  Copies `config`. */
void net_stack_init(struct net_stack *stack,
                    const struct net_stack_config *config);

/**
 * One received frame, to the end: it is read during the call only.
 *
 * A transmit buffer is taken first, so that an answer never gets lost half
 * way: at most one frame is sent, on the same port.
 *
 * @param frame  behind the MAC's filters, without FCS, padding and all
 * @return false when there was no transmit buffer: nothing has happened, keep
 *         the frame and try again when there is room
 */
MUST_USE bool net_stack_input(struct net_stack *stack, uint8_t port,
                              const uint8_t *frame, size_t len,
                              uint64_t now_us);

/**
 * Do what is due.  Cheap when nothing is: call it before every sleep.
 *
 * @return when to call it again, UINT64_MAX for never; it may be earlier after
 *         any other call
 */
uint64_t net_stack_timer(struct net_stack *stack, uint64_t now_us);

/** A port's link came up (announce our addresses) or went down. */
void net_stack_link(struct net_stack *stack, uint8_t port, bool is_up,
                    uint64_t now_us);

/**
 * Announce the addresses of a port anew, as when its link came up: its frames
 * leave by another way from now on, and switches have to learn it.
 */
void net_stack_announce(struct net_stack *stack, uint8_t port, uint64_t now_us);

/**
 * One more address of our own, until it is removed.
 *
 * @param config  as in net_stack_config; a configured one may come back
 * @return its index, 0..NET_CONFIGURED - 1, or -1: the drive has as many as it
 *         can (counted), or has it already on that port and VLAN
 */
MUST_USE int net_stack_address_add(struct net_stack *stack,
                                   const struct net_address_config *config,
                                   uint64_t now_us);

/** Forget own address `local` (0..NET_CONFIGURED - 1) at once. */
void net_stack_address_remove(struct net_stack *stack, uint8_t local);

/** How much of own address `local` is its link's, from now on. */
void net_stack_address_set_prefix(struct net_stack *stack, uint8_t local,
                                  uint8_t prefix_bits);

/**
 * What is known of a port's IPv4 link besides addresses, from now on.
 *
 * @param gateway    all zero: none
 * @param mtu_bytes  1280 to the port's; 0: the port's
 */
void net_stack_set_link4(struct net_stack *stack, uint8_t port,
                         const struct ip_addr *gateway, uint16_t mtu_bytes);

/** @param gateway  all zero: what routers advertise */
void net_stack_set_gateway6(struct net_stack *stack, uint8_t port,
                            const struct ip_addr *gateway);

/** @return false when it is taken or all bindings are */
MUST_USE bool net_stack_udp_bind(struct net_stack *stack, uint16_t udp_port,
                                 net_udp_handler *handler, void *ctx);

/** The multicast MACs a port has to receive. @return how many of `macs` */
size_t net_stack_multicast(const struct net_stack *stack, uint8_t port,
                           struct mac_addr macs[NET_MULTICAST]);

/** Index of the own address `ip` on that port and VLAN, or -1. */
int net_stack_local(const struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip);

static inline bool net_stack_is_usable(const struct net_stack *stack,
                                       uint8_t local)
{
    uint8_t state = stack->addresses[local].state;

    return state == ADDRESS_OPTIMISTIC || state == ADDRESS_ANNOUNCING ||
           state == ADDRESS_READY;
}

/** Whether somebody else has it, and we do not use it. */
static inline bool net_stack_is_duplicate(const struct net_stack *stack,
                                          uint8_t local)
{
    return stack->addresses[local].state == ADDRESS_DUPLICATE;
}

/** Whether peers may be told of it: our own, though the link may be down. */
static inline bool net_stack_is_assigned(const struct net_stack *stack,
                                         uint8_t local)
{
    return stack->addresses[local].is_assigned;
}

/** What own address `local` is; all zero: there is none. */
static inline const struct net_address_config *net_stack_address(
    const struct net_stack *stack, uint8_t local)
{
    return &stack->addresses[local].config;
}

static inline uint64_t net_stack_counter(const struct net_stack *stack,
                                         uint8_t port, enum net_counter counter)
{
    return stack->counters[port][counter];
}

#endif
