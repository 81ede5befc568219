/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of a ring of messages between two stages (stages.h).  One stage
 * puts, one takes, and each of them is on one hart at a time.  What was put is
 * seen by the other stage after stage_ring_show() only.
 */
#ifndef ESSD_APP_STAGE_RING_H
#define ESSD_APP_STAGE_RING_H

#include "lib/util.h"

struct stage_ring {
    uint32_t put;   /* of the stage that puts */
    uint32_t shown; /* `put` of the last stage_ring_show() */
    uint32_t taken; /* of the stage that takes */
};

/** How many messages the ring holds, for the stage that puts. */
static inline uint32_t stage_ring_used(const struct stage_ring *ring)
{
    return ring->put - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE);
}

/** Whether there is a message, for the stage that takes. */
static inline bool stage_ring_has_message(const struct stage_ring *ring)
{
    return ring->taken != __atomic_load_n(&ring->shown, __ATOMIC_ACQUIRE);
}

static inline void stage_ring_show(struct stage_ring *ring)
{
    __atomic_store_n(&ring->shown, ring->put, __ATOMIC_RELEASE);
}

/** The oldest message is no longer needed. */
static inline void stage_ring_take(struct stage_ring *ring)
{
    __atomic_store_n(&ring->taken, ring->taken + 1, __ATOMIC_RELEASE);
}

#endif
