/* SPDX-License-Identifier: BSD-2-Clause */
/* The NAND controller's registers and state: see hw_nand.h. */
#include "hw-model/nand/hw_nand_internal.h"

#include <string.h>

_Static_assert((int)HW_NAND_QUEUES == NAND_QUEUES, "see hw_nand.h");
_Static_assert((int)HW_NAND_OPS == NAND_COMMANDS_MAX, "see hw_nand.h");
_Static_assert((int)HW_NAND_COUNTERS == NAND_COUNTERS, "see hw_nand.h");
_Static_assert((int)HW_NAND_CHANNELS == NAND_CHANNELS_MAX, "see hw_nand.h");
_Static_assert((int)HW_NAND_DIES == NAND_CHANNELS_MAX * NAND_DIES_MAX,
               "see hw_nand.h");
_Static_assert((int)HW_NAND_PLANES == NAND_PLANES_MAX, "see hw_nand.h");
_Static_assert((int)NAND_OP_PLANES == NAND_PLANES_MAX, "see nand_array.h");
_Static_assert((int)NAND_OP_UNITS == NAND_READ_ENTRIES_MAX, "see nand_array.h");

/* ---- Entries into the core */

static bool array_is_quiet(const struct hw_nand *nand)
{
    return nand->array == NULL || nand_array_is_quiet(nand->array);
}

/* The array's storage is up to date, or could not be written. */
static void end_sync(void *ctx, bool success)
{
    struct hw_nand *nand = ctx;

    nand->is_syncing = false;
    nand->is_synced = true;
    nand->sync_failed = !success;
}

static void start_sync(struct hw_nand *nand)
{
    nand->is_syncing = true;
    if (nand->array == NULL ||
        nand_array_sync(nand->array, hw_nand_now_ns(nand))) {
        end_sync(nand, true);
    }
}

static void set_timer(struct hw_nand *nand)
{
    const struct dev_env *env = &nand->config.env;
    uint64_t deadline_ns = nand->heap_count > 0
                               ? nand->timers[nand->heap[0]].end_ns
                               : DEV_NO_DEADLINE;

    if (deadline_ns != nand->deadline_ns) {
        nand->deadline_ns = deadline_ns;
        env->set_timer(env->ctx, deadline_ns);
    }
}

/* Called at the end of every entry into the core. */
static void leave_core(struct hw_nand *nand)
{
    hw_nand_dies_run(nand);
    if (nand->active_ops == 0) {
        if (nand->is_resetting) {
            nand->is_resetting = false;
            hw_nand_defer(nand);
        }
        if (nand->is_stopped && !nand->is_syncing && !nand->is_synced &&
            array_is_quiet(nand)) {
            start_sync(nand);
        }
    }
    hw_nand_queues_leave(nand);
    set_timer(nand);
}

void hw_nand_run(struct hw_nand *nand)
{
    hw_nand_timers_run(nand, hw_nand_now_ns(nand));
    hw_nand_queues_run(nand);
    leave_core(nand);
}

void hw_nand_timer(struct hw_nand *nand)
{
    nand->deadline_ns = DEV_NO_DEADLINE;
    hw_nand_timers_run(nand, hw_nand_now_ns(nand));
    leave_core(nand);
}

void hw_nand_io_done(struct hw_nand *nand, uint32_t id, int result)
{
    nand_array_io_done(nand->array, id, result);
    leave_core(nand);
}

/* ---- Power-on, reset, stop */

void hw_nand_init(struct hw_nand *nand, const struct hw_nand_config *config)
{
    memset(nand, 0, sizeof(*nand));
    nand->config = *config;
    if (nand->config.trace == NULL) {
        nand->config.trace = &trace_off;
    }
    nand->deadline_ns = DEV_NO_DEADLINE;
    nand->free_op = HW_NAND_NONE;
    for (uint32_t i = HW_NAND_OPS; i-- > 0;) {
        nand->ops[i].next = nand->free_op;
        nand->free_op = i;
    }
    hw_nand_dies_init(nand);
    hw_nand_timers_init(nand);
}

