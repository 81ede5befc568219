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
    uint8_t path_mtu; /* enum ib_mtu: the largest that the port carries */
    bool is_up;
    bool check_link; /* the link may have changed */
    uint8_t reason;  /* enum port_link_reason, as last logged */
};

/* Treat as opaque, but for reading. */
struct node_ports {
    struct log *log;
    struct net_stack *stack;
    struct attachment attachment;
    struct node_port port[NET_PORTS];
    uint8_t tx_port[NET_PORTS]; /* where the stack's last buffer was taken */
};

/* How one port starts. */
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
    struct net_stack *stack; /* initialised later; stays */
    struct attachment attachment;
    struct node_port_config port[NET_PORTS];
    uint8_t pfc_priorities; /* BIT(priority) */
    bool has_roce_v1;
};

/** @return INIT_OK, or which port does not start and why */
MUST_USE struct init_report node_ports_init(
    struct node_ports *ports, const struct node_ports_config *config);

/**
 * Enable a port with this speed and FEC.  The ports run at one speed.
 *
 * @return false when the port refuses: it goes on as it was
 */
MUST_USE bool node_ports_set_link(struct node_ports *ports, uint8_t port,
                                  uint8_t speed_gbps, enum config_fec fec);

/**
 * Look at a link that may have changed; log what has, and tell the stack.
 *
 * @return the speed in Mb/s of a link that has come up, else 0
 */
uint32_t node_ports_check_link(struct node_ports *ports, uint8_t port,
                               uint64_t now_us);

/** Hand what a port has received to the stack, `budget` frames at most.
 * @return whether there was any */
bool node_ports_receive(struct node_ports *ports, uint8_t port,
                        unsigned int budget, uint64_t now_us);

/** The stack's tx_begin: a frame's buffer, or NULL when the ring is full. */
uint8_t *node_ports_tx_begin(struct node_ports *ports, uint8_t stack_port);

/** The stack's tx_commit: send what tx_begin's buffer holds. */
void node_ports_tx_commit(struct node_ports *ports, uint8_t stack_port,
                          size_t len, uint8_t priority);

#endif
