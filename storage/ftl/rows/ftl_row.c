/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows: units from slots are put together and programmed.
 *
 * Rows of the host's stream take pages of trim state and the write buffer; rows
 * of the other stream take what garbage collection moves.
 */
#include "storage/ftl/base/ftl_memory.h"
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

/* The index of the row that a stream programs next, over all superblocks. */
static uint32_t stream_row(const struct ftl *ftl,
                           const struct ftl_stream *stream)
{
    return ftl_parity_row(ftl, stream->superblock, stream->next_row);
}

static uint8_t row_planes(const struct ftl *ftl, uint32_t row)
{
    struct ftl_flash_op op;

    ftl_layout_row(&ftl->layout, row, &op);
    return ftl_good_planes(ftl, op.block, op.die);
}

/* The number of the row of the stream in flight to the die of a row, or 0. */
static uint64_t *row_die(const struct ftl *ftl, enum ftl_stream_id stream,
                         uint32_t row)
{
    struct ftl_flash_op op;

    ftl_layout_row(&ftl->layout, row, &op);
    return &ftl->streams[stream].die_rows[op.die];
}

/* A row of a stream has been started, or is left out. */
static void pass_row(struct ftl *ftl, struct ftl_stream *stream)
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
static void pass_empty_rows(struct ftl *ftl, struct ftl_stream *stream)
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
static bool find_row(struct ftl *ftl, enum ftl_stream_id id)
{
    struct ftl_stream *stream = &ftl->streams[id];

    for (;;) {
        if (stream->superblock == FTL_NOWHERE &&
            !ftl_superblock_open(ftl, id, ftl_slot_is_urgent(&ftl->buffer))) {
            return false;
        }
        if (stream->next_row == ftl->layout.superblock_rows) {
            ftl_stream_close(ftl, id);
        } else if (row_planes(ftl, stream_row(ftl, stream)) == 0) {
            pass_row(ftl, stream);
        } else {
            return *row_die(ftl, id, stream_row(ftl, stream)) == 0 &&
                   ftl_parity_open(ftl, stream);
        }
    }
}

/* Take a slot out of a list of waiting ones. */
static uint16_t take_waiting(struct ftl *ftl, enum ftl_pool pool)
{
    uint16_t index = ftl_list_pop(&ftl->buffer.waiting[pool]);

    if (index != FTL_LIST_END) {
        ftl->buffer.slots[index].state = FTL_SLOT_PROGRAMMING;
    }
    return index;
}

/*
 * Forget units that wait to be moved and need it no longer.
 * @return whether there were any
 */
static bool drop_invalid_moves(struct ftl *ftl)
{
    uint16_t index;
    bool any = false;

    while ((index = ftl->buffer.waiting[FTL_POOL_MOVE].head) != FTL_LIST_END &&
           !ftl_map_is_valid(ftl, ftl->buffer.slots[index].old_place)) {
        (void)ftl_list_pop(&ftl->buffer.waiting[FTL_POOL_MOVE]);
        ftl->collection.slots--;
        ftl_slot_free(&ftl->buffer, index);
        any = true;
    }
    return any;
}

/* Take a unit that is to be moved. */
static uint16_t take_moved(struct ftl *ftl)
{
    (void)drop_invalid_moves(ftl);
    return take_waiting(ftl, FTL_POOL_MOVE);
}

/* Write the system bytes of a slot's unit. */
static void emit_system(const struct ftl *ftl, const struct ftl_slot *slot,
                        uint64_t row_number, uint8_t *system)
{
    bool is_page = slot->number >= ftl->config.logical_units;

    ftl_system_emit(
        &(struct ftl_system){
            .kind = is_page ? FTL_KIND_TRIM : FTL_KIND_DATA,
            .number = slot->number - (is_page ? ftl->config.logical_units : 0),
            .is_of_mount = ftl->state == FTL_MOUNTING,
            .is_lost = slot->is_lost,
            .version = slot->pool == FTL_POOL_MOVE ? slot->version : row_number,
            .attempt = slot->pool == FTL_POOL_MOVE ? slot->attempt : 0,
            .marks = slot->marks,
            .row = row_number,
        },
        system);
}

/* Which slots a row takes. */
struct row_plan {
    enum ftl_stream_id stream;
    bool takes_pages;
    bool is_marker; /* the row takes no slots: it is padding with a marker */
};

static uint16_t take_for_row(struct ftl *ftl, const struct row_plan *plan)
{
    uint16_t index = FTL_LIST_END;

    if (plan->is_marker) {
        return FTL_LIST_END;
    }
    if (plan->takes_pages) {
        index = take_waiting(ftl, FTL_POOL_TRIM);
    }
    if (index == FTL_LIST_END) {
        index = plan->stream == FTL_STREAM_HOST
                    ? take_waiting(ftl, FTL_POOL_HOST)
                    : take_moved(ftl);
    }
    return index;
}

