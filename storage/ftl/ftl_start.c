/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of the translation layer, and its memory. */
#include "storage/ftl/background/background.h"
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/io/io.h"
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/state.h"

#include <string.h>

enum { MEMORY_ALIGN = 64 };

/* Hand out the next part of the owner's memory; `base` NULL: only count. */
static void *carve_memory(uint8_t *base, size_t *used, size_t len)
{
    size_t at = *used;

    *used += (len + MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
    return base == NULL ? NULL : base + at;
}

/* `base` NULL: only count. */
#define CARVE(used, member, count)                                             \
    ftl->member = carve_memory(base, used, (count) * sizeof(*ftl->member))

/* The memory of the sums of stripes, and of what rebuilds units. */
static void divide_parity(struct ftl *ftl, uint8_t *base, size_t *used)
{
    const struct ftl_layout *layout = &ftl->layout;
    size_t units = layout->row_units;
    size_t data = units * FTL_UNIT_DATA, meta = units * FTL_UNIT_META;

    CARVE(used, dies.is_dead, (size_t)layout->geometry.dies);
    CARVE(used, dies.is_recorded, (size_t)layout->geometry.dies);
    if (layout->has_parity) {
        for (unsigned int i = 0; i < FTL_ACCUMULATORS; i++) {
            struct ftl_accumulator *sum = &ftl->parity.accumulators[i];

            CARVE(used, parity.accumulators[i].members,
                  (size_t)layout->geometry.dies);
            CARVE(used, parity.accumulators[i].data,
                  data + meta + units * FTL_UNIT_SYSTEM);
            if (base != NULL) {
                sum->meta = sum->data + data;
                sum->system = (void *)(sum->meta + meta);
            }
        }
        for (unsigned int i = 0; i < FTL_RESCUES; i++) {
            CARVE(used, parity.rescues[i].members,
                  (size_t)layout->geometry.dies);
            CARVE(used, parity.rescues[i].data, units * FTL_UNIT_DATA);
            CARVE(used, parity.rescues[i].meta, units * FTL_UNIT_META);
            CARVE(used, parity.rescues[i].system, units);
            CARVE(used, parity.rescues[i].read_data, units * FTL_UNIT_DATA);
            CARVE(used, parity.rescues[i].read_meta, units * FTL_UNIT_META);
            CARVE(used, parity.rescues[i].read_system, units);
        }
    }
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
    /* A wipe keeps the contents of these arrays for the start after it, which
     * may have another capacity.  So they come before all arrays whose size
     * depends on the capacity. */
    CARVE(&used, factory_planes, planes);
    CARVE(&used, wiped_failed, planes);
    CARVE(&used, wiped_wear, (size_t)layout->superblocks);
    CARVE(&used, map, (size_t)ftl->entries);
    CARVE(&used, valid, (size_t)layout->places / 8 + 1);
    CARVE(&used, lost_rows, (size_t)ftl->trim_pages);
    CARVE(&used, failed_planes, planes);
    CARVE(&used, bad_planes, planes);
    CARVE(&used, health_changed, (size_t)ftl->health_pages);
    CARVE(&used, wear, (size_t)layout->superblocks);
    CARVE(&used, superblocks, (size_t)layout->superblocks);
    CARVE(&used, buffer.slots, (size_t)ftl->buffer.num_slots);
    CARVE(&used, pad, (size_t)FTL_UNIT_DATA);
    CARVE(&used, sums, 1);
    CARVE(&used, buffer.wait_links, (size_t)ftl->buffer.num_slots);
    CARVE(&used, buffer.dirty_links, (size_t)ftl->buffer.num_slots);
    CARVE(&used, ops.requests, (size_t)config->num_requests);
    CARVE(&used, ops.request_links, (size_t)config->num_requests);
    CARVE(&used, io.ops, (size_t)config->num_ops);
    CARVE(&used, io.op_links, (size_t)config->num_ops);
    CARVE(&used, mount.versions, (size_t)ftl->entries);
    CARVE(&used, mount.row_numbers,
          (size_t)layout->superblocks * layout->superblock_rows);
    CARVE(&used, mount.probes, planes * layout->geometry.planes);
    CARVE(&used, checkpoint.table, (size_t)layout->superblocks);
    CARVE(&used, checkpoint.planes, planes);
    CARVE(&used, checkpoint.is_taken,
          (size_t)ftl_checkpoint_pieces(&ftl->background_floor) / 8 + 1);
    CARVE(&used, checkpoint.data,
          (size_t)ftl_checkpoint_rows(layout) * units * FTL_UNIT_DATA);
    CARVE(&used, mounting.used_planes, planes);
    CARVE(&used, mounting.partial_planes, planes);
    CARVE(&used, mount.ignored, (size_t)layout->places / 8 + 1);
    CARVE(&used, mounting.unreadable, (size_t)layout->places / 8 + 1);
    CARVE(&used, mounting.page, (size_t)FTL_UNIT_DATA + FTL_UNIT_META);
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        CARVE(&used, streams[i].die_rows,
              (size_t)FTL_DIE_ROWS * layout->geometry.dies);
    }
    divide_parity(ftl, base, &used);
    return used;
}
#undef CARVE

