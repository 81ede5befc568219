/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data structure of the neighbour table: entries, lists, timers and pins.
 * Only neigh.c, which implements the protocol, uses it.
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

/** Enter a state, possibly the present one, and start its timer. */
void neigh_enter(struct net_stack *stack, uint16_t index, enum neigh_state next,
                 uint64_t now_us);

/** No transmit buffer was free: make the entry due at once, before others. */
void neigh_timer_now(struct net_stack *stack, uint16_t index, uint64_t now_us);

void neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us);
void neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** Mark the entry as used most recently: it is then evicted last. */
void neigh_touch(struct net_stack *stack, uint16_t index);

/**
 * Take an entry for an address, and evict another one if none is free.  It is
 * still FREE and not pinned; the caller gives it its first state at once.
 *
 * @return NEIGH_NONE when all entries are pinned, which is counted
 */
uint16_t neigh_create(struct net_stack *stack, uint8_t local,
                      const struct ip_addr *ip, bool is_remote,
                      uint64_t now_us);

/** Remove an entry that is not pinned and is the gateway of no other entry. */
void neigh_release(struct net_stack *stack, uint16_t index, uint64_t now_us);

/** Make `via` the gateway of an entry, and pin it; undo that. */
void neigh_attach(struct net_stack *stack, uint16_t index, uint16_t via,
                  uint64_t now_us);
void neigh_detach(struct net_stack *stack, uint16_t index, uint64_t now_us);

#endif
