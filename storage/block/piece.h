/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of data buffers, as both the transport and the media see them.
 */
#ifndef ESSD_STORAGE_BLOCK_PIECE_H
#define ESSD_STORAGE_BLOCK_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "nvmeof/limits.h"

struct nvmf_piece {
    void *ptr; /* address for the CPU */
    uint32_t len_bytes;
    uint32_t handle; /* for the provider of the buffers, e.g. a local key */
};

/* The owner of a buffer is a controller (its index).  NVMF_BUF_NO_CTRL owns the
 * buffers of all queue pairs that have no controller. */
enum {
    NVMF_BUF_NO_CTRL = NVMF_MAX_HOSTS,
    NVMF_BUF_OWNERS,
};

/**
 * The source of data buffers.  Media and transport access these buffers
 * directly by DMA.
 */
struct nvmf_bufs {
    void *ctx;

    /**
     * Take buffers for the first bytes of a command's data, in at most
     * NVMF_MAX_PIECES pieces.  An owner that holds no buffer always gets some.
     *
     * @param owner      below NVMF_BUF_OWNERS
     * @param len_bytes  length of the data, 1..NVMF_MAX_TRANSFER
     * @return the sum of the pieces' lengths: len_bytes, or a smaller multiple
     *         of 4096 that is NVMF_WINDOW_MIN or more; 0, with nothing taken,
     *         when the owner has its share or too few buffers are free.  The
     *         target then tries again, at the latest after the next put() of
     *         the same owner.
     */
    uint32_t (*get)(void *ctx, uint8_t owner, uint32_t len_bytes,
                    struct nvmf_piece *pieces, uint8_t *count);

    /** Return the pieces of one get(); their lengths are ignored. */
    void (*put)(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                uint8_t count);
};

#endif
