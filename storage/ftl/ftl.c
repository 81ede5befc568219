/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation layer as a whole: its memory, its start and its step.  See
 * ftl.h.
 */
#include "storage/ftl/ftl_checkpoint.h"
#include "storage/ftl/ftl_internal.h"
#include "storage/ftl/ftl_kinds.h"
#include "storage/ftl/ftl_mount.h"
#include "storage/ftl/ftl_phases.h"
#include "storage/ftl/ftl_trace.h"

#include <string.h>

enum { MEMORY_ALIGN = 64 };

/* A mount does not know yet what a place holds, so SCAN and REPAIR expect any
 * unit. */
const struct ftl_kind ftl_kinds[FTL_REQUEST_KINDS] = {
    [FTL_REQUEST_READ] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_io_read_done,
                          .expects = ftl_io_expects},
    [FTL_REQUEST_FILL] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_io_fill_done,
                          .expects = ftl_io_expects},
    [FTL_REQUEST_ROW] = {.done = ftl_row_done, .may_hold = true},
    [FTL_REQUEST_ERASE] = {.done = ftl_superblock_erase_done, .may_hold = true},
    [FTL_REQUEST_WIPE] = {.done = ftl_wipe_done},
    [FTL_REQUEST_SCAN] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_mount_scan_done},
    [FTL_REQUEST_REPAIR] = {.done = ftl_rescue_read_done,
                            .read_done = ftl_mount_repair_done},
    [FTL_REQUEST_PROBE] = {.done = ftl_mount_probe_done},
    [FTL_REQUEST_LOAD] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_checkpoint_load_done,
                          .expects = ftl_checkpoint_expects},
    [FTL_REQUEST_CHECKPOINT] = {.done = ftl_checkpoint_row_done},
    [FTL_REQUEST_PAGE] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_mount_page_done,
                          .expects = ftl_map_expects},
    [FTL_REQUEST_MOVE] = {.done = ftl_rescue_read_done,
                          .read_done = ftl_collect_read_done,
                          .expects = ftl_collect_expects},
    [FTL_REQUEST_SCRUB] = {.done = ftl_scrub_done},
};

/* Hand out the next part of the owner's memory; `base` NULL: only count. */
static void *carve_memory(uint8_t *base, size_t *used, size_t len)
{
    size_t at = *used;

    *used += (len + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
    return base == NULL ? NULL : base + at;
}

static uint32_t count_trim_pages(uint32_t logical_units)
{
    return (uint32_t)(((uint64_t)logical_units + FTL_TRIM_UNITS - 1) /
                      FTL_TRIM_UNITS);
}

static uint32_t pool_slots(const struct ftl *ftl, enum ftl_pool pool)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t move_rows = MAX(MIN(dies, (uint32_t)FTL_MOVE_ROWS_MAX),
                             (uint32_t)FTL_MOVE_ROWS_MIN);
    const uint32_t slots[] = {
        [FTL_POOL_HOST] = ftl->config.buffer_units,
        [FTL_POOL_TRIM] = MIN(2 * (ftl->entries - ftl->config.logical_units),
                              (uint32_t)FTL_TRIM_SLOTS),
        [FTL_POOL_MOVE] = move_rows * ftl->layout.row_units,
    };

    return slots[pool];
}

