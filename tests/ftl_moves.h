/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does the moves of the translation layer without a NAND controller: for tests
 * and programs that run the layer on a flash of their own.
 *
 * Moves for protection information are not supported.
 */
#ifndef ESSD_TESTS_FTL_MOVES_H
#define ESSD_TESTS_FTL_MOVES_H

#include "firmware/ftl/ftl_flash.h"

/** Do the moves of a list whose addr_offset is 0, and empty it. */
static inline void ftl_moves_run(struct ftl_moves *moves)
{
    for (uint32_t i = 0; i < moves->count; i++) {
        const struct ftl_move *move = &moves->list[i];
        const uint8_t *from = (const uint8_t *)(uintptr_t)move->source;
        uint8_t *to = (uint8_t *)(uintptr_t)move->target;

        ASSERT(move->length != 0 && move->length <= FTL_UNIT_DATA);
        ASSERT(move->kind <= FTL_MOVE_XOR);
        for (uint32_t at = 0; at < move->length; at++) {
            to[at] = move->kind == FTL_MOVE_COPY ? from[at]
                                                 : (uint8_t)(to[at] ^ from[at]);
        }
    }
    moves->count = 0;
}

#endif
