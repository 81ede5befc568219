/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LACP on both ports: agrees with the partner of each link whether the link
 * belongs to the aggregation.
 *
 *  + It is always active.  It asks its partners to send every second (fast) or
 *    every 30 seconds, and sends as often as they ask.
 *  + It sends at most three LACPDUs a second on a port.
 *  + There is one aggregation, of the ports whose partners are one system with
 *    one key.  When no port hears a partner, the lowest port that is up works
 *    alone, as without LACP.
 *  + It answers at most five markers a second on a port.
 *
 * The machines are those of IEEE 802.1AX-2008 clause 5.4: receive (5.4.12),
 * periodic (5.4.13), selection (5.4.14), mux with independent control (5.4.15),
 * transmit (5.4.16); marker responder (5.5.4).
 *
 * Left out: churn detection, passive LACP, sending markers, and choosing ports
 * by priority when a system cannot attach all of its ports.
 */
#ifndef ESSD_NET_STACK_LACP_H
#define ESSD_NET_STACK_LACP_H

#include "net/stack/stack.h"
#include "net/wire/lacp.h"

enum lacp_rx_state {
    LACP_RX_DISABLED,  /* Link down; waits for the link. */
    LACP_RX_EXPIRED,   /* Partner silent; waits for a LACPDU or time-out. */
    LACP_RX_DEFAULTED, /* Uses the default partner; waits for a LACPDU. */
    LACP_RX_CURRENT,   /* Partner known; waits for its next LACPDU or time-out.
                        */
    LACP_RX_STATES,
};

enum lacp_mux_state {
    LACP_MUX_DETACHED,   /* Not in use; waits to be selected. */
    LACP_MUX_WAITING,    /* Selected; waits 2 s for other ports to join. */
    LACP_MUX_ATTACHED,   /* Attached; waits for the partner to be in sync. */
    LACP_MUX_COLLECTING, /* Receives; waits for the partner to collect. */
    LACP_MUX_WORKING,    /* Sends and receives (COLLECTING_DISTRIBUTING) until
                          * the partner or the selection changes. */
    LACP_MUX_STATES,
};

/* By port; names of IEEE 802.1AX clause 6.3.3. */
enum lacp_counter {
    LACP_PDUS_RX,
    LACP_MARKERS_RX,
    LACP_UNKNOWN_RX, /* of another slow protocol */
    LACP_ILLEGAL_RX, /* malformed */
    LACP_PDUS_TX,
    LACP_MARKER_RESPONSES_TX,
    LACP_COUNTERS,
};

struct lacp_config {
    struct net_stack *stack; /* stays */
    struct mac_addr system;  /* the drive's system ID, with system_priority */
    uint16_t system_priority;
    uint16_t key;
    bool is_fast; /* ask the partner to send every second */
};

/* Opaque from here on; others may read the fields but not write them. */

/* Counts frames of one second, to limit their rate. */
struct lacp_window {
    uint64_t from_us;
    uint8_t count;
};

struct lacp_port {
    uint8_t rx;  /* enum lacp_rx_state; rx_enter() is the only writer */
    uint8_t mux; /* enum lacp_mux_state; mux_enter() is the only writer */
    bool is_selected;
    bool needs_to_transmit; /* NTT */
    struct lacp_info partner;
    uint64_t current_while_us; /* the partner's information expires then */
    uint64_t wait_while_us;
    uint64_t periodic_us; /* when the next periodic LACPDU is due */
    struct lacp_window sent;
    struct lacp_window answered;
    bool has_marker; /* `marker` is to be answered */
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
 * Ask the partners to send every second (fast) or every 30 seconds.  The
 * timeout for their LACPDUs becomes longer at once, or shorter with the next
 * one that is received.
 */
void lacp_set_fast(struct lacp_agent *agent, bool is_fast);

/**
 * The clock that the other functions are given has left out `us` microseconds,
 * in which nothing could be sent.  The partners have counted them: the next
 * periodic LACPDU is due earlier.  Call lacp_timer() after this.
 */
void lacp_held_back(struct lacp_agent *agent, uint64_t us);

/**
 * Do what is due, and send what received frames call for.
 *
 * @return when to call it again, UINT64_MAX for never
 */
uint64_t lacp_timer(struct lacp_agent *agent, uint64_t now_us);

/**
 * Whether frames from this port are accepted.  They are from ATTACHED on: the
 * partner may begin to send as soon as our LACPDU says so, before its own
 * LACPDU reaches us.
 */
static inline bool lacp_is_collecting(const struct lacp_agent *agent,
                                      uint8_t port)
{
    return agent->ports[port].mux >= LACP_MUX_ATTACHED;
}

/** Whether frames may be sent to this port: the partner is collecting. */
static inline bool lacp_is_working(const struct lacp_agent *agent, uint8_t port)
{
    return agent->ports[port].mux == LACP_MUX_WORKING;
}

/** The actor information that the port sends. */
struct lacp_info lacp_actor(const struct lacp_agent *agent, uint8_t port);

#endif
