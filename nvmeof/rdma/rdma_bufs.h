/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers in DRAM, in three sizes (classes).  The target takes them
 * through its bufs seam; rdma_bufs.c divides them fairly among their owners,
 * which are the controllers.
 *
 * A host that falls silent keeps its buffers until its queue pair runs out of
 * retries.  Therefore rdma_bufs_get() limits what one owner may hold:
 *
 *  + RDMA_RESERVE small buffers are kept for each owner and never lent to
 *    others.  An owner that holds nothing always gets a buffer, however many
 *    other hosts have fallen silent.
 *  + The rest of each class is shared.  An owner may take one more shared
 *    buffer while it holds less than a quarter (RDMA_SHARE) of the free shared
 *    ones.  A single busy owner gets a fifth of a class and leaves the rest to
 *    others.
 *
 * A long command that gets no shared buffer uses RDMA_RESERVE_LONG small
 * buffers of its owner's reserve and moves its data in windows of 16 KiB.  It
 * waits instead if its owner holds larger buffers that will come back.
 *
 * Taking and giving back cost a few loads and stores, however many owners there
 * are.  Buffers are never cleared.
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
    uint16_t kept;  /* free buffers that are in some owner's reserve */
    uint16_t *free; /* stack of free buffers; the top one is still in caches */
};

struct rdma_bufs {
    uint32_t lkey; /* local key of the DRAM, the handle of every piece */
    struct rdma_buf_class classes[RDMA_BUF_CLASSES];  /* by ascending length */
    uint16_t held[NVMF_BUF_OWNERS][RDMA_BUF_CLASSES]; /* buffers of an owner */
    uint16_t free_small[RDMA_SMALL_COUNT];
    uint16_t free_medium[RDMA_MEDIUM_COUNT];
    uint16_t free_large[RDMA_LARGE_COUNT];
};

/**
 * @param dram  RDMA_BUF_BYTES of the firmware's DRAM, 4096-byte aligned
 * @param lkey  local key of that DRAM; it becomes the handle of each piece
 */
void rdma_bufs_init(struct rdma_bufs *bufs, void *dram, uint32_t lkey);

/* The bufs seam (nvmeof/target/piece.h); ctx is the struct rdma_bufs. */
uint32_t rdma_bufs_get(void *ctx, uint8_t owner, uint32_t len_bytes,
                       struct nvmf_piece *pieces, uint8_t *count);
void rdma_bufs_put(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                   uint8_t count);

/** Bytes of all buffers that are in use, for tests and status lines. */
uint32_t rdma_bufs_used_bytes(const struct rdma_bufs *bufs);

#endif
