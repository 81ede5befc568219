/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The media seam: the interface between the target and the storage of blocks.
 *
 * Operations are asynchronous and complete in any order.  submit() starts one
 * and returns; the media's owner calls nvmf_media_done() once for each, from
 * the main loop and never inside submit().  Two operations in flight on the
 * same blocks have no order, as in NVMe itself.
 *
 * The volatile write cache is the media's.  A write that has completed is at
 * risk of a power cut until a later flush of its namespace completes, unless it
 * had FUA or the cache was off when it was submitted.
 */
#ifndef ESSD_NVMEOF_TARGET_MEDIA_H
#define ESSD_NVMEOF_TARGET_MEDIA_H

#include "nvmeof/target/piece.h"

/* media_io.ns of a flush of all namespaces. */
#define MEDIA_NS_ALL UINT32_MAX

enum media_op {
    MEDIA_READ,         /* copies blocks to pieces; FUA bypasses the cache */
    MEDIA_WRITE,        /* copies pieces to blocks; FUA: durable when done */
    MEDIA_FLUSH,        /* makes every completed write durable */
    MEDIA_WRITE_ZEROES, /* zeroes blocks; FUA as for writes */
    MEDIA_DEALLOCATE,   /* frees blocks, which then read as zeroes */
};

enum media_status {
    MEDIA_OK,
    MEDIA_LBA_RANGE,      /* beyond the end: a bug, or the medium has shrunk */
    MEDIA_READ_ERROR,     /* unrecovered read error */
    MEDIA_WRITE_ERROR,    /* write fault */
    MEDIA_READ_ONLY,      /* the medium refuses writes */
    MEDIA_INTERNAL_ERROR, /* DMA or command failure inside the drive */
    MEDIA_ABORTED,        /* reset or power transition */
    MEDIA_STATUSES
};

struct media_io {
    enum media_op op;
    bool fua;
    uint8_t piece_count;
    uint32_t ns; /* nvmf_ns_config.media_ns; a flush: or MEDIA_NS_ALL */
    uint64_t first_lba;
    uint32_t count_blocks;           /* at least 1; 0 for MEDIA_FLUSH */
    const struct nvmf_piece *pieces; /* valid until nvmf_media_done() */
    void *cookie;                    /* argument of nvmf_media_done() */
    uint32_t number; /* what traces call the request that needs it */
};

struct media_geometry {
    uint64_t size_blocks;
    uint8_t block_shift; /* 9 for 512 bytes, 12 for 4096 bytes */
    bool is_read_only;
    bool has_volatile_cache; /* Identify VWC, feature 06h */
};

struct nvmf_media {
    void *ctx;

    /**
     * Start one operation.  *io is read before submit() returns; the pieces
     * it points to stay valid until nvmf_media_done().
     *
     * @return false when there is no room; nothing was started.  The target
     *         tries again after its next nvmf_media_done(), in order of
     *         arrival.  So submit() must succeed while no operation of the
     *         target is in flight.
     */
    bool (*submit)(void *ctx, const struct media_io *io);

    /**
     * Turn the volatile write cache on or off for operations submitted from
     * now on.  Blocks already in the cache stay at risk: the target submits
     * a MEDIA_FLUSH of all namespaces right after turning it off.
     */
    void (*set_volatile)(void *ctx, bool is_enabled);

    /** Get the geometry of namespace ns, at the start and after a change.
     * MEDIA_NS_ALL: only has_volatile_cache, also without a namespace. */
    void (*geometry)(void *ctx, uint32_t ns, struct media_geometry *geometry);
};

#endif
