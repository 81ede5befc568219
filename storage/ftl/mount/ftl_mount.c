/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mounting: the map is made from the system bytes of everything on the flash,
 * except for superblocks of which a checkpoint says what they hold.
 *
 * A mount probes all blocks (ftl_mount_probe.c), loads the latest checkpoint
 * (ftl_checkpoint_load.c), and scans what has changed since (ftl_mount_scan.c).
 * Then the trim pages are read and applied.
 *
 * Units that cannot be corrected are ignored: after a power cut these are units
 * of rows that were being programmed, which nobody was told to be durable.  But
 * a unit of such a row may be readable at one mount and not at the next.  So
 * before the first operation is served, the mount copies all units of rows that
 * may be torn.  Then it collects and erases the superblocks of these rows.  If
 * a unit that was found cannot be read when it is copied, the mount begins
 * again without it, and an older version counts.  This version is still there,
 * because nothing is erased before all copies are on flash.
 *
 * If there is no space for these copies, the medium is read-only until the next
 * start.  What a row that may be torn holds may then be unreadable later.
 *
 * Rows of a die that does not answer are rebuilt from parity.  A flash that
 * reports anything else than such units, or a second dead die, makes the mount
 * fail, so that a failure is not taken for a power cut.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

/* Clear all that the mount enters. @return whether this is done */
static bool prepare_memory(struct ftl_mount_floor *ftl)
{
    if (!ftl_mount_clear(ftl)) {
        return false;
    }
    if (ftl->config.is_capacity_estimated) {
        return true; /* It is not known yet where the description is. */
    }
    (void)ftl_mount_take(&ftl->mount, ftl_keep_empty(&ftl->background_floor,
                                                     ftl->mount.turn_left));
    return ftl->keep.phase != FTL_KEEP_EMPTIES;
}

/* ---- Reading. */

/* Begin requests of a kind, one for each die, that go on by themselves.
 * @return whether there were any */
static bool start_dies(struct ftl_mount_floor *ftl, enum ftl_request_kind kind,
                       bool (*send)(struct ftl_mount_floor *,
                                    struct ftl_request *))
{
    bool any = false;

    while (ftl->mounting.next_die < ftl->layout.geometry.dies) {
        struct ftl_request *request = ftl_request_take(&ftl->ops, kind);

        if (request == NULL) {
            return any;
        }
        request->flash.die = (uint16_t)ftl->mounting.next_die++;
        if (send(ftl, request)) {
            ftl->mounting.requests++;
        } else {
            ftl_request_free(&ftl->ops, request);
        }
        any = true;
    }
    return any;
}

static bool step_probe(struct ftl_mount_floor *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    bool any;

    if (!prepare_memory(ftl)) {
        return true;
    }
    any = start_dies(ftl, FTL_REQUEST_PROBE, ftl_mount_probe_block);
    if (ftl->mounting.requests == 0 &&
        ftl->mounting.next_die == ftl->layout.geometry.dies) {
        ftl->mounting.next_die = 0;
        mount->phase =
            ftl_checkpoint_find(ftl) ? FTL_MOUNT_LOAD : FTL_MOUNT_SCAN;
        any = true;
    }
    return any;
}

static bool step_load(struct ftl_mount_floor *ftl)
{
    bool is_done;
    bool any = ftl_checkpoint_load(ftl, &is_done);

    if (is_done) {
        ftl->mount.phase = FTL_MOUNT_SCAN;
    }
    return any;
}

static bool step_scan(struct ftl_mount_floor *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    bool any = start_dies(ftl, FTL_REQUEST_SCAN, ftl_mount_scan_row);

    if (ftl->mounting.requests == 0) {
        mount->phase = FTL_MOUNT_REPAIR;
        ftl->mounting.next_row = 0;
        any = true;
    }
    return any;
}

