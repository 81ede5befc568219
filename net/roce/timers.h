/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One deadline for each QP, kept as a heap of slots with the earliest first.
 *
 * Moving a deadline later, as every packet does with an ACK timer, costs one
 * store: the slot keeps its place and is sorted again when its old deadline
 * passes.
 */
#ifndef ESSD_NET_ROCE_TIMERS_H
#define ESSD_NET_ROCE_TIMERS_H

#include "lib/util.h"

#define TIMERS_NONE UINT64_MAX

enum { TIMERS_MAX = 1026 };

struct timers {
    uint16_t count;
    uint16_t heap[TIMERS_MAX];  /* slots; the first is due earliest */
    uint16_t place[TIMERS_MAX]; /* by slot: index in heap plus 1, or 0 */
    uint64_t key[TIMERS_MAX];   /* by slot: its sort key in the heap */
    uint64_t due[TIMERS_MAX];   /* by slot: its deadline, never before key */
};

void timers_reset(struct timers *timers);

/** @param due_ns  the deadline, or TIMERS_NONE */
void timers_set(struct timers *timers, uint16_t slot, uint64_t due_ns);

/** When to call timers_expired() next; TIMERS_NONE for never. */
static inline uint64_t timers_next(const struct timers *timers)
{
    return timers->count != 0 ? timers->key[timers->heap[0]] : TIMERS_NONE;
}

/**
 * Take one slot whose deadline has passed.
 *
 * @return false when there is none
 */
MUST_USE bool timers_expired(struct timers *timers, uint64_t now_ns,
                             uint16_t *slot);

#endif
