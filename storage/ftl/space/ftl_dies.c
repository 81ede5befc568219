/* SPDX-License-Identifier: BSD-2-Clause */
/* The death of a die: what superblocks hold is moved, and a record is written
 * (ftl_dead.c). */
#include "storage/ftl/space/space.h"

/*
 * Have the record of dead dies programmed.  A read-only medium without a free
 * superblock has no place for the record, and a flush would wait for it in
 * vain.  Such a medium no longer erases anything, so it does no harm if a later
 * start does not know that the die has died.
 */
void ftl_dies_record(struct ftl_space_floor *ftl)
{
    if (!ftl->is_read_only || ftl->free_superblocks != 0) {
        ftl_health_write(ftl);
    }
}

static void note_death(struct ftl_space_floor *ftl)
{
    /* While a mount reads, it does not know the next row number.  It sets
     * dead_row when it has ended. */
    ftl->dies.dead_row =
        ftl->state == FTL_READY ? ftl->next_row_number : UINT64_MAX;
    ftl_dies_record(ftl);
}

void ftl_dies_note_dead(struct ftl_space_floor *ftl, uint32_t die)
{
    if (ftl->dies.is_dead[die]) {
        return;
    }
    ftl->dies.is_dead[die] = true;
    ftl->dies.num_dead++;
    note_death(ftl);
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        struct ftl_superblock *at = &ftl->superblocks[i];

        if (ftl->layout.has_parity) {
            ftl_due_move_soon(ftl, i, FTL_CAUSE_REBUILD);
        }
        if (at->state == FTL_SUPERBLOCK_FREE) {
            ftl_superblock_measure(ftl, i);
            if (ftl->state == FTL_READY && !ftl_superblock_is_good(ftl, i)) {
                ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_RETIRED);
            }
        }
    }
    ftl_superblock_end_all(ftl);
    /* This pass of a mount can no longer rebuild what needs the die, and may
     * have found an original on it before a copy on another one.  The next pass
     * knows that the die is dead. */
    ftl->mount.is_in_vain |= ftl->state == FTL_MOUNTING;
    if (ftl->state == FTL_MOUNTING &&
        (!ftl->layout.has_parity || ftl->dies.num_dead > 1)) {
        ftl->state = FTL_FAILED;
    }
}
