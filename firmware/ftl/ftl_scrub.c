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
 * Worn flash has many wrong bits right after it was programmed.  So a
 * superblock is not moved within a minute after it was opened or closed, or
 * after the start.
 */
#include "firmware/ftl/ftl_internal.h"

enum { RECLAIM_AGE_US = 60000000 };

/* Whether a unit should be programmed again elsewhere. */
static bool is_weak(const struct ftl *ftl, const struct ftl_flash_unit *unit)
{
    return unit->status == FTL_UNIT_GOOD &&
           (unit->steps != 0 || unit->wrong_bits > ftl->config.reclaim_bits);
}

void ftl_scrub_note_weak(struct ftl *ftl, uint32_t superblock)
{
    struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (ftl->state == FTL_READY && !at->moves_soon &&
        (at->state == FTL_SUPERBLOCK_OPEN ||
         at->state == FTL_SUPERBLOCK_CLOSED) &&
        ftl->now_us >= at->used_us + RECLAIM_AGE_US) {
        ftl_superblock_end(ftl, superblock);
        ftl_collect_move_soon(ftl, superblock);
        ftl->counters.reclaimed++;
    }
}

void ftl_scrub_note_read(struct ftl *ftl, const struct ftl_request *request)
{
    if (ftl->config.reclaim_bits == 0) {
        return;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        if (is_weak(ftl, &request->units[i])) {
            ftl_scrub_note_weak(ftl, request->flash.block);
            return;
        }
    }
}

/* Read the valid units of a row. @return false when there are none */
static bool read_row(struct ftl *ftl, uint32_t row)
{
    uint32_t first = row * ftl->layout.row_units;
    struct ftl_request *request = NULL;

    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        if (!ftl_map_is_valid(ftl, first + i)) {
            continue;
        }
        if (request == NULL) {
            request = ftl_request_take(ftl, FTL_REQUEST_SCRUB);
            ASSERT(request != NULL);
        }
        ftl_request_add(ftl, request, first + i, &(struct ftl_flash_unit){0});
    }
    if (request == NULL) {
        return false;
    }
    ftl->scrub.is_reading = true;
    ftl->counters.scrubbed_rows++;
    ftl_request_send(ftl, request);
    return true;
}

void ftl_scrub_done(struct ftl *ftl, const struct ftl_request *request,
                    enum ftl_flash_status status)
{
    ftl->scrub.is_reading = false;
    if (status == FTL_FLASH_DEAD) {
        ftl_parity_die_is_dead(ftl, request->flash.die);
        return;
    }
    if (status != FTL_FLASH_OK) {
        return;
    }
    ftl_scrub_note_read(ftl, request);
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint32_t place = request->row * ftl->layout.row_units +
                         ftl_layout_index(&ftl->layout, &request->units[i]);

        if (request->units[i].status != FTL_UNIT_GOOD &&
            ftl_map_is_valid(ftl, place)) {
            ftl_scrub_note_weak(ftl, request->flash.block);
            return;
        }
    }
}

/* Find the next row with valid units, in one superblock at most. */
static bool scrub_superblock(struct ftl *ftl)
{
    uint32_t rows = ftl->layout.superblock_rows;
    uint32_t superblock = ftl->scrub.next_row / rows % ftl->layout.superblocks;
    const struct ftl_superblock *at = &ftl->superblocks[superblock];

    if (at->valid != 0 && !at->moves_soon) {
        for (uint32_t row = ftl->scrub.next_row % rows; row < rows; row++) {
            if (read_row(ftl, superblock * rows + row)) {
                ftl->scrub.next_row = superblock * rows + row + 1;
                return true;
            }
        }
    }
    ftl->scrub.next_row = (superblock + 1) * rows;
    return false;
}

bool ftl_scrub_step(struct ftl *ftl, uint64_t *deadline_us)
{
    uint64_t due_us = ftl->scrub.last_us + ftl->config.scrub_us;

    if (ftl->config.scrub_us == 0 || ftl->scrub.is_reading) {
        return false;
    }
    if (ftl->now_us < due_us) {
        *deadline_us = MIN(*deadline_us, due_us);
        return false;
    }
    if (ftl->free_requests.count == 0) {
        return false; /* Wait until a request has ended. */
    }
    for (uint32_t i = 0; i <= ftl->layout.superblocks; i++) {
        if (scrub_superblock(ftl)) {
            break;
        }
    }
    ftl->scrub.last_us = ftl->now_us;
    return true;
}
