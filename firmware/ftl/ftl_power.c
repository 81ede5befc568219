/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power-loss protection: while capacitors hold the power, what is in the write
 * buffer is programmed, with trims, and then a row that says so: the marker.
 *
 * No operation is served any longer, and nothing is collected, so the rows of
 * the host's stream have the dies for themselves.  They are ordinary rows: if
 * the power goes off earlier, the next mount takes what is there.
 *
 * A mount finds that the buffer was saved if the marker, or a checkpoint, is
 * newer than all rows that are not of mounts.  The mount may then erase the
 * superblock with the marker.  It programs another marker before that, so that
 * the next mount finds one, too, if the power fails before anything is written.
 */
#include "firmware/ftl/ftl_internal.h"

void ftl_power_fails(struct ftl *ftl)
{
    if (ftl->power.phase == FTL_POWER_ON) {
        ftl->power.phase = FTL_POWER_SAVES;
        ftl->has_work = true;
    }
}

bool ftl_is_saved(const struct ftl *ftl)
{
    return ftl->power.phase == FTL_POWER_SAVED;
}

bool ftl_was_saved(const struct ftl *ftl)
{
    return ftl->power.was_saved;
}

bool ftl_power_is_failing(const struct ftl *ftl)
{
    return ftl->power.phase != FTL_POWER_ON;
}

/* Whether nothing is in progress, and nothing in the buffer needs the flash. */
static bool is_buffer_saved(const struct ftl *ftl)
{
    return ftl->free_requests.count == ftl->config.num_requests &&
           !ftl_is_adopting(ftl) && ftl->dirty[FTL_POOL_HOST].count == 0 &&
           ftl->dirty[FTL_POOL_TRIM].count == 0;
}

static bool step_marker(struct ftl *ftl)
{
    if (ftl->power.is_marking || !ftl_row_mark(ftl, FTL_STREAM_HOST)) {
        return ftl_row_save(ftl);
    }
    ftl->power.is_marking = true;
    return true;
}

void ftl_power_marked(struct ftl *ftl, bool is_ok)
{
    ftl->power.is_marking = false;
    if (is_ok && ftl->power.phase == FTL_POWER_MARKS) {
        ftl->power.phase = FTL_POWER_SAVED;
    }
    if (is_ok && ftl->state == FTL_MOUNTING) {
        ftl->mount.needs_marker = false;
    }
}

bool ftl_power_step(struct ftl *ftl)
{
    bool any = ftl_keep_step(ftl);

    switch ((enum ftl_power_phase)ftl->power.phase) {
    case FTL_POWER_SAVES:
        ftl->forced = ftl->accepted;
        any |= ftl_row_save(ftl);
        if (is_buffer_saved(ftl)) {
            ftl->power.phase = FTL_POWER_MARKS;
            any = true;
        }
        return any;
    case FTL_POWER_MARKS:
        return step_marker(ftl) || any;
    case FTL_POWER_ON:
    case FTL_POWER_SAVED:
        break;
    }
    return any;
}

void ftl_power_mounted(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;

    ftl->power.was_saved =
        mount->last_normal_row <= MAX(mount->marker_row, mount->checkpoint_row);
    mount->needs_marker =
        ftl->power.was_saved && mount->marker_row > mount->checkpoint_row;
}

bool ftl_power_mark_mount(struct ftl *ftl, bool *is_done)
{
    *is_done = !ftl->mount.needs_marker;
    if (*is_done || ftl->power.is_marking) {
        return false;
    }
    /* Without space, the mount goes on without a marker. */
    ftl->power.is_marking = ftl_row_mark(ftl, FTL_STREAM_MOVE);
    *is_done = !ftl->power.is_marking &&
               ftl->free_requests.count == ftl->config.num_requests;
    return ftl->power.is_marking || *is_done;
}
