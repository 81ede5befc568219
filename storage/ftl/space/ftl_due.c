/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Superblocks whose contents are moved soon, even if no space is needed: they
 * are in danger, or stay too long.  Garbage collection moves them.
 */
#include "storage/ftl/space/space.h"

void ftl_due_move_soon(struct ftl_space_floor *ftl, uint32_t superblock,
                       enum ftl_cause cause)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (!at->moves_soon && (at->state == FTL_SUPERBLOCK_OPEN ||
                            at->state == FTL_SUPERBLOCK_CLOSED)) {
        at->moves_soon = true;
        at->cause = (uint8_t)cause;
        ftl->num_due++;
    }
}

bool ftl_due_has_any(const struct ftl_space_floor *ftl)
{
    for (uint32_t i = 0; ftl->num_due != 0 && i < ftl->layout.superblocks;
         i++) {
        if (ftl->superblocks[i].moves_soon && !ftl->superblocks[i].is_stuck) {
            return true;
        }
    }
    return false;
}

void ftl_due_has_moved(struct ftl_space_floor *ftl, uint32_t superblock)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (at->moves_soon) {
        at->moves_soon = false;
        ftl->num_due--;
    }
}
