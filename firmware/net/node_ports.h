/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two physical ports of a node: their links, and the raw frames that pass
 * between them and the network stack.
 */
#ifndef ESSD_NET_NODE_PORTS_H
#define ESSD_NET_NODE_PORTS_H

#include "firmware/drivers/port.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/log.h"
#include "firmware/net/attachment.h"
#include "firmware/store/config.h"

struct node_port {
    struct port port;
    /* Enum ib_mtu: the largest path MTU that the port carries. */
    uint8_t path_mtu;
    bool is_up;
    bool check_link; /* the link may have changed */
    uint8_t reason;  /* enum port_link_reason that was logged last */
};

/* Treat the fields as read-only. */
struct node_ports {
    struct log *log;
    struct net_stack *stack;
    struct attachment attachment;
    struct node_port port[NET_PORTS];
    uint8_t tx_port[NET_PORTS]; /* the port whose buffer the stack took last */
};

/* How one port is set up at the start. */
struct node_port_config {
    uintptr_t regs;
    const uint8_t *mac;
    uint16_t mtu_bytes;
    uint8_t speed_gbps;
    enum config_fec fec;
};

struct node_ports_config {
    struct log *log;
    struct dram *dram;
    struct net_stack *stack; /* initialised later; outlives the ports */
    struct attachment attachment;
    struct node_port_config port[NET_PORTS];
    /* Priorities whose pauses are honoured, BIT(priority). */
    uint8_t pfc_priorities;
    bool has_roce_v1;
};

/** @return INIT_OK, or which port does not start and why */
MUST_USE struct init_report node_ports_init(
    struct node_ports *ports, const struct node_ports_config *config);

/**
 * Enable a port with this speed and FEC.  Both ports run at the same speed.
 *
 * @return false when the port refuses; its link is unchanged
 */
MUST_USE bool node_ports_set_link(struct node_ports *ports, uint8_t port,
                                  uint8_t speed_gbps, enum config_fec fec);

/**
 * Read a link that may have changed, log the change, and tell the stack.
 *
 * @return the speed in Mb/s of a link that has come up, else 0
 */
uint32_t node_ports_check_link(struct node_ports *ports, uint8_t port,
                               uint64_t now_us);

/**
 * Pass at most `budget` received frames of a port to the stack.
 * @return whether there were any
 */
bool node_ports_receive(struct node_ports *ports, uint8_t port,
                        unsigned int budget, uint64_t now_us);

/**
 * The stack's tx_begin: return a buffer for a frame, or NULL when the ring is
 * full.
 */
uint8_t *node_ports_tx_begin(struct node_ports *ports, uint8_t stack_port);

/** The stack's tx_commit: send the frame in the buffer of tx_begin. */
void node_ports_tx_commit(struct node_ports *ports, uint8_t stack_port,
                          size_t len, uint8_t priority);

#endif
