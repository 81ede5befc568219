/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/drive_address.h"

#include <string.h>

_Static_assert(2 * CONFIG_PORTS + CONFIG_EXTRA_ADDRESSES == NET_CONFIGURED,
               "a place for each that can be configured");

static uint16_t vlan_of(uint16_t vlan)
{
    return vlan != 0 ? vlan : NET_VLAN_UNTAGGED;
}

static void list_port(const struct config *config, uint8_t i,
                      struct net_address_config *list)
{
    const struct config_port *port = &config->port[i];
    struct net_address_config common = {
        .vlan = vlan_of(port->vlan),
        .port = i,
        .is_probed = port->is_probed,
    };

    if (port->has_ipv4 && !config->services.has_dhcp[i]) {
        list[i] = common;
        list[i].ip = ip_addr_from_v4(get_be32(port->ipv4));
        list[i].prefix_bits = port->ipv4_prefix;
    }
    if (port->has_ipv6) {
        list[NET_PORTS + i] = common;
        list[NET_PORTS + i].ip = ip_addr_from_bytes(port->ipv6);
        list[NET_PORTS + i].prefix_bits = port->ipv6_prefix;
    }
}

void drive_address_list(const struct config *config,
                        struct net_address_config list[NET_CONFIGURED])
{
    memset(list, 0, NET_CONFIGURED * sizeof(list[0]));
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        list_port(config, i, list);
    }
    for (uint8_t i = 0; i < CONFIG_EXTRA_ADDRESSES; i++) {
        const struct config_address *extra = &config->network.extra[i];

        if (extra->is_used) {
            list[2 * NET_PORTS + i] = (struct net_address_config){
                .ip = ip_addr_from_bytes(extra->ip),
                .vlan = vlan_of(extra->vlan),
                .port = extra->port,
                .is_probed = config->port[extra->port].is_probed,
                .prefix_bits = extra->prefix,
            };
        }
    }
    for (uint8_t i = 0; i < NET_CONFIGURED; i++) {
        if (config->network.lag != CONFIG_LAG_OFF) {
            list[i].port = 0; /* all addresses belong to the aggregate */
        }
    }
}

bool drive_address_is_same(const struct net_address_config *a,
                           const struct net_address_config *b)
{
    return ip_addr_equal(&a->ip, &b->ip) && a->vlan == b->vlan &&
           a->port == b->port && a->is_probed == b->is_probed &&
           a->prefix_bits == b->prefix_bits;
}

static bool is_in(const struct net_address_config *list,
                  const struct net_address_config *wanted)
{
    for (size_t i = 0; i < NET_CONFIGURED; i++) {
        if (drive_address_is_same(&list[i], wanted)) {
            return true;
        }
    }
    return false;
}

/*
 * Find the index of a configured address.
 * @return -1 when it is unknown, or when SLAAC or a lease provides it now
 */
static int find_configured(const struct net_stack *stack,
                           const struct net_address_config *own)
{
    int local = net_stack_local(stack, own->port, own->vlan, &own->ip);

    return local >= 0 && local < NET_CONFIGURED &&
                   !stack->addresses[local].is_auto &&
                   !stack->addresses[local].config.is_leased
               ? local
               : -1;
}

void drive_address_remove(struct net_stack *stack, const struct config *before,
                          const struct net_address_config after[NET_CONFIGURED])
{
    struct net_address_config old[NET_CONFIGURED];

    drive_address_list(before, old);
    for (size_t i = 0; i < NET_CONFIGURED; i++) {
        int local = find_configured(stack, &old[i]);

        if (local >= 0 && !is_in(after, &old[i])) {
            net_stack_address_remove(stack, (uint8_t)local);
        }
    }
}

bool drive_address_add(struct net_stack *stack,
                       const struct net_address_config list[NET_CONFIGURED],
                       uint64_t now_us)
{
    bool are_all_there = true;

    for (size_t i = 0; i < NET_CONFIGURED; i++) {
        if (!ip_addr_is_unspecified(&list[i].ip) &&
            find_configured(stack, &list[i]) < 0 &&
            net_stack_address_add(stack, &list[i], now_us) < 0) {
            are_all_there = false;
        }
    }
    return are_all_there;
}
