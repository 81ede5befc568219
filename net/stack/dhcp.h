/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DHCP client: the IPv4 address of each port that is to have one so.
 *
 *  + the first usable offer is taken, probed (RFC 5227) before it is used, and
 *    declined if somebody else has it
 *  + renewed at T1, with anybody at T2, given up when the lease ends or a
 *    server says so; given back by dhcp_client_stop()
 *  + after the link was down the lease is asked for again; without an answer it
 *    goes on to its end
 *  + router, MTU and NTP server come with the lease
 *  + as long as no server answers: an address of 169.254/16 (ipv4ll.h)
 *
 * Spec: RFC 2131 sections 3.1, 3.2 and 4.4; RFC 2132.
 *
 * Left out: a choice among offers; offers without server, lease time or mask
 * (ignored); INFORM; leases kept over a boot; the 1 to 10 seconds of waiting
 * before the first message (it is at most one: a drive has to be there soon).
 */
#ifndef ESSD_NET_STACK_DHCP_H
#define ESSD_NET_STACK_DHCP_H

#include "net/stack/ipv4ll.h"
#include "net/stack/stack.h"
#include "net/wire/dhcp.h"

enum {
    DHCP_START_US = 1000000,    /* at most, before the first message */
    DHCP_FIRST_US = 4000000,    /* for an answer, doubled each time ... */
    DHCP_LONGEST_US = 64000000, /* ... up to this; plus or minus a quarter */
    DHCP_RENEW_US = 60000000,   /* at least, between two renewals */
    DHCP_DECLINED_US = 10000000,
    DHCP_REFUSED_US = 1000000, /* after a NAK */
    DHCP_REQUESTS = 4,         /* unanswered, before anew */
    DHCP_FAILURES = 3,         /* before 169.254/16 */
    /* is_fast: */
    DHCP_FAST_START_US = 100000,
    DHCP_FAST_FIRST_US = 500000,
    DHCP_FAST_LONGEST_US = 2000000,
    DHCP_FAST_RENEW_US = 1000000,
    DHCP_FAST_DECLINED_US = 1000000,
};

enum dhcp_state {
    DHCP_OFF,        /* waits for the link; there may be a lease */
    DHCP_INIT,       /* waits for the time to ask */
    DHCP_SELECTING,  /* DISCOVER is out: waits for an offer */
    DHCP_REQUESTING, /* REQUEST is out: waits for ACK or NAK */
    DHCP_REBOOTING,  /* the same, for the lease that there is */
    DHCP_PROBING,    /* leased: waits whether somebody else has the address */
    DHCP_BOUND,      /* waits for T1 */
    DHCP_RENEWING,   /* REQUEST to the server is out, or will be again */
    DHCP_REBINDING,  /* REQUEST to anybody, likewise */
    DHCP_STATES,
};

enum dhcp_counter {
    DHCP_SENT_DISCOVER,
    DHCP_SENT_REQUEST,
    DHCP_SENT_DECLINE,
    DHCP_SENT_RELEASE,
    DHCP_GOT_OFFER, /* usable ones, when waited for; so the next two */
    DHCP_GOT_ACK,
    DHCP_GOT_NAK,
    DHCP_MALFORMED,
    DHCP_STRAY,   /* not for us, not waited for, or not usable */
    DHCP_EXPIRED, /* leases */
    DHCP_COUNTERS,
};

struct dhcp_lease {
    struct ip_addr ip;
    struct ip_addr server;
    struct ip_addr router;     /* zero: none */
    struct ip_addr ntp_server; /* zero: none */
    uint32_t lease_s;          /* or DHCP_FOREVER */
    uint16_t mtu_bytes;        /* 1280 to the port's; 0: not said */
    uint8_t prefix_bits;
};

struct dhcp_client_config {
    struct net_stack *stack; /* stays */
    const char *host_name;   /* stays; 1..63 characters, or NULL */
    struct {
        bool is_on;
        uint16_t vlan; /* or NET_VLAN_UNTAGGED */
    } ports[NET_PORTS];
    bool is_fast;         /* short times, for tests */
    uint64_t random_seed; /* differs from drive to drive and boot to boot */
    void *ctx;
    /* A port's lease is in use from now on, or again with other facts; NULL: it
     * is not any more.  May be NULL; must not call back. */
    void (*leased)(void *ctx, uint8_t port, const struct dhcp_lease *lease);
};

/* Opaque from here on. */
struct dhcp_port {
    struct ipv4ll fallback;
    struct dhcp_lease lease; /* offered, then ours */
    struct mac_addr server_mac;
    uint64_t due_us;   /* of what the state waits for, at the latest */
    uint64_t began_us; /* to ask, for the servers' information */
    uint64_t asked_us;
    uint64_t renew_us, rebind_us, expire_us; /* T1, T2, end */
    uint32_t xid;
    unsigned int failures; /* to get a lease, in a row */
    uint8_t state; /* enum dhcp_state; dhcp_enter() is the only writer */
    uint8_t tries; /* in this state */
    bool is_told;  /* leased() */
    int local;     /* own address, or -1: no lease */
};

struct dhcp_client {
    struct dhcp_client_config config;
    struct dhcp_port ports[NET_PORTS];
    uint64_t counters[DHCP_COUNTERS];
    uint64_t random;
};

/**
 * Bind the client's UDP port, if it is on anywhere.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool dhcp_client_init(struct dhcp_client *client,
                               const struct dhcp_client_config *config);

/** A port's link came up or went down. */
void dhcp_client_link(struct dhcp_client *client, uint8_t port, bool is_up,
                      uint64_t now_us);

/**
 * Do what is due, behind net_stack_input() and net_stack_timer().
 *
 * @return when to call it again, UINT64_MAX for never; it may be earlier after
 *         any call of the stack
 */
uint64_t dhcp_client_timer(struct dhcp_client *client, uint64_t now_us);

/** Give leases back, before the drive goes down. */
void dhcp_client_stop(struct dhcp_client *client, uint64_t now_us);

static inline uint64_t dhcp_counter_read(const struct dhcp_client *client,
                                         enum dhcp_counter counter)
{
    return client->counters[counter];
}

#endif
