/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4: decide whether a packet is for us and pass it on; the parts of that
 * which IPv6 shares.
 * Spec: RFC 1122 section 3.2.1, RFC 7126 (options), RFC 4291 section 2.8.
 */
#include "net/stack/internal.h"

#include "net/wire/ipv4.h"
#include "net/wire/nd.h"

static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};

bool net_ip_is_subnet_broadcast(const struct net_stack *stack, uint8_t port,
                                uint16_t vlan, const struct ip_addr *ip)
{
    int local = net_address_on_link(stack, port, vlan, ip);
    uint8_t bits;

    if (local < 0 || !ip_addr_is_v4(ip)) {
        return false;
    }
    bits = stack->addresses[local].config.prefix_bits;
    return bits < 31 &&
           (ip_addr_to_v4(ip) | ~(0xffffffffu >> bits)) == 0xffffffff;
}

bool net_ip_is_from_us(const struct net_stack *stack, const struct net_rx *rx)
{
    return net_stack_local(stack, rx->port, rx->vlan, &rx->src) >= 0;
}

/*
 * Set rx->local: the index of the destination, or NET_NOT_OURS for a group that
 * we are in.  A unicast packet in a broadcast frame is not for us (RFC 1122).
 */
bool net_ip_is_for_us(const struct net_stack *stack, struct net_rx *rx)
{
    rx->local = net_address_usable(stack, rx->port, rx->vlan, &rx->dst);
    if (rx->local >= 0) {
        return !mac_addr_is_multicast(&rx->eth.dst);
    }
    if (ip_addr_is_v4(&rx->dst)) {
        return ip_addr_is_multicast(&rx->dst) ||
               net_ip_is_subnet_broadcast(stack, rx->port, rx->vlan, &rx->dst);
    }
    if (ip_addr_equal(&rx->dst, &all_nodes) ||
        net_group_is_joined(stack, &rx->dst)) {
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

bool net_group_is_joined(const struct net_stack *stack,
                         const struct ip_addr *group)
{
    for (size_t i = 0; i < NET_GROUPS; i++) {
        /* The address :: is no group, but an unused entry. */
        if (ip_addr_equal(&stack->groups[i], group) &&
            ip_addr_is_multicast(group)) {
            return true;
        }
    }
    return false;
}

struct mac_addr net_group_mac(const struct ip_addr *group)
{
    const uint8_t *low = group->bytes + 13;

    if (!ip_addr_is_v4(group)) {
        return nd_multicast_mac(group);
    }
    return (struct mac_addr){{0x01, 0, 0x5e, low[0] & 0x7f, low[1], low[2]}};
}

uint16_t net_path_mtu(const struct net_stack *stack, uint8_t port,
                      uint16_t vlan, const struct ip_addr *ip, uint64_t now_us)
{
    uint16_t mtu_bytes = net_link_mtu(stack, port, ip_addr_is_v4(ip));
    uint16_t index = net_neigh_find(stack, port, vlan, ip);

    return index == NEIGH_NONE
               ? mtu_bytes
               : MIN(mtu_bytes, net_neigh_path_mtu(stack, index, now_us));
}

/* ---- IPv4 */

enum { OPTION_END = 0, OPTION_NOP = 1, OPTION_LSRR = 131, OPTION_SSRR = 137 };

/* Whether the source is invalid or must not be answered. */
static bool is_bad_source(const struct net_stack *stack,
                          const struct net_rx *rx)
{
    return ip_addr_is_multicast(&rx->src) || ip_addr_is_unspecified(&rx->src) ||
           ip_addr_is_loopback(&rx->src) ||
           net_ip_is_subnet_broadcast(stack, rx->port, rx->vlan, &rx->src) ||
           net_ip_is_from_us(stack, rx);
}

/* Unknown options are skipped (RFC 1122); source routes are refused. */
static bool has_good_options(const uint8_t *options, size_t len)
{
    size_t at = 0;

    while (at < len && options[at] != OPTION_END) {
        if (options[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (options[at] == OPTION_LSRR || options[at] == OPTION_SSRR ||
            len - at < 2 || options[at + 1] < 2 || options[at + 1] > len - at) {
            return false;
        }
        at += options[at + 1];
    }
    return true;
}

static void ipv4_dispatch(struct net_stack *stack, struct net_rx *rx,
                          uint8_t protocol)
{
    if (protocol == IP_PROTOCOL_ICMP) {
        net_icmp_input(stack, rx);
    } else if (protocol == IP_PROTOCOL_UDP) {
        net_udp_input(stack, rx);
    } else {
        net_count(stack, rx->port, NET_DROP_PROTOCOL);
        if (protocol != IP_PROTOCOL_TCP || !stack->has_tcp) {
            net_icmp_error(stack, rx, NET_PROTOCOL_UNREACHABLE);
        }
    }
}

static void fragment_input(struct net_stack *stack, struct net_rx *rx,
                           const struct ipv4 *ip)
{
    const struct net_fragment f = {
        .id = ip->id,
        .offset_bytes = ip->fragment_offset_bytes,
        .more_fragments = ip->more_fragments,
        .protocol = ip->protocol,
        .payload = rx->l4,
    };

    if (rx->local < 0 || rx->l4_len == 0 ||
        (f.more_fragments && rx->l4_len % 8 != 0) ||
        f.offset_bytes + rx->l4_len > NET_PAYLOAD_MAX - IPV4_LEN) {
        net_count(stack, rx->port, NET_DROP_FRAGMENT_MALFORMED);
    } else if (net_fragment_input(stack, rx, &f, rx->l4_len)) {
        ipv4_dispatch(stack, rx, ip->protocol);
        net_fragment_done(stack, rx);
    }
}

void net_ipv4_input(struct net_stack *stack, struct net_rx *rx)
{
    struct ipv4 ip;

    if (!ipv4_parse(&ip, rx->l3, rx->l3_len)) {
        net_count(stack, rx->port, NET_DROP_IPV4_HEADER);
        return;
    }
    if (!has_good_options(rx->l3 + IPV4_LEN,
                          (size_t)ip.header_len_bytes - IPV4_LEN)) {
        net_count(stack, rx->port, NET_DROP_IPV4_OPTIONS);
        return;
    }
    rx->src = ip.src;
    rx->dst = ip.dst;
    rx->tos = ip.tos;
    rx->hop_limit = ip.ttl;
    rx->l3_len = ip.total_len_bytes;
    rx->l4 = rx->l3 + ip.header_len_bytes;
    rx->l4_len = rx->l3_len - ip.header_len_bytes;
    if (is_bad_source(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (!net_ip_is_for_us(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_NOT_OURS);
    } else if (ip.more_fragments || ip.fragment_offset_bytes != 0) {
        fragment_input(stack, rx, &ip);
    } else {
        ipv4_dispatch(stack, rx, ip.protocol);
    }
}
