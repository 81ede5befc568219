/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checkpoints: the map in a superblock of its own, so that a mount does not
 * have to read everything.
 *
 * A checkpoint is written after so many superblocks have been opened, and
 * before the power goes off.  Meanwhile no other row is programmed and no write
 * or trim is accepted.  None is written while trims of before a reset are
 * adopted.  No row is in flight when it begins, and all trims are
 * durable.  So it says where the durable contents of each unit are, and which
 * superblocks are closed.  The checkpoint before it is erased only when it is
 * complete.
 *
 * Its units are pieces of: a header, a byte for each superblock, the planes
 * that have failed, and the map.  They have the number of the checkpoint, which
 * is a row number: rows with smaller numbers are in the checkpoint.  Its
 * stripes have parity, like those of data, so a checkpoint is loaded although a
 * die has died since it was written.  The last stripe is completed with
 * padding.
 *
 * This file decides when a checkpoint is written, and writes it.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

/* The only writer of the checkpoint's state. */
static void enter_state(struct ftl_background_floor *ftl,
                        enum ftl_checkpoint_state next)
{
    ftl->checkpoint.state = (uint8_t)next;
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_phase(&ftl->base_floor, FTL_ACTIVITY_CHECKPOINT, next,
                        ftl->checkpoint.next);
    }
}

uint32_t ftl_checkpoint_rows(const struct ftl_layout *layout)
{
    return MIN((uint32_t)layout->geometry.dies, (uint32_t)FTL_CHECKPOINT_ROWS);
}

uint8_t *ftl_checkpoint_row_data(const struct ftl_background_floor *ftl,
                                 uint32_t slot, uint32_t unit)
{
    return ftl->checkpoint.data +
           ((size_t)slot * ftl->layout.row_units + unit) * FTL_UNIT_DATA;
}

/* Fill in a unit of a row: the next piece, or padding.  The padding can be
 * parsed, so that each die shows in its first wordline that it holds a
 * checkpoint. */
static void add_piece(struct ftl_background_floor *ftl,
                      struct ftl_request *request, uint32_t index,
                      uint32_t slot)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint8_t *system = request->system[request->flash.num_units];
    uint8_t *data = ftl->pad;
    bool is_pad = checkpoint->pieces == ftl_checkpoint_pieces(ftl);

    if (!is_pad) {
        data = ftl_checkpoint_row_data(ftl, slot, index);
        ftl_checkpoint_emit_piece(ftl, checkpoint->pieces, data);
    }
    ftl_system_emit(
        &(struct ftl_system){
            .kind = FTL_KIND_CHECKPOINT,
            .number = is_pad ? (uint32_t)FTL_PLACES_MAX : checkpoint->pieces,
            .version = checkpoint->row,
            .row = checkpoint->row,
        },
        system);
    checkpoint->pieces += !is_pad;
    ftl_request_add(&ftl->layout, request,
                    request->row * ftl->layout.row_units + index,
                    &(struct ftl_flash_unit){
                        .data = data, .meta = ftl->pad, .system = system});
}

/* Fill in a unit of a row with parity. */
static void add_parity(struct ftl_background_floor *ftl,
                       struct ftl_request *request, uint32_t index)
{
    struct ftl_flash_unit unit = {
        .system = request->system[request->flash.num_units]};

    ftl_parity_fill(&ftl->rows_floor, ftl->checkpoint.writer.accumulator, index,
                    &unit);
    ftl_request_add(&ftl->layout, request,
                    request->row * ftl->layout.row_units + index, &unit);
}

/* Fill in a row with pieces and parity, and program it. */
static void send_row(struct ftl_background_floor *ftl,
                     struct ftl_request *request, uint32_t slot, uint8_t planes)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    request->flash.kind = FTL_FLASH_PROGRAM;
    request->parity_planes = ftl_parity_planes(&ftl->rows_floor, request->row);
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((request->parity_planes & BIT(unit.plane)) != 0) {
            add_parity(ftl, request, i);
        } else if ((planes & BIT(unit.plane)) != 0) {
            add_piece(ftl, request, i, slot);
        }
    }
    if (checkpoint->writer.accumulator != NULL) {
        ftl_parity_add_row(&ftl->rows_floor, checkpoint->writer.accumulator,
                           request);
    }
    checkpoint->requests++;
    ftl_request_send(&ftl->ops, request);
}

