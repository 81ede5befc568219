/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the units that garbage collection moves, and gives up units that cannot
 * be read.
 *
 * When a unit is given up, a unit without contents is programmed in its place,
 * and records that the contents are lost.  Then the superblock can be erased.
 * Until a host writes or trims the unit, reads of it fail, also after restarts.
 * They never return an older version.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/map/ftl_trace_units.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/ftl_findings.h"

#include <string.h>

bool ftl_collect_read_row(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    uint32_t first =
        ftl_place(&ftl->layout, collection->victim, collection->next_row, 0);
    struct ftl_request *request = NULL;

    if (ftl->buffer.free_slots[FTL_POOL_MOVE].count < ftl->layout.row_units ||
        ftl->ops.free_requests.count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        uint16_t slot;

        if (!ftl_map_is_valid(&ftl->map_floor, first + i)) {
            continue;
        }
        if (request == NULL) {
            request = ftl_request_take(&ftl->ops, FTL_REQUEST_MOVE);
            ASSERT(request != NULL);
        }
        slot = ftl_slot_take(&ftl->buffer, FTL_POOL_MOVE, 0);
        ASSERT(slot != FTL_LIST_END);
        ftl->buffer.slots[slot].state = FTL_SLOT_FILLING;
        ftl->buffer.slots[slot].old_place = first + i;
        request->slots[request->flash.num_units] = slot;
        ftl_request_add(&ftl->layout, request, first + i,
                        &(struct ftl_flash_unit){
                            .data = ftl_slot_data(&ftl->buffer, slot),
                            .meta = ftl_slot_meta(&ftl->buffer, slot),
                            .system = request->system[request->flash.num_units],
                            .length = FTL_UNIT_DATA,
                        });
        collection->slots++;
    }
    collection->next_row++;
    if (request != NULL) {
        request->flash.tag =
            ftl_tag((enum ftl_cause)collection->cause, FTL_TAG_NUMBER);
        if (ftl_is_traced(&ftl->base_floor)) {
            ftl_trace_move(&ftl->map_floor, request);
        }
        collection->reads++;
        ftl_request_send(&ftl->ops, request);
    }
    return true;
}

/* A slot of a unit that is moved waits for a row. */
static void await_row(struct ftl_background_floor *ftl, uint16_t index)
{
    ftl->buffer.slots[index].state = FTL_SLOT_WAITING;
    ftl_list_append(&ftl->buffer.waiting[FTL_POOL_MOVE], index);
}

/* Take over what the system bytes of a unit say.  @return false when they are
 * not those of a unit that belongs to this place */
static bool take_system(struct ftl_background_floor *ftl, uint16_t index,
                        const uint8_t *bytes)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    struct ftl_system system;
    uint32_t first = 0, end = ftl->config.logical_units;

    if (!ftl_system_parse(&system, bytes) ||
        (system.kind != FTL_KIND_DATA && system.kind != FTL_KIND_TRIM)) {
        return false;
    }
    if (system.kind == FTL_KIND_TRIM) {
        first = ftl->config.logical_units;
        end = ftl->entries;
    }
    if (system.number >= end - first ||
        !ftl_map_names(&ftl->map_floor, first + system.number,
                       slot->old_place)) {
        return false;
    }
    slot->number = first + system.number;
    slot->version = system.version;
    slot->attempt = system.attempt;
    slot->is_lost = system.is_lost;
    slot->marks = system.marks;
    return true;
}

/* Whether units may be given up.  They are not if more dies are dead than
 * parity can replace. */
static bool may_give_up(const struct ftl_background_floor *ftl)
{
    return ftl->dies.num_dead <= (ftl->layout.has_parity ? 1U : 0U);
}

/* Have the map searched for the entry that names a unit that is given up. */
static void find_later(struct ftl_collection *collection, uint16_t index)
{
    ftl_list_append(&collection->lost, index);
    collection->next_entry = 0;
}

/*
 * Record that the contents of a unit are lost.  The record has the number of
 * the last row as its version.  What a host writes later is programmed in a row
 * with a larger number, and so has a later version.
 * @param number  of the entry of the map
 * @return false when this is not possible now
 */
static bool give_up_unit(struct ftl_background_floor *ftl, uint16_t index,
                         uint32_t number)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];

    if (number >= ftl->config.logical_units) {
        /* DRAM has the contents of the page: write the page again. */
        uint16_t page = ftl_page_touch(&ftl->pages_floor, number);

        ftl->forced = page != FTL_LIST_END ? ftl->accepted : ftl->forced;
        return false;
    }
    slot->number = number;
    slot->version = ftl->next_row_number - 1;
    slot->attempt = 0;
    slot->is_lost = true;
    memset(ftl_slot_data(&ftl->buffer, index), 0, FTL_UNIT_DATA);
    memset(ftl_slot_meta(&ftl->buffer, index), 0xff, FTL_UNIT_META);
    ftl->counters.lost_units++;
    await_row(ftl, index);
    return true;
}

