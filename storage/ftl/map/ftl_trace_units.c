/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/map/ftl_trace_units.h"

/* Units that the write buffer holds. */
static uint32_t buffered_units(const struct ftl_map_floor *ftl)
{
    return ftl->config.buffer_units -
           ftl->buffer.free_slots[FTL_POOL_HOST].count;
}

void ftl_trace_victim(const struct ftl_map_floor *ftl)
{
    uint32_t victim = ftl->collection.victim;
    const struct ftl_superblock *at = &ftl->superblocks[victim];
    uint64_t age = ftl->next_row_number - at->last_row;

    ftl_trace_emit(&ftl->base_floor,
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
static uint32_t superblock_row(const struct ftl_map_floor *ftl,
                               const struct ftl_request *request)
{
    return request->row % ftl->layout.superblock_rows;
}

void ftl_trace_row(const struct ftl_map_floor *ftl,
                   const struct ftl_request *request)
{
    uint64_t written = ftl->counters.host_units;
    uint64_t programmed = ftl->counters.units + ftl->counters.pad_units;
    uint32_t units = 0;

    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        units += request->slots[i] != FTL_LIST_END;
    }
    ftl_trace_emit(
        &ftl->base_floor,
        &(struct trace_record){
            .type = TRACE_FTL_ROW,
            .request = ftl_trace_request(request->flash.tag),
            .arg = {request->flash.block, superblock_row(ftl, request),
                    request->stream, ftl_tag_cause(request->flash.tag), units,
                    buffered_units(ftl), ftl->free_superblocks,
                    (uint32_t)written, (uint32_t)(written >> 32),
                    (uint32_t)programmed, (uint32_t)(programmed >> 32)},
        },
        NULL);
}

void ftl_trace_row_done(const struct ftl_map_floor *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status)
{
    ftl_trace_emit(
        &ftl->base_floor,
        &(struct trace_record){
            .type = TRACE_FTL_ROW_DONE,
            .request = ftl_trace_request(request->flash.tag),
            .arg = {request->flash.block, superblock_row(ftl, request),
                    request->stream, ftl_tag_cause(request->flash.tag), status,
                    buffered_units(ftl), ftl->free_superblocks},
        },
        NULL);
}

void ftl_trace_move(const struct ftl_map_floor *ftl,
                    const struct ftl_request *request)
{
    ftl_trace_emit(
        &ftl->base_floor,
        &(struct trace_record){
            .type = TRACE_FTL_MOVE,
            .request = TRACE_NO_REQUEST,
            .arg = {request->flash.block, superblock_row(ftl, request),
                    ftl_tag_cause(request->flash.tag),
                    request->flash.num_units},
        },
        NULL);
}

void ftl_trace_wait(const struct ftl_map_floor *ftl, const struct ftl_op *op,
                    enum ftl_wait reason, bool is_over)
{
    ftl_trace_emit(&ftl->base_floor,
                   &(struct trace_record){
                       .type = TRACE_FTL_WAIT,
                       .request = op->io.number,
                       .arg = {reason, is_over, buffered_units(ftl),
                               ftl->free_superblocks},
                   },
                   NULL);
}

void ftl_trace_throttled(const struct ftl_map_floor *ftl, struct ftl_op *op,
                         bool is_throttled)
{
    op->is_throttled = is_throttled;
    ftl_trace_wait(ftl, op, FTL_WAIT_SLOT, !is_throttled);
}
