/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows: units from slots are put together and programmed.
 *
 * Rows of the host's stream take pages of trim state and the write buffer; rows
 * of the other streams take what garbage collection moves.
 */
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/ftl_row_fill.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

/* The index of the row that a stream programs next, over all superblocks. */
static uint32_t stream_row(const struct ftl_rows_floor *ftl,
                           const struct ftl_stream *stream)
{
    return ftl_parity_row(ftl, stream->superblock, stream->next_row);
}

static uint8_t row_planes(const struct ftl_rows_floor *ftl, uint32_t row)
{
    struct ftl_flash_op op;

    ftl_layout_row(&ftl->layout, row, &op);
    return ftl_good_planes(&ftl->space_floor, op.block, op.die);
}

/* Where the stream has the number of a row in flight to the die of a row, or,
 * if `number` is 0, a place for one more; or NULL. */
static uint64_t *find_die_row(const struct ftl_rows_floor *ftl, uint32_t stream,
                              uint32_t row, uint64_t number)
{
    uint32_t most = ftl->config.queues_rows ? (uint32_t)FTL_DIE_ROWS : 1;
    struct ftl_flash_op op;
    uint64_t *rows;

    ftl_layout_row(&ftl->layout, row, &op);
    rows = &ftl->streams[stream].die_rows[(size_t)op.die * FTL_DIE_ROWS];
    for (uint32_t i = 0; i < most; i++) {
        if (rows[i] == number) {
            return &rows[i];
        }
    }
    return NULL;
}

/* A row of a stream has been started, or is left out. */
static void pass_row(struct ftl_rows_floor *ftl, struct ftl_stream *stream)
{
    stream->next_row++;
    if (stream->next_row % ftl->layout.geometry.dies == 0) {
        ftl_parity_close(ftl, stream);
        stream->completes_stripe = false;
        if (stream->is_ending) {
            stream->next_row = ftl->layout.superblock_rows;
        }
    }
}

/* Pass the rest of a stripe if no die there takes data.  Looking for the next
 * row would begin another stripe, or open a superblock, to complete this one.
 */
static void pass_empty_rows(struct ftl_rows_floor *ftl,
                            struct ftl_stream *stream)
{
    while (stream->accumulator != NULL &&
           stream->next_row != ftl->layout.superblock_rows &&
           row_planes(ftl, stream_row(ftl, stream)) == 0) {
        pass_row(ftl, stream);
    }
}

/*
 * Find the next row of a stream.
 * @return false when there is none now
 */
static bool find_row(struct ftl_rows_floor *ftl, uint32_t id)
{
    struct ftl_stream *stream = &ftl->streams[id];

    for (;;) {
        if (stream->superblock == FTL_NOWHERE &&
            !ftl_superblock_open(&ftl->space_floor, id,
                                 ftl_slot_is_urgent(&ftl->buffer))) {
            return false;
        }
        if (stream->next_row == ftl->layout.superblock_rows) {
            ftl_stream_close(ftl, id);
        } else if (row_planes(ftl, stream_row(ftl, stream)) == 0) {
            pass_row(ftl, stream);
        } else {
            return find_die_row(ftl, id, stream_row(ftl, stream), 0) != NULL &&
                   ftl_parity_open(ftl, stream);
        }
    }
}

/*
 * Whether so many rows were started after one that is still in flight that no
 * more may be: a mount looks for torn rows among the last ones only.  Usually
 * streams wait for a die before that, but not where a superblock leaves it out.
 */
static bool is_far_ahead(const struct ftl_rows_floor *ftl)
{
    uint32_t dies = ftl->layout.geometry.dies, places = FTL_DIE_ROWS * dies;
    uint64_t oldest = ftl->next_row_number;

    for (uint32_t id = 0; id < ftl->num_streams; id++) {
        for (uint32_t i = 0; ftl->streams[id].rows_in_flight != 0 && i < places;
             i++) {
            uint64_t row = ftl->streams[id].die_rows[i];

            oldest = row != 0 ? MIN(oldest, row) : oldest;
        }
    }
    return ftl->next_row_number - oldest >= (uint64_t)FTL_ROWS_AHEAD * dies;
}

