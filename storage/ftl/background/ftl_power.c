/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Power-loss protection.  While capacitors supply the drive, the contents of
 * the write buffer and the trim pages are programmed, and then the marker: a
 * row which says that the buffer was saved.
 *
 * Operations are not served and garbage is not collected any longer, so only
 * the rows of the host's stream use the dies, and padding that completes the
 * stripes of the other streams.  They are ordinary rows: if the power goes off
 * before the marker, the next mount finds those that were programmed.
 *
 * The marker is programmed again and again until its stripe is complete, too.
 * So all that the drive has saved, and the marker, can be rebuilt if a die is
 * dead at the next start.
 *
 * A mount has a proof that the buffer was saved if a marker, or the checkpoint
 * of an orderly power-off, is newer than all rows of normal operation.  Only
 * padding may be newer than the marker: if a die dies while the marker is
 * programmed, padding completes the stripe.  Marker and checkpoint have the
 * number of the start that has written them, because a proof of an earlier
 * start says nothing about writes that were never programmed.  The
 * mount may have to erase the superblock with the marker.  It programs another
 * marker with the same number before that: if the power fails again before a
 * host uses the drive, the next mount finds this one.
 *
 * During a wipe there is nothing to save.  The wipe programs a marker of its
 * own into the last row of its keeper, after the pages (ftl_wipe_keep.c),
 * because it erases all other markers.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

enum { SAVE_ROWS = 3 }; /* see ftl_most_saved_units() */

/* Have the streams of what is moved complete their stripes. */
static void end_moved_streams(struct ftl_background_floor *ftl)
{
    for (uint32_t i = FTL_MOVED_STREAM; i < ftl->num_streams; i++) {
        uint32_t moved = ftl->streams[i].superblock;

        if (moved != FTL_NOWHERE) {
            ftl_superblock_end(&ftl->space_floor, moved);
        }
    }
}

