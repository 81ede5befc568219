/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/io/ftl_short_read.h"

#include "storage/ftl/io/ftl_io_parts.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/base/ftl_phases.h"

bool ftl_serves_reads(const struct ftl_io_floor *ftl)
{
    return ftl->state == FTL_READY && ftl->keep.phase == FTL_KEEP_IN_USE &&
           ftl->io.reads.count == 0 && !ftl_power_is_failing(&ftl->base_floor);
}

static bool is_short_read(const struct media_io *io)
{
    return io->op == MEDIA_READ && io->piece_count == 1 &&
           io->protection == 0 &&
           io->first_lba % FTL_UNIT_SECTORS + io->count_blocks <=
               FTL_UNIT_SECTORS;
}

/* Fill in the request for a unit at a place. */
static void set_place(const struct ftl_layout *layout,
                      struct ftl_request *request, uint32_t place)
{
    uint32_t row = ftl_place_row(layout, place);
    struct ftl_flash_unit *unit = &request->units[0];

    request->row = row;
    ftl_layout_row(layout, row, &request->flash);
    ftl_layout_unit(layout, place - row * layout->row_units, unit);
    request->flash.planes = (uint8_t)BIT(unit->plane);
}

/* Fill in the rest of the request. */
static void fill_request(struct ftl_request *request, const struct media_io *io,
                         uint16_t op, uint32_t number)
{
    struct ftl_flash_unit *unit = &request->units[0];
    uint32_t sector = (uint32_t)(io->first_lba % FTL_UNIT_SECTORS);

    request->kind = FTL_REQUEST_READ;
    request->is_short = true;
    request->rescue = NULL;
    request->op = op;
    request->numbers[0] = number;
    unit->data = io->pieces[0].ptr;
    unit->meta = NULL;
    unit->system = NULL;
    unit->offset = (uint16_t)(sector << FTL_SECTOR_SHIFT);
    unit->length = (uint16_t)(io->count_blocks << FTL_SECTOR_SHIFT);
    unit->more = false;
    request->flash.kind = FTL_FLASH_READ;
    request->flash.is_urgent = true;
    request->flash.is_reused = false;
    request->flash.tag = ftl_tag(FTL_CAUSE_READ, io->number);
    request->flash.num_units = 1;
}

static void set_op(struct ftl_op *op, const struct media_io *io)
{
    op->state = FTL_OP_READING;
    op->status = MEDIA_OK;
    op->needs_durable = false;
    op->requests = 1;
    op->end_sector = io->first_lba + io->count_blocks;
    op->io.op = MEDIA_READ;
    op->io.protection = 0;
    op->io.first_lba = io->first_lba;
    op->io.owner = io->owner;
}

/*
 * The place of the data of an operation, if it is a short read that can start
 * now: its unit is on flash, and an operation and a request are free.
 * Otherwise, FTL_NOWHERE, or another value that is no place.
 */
static uint32_t find_place(const struct ftl_io_floor *ftl,
                           const struct media_io *io)
{
    uint64_t number = io->first_lba / FTL_UNIT_SECTORS;

    if (!is_short_read(io) || ftl->has_marks ||
        number >= ftl->config.logical_units || !ftl_serves_reads(ftl) ||
        ftl->io.free_ops.head == FTL_LIST_END ||
        ftl->ops.free_requests.count <= ftl->ops.kept_requests) {
        return FTL_NOWHERE;
    }
    return ftl->map[number];
}

bool ftl_io_submit(struct ftl_io_floor *ftl, const struct media_io *io)
{
    uint32_t place = find_place(ftl, io);
    struct ftl_request *request;
    uint16_t index, op;

    if (!ftl_is_place(place)) {
        return ftl_io_submit_any(ftl, io);
    }
    index = ftl_stack_pop(&ftl->ops.free_requests);
    op = ftl_stack_pop(&ftl->io.free_ops);
    request = &ftl->ops.requests[index];
    fill_request(request, io, op, (uint32_t)(io->first_lba / FTL_UNIT_SECTORS));
    set_place(&ftl->layout, request, place);
    set_op(&ftl->io.ops[op], io);
    if (ftl->ops.unsent.count != 0 || ftl->dies.num_dead != 0 ||
        !ftl->config.flash.submit(ftl->config.flash.ctx, &request->flash)) {
        ftl_list_append(&ftl->ops.unsent, index);
        ftl->has_work = true;
    }
    return true;
}
