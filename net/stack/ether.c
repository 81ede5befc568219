/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers for EtherTypes: see ether.h. */
#include "net/stack/internal.h"

bool net_stack_ether_bind(struct net_stack *stack, uint16_t type,
                          const struct mac_addr *group,
                          net_ether_handler *handler, void *ctx)
{
    struct net_ether_binding *slot = NULL;

    ASSERT(handler != NULL);
    for (size_t i = 0; i < NET_ETHER_BINDINGS; i++) {
        if (stack->ether[i].handler == NULL) {
            slot = slot == NULL ? &stack->ether[i] : slot;
        } else if (stack->ether[i].type == type) {
            return false;
        }
    }
    if (slot == NULL) {
        return false;
    }
    *slot = (struct net_ether_binding){
        .handler = handler,
        .ctx = ctx,
        .group = group != NULL ? *group : (struct mac_addr){{0}},
        .type = type,
    };
    return true;
}

/* Write the header.  @return its length */
static size_t ether_header(const struct net_stack *stack,
                           const struct net_ether_to *to, uint8_t *frame)
{
    return net_eth_emit(stack, to->port, to->vlan, 0, &to->dst, to->type,
                        frame);
}

uint8_t *net_ether_begin(struct net_stack *stack, const struct net_ether_to *to)
{
    uint8_t *frame =
        stack->link_up[to->port] ? net_tx_begin(stack, to->port) : NULL;

    return frame != NULL ? frame + ether_header(stack, to, frame) : NULL;
}

void net_ether_commit(struct net_stack *stack, const struct net_ether_to *to,
                      size_t len)
{
    uint8_t header[ETH_TAGGED_LEN];

    ASSERT(len <= stack->config.ports[to->port].mtu_bytes);
    net_tx_commit(stack, to->port, ether_header(stack, to, header) + len, 0);
}

void net_ether_input(struct net_stack *stack, const struct net_rx *rx)
{
    for (size_t i = 0; i < NET_ETHER_BINDINGS; i++) {
        const struct net_ether_binding *to = &stack->ether[i];

        if (to->handler != NULL && to->type == rx->eth.type) {
            const struct net_ether_rx delivered = {
                .dst = &rx->eth.dst,
                .src = &rx->eth.src,
                .payload = rx->l3,
                .len_bytes = rx->l3_len,
                .now_us = rx->now_us,
                .vlan = rx->vlan,
                .port = rx->port,
            };

            net_count(stack, rx->port, NET_ETHER_DELIVERED);
            to->handler(to->ctx, &delivered);
            return;
        }
    }
    net_count(stack, rx->port, NET_DROP_ETHERTYPE);
}
