/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One piece of a data buffer, as the transport and the media both see it.
 */
#ifndef ESSD_NVMEOF_TARGET_PIECE_H
#define ESSD_NVMEOF_TARGET_PIECE_H

#include <stdbool.h>
#include <stdint.h>

struct nvmf_piece {
    void *ptr; /* where the CPU sees it */
    uint32_t len_bytes;
    uint32_t handle; /* the buffer owner's own, e.g. a local key */
};

/**
 * Where data buffers come from.  Media and transport DMA straight to and from
 * what get() hands out.
 */
struct nvmf_bufs {
    void *ctx;

    /**
     * Buffers for len_bytes (1..NVMF_MAX_TRANSFER), their lengths adding up to
     * exactly that, in at most NVMF_MAX_PIECES pieces.
     *
     * @return false when there are too few now: nothing was taken.  The
     *         target tries again after its next put(), in order of arrival.
     */
    bool (*get)(void *ctx, uint32_t len_bytes, struct nvmf_piece *pieces,
                uint8_t *count);

    /** Give back exactly what one get() returned. */
    void (*put)(void *ctx, const struct nvmf_piece *pieces, uint8_t count);
};

#endif
