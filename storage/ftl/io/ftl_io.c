/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the medium.  Reads do not wait for writes.  Writes and trims
 * are taken in order.  An operation waits when there is no slot for it, or when
 * another operation writes a part of the same unit and still reads the old
 * contents of this unit.
 *
 * Two kinds of operations leave this order: trims that take more than one step,
 * and operations that wait for old contents.  Later operations wait for them
 * only if they change the same blocks.  A flush does not wait for them, because
 * a flush covers only operations that have ended.
 */
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/io/ftl_short_read.h"
#include "storage/ftl/io/ftl_whole_units.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"

#include <string.h>

enum {
    TRIMS_PER_STEP = 4096, /* see ftl_config.trims_per_step */
    NO_OP = FTL_LIST_END,
};

static uint16_t op_index(const struct ftl_io *io, const struct ftl_op *op)
{
    return (uint16_t)(op - io->ops);
}

/* The part of an operation in one unit. */
struct part {
    uint32_t number; /* of the logical unit */
    uint32_t offset; /* in bytes */
    uint32_t length;
};

static struct part next_part(const struct ftl_op *op)
{
    uint32_t sector = (uint32_t)(op->next_sector % FTL_UNIT_SECTORS);
    uint64_t left = op->end_sector - op->next_sector;
    uint32_t count = (uint32_t)MIN(left, (uint64_t)FTL_UNIT_SECTORS - sector);

    return (struct part){
        .number = (uint32_t)(op->next_sector / FTL_UNIT_SECTORS),
        .offset = sector << FTL_SECTOR_SHIFT,
        .length = count << FTL_SECTOR_SHIFT,
    };
}

/* Whether an operation goes on after the unit that is its next one. */
static bool has_more_units(const struct ftl_op *op)
{
    return next_part(op).length >> FTL_SECTOR_SHIFT <
           op->end_sector - op->next_sector;
}

/* The list in which a write, a trim or a flush waits for its turn. */
static struct ftl_list *change_list(struct ftl_io *io, const struct ftl_op *op)
{
    return op->is_long ? &io->trims : &io->changes;
}

/* An operation is free: start the one that comes before all others. */
static void start_next(struct ftl *ftl)
{
    ftl->io.has_next = !ftl_submit(ftl, &ftl->io.next);
}

static void finish_op(struct ftl *ftl, struct ftl_op *op)
{
    enum media_status status = (enum media_status)op->status;
    struct media_owner *owner = op->io.owner;

    op->state = FTL_OP_FREE;
    ftl_stack_push(&ftl->io.free_ops, op_index(&ftl->io, op));
    if (__builtin_expect(ftl->io.has_next, 0)) {
        start_next(ftl); /* before the owner takes the free operation */
    }
    media_end(owner, status);
}

/* All parts are done, or the operation has failed. */
static void end_op(struct ftl *ftl, struct ftl_op *op)
{
    if (op->status != MEDIA_OK) {
        ftl->io.failed_block = op->failed_block;
        finish_op(ftl, op);
        return;
    }
    if (!op->needs_durable) {
        finish_op(ftl, op);
        return;
    }
    op->state = FTL_OP_DURABLE;
    op->barrier = ftl->accepted;
    ftl->forced = ftl->accepted;
    ftl_note_flush(ftl, op);
    ftl_hold_try_again(&ftl->hold);
    ftl_list_append(&ftl->io.barriers, op_index(&ftl->io, op));
}

/* Take the next bytes of an operation's pieces; at most `len`. */
static uint8_t *take_piece(struct ftl_op *op, uint32_t *len)
{
    uint8_t *at = ftl_cursor_take(&op->next, len);

    ASSERT(ftl_cursor_is_within(&op->next, &op->io));
    return at;
}

static void copy_to_pieces(struct ftl *ftl, struct ftl_op *op,
                           const uint8_t *from, uint32_t len)
{
    while (len != 0) {
        uint32_t now = len;
        uint8_t *at = take_piece(op, &now);

        ftl_memory_move(ftl, FTL_MOVE_COPY, at, from, now);
        from += now;
        len -= now;
    }
    ftl_memory_run(ftl);
}

/* Copy what an operation writes: its pieces, or zeroes.  The next
 * ftl_memory_run() does these copies. */
