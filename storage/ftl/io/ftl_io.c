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
#include "storage/ftl/io/ftl_io_parts.h"
#include "storage/ftl/io/ftl_op_parts.h"
#include "storage/ftl/io/ftl_short_read.h"
#include "storage/ftl/io/ftl_whole_units.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"

enum {
    TRIMS_PER_STEP = 4096, /* see ftl_config.trims_per_step */
};

static uint32_t trims_per_step(const struct ftl_io_floor *ftl)
{
    return ftl->config.trims_per_step != 0 ? ftl->config.trims_per_step
                                           : TRIMS_PER_STEP;
}

/* A trim has not ended in this step.  It goes on in a later one, after all
 * other long trims have had a turn. */
static void defer_trim(struct ftl_io *io, struct ftl_op *op)
{
    ftl_list_remove(ftl_op_change_list(io, op), ftl_op_index(io, op));
    op->is_long = true;
    ftl_list_append(&io->trims, ftl_op_index(io, op));
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
static bool step_change(struct ftl_io_floor *ftl, struct ftl_op *op, bool *any)
{
    /* Zeroes with metadata are written, since trimmed blocks have none. */
    bool is_write = op->io.op == MEDIA_WRITE || op->io.protection != 0 ||
                    op->io.op == MEDIA_WRITE_UNCORRECTABLE;
    uint32_t budget = trims_per_step(ftl), whole;
    enum ftl_progress progress;

    if (ftl->is_read_only && op->next_sector < op->end_sector) {
        ftl_op_fail(op, MEDIA_READ_ONLY);
    } else if (ftl->is_full && is_write) {
        ftl_op_fail(op, MEDIA_WRITE_ERROR);
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
        progress =
            is_write ? ftl_write_unit(ftl, op) : ftl_write_trim_unit(ftl, op);
        if (progress == FTL_PROGRESS_NO_SLOT &&
            (ftl->is_full || ftl_is_held(&ftl->ops_floor))) {
            ftl_op_fail(op, MEDIA_WRITE_ERROR);
        } else if (progress != FTL_PROGRESS_DONE) {
            ftl_note_throttled(&ftl->map_floor, op,
                               progress == FTL_PROGRESS_NO_SLOT);
            return op->state != FTL_OP_QUEUED;
        }
    }
    ftl_note_throttled(&ftl->map_floor, op, false);
    ftl_list_remove(ftl_op_change_list(&ftl->io, op),
                    ftl_op_index(&ftl->io, op));
    if (ftl_memory_is_pending(&ftl->map_floor)) {
        ftl_list_append(&ftl->io.moving, ftl_op_index(&ftl->io, op));
    } else {
        ftl_op_end(ftl, op);
    }
    return true;
}

bool ftl_io_end_moving(struct ftl_io_floor *ftl)
{
    uint16_t count = ftl->io.moving.count;

    ftl_memory_run(&ftl->map_floor);
    /* Not those that the owner submits meanwhile: they are not copied yet. */
    for (uint16_t left = count; left != 0; left--) {
        ftl_op_end(ftl, &ftl->io.ops[ftl_list_pop(&ftl->io.moving)]);
    }
    return count != 0;
}

/* ---- Flushes, and writes with FUA. */

static bool step_barriers(struct ftl_io_floor *ftl)
{
    uint16_t next;
    bool any = false;

    for (uint16_t i = ftl->io.barriers.head; i != FTL_LIST_END; i = next) {
        struct ftl_op *op = &ftl->io.ops[i];

        next = ftl->io.op_links[i].next;
        if (ftl_slot_is_durable(&ftl->buffer, op->barrier) || ftl->is_full ||
            ftl_is_held(&ftl->ops_floor)) {
            if (!ftl_slot_is_durable(&ftl->buffer, op->barrier)) {
                op->status = MEDIA_WRITE_ERROR;
            }
            ftl_note_flushed(&ftl->map_floor, op);
            ftl_list_remove(&ftl->io.barriers, i);
            ftl_op_finish(ftl, op);
            any = true;
        }
    }
    return any;
}

/* What a checkpoint says must not change while it is written. */
static bool holds_changes(const struct ftl_io_floor *ftl)
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
            shares_with_list(io, op, &io->changes, ftl_op_index(io, op)));
}