/* Program the next row, if it has planes. */
static void program_row(struct ftl_background_floor *ftl, uint32_t slot)
{
    struct ftl_stream *writer = &ftl->checkpoint.writer;
    struct ftl_request *request =
        ftl_request_take(&ftl->ops, FTL_REQUEST_CHECKPOINT);
    uint8_t planes;

    ASSERT(request != NULL);
    request->row =
        ftl_parity_row(&ftl->rows_floor, writer->superblock, writer->next_row);
    ftl_layout_row(&ftl->layout, request->row, &request->flash);
    planes = ftl_good_planes(&ftl->space_floor, request->flash.block,
                             request->flash.die);
    if (planes == 0) {
        ftl_request_free(&ftl->ops, request);
    } else {
        send_row(ftl, request, slot, planes);
    }
    writer->next_row++;
    if (writer->next_row % ftl->layout.geometry.dies == 0) {
        ftl_parity_close(&ftl->rows_floor, writer);
    }
}

bool ftl_checkpoint_row_done(struct ftl_background_floor *ftl,
                             struct ftl_request *request,
                             enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;

    ftl->checkpoint.requests--;
    /* If the row has failed, all of the checkpoint is erased, so its parity
     * need not be corrected. */
    ftl_parity_row_done(&ftl->rows_floor, request, FTL_FLASH_OK);
    if (status != FTL_FLASH_OK) {
        ftl->checkpoint.has_failed = true;
        ftl->counters.program_errors++;
    }
    if (status == FTL_FLASH_ERROR || ftl_hold_can_repeat(status)) {
        ftl_hold_note_round(&ftl->ops_floor);
    }
    if (status == FTL_FLASH_FAILED) {
        ftl_health_note_failure(&ftl->space_floor, flash->block, flash->die,
                                request->failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, flash->die);
    }
    return false;
}

/* Whether all pieces have been programmed, and the last stripe is complete. */
static bool is_complete(const struct ftl_background_floor *ftl)
{
    return ftl->checkpoint.pieces == ftl_checkpoint_pieces(ftl) &&
           ftl->checkpoint.writer.accumulator == NULL;
}

/* Whether a row beyond those of a round may be programmed: it holds only
 * padding, which needs no memory.  It takes a request that reads of hosts might
 * use, and leaves those that they leave to programs. */
static bool may_pad(const struct ftl_background_floor *ftl)
{
    return ftl->checkpoint.pieces == ftl_checkpoint_pieces(ftl) &&
           ftl->ops.free_requests.count > ftl->ops.kept_requests;
}

/* Program some rows, and then all that complete the last stripe. */
static void program_rows(struct ftl_background_floor *ftl, uint32_t rows)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    for (uint32_t i = 0; !is_complete(ftl) && (i < rows || may_pad(ftl)); i++) {
        if (checkpoint->writer.next_row == ftl->layout.superblock_rows) {
            /* It does not fit. */
            checkpoint->has_failed = i == 0;
            return;
        }
        if (!ftl_parity_open(&ftl->rows_floor, &checkpoint->writer)) {
            /* The parity of the stripe before is still being programmed. */
            ASSERT(i != 0);
            return;
        }
        program_row(ftl, i);
    }
}

