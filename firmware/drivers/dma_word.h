/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access to words in DRAM that a device reads or writes too.  Each access is
 * whole, aligned and single.  Words are little-endian, as is the machine; `at`
 * is a byte offset.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_DMA_WORD_H
#define ESSD_FIRMWARE_DRIVERS_DMA_WORD_H

#include <stddef.h>
#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "devices' words are little-endian");

static inline void dma_store8(uint8_t *p, size_t at, uint8_t v)
{
    __atomic_store_n(p + at, v, __ATOMIC_RELAXED);
}

static inline void dma_store16(uint8_t *p, size_t at, uint16_t v)
{
    __atomic_store_n((uint16_t *)(void *)(p + at), v, __ATOMIC_RELAXED);
}

static inline void dma_store32(uint8_t *p, size_t at, uint32_t v)
{
    __atomic_store_n((uint32_t *)(void *)(p + at), v, __ATOMIC_RELAXED);
}

static inline void dma_store64(uint8_t *p, size_t at, uint64_t v)
{
    __atomic_store_n((uint64_t *)(void *)(p + at), v, __ATOMIC_RELAXED);
}

static inline uint8_t dma_load8(const uint8_t *p, size_t at)
{
    return __atomic_load_n(p + at, __ATOMIC_RELAXED);
}

static inline uint32_t dma_load32(const uint8_t *p, size_t at)
{
    return __atomic_load_n((const uint32_t *)(const void *)(p + at),
                           __ATOMIC_RELAXED);
}

static inline uint64_t dma_load64(const uint8_t *p, size_t at)
{
    return __atomic_load_n((const uint64_t *)(const void *)(p + at),
                           __ATOMIC_RELAXED);
}

#endif
