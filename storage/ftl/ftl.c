/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation layer as a whole: its memory, its start and its step.  See
 * ftl.h.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/base/ftl_phases.h"
#include "storage/ftl/ftl_wipe.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ftl_kinds.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"
#include "storage/ftl/state.h"

#include <stddef.h>

_Static_assert(offsetof(struct ftl, ops_floor) == 0, "see ftl_whole()");

/* A function of a floor, as a row of the table calls it. */
#define DONE_ON(floor, function)                                               \
    static bool on_##function(struct ftl *ftl, struct ftl_request *request,    \
                              enum ftl_flash_status status)                    \
    {                                                                          \
        return function(&ftl->floor, request, status);                         \
    }
#define EXPECTS_ON(floor, function)                                            \
    static bool on_##function(                                                 \
        const struct ftl *ftl, const struct ftl_request *request,              \
        uint32_t entry, uint32_t place, const struct ftl_system *system)       \
    {                                                                          \
        return function(&ftl->floor, request, entry, place, system);           \
    }
DONE_ON(space_floor, ftl_superblock_erase_done)
DONE_ON(rows_floor, ftl_rescue_read_done)
DONE_ON(rows_floor, ftl_row_done)
DONE_ON(background_floor, ftl_checkpoint_row_done)
DONE_ON(background_floor, ftl_collect_read_done)
DONE_ON(background_floor, ftl_scrub_done)
DONE_ON(mount_floor, ftl_mount_probe_done)
DONE_ON(mount_floor, ftl_mount_scan_done)
DONE_ON(mount_floor, ftl_mount_repair_done)
DONE_ON(mount_floor, ftl_mount_page_done)
DONE_ON(mount_floor, ftl_checkpoint_load_done)
DONE_ON(io_floor, ftl_io_read_done)
DONE_ON(io_floor, ftl_io_fill_done)
EXPECTS_ON(map_floor, ftl_map_expects)
EXPECTS_ON(background_floor, ftl_collect_expects)
EXPECTS_ON(mount_floor, ftl_checkpoint_expects)
EXPECTS_ON(io_floor, ftl_io_expects)

/* A mount does not know yet what a place holds, so SCAN and REPAIR expect any
 * unit. */
const struct ftl_kind ftl_kinds[FTL_REQUEST_KINDS] = {
    [FTL_REQUEST_READ] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_io_read_done,
                          .expects = on_ftl_io_expects},
    [FTL_REQUEST_FILL] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_io_fill_done,
                          .expects = on_ftl_io_expects},
    [FTL_REQUEST_ROW] = {.done = on_ftl_row_done, .may_hold = true},
    [FTL_REQUEST_ERASE] = {.done = on_ftl_superblock_erase_done,
                           .may_hold = true},
    [FTL_REQUEST_WIPE] = {.done = ftl_wipe_done},
    [FTL_REQUEST_SCAN] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_mount_scan_done},
    [FTL_REQUEST_REPAIR] = {.done = on_ftl_rescue_read_done,
                            .read_done = on_ftl_mount_repair_done},
    [FTL_REQUEST_PROBE] = {.done = on_ftl_mount_probe_done},
    [FTL_REQUEST_LOAD] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_checkpoint_load_done,
                          .expects = on_ftl_checkpoint_expects},
    [FTL_REQUEST_CHECKPOINT] = {.done = on_ftl_checkpoint_row_done},
    [FTL_REQUEST_PAGE] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_mount_page_done,
                          .expects = on_ftl_map_expects},
    [FTL_REQUEST_MOVE] = {.done = on_ftl_rescue_read_done,
                          .read_done = on_ftl_collect_read_done,
                          .expects = on_ftl_collect_expects},
    [FTL_REQUEST_SCRUB] = {.done = on_ftl_scrub_done},
};

enum ftl_state ftl_state(const struct ftl *ftl)
{
    return ftl->state;
}

enum ftl_failure ftl_failure(const struct ftl *ftl)
{
    if (ftl->state != FTL_FAILED) {
        return FTL_FAILURE_NONE;
    }
    if (ftl->mount.is_other_capacity) {
        return FTL_FAILURE_CAPACITY;
    }
    return ftl->mounting.is_old ? FTL_FAILURE_OLD_LAYOUT : FTL_FAILURE_FLASH;
}

