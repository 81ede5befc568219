/* SPDX-License-Identifier: BSD-2-Clause */
/* The map, and the slots of the write buffer. */
#ifndef ESSD_FTL_MAP_H
#define ESSD_FTL_MAP_H

#include "storage/ftl/map/map_floor.h"

/* ---- ftl_map.c: some functions take an entry of the map for a place */
static inline bool ftl_map_is_valid(const struct ftl_map_floor *ftl,
                                    uint32_t place)
{
    return (ftl->valid[place / 8] & BIT(place % 8)) != 0;
}

static inline void ftl_map_set_valid(struct ftl_map_floor *ftl, uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    ASSERT(!ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].valid++;
}

/** @param entry  may name no place */
static inline void ftl_map_clear_valid(struct ftl_map_floor *ftl,
                                       uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);
    struct ftl_superblock *superblock;

    if (place == FTL_NOWHERE) {
        return;
    }
    ASSERT(ftl_map_is_valid(ftl, place));
    ftl->valid[place / 8] &= (uint8_t)~BIT(place % 8);
    superblock = &ftl->superblocks[ftl_place_superblock(&ftl->layout, place)];
    superblock->valid--;
    if (superblock->valid == 0) {
        ftl->has_emptied = true;
    }
}

/** Whether an entry of the map, or a slot that follows it, names a place. */
bool ftl_map_names(const struct ftl_map_floor *ftl, uint32_t number,
                   uint32_t place);
/** Whether the map names a place for the unit with these system bytes. */
bool ftl_map_expects(const struct ftl_map_floor *ftl,
                     const struct ftl_request *request, uint32_t entry,
                     uint32_t place, const struct ftl_system *system);
/** Note that a trim has made a place invalid. @param entry  may name no place
 */
void ftl_map_trim_place(struct ftl_map_floor *ftl, uint32_t entry);

/* ---- ftl_slot.c */
/** @return FTL_LIST_END when the pool has no free slot */
uint16_t ftl_slot_take(struct ftl_buffer *buffer, enum ftl_pool pool,
                       uint32_t number);
/** Describe a slot for new contents.  The caller has taken it out of the list
 * of free ones. */
static inline void ftl_slot_begin(struct ftl_buffer *buffer, enum ftl_pool pool,
                                  uint16_t index, uint32_t number)
{
    buffer->slots[index] = (struct ftl_slot){
        .pool = (uint8_t)pool,
        .buffer = buffer->slots[index].buffer,
        .follows = FTL_LIST_END,
        .number = number,
        .old_place = FTL_NOWHERE,
    };
}

void ftl_slot_free(struct ftl_buffer *buffer, uint16_t index);
static inline uint8_t *ftl_slot_data(const struct ftl_buffer *buffer,
                                     uint16_t index)
{
    return buffer->data + (size_t)buffer->slots[index].buffer * FTL_UNIT_DATA;
}

static inline uint8_t *ftl_slot_meta(const struct ftl_buffer *buffer,
                                     uint16_t index)
{
    return buffer->meta + (size_t)buffer->slots[index].buffer * FTL_UNIT_META;
}

/** Fill the slot's metadata with bytes of FFh: there is none. */
static inline void ftl_slot_clear_meta(const struct ftl_buffer *buffer,
                                       uint16_t index)
{
    uint64_t *meta = (void *)ftl_slot_meta(buffer, index);

    for (unsigned int i = 0; i < FTL_UNIT_META / sizeof(*meta); i++) {
        meta[i] = UINT64_MAX;
    }
}

/** Whether the old contents of a unit are being read into its slot.
 * @param entry  of the map */
static inline bool ftl_is_filling(const struct ftl_map_floor *ftl,
                                  uint32_t entry)
{
    return ftl_is_in_slot(entry) &&
           ftl->buffer.slots[(uint16_t)entry].state == FTL_SLOT_FILLING;
}

/** The slot's contents are what the unit has from now on.  The caller puts the
 * slot into the lists of slots that wait and are not durable. */
static inline void ftl_slot_note_waiting(struct ftl_map_floor *ftl,
                                         uint16_t index)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];

    slot->state = FTL_SLOT_WAITING;
    slot->accepted = ++ftl->accepted;
    ftl->buffer.last_accept_us = ftl->now_us;
    ftl->map[slot->number] = FTL_IN_SLOT | index;
}

