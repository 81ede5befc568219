/* SPDX-License-Identifier: BSD-2-Clause */
/* The marker, a row which says that the write buffer was saved: what it says,
 * and what follows when it was programmed.  See ftl_power.c. */
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/rows/rows.h"

uint32_t ftl_marker_start(const struct ftl_rows_floor *ftl)
{
    /* During a mount, and in programs other than the drive, the flash holds
     * what an earlier start has left: the one that the proof is of. */
    return ftl->state == FTL_MOUNTING || ftl->config.boot == 0
               ? ftl->power.proof_start
               : ftl->config.boot;
}

uint32_t ftl_marker_number(const struct ftl_rows_floor *ftl)
{
    return FTL_MARKER | (ftl_marker_start(ftl) & FTL_MARKER_START);
}

void ftl_marker_found(struct ftl_mount *mount, uint64_t row, uint32_t number)
{
    if (row > mount->marker_row) {
        mount->marker_row = row;
        mount->marker_start = number & FTL_MARKER_START;
    }
}

void ftl_marker_done(struct ftl_rows_floor *ftl, bool is_ok)
{
    ftl->power.marking--;
    ftl->power.has_marked |= is_ok && ftl->power_phase == FTL_POWER_MARKS;
    if (is_ok && ftl->state == FTL_MOUNTING) {
        ftl->mount.needs_marker = false;
    }
}