/*
 * Deal with a unit that is to be moved, but could not be read.
 * @param is_lost  the read has ended, and the contents are lost; false: the
 *                 read has failed as a whole
 */
static void refuse_unit(struct ftl_background_floor *ftl, uint16_t index,
                        bool is_lost)
{
    struct ftl_slot *slot = &ftl->buffer.slots[index];
    struct ftl_superblock *superblock =
        &ftl->superblocks[ftl_place_superblock(&ftl->layout, slot->old_place)];

    if (ftl_map_is_valid(&ftl->map_floor, slot->old_place)) {
        ftl->counters.read_errors++;
        if (ftl_mount_is_settling(&ftl->space_floor)) {
            ftl_mount_ignore(&ftl->space_floor, slot->old_place);
        } else if (is_lost && superblock->retries == FTL_STUCK_RETRIES &&
                   may_give_up(ftl)) {
            find_later(&ftl->collection, index);
            return;
        } else {
            superblock->is_stuck = true;
        }
    }
    ftl->collection.slots--;
    ftl_slot_free(&ftl->buffer, index);
}

/* A unit is not given up now: try again later, if it is still needed. */
static void keep_unit(struct ftl_background_floor *ftl, uint16_t index)
{
    uint32_t place = ftl->buffer.slots[index].old_place;

    ftl->superblocks[ftl_place_superblock(&ftl->layout, place)].is_stuck |=
        ftl_map_is_valid(&ftl->map_floor, place);
    ftl_slot_drop_move(&ftl->map_floor, index);
}

/* @return the unit that is given up and is at this place, or FTL_LIST_END */
static uint16_t find_lost(const struct ftl_background_floor *ftl,
                          uint32_t place)
{
    const struct ftl_list *lost = &ftl->collection.lost;
    uint16_t index = lost->head;

    while (index != FTL_LIST_END &&
           ftl->buffer.slots[index].old_place != place) {
        index = lost->links[index].next;
    }
    return index;
}

bool ftl_collect_find_lost(struct ftl_background_floor *ftl)
{
    struct ftl_collection *collection = &ftl->collection;
    uint32_t first = collection->victim * ftl->layout.superblock_units;
    uint32_t left = FTL_TURN_ITEMS;
    uint16_t index;

    if (collection->reads != 0) {
        return false; /* They may find more such units. */
    }
    for (; left != 0 && collection->lost.count != 0 &&
           collection->next_entry < ftl->entries;
         collection->next_entry++, left--) {
        uint32_t entry = collection->next_entry;
        uint32_t place = ftl_entry_place(ftl->map[entry]);

        if (place - first >= ftl->layout.superblock_units) {
            continue; /* It is not in the victim. */
        }
        left -= MIN(left - 1, collection->lost.count);
        index = find_lost(ftl, place);
        if (index != FTL_LIST_END) {
            ftl_list_remove(&collection->lost, index);
            if (!give_up_unit(ftl, index, entry)) {
                keep_unit(ftl, index);
            }
        }
    }
    /* No entry names the others: they are being overwritten. */
    while (collection->next_entry == ftl->entries &&
           (index = ftl_list_pop(&collection->lost)) != FTL_LIST_END) {
        keep_unit(ftl, index);
    }
    return true;
}

bool ftl_collect_expects(const struct ftl_background_floor *ftl,
                         const struct ftl_request *request, uint32_t entry,
                         uint32_t place, const struct ftl_system *system)
{
    return !ftl_map_is_valid(&ftl->map_floor,
                             place) || /* Nobody needs it any longer. */
           ftl_map_expects(&ftl->map_floor, request, entry, place, system);
}

bool ftl_collect_read_done(struct ftl_background_floor *ftl,
                           struct ftl_request *request,
                           enum ftl_flash_status status)
{
    if (status != FTL_FLASH_OK && ftl->state == FTL_MOUNTING) {
        /* Without a status for each unit, torn units are not known. */
        ftl->state = FTL_FAILED;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint16_t slot = request->slots[i];

        if (status == FTL_FLASH_OK &&
            request->units[i].status == FTL_UNIT_GOOD &&
            ftl_map_is_valid(&ftl->map_floor,
                             ftl->buffer.slots[slot].old_place) &&
            take_system(ftl, slot, request->system[i])) {
            ftl->collection.has_read = true;
            await_row(ftl, slot);
        } else {
            refuse_unit(ftl, slot, status == FTL_FLASH_OK);
        }
    }
    ftl->collection.reads--;
    return false;
}
