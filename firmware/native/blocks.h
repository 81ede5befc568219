/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the basic blocks of a program that a drive's firmware executes.
 *
 * Only a build with ESSD_COUNT_BLOCKS (preset "counted") counts: its compiler
 * puts a call at the beginning of each block.  The count depends on the
 * compiler, and on nothing else.  Device models run on the same stack as the
 * firmware that writes their registers, so counting is off while they run.
 */
#ifndef ESSD_NATIVE_BLOCKS_H
#define ESSD_NATIVE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef ESSD_COUNT_BLOCKS

/**
 * Switch counting on or off for this thread.
 * @return whether it was on before
 */
bool blocks_count(bool is_on);

/** Take the blocks that this thread has counted; the next count begins at 0. */
uint64_t blocks_take(void);

#else

static inline bool blocks_count(bool is_on)
{
    (void)is_on;
    return false;
}

static inline uint64_t blocks_take(void)
{
    return 0;
}

#endif
#endif
