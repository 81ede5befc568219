/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots: units in DRAM that are on their way to the flash.
 *
 * A unit may have several slots: the newest, which writes may change while it
 * waits, and older ones, which are being programmed.  Each names the next older
 * one in `follows`.  Rows complete in any order.  What counts after a power cut
 * is the order in which they were put together.
 *
 * The contents on flash that a slot replaces stay valid until this slot or a
 * newer one of the unit is durable.  So garbage collection, which moves all
 * that is valid, never erases what a power cut may need, and does not depend on
 * the write buffer.
 */
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/ftl_memory.h"
#include "storage/ftl/map/map.h"

uint16_t ftl_slot_take(struct ftl_buffer *buffer, enum ftl_pool pool,
                       uint32_t number)
{
    uint16_t index = ftl_list_pop(&buffer->free_slots[pool]);

    if (index != FTL_LIST_END) {
        ftl_slot_begin(buffer, pool, index, number);
    }
    return index;
}

void ftl_slot_free(struct ftl_buffer *buffer, uint16_t index)
{
    struct ftl_slot *slot = &buffer->slots[index];

    slot->state = FTL_SLOT_FREE;
    ftl_list_push(&buffer->free_slots[slot->pool], index);
}

void ftl_slot_await(struct ftl_map_floor *ftl, uint16_t index)
{
    const struct ftl_slot *slot = &ftl->buffer.slots[index];

    ftl_slot_note_waiting(ftl, index);
    ftl_list_append(&ftl->buffer.dirty[slot->pool], index);
    ftl_list_append(&ftl->buffer.waiting[slot->pool], index);
}

void ftl_slot_accept(struct ftl_map_floor *ftl, uint16_t index)
{
    if (ftl->buffer.slots[index].pool == FTL_POOL_HOST) {
        ftl_memory_note_filled(ftl, index);
    }
    ftl_slot_await(ftl, index);
}

/* The slot needs neither to be programmed nor to become durable any longer. */
static void discard_slot(struct ftl_map_floor *ftl, uint16_t index)
{
    enum ftl_pool pool = (enum ftl_pool)ftl->buffer.slots[index].pool;

    ftl_keep_release(ftl, index);
    ftl_list_remove(&ftl->buffer.dirty[pool], index);
    ftl_slot_free(&ftl->buffer, index);
    if (pool == FTL_POOL_TRIM) {
        /* Empty superblocks may have waited for this page of trims. */
        ftl->has_emptied = true;
    }
}

/* Move a slot towards the beginning of a list that is sorted by age. */
static void sort_slot(const struct ftl_buffer *buffer, struct ftl_list *list,
                      uint16_t index)
{
    uint16_t at;

    ftl_list_remove(list, index);
    at = list->head;
    while (at != FTL_LIST_END &&
           buffer->slots[at].accepted <= buffer->slots[index].accepted) {
        at = list->links[at].next;
    }
    ftl_list_insert(list, index, at);
}

/*
 * A slot takes the place of contents that are not durable, and their age: what
 * waits for these waits for the slot from now on.
 */
static void inherit_age(struct ftl_buffer *buffer, uint16_t index,
                        uint64_t accepted)
{
    struct ftl_slot *slot = &buffer->slots[index];

    if (slot->accepted > accepted) {
        slot->accepted = accepted;
        sort_slot(buffer, &buffer->dirty[slot->pool], index);
        if (slot->state == FTL_SLOT_WAITING) {
            sort_slot(buffer, &buffer->waiting[slot->pool], index);
        }
    }
}

