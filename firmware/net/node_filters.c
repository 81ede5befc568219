/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/node_filters.h"

static uint8_t stack_port_of(const struct node_filters *filters, uint8_t port)
{
    return filters->ports->attachment.ops->stack_port(port);
}

/* Whether a port of the stack uses a VLAN. */
static bool is_vlan_used(const struct node_filters *filters, uint8_t stack_port,
                         uint16_t vlan)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (stack_port_of(filters, i) == stack_port &&
            filters->base_vlan[i] == vlan) {
            return true;
        }
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        const struct net_address *address = &filters->stack->addresses[i];

        if (address->state != ADDRESS_UNUSED &&
            address->config.port == stack_port &&
            address->config.vlan == vlan) {
            return true;
        }
    }
    return false;
}

void node_filters_update_vlan(struct node_filters *filters, uint8_t stack_port,
                              uint16_t vlan)
{
    bool is_used;

    if (vlan == 0 || vlan == NET_VLAN_UNTAGGED) {
        return;
    }
    is_used = is_vlan_used(filters, stack_port, vlan);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        if (stack_port_of(filters, i) == stack_port) {
            port_set_vlan(&filters->ports->port[i].port, vlan, is_used);
        }
    }
}

void node_filters_set_base_vlan(struct node_filters *filters, uint8_t port,
                                uint16_t vlan)
{
    uint8_t stack_port = stack_port_of(filters, port);
    uint16_t before = filters->base_vlan[port];

    filters->base_vlan[port] = vlan;
    node_filters_update_vlan(filters, stack_port, before);
    node_filters_update_vlan(filters, stack_port, vlan);
}

void node_filters_update_groups(struct node_filters *filters)
{
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct mac_addr groups[NET_MULTICAST];
        size_t count = net_stack_multicast(filters->stack,
                                           stack_port_of(filters, i), groups);

        for (size_t k = 0; k < NET_MULTICAST; k++) {
            port_set_multicast(&filters->ports->port[i].port, (unsigned int)k,
                               k < count ? groups[k].bytes : NULL);
        }
    }
}

void node_filters_init(struct node_filters *filters, struct node_ports *ports,
                       const struct net_stack *stack)
{
    *filters = (struct node_filters){.ports = ports, .stack = stack};
}