/* What the units of a row have in common. */
struct row_head {
    uint64_t number;
    /* System bytes of logical unit 0, if a host has written it. */
    _Alignas(8) uint8_t system[FTL_UNIT_SYSTEM];
};

static void emit_head(const struct ftl *ftl, uint64_t number,
                      struct row_head *head)
{
    head->number = number;
    ftl_system_emit(
        &(struct ftl_system){.kind = FTL_KIND_DATA,
                             .is_of_mount = ftl->state == FTL_MOUNTING,
                             .version = number,
                             .row = number},
        head->system);
}

/* Add the unit `index` of a row to its request.  @param slot  or FTL_LIST_END
 */
static inline struct ftl_flash_unit *add_unit(const struct ftl_layout *layout,
                                              struct ftl_request *request,
                                              uint32_t index, uint16_t slot)
{
    uint16_t number = request->flash.num_units++;
    struct ftl_flash_unit *unit = &request->units[number];

    request->slots[number] = slot;
    *unit = (struct ftl_flash_unit){.system = request->system[number]};
    ftl_layout_unit(layout, index, unit);
    return unit;
}

/* Fill in the unit `index` of a row from a slot, with padding, or with a
 * marker. */
static void fill_unit(struct ftl *ftl, struct ftl_request *request,
                      uint32_t index, uint16_t slot,
                      const struct row_head *head)
{
    struct ftl_flash_unit *unit = add_unit(&ftl->layout, request, index, slot);

    if (slot == FTL_LIST_END) {
        ftl_system_emit(
            &(struct ftl_system){
                .kind = FTL_KIND_PAD,
                .number = request->is_marker ? ftl_marker_number(ftl) : 0,
                .is_of_mount = ftl->state == FTL_MOUNTING,
                .row = head->number},
            unit->system);
        unit->data = ftl->pad;
        unit->meta = ftl->pad;
        ftl->counters.pad_units++;
    } else {
        const struct ftl_slot *from = &ftl->buffer.slots[slot];

        if (from->pool == FTL_POOL_TRIM) {
            ftl_page_snapshot(ftl, slot, head->number);
            ftl->counters.map_pages++;
        }
        if (from->pool == FTL_POOL_HOST && !from->is_lost && from->marks == 0) {
            ftl_system_emit_number(ftl->sums, head->system, from->number,
                                   unit->system);
        } else {
            emit_system(ftl, from, head->number, unit->system);
        }
        unit->data = ftl_slot_data(&ftl->buffer, slot);
        unit->meta = ftl_slot_meta(&ftl->buffer, slot);
        ftl->counters.units++;
    }
}

/* Fill in the unit `index` of a row with parity. */
static void fill_parity(struct ftl *ftl, const struct ftl_stream *stream,
                        struct ftl_request *request, uint32_t index)
{
    struct ftl_flash_unit *unit =
        add_unit(&ftl->layout, request, index, FTL_LIST_END);

    ftl_parity_fill(ftl, stream->accumulator, index, unit);
    ftl->counters.parity_units++;
}

/*
 * Take all slots of a row at once if they are of the write buffer.
 * @return how many; the next ones, if there are any, come one by one
 */
static uint32_t take_slots(struct ftl *ftl, const struct row_plan *plan,
                           const struct ftl_request *request, uint16_t *taken)
{
    unsigned int planes = request->flash.planes & ~request->parity_planes;
    uint32_t plane_units = ftl->layout.row_units / ftl->layout.geometry.planes;
    uint32_t count;

    if (plan->stream != FTL_STREAM_HOST || plan->takes_pages ||
        plan->is_marker) {
        return 0;
    }
    count =
        ftl_list_pop_all(&ftl->buffer.waiting[FTL_POOL_HOST], taken,
                         plane_units * (uint32_t)__builtin_popcount(planes));
    for (uint32_t i = 0; i < count; i++) {
        ftl->buffer.slots[taken[i]].state = FTL_SLOT_PROGRAMMING;
    }
    return count;
}

/* Fill in the units of a row, whose die and planes are known. */
static void fill_row(struct ftl *ftl, const struct row_plan *plan,
                     struct ftl_request *request, uint64_t row_number)
{
    const struct ftl_stream *stream = &ftl->streams[plan->stream];
    uint16_t taken[FTL_OP_UNITS];
    uint32_t count = take_slots(ftl, plan, request, taken), used = 0;
    struct row_head head;

    emit_head(ftl, row_number, &head);
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        uint64_t plane = BIT(ftl->layout.units[i].plane);

        if ((request->parity_planes & plane) != 0) {
            fill_parity(ftl, stream, request, i);
        } else if ((request->flash.planes & plane) != 0) {
            fill_unit(ftl, request, i,
                      used < count ? taken[used++] : take_for_row(ftl, plan),
                      &head);
        }
    }
}