static void copy_from_pieces(struct ftl *ftl, struct ftl_op *op, uint8_t *to,
                             uint32_t len)
{
    if (op->io.op != MEDIA_WRITE) {
        ftl_memory_run(ftl);
        memset(to, 0, len);
        return;
    }
    while (len != 0) {
        uint32_t now = len;
        const uint8_t *at = take_piece(op, &now);

        ftl_memory_move(ftl, FTL_MOVE_COPY, to, at, now);
        to += now;
        len -= now;
    }
}

/* ---- Reads. */

/* Send the request of a read that is being put together, if there is one. */
static void send_read(struct ftl *ftl, struct ftl_request **open)
{
    if (*open != NULL) {
        ftl_request_send_now(ftl, *open);
        *open = NULL;
    }
}

/*
 * The request that takes a part of a unit: the one that is being put together
 * if it is for the same row and has room, or a new one.
 * @return NULL when there is none
 */
static struct ftl_request *request_for_part(struct ftl *ftl, struct ftl_op *op,
                                            uint32_t place, uint32_t length,
                                            struct ftl_request **open)
{
    uint32_t units = ftl->layout.row_units;

    if (*open != NULL &&
        (place - (*open)->row * units >= units || /* of another row */
         (*open)->flash.num_units + ftl_cursor_count(&op->next, length) >
             FTL_OP_UNITS)) {
        send_read(ftl, open);
    }
    if (*open == NULL &&
        ftl->ops.free_requests.count > ftl->ops.kept_requests) {
        *open = ftl_request_take(&ftl->ops, FTL_REQUEST_READ);
        if (*open != NULL) {
            (*open)->op = op_index(&ftl->io, op);
            (*open)->flash.tag = ftl_tag(FTL_CAUSE_READ, op->io.number);
            op->requests++;
        }
    }
    return *open;
}

/* Read a part of a unit from flash. @return false when there is no request */
static bool read_from_flash(struct ftl *ftl, struct ftl_op *op, uint32_t place,
                            const struct part *part, struct ftl_request **open)
{
    struct ftl_request *request =
        request_for_part(ftl, op, place, part->length, open);
    uint32_t done = 0;

    if (request == NULL) {
        return false;
    }
    while (done < part->length) {
        uint32_t len = part->length - done;
        struct ftl_flash_unit unit = {.data = take_piece(op, &len)};

        unit.offset = (uint16_t)(part->offset + done);
        unit.length = (uint16_t)len;
        unit.system = ftl_marks_read(ftl, request);
        done += len;
        unit.more = done < part->length;
        request->numbers[request->flash.num_units] = part->number;
        ftl_request_add(&ftl->layout, request, place, &unit);
    }
    return true;
}

/* The same for blocks with metadata: one request for each unit. */
static bool read_protected(struct ftl *ftl, struct ftl_op *op, uint32_t place,
                           const struct part *part, struct ftl_request **open)
{
    struct ftl_request *request;

    send_read(ftl, open);
    request = request_for_part(ftl, op, place, part->length, open);
    if (request == NULL) {
        return false;
    }
    request->numbers[0] = part->number; /* The other entries have it, too. */
    ftl_protect_read_flash(ftl, op, request, place, part->offset, part->length);
    send_read(ftl, open);
    return true;
}

/* Read a part of a unit that has no contents. */
static void read_nothing(struct ftl *ftl, struct ftl_op *op,
                         const struct part *part)
{
    if (op->io.protection != 0) {
        ftl_protect_read(ftl, op, NULL, NULL, part->offset, part->length);
    } else {
        ftl_cursor_fill(&op->next, 0, part->length);
    }
}

/* Read a part of a unit that is in a slot.  If the controller finds a lost word
 * while it copies the data, the slot has a mark after the copy. */
static void read_from_slot(struct ftl *ftl, struct ftl_op *op, uint16_t slot,
                           const struct part *part)
{
    const uint8_t *data = ftl_slot_data(&ftl->buffer, slot);

    if (op->io.protection != 0) {
        ftl_protect_read(ftl, op, data, ftl_slot_meta(&ftl->buffer, slot),
                         part->offset, part->length);
    } else {
        copy_to_pieces(ftl, op, data + part->offset, part->length);
    }
    ftl_marks_check(op, ftl->buffer.slots[slot].marks, part->offset,
                    part->length);
}