/* Divide the memory, or count its bytes. */
static size_t divide_memory(struct ftl *ftl, uint8_t *base)
{
    const struct ftl_config *config = &ftl->config;
    const struct ftl_layout *layout = &ftl->layout;
    size_t planes = (size_t)layout->superblocks * layout->geometry.dies;
    size_t units = layout->row_units;
    size_t used = 0;

    (void)carve_memory(base, &used, sizeof(*ftl));
#define CARVE(member, count)                                                   \
    ftl->member = carve_memory(base, &used, (count) * sizeof(*ftl->member))
    /* A wipe keeps the contents of these arrays for the start after it, which
     * may have another capacity.  So they come before all arrays whose size
     * depends on the capacity. */
    CARVE(factory_planes, planes);
    CARVE(wiped_failed, planes);
    CARVE(wiped_wear, (size_t)layout->superblocks);
    CARVE(map, (size_t)ftl->entries);
    CARVE(valid, (size_t)layout->places / 8 + 1);
    CARVE(lost_rows, (size_t)ftl->trim_pages);
    CARVE(failed_planes, planes);
    CARVE(bad_planes, planes);
    CARVE(health_changed, (size_t)ftl->health_pages);
    CARVE(wear, (size_t)layout->superblocks);
    CARVE(superblocks, (size_t)layout->superblocks);
    CARVE(slots, (size_t)ftl->num_slots);
    CARVE(pad, (size_t)FTL_UNIT_DATA);
    CARVE(wait_links, (size_t)ftl->num_slots);
    CARVE(dirty_links, (size_t)ftl->num_slots);
    CARVE(requests, (size_t)config->num_requests);
    CARVE(request_links, (size_t)config->num_requests);
    CARVE(ops, (size_t)config->num_ops);
    CARVE(op_links, (size_t)config->num_ops);
    CARVE(mount.versions, (size_t)ftl->entries);
    CARVE(mount.row_numbers,
          (size_t)layout->superblocks * layout->superblock_rows);
    CARVE(mount.probes, planes * layout->geometry.planes);
    CARVE(checkpoint.table, (size_t)layout->superblocks);
    CARVE(checkpoint.planes, planes);
    CARVE(checkpoint.is_taken, (size_t)ftl_checkpoint_pieces(ftl) / 8 + 1);
    CARVE(checkpoint.data,
          (size_t)ftl_checkpoint_rows(layout) * units * FTL_UNIT_DATA);
    CARVE(mount.used_planes, planes);
    CARVE(mount.partial_planes, planes);
    CARVE(mount.ignored, (size_t)layout->places / 8 + 1);
    CARVE(mount.unreadable, (size_t)layout->places / 8 + 1);
    CARVE(mount.page, (size_t)FTL_UNIT_DATA + FTL_UNIT_META);
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        CARVE(streams[i].die_rows, (size_t)layout->geometry.dies);
    }
    CARVE(parity.dead_dies, (size_t)layout->geometry.dies);
    CARVE(parity.recorded_dies, (size_t)layout->geometry.dies);
    if (layout->has_parity) {
        for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
            CARVE(parity.accumulators[i].members,
                  (size_t)layout->geometry.dies);
            CARVE(parity.accumulators[i].data, units * FTL_UNIT_DATA);
            CARVE(parity.accumulators[i].meta, units * FTL_UNIT_META);
            CARVE(parity.accumulators[i].system, units);
        }
        for (unsigned int i = 0; i < FTL_RESCUES; i++) {
            CARVE(parity.rescues[i].members, (size_t)layout->geometry.dies);
            CARVE(parity.rescues[i].data, units * FTL_UNIT_DATA);
            CARVE(parity.rescues[i].meta, units * FTL_UNIT_META);
            CARVE(parity.rescues[i].system, units);
            CARVE(parity.rescues[i].read_data, units * FTL_UNIT_DATA);
            CARVE(parity.rescues[i].read_meta, units * FTL_UNIT_META);
            CARVE(parity.rescues[i].read_system, units);
        }
    }
#undef CARVE
    return used;
}

void ftl_set_entries(struct ftl *ftl)
{
    ftl->trim_pages = count_trim_pages(ftl->config.logical_units);
    ftl->health_pages = ftl_health_pages(&ftl->layout);
    ftl->wear_pages = ftl_wear_pages(&ftl->layout);
    ftl->entries = ftl->config.logical_units + ftl->trim_pages +
                   ftl->health_pages + ftl->wear_pages;
    ftl->num_slots = 0;
    for (unsigned int pool = 0; pool < FTL_POOLS; pool++) {
        ftl->num_slots += pool_slots(ftl, (enum ftl_pool)pool);
    }
}

uint32_t ftl_most_pages(const struct ftl_layout *layout)
{
    struct ftl ftl;

    ftl.config = (struct ftl_config){.logical_units = layout->places};
    ftl.layout = *layout;
    ftl_set_entries(&ftl);
    return pool_slots(&ftl, FTL_POOL_TRIM);
}

