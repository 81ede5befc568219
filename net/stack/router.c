/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 routers: see router.h. */
#include "net/stack/internal.h"

#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/nd.h"

enum {
    TX_RETRY_US = 1000,
    SECOND_US = 1000000,
    PREFIX_BITS = 64,
    TWO_HOURS_S = 7200,
    MTU_MIN = 1280,
};

static const struct ip_addr all_routers = {{0xff, 0x02, [15] = 2}};

void net_router_init(struct net_stack *stack)
{
    stack->router_due_us = UINT64_MAX;
    for (size_t port = 0; port < NET_PORTS; port++) {
        stack->routers[port].solicit_us = UINT64_MAX;
    }
}

/* Forget the old link's routers.  Lifetimes of their addresses run on. */
void net_router_link(struct net_stack *stack, uint8_t port, bool is_up,
                     uint64_t now_us)
{
    struct net_port_routers *here = &stack->routers[port];

    *here = (struct net_port_routers){.solicit_us = UINT64_MAX};
    if (is_up) {
        here->solicits_left = ROUTER_SOLICITS;
        here->solicit_us =
            now_us + net_random_below(stack, ROUTER_SOLICIT_DELAY_US);
        net_due(&stack->router_due_us, here->solicit_us);
    }
}

/* ---- Solicitations. */

/* The index of the port's own link-local address if usable, or -1. */
static int link_local(const struct net_stack *stack, uint8_t port)
{
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        const struct net_address_config *own = &stack->addresses[local].config;

        if (net_stack_is_usable(stack, local) && own->port == port &&
            own->vlan == NET_VLAN_UNTAGGED && !ip_addr_is_v4(&own->ip) &&
            ip_addr_is_link_local(&own->ip)) {
            return local;
        }
    }
    return NET_NOT_OURS;
}

static void send_solicit(struct net_stack *stack, uint8_t local, uint8_t *frame)
{
    const struct net_address *own = &stack->addresses[local];
    const struct mac_addr mac = nd_multicast_mac(&all_routers);
    const struct nd_router_solicit rs = {
        /* RFC 4429: an optimistic address must not change neighbour caches. */
        .has_lladdr = own->state != ADDRESS_OPTIMISTIC,
        .lladdr = stack->config.ports[own->config.port].mac,
    };
    const struct net_ip_out out = {
        .src = own->config.ip,
        .dst = all_routers,
        .mac = &mac,
        .payload_len = ND_RS_OPTIONS + (rs.has_lladdr ? 8u : 0u),
        .vlan = own->config.vlan,
        .port = own->config.port,
        .protocol = IP_PROTOCOL_ICMPV6,
        .hop_limit = ND_HOP_LIMIT,
    };
    size_t len = net_ip_emit(stack, &out, frame);

    len += nd_router_solicit_emit(&rs, &out.src, &out.dst, frame + len);
    net_tx_commit(stack, own->config.port, len, 0);
}

/* A solicitation is due. */
static void solicit_step(struct net_stack *stack, uint8_t port, uint64_t now_us)
{
    struct net_port_routers *here = &stack->routers[port];
    int local = link_local(stack, port);

    if (local >= 0) {
        uint8_t *frame = net_tx_begin(stack, port);

        if (frame == NULL) {
            here->solicit_us = now_us + TX_RETRY_US;
            return;
        }
        send_solicit(stack, (uint8_t)local, frame);
    }
    here->solicits_left--;
    here->solicit_us =
        here->solicits_left == 0 ? UINT64_MAX : now_us + ROUTER_SOLICIT_US;
}

uint64_t net_router_timer(struct net_stack *stack, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    if (now_us < stack->router_due_us) {
        return stack->router_due_us;
    }
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        if (stack->routers[port].solicit_us <= now_us) {
            solicit_step(stack, port, now_us);
        }
        next_us = MIN(next_us, stack->routers[port].solicit_us);
    }
    for (uint8_t local = 0; local < NET_CONFIGURED; local++) {
        struct net_address *address = &stack->addresses[local];

        if (address->state == ADDRESS_UNUSED || !address->is_auto) {
            continue;
        }
        if (address->valid_until_us <= now_us) {
            net_stack_address_remove(stack, local);
        } else {
            next_us = MIN(next_us, address->valid_until_us);
        }
    }
    stack->router_due_us = next_us;
    return next_us;
}

/* ---- Advertisements. */

static uint64_t lifetime_end(uint32_t lifetime_s, uint64_t now_us)
{
    return lifetime_s == UINT32_MAX ? UINT64_MAX
                                    : now_us + lifetime_s * (uint64_t)SECOND_US;
}

static void note_router(struct net_stack *stack, const struct net_rx *rx,
                        uint16_t lifetime_s)
{
    struct net_port_routers *here = &stack->routers[rx->port];
    struct net_router *slot = NULL;

    for (size_t i = 0; i < NET_ROUTERS; i++) {
        struct net_router *r = &here->routers[i];

        if (ip_addr_equal(&r->ip, &rx->src) && r->vlan == rx->vlan) {
            slot = r;
            break;
        }
        if (slot == NULL && r->until_us <= rx->now_us) {
            slot = r; /* unused or expired */
        }
    }
    if (slot != NULL) {
        *slot = (struct net_router){
            .ip = rx->src,
            .until_us = lifetime_end(lifetime_s, rx->now_us),
            .vlan = rx->vlan,
        };
    }
}

