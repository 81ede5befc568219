/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and trims of hosts.  One waits when there is no slot for it, or when
 * another operation writes a part of the same unit and still reads the old
 * contents of this unit.
 */
#include "storage/ftl/io/ftl_io_parts.h"
#include "storage/ftl/io/ftl_op_parts.h"
#include "storage/ftl/io/ftl_whole_units.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"

#include <string.h>

/* Copy what an operation writes: its pieces, or zeroes.  The next
 * ftl_memory_run() does these copies. */
static void copy_from_pieces(struct ftl_io_floor *ftl, struct ftl_op *op,
                             uint8_t *to, uint32_t len)
{
    if (op->io.op != MEDIA_WRITE) {
        ftl_memory_run(&ftl->map_floor);
        memset(to, 0, len);
        return;
    }
    while (len != 0) {
        uint32_t now = len;
        const uint8_t *at = ftl_op_take_piece(op, &now);

        ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, to, at, now);
        to += now;
        len -= now;
    }
}

/* Read the old contents of a unit into a slot. */
static enum ftl_progress start_fill(struct ftl_io_floor *ftl, struct ftl_op *op,
                                    uint32_t number, uint32_t place)
{
    struct ftl_request *request;
    uint16_t index;

    if (ftl->ops.free_requests.count == 0) {
        return FTL_PROGRESS_WAITS;
    }
    index = ftl_slot_take(&ftl->buffer, FTL_POOL_HOST, number);
    if (index == FTL_LIST_END) {
        return FTL_PROGRESS_NO_SLOT;
    }
    ftl->buffer.slots[index].state = FTL_SLOT_FILLING;
    ftl->buffer.slots[index].old_place = place;
    ftl->map[number] = FTL_IN_SLOT | index;
    request = ftl_request_take(&ftl->ops, FTL_REQUEST_FILL);
    ASSERT(request != NULL);
    request->op = ftl_op_index(&ftl->io, op);
    request->flash.tag = ftl_tag(FTL_CAUSE_WRITE, op->io.number);
    /* Moves of this step may still use the buffer of this slot. */
    ftl_memory_run(&ftl->map_floor);
    ftl_request_add(&ftl->layout, request, place,
                    &(struct ftl_flash_unit){
                        .data = ftl_slot_data(&ftl->buffer, index),
                        .meta = ftl_slot_meta(&ftl->buffer, index),
                        .system = ftl_marks_read(&ftl->map_floor, request),
                        .length = FTL_UNIT_DATA,
                    });
    ftl_request_send(&ftl->ops, request);
    ftl_list_remove(ftl_op_change_list(&ftl->io, op),
                    ftl_op_index(&ftl->io, op));
    if (ftl_op_has_more_units(op)) {
        ftl_list_append(&ftl->io.filling, ftl_op_index(&ftl->io, op));
    }
    op->state = FTL_OP_FILLING;
    op->fill_slot = index;
    return FTL_PROGRESS_WAITS;
}

/* Write a part into a slot that has all other contents already. */
static void write_part(struct ftl_io_floor *ftl, struct ftl_op *op,
                       uint16_t slot, const struct ftl_op_part *part)
{
    uint8_t *data = ftl_slot_data(&ftl->buffer, slot);

    /* Before the copy: if the copy finds a lost word, it makes a new mark. */
    if (ftl->has_marks || op->io.op == MEDIA_WRITE_UNCORRECTABLE) {
        ftl_marks_write(&ftl->map_floor, op, slot, part->offset, part->length);
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

bool ftl_io_fill_done(struct ftl_io_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status)
{
    struct ftl_op *op = &ftl->io.ops[request->op];
    struct ftl_slot *slot = &ftl->buffer.slots[op->fill_slot];
    struct ftl_op_part part = ftl_op_next_part(op);

    ASSERT(op->state == FTL_OP_FILLING && slot->state == FTL_SLOT_FILLING);
    if (ftl_op_has_more_units(op)) {
        ftl_list_remove(&ftl->io.filling, ftl_op_index(&ftl->io, op));
    }
    if (ftl_io_are_units_good(ftl, request, status)) {
        slot->marks = ftl_marks_of(&request->units[0]);
        write_part(ftl, op, op->fill_slot, &part);
        ftl_slot_accept(&ftl->map_floor, op->fill_slot);
        ftl_memory_run(&ftl->map_floor);
        ftl->counters.host_units++;
    } else {
        ftl->map[slot->number] = slot->old_place;
        ftl_slot_free(&ftl->buffer, op->fill_slot);
        op->status = MEDIA_WRITE_ERROR;
    }
    if (op->status == MEDIA_OK && op->next_sector < op->end_sector) {
        op->state = FTL_OP_QUEUED;
        /* It goes on before those that came later. */
        ftl_list_push(ftl_op_change_list(&ftl->io, op),
                      ftl_op_index(&ftl->io, op));
    } else {
        ftl_op_end(ftl, op);
    }
    return false;
}

/*
 * Take a slot for new contents of a unit.
 * @param entry  of the map: where the contents before them are
 * @return FTL_LIST_END when no slot is free
 */
static uint16_t take_new_slot(struct ftl_io_floor *ftl, uint32_t number,
                              uint32_t entry)
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
static enum ftl_progress write_to_new_slot(struct ftl_io_floor *ftl,
                                           struct ftl_op *op,
                                           const struct ftl_op_part *part,
                                           uint32_t entry)
{
    uint16_t index = take_new_slot(ftl, part->number, entry);
    struct ftl_slot *slot;
    uint8_t *data;

    if (index == FTL_LIST_END) {
        return FTL_PROGRESS_NO_SLOT;
    }
    slot = &ftl->buffer.slots[index];
    data = ftl_slot_data(&ftl->buffer, index);
    if (part->length != FTL_UNIT_DATA) {
        ftl_memory_run(&ftl->map_floor);
        if (ftl_is_in_slot(entry)) {
            ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, data,
                            ftl_slot_data(&ftl->buffer, (uint16_t)entry),
                            FTL_UNIT_DATA);
            ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY,
                            ftl_slot_meta(&ftl->buffer, index),
                            ftl_slot_meta(&ftl->buffer, (uint16_t)entry),
                            FTL_UNIT_META);
            ftl_memory_run(&ftl->map_floor);
            slot->marks = ftl->buffer.slots[(uint16_t)entry].marks;
        } else {
            memset(data, 0, FTL_UNIT_DATA);
        }
    }
    write_part(ftl, op, index, part);
    ftl_slot_accept(&ftl->map_floor, index);
    ftl->counters.host_units++;
    return FTL_PROGRESS_DONE;
}