/* @return false when the unit has to wait */
static bool read_unit(struct ftl *ftl, struct ftl_op *op,
                      struct ftl_request **open)
{
    struct part part = next_part(op);
    uint32_t entry = ftl->map[part.number];

    if (ftl_is_place(entry)) {
        if (!(op->io.protection != 0
                  ? read_protected(ftl, op, entry, &part, open)
                  : read_from_flash(ftl, op, entry, &part, open))) {
            return false;
        }
    } else if (entry == FTL_NOWHERE) {
        read_nothing(ftl, op, &part);
    } else if (ftl_is_lost(entry)) {
        read_nothing(ftl, op, &part);
        op->status = MEDIA_READ_ERROR;
        ftl->counters.read_errors++;
    } else if (ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_FILLING) {
        return false;
    } else {
        /* With FUA, what a read returns does not get lost. */
        op->needs_durable = op->needs_durable || op->io.fua;
        read_from_slot(ftl, op, (uint16_t)entry, &part);
    }
    op->next_sector += part.length >> FTL_SECTOR_SHIFT;
    return true;
}

/*
 * Read units until one has to wait.
 * @return whether all units have been read, or their requests sent
 */
static bool read_units(struct ftl *ftl, struct ftl_op *op)
{
    struct ftl_request *open = NULL; /* takes units of the same row */
    bool must_wait = false;

    while (!must_wait && op->next_sector < op->end_sector) {
        must_wait = !read_unit(ftl, op, &open);
    }
    send_read(ftl, &open);
    return !must_wait;
}

/* @return whether the operation has left the queue */
static bool step_read(struct ftl *ftl, struct ftl_op *op)
{
    if (!read_units(ftl, op)) {
        return false;
    }
    ftl_list_remove(&ftl->io.reads, op_index(&ftl->io, op));
    op->state = FTL_OP_READING;
    if (op->requests == 0) {
        end_op(ftl, op);
    }
    return true;
}

/* Whether all units of a read are good. */
static bool are_units_good(struct ftl *ftl, const struct ftl_request *request,
                           enum ftl_flash_status status)
{
    if (status != FTL_FLASH_OK) {
        return false;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        if (request->units[i].status != FTL_UNIT_GOOD) {
            ftl->counters.read_errors++;
            return false;
        }
    }
    return true;
}

/* A request of a read has ended. */
static void end_request(struct ftl *ftl, struct ftl_op *op)
{
    op->requests--;
    if (op->requests == 0 && op->state == FTL_OP_READING) {
        end_op(ftl, op);
    }
}

/* The units of a request are good. */
static void end_good_request(struct ftl *ftl, struct ftl_op *op,
                             const struct ftl_request *request)
{
    if (op->io.protection != 0) {
        ftl_protect_read_done(ftl, op, request);
    }
    ftl_marks_read_done(op, request);
    end_request(ftl, op);
}

void ftl_io_read_good(struct ftl *ftl, struct ftl_request *request)
{
    bool is_short = request->is_short;
    struct ftl_op *op = &ftl->io.ops[request->op];

    ftl->has_work |=
        !ftl->is_calm || ftl->ops.free_requests.count <= ftl->ops.kept_requests;
    if (!is_short) {
        end_good_request(ftl, op, request);
    }
    request->kind = FTL_REQUEST_FREE;
    ftl_stack_push(&ftl->ops.free_requests, (uint16_t)request->flash.cookie);
    if (is_short) { /* It has no other request, no metadata and no marks. */
        finish_op(ftl, op);
    }
}

bool ftl_io_read_done(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status)
{
    struct ftl_op *op = &ftl->io.ops[request->op];

    if (are_units_good(ftl, request, status)) {
        end_good_request(ftl, op, request);
    } else {
        op->status = MEDIA_READ_ERROR;
        end_request(ftl, op);
    }
    return false;
}

/* ---- Writes and trims. */

/* What a write or a trim of a unit did. */
enum progress {
    UNIT_DONE,
    /* The unit waits for a read or for a request.  This wait ends also if
     * nothing is programmed. */
    UNIT_WAITS,
    UNIT_HAS_NO_SLOT, /* it waits until something is programmed */
};

