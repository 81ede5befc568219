/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DRAM behind the firmware image, handed out once while it starts; nothing is
 * ever given back.  All of it can be reached by DMA.
 */
#ifndef ESSD_HAL_DRAM_H
#define ESSD_HAL_DRAM_H

#include "lib/util.h"

struct dram {
    uint8_t *base;
    size_t size_bytes;
    size_t used_bytes;
};

void dram_init(struct dram *dram, void *base, size_t size_bytes);

/**
 * The next `len_bytes`, zeroed, for as long as the firmware runs.
 *
 * @param align_bytes  a power of two
 * @return NULL when there is no room; nothing changed
 */
MUST_USE void *dram_alloc(struct dram *dram, size_t len_bytes,
                          size_t align_bytes);

/**
 * The same, dirty: for large buffers that are written before they are read.
 * Memory that nothing has touched costs the emulator's host nothing.
 */
MUST_USE void *dram_reserve(struct dram *dram, size_t len_bytes,
                            size_t align_bytes);

/* The address a device uses for what `ptr` points to, and the way back. */
uint64_t hal_dma_addr(const void *ptr);
void *hal_dma_ptr(uint64_t addr);

#endif
