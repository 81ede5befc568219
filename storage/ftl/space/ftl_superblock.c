/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of superblocks: free, open, closed, erased. */
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/space.h"

/* Where each state may go. */
static const uint8_t superblock_next[] = {
    [FTL_SUPERBLOCK_FREE] =
        BIT(FTL_SUPERBLOCK_OPEN) | BIT(FTL_SUPERBLOCK_CLOSED) |
        BIT(FTL_SUPERBLOCK_RETIRED) | BIT(FTL_SUPERBLOCK_META),
    [FTL_SUPERBLOCK_ERASING] =
        BIT(FTL_SUPERBLOCK_FREE) | BIT(FTL_SUPERBLOCK_RETIRED),
    [FTL_SUPERBLOCK_OPEN] = BIT(FTL_SUPERBLOCK_CLOSED),
    [FTL_SUPERBLOCK_CLOSED] = BIT(FTL_SUPERBLOCK_ERASING),
    [FTL_SUPERBLOCK_META] = BIT(FTL_SUPERBLOCK_ERASING),
};

/* A superblock has entered its state. */
static void trace_superblock(const struct ftl_space_floor *ftl,
                             uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];
    uint32_t stream = FTL_NOWHERE;

    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].superblock == superblock) {
            stream = i;
        }
    }
    ftl_trace_emit(
        &ftl->base_floor,
        &(struct trace_record){
            .type = TRACE_FTL_SUPERBLOCK,
            .request = TRACE_NO_REQUEST,
            .arg = {superblock, at->state, stream, at->valid, at->capacity,
                    ftl->wear[superblock], at->cause, ftl->free_superblocks},
        },
        NULL);
}

void ftl_superblock_enter(struct ftl_space_floor *ftl, uint32_t superblock,
                          enum ftl_superblock_state next)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    ASSERT((superblock_next[at->state] & BIT(next)) != 0);
    if (at->state == FTL_SUPERBLOCK_FREE) {
        ftl->free_superblocks--;
        at->is_reused = false;
    }
    if (next == FTL_SUPERBLOCK_FREE) {
        ftl->free_superblocks++;
    }
    at->state = (uint8_t)next;
    if (ftl_is_traced(&ftl->base_floor)) {
        trace_superblock(ftl, superblock);
    }
}

void ftl_superblock_measure(struct ftl_space_floor *ftl, uint32_t superblock)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint8_t bad[FTL_DIES_MAX];

    for (uint32_t die = 0; die < dies; die++) {
        bad[die] = (uint8_t)~ftl_good_planes(ftl, superblock, die);
    }
    ftl->superblocks[superblock].capacity = ftl_layout_capacity(
        &ftl->layout, bad, ftl_makes_parity(&ftl->ops_floor));
}

bool ftl_superblock_is_good(const struct ftl_space_floor *ftl,
                            uint32_t superblock)
{
    return ftl_layout_is_enough(&ftl->layout,
                                ftl->superblocks[superblock].capacity);
}

uint32_t ftl_superblock_take(struct ftl_space_floor *ftl)
{
    uint32_t superblock = ftl_wear_find_free(ftl, true);

    ASSERT(superblock != FTL_NOWHERE);
    ftl_superblock_enter(ftl, superblock, FTL_SUPERBLOCK_META);
    ftl->superblocks[superblock].is_erased = false;
    ftl->superblocks[superblock].has_parity = ftl_makes_parity(&ftl->ops_floor);
    return superblock;
}

/* Free superblocks that a stream leaves to others. */
static uint32_t superblocks_left_free(const struct ftl_space_floor *ftl,
                                      uint32_t stream, bool is_urgent)
{
    if (ftl->state == FTL_MOUNTING) {
        return 0;
    }
    if (stream != FTL_HOST_STREAM) {
        return FTL_MOVE_LEAVES_FREE;
    }
    if (ftl->is_read_only || ftl_power_is_failing(&ftl->base_floor)) {
        return 0;
    }
    return ftl->more_free + (is_urgent ? (uint32_t)FTL_URGENT_LEAVES_FREE
                                       : (uint32_t)FTL_HOST_LEAVES_FREE);
}

bool ftl_superblock_open(struct ftl_space_floor *ftl, uint32_t stream,
                         bool is_urgent)
{
    struct ftl_stream *open = &ftl->streams[stream];
    struct ftl_superblock *at;

    if (ftl->free_superblocks <=
        superblocks_left_free(ftl, stream, is_urgent)) {
        return false;
    }
    open->superblock = ftl_wear_find_free(ftl, stream == FTL_HOST_STREAM);
    if (open->superblock == FTL_NOWHERE) {
        return false;
    }
    at = &ftl->superblocks[open->superblock];
    ASSERT(at->is_erased);
    ftl_superblock_enter(ftl, open->superblock, FTL_SUPERBLOCK_OPEN);
    ftl->num_opened++;
    ftl->has_emptied = true; /* Look at the others again. */
    at->is_erased = false;
    at->is_own = true;
    at->is_given_up = false;
    at->used_us = ftl->now_us;
    at->has_parity = ftl_makes_parity(&ftl->ops_floor);
    open->next_row = 0;
    open->is_ending = false;
    open->completes_stripe = false;
    return true;
}

void ftl_superblock_end(struct ftl_space_floor *ftl, uint32_t superblock)
{
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock == superblock) {
            stream->is_ending = true;
            if (stream->accumulator == NULL) {
                stream->next_row = ftl->layout.superblock_rows;
            }
        }
    }
}

void ftl_superblock_note_row(struct ftl_space_floor *ftl,
                             const struct ftl_request *request,
                             enum ftl_flash_status status)
{
    struct ftl_superblock *at = &ftl->superblocks[request->flash.block];

    if (status == FTL_FLASH_OK) {
        ftl->hold.failed_rounds = 0;
    } else if (status == FTL_FLASH_ERROR || ftl_hold_can_repeat(status)) {
        /* Several rows of the superblock may be in flight and fail; count only
         * the first failure. */
        if (!at->is_given_up) {
            ftl_hold_note_round(&ftl->ops_floor);
        }
        at->is_given_up = true;
    }
}

void ftl_superblock_end_all(struct ftl_space_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].superblock != FTL_NOWHERE) {
            ftl_superblock_end(ftl, ftl->streams[i].superblock);
        }
    }
    ftl->has_work = true;
}