/* Read the old contents of a unit into a slot. */
static enum progress start_fill(struct ftl *ftl, struct ftl_op *op,
                                uint32_t number, uint32_t place)
{
    struct ftl_request *request;
    uint16_t index;

    if (ftl->ops.free_requests.count == 0) {
        return UNIT_WAITS;
    }
    index = ftl_slot_take(&ftl->buffer, FTL_POOL_HOST, number);
    if (index == FTL_LIST_END) {
        return UNIT_HAS_NO_SLOT;
    }
    ftl->buffer.slots[index].state = FTL_SLOT_FILLING;
    ftl->buffer.slots[index].old_place = place;
    ftl->map[number] = FTL_IN_SLOT | index;
    request = ftl_request_take(&ftl->ops, FTL_REQUEST_FILL);
    ASSERT(request != NULL);
    request->op = op_index(&ftl->io, op);
    request->flash.tag = ftl_tag(FTL_CAUSE_WRITE, op->io.number);
    /* Moves of this step may still use the buffer of this slot. */
    ftl_memory_run(ftl);
    ftl_request_add(&ftl->layout, request, place,
                    &(struct ftl_flash_unit){
                        .data = ftl_slot_data(&ftl->buffer, index),
                        .meta = ftl_slot_meta(&ftl->buffer, index),
                        .system = ftl_marks_read(ftl, request),
                        .length = FTL_UNIT_DATA,
                    });
    ftl_request_send(&ftl->ops, request);
    ftl_list_remove(change_list(&ftl->io, op), op_index(&ftl->io, op));
    if (has_more_units(op)) {
        ftl_list_append(&ftl->io.filling, op_index(&ftl->io, op));
    }
    op->state = FTL_OP_FILLING;
    op->fill_slot = index;
    return UNIT_WAITS;
}

/* Write a part into a slot that has all other contents already. */
static void write_part(struct ftl *ftl, struct ftl_op *op, uint16_t slot,
                       const struct part *part)
{
    uint8_t *data = ftl_slot_data(&ftl->buffer, slot);

    /* Before the copy: if the copy finds a lost word, it makes a new mark. */
    if (ftl->has_marks || op->io.op == MEDIA_WRITE_UNCORRECTABLE) {
        ftl_marks_write(ftl, op, slot, part->offset, part->length);
    }
    if (op->io.protection != 0) {
        ftl_protect_write(ftl, op, data, ftl_slot_meta(&ftl->buffer, slot),
                          part->offset, part->length);
    } else {
        copy_from_pieces(ftl, op, data + part->offset, part->length);
        if (op->io.op != MEDIA_WRITE) {
            ftl_protect_trim(ftl_slot_meta(&ftl->buffer, slot), part->offset,
                             part->length);
        }
    }
    op->next_sector += part->length >> FTL_SECTOR_SHIFT;
}

bool ftl_io_fill_done(struct ftl *ftl, struct ftl_request *request,
                      enum ftl_flash_status status)
{
    struct ftl_op *op = &ftl->io.ops[request->op];
    struct ftl_slot *slot = &ftl->buffer.slots[op->fill_slot];
    struct part part = next_part(op);

    ASSERT(op->state == FTL_OP_FILLING && slot->state == FTL_SLOT_FILLING);
    if (has_more_units(op)) {
        ftl_list_remove(&ftl->io.filling, op_index(&ftl->io, op));
    }
    if (are_units_good(ftl, request, status)) {
        slot->marks = ftl_marks_of(&request->units[0]);
        write_part(ftl, op, op->fill_slot, &part);
        ftl_slot_accept(ftl, op->fill_slot);
        ftl_memory_run(ftl);
        ftl->counters.host_units++;
    } else {
        ftl->map[slot->number] = slot->old_place;
        ftl_slot_free(&ftl->buffer, op->fill_slot);
        op->status = MEDIA_WRITE_ERROR;
    }
    if (op->status == MEDIA_OK && op->next_sector < op->end_sector) {
        op->state = FTL_OP_QUEUED;
        /* It goes on before those that came later. */
        ftl_list_push(change_list(&ftl->io, op), op_index(&ftl->io, op));
    } else {
        end_op(ftl, op);
    }
    return false;
}

/*
 * Take a slot for new contents of a unit.
 * @param entry  of the map: where the contents before them are
 * @return FTL_LIST_END when no slot is free
 */
