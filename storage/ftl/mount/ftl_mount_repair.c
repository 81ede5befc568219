/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deals with what the scan of a mount could not read.
 *
 * If a unit cannot be read, either its row was being programmed when the power
 * failed, or its contents were durable and have become unreadable.  In place of
 * durable contents, the mount must not use older ones.
 *
 * If the other dies of the stripe can be read, the system bytes of the unit are
 * rebuilt.  They must have the number of the row.  One or two other units may
 * be missing: they may be in planes that have failed.  If more are missing, the
 * mount begins again when it knows which planes these are.  Then the map names
 * the unit, and each read of the unit rebuilds its data.  The contents of a row
 * that may be torn may be rebuilt, too, because a host has written them.  A
 * dead die is no loss of a stripe if its plane was bad when the superblock was
 * opened.  Units of a dead die are tried again if the scan has rebuilt them
 * wrongly: the number of their row may be known now.
 *
 * Then the mount looks at the entries of the checkpoint's map that name a place
 * in a scanned superblock, and that the scan has not confirmed.  If the place
 * cannot be read and was not programmed again, the entry stays, and reads of
 * the unit fail.  If the place was erased, its contents had been copied before.
 * The scan has not found this copy, so the contents are lost.
 */
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

static bool is_unreadable(const struct ftl_mounting *mounting, uint32_t place)
{
    return (mounting->unreadable[place / 8] & BIT(place % 8)) != 0;
}

/* Whether enough other units of a place's stripe can be read.  Those in planes
 * that are known to have failed are left out in any case. */
static bool is_worthwhile(const struct ftl_mount_floor *ftl, uint32_t place)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint32_t row = ftl_place_row(&ftl->layout, place);
    uint32_t index = place % ftl->layout.row_units;
    uint32_t block = ftl_place_superblock(&ftl->layout, place);
    uint8_t plane = (uint8_t)BIT(ftl->layout.units[index].plane);
    uint32_t unreadable = 0;

    for (uint32_t other = row - row % dies; other < row - row % dies + dies;
         other++) {
        if (other != row &&
            is_unreadable(&ftl->mounting,
                          other * ftl->layout.row_units + index) &&
            (ftl_good_planes(&ftl->space_floor, block, other % dies) & plane) !=
                0) {
            unreadable++;
        }
    }
    return unreadable <= FTL_LEFT_OUT_MAX;
}

/* Read the units of a row that can be rebuilt. @return whether there are any */
static bool repair_row(struct ftl_mount_floor *ftl, uint32_t row)
{
    uint32_t first = row * ftl->layout.row_units;
    struct ftl_request *request = NULL;

    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        if (!is_unreadable(&ftl->mounting, first + i)) {
            continue;
        }
        if (!is_worthwhile(ftl, first + i)) {
            ftl->mount.has_unrebuilt = true;
            continue;
        }
        if (request == NULL) {
            request = ftl_request_take(&ftl->ops, FTL_REQUEST_REPAIR);
            ASSERT(request != NULL);
            memset(request->num_left_out, 0, sizeof(request->num_left_out));
        }
        ftl_request_add(
            &ftl->layout, request, first + i,
            &(struct ftl_flash_unit){
                .system = request->system[request->flash.num_units]});
    }
    if (request == NULL) {
        return false;
    }
    ftl->mounting.requests++;
    ftl_request_send(&ftl->ops, request);
    return true;
}

bool ftl_mount_repair_done(struct ftl_mount_floor *ftl,
                           struct ftl_request *request,
                           enum ftl_flash_status status)
{
    ftl->mounting.requests--;
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return false;
    }
    if (ftl->mount.row_numbers[request->row] == 0) {
        ftl->mount.row_numbers[request->row] =
            ftl_mount_common_number(ftl, request);
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        uint32_t place = request->row * ftl->layout.row_units +
                         ftl_layout_index(&ftl->layout, &request->units[i]);

        if (ftl_mount_note_unit(ftl, request, i)) {
            ftl->mounting.unreadable[place / 8] &= (uint8_t)~BIT(place % 8);
        } else {
            ftl->mount.has_unrebuilt = true;
        }
    }
    return false;
}

/*
 * Decide about an entry of the checkpoint's map that the scan has not
 * confirmed: its place cannot be read, was erased, or has other contents.
 */
static void resolve_entry(struct ftl_mount_floor *ftl, uint32_t number)
{
    uint32_t place = ftl_entry_place(ftl->map[number]);
    uint32_t row = ftl_place_row(&ftl->layout, place);

    if (is_unreadable(&ftl->mounting, place) &&
        ftl->mount.row_numbers[row] <= ftl->mount.checkpoint_row) {
        return; /* The superblock was not programmed again. */
    }
    if (number >= ftl->config.logical_units) {
        ftl->map[number] = FTL_NOWHERE;
        ftl->mount.has_lost_pages = true;
    } else {
        ftl->map[number] = FTL_LOST_NOWHERE;
        ftl->checkpoint.is_needed = true;
        ftl->counters.lost_units++;
    }
}

/* Decide about all such entries. @return whether this is done */
static bool resolve_entries(struct ftl_mount_floor *ftl)
{
    uint32_t end = ftl_mount_part(&ftl->mount, ftl->entries);

    for (uint32_t *i = &ftl->mount.next_item; *i < end; ++*i) {
        if (ftl_mount_is_unconfirmed(ftl, *i)) {
            resolve_entry(ftl, *i);
        }
    }
    return end == ftl->entries;
}

bool ftl_mount_repair_step(struct ftl_mount_floor *ftl, bool *is_done)
{
    struct ftl_mount *mount = &ftl->mount;
    uint32_t rows = ftl->layout.superblocks * ftl->layout.superblock_rows;
    bool any = false;

    *is_done = false;
    if (!ftl->layout.has_parity) {
        ftl->mounting.next_row = rows;
    }
    while (ftl->mounting.next_row < rows) {
        if (ftl->ops.free_requests.count == 0) {
            return any;
        }
        if (!ftl_mount_take(&ftl->mount, ftl->layout.row_units)) {
            return true;
        }
        any |= repair_row(ftl, ftl->mounting.next_row++);
    }
    if (ftl->mounting.requests != 0) {
        return any;
    }
    *is_done = resolve_entries(ftl);
    if (*is_done) {
        mount->next_item = 0;
    }
    return true;
}
