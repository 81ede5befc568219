/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Erases all blocks of the flash, whatever they hold: for sanitize.
 *
 * A wipe begins when no operation is in progress.  It is possible even if the
 * mount has failed.  After the wipe, the translation layer starts anew with an
 * empty flash, and keeps only the list of failed planes and the erase counts.
 *
 * An erasure that fails leaves the block half erased, so that nothing in it can
 * be read.  A die that does not answer keeps its contents, so the wipe fails.
 */
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

bool ftl_wipe(struct ftl *ftl, void *cookie)
{
    if (ftl->wipe.phase != FTL_WIPE_NONE) {
        return false;
    }
    ftl->wipe = (struct ftl_wipe){.phase = FTL_WIPE_WAITS, .cookie = cookie};
    return true;
}

static void begin_wipe(struct ftl *ftl)
{
    ftl->wipe.phase = FTL_WIPE_ERASES;
    ftl->state = FTL_WIPING;
    ftl_keep_forget(ftl);
    memcpy(ftl->wiped_failed, ftl->failed_planes,
           (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies);
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->wiped_wear[i] = ftl->wear[i] + 1;
    }
}

/* @return false when there is no request */
static bool erase_next(struct ftl *ftl)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    struct ftl_wipe *wipe = &ftl->wipe;
    uint32_t die = wipe->next % geometry->dies;
    uint8_t planes = (uint8_t)((BIT(geometry->planes) - 1) &
                               ~ftl->factory_planes[wipe->next]);
    struct ftl_request *request;

    if (ftl->parity.dead_dies[die]) {
        wipe->has_failed = true;
    } else if (planes != 0) {
        request = ftl_request_take(ftl, FTL_REQUEST_WIPE);
        if (request == NULL) {
            return false;
        }
        request->flash.kind = FTL_FLASH_ERASE;
        request->flash.die = (uint16_t)die;
        request->flash.planes = planes;
        request->flash.block = (uint16_t)(wipe->next / geometry->dies);
        ftl_request_send(ftl, request);
    }
    wipe->next++;
    return true;
}

void ftl_wipe_erase_done(struct ftl *ftl, const struct ftl_request *request,
                         enum ftl_flash_status status, uint8_t failed_planes)
{
    const struct ftl_flash_op *flash = &request->flash;

    if (status == FTL_FLASH_FAILED) {
        ftl->counters.erase_errors++;
        ftl->wiped_failed[(uint32_t)flash->block * ftl->layout.geometry.dies +
                          flash->die] |= failed_planes;
    } else if (status != FTL_FLASH_OK) {
        ftl->wipe.has_failed = true;
    }
}

/* All blocks are erased: start as with a new flash. */
static void start_anew(struct ftl *ftl)
{
    struct ftl_config config = ftl->config;
    struct ftl_counters counters = ftl->counters;
    struct ftl_wipe wipe = ftl->wipe;
    bool is_volatile = ftl->is_volatile;

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
            ftl_health_note_failure(ftl, i / dies, i % dies,
                                    ftl->wiped_failed[i]);
        }
    }
}

static void end_wipe(struct ftl *ftl)
{
    bool is_ok = ftl->state == FTL_READY && !ftl->wipe.has_failed;

    if (ftl->state == FTL_READY) {
        restore_failed_planes(ftl);
    }
    ftl->wipe.phase = FTL_WIPE_NONE;
    ftl->config.media_done(ftl->config.done_ctx, ftl->wipe.cookie,
                           is_ok ? MEDIA_OK : MEDIA_WRITE_ERROR);
}

static bool erase_blocks(struct ftl *ftl)
{
    uint32_t all = ftl->layout.superblocks * ftl->layout.geometry.dies;
    bool any = ftl_io_refuse(ftl);

    while (ftl->wipe.next < all) {
        if (!erase_next(ftl)) {
            return any;
        }
        any = true;
    }
    if (ftl->free_requests.count == ftl->config.num_requests) {
        start_anew(ftl);
        any = true;
    }
    return any;
}

bool ftl_wipe_step(struct ftl *ftl)
{
    switch ((enum ftl_wipe_phase)ftl->wipe.phase) {
    case FTL_WIPE_NONE:
        return false;
    case FTL_WIPE_WAITS:
        if (ftl->state == FTL_MOUNTING || !ftl_is_quiet(ftl)) {
            return false;
        }
        begin_wipe(ftl);
        return true;
    case FTL_WIPE_ERASES:
        return erase_blocks(ftl);
    case FTL_WIPE_MOUNTS:
        if (ftl->state == FTL_MOUNTING) {
            return false;
        }
        end_wipe(ftl);
        return true;
    }
    return false;
}
