/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 and IPv6: is the packet for us, and who takes it.
 * Spec: RFC 1122 section 3.2.1, RFC 4291 section 2.8, RFC 8200.
 */
#include "net/stack/internal.h"

#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"

static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
static const struct ip_addr loopback6 = {{[15] = 1}};

static bool is_subnet_broadcast(const struct net_stack *stack, uint8_t local,
                                const struct ip_addr *dst)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    return own->prefix_bits < 31 &&
           (ip_addr_to_v4(dst) | ~(0xffffffffu >> own->prefix_bits)) ==
               0xffffffff;
}

static bool is_ours(const struct net_stack *stack, const struct net_rx *rx)
{
    return net_stack_local(stack, rx->port, rx->vlan, &rx->src) >= 0;
}

/* Sources nobody may answer to, or that cannot be. */

static bool is_bad_ipv4_source(const struct net_stack *stack,
                               const struct net_rx *rx)
{
    return ip_addr_is_multicast(&rx->src) || ip_addr_is_unspecified(&rx->src) ||
           rx->src.bytes[12] == 127 || is_ours(stack, rx);
}

/* Neighbour discovery is sent from nobody, and tells who has our address. */
static bool is_bad_ipv6_source(const struct net_stack *stack,
                               const struct net_rx *rx, bool is_icmp)
{
    return ip_addr_is_multicast(&rx->src) ||
           ip_addr_equal(&rx->src, &loopback6) ||
           (!is_icmp &&
            (ip_addr_is_unspecified(&rx->src) || is_ours(stack, rx)));
}

/*
 * Whose the packet is: sets rx->local, NET_NOT_OURS for a group that we are
 * in.  A unicast packet in a broadcast frame is not for us (RFC 1122).
 */
static bool is_for_us(const struct net_stack *stack, struct net_rx *rx)
{
    int local;

    rx->local = net_address_usable(stack, rx->port, rx->vlan, &rx->dst);
    if (rx->local >= 0) {
        return !mac_addr_is_multicast(&rx->eth.dst);
    }
    if (ip_addr_is_v4(&rx->dst)) {
        local = net_address_on_link(stack, rx->port, rx->vlan, &rx->dst);
        return ip_addr_is_multicast(&rx->dst) ||
               (local >= 0 &&
                is_subnet_broadcast(stack, (uint8_t)local, &rx->dst));
    }
    if (ip_addr_equal(&rx->dst, &all_nodes)) {
        return true;
    }
    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        const struct net_address *own = &stack->addresses[i];
        struct ip_addr group = nd_solicited_node(&own->config.ip);

        if (own->state != ADDRESS_UNUSED && own->config.port == rx->port &&
            own->config.vlan == rx->vlan && !ip_addr_is_v4(&own->config.ip) &&
            ip_addr_equal(&rx->dst, &group)) {
            return true;
        }
    }
    return false;
}

void net_ipv4_input(struct net_stack *stack, struct net_rx *rx)
{
    struct ipv4 ip;

    if (!ipv4_parse(&ip, rx->l3, rx->l3_len)) {
        net_count(stack, rx->port, NET_DROP_IPV4_HEADER);
        return;
    }
    if (ip.header_len_bytes != IPV4_LEN) {
        net_count(stack, rx->port, NET_DROP_IPV4_OPTIONS);
        return;
    }
    if (ip.more_fragments || ip.fragment_offset_bytes != 0) {
        net_count(stack, rx->port, NET_DROP_IPV4_FRAGMENT);
        return;
    }
    rx->src = ip.src;
    rx->dst = ip.dst;
    rx->tos = ip.tos;
    rx->hop_limit = ip.ttl;
    rx->l3_len = ip.total_len_bytes;
    rx->l4 = rx->l3 + IPV4_LEN;
    rx->l4_len = rx->l3_len - IPV4_LEN;
    if (is_bad_ipv4_source(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (!is_for_us(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_NOT_OURS);
    } else if (ip.protocol == IP_PROTOCOL_ICMP) {
        net_icmp_input(stack, rx);
    } else if (ip.protocol == IP_PROTOCOL_UDP) {
        net_udp_input(stack, rx);
    } else {
        net_count(stack, rx->port, NET_DROP_PROTOCOL);
        net_icmp_error(stack, rx, NET_PROTOCOL_UNREACHABLE);
    }
}

/* RFC 7045's list: they would have to be walked first. */
static bool is_extension(uint8_t next_header)
{
    switch (next_header) {
    case 0:   /* hop-by-hop options */
    case 43:  /* routing */
    case 44:  /* fragment */
    case 50:  /* encapsulating security payload */
    case 51:  /* authentication */
    case 60:  /* destination options */
    case 135: /* mobility */
    case 139: /* host identity */
    case 140: /* shim6 */
    case 253: /* experiments */
    case 254:
        return true;
    default:
        return false;
    }
}

void net_ipv6_input(struct net_stack *stack, struct net_rx *rx)
{
    struct ipv6 ip;

    if (!ipv6_parse(&ip, rx->l3, rx->l3_len)) {
        net_count(stack, rx->port, NET_DROP_IPV6_HEADER);
        return;
    }
    if (is_extension(ip.next_header)) {
        net_count(stack, rx->port, NET_DROP_IPV6_EXTENSION);
        return;
    }
    rx->src = ip.src;
    rx->dst = ip.dst;
    rx->tos = ip.traffic_class;
    rx->hop_limit = ip.hop_limit;
    rx->l3_len = IPV6_LEN + ip.payload_len_bytes;
    rx->l4 = rx->l3 + IPV6_LEN;
    rx->l4_len = ip.payload_len_bytes;
    if (is_bad_ipv6_source(stack, rx, ip.next_header == IP_PROTOCOL_ICMPV6)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (!is_for_us(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_NOT_OURS);
    } else if (ip.next_header == IP_PROTOCOL_ICMPV6) {
        net_icmpv6_input(stack, rx);
    } else if (ip.next_header == IP_PROTOCOL_UDP) {
        net_udp_input(stack, rx);
    } else {
        net_count(stack, rx->port, NET_DROP_PROTOCOL);
        net_icmp_error(stack, rx, NET_PROTOCOL_UNREACHABLE);
    }
}
