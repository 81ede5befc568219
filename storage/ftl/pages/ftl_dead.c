/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of the dies that have died.
 *
 * The record says which dies have died, and what the next row number was at the
 * latest death.  It is in the metadata of the first health page and in the
 * headers of checkpoints.  A die in the record is not used even if it answers
 * again: since its death, blocks were erased and written without it, so its
 * contents are outdated.  If a mount has already read from such a die when it
 * finds the record, it begins again without this die.
 *
 * Superblocks whose first row is older than the row number still have to be
 * moved because of the death.  Rows from this number on do not need the dead
 * dies.
 */
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/space.h"

#include <string.h>

#include "lib/bytes.h"

enum {                  /* the record; little-endian */
       RECORD_ROW = 0,  /* 64 bits */
       RECORD_DIES = 8, /* one bit for each die */
       RECORD_LEN = RECORD_DIES + FTL_DIES_MAX / 8,
};
_Static_assert((int)RECORD_LEN == (int)FTL_DEAD_RECORD_LEN, "the record");

void ftl_dead_emit(const struct ftl_pages_floor *ftl, uint8_t *record)
{
    memset(record, 0, RECORD_LEN);
    if (ftl->dies.num_dead == 0) {
        return;
    }
    put_le64(record + RECORD_ROW, ftl->dies.dead_row);
    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        if (ftl->dies.is_dead[die]) {
            record[RECORD_DIES + die / 8] |= (uint8_t)BIT(die % 8);
        }
    }
}

/* The record names a die. */
static void take_die(struct ftl_pages_floor *ftl, uint32_t die)
{
    ftl->dies.is_recorded[die] = true;
    if (!ftl->dies.is_dead[die]) {
        ftl->dies.num_distrusted++;
        ftl->mount.is_in_vain = true;
        ftl_dies_note_dead(&ftl->space_floor, die);
    }
}

void ftl_dead_take(struct ftl_pages_floor *ftl, const uint8_t *record)
{
    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        if ((record[RECORD_DIES + die / 8] & BIT(die % 8)) != 0) {
            take_die(ftl, die);
            ftl->dies.recorded_row =
                MAX(ftl->dies.recorded_row, get_le64(record + RECORD_ROW));
        }
    }
}

static bool are_all_recorded(const struct ftl_pages_floor *ftl)
{
    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        if (ftl->dies.is_dead[die] && !ftl->dies.is_recorded[die]) {
            return false;
        }
    }
    return true;
}

/* Whether all of a superblock was programmed since the latest death. */
static bool is_younger(const struct ftl_pages_floor *ftl, uint32_t superblock)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    bool has_any = false;

    if (ftl->superblocks[superblock].is_own) {
        return !ftl->superblocks[superblock].has_parity;
    }
    for (uint32_t die = 0; die < geometry->dies; die++) {
        uint8_t planes = ftl_good_planes(&ftl->space_floor, superblock, die);
        uint32_t at = (superblock * geometry->dies + die) * geometry->planes;

        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            uint64_t probe = ftl->mount.probes[at + plane];

            if ((planes & BIT(plane)) == 0) {
                continue;
            }
            if (probe < ftl->dies.dead_row || probe >= FTL_PROBE_PARITY) {
                return false;
            }
            has_any = true;
        }
    }
    return has_any;
}

void ftl_dead_mounted(struct ftl_pages_floor *ftl)
{
    struct ftl_dies *dies = &ftl->dies;

    if (dies->num_dead == 0) {
        return;
    }
    /* A record that was written during a mount does not know the row. */
    if (are_all_recorded(ftl) && dies->recorded_row != UINT64_MAX) {
        dies->dead_row = dies->recorded_row;
    } else {
        dies->dead_row = ftl->next_row_number;
        ftl_dies_record(&ftl->space_floor);
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        if (ftl->layout.has_parity && !is_younger(ftl, i)) {
            ftl_due_move_soon(&ftl->space_floor, i, FTL_CAUSE_REBUILD);
        }
    }
}
