/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace points of the translation layer: the events of group FTL in
 * lib/trace.h.  Each function below is called only while they are wanted:
 *
 *     if (ftl_is_traced(ftl)) {
 *         ftl_trace_row(ftl, request);
 *     }
 *
 * The cause of each operation of the flash goes with the operation itself, as
 * ftl_flash_op.tag, whether or not anybody traces.
 */
#ifndef ESSD_FTL_TRACE_H
#define ESSD_FTL_TRACE_H

#include "storage/ftl/state.h"

/* What an event FTL_PHASE is about.  Its phases are those of the enums named
 * here. */
enum ftl_activity {
    FTL_ACTIVITY_MOUNT,      /* enum ftl_mount_phase, or one of the next two */
    FTL_ACTIVITY_CHECKPOINT, /* enum ftl_checkpoint_state */
    FTL_ACTIVITY_WIPE,       /* enum ftl_wipe_phase */
};
enum {
    FTL_MOUNT_READY = FTL_MOUNT_CLEAR + 1, /* the mount has ended */
    FTL_MOUNT_FAILED,
};

/* Why a command of a host waits. */
enum ftl_wait {
    FTL_WAIT_SLOT,    /* the write buffer is full: the host is throttled */
    FTL_WAIT_DURABLE, /* a flush or FUA waits until the data is on flash */
};

static inline bool ftl_is_traced(const struct ftl *ftl)
{
    return trace_is_on(ftl->config.trace, TRACE_GROUP_FTL);
}

/** A superblock has entered its state. */
void ftl_trace_superblock(const struct ftl *ftl, uint32_t superblock);
/** Garbage collection has chosen its victim. */
void ftl_trace_victim(const struct ftl *ftl);
/** A row has been put together, and is programmed next. */
void ftl_trace_row(const struct ftl *ftl, const struct ftl_request *request);
void ftl_trace_row_done(const struct ftl *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status);
/** The units of a row that are to be moved are read. */
void ftl_trace_move(const struct ftl *ftl, const struct ftl_request *request);
/** A command of a host begins to wait, or goes on. */
void ftl_trace_wait(const struct ftl *ftl, const struct ftl_op *op,
                    enum ftl_wait reason, bool is_over);
/** @param superblock  what the activity works on, or FTL_NOWHERE */
void ftl_trace_phase(const struct ftl *ftl, enum ftl_activity activity,
                     uint32_t phase, uint32_t superblock);
/** The rebuilding of units has ended. */
void ftl_trace_rebuilt(const struct ftl *ftl, const struct ftl_rescue *rescue,
                       bool is_complete);

void ftl_trace_throttled(const struct ftl *ftl, struct ftl_op *op,
                         bool is_throttled);

/* ---- Trace points of one line, for files that have many. */

/** An operation begins to wait for a slot of the write buffer, or has all that
 * it needs. */
static inline void ftl_note_throttled(const struct ftl *ftl, struct ftl_op *op,
                                      bool is_throttled)
{
    if (__builtin_expect(op->is_throttled != is_throttled, 0) &&
        ftl_is_traced(ftl)) {
        ftl_trace_throttled(ftl, op, is_throttled);
    }
}

/** An operation begins to wait until what it has written is on flash. */
static inline void ftl_note_flush(struct ftl *ftl, const struct ftl_op *op)
{
    ftl->buffer.flushed = ftl->buffer.accepted;
    ftl->buffer.flush = op->io.number;
    if (ftl_is_traced(ftl)) {
        ftl_trace_wait(ftl, op, FTL_WAIT_DURABLE, false);
    }
}

static inline void ftl_note_flushed(const struct ftl *ftl,
                                    const struct ftl_op *op)
{
    if (ftl_is_traced(ftl)) {
        ftl_trace_wait(ftl, op, FTL_WAIT_DURABLE, true);
    }
}

/** The rebuilding of units begins. */
static inline void ftl_note_rescue(const struct ftl *ftl,
                                   struct ftl_rescue *rescue)
{
    const struct trace *trace = ftl->config.trace;

    rescue->begun_us = ftl_is_traced(ftl) ? trace->now_us(trace->ctx) : 0;
}

static inline void ftl_note_rebuilt(const struct ftl *ftl,
                                    const struct ftl_rescue *rescue,
                                    bool is_complete)
{
    if (ftl_is_traced(ftl)) {
        ftl_trace_rebuilt(ftl, rescue, is_complete);
    }
}

#endif