/* What follows from the configuration. @return false when it does not fit */
static bool set_sizes(struct ftl *ftl, const struct ftl_config *config)
{
    ftl->config = *config;
    if (config->trace == NULL) {
        ftl->config.trace = &trace_off;
    }
    ftl->victims = ftl_find_victim_policy(config->victims);
    ftl->levelling = ftl_find_levelling_policy(config->levelling);
    if (ftl->victims == NULL || ftl->levelling == NULL ||
        !ftl_layout_init(&ftl->layout, &config->geometry) ||
        config->logical_units == 0 ||
        config->logical_units > ftl_most_units(config) ||
        config->buffer_units < 2 * ftl->layout.row_units ||
        config->num_ops == 0 || config->num_requests == 0) {
        return false;
    }
    ftl_set_entries(ftl);
    ftl->kept_requests = MIN(config->num_requests / 2U,
                             (uint32_t)FTL_STREAMS * config->geometry.dies +
                                 (uint32_t)FTL_CHECKPOINT_ROWS);
    return ftl->num_slots < FTL_LIST_END &&
           config->num_requests < FTL_LIST_END &&
           config->num_ops < FTL_LIST_END;
}

bool ftl_checkpoint_fits(const struct ftl_config *config)
{
    struct ftl ftl;

    ftl.config = *config;
    if (!ftl_layout_init(&ftl.layout, &config->geometry)) {
        return false;
    }
    ftl_set_entries(&ftl);
    return ftl_checkpoint_pieces(&ftl) <=
           ftl_layout_least_capacity(&ftl.layout);
}

size_t ftl_bytes(const struct ftl_config *config)
{
    struct ftl ftl;

    return set_sizes(&ftl, config) ? divide_memory(&ftl, NULL) : 0;
}

size_t ftl_keep_bytes(const struct ftl_config *config)
{
    struct ftl ftl;

    return set_sizes(&ftl, config) ? ftl_keep_divide(&ftl, NULL) : 0;
}

void ftl_init_slots(struct ftl *ftl)
{
    uint16_t slot = 0;

    ftl_list_init(&ftl->collection.lost, ftl->wait_links);
    for (unsigned int pool = 0; pool < FTL_POOLS; pool++) {
        uint32_t count = pool_slots(ftl, (enum ftl_pool)pool);

        ftl_list_init(&ftl->free_slots[pool], ftl->wait_links);
        ftl_list_init(&ftl->waiting[pool], ftl->wait_links);
        ftl_list_init(&ftl->dirty[pool], ftl->dirty_links);
        while (count-- != 0) {
            /* The host's pool comes first, and has one buffer more. */
            ftl->slots[slot].buffer =
                (uint16_t)(slot + (pool != FTL_POOL_HOST));
            ftl_list_append(&ftl->free_slots[pool], slot++);
        }
    }
}

static void init_lists(struct ftl *ftl)
{
    ftl_init_slots(ftl);
    ftl_list_init(&ftl->free_requests, ftl->request_links);
    ftl_list_init(&ftl->unsent, ftl->request_links);
    ftl_list_init(&ftl->held, ftl->request_links);
    ftl_list_init(&ftl->parity.waiting, ftl->request_links);
    for (uint16_t i = 0; i < ftl->config.num_requests; i++) {
        ftl->requests[i].kind = FTL_REQUEST_FREE;
        ftl_list_append(&ftl->free_requests, i);
    }
    ftl_list_init(&ftl->free_ops, ftl->op_links);
    ftl_list_init(&ftl->reads, ftl->op_links);
    ftl_list_init(&ftl->changes, ftl->op_links);
    ftl_list_init(&ftl->trims, ftl->op_links);
    ftl_list_init(&ftl->filling, ftl->op_links);
    ftl_list_init(&ftl->moving, ftl->op_links);
    ftl_list_init(&ftl->barriers, ftl->op_links);
    for (uint16_t i = 0; i < ftl->config.num_ops; i++) {
        ftl->ops[i].state = FTL_OP_FREE;
        ftl_list_append(&ftl->free_ops, i);
    }
}

struct ftl *ftl_start(const struct ftl_config *config)
{
    struct ftl *ftl = config->memory;
    size_t planes;