/*
 * Renew the address' lifetime.  An advertisement cannot shorten it below two
 * hours: RFC 4862 section 5.5.3 (e).
 */
static void renew_address(struct net_stack *stack, struct net_address *address,
                          uint32_t valid_s, uint64_t now_us)
{
    uint64_t least_us = now_us + (uint64_t)TWO_HOURS_S * SECOND_US;

    if (valid_s > TWO_HOURS_S ||
        lifetime_end(valid_s, now_us) > address->valid_until_us) {
        address->valid_until_us = lifetime_end(valid_s, now_us);
    } else if (address->valid_until_us > least_us) {
        address->valid_until_us = least_us;
    }
    net_due(&stack->router_due_us, address->valid_until_us);
}

static unsigned count_auto(const struct net_stack *stack, uint8_t port)
{
    unsigned count = 0;

    for (size_t local = 0; local < NET_CONFIGURED; local++) {
        const struct net_address *address = &stack->addresses[local];

        count += address->state != ADDRESS_UNUSED && address->is_auto &&
                 address->config.port == port;
    }
    return count;
}

/* Form an address from the prefix and the MAC: RFC 4862 section 5.5.3. */
static void note_prefix(struct net_stack *stack, const struct net_rx *rx,
                        const struct nd_prefix *prefix)
{
    struct net_address_config config = {
        .ip = nd_link_local(&stack->config.ports[rx->port].mac),
        .vlan = rx->vlan,
        .port = rx->port,
        .prefix_bits = prefix->on_link ? PREFIX_BITS : 128,
    };
    int local;

    if (!prefix->autonomous || prefix->prefix_bits != PREFIX_BITS ||
        prefix->preferred_s > prefix->valid_s ||
        ip_addr_is_link_local(&prefix->prefix) ||
        ip_addr_is_multicast(&prefix->prefix)) {
        return;
    }
    memcpy(config.ip.bytes, prefix->prefix.bytes, PREFIX_BITS / 8);
    local = net_stack_local(stack, rx->port, rx->vlan, &config.ip);
    if (local >= 0) {
        if (stack->addresses[local].is_auto) {
            renew_address(stack, &stack->addresses[local], prefix->valid_s,
                          rx->now_us);
        }
        return;
    }
    if (prefix->valid_s == 0) {
        return;
    }
    if (count_auto(stack, rx->port) == NET_AUTO_ADDRESSES) {
        net_count(stack, rx->port, NET_ADDRESS_REFUSED);
        return;
    }
    local = net_stack_address_add(stack, &config, rx->now_us);
    if (local >= 0) {
        stack->addresses[local].is_auto = true;
        stack->addresses[local].valid_until_us =
            lifetime_end(prefix->valid_s, rx->now_us);
        net_due(&stack->router_due_us, stack->addresses[local].valid_until_us);
    }
}

void net_router_input(struct net_stack *stack, struct net_rx *rx)
{
    const struct net_port_config *port = &stack->config.ports[rx->port];
    struct net_port_routers *here = &stack->routers[rx->port];
    struct nd_router_advert ra;

    if (rx->hop_limit != ND_HOP_LIMIT || !ip_addr_is_link_local(&rx->src) ||
        net_ip_is_from_us(stack, rx) ||
        !nd_router_advert_parse(&ra, rx->l4, rx->l4_len) ||
        (ra.has_lladdr && !net_mac_is_station(stack, rx->port, &ra.lladdr))) {
        net_count(stack, rx->port, NET_DROP_ND_MALFORMED);
        return;
    }
    net_count(stack, rx->port, NET_ROUTER_ADVERTS);
    if (ra.has_lladdr) {
        const struct neigh_heard heard = {
            .mac = ra.lladdr,
            .has_mac = true,
            .is_override = true,
            .may_create = true,
        };

        net_neigh_hear(stack, rx->port, rx->vlan, &rx->src, &heard, rx->now_us);
    }
    note_router(stack, rx, ra.router_lifetime_s);
    here->solicits_left = 0;
    here->solicit_us = UINT64_MAX;
    if (ra.mtu_bytes >= MTU_MIN && ra.mtu_bytes <= port->mtu_bytes) {
        here->mtu_bytes = (uint16_t)ra.mtu_bytes;
    }
    for (size_t i = 0; port->has_slaac && i < ra.prefix_count; i++) {
        note_prefix(stack, rx, &ra.prefixes[i]);
    }
}

/* ---- Gateways. */

const struct ip_addr *net_gateway(const struct net_stack *stack, uint8_t port,
                                  uint16_t vlan, bool v4, uint64_t now_us)
{
    const struct net_port_config *config = &stack->config.ports[port];

    if (v4 || !ip_addr_is_unspecified(&config->gateway6)) {
        return v4 ? &config->gateway4 : &config->gateway6;
    }
    for (size_t i = 0; i < NET_ROUTERS; i++) {
        const struct net_router *r = &stack->routers[port].routers[i];

        if (r->until_us > now_us && r->vlan == vlan) {
            return &r->ip;
        }
    }
    return &config->gateway6;
}

void net_router_failed(struct net_stack *stack, uint8_t port,
                       const struct ip_addr *ip)
{
    struct net_router *routers = stack->routers[port].routers;

    if (ip_addr_equal(&routers[0].ip, ip)) { /* RFC 4861 6.3.6: put it last */
        struct net_router failed = routers[0];

        memmove(routers, routers + 1, (NET_ROUTERS - 1) * sizeof(*routers));
        routers[NET_ROUTERS - 1] = failed;
    }
}
