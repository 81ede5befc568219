/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDP agent of both ports: tells the other end of each cable who we are, and
 * remembers what it says about itself.
 *
 *  + sends when the link comes up, every interval, at once when something
 *    changed, and four frames a second apart when a new neighbour appears
 *  + never more than five frames in a row and one a second after that
 *  + a frame with TTL 0 when a port is stopped in good order
 *  + neighbours go when their TTL is over, or they say so; those of a port
 *    whose link is down, too
 *
 * Spec: IEEE 802.1AB-2016 clause 9 (msgFastTx 1 s, txFastInit 4, txCreditMax
 * 5), destination "nearest bridge" alone.
 *
 * Left out: other destinations, jitter of the interval, notifications, what
 * neighbours say beyond net/wire/lldp.h (their whole LLDPDU is kept).
 */
#ifndef ESSD_NET_STACK_LLDP_H
#define ESSD_NET_STACK_LLDP_H

#include "net/stack/stack.h"
#include "net/wire/lldp.h"

enum {
    LLDP_NEIGHBOURS = 4, /* a port; more of them are counted and ignored */
    LLDP_PDU_MAX = 1500,
    LLDP_INTERVAL_S = 30, /* defaults */
    LLDP_HOLD = 4,
};

enum lldp_event { LLDP_NEW, LLDP_CHANGED, LLDP_GONE };

struct lldp_port_config {
    bool sends;
    bool receives;
};

struct lldp_config {
    struct net_stack *stack; /* stays */
    struct lldp_port_config ports[NET_PORTS];
    uint16_t interval_s;     /* msgTxInterval, 1..3600; 0: 30 */
    uint8_t hold;            /* msgTxHold, 1..100; 0: 4 */
    struct mac_addr chassis; /* the same on all ports */
    const char *system_name; /* these two stay; 1..255 characters */
    const char *system_description;
    void *ctx;
    /* About a neighbour; `lldp` is good during the call only.  May be NULL. */
    void (*neighbour)(void *ctx, uint8_t port, enum lldp_event event,
                      const struct lldp *lldp);
};

/* By port; names of IEEE 802.1AB clause 9.2.6. */
enum lldp_counter {
    LLDP_FRAMES_OUT,
    LLDP_FRAMES_IN,
    LLDP_FRAMES_DISCARDED, /* for any of the reasons below */
    LLDP_FRAMES_IN_ERRORS, /* make no sense */
    LLDP_TOO_MANY_NEIGHBOURS,
    LLDP_AGEOUTS,
    LLDP_COUNTERS,
};

enum lldp_state {
    LLDP_DOWN,    /* waits for the link */
    LLDP_UP,      /* sends and receives, as configured */
    LLDP_STOPPED, /* said good-bye: waits for the link to come up again */
    LLDP_STATES,
};

/* Opaque from here on. */
struct lldp_neighbour {
    uint64_t expires_us; /* 0: free */
    uint16_t len_bytes;
    uint8_t pdu[LLDP_PDU_MAX];
};

struct lldp_port {
    uint64_t due_us;    /* when to send next */
    uint64_t filled_us; /* when `credit` last grew */
    uint32_t speed_mbps;
    uint8_t state;  /* enum lldp_state; lldp_enter() is the only writer */
    uint8_t credit; /* frames that may be sent at once */
    uint8_t fast;   /* frames still to be sent a second apart */
    uint64_t counters[LLDP_COUNTERS];
    struct lldp_neighbour neighbours[LLDP_NEIGHBOURS];
};

struct lldp_agent {
    struct lldp_config config;
    struct lldp_port ports[NET_PORTS];
};

/**
 * Bind the agent to its EtherType; links are down.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool lldp_init(struct lldp_agent *agent,
                        const struct lldp_config *config);

/** @param speed_mbps  10000 or 25000; with is_up only */
void lldp_link(struct lldp_agent *agent, uint8_t port, bool is_up,
               uint32_t speed_mbps, uint64_t now_us);

/**
 * Who sends and receives, and how often, from now on: see struct lldp_config.
 * A port that does not send any more says good-bye; one that does not receive
 * any more forgets its neighbours.
 */
void lldp_set(struct lldp_agent *agent,
              const struct lldp_port_config ports[NET_PORTS],
              uint16_t interval_s, uint8_t hold, uint64_t now_us);

/** What we say has changed: addresses. */
void lldp_changed(struct lldp_agent *agent, uint64_t now_us);

/** Before a port is switched off, or the drive: say good-bye, once. */
void lldp_stop(struct lldp_agent *agent, uint8_t port);

/** Do what is due. @return when to call it again, UINT64_MAX for never */
uint64_t lldp_timer(struct lldp_agent *agent, uint64_t now_us);

/**
 * The neighbour in place 0..LLDP_NEIGHBOURS - 1 of a port.
 *
 * @param lldp      points into the agent: good until it is called again
 * @param ttl_left_s  until it is forgotten, rounded up
 * @return false when there is none
 */
MUST_USE bool lldp_neighbour_read(const struct lldp_agent *agent, uint8_t port,
                                  size_t place, uint64_t now_us,
                                  struct lldp *lldp, uint32_t *ttl_left_s);

static inline uint64_t lldp_counter_read(const struct lldp_agent *agent,
                                         uint8_t port,
                                         enum lldp_counter counter)
{
    return agent->ports[port].counters[counter];
}

#endif
