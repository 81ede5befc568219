/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counts of a ring of messages between two stages (stages.h).  One stage
 * puts, one takes, and each of them is on one hart at a time.  What was put is
 * seen by the other stage after stage_ring_show() only, and the other stage
 * gives room back once for all messages that it has taken.
 */
#ifndef ESSD_STAGES_STAGE_RING_H
#define ESSD_STAGES_STAGE_RING_H

#include <stdalign.h>

#include "lib/util.h"

enum { STAGE_LINE = 64 }; /* bytes of a line of a cache */

struct stage_ring {
    alignas(STAGE_LINE) uint32_t put; /* of the stage that puts */
    uint32_t shown;                   /* `put` of the last stage_ring_show() */
    alignas(STAGE_LINE) uint32_t taken; /* of the stage that takes */
};

/** How many messages there are, for the stage that takes. */
static inline uint32_t stage_ring_count(const struct stage_ring *ring)
{
    return __atomic_load_n(&ring->shown, __ATOMIC_ACQUIRE) - ring->taken;
}

/** The end of what the stage that takes takes at once: at most `most` messages.
 * More may come meanwhile. */
static inline uint32_t stage_ring_end(const struct stage_ring *ring,
                                      uint32_t most)
{
    uint32_t count = stage_ring_count(ring);

    return ring->taken + MIN(count, most);
}

/** Show messages, of which the ring holds at most `size`. */
static inline void stage_ring_show(struct stage_ring *ring, uint32_t size)
{
    ASSERT(ring->put - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) <= size);
    __atomic_store_n(&ring->shown, ring->put, __ATOMIC_RELEASE);
}

/**
 * The messages before the one of this number are no longer needed.
 * @return how many lines of memory they have, when each has so many bytes
 */
static inline uint32_t stage_ring_take(struct stage_ring *ring, uint32_t end,
                                       size_t bytes)
{
    uint64_t skip = (uint64_t)ring->taken * bytes % STAGE_LINE;
    uint32_t count = end - ring->taken; /* also when the numbers wrap */
    uint64_t lines =
        (skip + count * (uint64_t)bytes + STAGE_LINE - 1) / STAGE_LINE;

    __atomic_store_n(&ring->taken, end, __ATOMIC_RELEASE);
    return count != 0 ? (uint32_t)lines : 0;
}

#endif
