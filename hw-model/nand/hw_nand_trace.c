/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace events of the NAND controller (docs/tracing.md): when it takes a
 * command and when the command completes, and how long each register of a die
 * was in each state that takes time.
 */
#include "hw-model/nand/hw_nand_internal.h"

static uint32_t tag_request(uint32_t tag)
{
    uint32_t number = tag & NAND_TAG_NUMBER;

    return number == NAND_TAG_NUMBER ? TRACE_NO_REQUEST : number;
}

static unsigned int first_plane(const struct hw_nand_op *op)
{
    return op->planes != 0
               ? (unsigned int)__builtin_ctz(op->planes) % HW_NAND_PLANES
               : 0;
}

static struct trace_record make_record(const struct hw_nand *nand,
                                       const struct hw_nand_op *op,
                                       enum trace_type type)
{
    uint32_t dies = MAX(nand->geometry.dies, 1u);

    return (struct trace_record){
        .source = TRACE_SOURCE_NAND,
        .type = (uint16_t)type,
        .request = tag_request(op->tag),
        .arg = {op->opcode, op->die / dies, op->die % dies, op->planes,
                op->block[first_plane(op)], op->wordline, op->entries},
    };
}

void hw_nand_trace_start(struct hw_nand *nand, struct hw_nand_op *op)
{
    const struct trace *trace = nand->config.trace;
    struct trace_record record = make_record(nand, op, TRACE_NAND_STARTED);

    record.arg[7] = op->tag >> NAND_TAG_CAUSE_SHIFT;
    op->is_traced = true;
    trace->emit(trace->ctx, &record, NULL);
}

void hw_nand_trace_end(const struct hw_nand *nand, const struct hw_nand_op *op)
{
    const struct trace *trace = nand->config.trace;
    struct trace_record record = make_record(nand, op, TRACE_NAND_ENDED);

    if (!trace_is_on(trace, TRACE_GROUP_NAND)) {
        return; /* the reader has left meanwhile */
    }
    record.arg[7] = op->status;
    record.arg[8] = (uint32_t)((hw_nand_now_ns(nand) - op->taken_ns) / 1000);
    record.arg[9] = op->tag >> NAND_TAG_CAUSE_SHIFT;
    trace->emit(trace->ctx, &record, NULL);
}

void hw_nand_trace_phase(struct hw_nand *nand, uint32_t r, uint64_t end_ns,
                         bool is_cut)
{
    const struct trace *trace = nand->config.trace;
    const struct hw_nand_register *reg = &nand->registers[r];
    const struct hw_nand_op *op;
    uint64_t begun_ns = MIN(reg->clock_ns, end_ns);

    if (reg->op == HW_NAND_NONE) {
        return; /* the cache register is copied for the other one */
    }
    op = &nand->ops[reg->op];
    trace->emit(
        trace->ctx,
        &(struct trace_record){
            .source = TRACE_SOURCE_NAND,
            .type = TRACE_NAND_PHASE,
            .request = tag_request(op->tag),
            .arg = {reg->state, op->opcode, op->die / nand->geometry.dies,
                    op->die % nand->geometry.dies, op->block[first_plane(op)],
                    op->wordline, op->tag >> NAND_TAG_CAUSE_SHIFT, is_cut,
                    (uint32_t)begun_ns, (uint32_t)(begun_ns >> 32),
                    (uint32_t)MIN(end_ns - begun_ns, (uint64_t)UINT32_MAX)},
        },
        NULL);
}
