/* SPDX-License-Identifier: BSD-2-Clause */
/* Building and sending frames: see internal.h. */
#include "net/stack/internal.h"

#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"

uint8_t *net_tx_begin(struct net_stack *stack, uint8_t port)
{
    uint8_t *frame = stack->config.tx_begin(stack->config.ctx, port);

    if (frame == NULL) {
        net_count(stack, port, NET_TX_NO_BUFFER);
    }
    return frame;
}

void net_tx_commit(struct net_stack *stack, uint8_t port, size_t len,
                   uint8_t priority)
{
    net_count(stack, port, NET_TX_FRAMES);
    priority = priority != 0 ? priority : stack->config.ports[port].priority;
    stack->config.tx_commit(stack->config.ctx, port, len, priority);
}

size_t net_eth_emit(const struct net_stack *stack, uint8_t port, uint16_t vlan,
                    uint8_t priority, const struct mac_addr *dst, uint16_t type,
                    uint8_t *frame)
{
    uint8_t own = stack->config.ports[port].priority;
    const struct eth eth = {
        .dst = *dst,
        .src = stack->config.ports[port].mac,
        .type = type,
        .tagged = vlan != NET_VLAN_UNTAGGED || own != 0,
        .priority = priority != 0 ? priority : own,
        .vlan = vlan != NET_VLAN_UNTAGGED ? vlan : 0,
    };

    eth_emit(&eth, frame);
    return eth_header_len(&eth);
}

static size_t emit_ipv4(const struct net_ip_out *out, uint8_t *buf)
{
    const struct ipv4 ip = {
        .src = out->src,
        .dst = out->dst,
        .total_len_bytes = (uint16_t)(IPV4_LEN + out->payload_len),
        .tos = out->tos,
        .ttl = out->hop_limit,
        .protocol = out->protocol,
        /* An unfragmented packet has DF set and identification 0: RFC 6864. */
        .dont_fragment = !out->is_fragment,
        .id = (uint16_t)(out->is_fragment ? out->fragment_id : 0),
        .fragment_offset_bytes =
            out->is_fragment ? out->fragment_offset_bytes : 0,
        .more_fragments = out->is_fragment && out->more_fragments,
    };

    ipv4_emit(&ip, buf);
    return IPV4_LEN;
}

static size_t emit_ipv6(const struct net_ip_out *out, uint8_t *buf)
{
    const struct ipv6 ip = {
        .src = out->src,
        .dst = out->dst,
        .payload_len_bytes = (uint16_t)out->payload_len,
        .traffic_class = out->tos,
        .next_header = out->is_fragment ? IPV6_EXT_FRAGMENT : out->protocol,
        .hop_limit = out->hop_limit,
    };

    ipv6_emit(&ip, buf);
    if (!out->is_fragment) {
        return IPV6_LEN;
    }
    ipv6_fragment_emit(
        &(struct ipv6_fragment){
            .id = out->fragment_id,
            .offset_bytes = out->fragment_offset_bytes,
            .next_header = out->protocol,
            .more_fragments = out->more_fragments,
        },
        buf + IPV6_LEN);
    return IPV6_LEN + IPV6_FRAGMENT_LEN;
}

size_t net_ip_emit(const struct net_stack *stack, const struct net_ip_out *out,
                   uint8_t *frame)
{
    bool v4 = ip_addr_is_v4(&out->dst);
    size_t len =
        net_eth_emit(stack, out->port, out->vlan, out->priority, out->mac,
                     v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6, frame);

    return len +
           (v4 ? emit_ipv4(out, frame + len) : emit_ipv6(out, frame + len));
}
