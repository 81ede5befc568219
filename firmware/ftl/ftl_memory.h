/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of data into the write buffer, and the XOR of parity.  If there is a
 * NAND controller, it does them, because a hart needs hundreds of instructions
 * for each unit.
 */
#ifndef ESSD_FTL_MEMORY_H
#define ESSD_FTL_MEMORY_H

#include "firmware/ftl/ftl_internal.h"

/* ---- Private to the functions below. */
void ftl_memory_run_now(struct ftl *ftl);
void ftl_memory_move_by_hart(struct ftl *ftl, enum ftl_move_kind kind,
                             uint8_t *to, const uint8_t *from, uint32_t len);

/** Whether ftl_memory_run() has something to do. */
static inline bool ftl_memory_is_pending(const struct ftl *ftl)
{
    const struct ftl_moves *moves = ftl->config.flash.moves;

    return ftl->num_filled != 0 || (moves != NULL && moves->count != 0);
}

/** Do all moves.  Then call ftl_keep_accept() for the slots that they have
 * filled, so that the next reset keeps the contents. */
static inline void ftl_memory_run(struct ftl *ftl)
{
    if (ftl_memory_is_pending(ftl)) {
        ftl_memory_run_now(ftl);
    }
}

/**
 * Copy or XOR memory, at the latest in the next ftl_memory_run().  Until then,
 * the caller must not change the source, and must neither read nor change the
 * target.
 *
 * @param len  up to 4096 bytes.  For an XOR, `to`, `from` and `len` are
 *             multiples of 32.
 */
static inline void ftl_memory_move(struct ftl *ftl, enum ftl_move_kind kind,
                                   uint8_t *to, const uint8_t *from,
                                   uint32_t len)
{
    struct ftl_moves *moves = ftl->config.flash.moves;
    struct ftl_move *move;

    if (moves == NULL || ((uintptr_t)to | (uintptr_t)from | len) % 8 != 0) {
        ftl_memory_move_by_hart(ftl, kind, to, from, len);
        return;
    }
    if (moves->count == moves->max) {
        ftl_memory_run_now(ftl);
    }
    move = &moves->list[moves->count++];
    move->source = (uintptr_t)from + moves->addr_offset;
    move->target = (uintptr_t)to + moves->addr_offset;
    move->length = len;
    move->kind = kind;
}

/** The caller has named all moves that fill a slot of the write buffer.
 * ftl_keep_accept() is called for the slot when these moves are done. */
static inline void ftl_memory_note_filled(struct ftl *ftl, uint16_t slot)
{
    if (ftl->num_filled == FTL_FILLED) {
        ftl_memory_run_now(ftl);
    }
    ftl->filled[ftl->num_filled++] = slot;
}

#endif
