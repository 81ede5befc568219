/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-traffic stack: it handles every frame of the two ports that the
 * RNIC does not take.
 *
 *  + ARP: answers requests, learns neighbours, announces and defends the
 *    drive's addresses (RFC 826, RFC 5227).
 *  + Neighbour discovery does the same for IPv6 (RFC 4861), with optimistic
 *    duplicate address detection (RFC 4862, RFC 4429).  Each port has a
 *    link-local address.
 *  + ICMP and ICMPv6: echo of up to 64 KiB, in fragments if needed, and the
 *    errors that the specifications require.  "Packet too big" messages set a
 *    path's MTU.
 *  + IPv6 routers: gateway, MTU, and addresses from their prefixes (RFC 4862);
 *    listener reports for our solicited-node groups (RFC 3810).
 *  + IPv6 extension headers.  IPv4 options are skipped; source routes are
 *    refused.
 *  + Rate limits on everything that a peer can make us send.
 *  + UDP ports and EtherTypes to which a handler is bound.
 *
 * An address belongs to one port and VLAN, and only that port answers for it.
 * Addresses may be added and removed while the drive runs.  An address that
 * need not be probed first (net_address_config.is_probed) is used at once: IPv4
 * is announced, IPv6 is optimistic.  RFC 5227's probes would take up to 7
 * seconds, and a drive has to be reachable within one.
 *
 * All state is in struct net_stack; there is no heap, and clock and random seed
 * are handed in.  One loop calls everything.  Callbacks run inside of
 * net_stack_input() and net_stack_timer(), and must not call these,
 * net_stack_link(), net_neigh_resolve() or net_neigh_learn().
 *
 * Left out: redirects; routes other than the gateway; what each file lists.
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
    uint16_t mtu_bytes;      /* longest IP packet, 1280..9000 */
    struct ip_addr gateway4; /* all zero for none */
    struct ip_addr gateway6; /* link-local; all zero for advertised routers */
    uint8_t priority; /* 802.1p priority of our own traffic, 0..7; unless it is
                       * 0, untagged frames get a priority tag */
    bool has_slaac;   /* form IPv6 addresses from routers' prefixes */
};

struct net_address_config {
    struct ip_addr ip;   /* all zero if this index is unused */
    uint16_t vlan;       /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;        /* 0..NET_PORTS - 1 */
    uint8_t prefix_bits; /* on-link prefix: IPv4 0..32, IPv6 0..128 */
    bool is_probed;      /* probe for duplicates before using the address */
    bool is_yielding;    /* IPv4: give it up when another host claims it twice
                          * in ADDRESS_DEFEND_US: RFC 3927 section 2.5 */
    bool is_leased;      /* owned by dhcp.h or ipv4ll.h, which removes it */
};

/* A datagram for a bound port; pointers are valid during the call only. */
struct net_udp_rx {
    struct ip_addr src;
    struct ip_addr dst; /* an own address or a group */
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
    uint64_t random_seed; /* has to differ from drive to drive */

    void *ctx; /* first argument of all callbacks */
    /*
     * Return the port's next transmit buffer of NET_FRAME_MAX bytes, which may
     * hold old data, or NULL when there is none now.  Without tx_commit() the
     * buffer stays free, and the next call may return it again.
     */
    uint8_t *(*tx_begin)(void *ctx, uint8_t port);
    /*
     * Send the frame in that buffer: `len` bytes without FCS and padding.  The
     * port owns the buffer from then on.  The caller of net_stack_input() and
     * net_stack_timer() rings the doorbell afterwards, once for all frames.
     */
    void (*tx_commit)(void *ctx, uint8_t port, size_t len, uint8_t priority);

