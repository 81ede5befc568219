/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long operations take, and the heap of the times at which they end.
 * Reference: docs/hardware/nand.md, section 6.
 *
 * READ     for each run of entries with the same wordline and page: the channel
 *          for a command to each plane; the die for the read, and again for
 *          each step of correction; the channel for the units of the run, and
 *          again for each step.  After the last run: decoding, for which
 *          neither die nor channel waits.
 * PROGRAM  the channel for a command to each page of each plane and for all
 *          units; the die.
 * ERASE    the channel for a command to each plane; the die, for the time of
 *          native mode unless all blocks are in SLC mode.
 *
 * A unit's transfer takes its share of the page's spare area with it.
 */
#include "hw-model/nand/hw_nand_internal.h"

/* ---- Durations */

static const struct nand_cell_mode *mode_of(const struct hw_nand *nand,
                                            const struct hw_nand_op *op)
{
    return nand_profile_mode(nand_array_profile(nand->array),
                             op->array_op->was_slc);
}

/* The channel's time for `units` units with their share of the spare area. */
static uint64_t transfer_ns(const struct hw_nand *nand, uint64_t units)
{
    const struct nand_profile *profile = nand_array_profile(nand->array);
    uint64_t unit_bytes = NAND_DATA_LEN + profile->spare_bytes / profile->units;

    return units * unit_bytes * 1000 / profile->channel_mbps;
}

/* The planes of the entries that the next read of the flash delivers. */
static uint8_t planes_of_read(const struct hw_nand_op *op)
{
    uint16_t end = hw_nand_read_end(op, op->cursor);
    uint8_t planes = 0;

    for (uint16_t i = op->cursor; i < end; i++) {
        planes |= (uint8_t)BIT(op->array_op->units[i].plane);
    }
    return planes;
}

static uint64_t commands_ns(const struct hw_nand *nand, unsigned int count)
{
    return (uint64_t)nand_array_profile(nand->array)->command_ns * count;
}

/* Microseconds, rounded up. */
static uint32_t to_us(uint64_t ns)
{
    return (uint32_t)MIN((ns + 999) / 1000, (uint64_t)UINT16_MAX);
}

uint32_t hw_nand_program_time(const struct hw_nand *nand)
{
    const struct nand_geometry *geometry = &nand->geometry;
    unsigned int pages = (unsigned int)geometry->planes * geometry->pages;
    const struct nand_profile *profile;
    uint64_t input_ns;

    if (nand->array == NULL || !nand->config.is_realtime) {
        return 0;
    }
    profile = nand_array_profile(nand->array);
    input_ns = commands_ns(nand, pages) +
               transfer_ns(nand, (uint64_t)pages * geometry->units) +
               profile->program_copy_ns;
    return FIELD_MAKE(NAND_PROGRAM_TIME, BUSY,
                      to_us(profile->native.program_ns)) |
           FIELD_MAKE(NAND_PROGRAM_TIME, TRANSFER, to_us(input_ns));
}

uint32_t hw_nand_other_times(const struct hw_nand *nand)
{
    const struct nand_cell_mode *mode;
    uint32_t read_ns = 0;

    if (nand->array == NULL || !nand->config.is_realtime) {
        return 0;
    }
    mode = &nand_array_profile(nand->array)->native;
    for (unsigned int i = 0; i < mode->pages; i++) {
        read_ns = MAX(read_ns, mode->read_ns[i]);
    }
    return FIELD_MAKE(NAND_OTHER_TIMES, ERASE, to_us(mode->erase_ns)) |
           FIELD_MAKE(NAND_OTHER_TIMES, READ, to_us(read_ns));
}

uint64_t hw_nand_input_ns(const struct hw_nand *nand,
                          const struct hw_nand_op *op)
{
    unsigned int planes = (unsigned int)__builtin_popcount(op->planes);

    if (!hw_nand_is_timed(nand)) {
        return 0;
    }
    if (op->opcode == NAND_CMD_READ) {
        planes = (unsigned int)__builtin_popcount(planes_of_read(op));
        return commands_ns(nand, planes);
    }
    if (op->opcode == NAND_CMD_PROGRAM) {
        /* One command for each page of each plane. */
        return commands_ns(nand, op->entries / nand->geometry.units) +
               transfer_ns(nand, op->entries);
    }
    return commands_ns(nand, planes);
}

uint16_t hw_nand_read_end(const struct hw_nand_op *op, uint16_t from)
{
    const struct nand_unit *units = op->array_op->units;
    uint16_t end = from;

    while (end < op->entries && units[end].wordline == units[from].wordline &&
           units[end].page == units[from].page) {
        end++;
    }
    return end;
}

/* The most steps beyond the first that the correction of a unit takes. */
static unsigned int most_steps(const struct hw_nand_op *op, uint16_t from,
                               uint16_t end)
{
    unsigned int steps = 0;

    for (uint16_t i = from; i < end; i++) {
        steps = MAX(steps, op->array_op->units[i].steps);
    }
    return steps;
}

