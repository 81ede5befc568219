/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_bufs.h"

static void class_init(struct rdma_buf_class *pool, uint8_t *base,
                       uint32_t len_bytes, uint16_t *free, uint16_t count)
{
    *pool = (struct rdma_buf_class){
        .base = base,
        .len_bytes = len_bytes,
        .count = count,
        .free_count = count,
        .free = free,
    };
    for (uint16_t i = 0; i < count; i++) {
        free[i] = (uint16_t)(count - 1 - i);
    }
}

void rdma_bufs_init(struct rdma_bufs *bufs, void *dram, uint32_t lkey)
{
    uint8_t *base = dram;

    bufs->lkey = lkey;
    class_init(&bufs->classes[0], base, RDMA_SMALL_LEN, bufs->free_small,
               RDMA_SMALL_COUNT);
    base += RDMA_SMALL_LEN * RDMA_SMALL_COUNT;
    class_init(&bufs->classes[1], base, RDMA_MEDIUM_LEN, bufs->free_medium,
               RDMA_MEDIUM_COUNT);
    base += RDMA_MEDIUM_LEN * RDMA_MEDIUM_COUNT;
    class_init(&bufs->classes[2], base, RDMA_LARGE_LEN, bufs->free_large,
               RDMA_LARGE_COUNT);
}

static void take(struct rdma_bufs *bufs, unsigned int class_index,
                 uint32_t len_bytes, struct nvmf_piece *piece)
{
    struct rdma_buf_class *pool = &bufs->classes[class_index];
    uint32_t index = pool->free[--pool->free_count];

    *piece = (struct nvmf_piece){
        .ptr = pool->base + (size_t)index * pool->len_bytes,
        .len_bytes = len_bytes,
        .handle = bufs->lkey,
    };
}

/*
 * The class for the next piece: the smallest with room for all of it, or the
 * one above; else the largest that is left, to be followed by more pieces.
 * A small command never takes a buffer two sizes too large: that would starve
 * the large ones.
 */
static unsigned int choose(const uint16_t *left, const struct rdma_bufs *bufs,
                           uint32_t len_bytes)
{
    unsigned int fit = 0;

    while (bufs->classes[fit].len_bytes < len_bytes) {
        fit++;
    }
    if (left[fit] != 0) {
        return fit;
    }
    if (fit + 1 < RDMA_BUF_CLASSES && left[fit + 1] != 0) {
        return fit + 1;
    }
    while (fit-- > 0) {
        if (left[fit] != 0) {
            return fit;
        }
    }
    return RDMA_BUF_CLASSES;
}

bool rdma_bufs_get(void *ctx, uint32_t len_bytes, struct nvmf_piece *pieces,
                   uint8_t *count)
{
    struct rdma_bufs *bufs = ctx;
    uint8_t plan[NVMF_MAX_PIECES];
    uint16_t left[RDMA_BUF_CLASSES];
    uint32_t rest = len_bytes;
    uint8_t n = 0;

    ASSERT(len_bytes != 0 && len_bytes <= NVMF_MAX_TRANSFER);
    for (unsigned int i = 0; i < RDMA_BUF_CLASSES; i++) {
        left[i] = bufs->classes[i].free_count;
    }
    while (rest != 0) {
        unsigned int c = choose(left, bufs, rest);

        if (c == RDMA_BUF_CLASSES || n == NVMF_MAX_PIECES) {
            return false;
        }
        left[c]--;
        plan[n++] = (uint8_t)c;
        rest -= MIN(rest, bufs->classes[c].len_bytes);
    }
    rest = len_bytes;
    for (uint8_t i = 0; i < n; i++) {
        uint32_t len = MIN(rest, bufs->classes[plan[i]].len_bytes);

        take(bufs, plan[i], len, &pieces[i]);
        rest -= len;
    }
    *count = n;
    return true;
}

void rdma_bufs_put(void *ctx, const struct nvmf_piece *pieces, uint8_t count)
{
    struct rdma_bufs *bufs = ctx;

    for (uint8_t i = 0; i < count; i++) {
        const uint8_t *ptr = pieces[i].ptr;
        struct rdma_buf_class *pool = bufs->classes;
        size_t offset = (size_t)(ptr - pool->base);

        while (offset >= (size_t)pool->len_bytes * pool->count) {
            pool++;
            ASSERT(pool < bufs->classes + RDMA_BUF_CLASSES);
            offset = (size_t)(ptr - pool->base);
        }
        ASSERT(offset % pool->len_bytes == 0);
        ASSERT(pool->free_count < pool->count);
        pool->free[pool->free_count++] = (uint16_t)(offset / pool->len_bytes);
    }
}

uint32_t rdma_bufs_used_bytes(const struct rdma_bufs *bufs)
{
    uint32_t used = 0;

    for (unsigned int i = 0; i < RDMA_BUF_CLASSES; i++) {
        const struct rdma_buf_class *pool = &bufs->classes[i];

        used += (uint32_t)(pool->count - pool->free_count) * pool->len_bytes;
    }
    return used;
}
