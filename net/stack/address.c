/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's own addresses: duplicate detection, announcement and defence.
 * Spec: RFC 5227 sections 2.1, 2.3 and 2.4 (c), RFC 4862 section 5.4, RFC 4429;
 * RFC 3927 section 2.5 for addresses with is_yielding.
 */
#include "net/stack/internal.h"

#include "lib/random.h"
#include "net/wire/nd.h"

enum { TX_RETRY_US = 1000 };

/* Allowed transitions; every state may also go to DOWN and UNUSED. */
static const uint8_t address_next[ADDRESS_STATES] = {
    [ADDRESS_DOWN] = BIT(ADDRESS_TENTATIVE) | BIT(ADDRESS_OPTIMISTIC) |
                     BIT(ADDRESS_ANNOUNCING),
    [ADDRESS_TENTATIVE] = BIT(ADDRESS_ANNOUNCING) | BIT(ADDRESS_DUPLICATE),
    [ADDRESS_OPTIMISTIC] = BIT(ADDRESS_ANNOUNCING) | BIT(ADDRESS_DUPLICATE),
    [ADDRESS_ANNOUNCING] = BIT(ADDRESS_READY) | BIT(ADDRESS_DUPLICATE),
    [ADDRESS_READY] = BIT(ADDRESS_ANNOUNCING) | BIT(ADDRESS_DUPLICATE),
    [ADDRESS_DUPLICATE] = BIT(ADDRESS_TENTATIVE),
};

static void report_change(struct net_stack *stack, uint8_t local)
{
    if (stack->config.address_changed != NULL) {
        stack->config.address_changed(stack->config.ctx, local);
    }
}

/* The only writer of address->state. */
static void address_enter(struct net_stack *stack, uint8_t local,
                          enum address_state next, uint64_t deadline_us)
{
    struct net_address *address = &stack->addresses[local];
    uint8_t always = BIT(ADDRESS_DOWN) | BIT(ADDRESS_UNUSED);
    bool was_assigned = address->is_assigned;

    ASSERT((address_next[address->state] | always) & BIT(next));
    address->state = (uint8_t)next;
    address->tries = 0;
    address->deadline_us = deadline_us;
    net_due(&stack->address_due_us, deadline_us);
    if (next == ADDRESS_DOWN || next == ADDRESS_UNUSED) {
        address->mld_left = 0;
    }
    address->is_assigned =
        net_stack_is_usable(stack, local) ||
        (was_assigned && next != ADDRESS_DUPLICATE && next != ADDRESS_UNUSED);
    if (address->is_assigned != was_assigned) {
        report_change(stack, local);
    }
}

uint64_t net_random_below(struct net_stack *stack, uint64_t limit)
{
    return random_next(&stack->random) % limit;
}

static void address_add(struct net_stack *stack, uint8_t local,
                        const struct net_address_config *config)
{
    struct net_address *address = &stack->addresses[local];

    ASSERT(config->port < NET_PORTS);
    ASSERT(config->prefix_bits <= (ip_addr_is_v4(&config->ip) ? 32 : 128));
    *address = (struct net_address){.config = *config};
    address_enter(stack, local, ADDRESS_DOWN, UINT64_MAX);
}

void net_address_init(struct net_stack *stack)
{
    stack->address_due_us = UINT64_MAX;
    for (uint8_t local = 0; local < NET_CONFIGURED; local++) {
        if (!ip_addr_is_unspecified(&stack->config.addresses[local].ip)) {
            address_add(stack, local, &stack->config.addresses[local]);
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
            address_add(stack, (uint8_t)(NET_CONFIGURED + port), &link_local);
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
            (ip_addr_prefix_equal(&address->config.ip, ip, bits) ||
             (!v4 && ip_addr_is_link_local(ip)))) {
            return local;
        }
    }
    return NET_NOT_OURS;
}

static size_t announcement_emit(const struct net_stack *stack, uint8_t local,
                                uint8_t *frame)
{
    return ip_addr_is_v4(&stack->addresses[local].config.ip)
               ? net_arp_announce(stack, local, frame)
               : net_nd_announce(stack, local, frame);
}

