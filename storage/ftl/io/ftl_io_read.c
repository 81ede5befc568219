/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of hosts.  They do not wait for writes. */
#include "storage/ftl/io/ftl_io_parts.h"
#include "storage/ftl/io/ftl_op_parts.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"

static void copy_to_pieces(struct ftl_io_floor *ftl, struct ftl_op *op,
                           const uint8_t *from, uint32_t len)
{
    while (len != 0) {
        uint32_t now = len;
        uint8_t *at = ftl_op_take_piece(op, &now);

        ftl_memory_move(&ftl->map_floor, FTL_MOVE_COPY, at, from, now);
        from += now;
        len -= now;
    }
    ftl_memory_run(&ftl->map_floor);
}

/* Send the request of a read that is being put together, if there is one. */
static void send_read(struct ftl_io_floor *ftl, struct ftl_request **open)
{
    if (*open != NULL) {
        ftl_request_send_now(&ftl->ops_floor, *open);
        *open = NULL;
    }
}

/*
 * The request that takes a part of a unit: the one that is being put together
 * if it is for the same row and has room, or a new one.
 * @return NULL when there is none
 */
static struct ftl_request *request_for_part(struct ftl_io_floor *ftl,
                                            struct ftl_op *op, uint32_t place,
                                            uint32_t length,
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
            (*open)->op = ftl_op_index(&ftl->io, op);
            (*open)->flash.tag = ftl_tag(FTL_CAUSE_READ, op->io.number);
            op->requests++;
        }
    }
    return *open;
}

/* Read a part of a unit from flash. @return false when there is no request */
static bool read_from_flash(struct ftl_io_floor *ftl, struct ftl_op *op,
                            uint32_t place, const struct ftl_op_part *part,
                            struct ftl_request **open)
{
    struct ftl_request *request =
        request_for_part(ftl, op, place, part->length, open);
    uint32_t done = 0;

    if (request == NULL) {
        return false;
    }
    while (done < part->length) {
        uint32_t len = part->length - done;
        struct ftl_flash_unit unit = {.data = ftl_op_take_piece(op, &len)};

        unit.offset = (uint16_t)(part->offset + done);
        unit.length = (uint16_t)len;
        unit.system = ftl_marks_read(&ftl->map_floor, request);
        done += len;
        unit.more = done < part->length;
        request->numbers[request->flash.num_units] = part->number;
        ftl_request_add(&ftl->layout, request, place, &unit);
    }
    return true;
}

/* The same for blocks with metadata: one request for each unit. */
static bool read_protected(struct ftl_io_floor *ftl, struct ftl_op *op,
                           uint32_t place, const struct ftl_op_part *part,
                           struct ftl_request **open)
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
static void read_nothing(struct ftl_io_floor *ftl, struct ftl_op *op,
                         const struct ftl_op_part *part)
{
    if (op->io.protection != 0) {
        ftl_protect_read(ftl, op, NULL, NULL, part->offset, part->length);
    } else {
        ftl_cursor_fill(&op->next, 0, part->length);
    }
}

/* Read a part of a unit that is in a slot.  If the controller finds a lost word
 * while it copies the data, the slot has a mark after the copy. */
static void read_from_slot(struct ftl_io_floor *ftl, struct ftl_op *op,
                           uint16_t slot, const struct ftl_op_part *part)
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
static bool read_unit(struct ftl_io_floor *ftl, struct ftl_op *op,
                      struct ftl_request **open)
{
    struct ftl_op_part part = ftl_op_next_part(op);
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
bool ftl_read_units(struct ftl_io_floor *ftl, struct ftl_op *op)
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
bool ftl_read_step(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    if (!ftl_read_units(ftl, op)) {
        return false;
    }
    ftl_list_remove(&ftl->io.reads, ftl_op_index(&ftl->io, op));
    op->state = FTL_OP_READING;
    if (op->requests == 0) {
        ftl_op_end(ftl, op);
    }
    return true;
}

/* Whether all units of a read are good. */
bool ftl_io_are_units_good(struct ftl_io_floor *ftl,
                           const struct ftl_request *request,
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
static void end_request(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    op->requests--;
    if (op->requests == 0 && op->state == FTL_OP_READING) {
        ftl_op_end(ftl, op);
    }
}

/* The units of a request are good. */
static void end_good_request(struct ftl_io_floor *ftl, struct ftl_op *op,
                             const struct ftl_request *request)
{
    if (op->io.protection != 0) {
        ftl_protect_read_done(ftl, op, request);
    }
    ftl_marks_read_done(op, request);
    end_request(ftl, op);
}

void ftl_io_read_good(struct ftl_io_floor *ftl, struct ftl_request *request)
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
        ftl_op_finish(ftl, op);
    }
}

bool ftl_io_read_done(struct ftl_io_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status)
{
    struct ftl_op *op = &ftl->io.ops[request->op];

    if (ftl_io_are_units_good(ftl, request, status)) {
        end_good_request(ftl, op, request);
    } else {
        op->status = MEDIA_READ_ERROR;
        end_request(ftl, op);
    }
    return false;
}

bool ftl_io_expects(const struct ftl_io_floor *ftl,
                    const struct ftl_request *request, uint32_t entry,
                    uint32_t place, const struct ftl_system *system)
{
    uint32_t number =
        request->kind == FTL_REQUEST_READ
            ? request->numbers[entry]
            : ftl->buffer.slots[ftl->io.ops[request->op].fill_slot].number;

    (void)place;
    return system->kind == FTL_KIND_DATA && system->number == number;
}
