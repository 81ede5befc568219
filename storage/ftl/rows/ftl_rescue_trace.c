/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/rows/ftl_rescue_trace.h"

void ftl_trace_rebuilt(const struct ftl_rows_floor *ftl,
                       const struct ftl_rescue *rescue, bool is_complete)
{
    const struct trace *trace = ftl->config.trace;
    uint64_t us = rescue->begun_us != 0
                      ? trace->now_us(trace->ctx) - rescue->begun_us
                      : 0;

    ftl_trace_emit(&ftl->base_floor,
                   &(struct trace_record){
                       .type = TRACE_FTL_REBUILT,
                       .request = ftl_trace_request(rescue->flash.tag),
                       .arg = {rescue->flash.block,
                               rescue->row % ftl->layout.superblock_rows,
                               ftl_tag_cause(rescue->flash.tag),
                               rescue->num_units, is_complete, (uint32_t)us},
                   },
                   NULL);
}
