/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers in DRAM, in three sizes: what the target's bufs seam hands out.
 *
 * Taking and giving back are a few loads and stores; buffers are never cleared.
 */
#ifndef ESSD_NVMEOF_RDMA_BUFS_H
#define ESSD_NVMEOF_RDMA_BUFS_H

#include "lib/util.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/target/piece.h"

struct rdma_buf_class {
    uint8_t *base;
    uint32_t len_bytes;
    uint16_t count;
    uint16_t free_count;
    uint16_t *free; /* a stack: what was used last is still in the caches */
};

struct rdma_bufs {
    uint32_t lkey;
    struct rdma_buf_class classes[RDMA_BUF_CLASSES]; /* ascending */
    uint16_t free_small[RDMA_SMALL_COUNT];
    uint16_t free_medium[RDMA_MEDIUM_COUNT];
    uint16_t free_large[RDMA_LARGE_COUNT];
};

/**
 * @param dram  RDMA_BUF_BYTES of the firmware's DRAM, 4096-byte aligned
 * @param lkey  goes into each piece's handle
 */
void rdma_bufs_init(struct rdma_bufs *bufs, void *dram, uint32_t lkey);

/* The bufs seam (nvmeof/target/piece.h); ctx is the struct rdma_bufs. */
bool rdma_bufs_get(void *ctx, uint32_t len_bytes, struct nvmf_piece *pieces,
                   uint8_t *count);
void rdma_bufs_put(void *ctx, const struct nvmf_piece *pieces, uint8_t count);

/** How many bytes are handed out, for tests and status lines. */
uint32_t rdma_bufs_used_bytes(const struct rdma_bufs *bufs);

#endif