static uint16_t take_new_slot(struct ftl *ftl, uint32_t number, uint32_t entry)
{
    uint16_t index = ftl_slot_take(&ftl->buffer, FTL_POOL_HOST, number);

    if (index != FTL_LIST_END) {
        ftl_slot_set_before(ftl, index, entry);
    }
    return index;
}

/*
 * Write a part of a unit into a slot of its own.
 * @param entry  of the map: where the other contents of the unit are.  This is
 *               a slot that is being programmed, or nowhere (they are zeroes),
 *               or a place if the part is the whole unit.
 */
static enum progress write_to_new_slot(struct ftl *ftl, struct ftl_op *op,
                                       const struct part *part, uint32_t entry)
{
    uint16_t index = take_new_slot(ftl, part->number, entry);
    struct ftl_slot *slot;
    uint8_t *data;

    if (index == FTL_LIST_END) {
        return UNIT_HAS_NO_SLOT;
    }
    slot = &ftl->buffer.slots[index];
    data = ftl_slot_data(&ftl->buffer, index);
    if (part->length != FTL_UNIT_DATA) {
        ftl_memory_run(ftl);
        if (ftl_is_in_slot(entry)) {
            ftl_memory_move(ftl, FTL_MOVE_COPY, data,
                            ftl_slot_data(&ftl->buffer, (uint16_t)entry),
                            FTL_UNIT_DATA);
            ftl_memory_move(
                ftl, FTL_MOVE_COPY, ftl_slot_meta(&ftl->buffer, index),
                ftl_slot_meta(&ftl->buffer, (uint16_t)entry), FTL_UNIT_META);
            ftl_memory_run(ftl);
            slot->marks = ftl->buffer.slots[(uint16_t)entry].marks;
        } else {
            memset(data, 0, FTL_UNIT_DATA);
        }
    }
    write_part(ftl, op, index, part);
    ftl_slot_accept(ftl, index);
    ftl->counters.host_units++;
    return UNIT_DONE;
}

/* Give up an operation. */
static void fail_change(struct ftl_op *op, enum media_status status)
{
    op->status = (uint8_t)status;
    op->next_sector = op->end_sector;
}

static enum progress write_unit(struct ftl *ftl, struct ftl_op *op)
{
    struct part part = next_part(op);
    uint32_t entry = ftl->map[part.number];

    if (ftl_is_filling(ftl, entry)) {
        return UNIT_WAITS;
    }
    if (ftl_is_in_slot(entry)) {
        uint16_t index = (uint16_t)entry;

        if (ftl->buffer.slots[index].state == FTL_SLOT_WAITING) {
            /* Moves of this step may still have to fill the slot. */
            ftl_memory_run(ftl);
            ftl_slot_renew(ftl, index, part.length != FTL_UNIT_DATA);
            write_part(ftl, op, index, &part);
            ftl_memory_run(ftl);
            ftl_keep_renewed(ftl, index);
            ftl->counters.host_units++;
            return UNIT_DONE;
        }
    } else if (ftl_is_place(entry) && part.length != FTL_UNIT_DATA) {
        return start_fill(ftl, op, part.number, entry);
    } else if (ftl_is_lost(entry) && part.length != FTL_UNIT_DATA) {
        /* The contents of the rest of the unit are lost. */
        fail_change(op, MEDIA_WRITE_ERROR);
        return UNIT_DONE;
    }
    return write_to_new_slot(ftl, op, &part, entry);
}

static enum progress trim_unit(struct ftl *ftl, struct ftl_op *op)
{
    struct part part = next_part(op);
    uint32_t entry = ftl->map[part.number];

    if (entry != FTL_NOWHERE) {
        if (part.length != FTL_UNIT_DATA) {
            return write_unit(ftl, op);
        }
        if (!ftl_trim_unit(ftl, part.number)) {
            return ftl_is_filling(ftl, entry) ? UNIT_WAITS : UNIT_HAS_NO_SLOT;
        }
    }
    op->next_sector += part.length >> FTL_SECTOR_SHIFT;
    return UNIT_DONE;
}

static uint32_t trims_per_step(const struct ftl *ftl)
{
    return ftl->config.trims_per_step != 0 ? ftl->config.trims_per_step
                                           : TRIMS_PER_STEP;
}