/* The link is up: probe the address, or use it at once. */
static void start_address(struct net_stack *stack, uint8_t local,
                          uint64_t now_us)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    bool v4 = ip_addr_is_v4(&own->ip);

    if (!v4) { /* join the group first, or no objection may reach us */
        net_mld_join(stack, local, now_us);
    }
    if (own->is_probed) {
        address_enter(stack, local, ADDRESS_TENTATIVE,
                      now_us +
                          net_random_below(stack, v4 ? ADDRESS_PROBE_WAIT_US
                                                     : ADDRESS_DAD_DELAY_US));
    } else if (v4) {
        address_enter(stack, local, ADDRESS_ANNOUNCING, now_us);
    } else {
        address_enter(stack, local, ADDRESS_OPTIMISTIC,
                      now_us + net_random_below(stack, ADDRESS_DAD_DELAY_US));
    }
}

void net_address_link(struct net_stack *stack, uint8_t port, bool is_up,
                      uint64_t now_us)
{
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->state == ADDRESS_UNUSED || address->config.port != port) {
            continue;
        }
        address_enter(stack, local, ADDRESS_DOWN, UINT64_MAX);
        address->has_defended = false;
        if (is_up) {
            start_address(stack, local, now_us);
        }
    }
}

void net_stack_announce(struct net_stack *stack, uint8_t port, uint64_t now_us)
{
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->config.port != port ||
            !net_stack_is_usable(stack, local)) {
            continue;
        }
        if (!ip_addr_is_v4(&address->config.ip)) {
            net_mld_join(stack, local, now_us);
        }
        if (address->state == ADDRESS_READY) {
            address_enter(stack, local, ADDRESS_ANNOUNCING, now_us);
        } else if (address->state == ADDRESS_ANNOUNCING) {
            address->tries = 0;
            address->deadline_us = now_us;
            net_due(&stack->address_due_us, now_us);
        }
    }
}

int net_stack_address_add(struct net_stack *stack,
                          const struct net_address_config *config,
                          uint64_t now_us)
{
    if (net_stack_local(stack, config->port, config->vlan, &config->ip) >= 0) {
        return NET_NOT_OURS;
    }
    for (uint8_t local = 0; local < NET_CONFIGURED; local++) {
        if (stack->addresses[local].state == ADDRESS_UNUSED) {
            address_add(stack, local, config);
            report_change(stack, local);
            if (stack->link_up[config->port]) {
                start_address(stack, local, now_us);
            }
            return local;
        }
    }
    net_count(stack, config->port, NET_ADDRESS_REFUSED);
    return NET_NOT_OURS;
}

void net_stack_address_remove(struct net_stack *stack, uint8_t local)
{
    struct net_address *address = &stack->addresses[local];
    bool was_assigned = address->is_assigned;

    ASSERT(local < NET_CONFIGURED && address->state != ADDRESS_UNUSED);
    address_enter(stack, local, ADDRESS_UNUSED, UINT64_MAX);
    if (!was_assigned) { /* otherwise address_enter() has reported it */
        report_change(stack, local);
    }
    address->config = (struct net_address_config){.port = address->config.port};
}

void net_stack_address_set_prefix(struct net_stack *stack, uint8_t local,
                                  uint8_t prefix_bits)
{
    struct net_address *address = &stack->addresses[local];

    ASSERT(local < NET_CONFIGURED && address->state != ADDRESS_UNUSED);
    ASSERT(prefix_bits <= (ip_addr_is_v4(&address->config.ip) ? 32 : 128));
    address->config.prefix_bits = prefix_bits;
}

