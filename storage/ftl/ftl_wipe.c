/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erases all blocks of the flash, whatever they hold: for sanitize.
 *
 * A wipe begins when no operation is in progress.  It is possible even if the
 * mount has failed.  After the wipe, the translation layer starts anew with an
 * empty flash, and keeps only the list of failed planes, the erase counts and
 * the capacity (ftl_wipe_keep.c).
 *
 * An erasure that fails leaves the block half erased, so that nothing in it can
 * be read.  A die that does not answer keeps its contents, so the wipe fails.
 * A die that had died before this start, and answers again, is erased like the
 * others, but stays unused after the wipe.
 */
#include "storage/ftl/background/ftl_wipe_keep.h"
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/base/ftl_trace.h"
#include "storage/ftl/ftl_wipe.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/space.h"
#include "storage/ftl/state.h"

#include <string.h>

bool ftl_wipe(struct ftl *ftl, struct media_owner *owner)
{
    if (ftl->wipe.phase != FTL_WIPE_NONE) {
        return false;
    }
    ftl->wipe = (struct ftl_wiping){.phase = FTL_WIPE_WAITS, .owner = owner};
    ftl->has_work = true;
    return true;
}

/* Erase the keeper, or everything if there is none. */
static void use_keeper(struct ftl *ftl, uint32_t keeper)
{
    struct ftl_wiping *wipe = &ftl->wipe;

    wipe->phase = keeper == FTL_NOWHERE ? FTL_WIPE_ERASES : FTL_WIPE_CLEARS;
    wipe->keeper = keeper;
    wipe->keeper_row = 0;
    wipe->page = 0;
    wipe->next = keeper == FTL_NOWHERE ? 0 : keeper * ftl->layout.geometry.dies;
}

static void begin_wipe(struct ftl *ftl)
{
    ftl->state = FTL_WIPING;
    ftl_keep_forget(&ftl->keep);
    ftl->wipe.row_number =
        MAX(ftl->next_row_number, ftl->mounting.last_row + FTL_ROW_GAP);
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->wear[i]++;
    }
    use_keeper(ftl, ftl_wipe_find_keeper(&ftl->background_floor, 0));
}

/* @return false when there is no request */
static bool erase_next(struct ftl *ftl)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    struct ftl_wiping *wipe = &ftl->wipe;
    uint32_t die = wipe->next % geometry->dies;
    uint8_t planes = (uint8_t)((BIT(geometry->planes) - 1) &
                               ~ftl->factory_planes[wipe->next]);
    struct ftl_request *request;

    if (planes != 0) {
        request = ftl_request_take(&ftl->ops, FTL_REQUEST_WIPE);
        if (request == NULL) {
            return false;
        }
        request->flash.kind = FTL_FLASH_ERASE;
        request->flash.die = (uint16_t)die;
        request->flash.planes = planes;
        request->flash.block = (uint16_t)(wipe->next / geometry->dies);
        ftl_request_send(&ftl->ops, request);
    }
    wipe->next++;
    return true;
}

bool ftl_wipe_done(struct ftl *ftl, struct ftl_request *request,
                   enum ftl_flash_status status)
{
    const struct ftl_flash_op *flash = &request->flash;

    if (flash->kind == FTL_FLASH_PROGRAM) {
        ftl_wipe_keep_done(&ftl->background_floor, request, status);
    } else if (status == FTL_FLASH_FAILED) {
        ftl->counters.erase_errors++;
        ftl_health_note_failure(&ftl->space_floor, flash->block, flash->die,
                                request->failed_planes);
    } else if (ftl->wipe.phase == FTL_WIPE_CLEARS &&
               (status == FTL_FLASH_TRANSFER || status == FTL_FLASH_ERROR)) {
        /* Another superblock becomes the keeper.  This one is erased later. */
        ftl_wipe_give_up_keeper(&ftl->background_floor);
    } else if (status != FTL_FLASH_OK) {
        ftl->wipe.has_failed = true;
    }
    return false;
}