enum ftl_progress ftl_write_unit(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    struct ftl_op_part part = ftl_op_next_part(op);
    uint32_t entry = ftl->map[part.number];

    if (ftl_is_filling(&ftl->map_floor, entry)) {
        return FTL_PROGRESS_WAITS;
    }
    if (ftl_is_in_slot(entry)) {
        uint16_t index = (uint16_t)entry;

        if (ftl->buffer.slots[index].state == FTL_SLOT_WAITING) {
            /* Moves of this step may still have to fill the slot. */
            ftl_memory_run(&ftl->map_floor);
            ftl_slot_renew(&ftl->map_floor, index,
                           part.length != FTL_UNIT_DATA);
            write_part(ftl, op, index, &part);
            ftl_memory_run(&ftl->map_floor);
            ftl_keep_renewed(&ftl->map_floor, index);
            ftl->counters.host_units++;
            return FTL_PROGRESS_DONE;
        }
    } else if (ftl_is_place(entry) && part.length != FTL_UNIT_DATA) {
        return start_fill(ftl, op, part.number, entry);
    } else if (ftl_is_lost(entry) && part.length != FTL_UNIT_DATA) {
        /* The contents of the rest of the unit are lost. */
        ftl_op_fail(op, MEDIA_WRITE_ERROR);
        return FTL_PROGRESS_DONE;
    }
    return write_to_new_slot(ftl, op, &part, entry);
}

enum ftl_progress ftl_write_trim_unit(struct ftl_io_floor *ftl,
                                      struct ftl_op *op)
{
    struct ftl_op_part part = ftl_op_next_part(op);
    uint32_t entry = ftl->map[part.number];

    if (entry != FTL_NOWHERE) {
        if (part.length != FTL_UNIT_DATA) {
            return ftl_write_unit(ftl, op);
        }
        if (!ftl_trim_unit(&ftl->pages_floor, part.number)) {
            return ftl_is_filling(&ftl->map_floor, entry)
                       ? FTL_PROGRESS_WAITS
                       : FTL_PROGRESS_NO_SLOT;
        }
    }
    op->next_sector += part.length >> FTL_SECTOR_SHIFT;
    return FTL_PROGRESS_DONE;
}

/*
 * Start a write of one whole unit from one piece, without metadata, into a slot
 * of its own.  The next ftl_step() copies the data, and ends the operation.
 * @return false when the write has to be started in the usual way
 */
bool ftl_write_short(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    const struct media_io *io = &op->io;
    uint32_t number = (uint32_t)(io->first_lba / FTL_UNIT_SECTORS);
    uint32_t entry;
    uint16_t index;

    if (io->count_blocks != FTL_UNIT_SECTORS ||
        io->first_lba % FTL_UNIT_SECTORS != 0 || io->protection != 0 ||
        io->piece_count != 1) {
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
    ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY,
                    ftl_slot_data(&ftl->buffer, index), io->pieces[0].ptr,
                    FTL_UNIT_DATA);
    ftl_slot_accept(&ftl->map_floor, index);
    ftl->counters.host_units++;
    op->next_sector = op->end_sector;
    ftl_list_append(&ftl->io.moving, ftl_op_index(&ftl->io, op));
    return true;
}
