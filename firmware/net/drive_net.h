/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network node: two ports, the stack for control traffic, the RNIC and the
 * connection manager.  This module passes frames, links, addresses and
 * neighbours between them.
 *
 * The drive is such a node, and so is the host in native tests.
 */
#ifndef ESSD_NET_DRIVE_NET_H
#define ESSD_NET_DRIVE_NET_H

#include "firmware/drivers/rnic.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "firmware/net/drive_lag.h"
#include "firmware/net/node_filters.h"
#include "firmware/net/node_paths.h"
#include "firmware/net/node_ports.h"
#include "firmware/store/config.h"
#include "firmware/store/identity.h"
#include "net/cm/cm.h"
#include "net/stack/stack.h"

struct drive_net_config {
    struct dram *dram;
    struct log *log;
    /* This and the configuration are used during drive_net_init() only. */
    const struct identity *identity;
    const struct config *config;
    uint32_t generation;
    uint64_t random_seed;
    /* As cm_config.random. */
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
    uintptr_t port_regs[NET_PORTS];
    uintptr_t rnic_regs;
    uintptr_t lag_regs;
    /* RDMA READs that this node may have outstanding. */
    uint8_t initiator_depth;
    /* RDMA READs that a peer may have outstanding. */
    uint8_t responder_resources;
    /* As verbs_config.parity_error; its ctx is `parity_ctx`. */
    void (*parity_error)(void *ctx, uint32_t qpn, bool is_to_dram);
    void *parity_ctx;
    const struct trace *trace; /* NULL: no tracing */
};

/* Treat as opaque, except for verbs, stack and cm. */
struct drive_net {
    struct log *log;
    uint64_t now_us; /* time of the main loop's current turn */
    struct verbs verbs;
    struct net_stack stack;
    struct cm cm;
    struct node_ports ports;
    struct separate_ports separate; /* this is used, or `lag` */
    struct drive_lag lag;
    struct node_filters filters;
    struct node_paths paths;
    bool has_laddr[NET_CONFIGURED]; /* the RNIC has this address */
    uint32_t address_changes;       /* counts the changes of addresses */
    struct net_address_config configured[NET_CONFIGURED];
    bool has_refused; /* the stack had no room for a configured address ... */
    uint32_t refused_changes; /* ... when address_changes had this value */
    /* The port uses DHCP, in a VLAN that is chosen when the drive starts. */
    bool has_dhcp[NET_PORTS];
};

/** @return INIT_OK, or which part does not start and why */
MUST_USE struct init_report drive_net_init(
    struct drive_net *net, const struct drive_net_config *config,
    uint64_t now_us);

/** Make the ports receive the multicast groups that the stack is in now. */
void drive_net_set_groups(struct drive_net *net);

/** See node_ports_set_link(). */
MUST_USE bool drive_net_set_link(struct drive_net *net, uint8_t port,
                                 uint8_t speed_gbps, enum config_fec fec);

/** Pass TCP frames of both ports to the TCP offload engine, or to the stack. */
void drive_net_set_toe(struct drive_net *net, bool is_on);

void drive_net_disable_link(struct drive_net *net, uint8_t port);

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link);

/**
 * Whether a port of the stack has a link.  With link aggregation, port 0 is the
 * aggregate and port 1 has none.
 */
bool drive_net_is_up(const struct drive_net *net, uint8_t port);

/**
 * Change from one configuration to another one, as far as that is possible at
 * once: addresses, gateways, priorities, PFC, RoCE v1, congestion management,
 * and what link aggregation prefers.  An address that the drive already
 * has by DHCP or SLAAC, or for which there is no room, waits until
 * drive_net_settle() can add it.
 */
void drive_net_apply(struct drive_net *net, const struct config *before,
                     const struct config *after);

/** Add the addresses that wait.  Call this after addresses may have changed. */
void drive_net_settle(struct drive_net *net);

uint64_t drive_net_counter(const struct drive_net *net, uint8_t port,
                           enum port_counter counter);

/** Enable the interrupts of the ports. */
void drive_net_start(struct drive_net *net);

/**
 * Handle the RNIC's completions and events, and the messages and timers of the
 * connection manager.
 *
 * @param budget       the largest number of completions to handle
 * @param deadline_us  set to when to call this again at the latest
 * @return whether there were completions or events
 */
bool drive_net_poll_rnic(struct drive_net *net, uint64_t now_us,
                         unsigned int budget, uint64_t *deadline_us);

/** Handle received frames of both ports. @return whether there were any */
bool drive_net_poll_frames(struct drive_net *net, uint64_t now_us);

/**
 * Handle changes of links, and the timers of link aggregation and of the stack.
 *
 * @param deadline_us  set to when to call this again at the latest
 * @return whether a link was looked at
 */
bool drive_net_step(struct drive_net *net, uint64_t now_us,
                    uint64_t *deadline_us);

/** Send everything that was posted since the last call. */
void drive_net_flush(struct drive_net *net);

/**
 * Prepare to sleep; see verbs_arm().
 * @return false when something has come: do not sleep
 */
MUST_USE bool drive_net_arm(struct drive_net *net, bool sends_wait);

/**
 * After a sleep: clear the interrupt lines that are up, BIT(SOC_IRQ_...).
 *
 * @return whether a link may have changed: drive_net_step() looks at it
 */
bool drive_net_irqs(struct drive_net *net, uint32_t irqs);

#endif