/* Go on writing: a few rows at a time, and all the padding at the end. */
static bool step_write(struct ftl_background_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t rows =
        MIN(ftl_checkpoint_rows(&ftl->layout), MAX(ftl->ops.kept_requests, 1U));
    uint32_t old = checkpoint->superblock;

    if (checkpoint->requests != 0 || ftl->ops.free_requests.count < rows) {
        return false;
    }
    if (!checkpoint->has_failed && !is_complete(ftl)) {
        program_rows(ftl, rows);
        return true;
    }
    ftl_parity_drop(&checkpoint->writer);
    if (!checkpoint->has_failed) {
        checkpoint->superblock = checkpoint->next;
        checkpoint->next = old;
        ftl->counters.checkpoints++;
    }
    ftl->num_opened = 0;
    enter_state(ftl, FTL_CHECKPOINT_IDLE);
    if (checkpoint->next != FTL_NOWHERE) {
        ftl_superblock_erase(&ftl->space_floor, checkpoint->next,
                             FTL_CAUSE_CHECKPOINT);
        enter_state(ftl, FTL_CHECKPOINT_ERASING);
    }
    return true;
}

static bool step_erase(struct ftl_background_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    if (!ftl_superblock_erase_step(&ftl->space_floor, checkpoint->next)) {
        return false;
    }
    checkpoint->next = FTL_NOWHERE;
    enter_state(ftl, FTL_CHECKPOINT_IDLE);
    ftl->is_full = false;
    return true;
}

static bool has_space(const struct ftl_background_floor *ftl)
{
    return ftl->free_superblocks > FTL_HOST_LEAVES_FREE + ftl->more_free &&
           !ftl->is_read_only;
}

/* Whether a victim of garbage collection is being erased. */
static bool is_victim_erased(const struct ftl_background_floor *ftl)
{
    uint32_t victim = ftl->collection.victim;

    return victim != FTL_NOWHERE &&
           ftl->superblocks[victim].state == FTL_SUPERBLOCK_ERASING;
}

/* Close the superblocks of all streams when their stripes are complete.
 * @return whether all are closed */
static bool close_streams(struct ftl_background_floor *ftl)
{
    bool all = true;

    ftl_superblock_end_all(&ftl->space_floor);
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        const struct ftl_stream *stream = &ftl->streams[i];

        if (stream->superblock == FTL_NOWHERE) {
            continue;
        }
        if (stream->next_row == ftl->layout.superblock_rows) {
            ftl_stream_close(&ftl->rows_floor, i);
        } else {
            all = false;
        }
    }
    return all;
}

/* Wait until no row is in flight and all trims are durable. */
static bool step_drain(struct ftl_background_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    if (!has_space(ftl) || ftl_is_held(&ftl->ops_floor)) {
        enter_state(ftl, FTL_CHECKPOINT_IDLE);
        checkpoint->is_last = false;
        return true;
    }
    if (ftl->buffer.dirty[FTL_POOL_TRIM].count != 0) {
        ftl->forced = ftl->accepted;
        return false;
    }
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].rows_in_flight != 0) {
            return false;
        }
    }
    if (checkpoint->is_last && (is_victim_erased(ftl) || !close_streams(ftl))) {
        return false;
    }
    checkpoint->is_final = checkpoint->is_last &&
                           ftl->buffer.dirty[FTL_POOL_HOST].count == 0 &&
                           (ftl->config.boot != 0 || ftl->power.has_proof);
    checkpoint->is_last = false;
    checkpoint->next = ftl_superblock_take(&ftl->space_floor);
    checkpoint->row = ftl->next_row_number++;
    checkpoint->writer = (struct ftl_stream){.superblock = checkpoint->next};
    checkpoint->pieces = 0;
    checkpoint->has_failed = false;
    enter_state(ftl, FTL_CHECKPOINT_WRITING);
    return true;
}

static bool is_due(const struct ftl_background_floor *ftl)
{
    const struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    return ftl->config.checkpoint_superblocks != 0 && has_space(ftl) &&
           !ftl_keep_is_adopting(ftl) && ftl->hold.failed_rounds == 0 &&
           ftl->hold.held.count == 0 &&
           (checkpoint->is_last ||
            ftl->num_opened >= ftl->config.checkpoint_superblocks);
}

