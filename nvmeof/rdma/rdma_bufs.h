/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers in DRAM, in three sizes: what the target's bufs seam hands out,
 * in fair shares.
 *
 * A host that falls silent keeps its buffers until its queue pair's retries
 * end, so what one host may hold is limited when it takes them:
 *
 *  + RDMA_RESERVE small buffers are kept for each owner.  Nobody else ever has
 *    them, so an owner that holds nothing always gets something, however many
 *    others have fallen silent.
 *  + The rest of each class is shared: an owner may take one more as long as it
 *    holds less than a quarter (RDMA_SHARE) of those that are free.  One alone
 *    gets a fifth of a class, and whoever comes later finds some.
 *
 * A long command that gets neither goes on with RDMA_RESERVE_LONG small buffers
 * of its owner's reserve, in windows of 16 KiB, unless its owner has larger
 * ones to wait for.
 *
 * Taking and giving back are a few loads and stores, however many owners there
 * are; buffers are never cleared.
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
    uint16_t kept;  /* free, but in somebody's reserve */
    uint16_t *free; /* a stack: what was used last is still in the caches */
};

struct rdma_bufs {
    uint32_t lkey;
    struct rdma_buf_class classes[RDMA_BUF_CLASSES]; /* ascending */
    uint16_t held[NVMF_BUF_OWNERS][RDMA_BUF_CLASSES];
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
uint32_t rdma_bufs_get(void *ctx, uint8_t owner, uint32_t len_bytes,
                       struct nvmf_piece *pieces, uint8_t *count);
void rdma_bufs_put(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                   uint8_t count);

/** How many bytes are handed out, for tests and status lines. */
uint32_t rdma_bufs_used_bytes(const struct rdma_bufs *bufs);

#endif
