/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending UDP datagrams: see udp_send.h. */
#include "net/stack/udp_send.h"

#include "net/stack/internal.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

enum { HOP_LIMIT = 64 };

static size_t ip_len(const struct ip_addr *ip)
{
    return ip_addr_is_v4(ip) ? IPV4_LEN : IPV6_LEN;
}

bool net_stack_udp_direct(struct net_stack *stack,
                          const struct net_udp_direct *tx)
{
    const struct net_ip_out out = {
        .src = tx->src,
        .dst = tx->dst,
        .mac = &tx->mac,
        .payload_len = UDP_LEN + tx->len_bytes,
        .vlan = tx->vlan,
        .port = tx->port,
        .protocol = IP_PROTOCOL_UDP,
        .hop_limit = tx->hop_limit != 0 ? tx->hop_limit : HOP_LIMIT,
    };
    struct udp udp = {
        .src_port = tx->src_port,
        .dst_port = tx->dst_port,
        .length_bytes = (uint16_t)(UDP_LEN + tx->len_bytes),
    };
    uint8_t *frame;
    size_t len;

    ASSERT(ip_len(&tx->dst) + UDP_LEN + tx->len_bytes <=
           stack->config.ports[tx->port].mtu_bytes);
    frame = stack->link_up[tx->port] ? net_tx_begin(stack, tx->port) : NULL;
    if (frame == NULL) {
        return false;
    }
    len = net_ip_emit(stack, &out, frame);
    udp_emit(&udp, frame + len);
    memcpy(frame + len + UDP_LEN, tx->payload, tx->len_bytes);
    udp.checksum =
        udp_checksum(&out.src, &out.dst, frame + len, udp.length_bytes);
    udp_emit(&udp, frame + len);
    net_tx_commit(stack, tx->port, len + udp.length_bytes, 0);
    return true;
}

static bool udp_send_to(struct net_stack *stack, const struct net_udp_tx *tx,
                        const struct mac_addr *mac)
{
    const struct net_address_config *own = &stack->addresses[tx->local].config;
    const struct net_udp_direct direct = {
        .mac = *mac,
        .src = own->ip,
        .dst = tx->dst,
        .payload = tx->payload,
        .len_bytes = tx->len_bytes,
        .src_port = tx->src_port,
        .dst_port = tx->dst_port,
        .vlan = own->vlan,
        .port = own->port,
    };

    return net_stack_udp_direct(stack, &direct);
}

enum net_udp_sent net_stack_udp_send(struct net_stack *stack,
                                     const struct net_udp_tx *tx,
                                     uint64_t now_us)
{
    uint8_t port = stack->addresses[tx->local].config.port;
    struct neigh_info info;
    enum neigh_result result;
    uint16_t index;
    bool is_sent;

    if (ip_len(&tx->dst) + UDP_LEN + tx->len_bytes >
        stack->config.ports[port].mtu_bytes) {
        return NET_UDP_NO_ROUTE;
    }
    result = net_neigh_resolve(stack, tx->local, &tx->dst, now_us, &index);
    if (result == NEIGH_NO_ROUTE) {
        return NET_UDP_NO_ROUTE;
    }
    if (result == NEIGH_FULL) {
        return NET_UDP_WAIT;
    }
    is_sent = net_neigh_info(stack, index, &info) &&
              udp_send_to(stack, tx, &info.mac);
    net_neigh_unpin(stack, index, now_us);
    return is_sent ? NET_UDP_SENT : NET_UDP_WAIT;
}

static bool is_candidate(const struct net_stack *stack, uint8_t local,
                         const struct ip_addr *dst)
{
    const struct net_address *own = &stack->addresses[local];
    const struct net_port_config *port = &stack->config.ports[own->config.port];
    bool v4 = ip_addr_is_v4(dst);
    const struct ip_addr *gateway = v4 ? &port->gateway4 : &port->gateway6;

    if (own->state == ADDRESS_UNUSED || !net_stack_is_usable(stack, local) ||
        ip_addr_is_v4(&own->config.ip) != v4 ||
        ip_addr_equal(&own->config.ip, dst) ||
        ip_addr_is_link_local(&own->config.ip) != ip_addr_is_link_local(dst)) {
        return false;
    }
    return ip_addr_prefix_equal(&own->config.ip, dst,
                                own->config.prefix_bits + (v4 ? 96u : 0u)) ||
           (!ip_addr_is_unspecified(gateway) &&
            net_address_on_link(stack, own->config.port, own->config.vlan,
                                gateway) >= 0);
}

int net_stack_source(const struct net_stack *stack, const struct ip_addr *dst,
                     unsigned int skip)
{
    uint8_t found[NET_ADDRESSES];
    unsigned int count = 0;

    for (unsigned int pass = 0; pass < 2; pass++) {
        for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
            const struct net_address_config *own =
                &stack->addresses[local].config;
            bool is_near =
                net_address_on_link(stack, own->port, own->vlan, dst) == local;

            if (is_near == (pass == 0) && is_candidate(stack, local, dst)) {
                found[count++] = local;
            }
        }
    }
    return count == 0 ? -1 : found[skip % count];
}
