/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP: passes datagrams to the handler of their port.
 * Spec: RFC 768, RFC 1122 section 4.1, RFC 8200 section 8.1.
 */
#include "net/stack/internal.h"

#include "net/wire/udp.h"

bool net_stack_udp_bind(struct net_stack *stack, uint16_t udp_port,
                        net_udp_handler *handler, void *ctx)
{
    struct net_udp_binding *slot = NULL;

    ASSERT(handler != NULL);
    for (size_t i = 0; i < NET_UDP_BINDINGS; i++) {
        if (stack->udp[i].handler == NULL) {
            slot = slot == NULL ? &stack->udp[i] : slot;
        } else if (stack->udp[i].port == udp_port) {
            return false;
        }
    }
    if (slot == NULL) {
        return false;
    }
    *slot = (struct net_udp_binding){
        .handler = handler,
        .ctx = ctx,
        .port = udp_port,
    };
    return true;
}

static bool is_intact(const struct net_rx *rx, const struct udp *udp)
{
    if (udp->checksum == 0) {
        return ip_addr_is_v4(&rx->src); /* optional over IPv4 only */
    }
    return udp_checksum(&rx->src, &rx->dst, rx->l4, udp->length_bytes) ==
           0xffff;
}

void net_udp_input(struct net_stack *stack, struct net_rx *rx)
{
    struct udp udp;

    if (!udp_parse(&udp, rx->l4, rx->l4_len) || !is_intact(rx, &udp)) {
        net_count(stack, rx->port, NET_DROP_UDP_MALFORMED);
        return;
    }
    for (size_t i = 0; i < NET_UDP_BINDINGS; i++) {
        const struct net_udp_binding *to = &stack->udp[i];

        if (to->handler != NULL && to->port == udp.dst_port) {
            const struct net_udp_rx delivered = {
                .src = rx->src,
                .dst = rx->dst,
                .src_mac = &rx->eth.src,
                .payload = rx->l4 + UDP_LEN,
                .len_bytes = (size_t)udp.length_bytes - UDP_LEN,
                .now_us = rx->now_us,
                .src_port = udp.src_port,
                .dst_port = udp.dst_port,
                .vlan = rx->vlan,
                .port = rx->port,
            };

            net_count(stack, rx->port, NET_UDP_DELIVERED);
            to->handler(to->ctx, &delivered);
            return;
        }
    }
    net_count(stack, rx->port, NET_DROP_UDP_CLOSED);
    net_icmp_error(stack, rx, NET_PORT_UNREACHABLE);
}