/* A die has at most one operation in each of its two registers and a suspended
 * one.  If operations take no time, it can instead have more reads. */
static unsigned int array_ops(const struct nand_geometry *geometry)
{
    return 3 * nand_geometry_dies(geometry) + HW_NAND_MORE_READS;
}

size_t hw_nand_array_bytes(const struct nand_geometry *geometry)
{
    return nand_array_memory_bytes(geometry, array_ops(geometry));
}

uint32_t hw_nand_io_ids(const struct nand_geometry *geometry)
{
    return nand_array_io_ids(array_ops(geometry));
}

bool hw_nand_attach(struct hw_nand *nand, const struct nand_file *file,
                    const struct nand_backend *backend, void *memory,
                    const struct nand_file_source *source,
                    struct nand_file_failure *failure)
{
    nand->array = nand_array_open(
        &(struct nand_array_config){
            .backend = *backend,
            .file = file,
            .nonce = nand->config.nonce,
            .num_ops = array_ops(&file->geometry),
            .memory = memory,
            .ctx = nand,
            .started = hw_nand_die_served,
            .finished = hw_nand_die_served,
            .synced = end_sync,
        },
        source, failure);
    if (nand->array == NULL) {
        return false;
    }
    nand->geometry = *nand_array_geometry(nand->array);
    nand->num_dies = nand_geometry_dies(&nand->geometry);
    return true;
}

void hw_nand_reset(struct hw_nand *nand)
{
    for (unsigned int q = 0; q < NAND_QUEUES; q++) {
        hw_nand_queue_abandon(nand, q);
    }
    memset(&nand->regs, 0, sizeof(nand->regs));
    hw_nand_update_irq(nand);
    nand->is_starved = false;
    if (nand->active_ops > 0) {
        nand->is_resetting = true;
        hw_nand_dies_reset(nand);
        hw_nand_timers_run(nand, UINT64_MAX);
        leave_core(nand);
    }
}

bool hw_nand_has_dma(const struct hw_nand *nand)
{
    return nand->active_ops > 0;
}

void hw_nand_quiesce(struct hw_nand *nand)
{
    nand->is_stopped = true;
    nand->is_synced = false;
    hw_nand_timers_run(nand, UINT64_MAX);
    leave_core(nand);
}

void hw_nand_resume(struct hw_nand *nand)
{
    nand->is_stopped = false;
    hw_nand_defer(nand);
}

bool hw_nand_is_quiet(const struct hw_nand *nand)
{
    return nand->active_ops == 0 && nand->is_synced && array_is_quiet(nand);
}

/* ---- Registers */

static uint32_t read_counter(struct hw_nand *nand, uint32_t word)
{
    uint64_t counter = nand->regs.counters[word / 2];

    if (word % 2 == 1) {
        return nand->regs.counter_high;
    }
    nand->regs.counter_high = (uint32_t)(counter >> 32);
    return (uint32_t)counter;
}

static uint32_t read_limits(void)
{
    return FIELD_MAKE(NAND_LIMITS, QUEUES, NAND_QUEUES) |
           FIELD_MAKE(NAND_LIMITS, ENTRIES, NAND_READ_ENTRIES_MAX) |
           FIELD_MAKE(NAND_LIMITS, COMMANDS, NAND_COMMANDS_MAX);
}

