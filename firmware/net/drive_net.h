/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network node: two ports, control-traffic stack, RNIC and connection
 * manager, and the frames, links, addresses and neighbours that they exchange.
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
    const struct identity *identity; /* these two: during init() only */
    const struct config *config;
    uint32_t generation;
    uint64_t random_seed;
    uintptr_t port_regs[NET_PORTS];
    uintptr_t rnic_regs;
    uintptr_t lag_regs;
    uint8_t initiator_depth;     /* READs of ours outstanding */
    uint8_t responder_resources; /* READs of a peer's */
    const struct trace *trace;   /* NULL: nothing is traced */
};

/* Treat as opaque, but for verbs, stack and cm. */
struct drive_net {
    struct log *log;
    uint64_t now_us; /* of the main loop's turn */
    struct verbs verbs;
    struct net_stack stack;
    struct cm cm;
    struct node_ports ports;
    struct separate_ports separate; /* one of these two is in use */
    struct drive_lag lag;
    struct node_filters filters;
    struct node_paths paths;
    bool has_laddr[NET_CONFIGURED]; /* the RNIC knows that address */
    uint32_t address_changes;       /* counts them, for those who follow */
    struct net_address_config configured[NET_CONFIGURED];
    bool has_refused;         /* there was no room for one of those ... */
    uint32_t refused_changes; /* ... after so many changes */
    bool has_dhcp[NET_PORTS]; /* its VLAN is chosen when the drive starts */
};

/** @return INIT_OK, or what does not start and why */
MUST_USE struct init_report drive_net_init(
    struct drive_net *net, const struct drive_net_config *config,
    uint64_t now_us);

/** Let the ports receive the groups that the stack is in now. */
void drive_net_set_groups(struct drive_net *net);

/** See node_ports_set_link(). */
MUST_USE bool drive_net_set_link(struct drive_net *net, uint8_t port,
                                 uint8_t speed_gbps, enum config_fec fec);

void drive_net_disable_link(struct drive_net *net, uint8_t port);

void drive_net_link(const struct drive_net *net, uint8_t port,
                    struct port_link *link);

/** The stack's port: with link aggregation 0 is the aggregate, 1 is nothing. */
bool drive_net_is_up(const struct drive_net *net, uint8_t port);

/**
 * Go over from one configuration to another one, as far as that can be at once:
 * addresses, gateways, PFC, RoCE v1.  An address that the drive has already, by
 * DHCP or of a router, or that finds eight others, waits until
 * drive_net_settle() has a place for it.
 */
void drive_net_apply(struct drive_net *net, const struct config *before,
                     const struct config *after);

/** After the addresses may have changed: those that wait. */
void drive_net_settle(struct drive_net *net);

uint64_t drive_net_counter(const struct drive_net *net, uint8_t port,
                           enum port_counter counter);

/** Enable the interrupts of the ports. */
void drive_net_start(struct drive_net *net);

/**
 * Completions and events of the RNIC, frames, links, timers.
 *
 * @param budget       completions at most
 * @param deadline_us  when to call it again at the latest
 * @return whether anything was done
 */
bool drive_net_step(struct drive_net *net, uint64_t now_us, unsigned int budget,
                    uint64_t *deadline_us);

/** Send what has been posted since the last call. */
void drive_net_flush(struct drive_net *net);

/** Before sleeping, see verbs_arm(). @return false when something has come */
MUST_USE bool drive_net_arm(struct drive_net *net, bool sends_wait);

/** After a sleep: take back the interrupt lines that are up, BIT(SOC_IRQ_...).
 */
void drive_net_irqs(struct drive_net *net, uint32_t irqs);

#endif
