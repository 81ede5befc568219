/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a row, for the slots that most rows hold: a host has written them,
 * they have the newest contents of their units, and the contents before them
 * are on flash or nowhere.  They leave the list of slots that are not durable
 * together, because most of them follow one another there.
 */
#include "storage/ftl/base/ftl_keep.h"
#include "storage/ftl/map/map.h"

/* Slots that follow one another in a list. */
struct chain {
    uint16_t first, last;
    uint16_t count; /* 0: there is none */
};

static bool is_usual(const struct ftl *ftl, uint16_t index,
                     const struct ftl_slot *slot)
{
    return slot->pool == FTL_POOL_HOST && slot->follows == FTL_LIST_END &&
           ftl->map[slot->number] == (FTL_IN_SLOT | index);
}

static void remove_chain(struct ftl_list *list, const struct chain *chain)
{
    if (chain->count != 0) {
        uint16_t prev = list->links[chain->first].prev;
        uint16_t next = list->links[chain->last].next;

        *(prev == FTL_LIST_END ? &list->head : &list->links[prev].next) = next;
        *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) = prev;
        list->count = (uint16_t)(list->count - chain->count);
    }
}

/* Add a slot before the others of a chain, or remove these from the list, and
 * begin another chain with the slot. */
static inline void extend_chain(struct ftl_list *list, struct chain *chain,
                                uint16_t index)
{
    if (chain->count == 0 || list->links[index].next != chain->first) {
        remove_chain(list, chain);
        chain->last = index;
        chain->count = 0;
    }
    chain->first = index;
    chain->count++;
}

/* The map names the place instead of the slot. */
static inline void set_place(struct ftl *ftl, struct ftl_slot *slot,
                             uint32_t place)
{
    ftl->map[slot->number] = place;
    ftl_map_set_valid(ftl, place);
    if (slot->old_place != FTL_NOWHERE) {
        ftl_map_clear_valid(ftl, slot->old_place);
        slot->old_place = FTL_NOWHERE;
    }
}

uint32_t ftl_slot_row_programmed(struct ftl *ftl,
                                 const struct ftl_request *request,
                                 uint32_t left)
{
    uint32_t first = request->row * ftl->layout.row_units;
    struct ftl_list *dirty = &ftl->buffer.dirty[FTL_POOL_HOST];
    struct ftl_list *free_slots = &ftl->buffer.free_slots[FTL_POOL_HOST];
    struct chain chain = {FTL_LIST_END, FTL_LIST_END, 0};

    for (; left != 0; left--) {
        uint16_t index = request->slots[left - 1];
        struct ftl_slot *slot;

        if (index == FTL_LIST_END) {
            continue;
        }
        slot = &ftl->buffer.slots[index];
        if (!is_usual(ftl, index, slot)) {
            break;
        }
        set_place(
            ftl, slot,
            first + ftl_layout_index(&ftl->layout, &request->units[left - 1]));
        ftl_keep_clear(&ftl->keep, slot->buffer);
        extend_chain(dirty, &chain, index);
        slot->state = FTL_SLOT_FREE;
        ftl_list_push(free_slots, index);
    }
    remove_chain(dirty, &chain);
    return left;
}