uint64_t hw_nand_busy_ns(const struct hw_nand *nand,
                         const struct hw_nand_op *op)
{
    const struct nand_cell_mode *mode;
    uint16_t end;

    if (!hw_nand_is_timed(nand)) {
        return 0;
    }
    mode = mode_of(nand, op);
    if (op->opcode == NAND_CMD_PROGRAM) {
        return mode->program_ns;
    }
    if (op->opcode == NAND_CMD_ERASE) {
        return mode->erase_ns;
    }
    end = hw_nand_read_end(op, op->cursor);
    return (uint64_t)mode->read_ns[op->array_op->units[op->cursor].page] *
           (1 + most_steps(op, op->cursor, end));
}

uint64_t hw_nand_output_ns(const struct hw_nand *nand,
                           const struct hw_nand_op *op, uint16_t from)
{
    uint16_t end;
    uint64_t units = 0;

    if (!hw_nand_is_timed(nand)) {
        return 0;
    }
    end = hw_nand_read_end(op, from);
    for (uint16_t i = from; i < end; i++) {
        const struct nand_unit *unit = &op->array_op->units[i];

        units += unit->more ? 0 : 1u + unit->steps;
    }
    return transfer_ns(nand, units);
}

uint64_t hw_nand_decode_ns(const struct hw_nand *nand,
                           const struct hw_nand_op *op)
{
    const struct nand_profile *profile = nand_array_profile(nand->array);

    return hw_nand_is_timed(nand)
               ? profile->decode_ns + (uint64_t)profile->soft_decode_ns *
                                          most_steps(op, 0, op->entries)
               : 0;
}

/* ---- The heap: no timer ends before its parent */

static bool ends_before(const struct hw_nand *nand, uint32_t a, uint32_t b)
{
    const struct hw_nand_timer *first = &nand->timers[a];
    const struct hw_nand_timer *second = &nand->timers[b];

    return first->end_ns != second->end_ns ? first->end_ns < second->end_ns
                                           : first->serial < second->serial;
}

static void heap_set(struct hw_nand *nand, uint32_t at, uint32_t timer)
{
    nand->heap[at] = timer;
    nand->timers[timer].heap_at = at;
}

/* Put `timer` at the free place `at`, or further up. */
static void heap_rise(struct hw_nand *nand, uint32_t at, uint32_t timer)
{
    while (at > 0 && ends_before(nand, timer, nand->heap[(at - 1) / 2])) {
        heap_set(nand, at, nand->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_set(nand, at, timer);
}

/* Put `timer` at the free place `at`, or further down. */
static void heap_sink(struct hw_nand *nand, uint32_t at, uint32_t timer)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= nand->heap_count) {
            break;
        }
        if (child + 1 < nand->heap_count &&
            ends_before(nand, nand->heap[child + 1], nand->heap[child])) {
            child++;
        }
        if (ends_before(nand, timer, nand->heap[child])) {
            break;
        }
        heap_set(nand, at, nand->heap[child]);
        at = child;
    }
    heap_set(nand, at, timer);
}

void hw_nand_timers_init(struct hw_nand *nand)
{
    nand->heap_count = 0;
    for (uint32_t i = 0; i < HW_NAND_TIMERS; i++) {
        nand->timers[i].heap_at = HW_NAND_NONE;
    }
}

void hw_nand_timer_start(struct hw_nand *nand, uint32_t timer, uint64_t end_ns)
{
    ASSERT(nand->timers[timer].heap_at == HW_NAND_NONE);
    nand->timers[timer].end_ns = end_ns;
    nand->timers[timer].serial = nand->serial++;
    heap_rise(nand, nand->heap_count++, timer);
}

void hw_nand_timer_stop(struct hw_nand *nand, uint32_t timer)
{
    uint32_t at = nand->timers[timer].heap_at;
    uint32_t last;

    ASSERT(at != HW_NAND_NONE);
    nand->timers[timer].heap_at = HW_NAND_NONE;
    last = nand->heap[--nand->heap_count];
    if (last == timer) {
        return;
    }
    if (at > 0 && ends_before(nand, last, nand->heap[(at - 1) / 2])) {
        heap_rise(nand, at, last);
    } else {
        heap_sink(nand, at, last);
    }
}

void hw_nand_timers_run(struct hw_nand *nand, uint64_t now_ns)
{
    while (nand->heap_count > 0 &&
           nand->timers[nand->heap[0]].end_ns <= now_ns) {
        uint32_t timer = nand->heap[0];

        hw_nand_timer_stop(nand, timer);
        if (timer < HW_NAND_REGISTERS) {
            uint64_t end_ns = hw_nand_now_ns(nand);

            /* A reset or a stop ends what is due later, now. */
            end_ns = MIN(end_ns, nand->timers[timer].end_ns);
            hw_nand_register_elapsed(nand, timer, end_ns);
            hw_nand_dies_run(nand);
        } else {
            hw_nand_command_end(nand, &nand->ops[timer - HW_NAND_REGISTERS]);
        }
    }
}
