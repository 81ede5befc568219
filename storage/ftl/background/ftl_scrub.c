/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reclaim and scrubbing: contents are moved before they cannot be read.
 *
 * Cells lose charge with time, and with reads of their block.  The result of
 * each read says how many bits were wrong and whether soft decoding was needed.
 * A superblock with a unit that has nearly too many wrong bits is moved soon.
 * Scrubbing also reads the units that no host reads, one row after another, so
 * that all rows are read in about a day.
 *
 * A start goes on where the last one stopped, because a drive may never be on
 * for a whole day.  The position is in the metadata of all pages with trims,
 * health or wear, and in the headers of checkpoints.  If none of these is
 * written for a quarter of an hour, a wear page is written with the position.
 *
 * Worn flash has many wrong bits right after it was programmed.  So a
 * superblock is not moved within a minute after it was opened or closed, or
 * after the start.
 */
#include "storage/ftl/background/background.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/space.h"

enum { RECORD_FIRST_US = 60000000 }; /* from the first row of a start */

/* Read the valid units of a row. @return false when there are none */
static bool read_row(struct ftl_background_floor *ftl, uint32_t row)
{
    uint32_t first = row * ftl->layout.row_units;
    struct ftl_request *request = NULL;

    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        if (!ftl_map_is_valid(&ftl->map_floor, first + i)) {
            continue;
        }
        if (request == NULL) {
            request = ftl_request_take(&ftl->ops, FTL_REQUEST_SCRUB);
            ASSERT(request != NULL);
        }
        ftl_request_add(&ftl->layout, request, first + i,
                        &(struct ftl_flash_unit){0});
    }
    if (request == NULL) {
        return false;
    }
    ftl->scrub.is_reading = true;
    ftl->counters.scrubbed_rows++;
    ftl_request_send(&ftl->ops, request);
    return true;
}

bool ftl_scrub_done(struct ftl_background_floor *ftl,
                    struct ftl_request *request, enum ftl_flash_status status)
{
    ftl->scrub.is_reading = false;
    if (status == FTL_FLASH_DEAD) {
        ftl_dies_note_dead(&ftl->space_floor, request->flash.die);
        return false;
    }
    if (status != FTL_FLASH_OK) {
        return false;
    }
    ftl_reclaim_note_read(&ftl->space_floor, request);
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint32_t place = request->row * ftl->layout.row_units +
                         ftl_layout_index(&ftl->layout, &request->units[i]);

        if (request->units[i].status != FTL_UNIT_GOOD &&
            ftl_map_is_valid(&ftl->map_floor, place)) {
            ftl_reclaim_note_weak(&ftl->space_floor, request->flash.block,
                                  FTL_CAUSE_SCRUB);
            return false;
        }
    }
    return false;
}

/* ---- The position. */

/* Have a wear page written if no page has had the position for a while.  A
 * read-only medium moves nothing, so it does not need the position. */
static void record_position(struct ftl_background_floor *ftl)
{
    struct ftl_scrub *scrub = &ftl->scrub;
    uint32_t wear_page =
        ftl->config.logical_units + ftl->trim_pages + ftl->health_pages;

    if (scrub->record_us == 0) {
        scrub->record_us = ftl->now_us + RECORD_FIRST_US;
    }
    if (ftl->now_us >= scrub->record_us && !ftl->is_read_only &&
        scrub->next_row != scrub->recorded_row) {
        /* If no slot is free, this is tried again after the next row. */
        (void)!ftl_page_touch(&ftl->pages_floor, wear_page);
    }
}

/* ---- Scrubbing. */

/* Find the next row with valid units, in one superblock at most. */
static bool scrub_superblock(struct ftl_background_floor *ftl)
{
    uint32_t rows = ftl->layout.superblock_rows;
    uint64_t passed = ftl->scrub.next_row / rows; /* superblocks */
    uint32_t superblock = (uint32_t)(passed % ftl->layout.superblocks);
    const struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (at->valid != 0 && !at->moves_soon) {
        for (uint32_t row = (uint32_t)(ftl->scrub.next_row % rows); row < rows;
             row++) {
            if (read_row(ftl, superblock * rows + row)) {
                ftl->scrub.next_row = passed * rows + row + 1;
                return true;
            }
        }
    }
    ftl->scrub.next_row = (passed + 1) * rows;
    return false;
}

bool ftl_scrub_step(struct ftl_background_floor *ftl, uint64_t *deadline_us)
{
    uint64_t due_us = ftl->scrub.last_us + ftl->config.scrub_us;

    if (ftl->config.scrub_us == 0 || ftl->scrub.is_reading) {
        return false;
    }
    if (ftl->now_us < due_us) {
        *deadline_us = MIN(*deadline_us, due_us);
        return false;
    }
    if (ftl->ops.free_requests.count == 0) {
        return false; /* Wait until a request has ended. */
    }
    for (uint32_t i = 0; i <= ftl->layout.superblocks; i++) {
        if (scrub_superblock(ftl)) {
            break;
        }
    }
    ftl->scrub.last_us = ftl->now_us;
    record_position(ftl);
    return true;
}
