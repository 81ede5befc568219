/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the list of failed planes, the erase counts and the capacity over a
 * wipe, even if the power fails before the end of the wipe.
 *
 * A wipe first erases one superblock, the keeper, and programs health pages and
 * wear pages into it.  These pages are newer than all others, so a mount uses
 * them even if only a part of the rest has been erased.  Then the wipe erases
 * everything else.  So no data of hosts is left: the keeper holds only pages.
 *
 * After the pages, the keeper holds a marker (ftl_power.c), because a wipe
 * leaves nothing that capacitors would have had to save.
 */
#include "storage/ftl/background/ftl_wipe_keep.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/space.h"

/* The marker is programmed like a page. */
static uint32_t count_pages(const struct ftl_background_floor *ftl)
{
    return ftl->health_pages + ftl->wear_pages + 1;
}

bool ftl_wipe_keeper_is_complete(const struct ftl_background_floor *ftl)
{
    return ftl->wipe.page == count_pages(ftl);
}

/* The place of a page on flash, or FTL_NOWHERE.  If the mount has failed while
 * it loaded a checkpoint, the entry may be any number. */
static uint32_t page_place(const struct ftl_background_floor *ftl,
                           uint32_t entry)
{
    if (!ftl_is_in_slot(entry)) {
        return entry;
    }
    return (uint16_t)entry < ftl->buffer.num_slots
               ? ftl->buffer.slots[(uint16_t)entry].old_place
               : FTL_NOWHERE;
}

/* Whether a superblock can be the keeper, because it holds no valid page. */
static bool can_keep(const struct ftl_background_floor *ftl,
                     uint32_t superblock)
{
    if (superblock == ftl->checkpoint.superblock ||
        !ftl_superblock_is_good(&ftl->space_floor, superblock)) {
        return false;
    }
    for (uint32_t i = ftl->config.logical_units; i < ftl->entries; i++) {
        uint32_t place = page_place(ftl, ftl->map[i]);

        if (place != FTL_NOWHERE &&
            ftl_place_superblock(&ftl->layout, place) == superblock) {
            return false;
        }
    }
    return true;
}

uint32_t ftl_wipe_find_keeper(const struct ftl_background_floor *ftl,
                              uint32_t first)
{
    for (uint32_t i = first; i < ftl->layout.superblocks; i++) {
        if (can_keep(ftl, i)) {
            return i;
        }
    }
    return FTL_NOWHERE;
}

/* Write a page into the memory of a slot.  The wipe has made all slots'
 * contents worthless. */
static void emit_page(struct ftl_background_floor *ftl, uint32_t page,
                      uint16_t slot)
{
    if (page < ftl->health_pages) {
        ftl_health_emit(&ftl->pages_floor, page,
                        ftl_slot_data(&ftl->buffer, slot),
                        ftl_slot_meta(&ftl->buffer, slot));
    } else {
        ftl_wear_emit(&ftl->pages_floor, page - ftl->health_pages,
                      ftl_slot_data(&ftl->buffer, slot),
                      ftl_slot_meta(&ftl->buffer, slot));
    }
    ftl_capacity_emit(&ftl->pages_floor, ftl_slot_meta(&ftl->buffer, slot));
}

/* Fill in the unit `index` of a row: the next page, the marker, or padding. */
static void add_page(struct ftl_background_floor *ftl,
                     struct ftl_request *request, uint32_t index)
{
    struct ftl_wiping *wipe = &ftl->wipe;
    uint16_t slot = request->flash.num_units;
    uint32_t page = wipe->page + wipe->pages_in_flight;
    uint8_t *system = request->system[slot];
    struct ftl_flash_unit unit = {
        .data = ftl->pad, .meta = ftl->pad, .system = system};
    struct ftl_system names = {.kind = FTL_KIND_PAD, .row = wipe->row_number};

    if (page + 1 == count_pages(ftl)) {
        names.number = ftl_marker_number(&ftl->rows_floor);
        wipe->pages_in_flight++;
    } else if (page < count_pages(ftl)) {
        emit_page(ftl, page, slot);
        unit.data = ftl_slot_data(&ftl->buffer, slot);
        unit.meta = ftl_slot_meta(&ftl->buffer, slot);
        names.kind = FTL_KIND_TRIM;
        names.number = ftl->trim_pages + page;
        names.version = wipe->row_number;
        wipe->pages_in_flight++;
    }
    ftl_system_emit(&names, system);
    ftl_request_add(&ftl->layout, request,
                    request->row * ftl->layout.row_units + index, &unit);
}

/* Program the next row of the keeper, unless all its planes are bad. */
static void program_row(struct ftl_background_floor *ftl)
{
    struct ftl_wiping *wipe = &ftl->wipe;
    struct ftl_request *request = ftl_request_take(&ftl->ops, FTL_REQUEST_WIPE);
    uint8_t planes;

    ASSERT(request != NULL);
    request->row =
        wipe->keeper * ftl->layout.superblock_rows + wipe->keeper_row++;
    ftl_layout_row(&ftl->layout, request->row, &request->flash);
    planes = ftl_good_planes(&ftl->space_floor, request->flash.block,
                             request->flash.die);
    if (planes == 0) {
        ftl_request_free(&ftl->ops, request);
        return;
    }
    request->flash.kind = FTL_FLASH_PROGRAM;
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((planes & BIT(unit.plane)) != 0) {
            add_page(ftl, request, i);
        }
    }
    wipe->row_number++;
    ftl_request_send(&ftl->ops, request);
}

void ftl_wipe_give_up_keeper(struct ftl_background_floor *ftl)
{
    ftl->wipe.keeper_row = ftl->layout.superblock_rows;
}

bool ftl_wipe_keep_step(struct ftl_background_floor *ftl, bool *is_done)
{
    struct ftl_wiping *wipe = &ftl->wipe;

    *is_done = ftl_wipe_keeper_is_complete(ftl) ||
               wipe->keeper_row == ftl->layout.superblock_rows;
    if (wipe->pages_in_flight != 0) {
        *is_done = false;
        return false;
    }
    if (!*is_done) {
        program_row(ftl);
    }
    return true;
}

void ftl_wipe_keep_done(struct ftl_background_floor *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status)
{
    struct ftl_wiping *wipe = &ftl->wipe;

    if (status == FTL_FLASH_OK) {
        wipe->page += wipe->pages_in_flight;
    } else if (status == FTL_FLASH_FAILED) {
        ftl_health_note_failure(&ftl->space_floor, request->flash.block,
                                request->flash.die, request->failed_planes);
    } else if (status != FTL_FLASH_DEAD) {
        /* The die cannot program its next row before this one. */
        ftl_wipe_give_up_keeper(ftl);
    }
    wipe->pages_in_flight = 0; /* After a failure, the next row has them. */
}