static bool step_repair(struct ftl_mount_floor *ftl)
{
    bool is_done;
    bool any = ftl_mount_repair_step(ftl, &is_done);

    if (is_done) {
        ftl->mount.phase = FTL_MOUNT_PAGES;
    }
    return any;
}

/* ---- Superblocks. */

/* Whether a list names planes of a superblock that take data. */
static bool has_planes(const struct ftl_mount_floor *ftl, uint32_t superblock,
                       const uint8_t *planes)
{
    uint32_t dies = ftl->layout.geometry.dies;

    for (uint32_t die = 0; die < dies; die++) {
        if ((planes[superblock * dies + die] &
             ftl_good_planes(&ftl->space_floor, superblock, die)) != 0) {
            return true;
        }
    }
    return false;
}

/*
 * All rows that may be torn are copied before any of them is erased.  If these
 * rows fill more than two superblocks, the copies need more superblocks than
 * are usually kept free.
 */
uint32_t ftl_mount_more_free(const struct ftl_mount_floor *ftl)
{
    uint32_t wordlines = ftl->layout.geometry.wordlines;

    return 2 * wordlines >= FTL_SUSPECT_ROWS
               ? 0
               : (FTL_SUSPECT_ROWS + wordlines - 1) / wordlines;
}

/* Count the valid units. @return whether all entries of the map are counted */
static bool enter_entries(struct ftl_mount_floor *ftl)
{
    uint32_t end = ftl_mount_part(&ftl->mount, ftl->entries);

    for (uint32_t *i = &ftl->mount.next_item; *i < end; ++*i) {
        if (ftl_entry_place(ftl->map[*i]) != FTL_NOWHERE) {
            ftl_map_set_valid(&ftl->map_floor, ftl->map[*i]);
        }
        ftl->checkpoint.is_needed |= ftl->map[*i] == FTL_LOST_NOWHERE;
    }
    return end == ftl->entries;
}

/*
 * Everything is read: set the state of each superblock.
 *
 * Rows that may be torn are the last ones before the power cut, and all rows
 * that mounts have programmed since then.  Older torn rows do not exist,
 * because a mount that ends has erased the superblocks of those that it knew.
 * When a checkpoint began, no row was in flight.
 */
static void set_superblocks(struct ftl_mount_floor *ftl)
{
    uint64_t last = ftl->mount.last_normal_row;
    uint64_t margin = ftl_mount_suspect_rows(&ftl->layout);

    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        struct ftl_superblock *at = &ftl->superblocks[i];

        ftl_superblock_measure(&ftl->space_floor, i);
        if (at->is_known) {
            ftl_superblock_enter(&ftl->space_floor, i,
                                 i == ftl->checkpoint.superblock
                                     ? FTL_SUPERBLOCK_META
                                     : FTL_SUPERBLOCK_CLOSED);
            continue;
        }
        at->is_erased =
            at->valid == 0 && !has_planes(ftl, i, ftl->mounting.used_planes);
        at->is_partial = has_planes(ftl, i, ftl->mounting.partial_planes);
        if (i == ftl->streams[FTL_MOVED_STREAM].superblock) {
            ftl_superblock_enter(&ftl->space_floor, i, FTL_SUPERBLOCK_OPEN);
        } else if (!at->is_erased) {
            at->is_suspect = !at->is_own && (at->valid == 0 || at->is_partial ||
                                             at->last_row + margin > last);
            ftl_superblock_enter(&ftl->space_floor, i, FTL_SUPERBLOCK_CLOSED);
        } else if (!ftl_superblock_is_good(&ftl->space_floor, i)) {
            ftl_superblock_enter(&ftl->space_floor, i, FTL_SUPERBLOCK_RETIRED);
        }
        ftl->num_opened += !at->is_erased;
    }
    ftl->next_row_number = ftl->mounting.last_row + FTL_ROW_GAP;
    ftl_power_mounted(&ftl->background_floor);
    ftl->mount.settle_row = ftl_mount_settle_row(&ftl->space_floor);
    ftl->mount.phase =
        ftl->free_superblocks == 0 ? FTL_MOUNT_DROP : FTL_MOUNT_SETTLE;
    ftl->mounting.has_dropped = ftl->free_superblocks == 0;
}