/* A trim has not ended in this step.  It goes on in a later one, after all
 * other long trims have had a turn. */
static void defer_trim(struct ftl_io *io, struct ftl_op *op)
{
    ftl_list_remove(change_list(io, op), op_index(io, op));
    op->is_long = true;
    ftl_list_append(&io->trims, op_index(io, op));
}

/*
 * A read-only medium refuses both.  Trims are accepted also when the medium is
 * full, because they are what makes space.
 *
 * While nothing can be programmed, an operation that needs a free slot fails.
 * One that waits for a read or for a request still ends.
 *
 * @param any  set when the operation got on without leaving the queue
 * @return whether the operation has left the queue
 */
static bool step_change(struct ftl *ftl, struct ftl_op *op, bool *any)
{
    /* Zeroes with metadata are written, since trimmed blocks have none. */
    bool is_write = op->io.op == MEDIA_WRITE || op->io.protection != 0 ||
                    op->io.op == MEDIA_WRITE_UNCORRECTABLE;
    uint32_t budget = trims_per_step(ftl), whole;
    enum progress progress;

    if (ftl->is_read_only && op->next_sector < op->end_sector) {
        fail_change(op, MEDIA_READ_ONLY);
    } else if (ftl->is_full && is_write) {
        fail_change(op, MEDIA_WRITE_ERROR);
    }
    while (op->next_sector < op->end_sector) {
        if (budget-- == 0) {
            *any = true;
            if (!is_write) {
                defer_trim(&ftl->io, op);
            }
            return !is_write;
        }
        whole = is_write ? ftl_write_whole_units(ftl, op, budget + 1) : 0;
        if (whole != 0) {
            budget -= whole - 1; /* One was taken above. */
            continue;
        }
        progress = is_write ? write_unit(ftl, op) : trim_unit(ftl, op);
        if (progress == UNIT_HAS_NO_SLOT &&
            (ftl->is_full || ftl_is_held(ftl))) {
            fail_change(op, MEDIA_WRITE_ERROR);
        } else if (progress != UNIT_DONE) {
            ftl_note_throttled(ftl, op, progress == UNIT_HAS_NO_SLOT);
            return op->state != FTL_OP_QUEUED;
        }
    }
    ftl_note_throttled(ftl, op, false);
    ftl_list_remove(change_list(&ftl->io, op), op_index(&ftl->io, op));
    if (ftl_memory_is_pending(ftl)) {
        ftl_list_append(&ftl->io.moving, op_index(&ftl->io, op));
    } else {
        end_op(ftl, op);
    }
    return true;
}

bool ftl_io_end_moving(struct ftl *ftl)
{
    uint16_t count = ftl->io.moving.count;

    ftl_memory_run(ftl);
    /* Not those that the owner submits meanwhile: they are not copied yet. */
    for (uint16_t left = count; left != 0; left--) {
        end_op(ftl, &ftl->io.ops[ftl_list_pop(&ftl->io.moving)]);
    }
    return count != 0;
}

/* ---- Flushes, and writes with FUA. */

static bool step_barriers(struct ftl *ftl)
{
    uint16_t next;
    bool any = false;

    for (uint16_t i = ftl->io.barriers.head; i != FTL_LIST_END; i = next) {
        struct ftl_op *op = &ftl->io.ops[i];

        next = ftl->io.op_links[i].next;
        if (ftl_slot_is_durable(&ftl->buffer, op->barrier) || ftl->is_full ||
            ftl_is_held(ftl)) {
            if (!ftl_slot_is_durable(&ftl->buffer, op->barrier)) {
                op->status = MEDIA_WRITE_ERROR;
            }
            ftl_note_flushed(ftl, op);
            ftl_list_remove(&ftl->io.barriers, i);
            finish_op(ftl, op);
            any = true;
        }
    }
    return any;
}

/* What a checkpoint says must not change while it is written. */
static bool holds_changes(const struct ftl *ftl)
{
    return ftl->checkpoint.state == FTL_CHECKPOINT_DRAINING ||
           ftl->checkpoint.state == FTL_CHECKPOINT_WRITING;
}

/* Whether two operations have blocks in common that both have yet to change. */
static bool share_blocks(const struct ftl_op *one, const struct ftl_op *other)
{
    return one->next_sector < other->end_sector &&
           other->next_sector < one->end_sector;
}