/* All blocks are erased: start as with a new flash. */
static void start_anew(struct ftl *ftl)
{
    struct ftl_config config = ftl->config;
    struct ftl_counters counters = ftl->counters;
    struct ftl_wiping wipe = ftl->wipe;
    bool is_volatile = ftl->is_volatile;

    memcpy(ftl->wiped_failed, ftl->failed_planes,
           (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies);
    memcpy(ftl->wiped_wear, ftl->wear,
           ftl->layout.superblocks * sizeof(ftl->wear[0]));
    config.bad_planes = ftl->factory_planes;
    config.adopts = false;
    config.keep_seed++;
    ASSERT(ftl_start(&config) == ftl);
    ftl->counters = counters;
    ftl->is_volatile = is_volatile;
    ftl->wipe = wipe;
    ftl->wipe.phase = FTL_WIPE_MOUNTS;
    memcpy(ftl->wear, ftl->wiped_wear,
           ftl->layout.superblocks * sizeof(ftl->wear[0]));
    ftl->wear_changes = ftl->layout.superblocks; /* All are to be written. */
}

static void restore_failed_planes(struct ftl *ftl)
{
    uint32_t dies = ftl->layout.geometry.dies;

    for (uint32_t i = 0; i < ftl->layout.superblocks * dies; i++) {
        if (ftl->wiped_failed[i] != 0) {
            ftl_health_note_failure(&ftl->space_floor, i / dies, i % dies,
                                    ftl->wiped_failed[i]);
        }
    }
}

static void end_wipe(struct ftl *ftl)
{
    bool is_ok = ftl->state == FTL_READY && !ftl->wipe.has_failed;

    if (ftl->state == FTL_READY) {
        restore_failed_planes(ftl);
        /* The marker of the wipe proves nothing about what hosts write from now
         * on, so program a row after it. */
        ftl_health_write(&ftl->space_floor);
    }
    ftl->wipe.phase = FTL_WIPE_NONE;
    media_end(ftl->wipe.owner, is_ok ? MEDIA_OK : MEDIA_WRITE_ERROR);
}

/*
 * Erase the blocks before `end`, except for the keeper if it holds pages.
 * @param is_done  set when these blocks are erased
 * @return whether anything was done
 */
static bool erase_blocks(struct ftl *ftl, uint32_t end, bool *is_done)
{
    struct ftl_wiping *wipe = &ftl->wipe;
    bool any = false;

    while (wipe->next < end) {
        if (wipe->phase == FTL_WIPE_ERASES &&
            wipe->next / ftl->layout.geometry.dies == wipe->keeper) {
            wipe->next++;
        } else if (!erase_next(ftl)) {
            break;
        }
        any = true;
    }
    *is_done = wipe->next >= end &&
               ftl->ops.free_requests.count == ftl->config.num_requests;
    return any || *is_done;
}

static bool step_clear(struct ftl *ftl)
{
    bool is_done;
    bool any = erase_blocks(
        ftl, (ftl->wipe.keeper + 1) * ftl->layout.geometry.dies, &is_done);

    if (is_done) {
        ftl->wipe.phase = FTL_WIPE_KEEPS;
    }
    return any;
}

static bool step_keep(struct ftl *ftl)
{
    struct ftl_wiping *wipe = &ftl->wipe;
    bool is_done;
    bool any = ftl_wipe_keep_step(&ftl->background_floor, &is_done);

    if (is_done && !ftl_wipe_keeper_is_complete(&ftl->background_floor)) {
        use_keeper(ftl, ftl_wipe_find_keeper(&ftl->background_floor,
                                             wipe->keeper + 1));
    } else if (is_done) {
        wipe->phase = FTL_WIPE_ERASES;
        wipe->next = 0;
    }
    return any;
}

static bool step_erase(struct ftl *ftl)
{
    bool is_done;
    bool any = erase_blocks(
        ftl, ftl->layout.superblocks * ftl->layout.geometry.dies, &is_done);

    if (is_done) {
        start_anew(ftl);
    }
    return any;
}

/* Go on programming and erasing. */
static bool step_flash(struct ftl *ftl)
{
    switch ((enum ftl_wipe_phase)ftl->wipe.phase) {
    case FTL_WIPE_CLEARS:
        return step_clear(ftl);
    case FTL_WIPE_KEEPS:
        return step_keep(ftl);
    case FTL_WIPE_ERASES:
        return step_erase(ftl);
    case FTL_WIPE_NONE:
    case FTL_WIPE_WAITS:
    case FTL_WIPE_MOUNTS:
        break;
    }
    return false;
}

/* Go on with the wipe. */
static bool run_wipe(struct ftl *ftl)
{
    bool has_refused;

    if (__builtin_expect(ftl_power_is_failing(&ftl->base_floor), 0)) {
        /* Only the keeper is completed.  The wipe does not end, so its owner
         * repeats it after the next start. */
        return ftl->wipe.phase != FTL_WIPE_ERASES && step_flash(ftl);
    }
    switch ((enum ftl_wipe_phase)ftl->wipe.phase) {
    case FTL_WIPE_NONE:
        return false;
    case FTL_WIPE_WAITS:
        if (ftl->state == FTL_MOUNTING || !ftl_is_quiet(ftl)) {
            return false;
        }
        ftl_hold_drop(&ftl->ops_floor);
        begin_wipe(ftl);
        return true;
    case FTL_WIPE_CLEARS:
    case FTL_WIPE_KEEPS:
    case FTL_WIPE_ERASES:
        has_refused = ftl_io_refuse(&ftl->io_floor);
        return step_flash(ftl) || has_refused;
    case FTL_WIPE_MOUNTS:
        if (ftl->state == FTL_MOUNTING) {
            return false;
        }
        end_wipe(ftl);
        return true;
    }
    return false;
}

bool ftl_wipe_step(struct ftl *ftl)
{
    uint8_t before = ftl->wipe.phase;
    bool any;

    if (__builtin_expect(before == FTL_WIPE_NONE, 1)) {
        return false;
    }
    any = run_wipe(ftl);
    if (ftl->wipe.phase != before && ftl_is_traced(&ftl->base_floor)) {
        ftl_trace_phase(&ftl->base_floor, FTL_ACTIVITY_WIPE, ftl->wipe.phase,
                        ftl->wipe.keeper);
    }
    return any;
}
