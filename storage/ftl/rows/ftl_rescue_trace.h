/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace points of units that are rebuilt: see ftl_trace.h. */
#ifndef ESSD_FTL_RESCUE_TRACE_H
#define ESSD_FTL_RESCUE_TRACE_H

#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/rows/rows_floor.h"

/** The rebuilding of units has ended. */
void ftl_trace_rebuilt(const struct ftl_rows_floor *ftl,
                       const struct ftl_rescue *rescue, bool is_complete);

/** The rebuilding of units begins. */
static inline void ftl_note_rescue(const struct ftl_rows_floor *ftl,
                                   struct ftl_rescue *rescue)
{
    const struct trace *trace = ftl->config.trace;

    rescue->begun_us =
        ftl_is_traced(&ftl->base_floor) ? trace->now_us(trace->ctx) : 0;
}

static inline void ftl_note_rebuilt(const struct ftl_rows_floor *ftl,
                                    const struct ftl_rescue *rescue,
                                    bool is_complete)
{
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_rebuilt(ftl, rescue, is_complete);
    }
}

#endif
