/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reclaim: a superblock with a unit that has nearly too many wrong bits is
 * moved soon, whoever has read the unit.  See ftl_scrub.c.
 */
#include "storage/ftl/space/space.h"

enum { RECLAIM_AGE_US = 60000000 };

/* Whether a unit should be programmed again elsewhere. */
static bool is_weak(const struct ftl_space_floor *ftl,
                    const struct ftl_flash_unit *unit)
{
    return unit->status == FTL_UNIT_GOOD &&
           (unit->steps != 0 || unit->wrong_bits > ftl->config.reclaim_bits);
}

void ftl_reclaim_note_weak(struct ftl_space_floor *ftl, uint32_t superblock,
                           enum ftl_cause cause)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (ftl->state == FTL_READY && !at->moves_soon &&
        (at->state == FTL_SUPERBLOCK_OPEN ||
         at->state == FTL_SUPERBLOCK_CLOSED) &&
        ftl->now_us >= at->used_us + RECLAIM_AGE_US) {
        ftl_superblock_end(ftl, superblock);
        ftl_due_move_soon(ftl, superblock, cause);
        ftl->counters.reclaimed++;
    }
}

void ftl_reclaim_note_read(struct ftl_space_floor *ftl,
                           const struct ftl_request *request)
{
    if (ftl->config.reclaim_bits == 0) {
        return;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        if (is_weak(ftl, &request->units[i])) {
            ftl_reclaim_note_weak(ftl, request->flash.block,
                                  request->kind == FTL_REQUEST_SCRUB
                                      ? FTL_CAUSE_SCRUB
                                      : FTL_CAUSE_DISTURB);
            return;
        }
    }
}