/* Take writes, trims and flushes in order.  Leave out those that must_follow()
 * others; stop at the first one that waits for anything else. */
static bool step_changes(struct ftl_io_floor *ftl)
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
static bool step_trims(struct ftl_io_floor *ftl)
{
    bool any = false;

    return ftl->io.trims.count != 0 &&
           (step_change(ftl, &ftl->io.ops[ftl->io.trims.head], &any) || any);
}

bool ftl_io_step(struct ftl_io_floor *ftl)
{
    uint16_t next;
    /* First those that wait already: garbage collection has seen the trims that
     * they wait for, and is_full says whether these made space. */
    bool any = step_barriers(ftl);

    for (uint16_t i = ftl->io.reads.head; i != FTL_LIST_END; i = next) {
        next = ftl->io.op_links[i].next;
        any |= ftl_read_step(ftl, &ftl->io.ops[i]);
    }
    if (!holds_changes(ftl)) {
        any |= step_trims(ftl);
        any |= step_changes(ftl);
    }
    (void)ftl_io_end_moving(ftl);
    return any;
}

bool ftl_io_refuse(struct ftl_io_floor *ftl)
{
    struct ftl_list *const lists[] = {&ftl->io.reads, &ftl->io.changes,
                                      &ftl->io.trims};
    bool any = false;

    for (unsigned int i = 0; i < ARRAY_LEN(lists); i++) {
        for (uint16_t left = lists[i]->count; left != 0; left--) {
            struct ftl_op *op = &ftl->io.ops[ftl_list_pop(lists[i])];

            op->status = MEDIA_INTERNAL_ERROR;
            ftl_op_finish(ftl, op);
            any = true;
        }
    }
    return any;
}

/* ---- Submission. */

static void refuse_op(struct ftl_io_floor *ftl, struct ftl_op *op,
                      enum media_status status)
{
    op->status = (uint8_t)status;
    op->next_sector = op->end_sector;
    ftl->has_work = true;
    ftl_list_append(&ftl->io.reads, ftl_op_index(&ftl->io, op));
}

/*
 * Start a read at once if its first unit is on flash.  Such a read waits for
 * the flash, so it does not end before ftl_io_submit() returns.
 * @return false when the read has to wait in the queue
 */
static bool start_read(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    uint32_t first = (uint32_t)(op->next_sector / FTL_UNIT_SECTORS);

    if (!ftl_serves_reads(ftl) ||
        ftl->ops.free_requests.count <= ftl->ops.kept_requests ||
        !ftl_is_place(ftl->map[first]) || !ftl_read_units(ftl, op)) {
        return false;
    }
    op->state = FTL_OP_READING;
    return true;
}

/* Whether a write may begin at once: no other change waits, or goes on after
 * it has waited for old contents. */
static bool serves_writes(const struct ftl_io_floor *ftl)
{
    return ftl->state == FTL_READY && ftl->keep.phase == FTL_KEEP_IN_USE &&
           !ftl_power_is_failing(&ftl->base_floor) &&
           ftl->io.changes.count == 0 && ftl->io.trims.count == 0 &&
           ftl->io.filling.count == 0 && !ftl->is_read_only && !ftl->is_full &&
           !holds_changes(ftl);
}

bool ftl_io_submit_any(struct ftl_io_floor *ftl, const struct media_io *io)
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
    if (io->op != MEDIA_WRITE || !serves_writes(ftl) ||
        !ftl_write_short(ftl, op)) {
        ftl_list_append(
            io->op == MEDIA_READ ? &ftl->io.reads : &ftl->io.changes, index);
    }
    return true;
}

/* An operation is free: start the one that comes before all others. */
void ftl_io_start_next(struct ftl_io_floor *ftl)
{
    ftl->io.has_next = !ftl_io_submit(ftl, &ftl->io.next);
}

void ftl_io_submit_next(struct ftl_io_floor *ftl, const struct media_io *io)
{
    ASSERT(!ftl->io.has_next);
    ftl->io.next = *io;
    ftl_io_start_next(ftl);
}

bool ftl_io_withdraw_next(struct ftl_io_floor *ftl)
{
    bool has_waited = ftl->io.has_next;

    ftl->io.has_next = false;
    return has_waited;
}