/*
 * Whether so many rows were started after one that is still in flight that no
 * more may be: a mount looks for torn rows among the last ones only.  Usually
 * streams wait for a die before that, but not where a superblock leaves it out.
 */
static bool is_far_ahead(const struct ftl *ftl)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint64_t oldest = ftl->next_row_number;

    for (unsigned int id = 0; id < FTL_STREAMS; id++) {
        for (uint32_t die = 0;
             ftl->streams[id].rows_in_flight != 0 && die < dies; die++) {
            uint64_t row = ftl->streams[id].die_rows[die];

            oldest = row != 0 ? MIN(oldest, row) : oldest;
        }
    }
    return ftl->next_row_number - oldest >= (uint64_t)FTL_ROWS_AHEAD * dies;
}

/* The number of the host's request that waits until a slot is on flash, or
 * FTL_TAG_NUMBER. */
static uint32_t slot_flush(const struct ftl *ftl, uint16_t slot)
{
    return slot != FTL_LIST_END &&
                   ftl->buffer.slots[slot].pool != FTL_POOL_MOVE &&
                   ftl->buffer.slots[slot].accepted <= ftl->buffer.flushed
               ? ftl->buffer.flush
               : (uint32_t)FTL_TAG_NUMBER;
}

/* Why a row is programmed.  @param slot  its first one, or FTL_LIST_END */
static enum ftl_cause row_cause(const struct ftl *ftl,
                                const struct row_plan *plan, uint16_t slot)
{
    uint32_t trims = ftl->config.logical_units + ftl->trim_pages;

    if (plan->is_marker || ftl_power_is_failing(&ftl->power)) {
        return FTL_CAUSE_POWER;
    }
    if (ftl->state == FTL_MOUNTING) {
        return FTL_CAUSE_MOUNT;
    }
    if (slot != FTL_LIST_END && ftl->buffer.slots[slot].pool == FTL_POOL_TRIM) {
        return ftl->buffer.slots[slot].number < trims ? FTL_CAUSE_TRIM
                                                      : FTL_CAUSE_RECORD;
    }
    return plan->stream == FTL_STREAM_HOST
               ? FTL_CAUSE_WRITE
               : (enum ftl_cause)ftl->collection.cause;
}