/* An operation has ended that is no host's read, or not with good data.  This
 * is not inline, so that the end of a host's read need not save registers. */
static __attribute__((noinline)) void end_other(struct ftl *ftl,
                                                struct ftl_request *request,
                                                enum ftl_flash_status status,
                                                uint8_t failed_planes)
{
    if (status == FTL_FLASH_GOOD) {
        for (uint32_t i = 0; i < request->flash.num_units; i++) {
            request->units[i].status = FTL_UNIT_GOOD;
            request->units[i].steps = 0;
            request->units[i].wrong_bits = 0;
        }
        status = FTL_FLASH_OK;
    }
    request->failed_planes = failed_planes;
    ftl_request_end(&ftl->ops_floor, request, status);
}

void ftl_flash_done(struct ftl *ftl, uint32_t cookie,
                    enum ftl_flash_status status, uint8_t failed_planes)
{
    struct ftl_request *request = &ftl->ops.requests[cookie];

    ASSERT(cookie < ftl->config.num_requests &&
           request->kind != FTL_REQUEST_FREE);
    if (status == FTL_FLASH_GOOD && request->kind == FTL_REQUEST_READ &&
        request->rescue == NULL) {
        ftl_io_read_good(&ftl->io_floor, request);
    } else {
        end_other(ftl, request, status, failed_planes);
    }
}

/* When the buffer is left alone, it is programmed. */
static void force_idle_buffer(struct ftl *ftl, uint64_t *deadline_us)
{
    uint64_t due_us = ftl->buffer.last_accept_us + ftl->config.idle_us;

    if (ftl->buffer.waiting[FTL_POOL_HOST].count +
                ftl->buffer.waiting[FTL_POOL_TRIM].count ==
            0 ||
        ftl->forced == ftl->accepted) {
        return;
    }
    if (ftl->now_us >= due_us) {
        ftl->forced = ftl->accepted;
    } else {
        *deadline_us = MIN(*deadline_us, due_us);
    }
}

/*
 * Nothing is in progress and nothing can be done, but operations wait: there is
 * no space for them, and garbage collection cannot make any unless what it
 * could not read can be read now.  If planes that have failed are the reason,
 * the medium becomes read-only, which makes space for what is in the buffer.
 */
static bool note_full(struct ftl *ftl)
{
    if (ftl->is_full || !ftl_waiting_is_any(&ftl->io) ||
        ftl_is_held(&ftl->ops_floor) || !ftl_is_flash_quiet(&ftl->map_floor)) {
        return false;
    }
    if (ftl->hold.held.count != 0) {
        ftl->is_full = true; /* until the erasures succeed that are held */
        return true;
    }
    if (ftl->more_free != 0) {
        ftl->more_free--; /* Hosts need the space more than the next mount. */
        return true;
    }
    if (ftl_collect_retry(&ftl->background_floor) ||
        ftl_checkpoint_give_up(&ftl->background_floor)) {
        return true;
    }
    if (!ftl->is_read_only && ftl_health_has_taken_space(&ftl->pages_floor)) {
        ftl_health_set_read_only(&ftl->space_floor);
    } else {
        ftl->is_full = true;
    }
    return true;
}

/* Whether nothing waits for the end of a request or of an operation. */
static bool is_calm(const struct ftl *ftl)
{
    return ftl->state == FTL_READY && !ftl_power_is_failing(&ftl->base_floor) &&
           !ftl_keep_is_adopting(&ftl->background_floor) &&
           ftl->io.reads.count == 0 && ftl->io.changes.count == 0 &&
           ftl->io.trims.count == 0 && ftl->io.barriers.count == 0 &&
           ftl->ops.unsent.count == 0 && ftl->parity.waiting.count == 0 &&
           ftl->collection.victim == FTL_NOWHERE &&
           ftl->checkpoint.state == FTL_CHECKPOINT_IDLE &&
           ftl->wipe.phase == FTL_WIPE_NONE;
}

/* Operations cannot be served before the mount, or what follows it, has
 * programmed something.  While that fails, they do not wait. */
static bool refuse_while_held(struct ftl *ftl)
{
    return ftl_hold_is_waiting(&ftl->ops_floor) &&
           ftl_io_refuse(&ftl->io_floor);
}