/*
 * Whether a row number is so large that it must be damaged.  2^35 rows hold 6.7
 * PB with the profile tlc2021, far beyond the endurance of the largest array.
 * With slc they hold 560 TB, so an slc array of more than 11 GiB reaches this
 * number before it is worn out.
 */
static bool are_rows_too_many(const struct ftl_mounting *mounting)
{
    return mounting->last_row > FTL_ROW_NUMBER_MAX / 2;
}

static bool step_pages(struct ftl_mount_floor *ftl)
{
    bool is_done;
    bool any = ftl_mount_pages_step(ftl, &is_done);

    if (is_done && are_rows_too_many(&ftl->mounting)) {
        ftl->state = FTL_FAILED;
    } else if (is_done) {
        ftl_capacity_decide(&ftl->background_floor);
        if (!ftl->mount.is_in_vain && enter_entries(ftl)) {
            set_superblocks(ftl);
        }
    }
    return any;
}

/* ---- Superblocks that need parity. */

/*
 * Whether a plane has failed while the contents of a superblock were being
 * programmed.  A plane that had failed before the superblock was opened is
 * erased, or cannot be read in any wordline, because its erasure has failed.
 */
static bool has_failed_since(const struct ftl_mount_floor *ftl,
                             uint32_t superblock, uint32_t die, uint32_t plane)
{
    uint32_t at = superblock * ftl->layout.geometry.dies + die;
    uint64_t probe =
        ftl->mount.probes[at * ftl->layout.geometry.planes + plane];

    return (ftl->failed_planes[at] & BIT(plane)) != 0 &&
           probe != FTL_PROBE_ERASED &&
           (probe != FTL_PROBE_LOST ||
            (ftl->mounting.partial_planes[at] & BIT(plane)) != 0);
}

/*
 * Whether some stripe of a superblock may have no parity, because a program has
 * failed and the contents were not moved before the power went off.  Of
 * superblocks that have not changed since the checkpoint, the checkpoint knows
 * this.
 */
static bool may_lack_parity(const struct ftl_mount_floor *ftl,
                            uint32_t superblock)
{
    const struct ftl_superblock *at = &ftl->superblocks[superblock];
    bool any = at->is_spoilt;

    if (at->is_known) {
        return at->was_moving;
    }
    for (uint32_t die = 0; die < ftl->layout.geometry.dies && !at->is_own;
         die++) {
        for (uint32_t plane = 0; plane < ftl->layout.geometry.planes; plane++) {
            any |= has_failed_since(ftl, superblock, die, plane);
        }
    }
    return any;
}

/* What had to be moved before the power went off has to be moved now. */
static void move_rest(struct ftl_mount_floor *ftl)
{
    for (uint32_t i = 0;
         ftl_makes_parity(&ftl->ops_floor) && i < ftl->layout.superblocks;
         i++) {
        if (ftl->superblocks[i].valid != 0 && may_lack_parity(ftl, i)) {
            ftl_due_move_soon(&ftl->space_floor, i, FTL_CAUSE_MOUNT);
        }
    }
}

/* ---- Superblocks that may have torn rows. */

/*
 * Erase the copies that earlier mounts have left.  A copy is valid only if its
 * original has been erased.  A copy that is not valid may still be needed: if
 * an earlier mount has ended, its copy may be the last durable version of a
 * unit.  A newer version in a torn row may be readable now, but not when it is
 * to be copied.  So these copies are erased only if there is no space for the
 * copies of this mount.
 */
static bool step_drop(struct ftl_mount_floor *ftl)
{
    bool any = ftl_collect_step(&ftl->background_floor);

    if (!ftl_collect_is_due(&ftl->background_floor)) {
        ftl->mount.phase = FTL_MOUNT_SETTLE;
        any = true;
    }
    return any;
}