/* What follows from the configuration. @return false when it does not fit */
static bool set_sizes(struct ftl *ftl, const struct ftl_config *config)
{
    ftl->config = *config;
    if (config->trace == NULL) {
        ftl->config.trace = &trace_off;
    }
    ftl->victims = ftl_find_victim_policy(config->victims);
    ftl->levelling = ftl_find_levelling_policy(config->levelling);
    ftl->streaming = ftl_find_stream_policy(config->streams);
    if (ftl->victims == NULL || ftl->levelling == NULL ||
        ftl->streaming == NULL ||
        !ftl_layout_init(&ftl->layout, &config->geometry) ||
        config->logical_units == 0 ||
        config->logical_units > ftl_most_units(config) ||
        config->buffer_units < 2 * ftl->layout.row_units ||
        config->num_ops == 0 || config->num_requests == 0) {
        return false;
    }
    ftl->num_streams = FTL_MOVED_STREAM + ftl->streaming->moved;
    ftl_set_entries(&ftl->pages_floor);
    ftl->ops.num_requests = config->num_requests;
    ftl->ops.kept_requests = MIN(config->num_requests / 2U,
                                 ftl->num_streams * config->geometry.dies +
                                     (uint32_t)FTL_CHECKPOINT_ROWS);
    return ftl->buffer.num_slots < FTL_LIST_END &&
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
    ftl_set_entries(&ftl.pages_floor);
    return ftl_checkpoint_pieces(&ftl.background_floor) <=
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

    return set_sizes(&ftl, config) ? ftl_keep_divide(&ftl.map_floor, NULL) : 0;
}

static void start_next(struct ftl *ftl)
{
    ftl_io_start_next(&ftl->io_floor);
}

static void init_lists(struct ftl *ftl)
{
    ftl_init_slots(&ftl->pages_floor);
    ftl_list_init(&ftl->ops.free_requests, ftl->ops.request_links);
    ftl_list_init(&ftl->ops.unsent, ftl->ops.request_links);
    ftl_list_init(&ftl->hold.held, ftl->ops.request_links);
    ftl_list_init(&ftl->parity.waiting, ftl->ops.request_links);
    for (uint16_t i = 0; i < ftl->config.num_requests; i++) {
        struct ftl_request *request = &ftl->ops.requests[i];

        request->kind = FTL_REQUEST_FREE;
        request->flash.cookie = i;
        request->flash.units = request->units;
        ftl_list_append(&ftl->ops.free_requests, i);
    }
    ftl_list_init(&ftl->io.free_ops, ftl->io.op_links);
    ftl_list_init(&ftl->io.reads, ftl->io.op_links);
    ftl_list_init(&ftl->io.changes, ftl->io.op_links);
    ftl_list_init(&ftl->io.trims, ftl->io.op_links);
    ftl_list_init(&ftl->io.filling, ftl->io.op_links);
    ftl_list_init(&ftl->io.moving, ftl->io.op_links);
    ftl_list_init(&ftl->io.barriers, ftl->io.op_links);
    ftl->io.start_next = start_next;
    for (uint16_t i = 0; i < ftl->config.num_ops; i++) {
        ftl->io.ops[i].state = FTL_OP_FREE;
        ftl_list_append(&ftl->io.free_ops, i);
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
    (void)ftl_keep_divide(&ftl->map_floor, config->keep);
    planes = (size_t)ftl->layout.superblocks * config->geometry.dies;
    ftl->state = FTL_MOUNTING;
    ftl->is_volatile = true;
    memset(ftl->pad, 0, FTL_UNIT_DATA);
    ftl_system_sums_init(ftl->sums);
    memmove(ftl->factory_planes, config->bad_planes, planes);
    memcpy(ftl->bad_planes, config->bad_planes, planes);
    memset(ftl->failed_planes, 0, planes);
    memset(ftl->health_changed, 0, ftl->health_pages);
    memset(ftl->wear, 0, ftl->layout.superblocks * sizeof(ftl->wear[0]));
    memset(ftl->superblocks, 0,
           ftl->layout.superblocks * sizeof(ftl->superblocks[0]));
    for (uint32_t i = 0; i < ftl->num_streams; i++) {
        ftl->streams[i].superblock = FTL_NOWHERE;
        memset(ftl->streams[i].die_rows, 0,
               (size_t)FTL_DIE_ROWS * config->geometry.dies *
                   sizeof(ftl->streams[i].die_rows[0]));
    }
    memset(ftl->dies.is_dead, 0, config->geometry.dies);
    memset(ftl->dies.is_recorded, 0, config->geometry.dies);
    for (unsigned int i = 0; i < FTL_RESCUES; i++) {
        ftl->parity.rescues[i].request = FTL_LIST_END;
    }
    init_lists(ftl);
    if (!config->is_capacity_estimated) {
        ftl_keep_start(&ftl->background_floor); /* With an estimate, its place
                                                   is not known yet. */
    }
    ftl->has_work = true;
    ftl_mount_begin(&ftl->mount_floor);
    return ftl;
}
