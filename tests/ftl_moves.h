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

/** Do one move, which is a COPY or an XOR. */
static inline void ftl_moves_do(const struct ftl_move *move)
{
    const uint8_t *from = (const uint8_t *)(uintptr_t)move->source;
    uint8_t *to = (uint8_t *)(uintptr_t)move->target;

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
