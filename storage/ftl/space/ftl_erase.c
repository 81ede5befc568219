/* SPDX-License-Identifier: BSD-2-Clause */
/* Erasing superblocks, and what follows when a plane or a die fails. */
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/space.h"

/*
 * Whether an erasure tells the controller that the superblock is programmed
 * again soon.  Then the array's file keeps the space of the old contents, which
 * costs much less time than giving it back and taking other space.  Only few
 * superblocks are kept in this way, so that the file does not grow.
 */
static bool is_reused_soon(const struct ftl_space_floor *ftl,
                           uint32_t superblock)
{
    uint32_t reused = 0;

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        reused += i != superblock && ftl->superblocks[i].is_reused;
    }
    return ftl->state == FTL_READY && reused < FTL_REUSED_MAX &&
           ftl_wear_is_reused(ftl, superblock);
}

void ftl_superblock_erase(struct ftl_space_floor *ftl, uint32_t superblock,
                          enum ftl_cause cause)
{
    ASSERT(ftl->superblocks[superblock].rows_in_flight == 0);
    ftl->superblocks[superblock].cause = (uint8_t)cause;
    ftl_superblock_enter(ftl, superblock, FTL_SUPERBLOCK_ERASING);
    ftl->superblocks[superblock].is_reused = is_reused_soon(ftl, superblock);
    ftl->superblocks[superblock].next_die = 0;
    ftl->counters.erasures++;
}

/*
 * All planes are erased, also those that take no data any more, so that a mount
 * does not find old contents in them.
 */
static uint8_t erasable_planes(const struct ftl_space_floor *ftl,
                               uint32_t superblock, uint32_t die)
{
    uint8_t bad =
        ftl->factory_planes[superblock * ftl->layout.geometry.dies + die];

    if (ftl->dies.is_dead[die]) {
        return 0;
    }
    return (uint8_t)((BIT(ftl->layout.geometry.planes) - 1) & ~bad);
}

bool ftl_superblock_erase_step(struct ftl_space_floor *ftl, uint32_t superblock)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    while (at->next_die < ftl->layout.geometry.dies) {
        uint8_t planes = erasable_planes(ftl, superblock, at->next_die);
        struct ftl_request *request;

        if (planes != 0) {
            request = ftl_request_take(&ftl->ops, FTL_REQUEST_ERASE);
            if (request == NULL) {
                return false;
            }
            request->flash.kind = FTL_FLASH_ERASE;
            request->flash.die = at->next_die;
            request->flash.planes = planes;
            request->flash.is_reused = at->is_reused;
            request->flash.tag =
                ftl_tag((enum ftl_cause)at->cause, FTL_TAG_NUMBER);
            request->flash.block = (uint16_t)superblock;
            at->erasures++;
            ftl_request_send(&ftl->ops, request);
        }
        at->next_die++;
    }
    if (at->erasures != 0) {
        return false;
    }
    at->is_erased = true;
    at->is_suspect = false;
    at->is_own = false;
    at->is_stuck = false;
    at->retries = 0;
    at->space_retries = 0;
    ftl_due_has_moved(ftl, superblock);
    ftl_superblock_measure(ftl, superblock);
    ftl_superblock_enter(ftl, superblock,
                         ftl_superblock_is_good(ftl, superblock)
                             ? FTL_SUPERBLOCK_FREE
                             : FTL_SUPERBLOCK_RETIRED);
    at->is_reused &= at->state == FTL_SUPERBLOCK_FREE;
    ftl_wear_note_erasure(ftl, superblock);
    return true;
}

bool ftl_superblock_erase_done(struct ftl_space_floor *ftl,
                               struct ftl_request *request,
                               enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;
    uint8_t good = ftl_good_planes(ftl, flash->block, flash->die);

    if (status == FTL_FLASH_FAILED) {
        ftl->counters.erase_errors += (request->failed_planes & good) != 0;
        ftl_health_note_failure(ftl, flash->block, flash->die,
                                request->failed_planes);
    } else if (status == FTL_FLASH_DEAD) {
        ftl->counters.erase_errors++;
        ftl_dies_note_dead(ftl, flash->die);
    } else if (status != FTL_FLASH_OK) {
        ftl->counters.erase_errors++;
        ftl->bad_planes[(uint32_t)flash->block * ftl->layout.geometry.dies +
                        flash->die] |= flash->planes;
    }
    ftl->superblocks[flash->block].erasures--;
    return false;
}
