/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One piece of a data buffer, as the transport and the media both see it.
 */
#ifndef ESSD_NVMEOF_TARGET_PIECE_H
#define ESSD_NVMEOF_TARGET_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "nvmeof/limits.h"

struct nvmf_piece {
    void *ptr; /* where the CPU sees it */
    uint32_t len_bytes;
    uint32_t handle; /* the buffer owner's own, e.g. a local key */
};

/* The owner of buffers: a controller, by its index, or all queue pairs without
 * a controller together. */
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
     * Buffers for the first bytes of len_bytes (1..NVMF_MAX_TRANSFER), in at
     * most NVMF_MAX_PIECES pieces whose lengths add up to what is returned.
     * An owner that holds nothing always gets something.
     *
     * @param owner  below NVMF_BUF_OWNERS
     * @return how many bytes they hold: len_bytes, or a smaller multiple of
     *         4096; 0 when the owner has its share or there are too few now:
     *         nothing was taken.  The target tries again after a put() of the
     *         same owner, at the latest.
     */
    uint32_t (*get)(void *ctx, uint8_t owner, uint32_t len_bytes,
                    struct nvmf_piece *pieces, uint8_t *count);

    /** Return the pieces of one get(); their lengths are ignored. */
    void (*put)(void *ctx, uint8_t owner, const struct nvmf_piece *pieces,
                uint8_t count);
};

#endif