/* The number of the host's request that waits until a slot is on flash, or
 * FTL_TAG_NUMBER. */
static uint32_t slot_flush(const struct ftl_rows_floor *ftl, uint16_t slot)
{
    return slot != FTL_LIST_END &&
                   ftl->buffer.slots[slot].pool != FTL_POOL_MOVE &&
                   ftl->buffer.slots[slot].accepted <= ftl->buffer.flushed
               ? ftl->buffer.flush
               : (uint32_t)FTL_TAG_NUMBER;
}

/* Why a row is programmed.  @param slot  its first one, or FTL_LIST_END */
static enum ftl_cause row_cause(const struct ftl_rows_floor *ftl,
                                const struct ftl_row_plan *plan, uint16_t slot)
{
    uint32_t trims = ftl->config.logical_units + ftl->trim_pages;

    if (plan->is_marker || ftl_power_is_failing(&ftl->base_floor)) {
        return FTL_CAUSE_POWER;
    }
    if (ftl->state == FTL_MOUNTING) {
        return FTL_CAUSE_MOUNT;
    }
    if (slot != FTL_LIST_END && ftl->buffer.slots[slot].pool == FTL_POOL_TRIM) {
        return ftl->buffer.slots[slot].number < trims ? FTL_CAUSE_TRIM
                                                      : FTL_CAUSE_RECORD;
    }
    return plan->stream == FTL_HOST_STREAM
               ? FTL_CAUSE_WRITE
               : (enum ftl_cause)ftl->collection.cause;
}

/* The tag of a row whose units are known. */
static uint32_t row_tag(const struct ftl_rows_floor *ftl,
                        const struct ftl_row_plan *plan,
                        const struct ftl_request *request)
{
    uint16_t slot = FTL_LIST_END;

    for (uint32_t i = 0; slot == FTL_LIST_END && i < request->flash.num_units;
         i++) {
        slot = request->slots[i];
    }
    return ftl_tag(row_cause(ftl, plan, slot), slot_flush(ftl, slot));
}

/*
 * A word of the row was lost while parity was made.  The system bytes of the
 * row do not have the new mark, so the row is not sent, and its units are put
 * into another row.  The sum is right, because the word was set to zero before
 * it was added.
 */
static void give_up_row(struct ftl_rows_floor *ftl, struct ftl_request *request)
{
    request->lost_units = 0;
    if (!ftl_row_done(ftl, request, FTL_FLASH_ERROR)) {
        ftl_request_free(&ftl->ops, request);
    }
}

/*
 * Program the stream's next row.
 * @return false when there was no request or no row
 */
static bool program_row(struct ftl_rows_floor *ftl,
                        const struct ftl_row_plan *plan)
{
    struct ftl_stream *stream = &ftl->streams[plan->stream];
    struct ftl_request *request;
    uint64_t row_number;

    if (ftl->ops.free_requests.count == 0 || ftl_is_held(&ftl->ops_floor) ||
        is_far_ahead(ftl) || !find_row(ftl, plan->stream)) {
        return false;
    }
    /* A write that was submitted while another one ended may still have to be
     * copied into a slot that the row takes. */
    ftl_memory_run(&ftl->map_floor);
    request = ftl_request_take(&ftl->ops, FTL_REQUEST_ROW);
    ASSERT(request != NULL);
    request->flash.kind = FTL_FLASH_PROGRAM;
    request->stream = (uint8_t)plan->stream;
    request->is_marker = plan->is_marker;
    request->lost_units = 0;
    request->row = stream_row(ftl, stream);
    ftl_layout_row(&ftl->layout, request->row, &request->flash);
    request->flash.planes = row_planes(ftl, request->row);
    request->parity_planes = ftl_parity_planes(ftl, request->row);
    row_number = ftl->next_row_number++;
    ASSERT(row_number <= FTL_ROW_NUMBER_MAX);
    if (ftl->state == FTL_READY) {
        ftl->mount.row_numbers[request->row] = row_number;
    }
    ftl_row_fill(ftl, plan, request, row_number);
    request->flash.tag = row_tag(ftl, plan, request);
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_row(&ftl->map_floor, request);
    }
    if (stream->accumulator != NULL) {
        ftl_parity_add_row(ftl, stream->accumulator, request);
    }
    request->row_number = row_number;
    *find_die_row(ftl, plan->stream, request->row, 0) = row_number;
    pass_row(ftl, stream);
    pass_empty_rows(ftl, stream);
    stream->rows_in_flight++;
    ftl->superblocks[request->flash.block].rows_in_flight++;
    ftl->counters.rows++;
    if (request->lost_units == 0) {
        ftl_request_send(&ftl->ops, request);
    } else {
        give_up_row(ftl, request);
    }
    return true;
}

