/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers in DRAM, in three sizes (classes).  All transports move data
 * between these buffers and their hosts.  The target takes them through its
 * bufs seam; buf_pool.c divides them fairly among their owners,
 * which are the controllers.
 *
 * A host that falls silent keeps its buffers until its queue pair runs out of
 * retries.  Therefore buf_pool_get() limits what one owner may hold:
 *
 *  + BUF_RESERVE small buffers are kept for each owner and never lent to
 *    others.  An owner that holds nothing always gets a buffer, however many
 *    other hosts have fallen silent.
 *  + The rest of each class is shared.  An owner may take one more shared
 *    buffer while it holds less than a quarter (BUF_SHARE) of the free shared
 *    ones.  A single busy owner gets a fifth of a class and leaves the rest to
 *    others.
 *
 * A long command that gets no shared buffer uses BUF_RESERVE_LONG small
 * buffers of its owner's reserve and moves its data in windows of 16 KiB.  It
 * waits instead if its owner holds larger buffers that will come back.
 *
 * Taking and giving back cost a few loads and stores, however many owners there
 * are.  Buffers are never cleared.
 */
#ifndef ESSD_NVMEOF_BUFS_BUF_POOL_H
#define ESSD_NVMEOF_BUFS_BUF_POOL_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "storage/block/piece.h"

enum {
    BUF_CLASSES = 3,
    BUF_SMALL_LEN = 4096,
    BUF_SMALL_COUNT = 4096,
    BUF_MEDIUM_LEN = 32768,
    BUF_MEDIUM_COUNT = 256,
    BUF_LARGE_LEN = 131072,
    BUF_LARGE_COUNT = 256,
    /* A command that does not fit into its buffers takes at least this many
     * bytes of shared buffers at a time; only a window from its owner's reserve
     * is smaller. */
    BUF_WINDOW_MIN = BUF_LARGE_LEN,

    BUF_RESERVE = 8, /* small buffers kept for each owner */
    /* Small buffers of the reserve that a long command may use; the others
     * remain for short commands. */
    BUF_RESERVE_LONG = 4,
    /* An owner may hold one shared buffer of a class for every BUF_SHARE free
     * shared ones. */
    BUF_SHARE = 4,

    BUF_POOL_BYTES = BUF_SMALL_LEN * BUF_SMALL_COUNT +
                     BUF_MEDIUM_LEN * BUF_MEDIUM_COUNT +
                     BUF_LARGE_LEN * BUF_LARGE_COUNT,
};

struct buf_class {
    uint8_t *base;
    uint32_t len_bytes;
    uint16_t count;
    uint16_t free_count;
    uint16_t kept;  /* free buffers that are in some owner's reserve */
    uint16_t *free; /* stack of free buffers; the top one is still in caches */
};

struct buf_pool {
    uint32_t lkey; /* local key of the DRAM, the handle of every piece */
    struct buf_class classes[BUF_CLASSES];       /* by ascending length */
    uint16_t held[NVMF_BUF_OWNERS][BUF_CLASSES]; /* buffers of an owner */
    uint16_t free_small[BUF_SMALL_COUNT];
    uint16_t free_medium[BUF_MEDIUM_COUNT];
    uint16_t free_large[BUF_LARGE_COUNT];
};

/**
 * Make all buffers free.
 *
 * @param dram  BUF_POOL_BYTES of the firmware's DRAM, 4096-byte aligned
 * @param lkey  local key of that DRAM; it becomes the handle of each piece
 */
void buf_pool_init(struct buf_pool *bufs, void *dram, uint32_t lkey);

/** The target's seam: nvmf_config.bufs.  The pool must outlive the target. */
struct nvmf_bufs buf_pool_seam(struct buf_pool *pool);

/* The functions of the seam; ctx is the struct buf_pool. */
uint32_t buf_pool_get(void *ctx, uint8_t owner, uint32_t len_bytes,
                      struct nvmf_piece *pieces, uint8_t *count);
void buf_pool_put(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                  uint8_t count);

/** Bytes of all buffers that are in use, for tests and status lines. */
uint32_t buf_pool_used_bytes(const struct buf_pool *bufs);

#endif
