/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hal/dram.h"

#include <string.h>

void dram_init(struct dram *dram, void *base, size_t size_bytes)
{
    *dram = (struct dram){.base = base, .size_bytes = size_bytes};
}

void dram_clear_lost_words(struct dram *dram,
                           void (*clear)(void *ctx, const void *memory,
                                         size_t len_bytes),
                           void *ctx)
{
    dram->clear = clear;
    dram->clear_ctx = ctx;
}

void *dram_reserve(struct dram *dram, size_t len_bytes, size_t align_bytes)
{
    uintptr_t base = (uintptr_t)dram->base;
    uintptr_t start = base + dram->used_bytes;

    ASSERT(IS_POW2(align_bytes));
    start = (start + align_bytes - 1) & ~(uintptr_t)(align_bytes - 1);
    if (start - base > dram->size_bytes ||
        len_bytes > dram->size_bytes - (start - base)) {
        return NULL;
    }
    dram->used_bytes = start - base + len_bytes;
    if (dram->clear != NULL) {
        dram->clear(dram->clear_ctx, dram->base + (start - base), len_bytes);
    }
    return dram->base + (start - base);
}

void *dram_reserve_end(struct dram *dram, size_t len_bytes, size_t align_bytes)
{
    uintptr_t base = (uintptr_t)dram->base;
    uintptr_t start = base + dram->size_bytes;

    ASSERT(IS_POW2(align_bytes));
    if (len_bytes > dram->size_bytes - dram->used_bytes) {
        return NULL;
    }
    start = (start - len_bytes) & ~(uintptr_t)(align_bytes - 1);
    if (start - base < dram->used_bytes) {
        return NULL;
    }
    dram->size_bytes = start - base;
    return dram->base + dram->size_bytes;
}

void *dram_alloc(struct dram *dram, size_t len_bytes, size_t align_bytes)
{
    void *p = dram_reserve(dram, len_bytes, align_bytes);

    if (p != NULL) {
        memset(p, 0, len_bytes);
    }
    return p;
}
