/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LLDP agent of both ports: announces the drive to the other end of each cable
 * and stores what that end announces.
 *
 *  + It sends when the link comes up, at every interval, at once when the
 *    announcement changes, and four times a second apart when a new neighbour
 *    appears.
 *  + It sends at most five frames in a row, and one a second after that.
 *  + It sends a frame with TTL 0 when a port is stopped in an orderly way.
 *  + A neighbour is forgotten when its TTL ends, when it sends TTL 0, and when
 *    the port's link goes down.
 *
 * Spec: IEEE 802.1AB-2016 clause 9 (msgFastTx 1 s, txFastInit 4, txCreditMax
 * 5), destination "nearest bridge" alone.
 *
 * Left out: other destinations, jitter of the interval, notifications.  TLVs
 * that net/wire/lldp.h does not parse are kept as part of the whole LLDPDU.
 */
#ifndef ESSD_NET_STACK_LLDP_H
#define ESSD_NET_STACK_LLDP_H

#include "net/stack/stack.h"
#include "net/wire/lldp.h"

enum {
    LLDP_NEIGHBOURS = 8, /* kept for each port; others are only counted */
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
    uint16_t interval_s;     /* msgTxInterval, 1..3600; 0 means 30 */
    uint8_t hold;            /* msgTxHold, 1..100; 0 means 4 */
    struct mac_addr chassis; /* the same on all ports */
    /* Both strings have 1..255 characters and outlive the agent. */
    const char *system_name;
    const char *system_description;
    void *ctx;
    /* Called when a neighbour was added, changed or removed.  `lldp` is valid
     * during the call only.  May be NULL. */
    void (*neighbour)(void *ctx, uint8_t port, enum lldp_event event,
                      const struct lldp *lldp);
};

/* By port; names of IEEE 802.1AB clause 9.2.6. */
enum lldp_counter {
    LLDP_FRAMES_OUT,
    LLDP_FRAMES_IN,
    LLDP_FRAMES_DISCARDED, /* for any of the reasons below */
    LLDP_FRAMES_IN_ERRORS, /* malformed */
    LLDP_TOO_MANY_NEIGHBOURS,
    LLDP_AGEOUTS,
    LLDP_COUNTERS,
};

enum lldp_state {
    LLDP_DOWN,    /* Silent; waits for the link. */
    LLDP_UP,      /* Sends and receives as configured until the link goes. */
    LLDP_STOPPED, /* Silent after TTL 0; waits for the link to come up again. */
    LLDP_STATES,
};

/* Opaque from here on. */
struct lldp_neighbour {
    uint64_t expires_us; /* 0 if this entry is free */
    uint16_t len_bytes;
    uint8_t pdu[LLDP_PDU_MAX];
};

struct lldp_port {
    uint64_t due_us;    /* when to send next */
    uint64_t filled_us; /* when `credit` last grew */
    uint32_t speed_mbps;
    uint8_t state;  /* enum lldp_state; lldp_enter() is the only writer */
    uint8_t credit; /* frames that may be sent at once */
    uint8_t fast;   /* frames still to be sent at one-second intervals */
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

/** @param speed_mbps  10000 or 25000; used only when is_up */
void lldp_link(struct lldp_agent *agent, uint8_t port, bool is_up,
               uint32_t speed_mbps, uint64_t now_us);

/**
 * Change which ports send and receive, and how often: see struct lldp_config.
 * A port that stops sending sends TTL 0; one that stops receiving forgets its
 * neighbours.
 */
void lldp_set(struct lldp_agent *agent,
              const struct lldp_port_config ports[NET_PORTS],
              uint16_t interval_s, uint8_t hold, uint64_t now_us);

/** The drive's addresses changed: send a new announcement. */
void lldp_changed(struct lldp_agent *agent, uint64_t now_us);

/** Send TTL 0 once, before the port or the drive is switched off. */
void lldp_stop(struct lldp_agent *agent, uint8_t port);

/** Do what is due. @return when to call it again, UINT64_MAX for never */
uint64_t lldp_timer(struct lldp_agent *agent, uint64_t now_us);

/**
 * Read entry 0..LLDP_NEIGHBOURS - 1 of a port's neighbours.
 *
 * @param lldp        points into the agent: valid until the agent's next call
 * @param ttl_left_s  seconds until the neighbour is forgotten, rounded up
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