    /* An exported entry has a new MAC, port or VLAN.  May be NULL. */
    void (*neigh_update)(void *ctx, uint16_t index,
                         const struct neigh_info *info);
    /* An exported entry, which was not pinned, was removed.  May be NULL. */
    void (*neigh_remove)(void *ctx, uint16_t index);
    /* A PENDING net_neigh_resolve() has ended.  May be NULL. */
    void (*neigh_resolved)(void *ctx, uint16_t index, bool is_ready);
    /*
     * Return whether the layer above has recently received an answer from this
     * neighbour.  The stack calls this only when a packet claims that a pinned
     * neighbour beyond the link has another next hop.  If it is NULL, the stack
     * assumes that there was no answer.
     */
    bool (*neigh_is_reached)(void *ctx, uint16_t index);
    /*
     * Another host uses own address `local`.  Called at most once in
     * ADDRESS_DEFEND_US for each address.  May be NULL.
     */
    void (*address_conflict)(void *ctx, uint8_t local,
                             const struct mac_addr *mac);
    /*
     * Own address `local` was added, became usable for the first time, was
     * found to be a duplicate, or is being removed.  The callee reads
     * net_stack_is_assigned() and net_stack_multicast().  Not called for link
     * changes, nor from net_stack_init().  May be NULL.
     */
    void (*address_changed)(void *ctx, uint8_t local);
};

/* Counters of each port.  Each DROP counter names why a frame was dropped. */
enum net_counter {
    NET_RX_FRAMES,
    NET_TX_FRAMES,
    NET_TX_NO_BUFFER, /* times that no transmit buffer was free */
    NET_ARP_REPLIES,
    NET_ND_ADVERTS,
    NET_ECHO_REPLIES,
    NET_ICMP_ERRORS_SENT,
    NET_ICMP_ERRORS_LIMITED,
    NET_ICMP_ERRORS_RECEIVED,
    NET_PATH_MTU_NOTED, /* "packet too big" messages that lowered a path MTU */
    NET_ROUTER_ADVERTS, /* valid ones */
    NET_FRAGMENTS_RECEIVED,
    NET_FRAGMENTS_SENT,
    NET_REASSEMBLED,
    NET_UDP_DELIVERED,
    NET_ETHER_DELIVERED,
    NET_ADDRESS_CONFLICTS,
    NET_ADDRESS_REFUSED, /* no free entry in the table of own addresses */
    NET_NEIGH_CREATED,
    NET_NEIGH_EVICTED,
    NET_NEIGH_REFUSED, /* table full of pinned entries */
    NET_NEIGH_FAILED,  /* resolution ended without an answer */
    NET_DROP_SHORT,
    NET_DROP_SOURCE_MAC, /* source MAC is a group, zero or our own */
    NET_DROP_ETHERTYPE,
    NET_DROP_ARP_MALFORMED,
    NET_DROP_ARP_NOT_OURS,
    NET_DROP_IPV4_HEADER,
    NET_DROP_IPV4_OPTIONS,
    NET_DROP_IPV6_HEADER,
    NET_DROP_IPV6_EXTENSION, /* unsupported, malformed or misplaced */
    NET_DROP_IPV6_OPTION,    /* unknown, and its type forbids skipping it */
    NET_DROP_FRAGMENT_MALFORMED,
    NET_DROP_FRAGMENT_OVERLAP,
    NET_DROP_FRAGMENT_EVICTED, /* packets, when all entries are in use */
    NET_DROP_FRAGMENT_TIMEOUT, /* packets that stayed incomplete */
    NET_DROP_SOURCE_IP,        /* source is a group, unspecified or our own */
    NET_DROP_NOT_OURS,         /* destination is no address of this port */
    NET_DROP_PROTOCOL,
    NET_DROP_ICMP_MALFORMED,
    NET_DROP_ICMP_TYPE,
    NET_DROP_REDIRECT, /* redirects are never followed */
    NET_DROP_ECHO_TO_GROUP,
    NET_DROP_ND_MALFORMED,
    NET_DROP_ND_NOT_OURS,
    NET_DROP_UDP_MALFORMED,
    NET_DROP_UDP_CLOSED,
    NET_DROP_LIMITED, /* the rate limit for its answer was reached */
    NET_COUNTERS,
};

enum address_state {
    ADDRESS_UNUSED,     /* Not configured; waits to be added. */
    ADDRESS_DOWN,       /* Not usable; waits for its port's link. */
    ADDRESS_TENTATIVE,  /* Not usable; is probed until nobody objects. */
    ADDRESS_OPTIMISTIC, /* IPv6, usable; is probed until nobody objects. */
    ADDRESS_ANNOUNCING, /* Usable; sends its announcements. */
    ADDRESS_READY,      /* Usable; stays so until a conflict or link change. */
    ADDRESS_DUPLICATE,  /* Not usable, since another host has it.  IPv4 waits
                         * to probe again, IPv6 for the link to go down. */
    ADDRESS_STATES,
};

