/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace points of the units that are written and moved: see ftl_trace.h. */
#ifndef ESSD_FTL_TRACE_UNITS_H
#define ESSD_FTL_TRACE_UNITS_H

#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/map/map_floor.h"

/** Garbage collection has chosen its victim. */
void ftl_trace_victim(const struct ftl_map_floor *ftl);
/** A row has been put together, and is programmed next. */
void ftl_trace_row(const struct ftl_map_floor *ftl,
                   const struct ftl_request *request);
void ftl_trace_row_done(const struct ftl_map_floor *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status);
/** The units of a row that are to be moved are read. */
void ftl_trace_move(const struct ftl_map_floor *ftl,
                    const struct ftl_request *request);
/** A command of a host begins to wait, or goes on. */
void ftl_trace_wait(const struct ftl_map_floor *ftl, const struct ftl_op *op,
                    enum ftl_wait reason, bool is_over);
void ftl_trace_throttled(const struct ftl_map_floor *ftl, struct ftl_op *op,
                         bool is_throttled);

/* ---- Trace points of one line, for files that have many. */

/** An operation begins to wait for a slot of the write buffer, or has all that
 * it needs. */
static inline void ftl_note_throttled(const struct ftl_map_floor *ftl,
                                      struct ftl_op *op, bool is_throttled)
{
    if (__builtin_expect(op->is_throttled != is_throttled, 0) &&
        ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_throttled(ftl, op, is_throttled);
    }
}

/** An operation begins to wait until what it has written is on flash. */
static inline void ftl_note_flush(struct ftl_map_floor *ftl,
                                  const struct ftl_op *op)
{
    ftl->buffer.flushed = ftl->accepted;
    ftl->buffer.flush = op->io.number;
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_wait(ftl, op, FTL_WAIT_DURABLE, false);
    }
}

static inline void ftl_note_flushed(const struct ftl_map_floor *ftl,
                                    const struct ftl_op *op)
{
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_wait(ftl, op, FTL_WAIT_DURABLE, true);
    }
}

#endif
