/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the media core share.  No other file includes
 * this.
 */
#ifndef ESSD_HW_MEDIA_INTERNAL_H
#define ESSD_HW_MEDIA_INTERNAL_H

#include "lib/regfields.h"
#include "hw-model/core/dev_queue_rings.h"
#include "hw-model/media/hw_media.h"
#include "hw-model/regs/media.h"
#include "lib/bytes.h"

/* Request IDs of the back-end: commands, slices, batches, then the flush. */
enum {
    IO_SLICE0 = HW_MEDIA_OPS,
    IO_BATCH0 = HW_MEDIA_BATCH_ID0,
    IO_FLUSH = IO_BATCH0 + HW_MEDIA_BATCHES,
};

static inline void *media_dma(const struct hw_media *media, uint64_t addr,
                              uint64_t len)
{
    return media->config.env.dma(media->config.env.ctx, addr, len);
}

/* The same for memory of which the engine overwrites all bytes. */
static inline void *media_dma_write(const struct hw_media *media, uint64_t addr,
                                    uint64_t len)
{
    return media->config.env.dma_write(media->config.env.ctx, addr, len);
}

static inline void media_defer(const struct hw_media *media)
{
    media->config.env.defer(media->config.env.ctx);
}

static inline void media_count(struct hw_media *media,
                               enum media_counter counter, uint64_t n)
{
    media->regs.counters[counter] += n;
}

static inline uint32_t media_op_index(const struct hw_media *media,
                                      const struct hw_media_op *op)
{
    return (uint32_t)(op - media->ops);
}

/* ---- hw_media_list */
static inline void media_list_init(struct hw_media_list *list)
{
    list->head = CACHE_NONE;
    list->tail = CACHE_NONE;
}

static inline bool media_list_is_empty(const struct hw_media_list *list)
{
    return list->head == CACHE_NONE;
}

void media_list_put(struct hw_media *media, struct hw_media_list *list,
                    struct hw_media_op *op);
void media_list_put_first(struct hw_media *media, struct hw_media_list *list,
                          struct hw_media_op *op);
struct hw_media_op *media_list_take(struct hw_media *media,
                                    struct hw_media_list *list);

/* ---- hw_media.c */

/* Write the completion of `op` and free it. */
void media_complete(struct hw_media *media, struct hw_media_op *op);

/*
 * Called at the end of every entry into the core: raises interrupts and takes
 * commands that had to wait.
 */
void media_leave(struct hw_media *media);

void media_irq_raise(struct hw_media *media, uint32_t bits);

/* ---- hw_media_command.c */

/* Take one command; `op` is free and becomes its operation. */
void media_command_start(struct hw_media *media, struct hw_media_op *op,
                         const uint8_t *command);

/* ---- hw_media_trace.c */

/* Trace the start of a command that has been checked. */
void media_trace_start(struct hw_media *media, struct hw_media_op *op);

/* Trace the end of a command whose start was traced. */
void media_trace_end(const struct hw_media *media,
                     const struct hw_media_op *op);

/* ---- hw_media_overlap.c */

/* Begin a checked command, or let it wait for others with the same blocks. */
void media_overlap_begin(struct hw_media *media, struct hw_media_op *op);

/* It has ended, or its data are where they belong: others need not wait for it
 * any more. */
void media_overlap_end(struct hw_media *media, struct hw_media_op *op);

/* Begin the commands that have waited for those that have ended. */
void media_overlap_wake(struct hw_media *media);

/* ---- hw_media_op.c */

/* Begin a checked command of any opcode. */
void media_op_begin(struct hw_media *media, struct hw_media_op *op);

/* A request for `op` has ended. */
void media_op_io_done(struct hw_media *media, struct hw_media_op *op,
                      int result);
void media_op_slice_done(struct hw_media *media, uint32_t slice, int result);

/* The flush of the medium has ended. */
void media_op_flush_done(struct hw_media *media, int result);

/* Continue, or fail, the operations that waited for the cache to shrink. */
void media_op_wake(struct hw_media *media);
void media_op_fail_waiters(struct hw_media *media, uint8_t status);

uint8_t media_status_of(const struct hw_media_op *op, int result);

/* ---- hw_media_destage.c */

/* Start as many destage requests as needed. */
void media_destage_pump(struct hw_media *media);

/* The timer does not run while the caller waits: if writes wait for room, let
 * media_destage_pump() try again although the medium has refused data. */
void media_destage_again(struct hw_media *media);

/*
 * Destage `line` now.
 * @return the index of its batch; CACHE_NONE when all batches are in use
 */
uint32_t media_destage_line(struct hw_media *media, struct media_line *line);

void media_destage_done(struct hw_media *media, uint32_t batch, int result);

/* Note that data was written to the cache: the idle time starts again. */
void media_destage_note_write(struct hw_media *media);

#endif