/*
 * There is no space for the copies of this mount: begin to erase the copies of
 * earlier mounts.  If this was done before, some of them may count, because
 * their originals may be half erased.  Then the mount begins again and lets the
 * originals count, so that it can erase these copies, too.
 * @return whether the mount can go on
 */
static bool begin_drop(struct ftl_mount_floor *ftl)
{
    if (ftl->mount.phase != FTL_MOUNT_SETTLE) {
        return false;
    }
    if (ftl->mounting.has_dropped) {
        bool helps =
            !ftl->mounting.prefers_originals && ftl_mount_has_half_erased(ftl);

        ftl->mounting.prefers_originals |= helps;
        ftl->mount.is_in_vain |= helps;
        return helps;
    }
    ftl_collect_stop(&ftl->background_floor);
    ftl->mount.phase = FTL_MOUNT_DROP;
    ftl->mounting.has_dropped = true;
    return true;
}

static bool step_settle(struct ftl_mount_floor *ftl)
{
    bool is_done = ftl->mounting.has_settled;
    bool any = false;

    if (!is_done) {
        any = ftl_collect_settle(&ftl->background_floor, &is_done);
        ftl->mounting.has_settled = is_done;
    }
    if (is_done) {
        any |= ftl_power_mark_mount(&ftl->background_floor, &is_done);
    }
    if (is_done) {
        ftl->mount.phase = FTL_MOUNT_CLEAR;
        any = true;
    }
    return ftl_row_step(&ftl->rows_floor) || any;
}

static bool step_clear(struct ftl_mount_floor *ftl)
{
    bool any = ftl_collect_step(&ftl->background_floor);

    any |= ftl_row_step(&ftl->rows_floor);
    if (!ftl_collect_is_due(&ftl->background_floor)) {
        ftl->state = FTL_READY;
        ftl->first_noted = ftl->next_row_number;
        ftl->more_free = ftl_mount_more_free(ftl);
        ftl_dead_mounted(&ftl->pages_floor);
        ftl_capacity_record(&ftl->background_floor);
        ftl_collect_rest_of_suspects(&ftl->background_floor);
        move_rest(ftl);
        if (ftl_health_is_worn_out(&ftl->space_floor)) {
            ftl_health_set_read_only(&ftl->space_floor);
        }
        any = true;
    }
    return any;
}

/* ---- All together. */

/*
 * When a mount begins again, a superblock with a row that has failed does not
 * count as the mount's own any longer.  Units of this row may be readable at
 * one time and not at another.  The mount forgets the attempts, so it would not
 * tell these units from the copies that it makes from now on.  So the
 * superblock becomes suspect, and is erased when everything in it is copied.
 */
static void disown_failed_rows(struct ftl_mount_floor *ftl)
{
    uint32_t open = ftl->streams[FTL_MOVED_STREAM].superblock;

    if (open != FTL_NOWHERE && ftl->superblocks[open].has_failed_row) {
        ftl_stream_close(&ftl->rows_floor, FTL_MOVED_STREAM);
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i].is_own &= !ftl->superblocks[i].has_failed_row;
    }
}