/* Whether the oldest slot that waits in a pool does not wait for more. */
static bool is_forced(const struct ftl_rows_floor *ftl, enum ftl_pool pool)
{
    uint16_t oldest = ftl->buffer.waiting[pool].head;

    return oldest != FTL_LIST_END &&
           ftl->buffer.slots[oldest].accepted <= ftl->forced;
}

/*
 * Whether a stream programs its next row without waiting for units: because
 * the row holds parity only, or because the stripe is to be completed.
 */
static bool is_row_due(const struct ftl_rows_floor *ftl, uint32_t id)
{
    const struct ftl_stream *stream = &ftl->streams[id];
    uint8_t planes;
    uint32_t row;

    if (stream->superblock == FTL_NOWHERE ||
        stream->next_row == ftl->layout.superblock_rows) {
        return false;
    }
    if (stream->is_ending) {
        return true;
    }
    if (stream->accumulator == NULL) {
        return false;
    }
    if (stream->completes_stripe) {
        return true;
    }
    row = stream_row(ftl, stream);
    planes = row_planes(ftl, row);
    return planes != 0 && planes == ftl_parity_planes(ftl, row);
}

/* Program rows of a stream that do not wait for units. */
static bool program_due_rows(struct ftl_rows_floor *ftl, uint32_t id)
{
    const struct ftl_row_plan plan = {.stream = id};
    bool any = false;

    pass_empty_rows(ftl, &ftl->streams[id]);
    while (is_row_due(ftl, id) && program_row(ftl, &plan)) {
        any = true;
    }
    return any;
}

/* The same for all streams of what is moved. */
static bool program_due_moves(struct ftl_rows_floor *ftl)
{
    bool any = false;

    for (uint32_t id = FTL_MOVED_STREAM; id < ftl->num_streams; id++) {
        any |= program_due_rows(ftl, id);
    }
    return any;
}

static bool program_host_row(struct ftl_rows_floor *ftl)
{
    struct ftl_row_plan plan = {
        .stream = FTL_HOST_STREAM,
        .takes_pages = is_forced(ftl, FTL_POOL_TRIM),
    };

    if (ftl_victim_waits_for_trims(&ftl->map_floor) &&
        ftl->buffer.waiting[FTL_POOL_TRIM].count != 0 &&
        !ftl_power_is_failing(&ftl->base_floor)) {
        return false; /* The victim's stream takes the pages. */
    }
    if (plan.takes_pages) {
        /* What a page says must not depend on rows that may be torn. */
        return ftl->streams[FTL_HOST_STREAM].rows_in_flight == 0 &&
               program_row(ftl, &plan);
    }
    return (ftl->buffer.waiting[FTL_POOL_HOST].count >= ftl->layout.row_units ||
            is_forced(ftl, FTL_POOL_HOST)) &&
           program_row(ftl, &plan);
}

static bool program_victims_row(struct ftl_rows_floor *ftl, bool takes_pages)
{
    const struct ftl_row_plan plan = {
        .stream = ftl_victim_stream(&ftl->map_floor),
        .takes_pages = takes_pages,
    };

    return program_row(ftl, &plan);
}

/*
 * Program a row of what garbage collection moves.  When the victim waits for
 * trim pages, the row takes these: the host's stream may itself have to wait
 * for the superblock that the victim becomes.
 */
static bool program_moved_row(struct ftl_rows_floor *ftl)
{
    uint32_t moves;

    (void)ftl_row_drop_moves(ftl);
    if (ftl_victim_waits_for_trims(&ftl->map_floor) &&
        ftl->buffer.waiting[FTL_POOL_TRIM].count != 0) {
        return ftl->streams[FTL_HOST_STREAM].rows_in_flight == 0 &&
               program_victims_row(ftl, true);
    }
    moves = ftl->buffer.waiting[FTL_POOL_MOVE].count;
    return (moves >= ftl->layout.row_units ||
            (moves != 0 && ftl_victim_is_at_end(&ftl->map_floor))) &&
           program_victims_row(ftl, false);
}

