/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery: solicitations and advertisements.
 * Spec: RFC 4861 sections 7.1 and 7.2, RFC 4862 section 5.4, RFC 4429.
 */
#include "net/stack/internal.h"

#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/nd.h"

static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
static const struct ip_addr nobody;

/* Write one message; `src` is an own address or the unspecified one. */
static size_t nd_frame_emit(const struct net_stack *stack, uint8_t local,
                            const struct ip_addr *src,
                            const struct ip_addr *dst,
                            const struct mac_addr *mac, uint8_t priority,
                            const struct nd_neighbor *nd, uint8_t *frame)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    const struct mac_addr group = nd_multicast_mac(dst);
    const struct net_ip_out out = {
        .src = *src,
        .dst = *dst,
        .mac = ip_addr_is_multicast(dst) && mac == NULL ? &group : mac,
        .payload_len = ND_NEIGHBOR_OPTIONS + (nd->has_lladdr ? 8u : 0u),
        .vlan = own->vlan,
        .port = own->port,
        .priority = priority,
        .protocol = IP_PROTOCOL_ICMPV6,
        .hop_limit = ND_HOP_LIMIT,
    };
    size_t len = net_ip_emit(stack, &out, frame);

    return len + nd_neighbor_emit(nd, src, dst, frame + len);
}

static struct nd_neighbor advert_of(const struct net_stack *stack,
                                    uint8_t local)
{
    const struct net_address *own = &stack->addresses[local];

    return (struct nd_neighbor){
        .type = ND_NEIGHBOR_ADVERT,
        .override = own->state != ADDRESS_OPTIMISTIC,
        .has_lladdr = true,
        .lladdr = stack->config.ports[own->config.port].mac,
        .target = own->config.ip,
    };
}

size_t net_nd_announce(const struct net_stack *stack, uint8_t local,
                       uint8_t *frame)
{
    const struct nd_neighbor nd = advert_of(stack, local);

    return nd_frame_emit(stack, local, &nd.target, &all_nodes, NULL, 0, &nd,
                         frame);
}

size_t net_nd_detect_duplicate(const struct net_stack *stack, uint8_t local,
                               uint8_t *frame)
{
    const struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_SOLICIT,
        .target = stack->addresses[local].config.ip,
    };
    const struct ip_addr dst = nd_solicited_node(&nd.target);

    return nd_frame_emit(stack, local, &nobody, &dst, NULL, 0, &nd, frame);
}

size_t net_nd_ask(const struct net_stack *stack, uint8_t local,
                  const struct ip_addr *ip, const struct mac_addr *unicast,
                  uint8_t *frame)
{
    const struct net_address *own = &stack->addresses[local];
    const struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_SOLICIT,
        /* RFC 4429: an optimistic address must not change neighbour caches. */
        .has_lladdr = own->state != ADDRESS_OPTIMISTIC,
        .lladdr = stack->config.ports[own->config.port].mac,
        .target = *ip,
    };
    const struct ip_addr dst = unicast != NULL ? *ip : nd_solicited_node(ip);

    return nd_frame_emit(stack, local, &own->config.ip, &dst, unicast, 0, &nd,
                         frame);
}

static void nd_answer(struct net_stack *stack, struct net_rx *rx, uint8_t local,
                      const struct nd_neighbor *asked)
{
    bool to_all = ip_addr_is_unspecified(&rx->src);
    struct nd_neighbor nd = advert_of(stack, local);
    const struct mac_addr *mac = NULL;
    size_t len;

    if (!net_limit_take(stack, rx->port, NET_LIMIT_ND, 1, rx->now_us)) {
        net_count(stack, rx->port, NET_DROP_LIMITED);
        return;
    }
    nd.solicited = !to_all;
    if (!to_all) {
        mac = asked->has_lladdr ? &asked->lladdr : &rx->eth.src;
    }
    len =
        nd_frame_emit(stack, local, &nd.target, to_all ? &all_nodes : &rx->src,
                      mac, rx->eth.priority, &nd, rx->answer);
    net_count(stack, rx->port, NET_ND_ADVERTS);
    net_tx_commit(stack, rx->port, len, rx->eth.priority);
}

static bool is_valid(const struct net_stack *stack, const struct net_rx *rx,
                     const struct nd_neighbor *nd)
{
    struct ip_addr group = nd_solicited_node(&nd->target);

    if (rx->hop_limit != ND_HOP_LIMIT ||
        (nd->has_lladdr && !net_mac_is_station(stack, rx->port, &nd->lladdr))) {
        return false;
    }
    if (nd->type == ND_NEIGHBOR_ADVERT) {
        return !(nd->solicited && ip_addr_is_multicast(&rx->dst)) &&
               !ip_addr_is_unspecified(&rx->src);
    }
    return !ip_addr_is_unspecified(&rx->src) ||
           (!nd->has_lladdr && ip_addr_equal(&rx->dst, &group));
}

static void solicit_input(struct net_stack *stack, struct net_rx *rx,
                          const struct nd_neighbor *nd)
{
    int local = net_stack_local(stack, rx->port, rx->vlan, &nd->target);

    if (local >= 0 && ip_addr_is_unspecified(&rx->src) &&
        (stack->addresses[local].state == ADDRESS_OPTIMISTIC ||
         stack->addresses[local].state == ADDRESS_TENTATIVE)) {
        net_address_conflict(stack, (uint8_t)local, &rx->eth.src, rx->answer,
                             rx->now_us);
        return;
    }
    if (local < 0 || !net_stack_is_usable(stack, (uint8_t)local)) {
        net_count(stack, rx->port, NET_DROP_ND_NOT_OURS);
        return;
    }
    if (nd->has_lladdr) {
        const struct neigh_heard heard = {
            .mac = nd->lladdr,
            .has_mac = true,
            .is_override = true,
            .may_create = true,
        };

        net_neigh_hear(stack, rx->port, rx->vlan, &rx->src, &heard, rx->now_us);
    }
    nd_answer(stack, rx, (uint8_t)local, nd);
}

static void advert_input(struct net_stack *stack, struct net_rx *rx,
                         const struct nd_neighbor *nd)
{
    int local = net_stack_local(stack, rx->port, rx->vlan, &nd->target);
    const struct neigh_heard heard = {
        .mac = nd->lladdr,
        .has_mac = nd->has_lladdr,
        .is_solicited = nd->solicited,
        .is_override = nd->override,
    };

    if (local >= 0) {
        net_address_conflict(stack, (uint8_t)local,
                             nd->has_lladdr ? &nd->lladdr : &rx->eth.src,
                             rx->answer, rx->now_us);
        return;
    }
    net_neigh_hear(stack, rx->port, rx->vlan, &nd->target, &heard, rx->now_us);
}

void net_nd_input(struct net_stack *stack, struct net_rx *rx)
{
    int claimed = net_stack_local(stack, rx->port, rx->vlan, &rx->src);
    struct nd_neighbor nd;

    if (!nd_neighbor_parse(&nd, rx->l4, rx->l4_len) ||
        !is_valid(stack, rx, &nd)) {
        net_count(stack, rx->port, NET_DROP_ND_MALFORMED);
    } else if (claimed >= 0) { /* another host uses our address */
        net_address_conflict(stack, (uint8_t)claimed, &rx->eth.src, rx->answer,
                             rx->now_us);
    } else if (nd.type == ND_NEIGHBOR_SOLICIT) {
        solicit_input(stack, rx, &nd);
    } else {
        advert_input(stack, rx, &nd);
    }
}
