/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbour table's mechanics: places, lists, timers, pins.  Only neigh.c,
 * which knows the protocol, uses it.
 */
#ifndef ESSD_NET_STACK_NEIGH_TABLE_H
#define ESSD_NET_STACK_NEIGH_TABLE_H

#include "net/stack/internal.h"

static inline struct neigh_entry *neigh_entry_of(struct net_stack *stack,
                                                 uint16_t index)
{
    return &stack->neigh.entries[index];
}

static inline bool neigh_has_mac(const struct neigh_entry *e)
{
    return e->state != NEIGH_FREE && e->state != NEIGH_INCOMPLETE;
}

/** Move to a state, or stay in it, and start its timer anew. */
void neigh_enter(struct net_stack *stack, uint16_t index, enum neigh_state next,
                 uint64_t now_us);

/** No room to send: be the first in the list of those that are to send. */
void neigh_timer_now(struct net_stack *stack, uint16_t index, uint64_t now_us);

void neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us);
void neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** Be the last to be evicted. */
void neigh_touch(struct net_stack *stack, uint16_t index);

/**
 * A new entry, FREE still and not pinned: the caller gives it its first state
 * at once.  Evicts another one if need be.
 *
 * @return NEIGH_NONE when all are pinned, which is counted
 */
uint16_t neigh_create(struct net_stack *stack, uint8_t local,
                      const struct ip_addr *ip, bool is_remote,
                      uint64_t now_us);

/** Forget an entry that nobody has pinned and none is behind. */
void neigh_release(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** Follow the gateway `via` and keep it pinned; and stop doing so, if it did.
 */
void neigh_attach(struct net_stack *stack, uint16_t index, uint16_t via,
                  uint64_t now_us);
void neigh_detach(struct net_stack *stack, uint16_t index, uint64_t now_us);

#endif
