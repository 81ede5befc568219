/* SPDX-License-Identifier: BSD-2-Clause */
/* The control-traffic stack's public functions: see stack.h. */
#include "net/stack/internal.h"

#include "net/wire/nd.h"

enum { MTU_MIN = 1280 };

void net_stack_init(struct net_stack *stack,
                    const struct net_stack_config *config)
{
    ASSERT(config->tx_begin != NULL && config->tx_commit != NULL);
    for (size_t i = 0; i < NET_PORTS; i++) {
        ASSERT(config->ports[i].mtu_bytes >= MTU_MIN &&
               config->ports[i].mtu_bytes <= NET_MTU_MAX);
    }
    memset(stack, 0, sizeof(*stack));
    stack->config = *config;
    stack->random = config->random_seed;
    stack->fragment_due_us = UINT64_MAX;
    net_limit_init(stack);
    net_router_init(stack);
    net_address_init(stack);
    net_neigh_init(stack);
}

void net_stack_set_tcp(struct net_stack *stack, bool is_served)
{
    stack->has_tcp = is_served;
}

bool net_stack_input(struct net_stack *stack, uint8_t port,
                     const uint8_t *frame, size_t len, uint64_t now_us)
{
    struct net_rx rx = {.now_us = now_us, .port = port};

    ASSERT(port < NET_PORTS);
    rx.answer = net_tx_begin(stack, port);
    if (rx.answer == NULL) {
        return false;
    }
    net_count(stack, port, NET_RX_FRAMES);
    if (!eth_parse(&rx.eth, frame, len)) {
        net_count(stack, port, NET_DROP_SHORT);
        return true;
    }
    if (!net_mac_is_station(stack, port, &rx.eth.src)) {
        net_count(stack, port, NET_DROP_SOURCE_MAC);
        return true;
    }
    rx.vlan = rx.eth.vlan != 0 ? rx.eth.vlan : NET_VLAN_UNTAGGED;
    rx.l3 = frame + eth_header_len(&rx.eth);
    rx.l3_len = len - eth_header_len(&rx.eth);
    switch (rx.eth.type) {
    case ETHERTYPE_ARP:
        net_arp_input(stack, &rx);
        break;
    case ETHERTYPE_IPV4:
        net_ipv4_input(stack, &rx);
        break;
    case ETHERTYPE_IPV6:
        net_ipv6_input(stack, &rx);
        break;
    default:
        net_ether_input(stack, &rx);
        break;
    }
    return true;
}

uint64_t net_stack_timer(struct net_stack *stack, uint64_t now_us)
{
    /* The router timer comes first, because it may remove addresses. */
    uint64_t router_us = net_router_timer(stack, now_us);
    uint64_t address_us = net_address_timer(stack, now_us);
    uint64_t neigh_us = net_neigh_timer(stack, now_us);
    uint64_t fragment_us = net_fragment_timer(stack, now_us);

    return MIN(MIN(router_us, address_us), MIN(neigh_us, fragment_us));
}

void net_stack_link(struct net_stack *stack, uint8_t port, bool is_up,
                    uint64_t now_us)
{
    ASSERT(port < NET_PORTS);
    if (stack->link_up[port] == is_up) {
        return;
    }
    stack->link_up[port] = is_up;
    net_address_link(stack, port, is_up, now_us);
    net_neigh_link(stack, port, now_us);
    net_router_link(stack, port, is_up, now_us);
}

void net_stack_set_link4(struct net_stack *stack, uint8_t port,
                         const struct ip_addr *gateway, uint16_t mtu_bytes)
{
    struct net_port_config *config = &stack->config.ports[port];

    ASSERT(mtu_bytes == 0 ||
           (mtu_bytes >= MTU_MIN && mtu_bytes <= config->mtu_bytes));
    config->gateway4 = *gateway;
    stack->mtu4_bytes[port] = mtu_bytes;
}

void net_stack_set_gateway6(struct net_stack *stack, uint8_t port,
                            const struct ip_addr *gateway)
{
    ASSERT(port < NET_PORTS);
    stack->config.ports[port].gateway6 = *gateway;
}

void net_stack_set_priority(struct net_stack *stack, uint8_t port,
                            uint8_t priority)
{
    ASSERT(port < NET_PORTS && priority < 8);
    stack->config.ports[port].priority = priority;
}

void net_stack_group_join(struct net_stack *stack, const struct ip_addr *group,
                          uint64_t now_us)
{
    size_t at = NET_GROUPS;

    for (size_t i = 0; i < NET_GROUPS; i++) {
        if (ip_addr_equal(&stack->groups[i], group)) {
            return;
        }
        if (ip_addr_is_unspecified(&stack->groups[i])) {
            at = i;
        }
    }
    ASSERT(at < NET_GROUPS);
    stack->groups[at] = *group;
    if (ip_addr_is_v4(group)) {
        return;
    }
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        if (net_stack_is_usable(stack, local) &&
            !ip_addr_is_v4(&stack->addresses[local].config.ip)) {
            net_mld_join(stack, local, now_us);
        }
    }
}

void net_stack_group_leave(struct net_stack *stack, const struct ip_addr *group)
{
    for (size_t i = 0; i < NET_GROUPS; i++) {
        if (ip_addr_equal(&stack->groups[i], group)) {
            stack->groups[i] = (struct ip_addr){{0}};
        }
    }
}

size_t net_stack_multicast(const struct net_stack *stack, uint8_t port,
                           struct mac_addr macs[NET_MULTICAST])
{
    static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
    size_t count = 0;

    macs[count++] = nd_multicast_mac(&all_nodes);
    for (size_t i = 0; i < NET_ETHER_BINDINGS; i++) {
        if (stack->ether[i].handler != NULL &&
            !mac_addr_is_zero(&stack->ether[i].group)) {
            macs[count++] = stack->ether[i].group;
        }
    }
    for (size_t i = 0; i < NET_GROUPS; i++) {
        if (!ip_addr_is_unspecified(&stack->groups[i])) {
            macs[count++] = net_group_mac(&stack->groups[i]);
        }
    }
    for (size_t i = 0; i < NET_ADDRESSES; i++) {
        const struct net_address *own = &stack->addresses[i];
        struct ip_addr group = nd_solicited_node(&own->config.ip);
        struct mac_addr mac = nd_multicast_mac(&group);
        bool is_known = false;

        if (own->state == ADDRESS_UNUSED || own->config.port != port ||
            ip_addr_is_v4(&own->config.ip)) {
            continue;
        }
        for (size_t n = 0; n < count; n++) {
            is_known = is_known || mac_addr_equal(&macs[n], &mac);
        }
        if (!is_known) {
            macs[count++] = mac;
        }
    }
    return count;
}
