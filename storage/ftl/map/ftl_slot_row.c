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

/* Put a slot in front of a chain if it precedes it in the list.  Otherwise
 * remove the chain from the list, and begin a new one with the slot. */
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

/* The place of a unit of a row.  If the row has all units, a unit's number is
 * its index. */
static inline uint32_t place_of(const struct ftl *ftl,
                                const struct ftl_request *request,
                                uint32_t first, uint32_t unit)
{
    return first +
           (request->flash.num_units == ftl->layout.row_units
                ? unit
                : ftl_layout_index(&ftl->layout, &request->units[unit]));
}

/* A superblock has a place that the map names from now on. */
static inline void take_place(uint8_t *valid, struct ftl_superblock *superblock,
                              uint32_t place)
{
    ASSERT((valid[place / 8] & BIT(place % 8)) == 0);
    valid[place / 8] |= (uint8_t)BIT(place % 8);
    superblock->valid++;
}

uint32_t ftl_slot_row_programmed(struct ftl *ftl,
                                 const struct ftl_request *request,
                                 uint32_t left)
{
    uint32_t first = request->row * ftl->layout.row_units;
    struct ftl_superblock *superblock = &ftl->superblocks[request->flash.block];
    struct ftl_list *dirty = &ftl->buffer.dirty[FTL_POOL_HOST];
    struct ftl_list *free_slots = &ftl->buffer.free_slots[FTL_POOL_HOST];
    struct ftl_slot *slots = ftl->buffer.slots;
    struct chain chain = {FTL_LIST_END, FTL_LIST_END, 0};
    struct ftl_keep keep = ftl->keep;
    uint32_t *map = ftl->map;

    for (; left != 0; left--) {
        uint16_t index = request->slots[left - 1];
        struct ftl_slot *slot = &slots[index];
        uint32_t place;

        if (index == FTL_LIST_END) {
            continue;
        }
        if (slot->pool != FTL_POOL_HOST || slot->follows != FTL_LIST_END ||
            map[slot->number] != (FTL_IN_SLOT | index)) {
            break;
        }
        place = place_of(ftl, request, first, left - 1);
        map[slot->number] = place;
        take_place(ftl->valid, superblock, place);
        if (slot->old_place != FTL_NOWHERE) {
            ftl_map_clear_valid(ftl, slot->old_place);
        }
        ftl_keep_clear(&keep, slot->buffer);
        extend_chain(dirty, &chain, index);
        slot->state = FTL_SLOT_FREE;
        ftl_list_push(free_slots, index);
    }
    remove_chain(dirty, &chain);
    return left;
}