/* Whether an operation shares blocks with one of a list that comes before
 * `end`. */
static bool shares_with_list(const struct ftl_io *io, const struct ftl_op *op,
                             const struct ftl_list *list, uint16_t end)
{
    for (uint16_t i = list->head; i != end; i = io->op_links[i].next) {
        if (share_blocks(op, &io->ops[i])) {
            return true;
        }
    }
    return false;
}

/* Whether an operation has to wait for a long trim, for an operation that waits
 * for old contents and has more units to change, or for an earlier operation
 * that itself waits for one of these. */
static bool must_follow(const struct ftl_io *io, const struct ftl_op *op)
{
    return io->trims.count + io->filling.count != 0 &&
           (shares_with_list(io, op, &io->trims, FTL_LIST_END) ||
            shares_with_list(io, op, &io->filling, FTL_LIST_END) ||
            shares_with_list(io, op, &io->changes, op_index(io, op)));
}

/* Take writes, trims and flushes in order.  Leave out those that must_follow()
 * others; stop at the first one that waits for anything else. */
static bool step_changes(struct ftl *ftl)
{
    uint16_t left_out = FTL_LIST_END; /* the last one that was left out */
    uint16_t index = ftl->io.changes.head;
    bool any = false;

    while (index != FTL_LIST_END) {
        if (must_follow(&ftl->io, &ftl->io.ops[index])) {
            left_out = index;
        } else if (step_change(ftl, &ftl->io.ops[index], &any)) {
            any = true;
        } else {
            break;
        }
        index = left_out == FTL_LIST_END ? ftl->io.changes.head
                                         : ftl->io.op_links[left_out].next;
    }
    return any;
}

/* Go on with one of the long trims. */
static bool step_trims(struct ftl *ftl)
{
    bool any = false;

    return ftl->io.trims.count != 0 &&
           (step_change(ftl, &ftl->io.ops[ftl->io.trims.head], &any) || any);
}

bool ftl_io_step(struct ftl *ftl)
{
    uint16_t next;
    /* First those that wait already: garbage collection has seen the trims that
     * they wait for, and is_full says whether these made space. */
    bool any = step_barriers(ftl);

    for (uint16_t i = ftl->io.reads.head; i != FTL_LIST_END; i = next) {
        next = ftl->io.op_links[i].next;
        any |= step_read(ftl, &ftl->io.ops[i]);
    }
    if (!holds_changes(ftl)) {
        any |= step_trims(ftl);
        any |= step_changes(ftl);
    }
    (void)ftl_io_end_moving(ftl);
    return any;
}

bool ftl_io_refuse(struct ftl *ftl)
{
    struct ftl_list *const lists[] = {&ftl->io.reads, &ftl->io.changes,
                                      &ftl->io.trims};
    bool any = false;

    for (unsigned int i = 0; i < ARRAY_LEN(lists); i++) {
        for (uint16_t left = lists[i]->count; left != 0; left--) {
            struct ftl_op *op = &ftl->io.ops[ftl_list_pop(lists[i])];

            op->status = MEDIA_INTERNAL_ERROR;
            finish_op(ftl, op);
            any = true;
        }
    }
    return any;
}

/* ---- Submission. */

static void refuse_op(struct ftl *ftl, struct ftl_op *op,
                      enum media_status status)
{
    op->status = (uint8_t)status;
    op->next_sector = op->end_sector;
    ftl->has_work = true;
    ftl_list_append(&ftl->io.reads, op_index(&ftl->io, op));
}

/*
 * Start a read at once if its first unit is on flash.  Such a read waits for
 * the flash, so it does not end before ftl_submit() returns.
 * @return false when the read has to wait in the queue
 */
static bool start_read(struct ftl *ftl, struct ftl_op *op)
{
    uint32_t first = (uint32_t)(op->next_sector / FTL_UNIT_SECTORS);

    if (!ftl_serves_reads(ftl) ||
        ftl->ops.free_requests.count <= ftl->ops.kept_requests ||
        !ftl_is_place(ftl->map[first]) || !read_units(ftl, op)) {
        return false;
    }
    op->state = FTL_OP_READING;
    return true;
}