    memset(ftl, 0, sizeof(*ftl));
    if (!set_sizes(ftl, config)) {
        return NULL;
    }
    (void)divide_memory(ftl, config->memory);
    (void)ftl_keep_divide(ftl, config->keep);
    planes = (size_t)ftl->layout.superblocks * config->geometry.dies;
    ftl->state = FTL_MOUNTING;
    ftl->is_volatile = true;
    memset(ftl->pad, 0, FTL_UNIT_DATA);
    memmove(ftl->factory_planes, config->bad_planes, planes);
    memcpy(ftl->bad_planes, config->bad_planes, planes);
    memset(ftl->failed_planes, 0, planes);
    memset(ftl->health_changed, 0, ftl->health_pages);
    memset(ftl->wear, 0, ftl->layout.superblocks * sizeof(ftl->wear[0]));
    memset(ftl->superblocks, 0,
           ftl->layout.superblocks * sizeof(ftl->superblocks[0]));
    for (unsigned int i = 0; i < FTL_STREAMS; i++) {
        ftl->streams[i].superblock = FTL_NOWHERE;
        memset(ftl->streams[i].die_rows, 0,
               config->geometry.dies * sizeof(ftl->streams[i].die_rows[0]));
    }
    memset(ftl->parity.dead_dies, 0, config->geometry.dies);
    memset(ftl->parity.recorded_dies, 0, config->geometry.dies);
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        ftl->parity.rescues[i].request = FTL_LIST_END;
    }
    init_lists(ftl);
    if (!config->is_capacity_estimated) {
        ftl_keep_start(ftl); /* With an estimate, its place is not known yet. */
    }
    ftl->has_work = true;
    ftl_mount_begin(ftl);
    return ftl;
}

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
    return ftl->mount.is_old ? FTL_FAILURE_OLD_LAYOUT : FTL_FAILURE_FLASH;
}

/* Set what FTL_FLASH_GOOD says of all units of a read.  This is not inline, so
 * that the end of a host's read need not save registers. */
static __attribute__((noinline)) void set_units_good(
    struct ftl_request *request)
{
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        request->units[i].status = FTL_UNIT_GOOD;
        request->units[i].steps = 0;
        request->units[i].wrong_bits = 0;
    }
}

void ftl_flash_done(struct ftl *ftl, uint32_t cookie,
                    enum ftl_flash_status status, uint8_t failed_planes)
{
    struct ftl_request *request = &ftl->requests[cookie];

    ASSERT(cookie < ftl->config.num_requests &&
           request->kind != FTL_REQUEST_FREE);
    if (status == FTL_FLASH_GOOD) {
        /* Most operations end here, so no table is needed for them. */
        if (request->kind == FTL_REQUEST_READ && request->rescue == NULL) {
            ftl_io_read_good(ftl, request);
            return;
        }
        set_units_good(request);
        status = FTL_FLASH_OK;
    }
    request->failed_planes = failed_planes;
    ftl_request_end(ftl, request, status);
}

