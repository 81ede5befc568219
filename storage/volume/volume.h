/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The volume: maps the blocks of namespaces to blocks of the medium, erases
 * what deleted namespaces leave behind, and keeps the table of namespaces in
 * flash.  It implements the target's seams for namespaces (volume_seam()) and,
 * together with the driver below, for media.
 *
 * Namespace n has the number n - 1 at the media seam.
 * Reference: docs/decisions/0011-namespaces.md
 */
#ifndef ESSD_VOLUME_VOLUME_H
#define ESSD_VOLUME_VOLUME_H

#include "firmware/hal/log.h"
#include "firmware/store/identity.h"
#include "firmware/store/write_shares.h"
#include "storage/volume/volume_table.h"
#include "nvmeof/limits.h"
#include "storage/block/media.h"
#include "nvmeof/target/volume.h"

enum {
    VOLUME_SPLITS = 64,     /* operations in parts that are in flight at once */
    VOLUME_MEDIA_SHIFT = 9, /* the medium has blocks of 512 bytes */

    /*
     * The flash endures 100,000 erasures of each sector, and 8 places take
     * turns.  The first writes are always possible, so that nobody is held up
     * while setting a drive up.  Hosts that go on changing the table at the
     * rate that is allowed then wear the flash out in 3.7 years.  Each host has
     * a share of the writes that are left.
     */
    VOLUME_WRITES_FREE = 4096,
    VOLUME_WRITES_PER_HOUR = 24,
    VOLUME_COPIES = 8,
};

/* What is known of the table in flash at the start. */
enum volume_record {
    VOLUME_RECORD_NONE,    /* nothing was ever written */
    VOLUME_RECORD_OK,      /* record and record_len hold it */
    VOLUME_RECORD_OLDER,   /* they hold one of the last; the newest is lost */
    VOLUME_RECORD_DAMAGED, /* it was written, and cannot be read */
};

struct volume_config {
    struct log *log;
    uint64_t medium_blocks; /* of 512 bytes */
    bool has_cache;
    bool has_metadata; /* The medium keeps 8 bytes of metadata for each block,
                        * and the marks of Write Uncorrectable. */
    bool is_power_on;  /* the drive starts because the power came on */
    const struct identity *identity; /* from which UUIDs follow */
    const struct volume_plan *plan;  /* used for a drive without a table */

    enum volume_record record_state;
    const uint8_t *record;
    size_t record_len;
    uint32_t writes; /* how often the table was written */

    /* Write the table to flash.  NULL: it cannot be saved. */
    bool (*save)(void *ctx, const uint8_t *record, size_t len);
    void *save_ctx;
    uint64_t (*power_on_hours)(void *ctx);
    void *hours_ctx;
    /* A number for the host that changes something now; 0: nobody.  A job says
     * whose it is, because it goes on later.  NULL: all changes are the same
     * one's, who may use up all writes. */
    uint32_t (*acting_host)(void *ctx);
    void *acting_ctx;

    /* The medium: one namespace with blocks of 512 bytes. */
    bool (*submit)(void *ctx, const struct media_io *io);
    void *submit_ctx;

    /* A job has ended: nvmf_volume_done(). */
    void (*job_done)(void *ctx, enum nvmf_volume_result result, uint32_t nsid);
    /* A Format that went on after a restart has ended. */
    void (*ns_changed)(void *ctx, uint32_t nsid);
    /* See volume_watch_writes(). */
    void (*write_begins)(void *ctx);
    void *done_ctx;
};

/* The fast way from a namespace's blocks to the medium. */
struct volume_map {
    const uint16_t *windows;
    /* Block of the medium at which the namespace begins, if is_linear. */
    uint64_t base;
    bool is_linear; /* all windows are adjacent, in the order of the blocks */
    uint8_t shift;  /* of a block relative to 512 bytes */
    uint64_t size_blocks;
};

/* An operation that consists of several parts, which run one after another. */
struct volume_split {
    struct media_io io;       /* of the current part */
    struct media_owner owner; /* of that part */
    struct volume *volume;
    struct media_owner *whole; /* of the whole operation */
    uint32_t ns;
    uint64_t next_block;           /* of the namespace, in units of 512 bytes */
    uint64_t left_blocks;          /* 512 bytes */
    uint64_t done_blocks;          /* 512 bytes; of parts that succeeded */
    const struct nvmf_piece *from; /* the operation's pieces */
    uint8_t from_count;
    uint32_t from_offset; /* bytes of the pieces that are done */
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    bool is_used;
    bool is_waiting; /* the medium had no room for the current part */
    bool is_refused; /* It is not in its namespace: volume_step() ends it. */
};

enum volume_job_state {
    JOB_NONE,    /* Waits for start(). */
    JOB_WAITING, /* Waits until free windows are erased, then changes the
                  * table. */
    JOB_ERASING, /* Erases the windows of a namespace that is formatted. */
};