/* Whether a write may begin at once: no other change waits, or goes on after
 * it has waited for old contents. */
static bool serves_writes(const struct ftl *ftl)
{
    return ftl->state == FTL_READY && ftl->keep.phase == FTL_KEEP_IN_USE &&
           !ftl_power_is_failing(ftl) && ftl->io.changes.count == 0 &&
           ftl->io.trims.count == 0 && ftl->io.filling.count == 0 &&
           !ftl->is_read_only && !ftl->is_full && !holds_changes(ftl);
}

/*
 * Start a write of one whole unit from one piece, without metadata, into a slot
 * of its own.  The next ftl_step() copies the data, and ends the operation.
 * @return false when the write has to be started in the usual way
 */
static bool start_short_write(struct ftl *ftl, struct ftl_op *op)
{
    const struct media_io *io = &op->io;
    uint32_t number = (uint32_t)(io->first_lba / FTL_UNIT_SECTORS);
    uint32_t entry;
    uint16_t index;

    if (io->count_blocks != FTL_UNIT_SECTORS ||
        io->first_lba % FTL_UNIT_SECTORS != 0 || io->protection != 0 ||
        io->piece_count != 1 || !serves_writes(ftl)) {
        return false;
    }
    entry = ftl->map[number];
    if (ftl_is_in_slot(entry) &&
        ftl->buffer.slots[(uint16_t)entry].state != FTL_SLOT_PROGRAMMING) {
        return false;
    }
    index = take_new_slot(ftl, number, entry);
    if (index == FTL_LIST_END) {
        return false;
    }
    ftl_memory_move(ftl, FTL_MOVE_COPY, ftl_slot_data(&ftl->buffer, index),
                    io->pieces[0].ptr, FTL_UNIT_DATA);
    ftl_slot_accept(ftl, index);
    ftl->counters.host_units++;
    op->next_sector = op->end_sector;
    ftl_list_append(&ftl->io.moving, op_index(&ftl->io, op));
    return true;
}

/* Submit an operation that is no short read.  This is not inline, so that a
 * short read need not save registers. */
static __attribute__((noinline)) bool submit_op(struct ftl *ftl,
                                                const struct media_io *io)
{
    uint64_t sectors = (uint64_t)ftl->config.logical_units * FTL_UNIT_SECTORS;
    uint16_t index = ftl_stack_pop(&ftl->io.free_ops);
    struct ftl_op *op;

    if (index == FTL_LIST_END) {
        return false;
    }
    op = &ftl->io.ops[index];
    *op = (struct ftl_op){
        .state = FTL_OP_QUEUED,
        .status = MEDIA_OK,
        .needs_durable =
            io->op == MEDIA_FLUSH ||
            (io->op != MEDIA_READ && (io->fua || !ftl->is_volatile)),
        .next_sector = io->first_lba,
        .end_sector = io->first_lba + io->count_blocks,
        .next = ftl_cursor_of(io),
        .io = *io,
    };
    if (io->op == MEDIA_FLUSH) {
        op->end_sector = op->next_sector;
    } else if (io->first_lba > sectors ||
               io->count_blocks > sectors - io->first_lba) {
        refuse_op(ftl, op, MEDIA_LBA_RANGE);
        return true;
    }
    if (io->protection != 0 && !ftl_protect_check_write(ftl, op)) {
        refuse_op(ftl, op, (enum media_status)op->status);
        return true;
    }
    if (io->op == MEDIA_READ && start_read(ftl, op)) {
        return true;
    }
    ftl->has_work = true;
    if (io->op != MEDIA_WRITE || !start_short_write(ftl, op)) {
        ftl_list_append(
            io->op == MEDIA_READ ? &ftl->io.reads : &ftl->io.changes, index);
    }
    return true;
}

bool ftl_submit(struct ftl *ftl, const struct media_io *io)
{
    return ftl_short_read_start(ftl, io) || submit_op(ftl, io);
}

void ftl_submit_next(struct ftl *ftl, const struct media_io *io)
{
    ASSERT(!ftl->io.has_next);
    ftl->io.next = *io;
    start_next(ftl);
}

bool ftl_withdraw_next(struct ftl *ftl)
{
    bool has_waited = ftl->io.has_next;

    ftl->io.has_next = false;
    return has_waited;
}
