/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DHCP client: gets the IPv4 address of each port that is configured for it.
 *
 *  + It takes the first usable offer, probes the address (RFC 5227) before
 *    using it, and declines it when another host has it.
 *  + It renews the lease with its server at T1 and with any server at T2.  It
 *    gives the address up when the lease ends or a server sends a NAK.
 *    dhcp_client_stop() releases the lease.
 *  + When the link comes up again it asks for the same lease; if no server
 *    answers, it keeps the lease until that ends.
 *  + Router, MTU and NTP server are taken from the lease.
 *  + While no server answers, the port has a 169.254/16 address (ipv4ll.h).
 *
 * Spec: RFC 2131 sections 3.1, 3.2 and 4.4; RFC 2132.
 *
 * Left out: choosing among offers; INFORM; leases that survive a reboot.
 * Offers without server, lease time or mask are ignored.  The client waits at
 * most 1 second before its first message, not the 1 to 10 of RFC 2131, because
 * a drive has to be reachable soon after power-on.
 */
#ifndef ESSD_NET_STACK_DHCP_H
#define ESSD_NET_STACK_DHCP_H

#include "net/stack/ipv4ll.h"
#include "net/stack/stack.h"
#include "net/wire/dhcp.h"

enum {
    DHCP_START_US = 1000000,     /* longest wait before the first message */
    DHCP_FIRST_US = 4000000,     /* first wait for an answer; doubles ... */
    DHCP_LONGEST_US = 64000000,  /* ... up to this; each varies by a quarter */
    DHCP_RENEW_US = 60000000,    /* shortest time between two renewals */
    DHCP_DECLINED_US = 10000000, /* wait after a DECLINE */
    DHCP_REFUSED_US = 1000000,   /* wait after a NAK */
    DHCP_REQUESTS = 4,           /* unanswered REQUESTs before starting again */
    DHCP_FAILURES = 3,           /* failed attempts before using 169.254/16 */
    /* The same with dhcp_client_config.is_fast: */
    DHCP_FAST_START_US = 100000,
    DHCP_FAST_FIRST_US = 500000,
    DHCP_FAST_LONGEST_US = 2000000,
    DHCP_FAST_RENEW_US = 1000000,
    DHCP_FAST_DECLINED_US = 1000000,
};

enum dhcp_state {
    DHCP_OFF,        /* Link down, perhaps with a lease; waits for the link. */
    DHCP_INIT,       /* No lease; waits until DISCOVER is due. */
    DHCP_SELECTING,  /* DISCOVER sent; waits for an offer. */
    DHCP_REQUESTING, /* REQUEST sent for an offer; waits for ACK or NAK. */
    DHCP_REBOOTING,  /* REQUEST sent for the old lease; waits for ACK or NAK. */
    DHCP_PROBING,    /* Leased; waits until the address is probed. */
    DHCP_BOUND,      /* Address in use; waits for T1. */
    DHCP_RENEWING,   /* Sends REQUEST to the server until an answer or T2. */
    DHCP_REBINDING,  /* Sends REQUEST to all servers until an answer or the
                      * end of the lease. */
    DHCP_STATES,
};

enum dhcp_counter {
    DHCP_SENT_DISCOVER,
    DHCP_SENT_REQUEST,
    DHCP_SENT_DECLINE,
    DHCP_SENT_RELEASE,
    /* Usable answers that the client was waiting for. */
    DHCP_GOT_OFFER,
    DHCP_GOT_ACK,
    DHCP_GOT_NAK,
    DHCP_MALFORMED,
    DHCP_STRAY,   /* not for us, not expected, or not usable */
    DHCP_EXPIRED, /* leases that ended */
    DHCP_COUNTERS,
};

struct dhcp_lease {
    struct ip_addr ip;
    struct ip_addr server;
    struct ip_addr router;     /* all zero if there is none */
    struct ip_addr ntp_server; /* all zero if there is none */
    uint32_t lease_s;          /* lease time, or DHCP_FOREVER */
    uint16_t mtu_bytes;        /* 1280 to the port's MTU; 0 if not given */
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
    /* Called when the port gets a lease, when a renewal changes the lease, and,
     * with NULL, when the port has no lease any more.  The function may be NULL
     * and must not call the client. */
    void (*leased)(void *ctx, uint8_t port, const struct dhcp_lease *lease);
};

/* Opaque from here on. */
struct dhcp_port {
    struct ipv4ll fallback;
    struct dhcp_lease lease; /* the offered or granted one */
    struct mac_addr server_mac;
    uint64_t due_us;   /* time of the state's next action */
    uint64_t began_us; /* start of the exchange, for the `secs` field */
    uint64_t asked_us; /* time of the last REQUEST */
    uint64_t renew_us, rebind_us, expire_us; /* T1, T2, end of the lease */
    uint32_t xid;
    unsigned int failures; /* consecutive failures to get a lease */
    uint8_t state;    /* enum dhcp_state; dhcp_enter() is the only writer */
    uint8_t tries;    /* messages sent in this state */
    bool is_reported; /* leased() was called with a lease */
    int local;        /* index of the leased own address; -1: no lease */
};

struct dhcp_client {
    struct dhcp_client_config config;
    struct dhcp_port ports[NET_PORTS];
    uint64_t counters[DHCP_COUNTERS];
    uint64_t random;
};

/**
 * Bind the client's UDP port if any port uses DHCP.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool dhcp_client_init(struct dhcp_client *client,
                               const struct dhcp_client_config *config);

/** A port's link came up or went down. */
void dhcp_client_link(struct dhcp_client *client, uint8_t port, bool is_up,
                      uint64_t now_us);

/**
 * Do what is due.  Call it after net_stack_input() and net_stack_timer().
 *
 * @return when to call it again, UINT64_MAX for never; it may be earlier after
 *         any call of the stack
 */
uint64_t dhcp_client_timer(struct dhcp_client *client, uint64_t now_us);

/**
 * The clock that the other functions are given has left out `us` microseconds,
 * in which the drive could not run.  Servers have counted them: the leases end
 * earlier.
 */
void dhcp_client_held_back(struct dhcp_client *client, uint64_t us);

/** Release all leases, before the drive goes down. */
void dhcp_client_stop(struct dhcp_client *client, uint64_t now_us);

static inline uint64_t dhcp_counter_read(const struct dhcp_client *client,
                                         enum dhcp_counter counter)
{
    return client->counters[counter];
}

#endif
