/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our own addresses: whether they may be used, and telling the link about them.
 * Spec: RFC 5227 sections 2.3 and 2.4 (c), RFC 4862 section 5.4, RFC 4429.
 */
#include "net/stack/internal.h"

#include "net/wire/nd.h"

enum { TX_RETRY_US = 1000 };

/* Where each state may go; DOWN is reachable from every one. */
static const uint8_t address_next[ADDRESS_STATES] = {
    [ADDRESS_DOWN] = BIT(ADDRESS_OPTIMISTIC) | BIT(ADDRESS_ANNOUNCING),
    [ADDRESS_OPTIMISTIC] = BIT(ADDRESS_ANNOUNCING) | BIT(ADDRESS_DUPLICATE),
    [ADDRESS_ANNOUNCING] = BIT(ADDRESS_READY),
};

/* The only writer of address->state. */
static void address_enter(struct net_address *address, enum address_state next,
                          uint64_t deadline_us)
{
    ASSERT((address_next[address->state] | BIT(ADDRESS_DOWN)) & BIT(next));
    address->state = (uint8_t)next;
    address->tries = 0;
    address->deadline_us = deadline_us;
}

/* splitmix64: spreads drives that were switched on together. */
static uint64_t random_below(struct net_stack *stack, uint64_t limit)
{
    uint64_t x = stack->random += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (x ^ x >> 31) % limit;
}

static void add(struct net_stack *stack, uint8_t local,
                const struct net_address_config *config)
{
    struct net_address *address = &stack->addresses[local];

    ASSERT(config->port < NET_PORTS);
    ASSERT(config->prefix_bits <= (ip_addr_is_v4(&config->ip) ? 32 : 128));
    address->config = *config;
    address_enter(address, ADDRESS_DOWN, UINT64_MAX);
}

void net_address_init(struct net_stack *stack)
{
    for (uint8_t local = 0; local < NET_CONFIGURED; local++) {
        if (!ip_addr_is_unspecified(&stack->config.addresses[local].ip)) {
            add(stack, local, &stack->config.addresses[local]);
        }
    }
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        struct net_address_config link_local = {
            .ip = nd_link_local(&stack->config.ports[port].mac),
            .vlan = NET_VLAN_UNTAGGED,
            .port = port,
            .prefix_bits = 64,
        };

        if (net_stack_local(stack, port, NET_VLAN_UNTAGGED, &link_local.ip) <
            0) {
            add(stack, (uint8_t)(NET_CONFIGURED + port), &link_local);
        }
    }
}

int net_stack_local(const struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip)
{
    for (int local = 0; local < NET_ADDRESSES; local++) {
        const struct net_address *address = &stack->addresses[local];

        if (address->state != ADDRESS_UNUSED && address->config.port == port &&
            address->config.vlan == vlan &&
            ip_addr_equal(&address->config.ip, ip)) {
            return local;
        }
    }
    return NET_NOT_OURS;
}

int net_address_usable(const struct net_stack *stack, uint8_t port,
                       uint16_t vlan, const struct ip_addr *ip)
{
    int local = net_stack_local(stack, port, vlan, ip);

    return local >= 0 && net_stack_is_usable(stack, (uint8_t)local)
               ? local
               : NET_NOT_OURS;
}

int net_address_on_link(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip)
{
    bool v4 = ip_addr_is_v4(ip);

    for (int local = 0; local < NET_ADDRESSES; local++) {
        const struct net_address *address = &stack->addresses[local];
        unsigned bits = address->config.prefix_bits + (v4 ? 96u : 0u);

        if (net_stack_is_usable(stack, (uint8_t)local) &&
            address->config.port == port && address->config.vlan == vlan &&
            ip_addr_is_v4(&address->config.ip) == v4 &&
            ip_addr_prefix_equal(&address->config.ip, ip, bits)) {
            return local;
        }
    }
    return NET_NOT_OURS;
}

static size_t announcement(const struct net_stack *stack, uint8_t local,
                           uint8_t *frame)
{
    return ip_addr_is_v4(&stack->addresses[local].config.ip)
               ? net_arp_announce(stack, local, frame)
               : net_nd_announce(stack, local, frame);
}

void net_address_link(struct net_stack *stack, uint8_t port, bool is_up,
                      uint64_t now_us)
{
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->state == ADDRESS_UNUSED || address->config.port != port) {
            continue;
        }
        address_enter(address, ADDRESS_DOWN, UINT64_MAX);
        address->has_defended = false;
        if (!is_up) {
            continue;
        }
        if (ip_addr_is_v4(&address->config.ip)) {
            address_enter(address, ADDRESS_ANNOUNCING, now_us);
        } else {
            address_enter(address, ADDRESS_OPTIMISTIC,
                          now_us + random_below(stack, ADDRESS_DAD_DELAY_US));
        }
    }
}

/* A deadline has passed; there is a buffer to send from. */
static void step(struct net_stack *stack, uint8_t local, uint8_t *frame,
                 uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];
    uint8_t port = address->config.port;

    if (address->state == ADDRESS_OPTIMISTIC && address->tries == 0) {
        net_tx_commit(stack, port, net_nd_detect_duplicate(stack, local, frame),
                      0);
        address->tries = 1;
        address->deadline_us = now_us + ADDRESS_DAD_US;
        return;
    }
    if (address->state == ADDRESS_OPTIMISTIC) {
        address_enter(address, ADDRESS_ANNOUNCING, now_us);
    }
    net_tx_commit(stack, port, announcement(stack, local, frame), 0);
    address->tries++;
    address->deadline_us = now_us + ADDRESS_ANNOUNCE_US;
    if (address->tries == ADDRESS_ANNOUNCEMENTS) {
        address_enter(address, ADDRESS_READY, UINT64_MAX);
    }
}

uint64_t net_address_timer(struct net_stack *stack, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->state != ADDRESS_OPTIMISTIC &&
            address->state != ADDRESS_ANNOUNCING) {
            continue;
        }
        if (address->deadline_us <= now_us) {
            uint8_t *frame = net_tx_begin(stack, address->config.port);

            if (frame == NULL) {
                next_us = MIN(next_us, now_us + TX_RETRY_US);
                continue;
            }
            step(stack, local, frame, now_us);
        }
        next_us = MIN(next_us, address->deadline_us);
    }
    return next_us;
}

void net_address_conflict(struct net_stack *stack, uint8_t local,
                          const struct mac_addr *mac, uint8_t *frame,
                          uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];

    net_count(stack, address->config.port, NET_ADDRESS_CONFLICTS);
    if (stack->config.address_conflict != NULL) {
        stack->config.address_conflict(stack->config.ctx, local, mac);
    }
    if (address->state == ADDRESS_OPTIMISTIC) {
        address_enter(address, ADDRESS_DUPLICATE, UINT64_MAX);
        return;
    }
    /* RFC 5227 section 2.4 (c): keep the address, object, but not for ever. */
    if (!net_stack_is_usable(stack, local) ||
        (address->has_defended &&
         now_us - address->defended_us < ADDRESS_DEFEND_US)) {
        return;
    }
    address->has_defended = true;
    address->defended_us = now_us;
    net_tx_commit(stack, address->config.port,
                  announcement(stack, local, frame), 0);
}
