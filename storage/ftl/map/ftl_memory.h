/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of data into the write buffer, the XOR of parity, and protection
 * information.  The NAND controller does all this, because a hart would need
 * hundreds of instructions for each unit, and could not continue after it has
 * read a lost word.
 */
#ifndef ESSD_FTL_MEMORY_H
#define ESSD_FTL_MEMORY_H

#include "storage/ftl/map/map_floor.h"

/* ---- Private to the functions below. */
void ftl_memory_run_now(struct ftl_map_floor *ftl);

/** Whether ftl_memory_run() has something to do. */
static inline bool ftl_memory_is_pending(const struct ftl_map_floor *ftl)
{
    return ftl->num_filled != 0 || ftl->config.flash.moves->count != 0;
}

/** Do all moves.  Then call ftl_keep_accept() for the slots that they have
 * filled, so that the next reset keeps the contents. */
static inline void ftl_memory_run(struct ftl_map_floor *ftl)
{
    if (ftl_memory_is_pending(ftl)) {
        ftl_memory_run_now(ftl);
    }
}

/** @return the next move of the list; the caller describes it */
static inline struct ftl_move *ftl_memory_next(struct ftl_map_floor *ftl)
{
    struct ftl_moves *moves = ftl->config.flash.moves;

    if (moves->count == moves->max) {
        ftl_memory_run_now(ftl);
    }
    return &moves->list[moves->count++];
}

/** Describe a move.  Parameters: see ftl_memory_move(). */
static inline void ftl_memory_describe(const struct ftl_moves *moves,
                                       struct ftl_move *move,
                                       enum ftl_move_kind kind, uint8_t *to,
                                       const uint8_t *from, uint32_t len)
{
    move->source = (uintptr_t)from + moves->addr_offset;
    move->target = (uintptr_t)to + moves->addr_offset;
    move->length = len;
    /* The compiler stores these three together. */
    move->kind = (uint8_t)kind;
    move->flags = 0;
    move->app_tag = 0;
}

/**
 * Copy or XOR memory, at the latest in the next ftl_memory_run().  Until then,
 * the caller must not change the source, and must neither read nor change the
 * target.
 *
 * @param len  up to 4096 bytes.  For an XOR, `to`, `from` and `len` are
 *             multiples of 8.
 */
static inline void ftl_memory_move(struct ftl_map_floor *ftl,
                                   enum ftl_move_kind kind, uint8_t *to,
                                   const uint8_t *from, uint32_t len)
{
    struct ftl_move *move = ftl_memory_next(ftl);

    ftl_memory_describe(ftl->config.flash.moves, move, kind, to, from, len);
}

/**
 * Continue the guard of a block over `len` bytes, and copy them.
 *
 * @param op  the operation that fails if the controller finds a lost word
 * @param to  NULL: do not copy them
 */
void ftl_memory_add_guard(struct ftl_map_floor *ftl, const struct ftl_op *op,
                          uint8_t *to, const uint8_t *from, uint32_t len);

/**
 * End a block, whose data ftl_memory_add_guard() has named: check the block's
 * protection information as op->io says and copy it, or generate it.
 *
 * @param block  the block's number in the operation
 * @param to     NULL: the protection information is not copied
 * @param from   the protection information; NULL: it is generated
 */
void ftl_memory_protect(struct ftl_map_floor *ftl, const struct ftl_op *op,
                        uint32_t block, uint8_t *to, const uint8_t *from);

/**
 * Add the units of a row to a sum, or begin the sum with them, at the latest in
 * the next ftl_memory_run().  The target of the move is the sum's data of all
 * units; metadata and system bytes follow.
 *
 * @param list  what ftl_flash.list_units() has returned
 */
static inline void ftl_memory_add_row(struct ftl_map_floor *ftl, uint8_t *sum,
                                      uint64_t list, uint16_t num_units,
                                      bool begins)
{
    *ftl_memory_next(ftl) = (struct ftl_move){
        .source = list,
        .target = (uintptr_t)sum + ftl->config.flash.moves->addr_offset,
        .length = num_units,
        .kind = FTL_MOVE_ADD_ROW,
        .flags = begins ? FTL_MOVE_BEGIN : 0,
    };
}

/** The caller has named all moves that fill a slot of the write buffer.
 * ftl_keep_accept() is called for the slot when these moves are done. */
static inline void ftl_memory_note_filled(struct ftl_map_floor *ftl,
                                          uint16_t slot)
{
    if (ftl->num_filled == FTL_FILLED) {
        ftl_memory_run_now(ftl);
    }
    ftl->filled[ftl->num_filled++] = slot;
}

#endif