void ftl_power_begin(struct ftl_background_floor *ftl)
{
    if (ftl->power_phase == FTL_POWER_ON) {
        ftl->power_phase = FTL_POWER_SAVES;
        if (ftl->state == FTL_READY && ftl_makes_parity(&ftl->ops_floor)) {
            end_moved_streams(ftl);
        }
        ftl_hold_try_again(&ftl->hold);
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
    others = ftl_most_pages(&layout) + SAVE_ROWS * layout.row_units;
    least = ftl_layout_least_capacity(&layout);
    return least - MIN(least, others);
}

bool ftl_power_is_saved(const struct ftl_background_floor *ftl)
{
    return ftl->power_phase == FTL_POWER_SAVED;
}

/* Whether a start has the number `first` or a later one.  The numbers of a new
 * drive begin anywhere, and may overflow. */
static bool is_not_before(uint32_t start, uint32_t first)
{
    return ((start - first) & FTL_MARKER_START) <= FTL_MARKER_START / 2;
}

bool ftl_power_was_saved(const struct ftl_background_floor *ftl, uint32_t start)
{
    return ftl->power.was_read_only ||
           (ftl->power.has_proof &&
            is_not_before(ftl->power.proof_start, start));
}

/* Whether the stripes of what garbage collection has moved are complete. */
static bool are_moves_complete(const struct ftl_background_floor *ftl)
{
    bool are_complete = true;

    for (uint32_t i = FTL_MOVED_STREAM; i < ftl->num_streams; i++) {
        are_complete &= ftl->streams[i].accumulator == NULL;
    }
    return are_complete;
}

/* Whether no request is in progress, all of the buffer is on flash, and the
 * stripes of what garbage collection has moved are complete. */
static bool is_buffer_saved(const struct ftl_background_floor *ftl)
{
    return ftl->ops.free_requests.count == ftl->config.num_requests &&
           are_moves_complete(ftl) && !ftl_keep_is_adopting(ftl) &&
           ftl->buffer.dirty[FTL_POOL_HOST].count == 0 &&
           ftl->buffer.dirty[FTL_POOL_TRIM].count == 0;
}

/* Whether all that hosts have written or trimmed is on flash.  Pages with
 * health and wear may be missing. */
static bool is_hosts_data_saved(const struct ftl_background_floor *ftl)
{
    const struct ftl_list *pages = &ftl->buffer.dirty[FTL_POOL_TRIM];
    bool is_saved = ftl->buffer.dirty[FTL_POOL_HOST].count == 0;

    for (uint16_t i = pages->head; i != FTL_LIST_END;
         i = pages->links[i].next) {
        is_saved &= ftl->buffer.slots[i].number >=
                    ftl->config.logical_units + ftl->trim_pages;
    }
    return is_saved;
}

/*
 * Nothing could be done.  If no operation of the flash is in progress, nothing
 * can be programmed any more: a read-only medium may have no free superblock.
 * Then the buffer counts as saved without a marker.
 * @return whether it does
 */
static bool end_without_marker(struct ftl_background_floor *ftl)
{
    if (ftl->ops.free_requests.count != ftl->config.num_requests ||
        ftl_is_held(&ftl->ops_floor) || ftl_keep_is_adopting(ftl) ||
        !is_hosts_data_saved(ftl)) {
        return false;
    }
    ftl->power_phase = FTL_POWER_SAVED;
    return true;
}

/* Whether no further marker is needed: one is on flash or being programmed, and
 * the last ones complete their stripe. */
static bool is_marked(const struct ftl_background_floor *ftl)
{
    return (ftl->power.has_marked || ftl->power.marking != 0) &&
           ftl->streams[FTL_HOST_STREAM].accumulator == NULL;
}

static bool step_marker(struct ftl_background_floor *ftl)
{
    bool any = ftl_row_save(&ftl->rows_floor);

    while (!is_marked(ftl) && ftl_row_mark(&ftl->rows_floor, FTL_HOST_STREAM)) {
        ftl->power.marking++;
        any = true;
    }
    if (ftl->power.has_marked && is_marked(ftl) &&
        ftl->ops.free_requests.count == ftl->config.num_requests) {
        ftl->power_phase = FTL_POWER_SAVED;
        any = true;
    }
    return any;
}

/*
 * The flash could not be mounted, or is being wiped, so nothing can be saved. A
 * wipe first completes its keeper, which has a marker.  Erasures in progress
 * are not waited for, because the next wipe erases these blocks again.
 */
static bool end_without_buffer(struct ftl_background_floor *ftl)
{
    if (ftl->power_phase == FTL_POWER_SAVED ||
        (ftl->state == FTL_WIPING && ftl->wipe.phase != FTL_WIPE_ERASES)) {
        return false;
    }
    ftl->power_phase = FTL_POWER_SAVED;
    return true;
}

bool ftl_power_step(struct ftl_background_floor *ftl)
{
    bool any;

    if (ftl->state != FTL_READY) {
        return end_without_buffer(ftl);
    }
    any = ftl_keep_step(ftl);
    switch ((enum ftl_power_phase)ftl->power_phase) {
    case FTL_POWER_SAVES:
        ftl->forced = ftl->accepted;
        any |= ftl_row_save(&ftl->rows_floor);
        if (is_buffer_saved(ftl)) {
            ftl->power_phase = FTL_POWER_MARKS;
            any = true;
        }
        break;
    case FTL_POWER_MARKS:
        any |= step_marker(ftl);
        break;
    case FTL_POWER_ON:
    case FTL_POWER_SAVED:
        return any;
    }
    return any || end_without_marker(ftl);
}

void ftl_power_mounted(struct ftl_background_floor *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    bool has_marker =
        mount->marker_row != 0 && mount->marker_row >= mount->last_data_row;
    bool is_checkpoint_last = mount->checkpoint_row != 0 &&
                              mount->checkpoint_row == mount->last_normal_row;

    ftl->power.has_proof =
        has_marker || (is_checkpoint_last && ftl->checkpoint.is_final);
    ftl->power.proof_start =
        has_marker ? mount->marker_start : ftl->checkpoint.start;
    mount->needs_marker = has_marker;
    ftl->power.was_read_only = ftl->is_read_only;
}

bool ftl_power_mark_mount(struct ftl_background_floor *ftl, bool *is_done)
{
    *is_done = !ftl->mount.needs_marker;
    if (*is_done || ftl->power.marking != 0) {
        return false;
    }
    /* Without space, the mount goes on without a marker. */
    ftl->power.marking = ftl_row_mark(&ftl->rows_floor, FTL_MOVED_STREAM);
    *is_done = ftl->power.marking == 0 &&
               ftl->ops.free_requests.count == ftl->config.num_requests;
    return ftl->power.marking != 0 || *is_done;
}