void ftl_mount_begin(struct ftl_mount_floor *ftl)
{
    struct ftl_mount *mount = &ftl->mount;

    disown_failed_rows(ftl);
    ftl_collect_stop(&ftl->background_floor);
    ftl->num_due = 0;
    memset(ftl->lost_rows, 0, ftl->trim_pages * sizeof(ftl->lost_rows[0]));
    ftl->free_superblocks = ftl->layout.superblocks;
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i] = (struct ftl_superblock){
            .is_own = ftl->superblocks[i].is_own,
            .has_parity = ftl->superblocks[i].has_parity,
        };
        ftl_superblock_measure(&ftl->space_floor, i);
    }
    ftl->checkpoint.superblock = FTL_NOWHERE;
    ftl->checkpoint.next = FTL_NOWHERE;
    ftl->checkpoint.check = FTL_CHECK_NONE;
    ftl->checkpoint.needed_from = 0;
    ftl->num_opened = 0;
    ftl->checkpoint.is_needed = false;
    mount->checkpoint_row = 0;
    mount->has_lost_pages = false;
    mount->has_unrebuilt = false;
    mount->has_doubted = false;
    mount->has_capacity = false;
    mount->phase = FTL_MOUNT_PROBE;
    mount->next_item = 0;
    ftl->mounting.next_region = 0;
    ftl->mounting.next_die = 0;
    ftl->mounting.next_page = 0;
    ftl->mounting.last_row = 0;
    mount->last_normal_row = 0;
    mount->last_data_row = 0;
    mount->is_in_vain = false;
    mount->num_dead = ftl->dies.num_dead;
    mount->marker_row = 0;
    mount->needs_marker = false;
    ftl->mounting.has_settled = false;
    ftl->mounting.has_dropped = false;
    if (ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_phase(&ftl->base_floor, FTL_ACTIVITY_MOUNT, FTL_MOUNT_PROBE,
                        FTL_NOWHERE);
    }
}

static bool step_phase(struct ftl_mount_floor *ftl)
{
    switch ((enum ftl_mount_phase)ftl->mount.phase) {
    case FTL_MOUNT_PROBE:
        return step_probe(ftl);
    case FTL_MOUNT_LOAD:
        return step_load(ftl);
    case FTL_MOUNT_SCAN:
        return step_scan(ftl);
    case FTL_MOUNT_REPAIR:
        return step_repair(ftl);
    case FTL_MOUNT_PAGES:
        return step_pages(ftl);
    case FTL_MOUNT_DROP:
        return step_drop(ftl);
    case FTL_MOUNT_SETTLE:
        return step_settle(ftl);
    case FTL_MOUNT_CLEAR:
        break;
    }
    return step_clear(ftl);
}

static bool is_waiting_for_flash(const struct ftl_mount_floor *ftl)
{
    return ftl->ops.free_requests.count != ftl->config.num_requests;
}

/* The phase of the mount as events show it. */
static uint32_t traced_phase(const struct ftl_mount_floor *ftl)
{
    if (ftl->state == FTL_MOUNTING) {
        return ftl->mount.phase;
    }
    return ftl->state == FTL_READY ? FTL_MOUNT_READY : FTL_MOUNT_FAILED;
}

bool ftl_mount_step(struct ftl_mount_floor *ftl)
{
    uint32_t before;
    bool any;

    ftl->mount.turn_left = FTL_TURN_ITEMS;
    if (ftl->mount.is_in_vain) {
        if (is_waiting_for_flash(ftl)) {
            return false;
        }
        ftl_capacity_change(&ftl->background_floor);
        ftl_mount_begin(ftl);
        return true;
    }
    before = traced_phase(ftl);
    any = step_phase(ftl);
    if (traced_phase(ftl) != before && ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_phase(&ftl->base_floor, FTL_ACTIVITY_MOUNT, traced_phase(ftl),
                        FTL_NOWHERE);
    }
    if (any || is_waiting_for_flash(ftl) || ftl_is_held(&ftl->ops_floor)) {
        return any;
    }
    if (!begin_drop(ftl)) {
        /* There is no space to move units to. */
        ftl_collect_stop(&ftl->background_floor);
        ftl->is_read_only_now = !ftl->is_read_only;
        ftl->is_read_only = true;
        ftl->state = FTL_READY;
        ftl->first_noted = ftl->next_row_number;
        ftl_dead_mounted(&ftl->pages_floor);
        if (ftl_is_traced(&ftl->base_floor)) {
            ftl_trace_phase(&ftl->base_floor, FTL_ACTIVITY_MOUNT,
                            FTL_MOUNT_READY, FTL_NOWHERE);
        }
    }
    return true;
}
