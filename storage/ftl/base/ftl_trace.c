/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/base/ftl_trace.h"

void ftl_trace_emit(const struct ftl_base_floor *ftl,
                    const struct trace_record *record, const char *text)
{
    const struct trace *trace = ftl->config.trace;

    trace->emit(trace->ctx, record, text);
}

void ftl_trace_phase(const struct ftl_base_floor *ftl,
                     enum ftl_activity activity, uint32_t phase,
                     uint32_t superblock)
{
    ftl_trace_emit(ftl,
                   &(struct trace_record){
                       .type = TRACE_FTL_PHASE,
                       .request = TRACE_NO_REQUEST,
                       .arg = {activity, phase, superblock},
                   },
                   NULL);
}