/* Treat as opaque, except for what volume_locate() reads. */
struct volume {
    struct volume_config config;
    uint8_t window_shift; /* in units of 512 bytes */
    struct volume_map map[VOLUME_NAMESPACES];
    struct volume_split split[VOLUME_SPLITS];

    bool is_watched;      /* by volume_watch_writes() */
    uint32_t failed_base; /* blocks before the part that is ending */

    enum volume_job_state job_state;
    struct nvmf_volume_job job;
    bool is_resumed; /* the job goes on after a restart; nobody waits for it */
    bool has_next;   /* `next` waits until the resumed job has ended */
    struct nvmf_volume_job next;
    uint32_t erase_at; /* JOB_ERASING: next window of the namespace */
    bool is_erasing;   /* an erasure is in flight */
    struct media_owner erasure;
    bool erasure_is_off;      /* until the next creation */
    uint32_t erased, erasing; /* first window in flight, and their number */
    bool has_work;

    uint32_t writes;
    struct write_shares shares;
    struct volume_table table;
    struct volume_table draft; /* a change that is not saved yet */
    uint8_t record[VOLUME_RECORD_MAX];
};

/** Start with the table in flash, or divide a new drive. */
void volume_init(struct volume *volume, const struct volume_config *config);

/** The target's seam for namespaces. */
struct nvmf_volume volume_seam(struct volume *volume);

/** What hosts have used of the writes of the table, to be kept over a restart.
 */
static inline struct write_shares *volume_write_shares(struct volume *volume)
{
    return &volume->shares;
}

/** The table in force, for status output. */
const struct volume_table *volume_now(const struct volume *volume);

/** @return whether a Format of the namespace has begun and nothing finishes it:
 * it takes no I/O until it is formatted again. */
bool volume_format_has_failed(const struct volume *volume, uint32_t nsid);

/** The geometry of a namespace, for the media seam. */
void volume_geometry(const struct volume *volume, uint32_t ns,
                     struct media_geometry *geometry);

/** Whether all blocks of an operation are in its namespace. */
static inline bool volume_has_blocks(const struct volume_map *map,
                                     const struct media_io *io)
{
    return io->count_blocks != 0 && io->count_blocks <= map->size_blocks &&
           io->first_lba <= map->size_blocks - io->count_blocks;
}

/**
 * Find the place of an operation on the medium, if all windows of its namespace
 * are adjacent.
 *
 * @param lba, count  set to its blocks of 512 bytes
 * @return false when volume_locate() has to look for it, or when it reaches
 *         beyond the end of its namespace
 */
static inline bool volume_locate_linear(const struct volume *volume,
                                        const struct media_io *io,
                                        uint64_t *lba, uint32_t *count)
{
    const struct volume_map *map = &volume->map[io->ns];
    uint64_t blocks = (uint64_t)io->count_blocks << map->shift;

    *lba = map->base + (io->first_lba << map->shift);
    *count = (uint32_t)blocks;
    return map->is_linear && blocks <= UINT32_MAX && volume_has_blocks(map, io);
}

/** The same for a namespace whose windows lie anywhere.
 * @return false when it is in several places, or not in its namespace:
 *         volume_submit() divides it, or refuses it */
bool volume_locate(const struct volume *volume, const struct media_io *io,
                   uint64_t *lba, uint32_t *count);

/** Start an operation that volume_locate() did not place.  As
 * nvmf_media.submit().  One that reaches beyond the end of its namespace moves
 * no data and ends with MEDIA_LBA_RANGE. */
MUST_USE bool volume_submit(struct volume *volume, const struct media_io *io);

/** The first write after volume_watch_writes(). */
void volume_begin_write(struct volume *volume);

/**
 * Call config.write_begins() before the next operation that writes to a
 * namespace.  Until then no namespace is linear, so that all operations take
 * the path that looks whether they write; others do not pay for it.
 */
void volume_watch_writes(struct volume *volume);

/** An operation that volume_locate_linear() did not place writes. */
static inline void volume_note_operation(struct volume *volume,
                                         const struct media_io *io)
{
    if (volume->is_watched &&
        (io->op == MEDIA_WRITE || io->op == MEDIA_WRITE_ZEROES ||
         io->op == MEDIA_WRITE_UNCORRECTABLE)) {
        volume_begin_write(volume);
    }
}

/**
 * Somebody else has erased the whole medium: deleted namespaces have left
 * nothing.  Writes are watched from now on.
 */
void volume_medium_erased(struct volume *volume);

/** nvmf_media.failed_block(), of a part that has ended with this block. */
static inline uint32_t volume_failed_block(const struct volume *volume,
                                           uint32_t of_part)
{
    return volume->failed_base + of_part;
}

/** Whether volume_step() has something to do. */
static inline bool volume_has_work(const struct volume *volume)
{
    return volume->has_work;
}

/**
 * Do what is due: jobs, erasures, operations that waited for room.
 *
 * @return whether anything was done
 */
bool volume_step(struct volume *volume);

#endif
