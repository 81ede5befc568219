/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Storage of a device core in QEMU's block layer: see essd_blk.h. */
#include "qemu/osdep.h"
#include "essd_blk.h"

#include "block/aio.h"
#include "block/block.h"
#include "qapi/error.h"
#include "trace.h"

bool essd_blk_open(EssdBlk *blk, const char *device, const char *what,
                   Error **errp)
{
    blk->device = device;
    if (!blk_supports_write_perm(blk->conf.blk)) {
        error_setg(errp, "%s: %s '%s' is read-only", device, what,
                   bdrv_get_device_or_node_name(blk_bs(blk->conf.blk)));
        return false;
    }
    return blkconf_blocksizes(&blk->conf, errp) &&
           blkconf_apply_backend_options(&blk->conf, false, false, errp);
}

/* Complete the reads that were done at once, but none that follow from that. */
static void essd_blk_complete_reads(void *opaque)
{
    EssdBlk *blk = opaque;

    for (uint32_t n = blk->num_read; n > 0; n--) {
        uint32_t id = blk->read_ids[blk->first_read];

        blk->first_read = (blk->first_read + 1) % blk->num_ids;
        blk->num_read--;
        trace_essd_blk_io_done(blk->device, id, 0);
        blk->done(blk->opaque, id, 0);
        blk_dec_in_flight(blk->conf.blk);
    }
}

void essd_blk_start(EssdBlk *blk, uint32_t num_ids, EssdBlkDone *done,
                    void *opaque)
{
    blk->done = done;
    blk->opaque = opaque;
    blk->io = g_new0(EssdBlkIo, num_ids);
    for (uint32_t i = 0; i < num_ids; i++) {
        blk->io[i].blk = blk;
    }
    blk->num_ids = num_ids;
    blk->read_ids = g_new(uint32_t, num_ids);
    blk->done_work = (EssdWork){.run = essd_blk_complete_reads, .opaque = blk};
}

void essd_blk_end(EssdBlk *blk)
{
    essd_data_cancel(&blk->done_work);
    g_free(blk->read_ids);
    g_free(blk->io);
}

static void essd_blk_io_done(void *opaque, int ret)
{
    EssdBlkIo *io = opaque;
    EssdBlk *blk = io->blk;
    uint32_t id = io - blk->io;

    trace_essd_blk_io_done(blk->device, id, ret);
    blk->done(blk->opaque, id, ret);
}

void essd_blk_readv(void *ctx, uint32_t id, uint64_t offset,
                    const struct iovec *iov, unsigned int niov)
{
    EssdBlk *blk = ctx;
    EssdBlkIo *io = &blk->io[id];

    qemu_iovec_init_external(&io->qiov, (struct iovec *)iov, niov);
    trace_essd_blk_io(blk->device, id, "read", offset, io->qiov.size);
    if (blk_preadv_nowait(blk->conf.blk, offset, &io->qiov) == 0) {
        blk_inc_in_flight(blk->conf.blk); /* until it is completed */
        blk->read_ids[(blk->first_read + blk->num_read++) % blk->num_ids] = id;
        essd_data_queue(&blk->done_work);
        return;
    }
    blk_aio_preadv(blk->conf.blk, offset, &io->qiov, 0, essd_blk_io_done, io);
}

void essd_blk_writev(void *ctx, uint32_t id, uint64_t offset,
                     const struct iovec *iov, unsigned int niov)
{
    EssdBlk *blk = ctx;
    EssdBlkIo *io = &blk->io[id];

    qemu_iovec_init_external(&io->qiov, (struct iovec *)iov, niov);
    trace_essd_blk_io(blk->device, id, "write", offset, io->qiov.size);
    blk_aio_pwritev(blk->conf.blk, offset, &io->qiov, 0, essd_blk_io_done, io);
}

void essd_blk_write_zeroes(void *ctx, uint32_t id, uint64_t offset,
                           uint64_t len, bool may_unmap)
{
    EssdBlk *blk = ctx;

    trace_essd_blk_io(blk->device, id, may_unmap ? "unmap" : "zero", offset,
                      len);
    blk_aio_pwrite_zeroes(blk->conf.blk, offset, len,
                          may_unmap ? BDRV_REQ_MAY_UNMAP : 0, essd_blk_io_done,
                          &blk->io[id]);
}

void essd_blk_discard(void *ctx, uint32_t id, uint64_t offset, uint64_t len)
{
    EssdBlk *blk = ctx;

    trace_essd_blk_io(blk->device, id, "discard", offset, len);
    blk_aio_pdiscard(blk->conf.blk, offset, len, essd_blk_io_done,
                     &blk->io[id]);
}

void essd_blk_flush(void *ctx, uint32_t id)
{
    EssdBlk *blk = ctx;

    trace_essd_blk_io(blk->device, id, "flush", 0, 0);
    blk_aio_flush(blk->conf.blk, essd_blk_io_done, &blk->io[id]);
}
