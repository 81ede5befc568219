/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DRAM that follows the firmware image.  It is handed out while the
 * firmware starts, and never given back.  Devices reach all of it by DMA.
 */
#ifndef ESSD_HAL_DRAM_H
#define ESSD_HAL_DRAM_H

#include "lib/util.h"

struct dram {
    uint8_t *base;
    size_t size_bytes;
    size_t used_bytes;
    /* Set by dram_clear_lost_words(), or NULL. */
    void (*clear)(void *ctx, const void *memory, size_t len_bytes);
    void *clear_ctx;
};

void dram_init(struct dram *dram, void *base, size_t size_bytes);

/**
 * From now on, let `clear` set the lost words of memory to zero before the
 * memory is given out: docs/hardware/ecc.md.  A hart that reads such a word
 * traps, and a device that writes a part of it fails.
 */
void dram_clear_lost_words(struct dram *dram,
                           void (*clear)(void *ctx, const void *memory,
                                         size_t len_bytes),
                           void *ctx);

/**
 * Allocate `len_bytes`, zeroed, for as long as the firmware runs.
 *
 * @param align_bytes  a power of two
 * @return NULL when there is no room; nothing changed
 */
MUST_USE void *dram_alloc(struct dram *dram, size_t len_bytes,
                          size_t align_bytes);

/**
 * Allocate without zeroing more than the lost words: for large buffers that are
 * written before they are read.  The emulator's host provides memory only for
 * pages that were touched.
 */
MUST_USE void *dram_reserve(struct dram *dram, size_t len_bytes,
                            size_t align_bytes);

/**
 * Reserve memory at the end of what is left, not at the beginning.  So the
 * memory has the same address at each start, whatever dram_reserve() has given
 * out before.  This function does not change its contents, not even of lost
 * words.
 */
MUST_USE void *dram_reserve_end(struct dram *dram, size_t len_bytes,
                                size_t align_bytes);

/* Convert a pointer to the address that devices use, and back. */
uint64_t hal_dma_addr(const void *ptr);
void *hal_dma_ptr(uint64_t addr);

/**
 * What to add to any pointer into DRAM to get hal_dma_addr() of it, without a
 * call for each.  Devices refuse what is not in DRAM.
 *
 * @param ptr  of any memory in DRAM
 */
static inline uintptr_t hal_dma_offset(const void *ptr)
{
    return hal_dma_addr(ptr) - (uintptr_t)ptr;
}

#endif