bool ftl_checkpoint_step(struct ftl_background_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    switch ((enum ftl_checkpoint_state)checkpoint->state) {
    case FTL_CHECKPOINT_IDLE:
        if (is_due(ftl)) {
            enter_state(ftl, FTL_CHECKPOINT_DRAINING);
            return true;
        }
        checkpoint->is_last = false;
        checkpoint->is_stopped &= !ftl_waiting_is_any(&ftl->io);
        break;
    case FTL_CHECKPOINT_DRAINING:
        return step_drain(ftl);
    case FTL_CHECKPOINT_WRITING:
        return step_write(ftl);
    case FTL_CHECKPOINT_ERASING:
        return step_erase(ftl);
    }
    return false;
}

bool ftl_checkpoint_holds_collection(const struct ftl_background_floor *ftl)
{
    return ftl->checkpoint.is_stopped && !is_victim_erased(ftl);
}

/* Whether a stream is to complete its stripe. */
static bool is_stream_ending(const struct ftl_background_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        if (ftl->streams[i].superblock != FTL_NOWHERE &&
            ftl->streams[i].is_ending) {
            return true;
        }
    }
    return false;
}

bool ftl_checkpoint_holds_rows(const struct ftl_background_floor *ftl)
{
    return ftl->checkpoint.state == FTL_CHECKPOINT_WRITING ||
           (ftl->checkpoint.state == FTL_CHECKPOINT_DRAINING &&
            ftl->buffer.dirty[FTL_POOL_TRIM].count == 0 &&
            !is_stream_ending(ftl));
}

/*
 * Find out whether the checkpoint is still the only record that the contents of
 * a logical unit are lost.  It is not needed any more when a host has
 * overwritten or trimmed each such unit, and this is on flash.  Only a mount
 * makes such units, so those that were looked at need not be looked at again.
 * @param is_known  cleared when this needs more steps
 */
static bool is_still_needed(struct ftl_background_floor *ftl, bool *is_known)
{
    uint32_t *i = &ftl->checkpoint.needed_from;
    uint32_t end =
        *i + MIN(ftl->config.logical_units - *i, (uint32_t)FTL_TURN_ITEMS);

    if (ftl->buffer.dirty[FTL_POOL_TRIM].count != 0) {
        return true;
    }
    for (; *i < end; ++*i) {
        if (ftl_checkpoint_place(ftl, ftl->map[*i]) == FTL_LOST_NOWHERE) {
            return true;
        }
    }
    *is_known = end == ftl->config.logical_units;
    return !*is_known;
}

bool ftl_checkpoint_give_up(struct ftl_background_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    bool is_known = true;

    if (checkpoint->state == FTL_CHECKPOINT_DRAINING) {
        enter_state(ftl, FTL_CHECKPOINT_IDLE);
        ftl->num_opened = 0;
        return true;
    }
    if (checkpoint->state != FTL_CHECKPOINT_IDLE || ftl->mount.has_lost_pages ||
        checkpoint->superblock == FTL_NOWHERE) {
        return false;
    }
    checkpoint->is_needed =
        checkpoint->is_needed && is_still_needed(ftl, &is_known);
    if (checkpoint->is_needed) {
        return !is_known;
    }
    checkpoint->next = checkpoint->superblock;
    checkpoint->superblock = FTL_NOWHERE;
    ftl->num_opened = 0;
    enter_state(ftl, FTL_CHECKPOINT_ERASING);
    ftl_superblock_erase(&ftl->space_floor, checkpoint->next,
                         FTL_CAUSE_CHECKPOINT);
    return true;
}

void ftl_checkpoint_stop(struct ftl_background_floor *ftl)
{
    ftl->checkpoint.is_last = ftl->state == FTL_READY;
    ftl->checkpoint.is_stopped = ftl->checkpoint.is_last;
    ftl->has_work = true;
}

bool ftl_checkpoint_makes_space(const struct ftl_background_floor *ftl)
{
    return ftl->state == FTL_READY && ftl->config.checkpoint_superblocks != 0 &&
           !ftl->is_read_only && !has_space(ftl) && ftl_collect_has_victim(ftl);
}

bool ftl_checkpoint_is_stopped(const struct ftl_background_floor *ftl)
{
    return !ftl->checkpoint.is_last &&
           ftl->checkpoint.state == FTL_CHECKPOINT_IDLE;
}
