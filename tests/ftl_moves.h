/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does the moves of the translation layer without a NAND controller: for tests
 * and programs that run the layer on a flash of their own.
 *
 * Moves for protection information are not supported.
 */
#ifndef ESSD_TESTS_FTL_MOVES_H
#define ESSD_TESTS_FTL_MOVES_H

#include <string.h>

#include "storage/ftl/ftl_flash.h"

/* XOR `len` bytes to others, eight at a time. */
static inline void ftl_moves_xor(uint8_t *to, const uint8_t *from, uint32_t len)
{
    uint64_t a, b;
    uint32_t at = 0;

    for (; at + sizeof(a) <= len; at += (uint32_t)sizeof(a)) {
        memcpy(&a, to + at, sizeof(a));
        memcpy(&b, from + at, sizeof(b));
        a ^= b;
        memcpy(to + at, &a, sizeof(a));
    }
    for (; at < len; at++) {
        to[at] ^= from[at];
    }
}

/** The list of an ADD_ROW: for ftl_flash.list_units. */
static inline uint64_t ftl_moves_list_units(void *ctx,
                                            const struct ftl_flash_op *op)
{
    (void)ctx;
    return (uintptr_t)op->units;
}

static inline void ftl_moves_add(uint8_t *to, const uint8_t *from, uint32_t len,
                                 bool begins)
{
    if (begins) {
        memcpy(to, from, len);
    } else {
        ftl_moves_xor(to, from, len);
    }
}

static inline void ftl_moves_add_row(const struct ftl_move *move)
{
    const struct ftl_flash_unit *unit =
        (const struct ftl_flash_unit *)(uintptr_t)move->source;
    uint8_t *data = (uint8_t *)(uintptr_t)move->target;
    uint8_t *meta = data + (size_t)move->length * FTL_UNIT_DATA;
    uint8_t *system = meta + (size_t)move->length * FTL_UNIT_META;
    bool begins = move->flags == FTL_MOVE_BEGIN;

    ASSERT(move->length <= FTL_OP_UNITS && (begins || move->flags == 0));
    for (uint32_t i = 0; i < move->length; i++, unit++) {
        ftl_moves_add(data, unit->data, FTL_UNIT_DATA, begins);
        ftl_moves_add(meta, unit->meta, FTL_UNIT_META, begins);
        ftl_moves_add(system, unit->system, FTL_UNIT_SYSTEM, begins);
        data += FTL_UNIT_DATA;
        meta += FTL_UNIT_META;
        system += FTL_UNIT_SYSTEM;
    }
}

/** Do one move, which is a COPY, an XOR or an ADD_ROW. */
static inline void ftl_moves_do(const struct ftl_move *move)
{
    const uint8_t *from = (const uint8_t *)(uintptr_t)move->source;
    uint8_t *to = (uint8_t *)(uintptr_t)move->target;

    if (move->kind == FTL_MOVE_ADD_ROW) {
        ftl_moves_add_row(move);
        return;
    }
    ASSERT(move->length != 0 && move->length <= FTL_UNIT_DATA);
    ASSERT(move->kind <= FTL_MOVE_XOR);
    if (move->kind == FTL_MOVE_COPY) {
        memmove(to, from, move->length);
    } else {
        ftl_moves_xor(to, from, move->length);
    }
}

/** Do the moves of a list whose addr_offset is 0, and empty it. */
static inline void ftl_moves_run(struct ftl_moves *moves)
{
    for (uint32_t i = 0; i < moves->count; i++) {
        ftl_moves_do(&moves->list[i]);
    }
    moves->count = 0;
}

#endif
