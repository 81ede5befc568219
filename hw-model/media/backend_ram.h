/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A medium in memory, for native programs.  It completes requests when it is
 * told to, loses unflushed writes in a power cut, and fails requests on demand.
 *
 * Writes change `written`.  A flush copies what was written before the flush to
 * `stable`, and a power cut restores `stable`.
 */
#ifndef ESSD_HW_MEDIA_BACKEND_RAM_H
#define ESSD_HW_MEDIA_BACKEND_RAM_H

#include "hw-model/core/ram_queue.h"
#include "hw-model/media/media_backend.h"

struct backend_ram {
    uint8_t *written;
    uint8_t *stable;
    uint64_t size_bytes;
    struct ram_queue queue; /* requests in progress */

    /* Called for each request that ends: hw_media_io_done(). */
    void (*done)(void *ctx, uint32_t id, int result);
    void *ctx;

    int fail_writes; /* 0, or the errno with which every write fails */
    int fail_reads;
    int fail_flushes;
};

/** `written` and `stable` have `size_bytes` bytes each. */
void backend_ram_init(struct backend_ram *ram, uint8_t *written,
                      uint8_t *stable, uint64_t size_bytes);

/** The back-end to pass to the media engine. */
struct media_backend backend_ram_backend(struct backend_ram *ram);

/**
 * Complete the request at `index` (0: the oldest) of those in progress.
 *
 * @return false when there is none
 */
bool backend_ram_step(struct backend_ram *ram, uint32_t index);

/** Fail the power: requests in progress and unflushed writes are lost. */
void backend_ram_power_cut(struct backend_ram *ram);

#endif
