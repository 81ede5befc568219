/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 32-bit little-endian words in DRAM that a hart may access at the same time:
 * ring indices and flags.  Each is aligned and read or written in one access.
 * The caller orders accesses with dev_wmb() and the other barriers.
 */
#ifndef ESSD_HW_CORE_SHARED_WORD_H
#define ESSD_HW_CORE_SHARED_WORD_H

#include "lib/bytes.h"

static inline uint32_t shared_load32(const uint8_t *p)
{
    uint8_t bytes[4];
    uint32_t v =
        __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);

    __builtin_memcpy(bytes, &v, sizeof(bytes));
    return get_le32(bytes);
}

static inline void shared_store32(uint8_t *p, uint32_t value)
{
    uint8_t bytes[4];
    uint32_t v;

    put_le32(bytes, value);
    __builtin_memcpy(&v, bytes, sizeof(v));
    __atomic_store_n((uint32_t *)(void *)p, v, __ATOMIC_RELAXED);
}

#endif
