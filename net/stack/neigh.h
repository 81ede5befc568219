/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbours: which MAC address, behind which port, an IP address has.
 *
 * One table for IPv4 (ARP) and IPv6 (neighbour discovery), kept by index: an
 * index means the same neighbour for as long as the entry lives, and the RNIC's
 * neighbour table has the same indices.  Looking up is one hash; ageing and
 * eviction take the head of a list.
 *
 * The RNIC is told (net_stack_config.neigh_update) about neighbours that
 * somebody asked for by resolve, learn or pin; those that are only overheard
 * never reach it.
 *
 * Spec: RFC 826; RFC 4861 section 7.3 (states; DELAY is left out: a stale
 * entry that is used is probed at once).
 *
 * Left out: routes other than one gateway a port and address family.
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
enum { NET_VLAN_UNTAGGED = 0xffff }; /* a VLAN that is none */

enum neigh_state {
    NEIGH_FREE,       /* waits for an address to keep */
    NEIGH_INCOMPLETE, /* asked, waits for the first answer; no MAC yet */
    NEIGH_REACHABLE,  /* answered us lately; waits to grow old */
    NEIGH_STALE,      /* its MAC is hearsay or old; waits for somebody to use */
    NEIGH_PROBE,      /* in use and old: asked again, waits for the answer */
    NEIGH_STATES,
};

enum {
    NEIGH_RETRANS_US = 1000000,    /* RFC 4861 RetransTimer */
    NEIGH_REACHABLE_US = 30000000, /* RFC 4861 ReachableTime, not randomised */
    NEIGH_PATH_MTU_US = 600000000, /* RFC 8201: then try longer ones again */
    NEIGH_GC_US = 600000000,       /* a stale entry nobody uses is forgotten */
    NEIGH_MULTICAST_TRIES = 3,     /* INCOMPLETE; and PROBE after unicast */
    NEIGH_UNICAST_TRIES = 3,
};

/* What the RNIC needs to know. */
struct neigh_info {
    struct ip_addr ip;
    struct mac_addr mac; /* of the next hop */
    uint16_t vlan;       /* NET_VLAN_UNTAGGED, or 1..4094 */
    uint8_t port;
};

enum neigh_result {
    NEIGH_READY,    /* *index may be used now */
    NEIGH_PENDING,  /* net_stack_config.neigh_resolved tells */
    NEIGH_NO_ROUTE, /* no host's address, or no way there: not now, not later */
    NEIGH_FULL,     /* every entry is pinned: counted, try again later */
};

struct neigh_link {
    uint16_t prev, next;
};

struct neigh_list {
    uint16_t head, tail;
};

enum { NEIGH_BY_TIMER, NEIGH_BY_USE, NEIGH_BY_GATEWAY, NEIGH_LINKS };

/* Opaque, as the table: look at them with net_neigh_info() and _state(). */
struct neigh_entry {
    struct ip_addr ip;
    struct mac_addr mac;
    uint64_t deadline_us;
    struct neigh_link link[NEIGH_LINKS];
    struct neigh_list behind; /* entries whose next hop this is */
    uint64_t path_mtu_until_us;
    uint16_t path_mtu_bytes; /* 0: nobody said that the link's is too long */
    uint16_t via;            /* this one's next hop, or NEIGH_NONE */
    uint16_t hash_next;
    uint16_t vlan;
    uint16_t pins;
    uint8_t port;
    uint8_t local; /* own address to ask from */
    uint8_t state; /* enum neigh_state; neigh_enter() is the only writer */
    uint8_t tries;
    uint8_t timer; /* which timer list it is in */
    bool is_exported;
    bool is_remote; /* not on our link: cannot be asked itself */
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
 * The neighbour `ip`, as seen from one of our addresses: look it up, or ask
 * for it.  READY and PENDING pin the entry for the caller, who gives it back
 * with net_neigh_unpin().
 *
 * PENDING: net_stack_config.neigh_resolved comes later, from input or timer.
 * When it says "no", the entry and all pins on it are gone.
 *
 * @param local  index of one of our addresses, of the same family: 0..9
 */
MUST_USE enum neigh_result net_neigh_resolve(struct net_stack *stack,
                                             uint8_t local,
                                             const struct ip_addr *ip,
                                             uint64_t now_us, uint16_t *index);

/**
 * A packet from `ip` came from `mac`: an answer may go there.  Not pinned, but
 * the last to be evicted: pin it before the next call if it is to stay.
 *
 * A neighbour on the link that is pinned and has answered keeps its MAC until
 * somebody answers that it is another's: that is asked at once.  A pinned
 * neighbour beyond the link keeps its next hop while the gateway that it
 * follows answers, or while net_stack_config.neigh_is_reached says so.
 *
 * @param local  index of our address that it was sent to
 * @return READY; NO_ROUTE when `mac` or `ip` is none that a host can have, or
 *         `local` is not usable; FULL.  *index is NEIGH_NONE unless READY
 */
MUST_USE enum neigh_result net_neigh_learn(struct net_stack *stack,
                                           uint8_t local,
                                           const struct ip_addr *ip,
                                           const struct mac_addr *mac,
                                           uint64_t now_us, uint16_t *index);

/** Keep the entry for one more user: a connection.  Not if INCOMPLETE. */
void net_neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** One user less.  The entry lives on until it is old or needed. */
void net_neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** The longest packet that is known to get there in one piece. */
uint16_t net_neigh_path_mtu(const struct net_stack *stack, uint16_t index,
                            uint64_t now_us);

/** A router said so. @return false when it is no news */
bool net_neigh_note_mtu(struct net_stack *stack, uint16_t index,
                        uint32_t mtu_bytes, uint64_t now_us);

/** The layer above hears from it: as good as an answer to a probe. */
void net_neigh_confirm(struct net_stack *stack, uint16_t index,
                       uint64_t now_us);

/** @return false when `index` is free or INCOMPLETE */
MUST_USE bool net_neigh_info(const struct net_stack *stack, uint16_t index,
                             struct neigh_info *info);

enum neigh_state net_neigh_state(const struct net_stack *stack, uint16_t index);

/** One hash. @return NEIGH_NONE when it is not in the table */
uint16_t net_neigh_find(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip);

#endif
