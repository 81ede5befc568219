/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the physical ports receive besides frames for their own addresses: the
 * VLANs that the stack uses, and the multicast groups that it is in.
 */
#ifndef ESSD_NET_NODE_FILTERS_H
#define ESSD_NET_NODE_FILTERS_H

#include "firmware/net/node_ports.h"

struct node_filters {
    struct node_ports *ports;
    const struct net_stack *stack;
    /*
     * The VLAN that each physical port is configured with; 0: none.  It is in
     * use even without an address, because DHCP and router advertisements need
     * it.
     */
    uint16_t base_vlan[NET_PORTS];
};

/**
 * @param ports, stack  outlive the filters; the stack may be initialised later
 */
void node_filters_init(struct node_filters *filters, struct node_ports *ports,
                       const struct net_stack *stack);

/** Set the VLAN that a physical port is configured with; 0: none. */
void node_filters_set_base_vlan(struct node_filters *filters, uint8_t port,
                                uint16_t vlan);

/**
 * Make the physical ports of a stack port members of a VLAN while the stack
 * uses that VLAN, and end the membership afterwards.
 *
 * @param vlan  0 and NET_VLAN_UNTAGGED do nothing
 */
void node_filters_update_vlan(struct node_filters *filters, uint8_t stack_port,
                              uint16_t vlan);

/** Make the ports receive the multicast groups that the stack is in now. */
void node_filters_update_groups(struct node_filters *filters);

#endif