/* When the buffer is left alone, it is programmed. */
static void force_idle_buffer(struct ftl *ftl, uint64_t *deadline_us)
{
    uint64_t due_us = ftl->last_accept_us + ftl->config.idle_us;

    if (ftl->waiting[FTL_POOL_HOST].count + ftl->waiting[FTL_POOL_TRIM].count ==
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

/* Whether no operation of the flash is in progress.  Those that are held do not
 * count. */
static bool is_flash_quiet(const struct ftl *ftl)
{
    return ftl->free_requests.count + ftl->held.count ==
           ftl->config.num_requests;
}

/*
 * Nothing is in progress and nothing can be done, but operations wait: there is
 * no space for them, and garbage collection cannot make any unless what it
 * could not read can be read now.  If planes that have failed are the reason,
 * the medium becomes read-only, which makes space for what is in the buffer.
 */
static bool note_full(struct ftl *ftl)
{
    if (ftl->is_full || !ftl_io_is_waiting(ftl) || ftl_is_held(ftl) ||
        !is_flash_quiet(ftl)) {
        return false;
    }
    if (ftl->held.count != 0) {
        ftl->is_full = true; /* until the erasures succeed that are held */
        return true;
    }
    if (ftl->more_free != 0) {
        ftl->more_free--; /* Hosts need the space more than the next mount. */
        return true;
    }
    if (ftl_collect_retry(ftl) || ftl_checkpoint_give_up(ftl)) {
        return true;
    }
    if (!ftl->is_read_only && ftl_health_has_taken_space(ftl)) {
        ftl_health_set_read_only(ftl);
    } else {
        ftl->is_full = true;
    }
    return true;
}

/* Whether nothing waits for the end of a request or of an operation. */
static bool is_calm(const struct ftl *ftl)
{
    return ftl->state == FTL_READY && !ftl_power_is_failing(ftl) &&
           !ftl_is_adopting(ftl) && ftl->reads.count == 0 &&
           ftl->changes.count == 0 && ftl->trims.count == 0 &&
           ftl->barriers.count == 0 && ftl->unsent.count == 0 &&
           ftl->parity.waiting.count == 0 &&
           ftl->collection.victim == FTL_NOWHERE &&
           ftl->checkpoint.state == FTL_CHECKPOINT_IDLE &&
           ftl->wipe.phase == FTL_WIPE_NONE;
}

/* Operations cannot be served before the mount, or what follows it, has
 * programmed something.  While that fails, they do not wait. */
static bool refuse_while_held(struct ftl *ftl)
{
    return ftl_hold_is_waiting(ftl) && ftl_io_refuse(ftl);
}

/* Do what is due.  @return whether anything was done */
static bool run_step(struct ftl *ftl, uint64_t *deadline_us)
{
    /* The writes that were submitted since the last step end in any state. */
    bool any = ftl_io_end_moving(ftl);

    if (__builtin_expect(ftl->held.count != 0, 0)) {
        any |= ftl_hold_step(ftl);
    }
    /* Then the wipe, so that none begins before the owner has seen what the
     * mount has found. */
    any |= ftl_wipe_step(ftl);
    switch (ftl->state) {
    case FTL_MOUNTING:
        any |= ftl_mount_step(ftl);
        any |= refuse_while_held(ftl);
        break;
    case FTL_READY:
        if (__builtin_expect(ftl_power_is_failing(ftl), 0)) {
            any |= ftl_power_step(ftl);
            break;
        }
        if (__builtin_expect(ftl_is_adopting(ftl), 0)) {
            any |= ftl_keep_step(ftl);
            any |= refuse_while_held(ftl);
        } else {
            any |= ftl_io_step(ftl);
        }
        force_idle_buffer(ftl, deadline_us);
        any |= ftl_health_step(ftl);
        any |= ftl_capacity_step(ftl);
        any |= ftl_wear_step(ftl);
        any |= ftl_trim_restore_step(ftl);
        any |= ftl_scrub_step(ftl, deadline_us);
        if (!ftl_checkpoint_holds_collection(ftl)) {
            any |= ftl_collect_step(ftl);
        }
        any |= ftl_checkpoint_step(ftl);
        if (!ftl_checkpoint_holds_rows(ftl)) {
            any |= ftl_row_step(ftl);
        }
        any = any || note_full(ftl);
        break;
    case FTL_FAILED:
        any |= ftl_power_is_failing(ftl) ? ftl_power_step(ftl)
                                         : ftl_io_refuse(ftl);
        break;
    case FTL_WIPING:
        any |= ftl_power_is_failing(ftl) && ftl_power_step(ftl);
        break;
    }
    any |= ftl_rescue_step(ftl);
    return ftl_request_send_waiting(ftl) || any;
}

bool ftl_step(struct ftl *ftl, uint64_t now_us, uint64_t *deadline_us)
{
    bool any = false;

    ftl->now_us = now_us;
    if (ftl->has_work || now_us >= ftl->wake_us) {
        ftl->has_work = false;
        ftl->wake_us = UINT64_MAX;
        any = run_step(ftl, &ftl->wake_us);
        if (__builtin_expect(ftl_hold_is_waiting(ftl) || ftl_is_held(ftl), 0)) {
            ftl->wake_us = MIN(ftl->wake_us, ftl->retry_us);
        }
        ftl->has_work |= any;
        ftl->is_calm = is_calm(ftl);
    }
    *deadline_us = MIN(*deadline_us, ftl->wake_us);
    return any;
}

bool ftl_is_quiet(const struct ftl *ftl)
{
    return is_flash_quiet(ftl) && ftl->free_ops.count == ftl->config.num_ops;
}

bool ftl_is_flushed(const struct ftl *ftl)
{
    return !ftl_is_adopting(ftl) && ftl_slot_is_durable(ftl, ftl->accepted);
}

uint32_t ftl_operations(const struct ftl *ftl, uint32_t *all)
{
    *all = ftl->config.num_ops;
    return *all - ftl->free_ops.count;
}

uint32_t ftl_dead_dies(const struct ftl *ftl)
{
    return ftl->parity.num_dead;
}

bool ftl_die_is_dead(const struct ftl *ftl, uint32_t die)
{
    return ftl->parity.dead_dies[die];
}

uint32_t ftl_free_superblocks(const struct ftl *ftl)
{
    return ftl->free_superblocks;
}