void ftl_slot_trim(struct ftl_map_floor *ftl, uint16_t index, uint16_t page)
{
    while (index != FTL_LIST_END) {
        struct ftl_slot *slot = &ftl->buffer.slots[index];
        uint16_t follows = slot->follows;

        ftl_map_trim_place(ftl, slot->old_place);
        slot->old_place = FTL_NOWHERE;
        slot->follows = FTL_LIST_END;
        if (slot->state == FTL_SLOT_WAITING) {
            inherit_age(&ftl->buffer, page, slot->accepted);
            ftl_list_remove(&ftl->buffer.waiting[slot->pool], index);
            discard_slot(ftl, index);
        } else {
            ASSERT(slot->state == FTL_SLOT_PROGRAMMING);
            ftl_keep_release(ftl, index);
            slot->is_trimmed = true;
        }
        index = follows;
    }
}

/* The slot with newer contents that names this one, or FTL_LIST_END. */
static uint16_t find_follower(struct ftl_map_floor *ftl, uint16_t index)
{
    uint32_t entry = ftl->map[ftl->buffer.slots[index].number];
    uint16_t at = ftl_is_in_slot(entry) ? (uint16_t)entry : FTL_LIST_END;

    while (at != FTL_LIST_END && ftl->buffer.slots[at].follows != index) {
        at = ftl->buffer.slots[at].follows;
    }
    return at;
}

/* Garbage collection has moved a unit. */
static void finish_move(struct ftl_map_floor *ftl, uint16_t index,
                        uint32_t place)
{
    const struct ftl_slot *slot = &ftl->buffer.slots[index];
    uint32_t entry = ftl->map[slot->number];

    if (ftl_map_is_valid(ftl, slot->old_place)) {
        uint32_t moved = slot->is_lost ? FTL_LOST | place : place;

        if (ftl_entry_place(entry) == slot->old_place) {
            ftl->map[slot->number] = moved;
        } else {
            /* The oldest slot of the unit replaces these contents. */
            uint16_t at = (uint16_t)entry;

            ASSERT(ftl_is_in_slot(entry));
            while (ftl_entry_place(ftl->buffer.slots[at].old_place) !=
                   slot->old_place) {
                at = ftl->buffer.slots[at].follows;
                ASSERT(at != FTL_LIST_END);
            }
            ftl->buffer.slots[at].old_place = moved;
        }
        ftl_map_clear_valid(ftl, slot->old_place);
        ftl_map_set_valid(ftl, place);
        ftl->counters.moved_units++;
    }
    ftl->collection.slots--;
    ftl_slot_free(&ftl->buffer, index);
}

/*
 * Newer contents than those of `index` and of all slots that it follows are on
 * flash: nothing needs what these slots replace.  They are still being
 * programmed, and are discarded when that ends.
 */
static void supersede_slots(struct ftl_map_floor *ftl, uint16_t index)
{
    while (index != FTL_LIST_END) {
        struct ftl_slot *slot = &ftl->buffer.slots[index];

        if (slot->follows != FTL_LIST_END) {
            ftl_keep_release(ftl, slot->follows);
        }
        ftl_map_clear_valid(ftl, slot->old_place);
        slot->old_place = FTL_NOWHERE;
        index = slot->follows;
        slot->follows = FTL_LIST_END;
    }
}

void ftl_slot_programmed(struct ftl_map_floor *ftl, uint16_t index,
                         uint32_t place)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    uint16_t follower;
    bool is_newest;

    if (slot->pool == FTL_POOL_MOVE) {
        finish_move(ftl, index, place);
        return;
    }
    is_newest = ftl->map[slot->number] == (FTL_IN_SLOT | index);
    follower = is_newest ? FTL_LIST_END : find_follower(ftl, index);
    if (is_newest) {
        ftl->map[slot->number] = place;
        ftl_map_set_valid(ftl, place);
    } else if (follower != FTL_LIST_END) {
        ftl->buffer.slots[follower].follows = FTL_LIST_END;
        ftl->buffer.slots[follower].old_place = place;
        ftl_map_set_valid(ftl, place);
    } else if (slot->is_trimmed) {
        ftl->superblocks[ftl_place_superblock(&ftl->layout, place)]
            .trim_accepted = ftl->accepted;
    }
    supersede_slots(ftl, index);
    discard_slot(ftl, index);
}

