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
        .group = *group,
        .type = type,
    };
    return true;
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
