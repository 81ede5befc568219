/* SPDX-License-Identifier: BSD-2-Clause */
/* Helpers for operations of the medium, which the files of this floor share. */
#ifndef ESSD_FTL_OP_PARTS_H
#define ESSD_FTL_OP_PARTS_H

#include "storage/ftl/io/io_floor.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ftl_kinds.h"

static inline uint16_t ftl_op_index(const struct ftl_io *io,
                                    const struct ftl_op *op)
{
    return (uint16_t)(op - io->ops);
}

/* The part of an operation in one unit. */
struct ftl_op_part {
    uint32_t number; /* of the logical unit */
    uint32_t offset; /* in bytes */
    uint32_t length;
};

static inline struct ftl_op_part ftl_op_next_part(const struct ftl_op *op)
{
    uint32_t sector = (uint32_t)(op->next_sector % FTL_UNIT_SECTORS);
    uint64_t left = op->end_sector - op->next_sector;
    uint32_t count = (uint32_t)MIN(left, (uint64_t)FTL_UNIT_SECTORS - sector);

    return (struct ftl_op_part){
        .number = (uint32_t)(op->next_sector / FTL_UNIT_SECTORS),
        .offset = sector << FTL_SECTOR_SHIFT,
        .length = count << FTL_SECTOR_SHIFT,
    };
}

/* Whether an operation goes on after the unit that is its next one. */
static inline bool ftl_op_has_more_units(const struct ftl_op *op)
{
    return ftl_op_next_part(op).length >> FTL_SECTOR_SHIFT <
           op->end_sector - op->next_sector;
}

/* The list in which a write, a trim or a flush waits for its turn. */
static inline struct ftl_list *ftl_op_change_list(struct ftl_io *io,
                                                  const struct ftl_op *op)
{
    return op->is_long ? &io->trims : &io->changes;
}

/* Take the next bytes of an operation's pieces; at most `len`. */
static inline uint8_t *ftl_op_take_piece(struct ftl_op *op, uint32_t *len)
{
    uint8_t *at = ftl_cursor_take(&op->next, len);

    ASSERT(ftl_cursor_is_within(&op->next, &op->io));
    return at;
}

static inline void ftl_op_finish(struct ftl_io_floor *ftl, struct ftl_op *op)
{
    enum media_status status = (enum media_status)op->status;
    struct media_owner *owner = op->io.owner;

    op->state = FTL_OP_FREE;
    ftl_stack_push(&ftl->io.free_ops, ftl_op_index(&ftl->io, op));
    if (__builtin_expect(ftl->io.has_next, 0)) {
        /* Before the owner takes the free operation. */
        ftl->io.start_next(ftl_whole(&ftl->ops_floor));
    }
    media_end(owner, status);
}

/* Give up an operation. */
static inline void ftl_op_fail(struct ftl_op *op, enum media_status status)
{
    op->status = (uint8_t)status;
    op->next_sector = op->end_sector;
}

/** All parts are done, or the operation has failed. */
void ftl_op_end(struct ftl_io_floor *ftl, struct ftl_op *op);

#endif
