/* SPDX-License-Identifier: BSD-2-Clause */
#include "storage/ftl/io/ftl_whole_units.h"
#include "storage/ftl/io/io_floor.h"

#include "storage/ftl/map/ftl_memory.h"

#include <string.h>

/* Units that the list of moves, and the list of filled slots, have room for. */
static uint32_t room_for_units(struct ftl_io_floor *ftl)
{
    const struct ftl_moves *moves = ftl->config.flash.moves;

    if (moves->count == moves->max || ftl->num_filled == FTL_FILLED) {
        ftl_memory_run_now(&ftl->map_floor);
    }
    return MIN(moves->max - moves->count, FTL_FILLED - ftl->num_filled);
}

/* Whether new contents of a unit take a slot of their own. */
static inline bool takes_new_slot(const struct ftl_io_floor *ftl,
                                  uint32_t entry)
{
    return !ftl_is_in_slot(entry) ||
           ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_PROGRAMMING;
}

/* How many units from a number on may be written at once: the current piece
 * has them, and each takes a slot of its own. */
static uint32_t find_run(const struct ftl_io_floor *ftl,
                         const struct ftl_op *op, uint32_t number,
                         uint32_t most)
{
    uint32_t left = op->next.piece->len_bytes - op->next.offset;
    uint32_t count = 0;

    most = MIN(most, left / FTL_UNIT_DATA);
    while (count < most && takes_new_slot(ftl, ftl->map[number + count])) {
        count++;
    }
    return count;
}

static inline void set_before(struct ftl_io_floor *ftl, uint16_t index,
                              uint32_t entry)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];

    if (ftl_is_in_slot(entry)) {
        slot->follows = (uint16_t)entry;
    } else if (entry != FTL_NOWHERE) {
        slot->old_place = entry;
    }
    ftl_slot_clear_meta(&ftl->buffer, index);
}

void ftl_slot_set_before(struct ftl_io_floor *ftl, uint16_t index,
                         uint32_t entry)
{
    set_before(ftl, index, entry);
}

/* Write units from the current piece into slots that were taken. */
static void fill_slots(struct ftl_io_floor *ftl, struct ftl_op *op,
                       uint32_t number, const uint16_t *taken, uint32_t count)
{
    const uint8_t *from =
        (const uint8_t *)op->next.piece->ptr + op->next.offset;

    struct ftl_moves *moves = ftl->config.flash.moves;
    struct ftl_move *move = &moves->list[moves->count];
    struct ftl_buffer buffer = ftl->buffer;
    uint64_t accepted = ftl->accepted;
    uint32_t *map = &ftl->map[number];

    for (uint32_t i = 0; i < count; i++, move++, from += FTL_UNIT_DATA) {
        uint16_t index = taken[i];
        struct ftl_slot *slot = &buffer.slots[index];

        ftl_slot_begin(&buffer, FTL_POOL_HOST, index, number + i);
        set_before(ftl, index, map[i]);
        slot->state = FTL_SLOT_WAITING;
        slot->accepted = ++accepted;
        ftl_memory_describe(moves, move, FTL_MOVE_COPY,
                            ftl_slot_data(&buffer, index), from, FTL_UNIT_DATA);
        map[i] = FTL_IN_SLOT | index;
    }
    memcpy(&ftl->filled[ftl->num_filled], taken, count * sizeof(taken[0]));
    ftl->num_filled += count;
    moves->count += count;
    ftl->accepted = accepted;
    ftl->buffer.last_accept_us = ftl->now_us;
    ftl_list_append_all(&ftl->buffer.dirty[FTL_POOL_HOST], taken, count);
    ftl_list_append_all(&ftl->buffer.waiting[FTL_POOL_HOST], taken, count);
    op->next.offset += count * FTL_UNIT_DATA;
    op->next_sector += count * FTL_UNIT_SECTORS;
    ftl->counters.host_units += count;
}

uint32_t ftl_write_whole_units(struct ftl_io_floor *ftl, struct ftl_op *op,
                               uint32_t most)
{
    uint16_t taken[FTL_FILLED];
    uint32_t count, done = 0;

    if (op->io.op != MEDIA_WRITE || op->io.protection != 0 || ftl->has_marks ||
        op->next_sector % FTL_UNIT_SECTORS != 0) {
        return 0;
    }
    do {
        uint32_t number = (uint32_t)(op->next_sector / FTL_UNIT_SECTORS);
        uint64_t left = (op->end_sector - op->next_sector) / FTL_UNIT_SECTORS;

        if (left == 0 || done == most) {
            break;
        }
        ftl_cursor_pass_end(&op->next);
        count = MIN(most - done, (uint32_t)MIN(left, (uint64_t)FTL_FILLED));
        count = find_run(ftl, op, number, MIN(count, room_for_units(ftl)));
        count = ftl_list_pop_all(&ftl->buffer.free_slots[FTL_POOL_HOST], taken,
                                 count);
        /* A write that changes only slots that wait already must not keep the
         * others in DRAM: the buffer counts as left alone. */
        if (count != 0) {
            fill_slots(ftl, op, number, taken, count);
            done += count;
        }
    } while (count != 0);
    return done;
}
