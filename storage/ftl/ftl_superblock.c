/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of superblocks: free, open, closed, erased. */
#include "storage/ftl/ftl_phases.h"
#include "storage/ftl/ftl_trace.h"

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

void ftl_superblock_enter(struct ftl *ftl, uint32_t superblock,
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
    if (ftl_is_traced(ftl)) {
        ftl_trace_superblock(ftl, superblock);
    }
}

void ftl_superblock_measure(struct ftl *ftl, uint32_t superblock)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint8_t bad[FTL_DIES_MAX];

    for (uint32_t die = 0; die < dies; die++) {
        bad[die] = (uint8_t)~ftl_good_planes(ftl, superblock, die);
    }
    ftl->superblocks[superblock].capacity = ftl_layout_capacity(
        &ftl->layout, bad, ftl_makes_parity(ftl));
}

bool ftl_superblock_is_good(const struct ftl *ftl, uint32_t superblock)
{
    return ftl_layout_is_enough(&ftl->layout,
                                ftl->superblocks[superblock].capacity);
}

/*
 * Whether an erasure tells the controller that the superblock is programmed
 * again soon.  Then the array's file keeps the space of the old contents, which
 * costs much less time than giving it back and taking other space.  Only few
 * superblocks are kept in this way, so that the file does not grow.
 */
static bool is_reused_soon(const struct ftl *ftl, uint32_t superblock)
{
    uint32_t reused = 0;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        reused += i != superblock && ftl->superblocks[i].is_reused;
    }
    return ftl->state == FTL_READY && reused < FTL_REUSED_MAX &&
           ftl_wear_is_reused(ftl, superblock);
}

void ftl_superblock_erase(struct ftl *ftl, uint32_t superblock,
                          enum ftl_cause cause)
{
    ASSERT(ftl->superblocks[superblock].rows_in_flight == 0);
    ftl->superblocks[superblock].cause = (uint8_t)cause;
    ftl_superblock_enter(ftl, superblock, FTL_SUPERBLOCK_ERASING);
    ftl->superblocks[superblock].is_reused = is_reused_soon(ftl, superblock);
    ftl->superblocks[superblock].next_die = 0;
    ftl->counters.erasures++;
}

/*
 * All planes are erased, also those that take no data any more, so that a mount
 * does not find old contents in them.
 */
static uint8_t erasable_planes(const struct ftl *ftl, uint32_t superblock,
                               uint32_t die)
{
    uint8_t bad =
        ftl->factory_planes[superblock * ftl->layout.geometry.dies + die];

    if (ftl->parity.dead_dies[die]) {
        return 0;
    }
    return (uint8_t)((BIT(ftl->layout.geometry.planes) - 1) & ~bad);
}

bool ftl_superblock_erase_step(struct ftl *ftl, uint32_t superblock)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    while (at->next_die < ftl->layout.geometry.dies) {
        uint8_t planes = erasable_planes(ftl, superblock, at->next_die);
        struct ftl_request *request;

        if (planes != 0) {
            request = ftl_request_take(ftl, FTL_REQUEST_ERASE);
            if (request == NULL) {
                return false;
            }
            request->flash.kind = FTL_FLASH_ERASE;
            request->flash.die = at->next_die;
            request->flash.planes = planes;
            request->flash.is_reused = at->is_reused;
            request->flash.tag =
                ftl_tag((enum ftl_cause)at->cause, FTL_TAG_NUMBER);
            request->flash.block = (uint16_t)superblock;
            at->erasures++;
            ftl_request_send(ftl, request);
        }
        at->next_die++;
    }
    if (at->erasures != 0) {
        return false;
    }
    at->is_erased = true;
    at->is_suspect = false;
    at->is_own = false;
    at->is_stuck = false;
    at->retries = 0;
    at->space_retries = 0;
    ftl_collect_has_moved(ftl, superblock);
    ftl_superblock_measure(ftl, superblock);
    ftl_superblock_enter(ftl, superblock,
                         ftl_superblock_is_good(ftl, superblock)
                             ? FTL_SUPERBLOCK_FREE
                             : FTL_SUPERBLOCK_RETIRED);
    at->is_reused &= at->state == FTL_SUPERBLOCK_FREE;
    ftl_wear_note_erasure(ftl, superblock);
    return true;
}

