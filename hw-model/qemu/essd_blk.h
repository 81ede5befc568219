/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Storage of a device core in QEMU's block layer: requests with identifiers, as
 * hw-model/media/media_backend.h and hw-model/nand/nand_backend.h have them.
 *
 * A wrapper embeds an EssdBlk, puts QEMU's block device properties into `conf`,
 * and passes the functions for requests, with the EssdBlk as their ctx, to its
 * core.  Everything runs under the big lock.
 *
 * A read whose bytes are in the page cache is done at once, in the thread that
 * starts it; its completion follows as for any other.  All other requests go to
 * QEMU's worker threads, and end in the main loop.
 */
#ifndef ESSD_BLK_H
#define ESSD_BLK_H

#include "qemu/iov.h"
#include "hw/block/block.h"
#include "system/block-backend.h"

#include "essd_data.h"

/* A request has ended. @param result  0 or -errno */
typedef void EssdBlkDone(void *opaque, uint32_t id, int result);

typedef struct EssdBlk EssdBlk;

typedef struct EssdBlkIo {
    EssdBlk *blk;
    QEMUIOVector qiov;
} EssdBlkIo;

struct EssdBlk {
    BlockConf conf;
    const char *device; /* the type of its owner, for traces and errors */
    EssdBlkDone *done;
    void *opaque;
    EssdBlkIo *io; /* indexed by the identifier of the request */
    EssdWork done_work;
    /* A ring of the identifiers of reads that are done, but not completed. */
    uint32_t *read_ids;
    uint32_t num_ids;
    uint32_t first_read;
    uint32_t num_read;
};

/*
 * Check that there is write permission, and apply the properties.
 * @param what  what errors call the storage: "the media"
 */
bool essd_blk_open(EssdBlk *blk, const char *device, const char *what,
                   Error **errp);

/* Make room for `num_ids` requests in progress.  `done` is called for each. */
void essd_blk_start(EssdBlk *blk, uint32_t num_ids, EssdBlkDone *done,
                    void *opaque);

/* No request is in progress. */
void essd_blk_end(EssdBlk *blk);

void essd_blk_readv(void *ctx, uint32_t id, uint64_t offset,
                    const struct iovec *iov, unsigned int niov);
void essd_blk_writev(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov);
void essd_blk_write_zeroes(void *ctx, uint32_t id, uint64_t offset,
                           uint64_t len, bool may_unmap);
void essd_blk_discard(void *ctx, uint32_t id, uint64_t offset, uint64_t len);
void essd_blk_flush(void *ctx, uint32_t id);

#endif
