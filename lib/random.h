/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers that repeat with their seed: SplitMix64 (Steele, Lea
 * and Flood, 2014).  Every seed is a good one, and so is a counter.  The owner
 * keeps the state, so that a test owns the numbers, too.
 *
 * The numbers can be predicted: they are no secrets.
 */
#ifndef ESSD_LIB_RANDOM_H
#define ESSD_LIB_RANDOM_H

#include "lib/util.h"

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/** The next number.  @param state  begins with the seed */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += RANDOM_STEP;

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/**
 * A number of which every bit depends on every bit of `x`: a hash.  With
 * `x + n * RANDOM_STEP` it is the n-th number after the seed x, from 0.
 */
static inline uint64_t random_mix(uint64_t x)
{
    return random_next(&x);
}

#endif
