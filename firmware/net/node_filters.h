/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the physical ports let in besides their own address: the VLANs that the
 * stack uses, and the multicast groups that it is in.
 */
#ifndef ESSD_NET_NODE_FILTERS_H
#define ESSD_NET_NODE_FILTERS_H

#include "firmware/net/node_ports.h"

struct node_filters {
    struct node_ports *ports;
    const struct net_stack *stack;
    /* By physical port: the VLAN that it is configured with, in use even
     * without an address (DHCP asks there, routers advertise there); 0: none */
    uint16_t base_vlan[NET_PORTS];
};

/** @param ports, stack  stay; the stack may be initialised later */
void node_filters_init(struct node_filters *filters, struct node_ports *ports,
                       const struct net_stack *stack);

/** Another VLAN in which a physical port is configured; 0: none. */
void node_filters_set_base_vlan(struct node_filters *filters, uint8_t port,
                                uint16_t vlan);

/**
 * Frames of a VLAN may be wanted now, or not any more: make the physical ports
 * of a port of the stack members of it for as long as it is used.
 *
 * @param vlan  0 and NET_VLAN_UNTAGGED: nothing to do
 */
void node_filters_update_vlan(struct node_filters *filters, uint8_t stack_port,
                              uint16_t vlan);

/** Let the ports receive the groups that the stack is in now. */
void node_filters_update_groups(struct node_filters *filters);

#endif
