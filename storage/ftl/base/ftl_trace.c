/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/base/ftl_trace.h"

static uint32_t tag_request(uint32_t tag)
{
    uint32_t number = tag & FTL_TAG_NUMBER;

    return number == FTL_TAG_NUMBER ? TRACE_NO_REQUEST : number;
}

static void emit_record(const struct ftl *ftl,
                        const struct trace_record *record, const char *text)
{
    const struct trace *trace = ftl->config.trace;

    trace->emit(trace->ctx, record, text);
}

/* Units that the write buffer holds. */
static uint32_t buffered_units(const struct ftl *ftl)
{
    return ftl->config.buffer_units -
           ftl->buffer.free_slots[FTL_POOL_HOST].count;
}

void ftl_trace_superblock(const struct ftl *ftl, uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];
    uint32_t stream = FTL_STREAMS;

    for (uint32_t i = 0; i < FTL_STREAMS; i++) {
        if (ftl->streams[i].superblock == superblock) {
            stream = i;
        }
    }
    emit_record(
        ftl,
        &(struct trace_record){
            .type = TRACE_FTL_SUPERBLOCK,
            .request = TRACE_NO_REQUEST,
            .arg = {superblock, at->state, stream, at->valid, at->capacity,
                    ftl->wear[superblock], at->cause, ftl->free_superblocks},
        },
        NULL);
}

void ftl_trace_victim(const struct ftl *ftl)
{
    uint32_t victim = ftl->collection.victim;
    const struct ftl_superblock *at = &ftl->superblocks[victim];
    uint64_t age = ftl->next_row_number - at->last_row;

    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_VICTIM,
                    .request = TRACE_NO_REQUEST,
                    .arg = {victim, ftl->collection.cause, at->valid,
                            at->capacity, ftl->wear[victim], (uint32_t)age,
                            (uint32_t)(age >> 32), ftl->free_superblocks},
                },
                ftl->victims->name);
}

/* The row of a request, counted in its superblock. */
static uint32_t superblock_row(const struct ftl *ftl,
                               const struct ftl_request *request)
{
    return request->row % ftl->layout.superblock_rows;
}

void ftl_trace_row(const struct ftl *ftl, const struct ftl_request *request)
{
    uint64_t written = ftl->counters.host_units;
    uint64_t programmed = ftl->counters.units + ftl->counters.pad_units;
    uint32_t units = 0;

    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        units += request->slots[i] != FTL_LIST_END;
    }
    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_ROW,
                    .request = tag_request(request->flash.tag),
                    .arg = {request->flash.block, superblock_row(ftl, request),
                            request->stream, ftl_tag_cause(request->flash.tag),
                            units, buffered_units(ftl), ftl->free_superblocks,
                            (uint32_t)written, (uint32_t)(written >> 32),
                            (uint32_t)programmed, (uint32_t)(programmed >> 32)},
                },
                NULL);
}

void ftl_trace_row_done(const struct ftl *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status)
{
    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_ROW_DONE,
                    .request = tag_request(request->flash.tag),
                    .arg = {request->flash.block, superblock_row(ftl, request),
                            request->stream, ftl_tag_cause(request->flash.tag),
                            status, buffered_units(ftl), ftl->free_superblocks},
                },
                NULL);
}

void ftl_trace_move(const struct ftl *ftl, const struct ftl_request *request)
{
    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_MOVE,
                    .request = TRACE_NO_REQUEST,
                    .arg = {request->flash.block, superblock_row(ftl, request),
                            ftl_tag_cause(request->flash.tag),
                            request->flash.num_units},
                },
                NULL);
}

void ftl_trace_wait(const struct ftl *ftl, const struct ftl_op *op,
                    enum ftl_wait reason, bool is_over)
{
    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_WAIT,
                    .request = op->io.number,
                    .arg = {reason, is_over, buffered_units(ftl),
                            ftl->free_superblocks},
                },
                NULL);
}

void ftl_trace_phase(const struct ftl *ftl, enum ftl_activity activity,
                     uint32_t phase, uint32_t superblock)
{
    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_PHASE,
                    .request = TRACE_NO_REQUEST,
                    .arg = {activity, phase, superblock},
                },
                NULL);
}

void ftl_trace_rebuilt(const struct ftl *ftl, const struct ftl_rescue *rescue,
                       bool is_complete)
{
    const struct trace *trace = ftl->config.trace;
    uint64_t us = rescue->begun_us != 0
                      ? trace->now_us(trace->ctx) - rescue->begun_us
                      : 0;

    emit_record(ftl,
                &(struct trace_record){
                    .type = TRACE_FTL_REBUILT,
                    .request = tag_request(rescue->flash.tag),
                    .arg = {rescue->flash.block,
                            rescue->row % ftl->layout.superblock_rows,
                            ftl_tag_cause(rescue->flash.tag), rescue->num_units,
                            is_complete, (uint32_t)us},
                },
                NULL);
}

void ftl_trace_throttled(const struct ftl *ftl, struct ftl_op *op,
                         bool is_throttled)
{
    op->is_throttled = is_throttled;
    ftl_trace_wait(ftl, op, FTL_WAIT_SLOT, !is_throttled);
}
