/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast DNS responder: advertises the drive's discovery service, so that
 * hosts find it without being configured.
 *
 *  + On each port it claims a host name and the name of a service instance: it
 *    probes them, settles conflicts, and announces them.
 *  + It answers questions for PTR, SRV, TXT, A and AAAA records of these names,
 *    and says with NSEC records which ones do not exist.
 *  + It leaves out answers that the asker knows, sends a record to the group at
 *    most once a second, and limits answers to single stations.
 *  + It says goodbye to records that are no longer true.
 *
 * The two ports have different names (NAME-0, NAME-1), because both may be on
 * one link.  With one name for both, the address records of one port, which
 * have the cache-flush bit, would make caches forget those of the other.
 *
 * Spec: RFC 6762, RFC 6763; NVM Express TP 8009 (Base 2.4 section 8.3.1.1.1):
 * the service is _nvme-disc._udp for RoCE, with TXT keys p and nqn.
 *
 * Left out: queries of our own; VLANs other than the port's; subtypes; reverse
 * mapping of addresses; messages longer than MDNS_MESSAGE_MAX.
 */
#ifndef ESSD_NET_STACK_MDNS_H
#define ESSD_NET_STACK_MDNS_H

#include "net/stack/stack.h"
#include "net/wire/dns.h"

enum {
    MDNS_PORT = 5353,
    MDNS_MESSAGE_MAX = 1232, /* fits into every MTU, after IPv6 and UDP */
    MDNS_TTL_S = 4500,       /* RFC 6762 section 10 */
    MDNS_HOST_TTL_S = 120,   /* of records that have a host's name or address */
    MDNS_PROBES = 3,
    MDNS_PROBE_US = 250000, /* between probes; the wait before the first is
                             * random, and at most as long */
    MDNS_LOST_US = 1000000, /* wait after losing to a simultaneous probe */
    MDNS_ANNOUNCEMENTS = 2,
    MDNS_ANNOUNCE_US = 1000000, /* between announcements */
    /* After MDNS_CONFLICTS conflicts in MDNS_CONFLICTS_US, the next probes wait
     * for MDNS_CONFLICTS_WAIT_US. */
    MDNS_CONFLICTS = 15,
    MDNS_CONFLICTS_US = 10000000,
    MDNS_CONFLICTS_WAIT_US = 5000000,
};

enum mdns_state {
    MDNS_OFF,        /* Silent; waits for a link with an address. */
    MDNS_PROBING,    /* Probes its names until nobody objects. */
    MDNS_ANNOUNCING, /* Answers; announces its records a few times. */
    MDNS_READY,      /* Answers until the link goes or there is a conflict. */
    MDNS_STATES,
};

enum mdns_counter {
    MDNS_MALFORMED, /* messages */
    MDNS_IGNORED,   /* messages of another kind, or from beyond the link */
    MDNS_QUERIES,
    MDNS_RESPONSES,
    MDNS_CONFLICTS_SEEN,
    MDNS_SENT, /* messages to the group */
    MDNS_SENT_DIRECT,
    MDNS_LIMITED, /* answers to one station that were left out */
    MDNS_COUNTERS,
};

/* Sets of records that have one name and one type. */
enum mdns_set {
    MDNS_TYPES,       /* PTR: which types of services there are */
    MDNS_SERVICE,     /* PTR: the service instance */
    MDNS_SRV,         /* the instance's host and port */
    MDNS_TXT,         /* the instance's transport and NQN */
    MDNS_A,           /* the host's IPv4 addresses */
    MDNS_AAAA,        /* the host's IPv6 addresses */
    MDNS_NO_INSTANCE, /* NSEC: the instance has no other types */
    MDNS_NO_HOST,     /* NSEC: the host has no other types */
    MDNS_SETS,
};

struct mdns_config {
    struct net_stack *stack;
    /* The drive's name.  The buffer stays valid; when its content changes,
     * mdns_set() is called. */
    const char *name;
    /* NQN of the discovery subsystem, up to 223 bytes; stays valid. */
    const char *nqn;
    uint16_t service_port;
    uint16_t vlan[NET_PORTS]; /* of the port's addresses; NET_VLAN_UNTAGGED */
    bool is_on;
    uint64_t random_seed; /* differs from drive to drive and boot to boot */
    void *ctx;
    /* The port has claimed this name.  May be NULL. */
    void (*claimed)(void *ctx, uint8_t port, const char *host);
};

/* Opaque from here on. */
struct mdns_direct { /* an answer to one station that is to be sent */
    struct mac_addr mac;
    struct ip_addr dst;
    struct dns_question question; /* repeated to a legacy asker */
    uint16_t sets;                /* BIT(enum mdns_set); 0: none */
    uint16_t id;
    uint16_t dst_port;
    bool is_legacy; /* to a simple resolver: RFC 6762 section 6.7 */
};

struct mdns_link {
    uint8_t state; /* enum mdns_state; mdns_enter() is the only writer */
    uint8_t tries; /* messages sent in this state */
    bool is_up;
    uint64_t due_us; /* of the state's next message */
    uint16_t number; /* appended to the name after a conflict, from 2 on */
    uint8_t conflicts;
    uint64_t conflicts_from_us;
    struct dns_name instance;
    struct dns_name host;
    struct ip_addr addresses[NET_ADDRESSES]; /* what the records say */
    uint8_t address_count;
    struct ip_addr gone[NET_ADDRESSES]; /* addresses to say goodbye to */
    uint8_t gone_count;
    uint16_t pending;            /* sets to be sent to the group */
    uint64_t pending_us;         /* when they are sent */
    struct ip_addr asker;        /* asked for them; all zero: several did */
    bool is_defence;             /* they answer a probe */
    uint64_t sent_us[MDNS_SETS]; /* when each was sent to the group; 0: never */
    struct mdns_direct direct;
};

struct mdns_agent {
    struct mdns_config config;
    struct mdns_link links[NET_PORTS];
    struct dns_name types, service;
    uint64_t counters[MDNS_COUNTERS];
    uint64_t random;
    bool is_bound;
};

/**
 * Start the responder, with links down.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool mdns_init(struct mdns_agent *agent,
                        const struct mdns_config *config, uint64_t now_us);

/** A port's link came up or went down. */
void mdns_link(struct mdns_agent *agent, uint8_t port, bool is_up,
               uint64_t now_us);

/**
 * Change the settings.
 *
 * @param is_new_name  the content of config.name has changed
 * @return false when the stack has no room for the responder; it is off then
 */
MUST_USE bool mdns_set(struct mdns_agent *agent, bool is_on, bool is_new_name,
                       const uint16_t vlan[NET_PORTS], uint64_t now_us);

/** Say goodbye, before the drive is switched off. */
void mdns_stop(struct mdns_agent *agent, uint64_t now_us);

/**
 * Do what is due, and follow the drive's addresses.
 * @return when to call it again; any call of the stack may make that earlier
 */
uint64_t mdns_timer(struct mdns_agent *agent, uint64_t now_us);

static inline uint64_t mdns_counter_read(const struct mdns_agent *agent,
                                         enum mdns_counter counter)
{
    return agent->counters[counter];
}

#endif
