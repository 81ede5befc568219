/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path that the connection manager needs to answer a peer, with the
 * neighbour entry that the path uses.
 */
#ifndef ESSD_NET_NODE_PATHS_H
#define ESSD_NET_NODE_PATHS_H

#include "net/cm/cm.h"
#include "net/stack/stack.h"

struct node_paths {
    struct net_stack *stack;
    const uint64_t *now_us; /* time of the main loop's current turn */
};

/** The functions for cm_config.path_ops; their context is a node_paths. */
extern const struct cm_path_ops node_paths_ops;

/** The largest RoCE path MTU (enum ib_mtu) for a network MTU in bytes. */
uint8_t node_paths_mtu(uint32_t mtu_bytes);

#endif
