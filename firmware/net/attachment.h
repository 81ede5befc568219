/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the network stack's two ports are attached to the two physical ports:
 * each to its own (struct separate_ports), or the stack's port 0 to both of
 * them as an aggregate (drive_lag.h).  With an aggregate, the stack's port 1
 * has link-local protocols only.
 *
 * This concerns only frames of the stack.  Frames of the RNIC pass through the
 * hardware's link aggregation block.
 */
#ifndef ESSD_NET_ATTACHMENT_H
#define ESSD_NET_ATTACHMENT_H

#include "net/stack/stack.h"

struct attachment_ops {
    /*
     * The port of the stack whose addresses, VLANs and groups a physical port
     * serves.
     */
    uint8_t (*stack_port)(uint8_t port);

    /* The physical port on which a port of the stack sends now. */
    uint8_t (*sender)(const void *ctx, uint8_t stack_port);

    /**
     * Decide about a frame of at least 14 bytes that a physical port has
     * received.
     *
     * @param stack_port  set to the port of the stack that gets the frame
     * @return false to drop the frame
     */
    bool (*accept)(void *ctx, uint8_t port, const uint8_t *frame, size_t len,
                   uint8_t *stack_port, uint64_t now_us);

    /* Tell the stack that a physical port's link came up or went down. */
    void (*link)(void *ctx, uint8_t port, bool is_up, uint64_t now_us);

    /* Whether a port of the stack has a link. */
    bool (*is_up)(const void *ctx, uint8_t stack_port);

    /*
     * Do what is due.  NULL: the attachment has no timers.
     * @return the next deadline
     */
    uint64_t (*step)(void *ctx, uint64_t now_us);
};

struct attachment {
    const struct attachment_ops *ops;
    void *ctx;
};

/* Treat as opaque. */
struct separate_ports {
    struct net_stack *stack;
    bool is_up[NET_PORTS];
};

/**
 * Attach each port of the stack to the physical port of the same number.
 * @param stack  outlives `separate`
 */
struct attachment separate_ports_init(struct separate_ports *separate,
                                      struct net_stack *stack);

/**
 * Whether a frame may not leave its link: its destination is 01:80:c2:00:00:0x.
 * Such a frame uses the physical port of the same number, with or without an
 * aggregate.
 */
bool attachment_is_link_local(const uint8_t *frame);

#endif
