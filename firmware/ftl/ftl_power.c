/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power-loss protection.  While capacitors supply the drive, the contents of
 * the write buffer and the trim pages are programmed, and then the marker: a
 * row which says that the buffer was saved.
 *
 * Operations are not served and garbage is not collected any longer, so only
 * the rows of the host's stream use the dies.  They are ordinary rows: if the
 * power goes off before the marker, the next mount finds those that were
 * programmed.
 *
 * A mount concludes that the buffer was saved if the marker or a checkpoint is
 * newer than all rows of normal operation.  The mount may have to erase the
 * superblock with the marker.  It programs another marker before that: if the
 * power fails again before anything is written, the next mount finds this one.
 *
 * During a wipe there is nothing to save.  The wipe programs a marker of its
 * own into the last row of its keeper, after the pages (ftl_wipe_keep.c),
 * because it erases all other markers.
 */
#include "firmware/ftl/ftl_internal.h"

enum { SAVE_ROWS = 3 }; /* see ftl_most_saved_units() */

void ftl_power_fails(struct ftl *ftl)
{
    if (ftl->power.phase == FTL_POWER_ON) {
        ftl->power.phase = FTL_POWER_SAVES;
        ftl->has_work = true;
    }
}

/* Three rows are not filled with units of the buffer: the last one, the marker,
 * and a row whose program fails. */
uint32_t ftl_most_saved_units(const struct ftl_config *config)
{
    struct ftl_layout layout;
    uint32_t others, least;

    if (!ftl_layout_init(&layout, &config->geometry)) {
        return 0;
    }
    others = FTL_TRIM_SLOTS + SAVE_ROWS * layout.row_units;
    least = ftl_layout_least_capacity(&layout);
    return MAX(least - MIN(least, others), 2 * layout.row_units);
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

/* Whether no request is in progress, and all of the buffer is on flash. */
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

/*
 * The flash could not be mounted, or is being wiped, so nothing can be saved. A
 * wipe first completes its keeper, which has a marker.  Erasures in progress
 * are not waited for, because the next wipe erases these blocks again.
 */
static bool end_without_buffer(struct ftl *ftl)
{
    if (ftl->power.phase == FTL_POWER_SAVED ||
        (ftl->state == FTL_WIPING && ftl->wipe.phase != FTL_WIPE_ERASES)) {
        return false;
    }
    ftl->power.phase = FTL_POWER_SAVED;
    return true;
}

bool ftl_power_step(struct ftl *ftl)
{
    bool any;

    if (ftl->state != FTL_READY) {
        return end_without_buffer(ftl);
    }
    any = ftl_keep_step(ftl);
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