/* One probe: RFC 5227 section 2.1.1, or RFC 4862 section 5.4.2. */
static void address_probe(struct net_stack *stack, uint8_t local,
                          uint8_t *frame, uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];
    bool v4 = ip_addr_is_v4(&address->config.ip);
    size_t len = v4 ? net_arp_probe(stack, local, frame)
                    : net_nd_detect_duplicate(stack, local, frame);

    net_tx_commit(stack, address->config.port, len, 0);
    address->tries++;
    if (!v4) {
        address->deadline_us = now_us + ADDRESS_DAD_US;
    } else if (address->tries < ADDRESS_PROBES) {
        address->deadline_us = now_us + ADDRESS_PROBE_US +
                               net_random_below(stack, ADDRESS_PROBE_US);
    } else {
        address->deadline_us = now_us + ADDRESS_SETTLE_US;
    }
}

static bool is_asked(const struct net_address *address)
{
    return address->tries >=
           (ip_addr_is_v4(&address->config.ip) ? ADDRESS_PROBES : 1);
}

/* The address' deadline has passed; `frame` is a transmit buffer. */
static void address_step(struct net_stack *stack, uint8_t local, uint8_t *frame,
                         uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];

    if (address->state == ADDRESS_DUPLICATE) {
        address_enter(stack, local, ADDRESS_TENTATIVE, now_us);
    }
    if (address->state != ADDRESS_ANNOUNCING) {
        if (!is_asked(address)) {
            address_probe(stack, local, frame, now_us);
            return;
        }
        address_enter(stack, local, ADDRESS_ANNOUNCING, now_us);
    }
    net_tx_commit(stack, address->config.port,
                  announcement_emit(stack, local, frame), 0);
    address->tries++;
    address->deadline_us = now_us + ADDRESS_ANNOUNCE_US;
    if (address->tries == ADDRESS_ANNOUNCEMENTS) {
        address_enter(stack, local, ADDRESS_READY, UINT64_MAX);
    }
}

uint64_t net_address_timer(struct net_stack *stack, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    if (now_us < stack->address_due_us) {
        return stack->address_due_us;
    }
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->state == ADDRESS_UNUSED) {
            continue;
        }
        if (address->mld_left != 0 && address->mld_due_us <= now_us) {
            uint8_t *frame = net_tx_begin(stack, address->config.port);

            if (frame == NULL) {
                next_us = MIN(next_us, now_us + TX_RETRY_US);
                continue;
            }
            net_mld_report(stack, local, frame, now_us);
        }
        if (address->mld_left != 0) {
            next_us = MIN(next_us, address->mld_due_us);
        }
        if (address->deadline_us <= now_us) {
            uint8_t *frame = net_tx_begin(stack, address->config.port);

            if (frame == NULL) {
                next_us = MIN(next_us, now_us + TX_RETRY_US);
                continue;
            }
            address_step(stack, local, frame, now_us);
        }
        next_us = MIN(next_us, address->deadline_us);
    }
    stack->address_due_us = next_us;
    return next_us;
}

void net_address_conflict(struct net_stack *stack, uint8_t local,
                          const struct mac_addr *mac, uint8_t *frame,
                          uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];
    bool is_recent = address->has_defended &&
                     now_us - address->defended_us < ADDRESS_DEFEND_US;

    net_count(stack, address->config.port, NET_ADDRESS_CONFLICTS);
    if (is_recent && address->config.is_yielding &&
        net_stack_is_usable(stack, local)) {
        address_enter(stack, local, ADDRESS_DUPLICATE,
                      now_us + ADDRESS_RETRY_US);
        return;
    }
    if (is_recent) {
        return; /* further claims get no answer for a while */
    }
    address->has_defended = true;
    address->defended_us = now_us;
    if (address->state == ADDRESS_TENTATIVE ||
        address->state == ADDRESS_OPTIMISTIC) {
        address_enter(stack, local, ADDRESS_DUPLICATE,
                      ip_addr_is_v4(&address->config.ip)
                          ? now_us + ADDRESS_RETRY_US
                          : UINT64_MAX);
    } else if (net_stack_is_usable(stack, local)) {
        /* RFC 5227 section 2.4 (c): keep the address and object. */
        net_tx_commit(stack, address->config.port,
                      announcement_emit(stack, local, frame), 0);
    }
    if (stack->config.address_conflict != NULL) {
        stack->config.address_conflict(stack->config.ctx, local, mac);
    }
}