enum {
    /* IPv6, RFC 4862 section 5.4.2: longest wait before the solicitation, and
     * the wait for an objection after it. */
    ADDRESS_DAD_DELAY_US = 1000000,
    ADDRESS_DAD_US = 1000000,
    /* IPv4, RFC 5227 section 1.1. */
    ADDRESS_PROBE_WAIT_US = 1000000, /* longest wait before the first probe */
    ADDRESS_PROBE_US = 1000000,      /* between probes: this to twice this */
    ADDRESS_PROBES = 3,
    ADDRESS_SETTLE_US = 2000000,   /* ANNOUNCE_WAIT: after the last probe */
    ADDRESS_RETRY_US = 60000000,   /* between a conflict and the next probe */
    ADDRESS_ANNOUNCE_US = 2000000, /* between announcements */
    ADDRESS_ANNOUNCEMENTS = 2,
    ADDRESS_DEFEND_US = 10000000, /* between two defences of an address */
};

/* Opaque from here on. */
struct net_address {
    struct net_address_config config;
    uint64_t deadline_us; /* when the state's next action is due */
    uint64_t defended_us;
    uint8_t state; /* enum address_state; address_enter() is the only writer */
    uint8_t tries;
    bool has_defended;
    uint64_t valid_until_us; /* end of its lifetime, if is_auto */
    uint64_t mld_due_us;     /* when the next listener report is due */
    uint8_t mld_left;        /* listener reports still to be sent */
    bool mld_is_change;      /* they report a change, not the present state */
    bool is_auto;            /* formed from a router's prefix */
    bool is_assigned;        /* has been usable, and is no duplicate */
};

/* The kinds of frames that peers can make us send; each has a rate limit. */
enum net_limit {
    NET_LIMIT_ICMP_ERROR,
    NET_LIMIT_ECHO,
    NET_LIMIT_ARP,
    NET_LIMIT_ND,
    NET_LIMIT_MDNS,
    NET_LIMITS,
};

struct net_bucket {
    uint64_t refilled_us;
    uint32_t tokens;
};

struct net_udp_binding {
    net_udp_handler *handler; /* NULL if the binding is free */
    void *ctx;
    uint16_t port;
};

struct net_stack {
    struct net_stack_config config;
    struct net_address addresses[NET_ADDRESSES];
    struct net_udp_binding udp[NET_UDP_BINDINGS];
    struct net_ether_binding ether[NET_ETHER_BINDINGS];
    struct ip_addr groups[NET_GROUPS]; /* all zero if unused */
    struct neigh_table neigh;
    uint64_t address_due_us; /* the earliest deadline of all addresses */
    uint64_t counters[NET_PORTS][NET_COUNTERS];
    uint64_t fragment_due_us;
    uint64_t router_due_us;
    struct net_port_routers routers[NET_PORTS];
    struct net_reassembly reassemblies[NET_REASSEMBLIES];
    struct net_bucket limits[NET_PORTS][NET_LIMITS];
    uint64_t random;
    uint16_t mtu4_bytes[NET_PORTS]; /* IPv4 MTU of the link; 0 if unknown */
    bool link_up[NET_PORTS];
    bool has_tcp; /* served elsewhere: see net_stack_set_tcp() */
};

/** Initialise the stack with both links down.  Copies `config`. */
void net_stack_init(struct net_stack *stack,
                    const struct net_stack_config *config);

/**
 * Process one received frame; it is read during the call only.
 *
 * The stack takes a transmit buffer first, so that there is always room for the
 * answer.  It sends at most one frame, on the same port.
 *
 * @param frame  as the MAC's filters passed it, without FCS; may have padding
 * @return false when there was no transmit buffer: nothing was done, and the
 *         caller passes the same frame again later
 */
MUST_USE bool net_stack_input(struct net_stack *stack, uint8_t port,
                              const uint8_t *frame, size_t len,
                              uint64_t now_us);