bool ftl_superblock_erase_done(struct ftl *ftl, struct ftl_request *request,
                               enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;
    uint8_t good = ftl_good_planes(ftl, flash->block, flash->die);

    if (status == FTL_FLASH_FAILED) {
        ftl->counters.erase_errors += (request->failed_planes & good) != 0;
        ftl_health_note_failure(ftl, flash->block, flash->die,
                                request->failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl->counters.erase_errors++;
        ftl_parity_die_is_dead(ftl, flash->die);
    } else if (status != FTL_FLASH_OK) {
        ftl->counters.erase_errors++;
        ftl->bad_planes[(uint32_t)flash->block * ftl->layout.geometry.dies +
                        flash->die] |= flash->planes;
    }
    ftl->superblocks[flash->block].erasures--;
    return false;
}

uint32_t ftl_superblock_take(struct ftl *ftl)
{
    uint32_t superblock = ftl_wear_find_free(ftl, FTL_STREAM_HOST);

    ASSERT(superblock != FTL_NOWHERE);
    ftl_superblock_enter(ftl, superblock, FTL_SUPERBLOCK_META);
    ftl->superblocks[superblock].is_erased = false;
    ftl->superblocks[superblock].has_parity = ftl_makes_parity(ftl);
    return superblock;
}

/* Free superblocks that a stream leaves to others. */
static uint32_t superblocks_left_free(const struct ftl *ftl,
                                      enum ftl_stream_id stream)
{
    if (ftl->state == FTL_MOUNTING) {
        return 0;
    }
    if (stream == FTL_STREAM_MOVE) {
        return FTL_MOVE_LEAVES_FREE;
    }
    if (ftl->is_read_only || ftl_power_is_failing(ftl)) {
        return 0;
    }
    return ftl->more_free + (ftl_slot_is_urgent(ftl)
                                 ? (uint32_t)FTL_URGENT_LEAVES_FREE
                                 : (uint32_t)FTL_HOST_LEAVES_FREE);
}

bool ftl_superblock_open(struct ftl *ftl, enum ftl_stream_id stream)
{
    struct ftl_stream *open = &ftl->streams[stream];
    struct ftl_superblock *at;

    if (ftl->free_superblocks <= superblocks_left_free(ftl, stream)) {
        return false;
    }
    open->superblock = ftl_wear_find_free(ftl, stream);
    if (open->superblock == FTL_NOWHERE) {
        return false;
    }
    at = &ftl->superblocks[open->superblock];
    ASSERT(at->is_erased);
    ftl_superblock_enter(ftl, open->superblock, FTL_SUPERBLOCK_OPEN);
    ftl->checkpoint.opened++;
    ftl->collection.has_emptied = true; /* Look at the others again. */
    at->is_erased = false;
    at->is_own = true;
    at->is_given_up = false;
    at->used_us = ftl->now_us;
    at->has_parity = ftl_makes_parity(ftl);
    open->next_row = 0;
    open->is_ending = false;
    open->completes_stripe = false;
    return true;
}

void ftl_superblock_close(struct ftl *ftl, enum ftl_stream_id stream)
{
    struct ftl_stream *open = &ftl->streams[stream];

    ftl_parity_close(ftl, open);
    ftl->superblocks[open->superblock].last_row = ftl->next_row_number;
    ftl->superblocks[open->superblock].used_us = ftl->now_us;
    ftl_superblock_enter(ftl, open->superblock, FTL_SUPERBLOCK_CLOSED);
    open->superblock = FTL_NOWHERE;
}

void ftl_superblock_end(struct ftl *ftl, uint32_t superblock)
{
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock == superblock) {
            stream->is_ending = true;
            if (stream->accumulator == NULL) {
                stream->next_row = ftl->layout.superblock_rows;
            }
        }
    }
}

bool ftl_superblock_close_ended(struct ftl *ftl)
{
    bool any = false;

    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        const struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock != FTL_NOWHERE && stream->is_ending &&
            stream->next_row == ftl->layout.superblock_rows) {
            ftl_superblock_close(ftl, (enum ftl_stream_id)i);
            any = true;
        }
    }
    return any;
}