/* Do what is due.  @return whether anything was done */
static bool run_step(struct ftl *ftl, uint64_t *deadline_us)
{
    /* The writes that were submitted since the last step end in any state. */
    bool any = ftl_io_end_moving(&ftl->io_floor);

    if (__builtin_expect(ftl->hold.held.count != 0, 0)) {
        any |= ftl_hold_step(&ftl->ops_floor);
    }
    /* Then the wipe, so that none begins before the owner has seen what the
     * mount has found. */
    any |= ftl_wipe_step(ftl);
    switch (ftl->state) {
    case FTL_MOUNTING:
        any |= ftl_mount_step(&ftl->mount_floor);
        any |= refuse_while_held(ftl);
        break;
    case FTL_READY:
        if (__builtin_expect(ftl_power_is_failing(&ftl->base_floor), 0)) {
            any |= ftl_power_step(&ftl->background_floor);
            break;
        }
        if (__builtin_expect(ftl_keep_is_adopting(&ftl->background_floor), 0)) {
            any |= ftl_keep_step(&ftl->background_floor);
            any |= refuse_while_held(ftl);
        } else {
            any |= ftl_io_step(&ftl->io_floor);
        }
        force_idle_buffer(ftl, deadline_us);
        any |= ftl_health_step(&ftl->pages_floor);
        any |= ftl_capacity_step(&ftl->background_floor);
        any |= ftl_wear_step(&ftl->pages_floor);
        any |= ftl_page_restore_step(&ftl->pages_floor);
        any |= ftl_scrub_step(&ftl->background_floor, deadline_us);
        if (!ftl_checkpoint_holds_collection(&ftl->background_floor)) {
            any |= ftl_collect_step(&ftl->background_floor);
        }
        any |= ftl_checkpoint_step(&ftl->background_floor);
        if (!ftl_checkpoint_holds_rows(&ftl->background_floor)) {
            any |= ftl_row_step(&ftl->rows_floor);
        }
        any = any || note_full(ftl);
        break;
    case FTL_FAILED:
        any |= ftl_power_is_failing(&ftl->base_floor)
                   ? ftl_power_step(&ftl->background_floor)
                   : ftl_io_refuse(&ftl->io_floor);
        break;
    case FTL_WIPING:
        any |= ftl_power_is_failing(&ftl->base_floor) &&
               ftl_power_step(&ftl->background_floor);
        break;
    }
    any |= ftl_rescue_step(&ftl->rows_floor);
    return ftl_request_send_waiting(&ftl->ops_floor) || any;
}

bool ftl_step(struct ftl *ftl, uint64_t now_us, uint64_t *deadline_us)
{
    bool any = false;

    ftl->now_us = now_us;
    if (ftl->has_work || now_us >= ftl->wake_us) {
        ftl->has_work = false;
        ftl->wake_us = UINT64_MAX;
        any = run_step(ftl, &ftl->wake_us);
        if (__builtin_expect(ftl_hold_is_waiting(&ftl->ops_floor) ||
                                 ftl_is_held(&ftl->ops_floor),
                             0)) {
            ftl->wake_us = MIN(ftl->wake_us, ftl->hold.retry_us);
        }
        ftl->has_work |= any;
        ftl->is_calm = is_calm(ftl);
    }
    *deadline_us = MIN(*deadline_us, ftl->wake_us);
    return any;
}

bool ftl_is_flushed(const struct ftl *ftl)
{
    return !ftl_keep_is_adopting(&ftl->background_floor) &&
           ftl_slot_is_durable(&ftl->buffer, ftl->accepted);
}

uint32_t ftl_operations(const struct ftl *ftl, uint32_t *all)
{
    *all = ftl->config.num_ops;
    return *all - ftl->io.free_ops.count;
}

uint32_t ftl_dead_dies(const struct ftl *ftl)
{
    return ftl->dies.num_dead;
}

bool ftl_die_is_dead(const struct ftl *ftl, uint32_t die)
{
    return ftl->dies.is_dead[die];
}

uint32_t ftl_free_superblocks(const struct ftl *ftl)
{
    return ftl->free_superblocks;
}

uint32_t ftl_failed_block(const struct ftl *ftl)
{
    return ftl->io.failed_block;
}

void ftl_set_volatile(struct ftl *ftl, bool is_enabled)
{
    ftl->is_volatile = is_enabled;
}
