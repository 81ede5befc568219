/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a row, for the slots that most rows hold: a host has written them,
 * they have the newest contents of their units, and the contents before them
 * are on flash or nowhere.  They leave the list of slots that are not durable
 * together, because most of them follow one another there.
 */
#include "storage/ftl/map/ftl_keep.h"
#include "storage/ftl/map/map.h"

/* Remove entries that follow one another in a list. */
static void remove_chain(struct ftl_list *list, uint16_t first, uint16_t last,
                         uint32_t count)
{
    uint16_t prev = list->links[first].prev;
    uint16_t next = list->links[last].next;

    *(prev == FTL_LIST_END ? &list->head : &list->links[prev].next) = next;
    *(next == FTL_LIST_END ? &list->tail : &list->links[next].prev) = prev;
    list->count = (uint16_t)(list->count - count);
}

/* Remove entries from a list, those together that follow one another there. */
static void remove_all(struct ftl_list *list, const uint16_t *entries,
                       uint32_t count)
{
    const struct ftl_link *links = list->links;

    while (count != 0) {
        uint32_t last = 0;

        while (last + 1 < count &&
               links[entries[last]].next == entries[last + 1]) {
            last++;
        }
        remove_chain(list, entries[0], entries[last], last + 1);
        entries += last + 1;
        count -= last + 1;
    }
}

/* Insert entries in this order at the beginning of a list. */
static void push_all(struct ftl_list *list, const uint16_t *entries,
                     uint32_t count)
{
    struct ftl_link *links = list->links;
    uint16_t next = list->head;

    if (count == 0) {
        return;
    }
    *(next == FTL_LIST_END ? &list->tail : &links[next].prev) =
        entries[count - 1];
    for (uint32_t i = count - 1; i != 0; i--) {
        links[entries[i]] = (struct ftl_link){next, entries[i - 1]};
        next = entries[i];
    }
    links[entries[0]] = (struct ftl_link){next, FTL_LIST_END};
    list->head = entries[0];
    list->count = (uint16_t)(list->count + count);
}

/* Change the bits of up to 64 places, one bit of `places` for each from `first`
 * on.  @param were_set  what all these bits are before */
static void change_valid(uint8_t *valid, uint32_t first, uint64_t places,
                         bool were_set)
{
    uint32_t skipped = first % 8;

    for (uint8_t *at = valid + first / 8; places != 0; at++, skipped = 0) {
        uint8_t bits = (uint8_t)(places << skipped);

        ASSERT((*at & bits) == (were_set ? bits : 0));
        *at ^= bits;
        places >>= 8 - skipped;
    }
}

/* Places that follow one another, and whose contents were replaced. */
struct run {
    uint32_t first, count;
};

static void clear_run(struct ftl_map_floor *ftl, struct run run)
{
    const struct ftl_layout *layout = &ftl->layout;
    uint32_t superblock = ftl_place_superblock(layout, run.first);
    uint32_t end = run.first + run.count;

    if (run.count > 1 && end <= (superblock + 1) * layout->superblock_units) {
        change_valid(ftl->valid, run.first, UINT64_MAX >> (64 - run.count),
                     true);
        ftl->superblocks[superblock].valid -= run.count;
        ftl->has_emptied |= ftl->superblocks[superblock].valid == 0;
        return;
    }
    for (uint32_t place = run.first; place != end; place++) {
        ftl_map_clear_valid(ftl, place);
    }
}

/* Put a place in front of a run if it precedes it.  Otherwise clear the run,
 * and begin a new one with the place. */
static inline void extend_run(struct ftl_map_floor *ftl, struct run *run,
                              uint32_t entry)
{
    uint32_t place = ftl_entry_place(entry);

    if (place == FTL_NOWHERE) {
        return;
    }
    if (place + 1 != run->first) {
        clear_run(ftl, *run);
        run->count = 0;
    }
    run->first = place;
    run->count++;
}

/* Whether a slot of a row ends with others, as the file's first comment says.
 */
static inline bool is_usual(const struct ftl_slot *slot, uint32_t entry,
                            uint16_t index)
{
    return slot->pool == FTL_POOL_HOST && slot->follows == FTL_LIST_END &&
           entry == (FTL_IN_SLOT | index);
}

/*
 * The map names the places of a row's units instead of their slots, up to the
 * first unit that is not usual.  Contents that these have replaced may leave
 * the row's own superblock before the row's units count there: then garbage
 * collection looks for empty superblocks once more than needed.
 *
 * @return so many units of the row are left
 */
static uint32_t end_units(struct ftl_map_floor *ftl,
                          const struct ftl_request *request, uint32_t left)
{
    uint32_t first = request->row * ftl->layout.row_units;
    /* If the row has all units, a unit's index in the row is its number. */
    bool has_all = request->flash.num_units == ftl->layout.row_units;
    struct ftl_slot *slots = ftl->buffer.slots;
    struct run replaced = {0, 0};
    struct ftl_keep keep = ftl->keep;
    uint32_t *map = ftl->map;
    uint64_t taken = 0; /* a bit for each unit that becomes valid */

    for (; left != 0; left--) {
        uint16_t index = request->slots[left - 1];
        struct ftl_slot *slot = &slots[index];
        uint32_t unit;

        if (index == FTL_LIST_END ||
            !is_usual(slot, map[slot->number], index)) {
            break;
        }
        unit = has_all
                   ? left - 1
                   : ftl_layout_index(&ftl->layout, &request->units[left - 1]);
        map[slot->number] = first + unit;
        taken |= UINT64_C(1) << unit;
        extend_run(ftl, &replaced, slot->old_place);
        ftl_keep_clear(&keep, slot->buffer);
        slot->state = FTL_SLOT_FREE;
    }
    change_valid(ftl->valid, first, taken, false);
    clear_run(ftl, replaced);
    return left;
}

uint32_t ftl_slot_row_programmed(struct ftl_map_floor *ftl,
                                 const struct ftl_request *request,
                                 uint32_t left)
{
    const uint16_t *slots = request->slots;
    uint32_t end, count;

    while (left != 0 && slots[left - 1] == FTL_LIST_END) {
        left--;
    }
    end = left;
    left = end_units(ftl, request, end);
    count = end - left;
    ftl->superblocks[request->flash.block].valid += count;
    remove_all(&ftl->buffer.dirty[FTL_POOL_HOST], &slots[left], count);
    push_all(&ftl->buffer.free_slots[FTL_POOL_HOST], &slots[left], count);
    return left;
}
