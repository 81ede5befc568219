/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace events of the NAND controller: when it takes a command and when the
 * command completes (docs/tracing.md).
 */
#include "hw-model/nand/hw_nand_internal.h"

static struct trace_record make_record(const struct hw_nand *nand,
                                       const struct hw_nand_op *op,
                                       enum trace_type type)
{
    uint32_t dies = MAX(nand->geometry.dies, 1u);
    unsigned int plane =
        op->planes != 0 ? (unsigned int)__builtin_ctz(op->planes) : 0;

    return (struct trace_record){
        .source = TRACE_SOURCE_NAND,
        .type = (uint16_t)type,
        .request = op->tag,
        .arg = {op->opcode, op->die / dies, op->die % dies, op->planes,
                op->block[plane % HW_NAND_PLANES], op->wordline, op->entries},
    };
}

void hw_nand_trace_start(struct hw_nand *nand, struct hw_nand_op *op)
{
    const struct trace *trace = nand->config.trace;
    struct trace_record record = make_record(nand, op, TRACE_NAND_STARTED);

    op->is_traced = true;
    op->started_ns = hw_nand_now_ns(nand);
    trace->emit(trace->ctx, &record, NULL);
}

void hw_nand_trace_end(const struct hw_nand *nand, const struct hw_nand_op *op)
{
    const struct trace *trace = nand->config.trace;
    struct trace_record record = make_record(nand, op, TRACE_NAND_ENDED);

    if (!trace_is_on(trace, TRACE_GROUP_MEDIA)) {
        return; /* the reader has left meanwhile */
    }
    record.arg[7] = op->status;
    record.arg[8] = (uint32_t)((hw_nand_now_ns(nand) - op->started_ns) / 1000);
    trace->emit(trace->ctx, &record, NULL);
}