/* The tag of a row whose units are known. */
static uint32_t row_tag(const struct ftl *ftl, const struct row_plan *plan,
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
static void give_up_row(struct ftl *ftl, struct ftl_request *request)
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
static bool program_row(struct ftl *ftl, const struct row_plan *plan)
{
    struct ftl_stream *stream = &ftl->streams[plan->stream];
    struct ftl_request *request;
    uint64_t row_number;

    if (ftl->ops.free_requests.count == 0 || ftl_is_held(ftl) ||
        is_far_ahead(ftl) || !find_row(ftl, plan->stream)) {
        return false;
    }
    /* A write that was submitted while another one ended may still have to be
     * copied into a slot that the row takes. */
    ftl_memory_run(ftl);
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
    fill_row(ftl, plan, request, row_number);
    request->flash.tag = row_tag(ftl, plan, request);
    if (ftl_is_traced(ftl)) {
        ftl_trace_row(ftl, request);
    }
    if (stream->accumulator != NULL) {
        ftl_parity_add_row(ftl, stream->accumulator, request);
    }
    *row_die(ftl, plan->stream, request->row) = row_number;
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
static bool is_forced(const struct ftl *ftl, enum ftl_pool pool)
{
    uint16_t oldest = ftl->buffer.waiting[pool].head;

    return oldest != FTL_LIST_END &&
           ftl->buffer.slots[oldest].accepted <= ftl->buffer.forced;
}

/*
 * Whether a stream programs its next row without waiting for units: because
 * the row holds parity only, or because the stripe is to be completed.
 */
static bool is_row_due(const struct ftl *ftl, enum ftl_stream_id id)
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
static bool program_due_rows(struct ftl *ftl, enum ftl_stream_id id)
{
    const struct row_plan plan = {.stream = id};
    bool any = false;

    pass_empty_rows(ftl, &ftl->streams[id]);
    while (is_row_due(ftl, id) && program_row(ftl, &plan)) {
        any = true;
    }
    return any;
}

static bool program_host_row(struct ftl *ftl)
{
    struct row_plan plan = {
        .stream = FTL_STREAM_HOST,
        .takes_pages = is_forced(ftl, FTL_POOL_TRIM),
    };

    if (ftl_victim_waits_for_trims(ftl) &&
        ftl->buffer.waiting[FTL_POOL_TRIM].count != 0 &&
        !ftl_power_is_failing(&ftl->power)) {
        return false; /* The other stream takes the pages. */
    }
    if (plan.takes_pages) {
        /* What a page says must not depend on rows that may be torn. */
        return ftl->streams[FTL_STREAM_HOST].rows_in_flight == 0 &&
               program_row(ftl, &plan);
    }
    return (ftl->buffer.waiting[FTL_POOL_HOST].count >= ftl->layout.row_units ||
            is_forced(ftl, FTL_POOL_HOST)) &&
           program_row(ftl, &plan);
}

/*
 * Program a row of what garbage collection moves.  When the victim waits for
 * trim pages, the row takes these: the host's stream may itself have to wait
 * for the superblock that the victim becomes.
 */
static bool program_moved_row(struct ftl *ftl)
{
    struct row_plan plan = {.stream = FTL_STREAM_MOVE};

    (void)drop_invalid_moves(ftl);
    if (ftl_victim_waits_for_trims(ftl) &&
        ftl->buffer.waiting[FTL_POOL_TRIM].count != 0) {
        plan.takes_pages = ftl->streams[FTL_STREAM_HOST].rows_in_flight == 0;
        return plan.takes_pages && program_row(ftl, &plan);
    }
    return (ftl->buffer.waiting[FTL_POOL_MOVE].count >= ftl->layout.row_units ||
            (ftl->buffer.waiting[FTL_POOL_MOVE].count != 0 &&
             ftl_victim_is_at_end(ftl))) &&
           program_row(ftl, &plan);
}

bool ftl_row_save(struct ftl *ftl)
{
    bool any = ftl_stream_close_ended(ftl);

    any |= program_due_rows(ftl, FTL_STREAM_MOVE);
    do {
        any |= program_due_rows(ftl, FTL_STREAM_HOST);
    } while (program_host_row(ftl) && (any = true));
    return any;
}

bool ftl_row_mark(struct ftl *ftl, enum ftl_stream_id stream)
{
    const struct row_plan plan = {.stream = stream, .is_marker = true};

    (void)program_due_rows(ftl, stream);
    return !is_row_due(ftl, stream) && program_row(ftl, &plan);
}

bool ftl_row_step(struct ftl *ftl)
{
    /* Garbage collection may have waited for this. */
    bool any = drop_invalid_moves(ftl);

    any |= ftl_stream_close_ended(ftl);
    do {
        any |= program_due_rows(ftl, FTL_STREAM_MOVE);
    } while (program_moved_row(ftl) && (any = true));
    do {
        any |= program_due_rows(ftl, FTL_STREAM_HOST);
    } while (program_host_row(ftl) && (any = true));
    return any;
}

/* What a failure says about planes and superblock of a row. */
static void note_failure(struct ftl *ftl, const struct ftl_request *request,
                         enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;
    struct ftl_stream *stream = &ftl->streams[request->stream];

    ftl->counters.program_errors++;
    if (status == FTL_FLASH_FAILED) {
        ftl_health_note_failure(ftl, flash->block, flash->die,
                                request->failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(ftl, flash->die);
    } else if (stream->superblock == flash->block) {
        stream->next_row = ftl->layout.superblock_rows;
    }
}

/* The slots of a row are on flash, or wait again.  The last one comes first, so
 * that the next row finds those used last at the head of the list of free ones.
 */
static void end_slots(struct ftl *ftl, const struct ftl_request *request,
                      enum ftl_flash_status status)
{
    uint32_t first = request->row * ftl->layout.row_units;
    bool is_usual =
        status == FTL_FLASH_OK && request->stream == FTL_STREAM_HOST;
    uint32_t left = request->flash.num_units;

    while ((left = is_usual ? ftl_slot_row_programmed(ftl, request, left)
                            : left) != 0) {
        uint16_t slot = request->slots[--left];
        uint32_t index = ftl_layout_index(&ftl->layout, &request->units[left]);

        if (slot == FTL_LIST_END) {
            continue;
        }
        if (status == FTL_FLASH_OK) {
            ftl_slot_programmed(ftl, slot, first + index);
        } else {
            ftl_slot_not_programmed(ftl, slot);
        }
    }
}

bool ftl_row_done(struct ftl *ftl, struct ftl_request *request,
                  enum ftl_flash_status status)
{
    ftl->streams[request->stream].rows_in_flight--;
    ftl->superblocks[request->flash.block].rows_in_flight--;
    *row_die(ftl, (enum ftl_stream_id)request->stream, request->row) = 0;
    /* A word of it was lost after the row had been passed on, and has been
     * cleared since, so what was programmed looks good but is not. */
    if (status == FTL_FLASH_OK && request->lost_units != 0) {
        status = FTL_FLASH_ERROR;
    }
    ftl_hold_note_row(ftl, request, status);
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
    if (ftl_is_traced(ftl)) {
        ftl_trace_row_done(ftl, request, status);
    }
    return false;
}
