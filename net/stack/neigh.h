/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbour table: it maps an IP address to a MAC address and a port.
 *
 * One table serves IPv4 (ARP) and IPv6 (neighbour discovery).  An index names
 * the same neighbour for as long as the entry exists, and the RNIC's neighbour
 * table has the same indices.  A look-up costs one hash; ageing and eviction
 * take the head of a list.
 *
 * The table exports an entry to the RNIC (net_stack_config.neigh_update) after
 * a caller has asked for it with net_neigh_resolve(), _learn() or _pin().
 * Entries that were only learnt from traffic are not exported.
 *
 * Spec: RFC 826; RFC 4861 section 7.3 (states; there is no DELAY: a stale entry
 * that is used is probed at once).
 *
 * Left out: routes other than one gateway for each port and address family.
 */
#ifndef ESSD_NET_STACK_NEIGH_H
#define ESSD_NET_STACK_NEIGH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/stack/limits.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

struct net_stack;

enum { NEIGH_NONE = 0xffff };        /* no index */
enum { NET_VLAN_UNTAGGED = 0xffff }; /* value of a VLAN field: no VLAN */

enum neigh_state {
    NEIGH_FREE,       /* Unused; waits for an address. */
    NEIGH_INCOMPLETE, /* Has no MAC yet; solicits and waits for an answer. */
    NEIGH_REACHABLE,  /* Has answered recently; waits until that is old. */
    NEIGH_STALE,      /* Its MAC is old or unconfirmed; waits to be used. */
    NEIGH_PROBE,      /* Is in use and its MAC is old; solicits and waits for an
                       * answer. */
    NEIGH_STATES,
};

enum {
    NEIGH_RETRANS_US = 1000000,    /* RFC 4861 RetransTimer */
    NEIGH_REACHABLE_US = 30000000, /* RFC 4861 ReachableTime, not randomised */
    NEIGH_PATH_MTU_US = 600000000, /* RFC 8201: then try longer packets again */
    NEIGH_GC_US = 600000000,       /* an unused stale entry is removed */
    NEIGH_MULTICAST_TRIES = 3, /* in INCOMPLETE, and in PROBE after unicast */
    NEIGH_UNICAST_TRIES = 3,
};

/* The part of an entry that the RNIC needs. */
struct neigh_info {
    struct ip_addr ip;
    struct mac_addr mac; /* of the next hop */
    uint16_t vlan;       /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;
};

enum neigh_result {
    NEIGH_READY,    /* *index may be used now */
    NEIGH_PENDING,  /* net_stack_config.neigh_resolved() will follow */
    NEIGH_NO_ROUTE, /* not the address of a host, or no route to it */
    NEIGH_FULL,     /* every entry is pinned (counted); try again later */
};

struct neigh_link {
    uint16_t prev, next;
};

struct neigh_list {
    uint16_t head, tail;
};

enum { NEIGH_BY_TIMER, NEIGH_BY_USE, NEIGH_BY_GATEWAY, NEIGH_LINKS };

/* Opaque, as is the table: use net_neigh_info() and net_neigh_state(). */
struct neigh_entry {
    struct ip_addr ip;
    struct mac_addr mac;
    uint64_t deadline_us;
    struct neigh_link link[NEIGH_LINKS];
    struct neigh_list behind; /* entries whose next hop this is */
    uint64_t path_mtu_until_us;
    uint16_t path_mtu_bytes; /* 0 if no router has reported a path MTU */
    uint16_t via;            /* index of the next hop, or NEIGH_NONE */
    uint16_t hash_next;
    uint16_t vlan;
    uint16_t pins;
    uint8_t port;
    uint8_t local; /* own address that is the source of solicitations */
    uint8_t state; /* enum neigh_state; neigh_enter() is the only writer */
    uint8_t tries;
    uint8_t timer; /* enum neigh_timer: the timer list that it is in */
    bool is_exported;
    bool is_remote; /* not on the link, so it cannot be solicited */
};

enum neigh_timer {
    NEIGH_TIMER_RETRANS,
    NEIGH_TIMER_REACHABLE,
    NEIGH_TIMER_GC,
    NEIGH_TIMERS, /* no timer */
};

struct neigh_table {
    struct neigh_entry entries[NET_NEIGHBOURS];
    uint16_t buckets[NET_NEIGH_BUCKETS];
    struct neigh_list timers[NEIGH_TIMERS]; /* each in order of deadline */
    struct neigh_list unpinned;             /* least recently used first */
    struct neigh_list free;
    uint16_t used;
    uint16_t pinned;
};

/**
 * Resolve the neighbour `ip` for packets from one of our addresses: look it up,
 * or solicit it.  READY and PENDING pin the entry for the caller, who releases
 * it with net_neigh_unpin().
 *
 * After PENDING, net_stack_input() or net_stack_timer() calls
 * net_stack_config.neigh_resolved().  If that reports failure, the entry and
 * all its pins have been removed.
 *
 * @param local  index of an own address of the same family
 */
MUST_USE enum neigh_result net_neigh_resolve(struct net_stack *stack,
                                             uint8_t local,
                                             const struct ip_addr *ip,
                                             uint64_t now_us, uint16_t *index);

/**
 * Learn from a packet that `ip` can be reached at `mac`, so that it can be
 * answered.  The entry is not pinned, but it is the last to be evicted: pin it
 * before the next call if it has to stay.
 *
 * A pinned neighbour on the link that has answered keeps its MAC until a
 * solicitation, which is sent at once, is answered with another MAC.  A pinned
 * neighbour beyond the link keeps its next hop while its gateway answers, or
 * while net_stack_config.neigh_is_reached() is true.
 *
 * @param local  index of the own address that the packet was sent to
 * @return READY; NO_ROUTE when `mac` or `ip` cannot be a host's, or `local` is
 *         not usable; FULL.  *index is NEIGH_NONE unless READY
 */
MUST_USE enum neigh_result net_neigh_learn(struct net_stack *stack,
                                           uint8_t local,
                                           const struct ip_addr *ip,
                                           const struct mac_addr *mac,
                                           uint64_t now_us, uint16_t *index);

/** Pin an entry once more, for a connection.  It must not be INCOMPLETE. */
void net_neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** Unpin an entry once.  It stays until it is old or evicted. */
void net_neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** The path MTU: the longest packet that reaches the neighbour unfragmented. */
uint16_t net_neigh_path_mtu(const struct net_stack *stack, uint16_t index,
                            uint64_t now_us);

/** Note a path MTU that a router reported.  @return false if nothing changed */
bool net_neigh_note_mtu(struct net_stack *stack, uint16_t index,
                        uint32_t mtu_bytes, uint64_t now_us);

/** The layer above has received data from the neighbour, which counts as an
 * answer to a solicitation. */
void net_neigh_confirm(struct net_stack *stack, uint16_t index,
                       uint64_t now_us);

/** @return false when `index` is free or INCOMPLETE */
MUST_USE bool net_neigh_info(const struct net_stack *stack, uint16_t index,
                             struct neigh_info *info);

enum neigh_state net_neigh_state(const struct net_stack *stack, uint16_t index);

/** Look up an entry.  @return NEIGH_NONE when it is not in the table */
uint16_t net_neigh_find(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip);

#endif
