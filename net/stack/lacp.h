/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LACP on both ports: agrees with the other end of each link whether it may be
 * used as a part of one aggregation.
 *
 *  + always active; asks to hear once a second (fast) or once in 30, and
 *    sends as often as the other end asks
 *  + never more than three LACPDUs a second on a port
 *  + one aggregation: of the ports whose partners are one system with one key.
 *    Where no port hears a partner, the lowest one that is up works alone, as
 *    if nobody had LACP
 *  + answers markers, at most five a second on a port
 *
 * The machines are those of IEEE 802.1AX-2008 clause 5.4: receive (5.4.12),
 * periodic (5.4.13), selection (5.4.14), mux with independent control (5.4.15),
 * transmit (5.4.16); marker responder (5.5.4).
 *
 * Left out: churn detection, passive LACP, the choice by port priority where a
 * system cannot attach all of its ports, sending markers.
 */
#ifndef ESSD_NET_STACK_LACP_H
#define ESSD_NET_STACK_LACP_H

#include "net/stack/stack.h"
#include "net/wire/lacp.h"

enum lacp_rx_state {
    LACP_RX_DISABLED,  /* waits for the link */
    LACP_RX_EXPIRED,   /* hears nothing, waits a little longer */
    LACP_RX_DEFAULTED, /* nobody there speaks LACP, for all we know */
    LACP_RX_CURRENT,   /* what it knows of the partner is what that last said */
    LACP_RX_STATES,
};

enum lacp_mux_state {
    LACP_MUX_DETACHED,   /* waits to be selected */
    LACP_MUX_WAITING,    /* waits for others that are to be attached, too */
    LACP_MUX_ATTACHED,   /* waits for the partner to be in step */
    LACP_MUX_COLLECTING, /* waits for the partner to do so, too */
    LACP_MUX_WORKING,    /* COLLECTING_DISTRIBUTING: frames pass */
    LACP_MUX_STATES,
};

/* By port; names of IEEE 802.1AX clause 6.3.3. */
enum lacp_counter {
    LACP_PDUS_RX,
    LACP_MARKERS_RX,
    LACP_UNKNOWN_RX, /* another slow protocol's */
    LACP_ILLEGAL_RX, /* or make no sense */
    LACP_PDUS_TX,
    LACP_MARKER_RESPONSES_TX,
    LACP_COUNTERS,
};

struct lacp_config {
    struct net_stack *stack; /* stays */
    struct mac_addr system;  /* the drive's, with system_priority */
    uint16_t system_priority;
    uint16_t key;
    bool is_fast; /* hear from the partner once a second */
};

/* Opaque from here on, but for reading. */
struct lacp_window { /* at most so many frames a second */
    uint64_t from_us;
    uint8_t count;
};

struct lacp_port {
    uint8_t rx;  /* enum lacp_rx_state; rx_enter() is the only writer */
    uint8_t mux; /* enum lacp_mux_state; mux_enter() is the only writer */
    bool is_selected;
    bool needs_to_transmit; /* NTT */
    struct lacp_info partner;
    uint64_t current_while_us; /* the partner has to say something until */
    uint64_t wait_while_us;
    uint64_t periodic_us; /* the next regular LACPDU */
    struct lacp_window sent;
    struct lacp_window answered;
    bool has_marker; /* to be answered */
    struct marker marker;
    uint64_t counters[LACP_COUNTERS];
};

struct lacp_agent {
    struct lacp_config config;
    struct lacp_port ports[NET_PORTS];
};

/**
 * Bind the agent to its EtherType; links are down.  Copies `config`.
 *
 * @return false when the stack has no room for it
 */
MUST_USE bool lacp_init(struct lacp_agent *agent,
                        const struct lacp_config *config);

void lacp_link(struct lacp_agent *agent, uint8_t port, bool is_up,
               uint64_t now_us);

/**
 * Do what is due, and what a received frame calls for.
 *
 * @return when to call it again, UINT64_MAX for never
 */
uint64_t lacp_timer(struct lacp_agent *agent, uint64_t now_us);

/**
 * Whether frames are received from this port: already when the partner has
 * been told that it is one of ours.  It may send before we know.
 */
static inline bool lacp_is_collecting(const struct lacp_agent *agent,
                                      uint8_t port)
{
    return agent->ports[port].mux >= LACP_MUX_ATTACHED;
}

/** Whether frames may be sent to this port, too: the partner takes them. */
static inline bool lacp_is_working(const struct lacp_agent *agent, uint8_t port)
{
    return agent->ports[port].mux == LACP_MUX_WORKING;
}

/** What the port says of itself. */
struct lacp_info lacp_actor(const struct lacp_agent *agent, uint8_t port);

#endif
