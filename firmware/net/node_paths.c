/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/net/node_paths.h"

#include <string.h>

/*
 * The bytes that Linux reserves for RoCE's headers when it chooses a path MTU.
 */
enum { ROCE_OVERHEAD = 96 };

uint8_t node_paths_mtu(uint32_t mtu_bytes)
{
    uint8_t found = IB_MTU_256;

    for (uint8_t code = IB_MTU_256; code <= IB_MTU_4096; code++) {
        if (ib_mtu_bytes(code) + ROCE_OVERHEAD <= mtu_bytes) {
            found = code;
        }
    }
    return found;
}

/* Reply with the request's priority, or with the port's default if it had
 * none. */
static uint8_t reply_priority(const struct net_stack *stack,
                              const struct verbs_ud_info *from)
{
    uint8_t port = net_stack_address(stack, from->laddr)->port;

    return from->priority != 0 ? from->priority
                               : stack->config.ports[port].priority;
}

static enum cm_path_result path_resolve(void *ctx,
                                        const struct verbs_ud_info *from,
                                        struct cm_path *path)
{
    const struct node_paths *paths = ctx;
    struct ip_addr ip = ip_addr_from_bytes(from->src_ip.bytes);
    uint64_t now_us = *paths->now_us;
    enum neigh_result result;
    struct mac_addr mac;
    uint16_t index;

    memcpy(mac.bytes, from->src_mac, sizeof(mac.bytes));
    result =
        net_neigh_learn(paths->stack, from->laddr, &ip, &mac, now_us, &index);
    if (result != NEIGH_READY) {
        return result == NEIGH_FULL ? CM_PATH_FULL : CM_PATH_NONE;
    }
    *path = (struct cm_path){
        .neigh = index,
        .laddr = from->laddr,
        .is_v1 = from->is_v1,
        .priority = reply_priority(paths->stack, from),
        .mtu = node_paths_mtu(net_neigh_path_mtu(paths->stack, index, now_us)),
    };
    return CM_PATH_READY;
}

static void path_pin(void *ctx, uint16_t neigh)
{
    const struct node_paths *paths = ctx;

    net_neigh_pin(paths->stack, neigh, *paths->now_us);
}

static void path_unpin(void *ctx, uint16_t neigh)
{
    const struct node_paths *paths = ctx;

    net_neigh_unpin(paths->stack, neigh, *paths->now_us);
}

const struct cm_path_ops node_paths_ops = {path_resolve, path_pin, path_unpin};