/* The slot waits again. */
static void await_row(struct ftl_map_floor *ftl, uint16_t index)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];

    slot->state = FTL_SLOT_WAITING;
    ftl_list_append(&ftl->buffer.waiting[slot->pool], index);
    sort_slot(&ftl->buffer, &ftl->buffer.waiting[slot->pool], index);
}

void ftl_slot_not_programmed(struct ftl_map_floor *ftl, uint16_t index)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    uint16_t follower;

    if (slot->must_be_read) {
        ftl_slot_drop_move(ftl, index);
        return;
    }
    if (slot->pool == FTL_POOL_MOVE) {
        slot->attempt = (uint8_t)MIN(slot->attempt + 1, FTL_ATTEMPTS_MAX);
        await_row(ftl, index);
        return;
    }
    /* Units of the row that failed may be readable at one mount and not at the
     * next.  Mounts copy what is in the last rows only: newer contents must not
     * wait until this row is no longer one of these. */
    ftl->forced = ftl->accepted;
    ftl->buffer.urgent = ftl->accepted;
    /* Complete the entries of newer contents before the one of these contents
     * is cleared: a reset in between would lose both. */
    ftl_memory_run(ftl);
    if (ftl->map[slot->number] == (FTL_IN_SLOT | index)) {
        await_row(ftl, index);
        return;
    }
    follower = find_follower(ftl, index);
    if (follower != FTL_LIST_END) {
        ftl->buffer.slots[follower].follows = slot->follows;
        ftl->buffer.slots[follower].old_place = slot->old_place;
        inherit_age(&ftl->buffer, follower, slot->accepted);
    } else if (slot->is_trimmed) {
        ftl_waiting_raise_barriers(ftl); /* They wait for the trim. */
    }
    discard_slot(ftl, index);
}

bool ftl_slot_is_urgent(const struct ftl_buffer *buffer)
{
    uint16_t data = buffer->waiting[FTL_POOL_HOST].head;
    uint16_t page = buffer->waiting[FTL_POOL_TRIM].head;

    return (data != FTL_LIST_END &&
            buffer->slots[data].accepted <= buffer->urgent) ||
           (page != FTL_LIST_END &&
            buffer->slots[page].accepted <= buffer->urgent);
}

bool ftl_slot_is_pool_durable(const struct ftl_buffer *buffer,
                              enum ftl_pool pool, uint64_t accepted)
{
    uint16_t oldest = buffer->dirty[pool].head;

    return oldest == FTL_LIST_END || buffer->slots[oldest].accepted > accepted;
}

bool ftl_slot_is_durable(const struct ftl_buffer *buffer, uint64_t accepted)
{
    return ftl_slot_is_pool_durable(buffer, FTL_POOL_HOST, accepted) &&
           ftl_slot_is_pool_durable(buffer, FTL_POOL_TRIM, accepted);
}

void ftl_slot_renew(struct ftl_map_floor *ftl, uint16_t index, bool keeps_data)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    uint16_t before = slot->buffer;
    const uint8_t *data = ftl_slot_data(&ftl->buffer, index);
    const uint8_t *meta = ftl_slot_meta(&ftl->buffer, index);

    slot->buffer = ftl->keep.spare;
    ftl->keep.spare = before;
    if (!keeps_data) {
        ftl_slot_clear_meta(&ftl->buffer, index);
        return;
    }
    ftl_memory_move(ftl, FTL_MOVE_COPY, ftl_slot_data(&ftl->buffer, index),
                    data, FTL_UNIT_DATA);
    ftl_memory_move(ftl, FTL_MOVE_COPY, ftl_slot_meta(&ftl->buffer, index),
                    meta, FTL_UNIT_META);
    /* If the controller finds a lost word, the word's block is marked now. */
    ftl_memory_run(ftl);
}

void ftl_slot_drop_move(struct ftl_map_floor *ftl, uint16_t index)
{
    ftl->collection.slots--;
    ftl_slot_free(&ftl->buffer, index);
}
