/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP: answers for own addresses, and learns about neighbours.
 * Spec: RFC 826, RFC 5227 (probes, announcements, conflicts), RFC 3927 section
 * 2.5 (replies about 169.254/16 are broadcast).
 */
#include "net/stack/internal.h"

#include "net/wire/arp.h"

static const struct mac_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

static size_t arp_frame_emit(const struct net_stack *stack, uint8_t port,
                             uint16_t vlan, uint8_t priority,
                             const struct mac_addr *dst, const struct arp *arp,
                             uint8_t *frame)
{
    const struct mac_addr *to =
        ip_addr_is_link_local(&arp->sender_ip) ? &broadcast : dst;
    size_t len =
        net_eth_emit(stack, port, vlan, priority, to, ETHERTYPE_ARP, frame);

    arp_emit(arp, frame + len);
    return len + ARP_LEN;
}

size_t net_arp_announce(const struct net_stack *stack, uint8_t local,
                        uint8_t *frame)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    const struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = stack->config.ports[own->port].mac,
        .sender_ip = own->ip,
        .target_ip = own->ip,
    };

    return arp_frame_emit(stack, own->port, own->vlan, 0, &broadcast, &arp,
                          frame);
}

size_t net_arp_probe(const struct net_stack *stack, uint8_t local,
                     uint8_t *frame)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    const struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = stack->config.ports[own->port].mac,
        .sender_ip = ip_addr_from_v4(0),
        .target_ip = own->ip,
    };

    return arp_frame_emit(stack, own->port, own->vlan, 0, &broadcast, &arp,
                          frame);
}

size_t net_arp_ask(const struct net_stack *stack, uint8_t local,
                   const struct ip_addr *ip, const struct mac_addr *unicast,
                   uint8_t *frame)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    const struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = stack->config.ports[own->port].mac,
        .sender_ip = own->ip,
        .target_ip = *ip,
    };

    return arp_frame_emit(stack, own->port, own->vlan, 0,
                          unicast != NULL ? unicast : &broadcast, &arp, frame);
}

static void arp_answer(struct net_stack *stack, struct net_rx *rx,
                       const struct arp *asked)
{
    const struct arp arp = {
        .operation = ARP_REPLY,
        .sender_mac = stack->config.ports[rx->port].mac,
        .sender_ip = asked->target_ip,
        .target_mac = asked->sender_mac,
        .target_ip = asked->sender_ip,
    };
    size_t len;

    if (!net_limit_take(stack, rx->port, NET_LIMIT_ARP, 1, rx->now_us)) {
        net_count(stack, rx->port, NET_DROP_LIMITED);
        return;
    }
    len = arp_frame_emit(stack, rx->port, rx->vlan, rx->eth.priority,
                         &asked->sender_mac, &arp, rx->answer);
    net_count(stack, rx->port, NET_ARP_REPLIES);
    net_tx_commit(stack, rx->port, len, rx->eth.priority);
}

/* The own address that the sender claims, or -1: RFC 5227 section 2.1.1. */
static int claimed_address(const struct net_stack *stack,
                           const struct net_rx *rx, const struct arp *arp)
{
    bool is_probe = ip_addr_is_unspecified(&arp->sender_ip);
    int local = net_stack_local(stack, rx->port, rx->vlan,
                                is_probe ? &arp->target_ip : &arp->sender_ip);

    return local >= 0 &&
                   (stack->addresses[local].state == ADDRESS_TENTATIVE ||
                    (!is_probe && net_stack_is_usable(stack, (uint8_t)local)))
               ? local
               : NET_NOT_OURS;
}

void net_arp_input(struct net_stack *stack, struct net_rx *rx)
{
    struct neigh_heard heard = {.has_mac = true, .is_override = true};
    struct arp arp;
    bool for_us;
    int local;

    if (!arp_parse(&arp, rx->l3, rx->l3_len) ||
        !net_mac_is_station(stack, rx->port, &arp.sender_mac) ||
        ip_addr_is_multicast(&arp.sender_ip)) {
        net_count(stack, rx->port, NET_DROP_ARP_MALFORMED);
        return;
    }
    local = claimed_address(stack, rx, &arp);
    if (local >= 0) {
        net_address_conflict(stack, (uint8_t)local, &arp.sender_mac, rx->answer,
                             rx->now_us);
        return;
    }
    for_us = net_address_usable(stack, rx->port, rx->vlan, &arp.target_ip) >= 0;
    if (!ip_addr_is_unspecified(&arp.sender_ip)) { /* not a probe */
        heard.mac = arp.sender_mac;
        heard.may_create = for_us && arp.operation == ARP_REQUEST;
        heard.is_solicited = for_us && arp.operation == ARP_REPLY;
        net_neigh_hear(stack, rx->port, rx->vlan, &arp.sender_ip, &heard,
                       rx->now_us);
    }
    if (!for_us) {
        net_count(stack, rx->port, NET_DROP_ARP_NOT_OURS);
    } else if (arp.operation == ARP_REQUEST) {
        arp_answer(stack, rx, &arp);
    }
}