bool ftl_row_save(struct ftl_rows_floor *ftl)
{
    bool any = ftl_stream_close_ended(ftl);

    any |= program_due_moves(ftl);
    do {
        any |= program_due_rows(ftl, FTL_HOST_STREAM);
    } while (program_host_row(ftl) && (any = true));
    return any;
}

bool ftl_row_mark(struct ftl_rows_floor *ftl, uint32_t stream)
{
    const struct ftl_row_plan plan = {.stream = stream, .is_marker = true};

    (void)program_due_rows(ftl, stream);
    return !is_row_due(ftl, stream) && program_row(ftl, &plan);
}

bool ftl_row_step(struct ftl_rows_floor *ftl)
{
    /* Garbage collection may have waited for this. */
    bool any = ftl_row_drop_moves(ftl);

    any |= ftl_stream_close_ended(ftl);
    do {
        any |= program_due_moves(ftl);
    } while (program_moved_row(ftl) && (any = true));
    do {
        any |= program_due_rows(ftl, FTL_HOST_STREAM);
    } while (program_host_row(ftl) && (any = true));
    return any;
}

/* What a failure says about planes and superblock of a row. */
static void note_failure(struct ftl_rows_floor *ftl,
                         const struct ftl_request *request,
                         enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;
    struct ftl_stream *stream = &ftl->streams[request->stream];

    ftl->counters.program_errors += status != FTL_FLASH_ABORTED;
    if (status == FTL_FLASH_FAILED) {
        ftl_health_note_failure(&ftl->space_floor, flash->block, flash->die,
                                request->failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, flash->die);
    } else if (stream->superblock == flash->block) {
        stream->next_row = ftl->layout.superblock_rows;
    }
}

/* The slots of a row are on flash, or wait again.  The last one comes first, so
 * that the next row finds those used last at the head of the list of free ones.
 */
static void end_slots(struct ftl_rows_floor *ftl,
                      const struct ftl_request *request,
                      enum ftl_flash_status status)
{
    uint32_t first = request->row * ftl->layout.row_units;
    bool is_usual =
        status == FTL_FLASH_OK && request->stream == FTL_HOST_STREAM;
    uint32_t left = request->flash.num_units;

    while ((left = is_usual
                       ? ftl_slot_row_programmed(&ftl->map_floor, request, left)
                       : left) != 0) {
        uint16_t slot = request->slots[--left];
        uint32_t index = ftl_layout_index(&ftl->layout, &request->units[left]);

        if (slot == FTL_LIST_END) {
            continue;
        }
        if (status == FTL_FLASH_OK) {
            ftl_slot_programmed(&ftl->map_floor, slot, first + index);
        } else {
            ftl_slot_not_programmed(&ftl->map_floor, slot);
        }
    }
}

bool ftl_row_done(struct ftl_rows_floor *ftl, struct ftl_request *request,
                  enum ftl_flash_status status)
{
    ftl->streams[request->stream].rows_in_flight--;
    ftl->superblocks[request->flash.block].rows_in_flight--;
    *find_die_row(ftl, request->stream, request->row, request->row_number) = 0;
    /* A word of it was lost after the row had been passed on, and has been
     * cleared since, so what was programmed looks good but is not. */
    if (status == FTL_FLASH_OK && request->lost_units != 0) {
        status = FTL_FLASH_ERROR;
    }
    ftl_superblock_note_row(&ftl->space_floor, request, status);
    if (status != FTL_FLASH_OK) {
        note_failure(ftl, request, status);
        ftl->superblocks[request->flash.block].has_failed_row =
            ftl->state == FTL_MOUNTING;
    }
    ftl_parity_row_done(ftl, request, status);
    if (request->is_marker) {
        ftl_marker_done(ftl, status == FTL_FLASH_OK);
    }
    end_slots(ftl, request, status);
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_row_done(&ftl->map_floor, request, status);
    }
    return false;
}