/** The same; and put the slot into the lists. */
void ftl_slot_accept(struct ftl_map_floor *ftl, uint16_t index);
/** The same as ftl_slot_accept(), but for contents that an entry describes
 * already, because they were accepted before a reset. */
void ftl_slot_await(struct ftl_map_floor *ftl, uint16_t index);
/** The contents of a unit, which are in a slot, are trimmed.
 * @param page  the slot of the unit's trim page, which waits */
void ftl_slot_trim(struct ftl_map_floor *ftl, uint16_t index, uint16_t page);
/** A slot is on flash. */
void ftl_slot_programmed(struct ftl_map_floor *ftl, uint16_t index,
                         uint32_t place);
/**
 * Do the same as ftl_slot_programmed() for slots of a row, from its end, up to
 * the first unit that is not of the usual kind.
 *
 * @param left  so many units of the row are left
 * @return so many of them are still left
 */
uint32_t ftl_slot_row_programmed(struct ftl_map_floor *ftl,
                                 const struct ftl_request *request,
                                 uint32_t left);
/** The row of a slot has failed. */
void ftl_slot_not_programmed(struct ftl_map_floor *ftl, uint16_t index);
/** A word of a unit that is moved was lost in DRAM: free the slot.  The unit is
 * read again later. */
void ftl_slot_drop_move(struct ftl_map_floor *ftl, uint16_t index);
/**
 * Give a waiting slot the spare buffer, before a write changes its contents.
 * @param keeps_data  the write replaces only a part of the data, so copy it
 */
void ftl_slot_renew(struct ftl_map_floor *ftl, uint16_t index, bool keeps_data);
/** Whether a slot waits whose row may have failed. */
bool ftl_slot_is_urgent(const struct ftl_buffer *buffer);
/** Whether all that was accepted up to a number is in flash. */
bool ftl_slot_is_durable(const struct ftl_buffer *buffer, uint64_t accepted);
/** The same, for the slots of one pool. */
bool ftl_slot_is_pool_durable(const struct ftl_buffer *buffer,
                              enum ftl_pool pool, uint64_t accepted);

/* ---- ftl_marks.c: blocks that a host has marked as unreadable */
/** The memory to which the next unit of a request is to deliver its system
 * bytes; NULL while no unit has marks. */
static inline uint8_t *ftl_marks_read(const struct ftl_map_floor *ftl,
                                      struct ftl_request *request)
{
    return __builtin_expect(ftl->has_marks, 0)
               ? request->system[request->flash.num_units]
               : NULL;
}
/** The marks of a good unit that was read. */
uint8_t ftl_marks_of(const struct ftl_flash_unit *unit);
/** Set the status of a read that needs a part of a unit with these marks. */
void ftl_marks_check(struct ftl_op *op, uint8_t marks, uint32_t offset,
                     uint32_t length);
/** Check the marks of the good units that the request of a read has read. */
void ftl_marks_read_done(struct ftl_op *op, const struct ftl_request *request);
/** Change the marks in a slot, because a host writes or marks a part of it. */
void ftl_marks_write(struct ftl_map_floor *ftl, const struct ftl_op *op,
                     uint16_t slot, uint32_t offset, uint32_t length);

/* ---- ftl_waiting.c */
/** Whether writes, trims or flushes wait. */
bool ftl_waiting_is_any(const struct ftl_io *io);
/** What was accepted up to now must be durable before a barrier is. */
void ftl_waiting_raise_barriers(struct ftl_map_floor *ftl);
/** Whether no operation of the flash is in progress.  Those that are held do
 * not count. */
bool ftl_is_flash_quiet(const struct ftl_map_floor *ftl);

/* ---- ftl_victim.c */
/** Whether the victim has been read to its end: a row takes what is left of it,
 * even if this does not fill the row. */
bool ftl_victim_is_at_end(const struct ftl_map_floor *ftl);
/** The stream that takes the valid units of the victim. */
uint32_t ftl_victim_stream(const struct ftl_map_floor *ftl);
/** Whether the next victim waits until trims are durable. */
bool ftl_victim_waits_for_trims(const struct ftl_map_floor *ftl);
/** Whether the trims that have made units of a superblock invalid are durable.
 */
bool ftl_victim_has_durable_trims(const struct ftl_map_floor *ftl,
                                  uint32_t superblock);

#endif
