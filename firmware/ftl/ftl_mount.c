/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mounting: the map is made from the system bytes of everything on the flash.
 *
 * Each die is read from its first block to its last, all dies at the same time.
 * Of each logical unit the latest version counts, and of several copies of it
 * the one that was programmed first.  So when power fails while garbage
 * collection copies a superblock, the copies count for nothing, and their
 * superblock is free: collections that are cut again and again use up no space.
 * Then the trim pages are read and applied.
 *
 * Units that cannot be corrected are ignored: after a power cut these are units
 * of rows that were being programmed, which nobody was told to be durable.  No
 * superblock is written further after a mount, since a half programmed row
 * cannot be continued.
 */
#include "firmware/ftl/ftl_internal.h"

/* ---- Scan. */

/*
 * Read the row that a request names, or the next one of its die.
 * @return false when there is none
 */
static bool scan_row(struct ftl *ftl, struct ftl_request *request)
{
    const struct ftl_layout *layout = &ftl->layout;
    struct ftl_flash_op *flash = &request->flash;
    uint32_t first;

    for (;; flash->block++, flash->wordline = 0) {
        if (flash->block == layout->superblocks) {
            return false;
        }
        flash->planes = ftl_good_planes(ftl, flash->block, flash->die);
        if (flash->planes != 0 &&
            flash->wordline < layout->geometry.wordlines) {
            break;
        }
    }
    first = ftl_place(
        layout, flash->block,
        (uint32_t)flash->wordline * layout->geometry.dies + flash->die, 0);
    flash->num_units = 0;
    for (uint32_t i = 0; i < layout->row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(layout, i, &unit);
        if ((flash->planes & BIT(unit.plane)) != 0) {
            ftl_request_add(ftl, request, first + i,
                            &(struct ftl_flash_unit){
                                .system = request->system[flash->num_units]});
        }
    }
    ftl->counters.scanned_rows++;
    ftl_request_send(ftl, request);
    return true;
}

/* Whether what was found is to replace an entry of the map. */
static bool is_better(const struct ftl *ftl, uint32_t entry,
                      const struct ftl_system *system)
{
    uint32_t place = ftl->map[entry];

    if (place == FTL_NOWHERE) {
        return true;
    }
    if (system->version != ftl->mount.versions[entry]) {
        return system->version > ftl->mount.versions[entry];
    }
    return system->row <
           ftl->mount.row_numbers[ftl_place_row(&ftl->layout, place)];
}

/* Take a unit that was found at a place into the map. */
static void note_unit(struct ftl *ftl, uint32_t place, const uint8_t *bytes)
{
    struct ftl_mount *mount = &ftl->mount;
    struct ftl_system system;
    uint32_t entry;

    if (!ftl_system_parse(&system, bytes)) {
        return;
    }
    mount->row_numbers[ftl_place_row(&ftl->layout, place)] = system.row;
    mount->last_row = MAX(mount->last_row, system.row);
    if (system.kind == FTL_KIND_DATA &&
        system.number < ftl->config.logical_units) {
        entry = system.number;
    } else if (system.kind == FTL_KIND_TRIM &&
               system.number < ftl->trim_pages) {
        entry = ftl->config.logical_units + system.number;
    } else {
        return;
    }
    if (is_better(ftl, entry, &system)) {
        ftl->map[entry] = place;
        mount->versions[entry] = system.version;
    }
}

bool ftl_mount_scan_done(struct ftl *ftl, struct ftl_request *request,
                         enum ftl_flash_status status)
{
    struct ftl_flash_op *flash = &request->flash;
    struct ftl_superblock *superblock = &ftl->superblocks[flash->block];
    uint32_t first = request->row * ftl->layout.row_units;
    uint32_t erased = 0;

    for (uint32_t i = 0; status == FTL_FLASH_OK && i < flash->num_units; i++) {
        const struct ftl_flash_unit *unit = &request->units[i];

        erased += unit->status == FTL_UNIT_ERASED;
        if (unit->status == FTL_UNIT_GOOD) {
            note_unit(ftl, first + ftl_layout_index(&ftl->layout, unit),
                      request->system[i]);
        }
    }
    if (erased != flash->num_units) {
        superblock->is_erased = false;
    }
    if (erased == flash->num_units || status != FTL_FLASH_OK) {
        flash->wordline = ftl->layout.geometry.wordlines;
    } else {
        flash->wordline++;
    }
    if (status == FTL_FLASH_ERROR) {
        ftl->state = FTL_FAILED;
    }
    if (ftl->state == FTL_MOUNTING && scan_row(ftl, request)) {
        return true;
    }
    ftl->mount.requests--;
    return false;
}

static bool step_scan(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    bool any = false;

    while (mount->next_die < ftl->layout.geometry.dies) {
        struct ftl_request *request = ftl_request_take(ftl, FTL_REQUEST_SCAN);

        if (request == NULL) {
            return any;
        }
        request->flash.die = (uint16_t)mount->next_die++;
        if (scan_row(ftl, request)) {
            mount->requests++;
        } else {
            ftl_list_append(&ftl->free_requests,
                            (uint16_t)request->flash.cookie);
        }
        any = true;
    }
    if (mount->requests == 0) {
        mount->phase = FTL_MOUNT_PAGES;
        any = true;
    }
    return any;
}

/* ---- Trim pages, one after another. */

void ftl_mount_page_done(struct ftl *ftl, struct ftl_request *request,
                         enum ftl_flash_status status)
{
    struct ftl_mount *mount = &ftl->mount;

    mount->requests--;
    if (status != FTL_FLASH_OK || request->units[0].status != FTL_UNIT_GOOD) {
        ftl->state = FTL_FAILED;
        return;
    }
    ftl_trim_apply(ftl, mount->next_page - 1, mount->page,
                   mount->page + FTL_UNIT_DATA);
}

/* Everything is read: the superblocks are what the map says. */
static void finish_mount(struct ftl *ftl)
{
    for (uint32_t i = 0; i < ftl->entries; i++) {
        if (ftl->map[i] != FTL_NOWHERE) {
            ftl_map_set_valid(ftl, ftl->map[i]);
        }
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        struct ftl_superblock *superblock = &ftl->superblocks[i];

        if (superblock->valid != 0) {
            ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_CLOSED);
        } else if (!ftl_superblock_is_good(ftl, i)) {
            ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_RETIRED);
        }
    }
    ftl->next_row_number = ftl->mount.last_row + FTL_ROW_GAP;
    ftl->state = FTL_READY;
}

static bool step_pages(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;

    if (mount->requests != 0) {
        return false;
    }
    while (mount->next_page < ftl->trim_pages) {
        uint32_t place =
            ftl->map[ftl->config.logical_units + mount->next_page++];

        if (place != FTL_NOWHERE) {
            struct ftl_request *request =
                ftl_request_take(ftl, FTL_REQUEST_PAGE);

            ASSERT(request != NULL);
            ftl_request_add(ftl, request, place,
                            &(struct ftl_flash_unit){
                                .data = mount->page,
                                .meta = mount->page + FTL_UNIT_DATA,
                                .length = FTL_UNIT_DATA,
                            });
            mount->requests++;
            ftl_request_send(ftl, request);
            return true;
        }
    }
    finish_mount(ftl);
    return true;
}

bool ftl_mount_step(struct ftl *ftl)
{
    return ftl->mount.phase == FTL_MOUNT_SCAN ? step_scan(ftl)
                                              : step_pages(ftl);
}