/* Without an array all of these are 0. */
static uint32_t read_geometry(const struct hw_nand *nand, uint32_t offset)
{
    const struct nand_geometry *geometry = &nand->geometry;
    const struct nand_profile *profile =
        nand->array != NULL ? nand_array_profile(nand->array) : NULL;

    switch (offset) {
    case A_NAND_GEOMETRY0:
        return FIELD_MAKE(NAND_GEOMETRY0, CHANNELS, geometry->channels) |
               FIELD_MAKE(NAND_GEOMETRY0, DIES, geometry->dies) |
               FIELD_MAKE(NAND_GEOMETRY0, PLANES, geometry->planes) |
               FIELD_MAKE(NAND_GEOMETRY0, UNITS, geometry->units);
    case A_NAND_GEOMETRY1:
        return FIELD_MAKE(NAND_GEOMETRY1, BLOCKS, geometry->blocks) |
               FIELD_MAKE(NAND_GEOMETRY1, WORDLINES, geometry->wordlines);
    case A_NAND_GEOMETRY2:
        return FIELD_MAKE(NAND_GEOMETRY2, PAGES, geometry->pages) |
               FIELD_MAKE(NAND_GEOMETRY2, QUEUES,
                          nand->array != NULL && nand->config.queues_programs);
    case A_NAND_ENDURANCE:
        return profile != NULL ? profile->native.endurance : 0;
    case A_NAND_PROGRAM_TIME:
        return hw_nand_program_time(nand);
    case A_NAND_OTHER_TIMES:
        return hw_nand_other_times(nand);
    default: /* NAND_ECC */
        return profile != NULL
                   ? FIELD_MAKE(NAND_ECC, HARD_BITS, profile->bits[0]) |
                         FIELD_MAKE(NAND_ECC, STEPS, profile->steps)
                   : 0;
    }
}

bool hw_nand_read(struct hw_nand *nand, uint32_t offset, uint32_t *value)
{
    if (hw_nand_is_queue_offset(offset)) {
        return hw_nand_queue_read(nand, offset, value);
    }
    if (offset >= NAND_COUNTER_BASE &&
        offset < NAND_COUNTER_BASE + 8 * NAND_COUNTERS) {
        *value = read_counter(nand, (offset - NAND_COUNTER_BASE) / 4);
        return true;
    }
    switch (offset) {
    case A_NAND_ID:
        *value = NAND_ID_VALUE;
        return true;
    case A_NAND_LIMITS:
        *value = read_limits();
        return true;
    case A_NAND_CTRL:
        *value = FIELD_MAKE(NAND_CTRL, RESET, nand->is_resetting);
        return true;
    case A_NAND_IRQ_STATUS:
        *value = nand->regs.irq_status;
        return true;
    case A_NAND_IRQ_ENABLE:
        *value = nand->regs.irq_enable;
        return true;
    case A_NAND_GEOMETRY0:
    case A_NAND_GEOMETRY1:
    case A_NAND_GEOMETRY2:
    case A_NAND_ENDURANCE:
    case A_NAND_ECC:
    case A_NAND_PROGRAM_TIME:
    case A_NAND_OTHER_TIMES:
        *value = read_geometry(nand, offset);
        return true;
    default:
        *value = 0;
        return false;
    }
}

bool hw_nand_write(struct hw_nand *nand, uint32_t offset, uint32_t value)
{
    if (hw_nand_is_queue_offset(offset)) {
        return hw_nand_queue_write(nand, offset, value);
    }
    switch (offset) {
    case A_NAND_CTRL:
        if (FIELD_GET(value, NAND_CTRL, RESET)) {
            hw_nand_reset(nand);
        }
        return true;
    case A_NAND_IRQ_STATUS:
        nand->regs.irq_status &= ~value;
        hw_nand_update_irq(nand);
        return true;
    case A_NAND_IRQ_ENABLE:
        nand->regs.irq_enable = value & R_NAND_IRQ_STATUS_QUEUE_MASK;
        hw_nand_update_irq(nand);
        return true;
    case A_NAND_MOVE:
        hw_nand_move(nand, value);
        return true;
    default:
        return false;
    }
}

/* ---- Load */

bool hw_nand_loaded(struct hw_nand *nand)
{
    for (unsigned int q = 0; q < NAND_QUEUES; q++) {
        if (!dev_queue_is_valid(&nand->regs.queues[q], &nand->config.env,
                                NAND_CMD_LEN)) {
            return false;
        }
        nand->outstanding[q] = 0;
    }
    if (nand->active_ops != 0) {
        return false;
    }
    hw_nand_update_irq(nand);
    hw_nand_defer(nand);
    return true;
}
