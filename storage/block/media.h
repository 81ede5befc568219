/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The media seam: the interface between the storage of blocks and whoever uses
 * it: the target, the volume, self-tests, Sanitize.
 *
 * Operations are asynchronous and complete in any order.  submit() starts one
 * and returns; the media calls its owner's done() once for each, from the main
 * loop and never inside submit().  Two operations in flight on the
 * same blocks have no order, as in NVMe itself.
 *
 * The volatile write cache is the media's.  A write that has completed is at
 * risk of a power cut until a later flush of its namespace completes, unless it
 * had FUA or the cache was off when it was submitted.
 */
#ifndef ESSD_STORAGE_BLOCK_MEDIA_H
#define ESSD_STORAGE_BLOCK_MEDIA_H

#include "storage/block/piece.h"

/* media_io.ns of a flush of all namespaces. */
#define MEDIA_NS_ALL UINT32_MAX

enum media_op {
    MEDIA_READ,         /* copies blocks to pieces; FUA bypasses the cache */
    MEDIA_WRITE,        /* copies pieces to blocks; FUA: durable when done */
    MEDIA_FLUSH,        /* makes every completed write durable */
    MEDIA_WRITE_ZEROES, /* zeroes blocks; FUA as for writes */
    MEDIA_DEALLOCATE,   /* frees blocks, which then read as zeroes */
    /* Marks blocks, so that reads of them end with MEDIA_MARKED until the
     * blocks are written or freed.  Only media with media_geometry.can_mark do
     * this. */
    MEDIA_WRITE_UNCORRECTABLE,
};

enum media_status {
    MEDIA_OK,
    MEDIA_LBA_RANGE,      /* beyond the end: a bug, or the medium has shrunk */
    MEDIA_READ_ERROR,     /* unrecovered read error */
    MEDIA_WRITE_ERROR,    /* write fault */
    MEDIA_READ_ONLY,      /* the medium refuses writes */
    MEDIA_INTERNAL_ERROR, /* DMA or command failure inside the drive */
    MEDIA_ABORTED,        /* reset or power transition */
    MEDIA_MARKED,         /* a read of a block that a host has marked, or whose
                           * data was lost before it was on the medium */
    MEDIA_TRANSFER_ERROR, /* a write whose data was lost inside the drive */
    MEDIA_GUARD_ERROR,    /* protection information: these three say which */
    MEDIA_APP_TAG_ERROR,  /* check of nvmf_media.failed_block() failed */
    MEDIA_REF_TAG_ERROR,
    MEDIA_STATUSES
};

/*
 * media_io.protection: how reads, writes and MEDIA_WRITE_ZEROES treat the 8
 * bytes of metadata that each block has.  0: the blocks have none, or nobody
 * wants it.
 */
enum {
    MEDIA_PI_TYPE = 0x03,  /* protection information of type 1, 2 or 3; 0: the
                            * metadata is something else */
    MEDIA_METADATA = 0x04, /* set whenever another bit is */
    MEDIA_INTERLEAVED = 0x08, /* In the pieces, each block is followed by its
                               * metadata.  If not, a read drops the metadata,
                               * and a write makes protection information.
                               * MEDIA_WRITE_ZEROES: the metadata is 0. */
    /* Checks of a read, or of a write that is interleaved. */
    MEDIA_CHECK_REF = 0x10,   /* of the reference tag, with ref_tag */
    MEDIA_CHECK_APP = 0x20,   /* of the application tag, with app_tag */
    MEDIA_CHECK_GUARD = 0x40, /* of the guard, with the CRC of the data */
    MEDIA_CHECKS = 0x70,
    MEDIA_4096 = 0x80, /* blocks of 4096 bytes, rather than 512 */
};

/*
 * Who has started an operation.  Whoever starts operations embeds one of these
 * for each operation that it may have in progress; it has to stay where it is
 * until done() is called.
 */
struct media_owner {
    /** The operation has ended.  Another one may be started from here. */
    void (*done)(struct media_owner *owner, enum media_status status);
};

/* For the media: tell the owner that its operation has ended. */
static inline void media_end(struct media_owner *owner,
                             enum media_status status)
{
    owner->done(owner, status);
}

struct media_io {
    enum media_op op;
    bool fua;
    uint8_t piece_count;
    uint8_t protection; /* MEDIA_METADATA and so on */
    uint32_t ns;        /* nvmf_ns_config.media_ns; a flush: or MEDIA_NS_ALL */
    uint32_t ref_tag;   /* of the first block; types 1 and 2: the next block's
                         * is larger by 1 */
    uint64_t first_lba;
    uint32_t count_blocks; /* at least 1; 0 for MEDIA_FLUSH */
    uint16_t app_tag;
    uint16_t app_mask; /* bits of the application tag that are compared */
    /* Writes with the same number are likely to be freed together: 1 to
     * media_geometry.placements; 0: nothing is known. */
    uint16_t placement;
    const struct nvmf_piece *pieces; /* valid until owner->done() */
    struct media_owner *owner;
    uint32_t number; /* what traces call the request that needs it, or
                      * MEDIA_NO_NUMBER */
};

/* media_io.number of what the drive does by itself. */
#define MEDIA_NO_NUMBER UINT32_MAX

/** A flush of everything that the drive needs by itself. */
static inline struct media_io media_own_flush(struct media_owner *owner)
{
    return (struct media_io){
        .op = MEDIA_FLUSH, .owner = owner, .number = MEDIA_NO_NUMBER};
}

struct media_geometry {
    uint64_t size_blocks;
    uint8_t block_shift; /* 9 for 512 bytes, 12 for 4096 bytes */
    bool has_metadata;   /* 8 bytes for each block */
    uint8_t pi_type;     /* 1 to 3; 0: no protection information */
    bool pi_is_first;    /* what the host chose; it makes no difference */
    bool is_read_only;
    bool has_volatile_cache; /* Identify VWC, feature 06h */
    bool can_mark;           /* there is MEDIA_WRITE_UNCORRECTABLE */
    /* The medium writes naturally aligned units of 2^atomic_shift bytes as a
     * whole.  A write within one changes all of its blocks or none, also when
     * the power fails, and a write of a part has to read the rest of the unit.
     * 0: each block is written by itself. */
    uint8_t atomic_shift;
    uint64_t zone_blocks; /* length of a zone; 0: there are no zones */
    uint16_t placements;  /* largest media_io.placement */
};

struct nvmf_media {
    void *ctx;

    /**
     * Start one operation.  *io is read before submit() returns; the pieces
     * it points to stay valid until owner->done().
     *
     * @return false when there is no room; nothing was started.  The target
     *         tries again after its next done(), in order of arrival.  So
     * submit() must succeed while no operation of the target is in flight.
     */
    bool (*submit)(void *ctx, const struct media_io *io);

    /**
     * Turn the volatile write cache on or off for operations submitted from
     * now on.  Blocks already in the cache stay at risk: the target submits
     * a MEDIA_FLUSH of all namespaces right after turning it off.
     */
    void (*set_volatile)(void *ctx, bool is_enabled);

    /** Get the geometry of namespace ns, at the start and after a change.
     * With MEDIA_NS_ALL, only has_volatile_cache and can_mark are valid, even
     * if there is no namespace. */
    void (*geometry)(void *ctx, uint32_t ns, struct media_geometry *geometry);

    /**
     * After one of the three errors of protection information: the number of
     * the block, counted from first_lba of the operation.  Call it only inside
     * owner->done().  NULL: the medium has no metadata.
     */
    uint32_t (*failed_block)(void *ctx);
};

#endif