/**
 * Do what is due.  It costs little when nothing is due: call it before every
 * sleep.
 *
 * @return when to call it again, UINT64_MAX for never; every other call may
 *         make that time earlier
 */
uint64_t net_stack_timer(struct net_stack *stack, uint64_t now_us);

/**
 * Whether TCP is served outside of this stack.  What of it arrives here all the
 * same, in fragments or with options, is dropped: an error would tell the peer
 * that there is no TCP.
 */
void net_stack_set_tcp(struct net_stack *stack, bool is_served);

/** A port's link came up or went down; addresses follow it. */
void net_stack_link(struct net_stack *stack, uint8_t port, bool is_up,
                    uint64_t now_us);

/**
 * Announce the addresses of a port again, because its frames take another path
 * from now on, which switches have to learn.
 */
void net_stack_announce(struct net_stack *stack, uint8_t port, uint64_t now_us);

/**
 * Add an own address.
 *
 * @param config  as in net_stack_config; a removed address may be added again
 * @return its index, 0..NET_CONFIGURED - 1; -1 when the table is full (counted)
 *         or has this address on that port and VLAN already
 */
MUST_USE int net_stack_address_add(struct net_stack *stack,
                                   const struct net_address_config *config,
                                   uint64_t now_us);

/** Remove own address `local` (0..NET_CONFIGURED - 1) at once. */
void net_stack_address_remove(struct net_stack *stack, uint8_t local);

/** Change the prefix length of own address `local`. */
void net_stack_address_set_prefix(struct net_stack *stack, uint8_t local,
                                  uint8_t prefix_bits);

/**
 * Set gateway and MTU of a port's IPv4 link.
 *
 * @param gateway    all zero for none
 * @param mtu_bytes  1280 to the port's MTU; 0 for the port's MTU
 */
void net_stack_set_link4(struct net_stack *stack, uint8_t port,
                         const struct ip_addr *gateway, uint16_t mtu_bytes);

/**
 * Set the IPv6 gateway of a port.
 *
 * @param gateway  all zero for the routers that advertise themselves
 */
void net_stack_set_gateway6(struct net_stack *stack, uint8_t port,
                            const struct ip_addr *gateway);

/** Set the 802.1p priority of a port: see struct net_port_config. */
void net_stack_set_priority(struct net_stack *stack, uint8_t port,
                            uint8_t priority);

/** @return false when the UDP port is bound already or no binding is free */
MUST_USE bool net_stack_udp_bind(struct net_stack *stack, uint16_t udp_port,
                                 net_udp_handler *handler, void *ctx);

/**
 * Join an IP group with all addresses, on both ports.  IPv6 groups are reported
 * to switches (MLD).  IPv4 groups are not: switches flood 224.0.0.0/24, whose
 * groups are the only ones that may be joined (RFC 4541 section 2.1.2).  The
 * caller updates the ports' filters: net_stack_multicast().
 */
void net_stack_group_join(struct net_stack *stack, const struct ip_addr *group,
                          uint64_t now_us);
void net_stack_group_leave(struct net_stack *stack,
                           const struct ip_addr *group);

/** List the multicast MACs that a port has to receive. @return their number */
size_t net_stack_multicast(const struct net_stack *stack, uint8_t port,
                           struct mac_addr macs[NET_MULTICAST]);

/** The index of own address `ip` on that port and VLAN, or -1. */
int net_stack_local(const struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip);

static inline bool net_stack_is_usable(const struct net_stack *stack,
                                       uint8_t local)
{
    uint8_t state = stack->addresses[local].state;

    return state == ADDRESS_OPTIMISTIC || state == ADDRESS_ANNOUNCING ||
           state == ADDRESS_READY;
}

/** Whether another host has own address `local`, so that it is not used. */
static inline bool net_stack_is_duplicate(const struct net_stack *stack,
                                          uint8_t local)
{
    return stack->addresses[local].state == ADDRESS_DUPLICATE;
}

/** Whether peers may be told own address `local`, even if the link is down. */
static inline bool net_stack_is_assigned(const struct net_stack *stack,
                                         uint8_t local)
{
    return stack->addresses[local].is_assigned;
}

/** The configuration of own address `local`; its ip is all zero when unused. */
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
