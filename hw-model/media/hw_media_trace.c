/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace events of the media engine: when it takes a command and when the
 * command completes (docs/tracing.md).
 */
#include "hw-model/media/hw_media_internal.h"

enum { SECTOR_SHIFT = 9 };

static struct trace_record make_record(const struct hw_media *media,
                                       const struct hw_media_op *op,
                                       enum trace_type type)
{
    uint32_t shift = media->regs.block_shift - SECTOR_SHIFT;
    uint64_t lba = op->first >> shift;

    return (struct trace_record){
        .source = TRACE_SOURCE_MEDIA,
        .type = (uint16_t)type,
        .request = op->tag,
        .arg = {op->opcode, (uint32_t)lba, (uint32_t)(lba >> 32),
                (uint32_t)((op->end - op->first) >> shift)},
    };
}

void media_trace_start(struct hw_media *media, struct hw_media_op *op)
{
    const struct dev_env *env = &media->config.env;
    const struct trace *trace = media->config.trace;
    struct trace_record record = make_record(media, op, TRACE_ENGINE_STARTED);

    op->is_traced = true;
    op->started_ns = env->now_ns(env->ctx);
    trace->emit(trace->ctx, &record, NULL);
}

void media_trace_end(const struct hw_media *media, const struct hw_media_op *op)
{
    const struct dev_env *env = &media->config.env;
    const struct trace *trace = media->config.trace;
    struct trace_record record = make_record(media, op, TRACE_ENGINE_ENDED);

    if (!trace_is_on(trace, TRACE_GROUP_MEDIA)) {
        return; /* the reader has left meanwhile */
    }
    record.arg[4] = op->status;
    record.arg[5] = (uint32_t)((env->now_ns(env->ctx) - op->started_ns) / 1000);
    trace->emit(trace->ctx, &record, NULL);
}
