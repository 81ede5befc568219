/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mounting: the map is made from the system bytes of everything on the flash,
 * except for superblocks of which a checkpoint says what they hold.
 *
 * Each die is read from its first block to its last, all dies at the same time.
 * Of each logical unit the latest version counts.  Of several copies of it, the
 * one with the largest attempt counts, and of these the one that was programmed
 * first.  So when power fails while garbage collection copies a superblock, the
 * originals count, and the superblock with the copies holds nothing:
 * collections that are cut again and again use up no space.  Then the trim
 * pages are read and applied.
 *
 * Units that cannot be corrected are ignored: after a power cut these are units
 * of rows that were being programmed, which nobody was told to be durable.  But
 * a unit of such a row may be readable at one mount and not at the next.  So
 * before the first operation is served, the mount copies all units of rows that
 * may be torn.  Then it collects and erases the superblocks of these rows.  If
 * a unit that was found cannot be read when it is copied, the mount begins
 * again without it, and an older version counts.  This version is still there,
 * because nothing is erased before all copies are on flash.
 *
 * If there is no space for these copies, the medium is read-only until the next
 * start.  What a row that may be torn holds may then be unreadable later.
 *
 * Rows of a die that does not answer are rebuilt from parity.  A flash that
 * reports anything else than such units, or a second dead die, makes the mount
 * fail, so that a failure is not taken for a power cut.
 */
#include "firmware/ftl/ftl_internal.h"

#include <string.h>

/* ---- Probes. */

/* The planes that a mount reads: all but those that the factory has marked, as
 * a plane that has failed later may hold contents. */
uint8_t ftl_mount_planes(const struct ftl *ftl, uint32_t superblock,
                         uint32_t die)
{
    uint8_t bad =
        ftl->factory_planes[superblock * ftl->layout.geometry.dies + die];

    return (uint8_t)((BIT(ftl->layout.geometry.planes) - 1) & ~bad);
}

/*
 * Read one unit of each plane of the first wordline of a request's block, or of
 * the next one.
 * @return false when there is none
 */
static bool probe_block(struct ftl *ftl, struct ftl_request *request)
{
    const struct ftl_layout *layout = &ftl->layout;
    struct ftl_flash_op *flash = &request->flash;
    uint16_t die = flash->die;
    uint8_t planes = 0;

    for (; flash->block != layout->superblocks; flash->block++) {
        planes = ftl_mount_planes(ftl, flash->block, die);
        if (planes != 0) {
            break;
        }
    }
    if (planes == 0) {
        return false;
    }
    flash->num_units = 0;
    for (uint32_t i = 0; i < layout->row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(layout, i, &unit);
        if (unit.page == 0 && unit.unit == 0 &&
            (planes & BIT(unit.plane)) != 0) {
            ftl_request_add(ftl, request,
                            ftl_place(layout, flash->block, die, i),
                            &(struct ftl_flash_unit){
                                .system = request->system[flash->num_units]});
        }
    }
    flash->planes = planes;
    ftl_request_send(ftl, request);
    return true;
}

static uint64_t read_probe(const struct ftl_request *request, uint32_t index)
{
    struct ftl_system system;

    if (request->units[index].status == FTL_UNIT_ERASED) {
        return FTL_PROBE_ERASED;
    }
    if (request->units[index].status != FTL_UNIT_GOOD) {
        return FTL_PROBE_LOST;
    }
    if (ftl_system_is_parity(request->system[index])) {
        return FTL_PROBE_PARITY;
    }
    if (!ftl_system_parse(&system, request->system[index])) {
        return FTL_PROBE_LOST;
    }
    return system.kind == FTL_KIND_CHECKPOINT
               ? system.row | FTL_PROBE_CHECKPOINT
               : system.row;
}

bool ftl_mount_probe_done(struct ftl *ftl, struct ftl_request *request,
                          enum ftl_flash_status status)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    struct ftl_flash_op *flash = &request->flash;
    uint32_t at = (uint32_t)flash->block * geometry->dies + flash->die;

    if (status == FTL_FLASH_DEAD) {
        ftl_parity_die_is_dead(ftl, flash->die);
    } else if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
    }
    for (uint32_t i = 0; i < flash->num_units; i++) {
        ftl->mount.probes[at * geometry->planes + request->units[i].plane] =
            status == FTL_FLASH_OK ? read_probe(request, i) : FTL_PROBE_PARITY;
    }
    flash->block++;
    if (ftl->state == FTL_MOUNTING && probe_block(ftl, request)) {
        return true;
    }
    ftl->mount.requests--;
    return false;
}

/* Whether probes have found nothing in any plane of a block and die. */
static bool is_block_erased(const struct ftl *ftl, uint32_t superblock,
                            uint32_t die)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    uint32_t at = superblock * geometry->dies + die;
    uint8_t planes = ftl_mount_planes(ftl, superblock, die);

    for (uint32_t plane = 0; plane < geometry->planes; plane++) {
        if ((planes & BIT(plane)) != 0 &&
            ftl->mount.probes[at * geometry->planes + plane] !=
                FTL_PROBE_ERASED) {
            return false;
        }
    }
    return true;
}

/* Begin requests of a kind, one for each die, that go on by themselves.
 * @return whether there were any */
static bool start_dies(struct ftl *ftl, enum ftl_request_kind kind,
                       bool (*send)(struct ftl *, struct ftl_request *))
{
    struct ftl_mount *mount = &ftl->mount;
    bool any = false;

    while (mount->next_die < ftl->layout.geometry.dies) {
        struct ftl_request *request = ftl_request_take(ftl, kind);

        if (request == NULL) {
            return any;
        }
        request->flash.die = (uint16_t)mount->next_die++;
        if (send(ftl, request)) {
            mount->requests++;
        } else {
            ftl_request_free(ftl, request);
        }
        any = true;
    }
    return any;
}

static bool step_probe(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;
    bool any = start_dies(ftl, FTL_REQUEST_PROBE, probe_block);

    if (mount->requests == 0 && mount->next_die == ftl->layout.geometry.dies) {
        mount->next_die = 0;
        mount->phase =
            ftl_checkpoint_find(ftl) ? FTL_MOUNT_LOAD : FTL_MOUNT_SCAN;
        any = true;
    }
    return any;
}

static bool step_load(struct ftl *ftl)
{
    bool is_done;
    bool any = ftl_checkpoint_load(ftl, &is_done);

    if (is_done) {
        ftl->mount.phase = FTL_MOUNT_SCAN;
    }
    return any;
}

/* ---- Scan. */

/*
 * Whether a block is left out: the checkpoint says what is in it, or nothing
 * is.
 */
static bool is_left_out(struct ftl *ftl, uint32_t superblock, uint32_t die)
{
    if (ftl->superblocks[superblock].is_known) {
        return true;
    }
    if (!is_block_erased(ftl, superblock, die)) {
        return false;
    }
    ftl->mount.partial_planes[superblock * ftl->layout.geometry.dies + die] |=
        ftl_mount_planes(ftl, superblock, die);
    return true;
}

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
        flash->planes = ftl_mount_planes(ftl, flash->block, flash->die);
        if (flash->planes != 0 &&
            flash->wordline < layout->geometry.wordlines &&
            (flash->wordline != 0 ||
             !is_left_out(ftl, flash->block, flash->die))) {
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

static struct ftl_superblock *superblock_of(const struct ftl *ftl,
                                            uint32_t place)
{
    return &ftl->superblocks[ftl_place_superblock(&ftl->layout, place)];
}

/* The later version counts; of its copies, one that no failed row can be. */
static uint64_t version_key(const struct ftl_system *system)
{
    return system->version << FTL_VERSION_SHIFT | system->attempt;
}

/* Whether what was found is to replace an entry of the map. */
static bool is_better(const struct ftl *ftl, uint32_t entry, uint32_t place,
                      const struct ftl_system *system)
{
    uint32_t other = ftl->map[entry];
    bool is_own, other_is_own;

    if (version_key(system) != ftl->mount.versions[entry]) {
        return version_key(system) > ftl->mount.versions[entry];
    }
    if (other == FTL_NOWHERE) {
        return true;
    }
    is_own = superblock_of(ftl, place)->is_own;
    other_is_own = superblock_of(ftl, other)->is_own;
    if (is_own != other_is_own) {
        return is_own;
    }
    return system->row <
           ftl->mount.row_numbers[ftl_place_row(&ftl->layout, other)];
}

void ftl_mount_ignore(struct ftl *ftl, uint32_t place)
{
    ftl->mount.ignored[place / 8] |= (uint8_t)BIT(place % 8);
    ftl->mount.is_in_vain = true;
}

/*
 * Read the system bytes of a unit of a row.
 * @return false when the unit has no contents, or must be ignored
 */
static bool parse_unit(const struct ftl *ftl, const struct ftl_request *request,
                       uint32_t index, uint32_t *place,
                       struct ftl_system *system)
{
    const struct ftl_flash_unit *unit = &request->units[index];

    *place = request->row * ftl->layout.row_units +
             ftl_layout_index(&ftl->layout, unit);
    return unit->status == FTL_UNIT_GOOD &&
           (ftl->mount.ignored[*place / 8] & BIT(*place % 8)) == 0 &&
           ftl_system_parse(system, request->system[index]);
}

/*
 * All units of a row have the same number.  Smaller ones are what is left in a
 * plane whose erasure had failed: this plane was not used when the superblock
 * was programmed again, and all that was valid in it had been moved.
 */
static uint64_t find_row_number(const struct ftl *ftl,
                                const struct ftl_request *request)
{
    uint64_t number = 0;

    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        struct ftl_system system;
        uint32_t place;

        if (parse_unit(ftl, request, i, &place, &system)) {
            number = MAX(number, system.row);
        }
    }
    return number;
}

bool ftl_mount_is_settling(const struct ftl *ftl)
{
    return ftl->state == FTL_MOUNTING && ftl->mount.phase == FTL_MOUNT_SETTLE;
}

/* Take the unit `index` of a row into the map. */
static void note_unit(struct ftl *ftl, const struct ftl_request *request,
                      uint32_t index)
{
    struct ftl_mount *mount = &ftl->mount;
    struct ftl_superblock *superblock = &ftl->superblocks[request->flash.block];
    struct ftl_system system;
    uint32_t entry, place;

    if (!parse_unit(ftl, request, index, &place, &system) ||
        system.row != mount->row_numbers[request->row]) {
        return;
    }
    mount->last_row = MAX(mount->last_row, system.row);
    if (!system.is_of_mount) {
        mount->last_normal_row = MAX(mount->last_normal_row, system.row);
        superblock->has_normal_row = true;
    }
    superblock->last_row = MAX(superblock->last_row, system.row);
    if (system.kind == FTL_KIND_DATA &&
        system.number < ftl->config.logical_units) {
        entry = system.number;
    } else if (system.kind == FTL_KIND_TRIM &&
               system.number < ftl->entries - ftl->config.logical_units) {
        entry = ftl->config.logical_units + system.number;
    } else {
        return;
    }
    if (is_better(ftl, entry, place, &system)) {
        ftl->map[entry] = place;
        mount->versions[entry] = version_key(&system);
    }
}

/*
 * Note which planes of a row are erased, or have lost their contents.
 * @param parity  units that hold parity
 */
static void note_planes(struct ftl *ftl, const struct ftl_request *request,
                        uint8_t erased, uint32_t parity)
{
    const struct ftl_flash_op *flash = &request->flash;
    uint32_t at =
        (uint32_t)flash->block * ftl->layout.geometry.dies + flash->die;
    bool is_lost = ftl->mount.row_numbers[request->row] == 0 && parity == 0;

    ftl->mount.used_planes[at] |= flash->planes & (uint8_t)~erased;
    ftl->mount.partial_planes[at] |= is_lost ? flash->planes : erased;
}

/* Whether a unit holds parity.  A mount needs none of it. */
static bool is_parity(const struct ftl_request *request, uint32_t index)
{
    return request->units[index].status == FTL_UNIT_GOOD &&
           ftl_system_is_parity(request->system[index]);
}

/* Whether firmware without parity has written a unit. */
static bool is_old(const struct ftl_request *request, uint32_t index)
{
    return request->units[index].status == FTL_UNIT_GOOD &&
           ftl_system_is_old(request->system[index]);
}

bool ftl_mount_scan_done(struct ftl *ftl, struct ftl_request *request,
                         enum ftl_flash_status status)
{
    struct ftl_flash_op *flash = &request->flash;
    uint8_t erased = 0;
    uint32_t parity = 0;

    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        ftl->mount.requests--;
        return false;
    }
    ftl->mount.row_numbers[request->row] = find_row_number(ftl, request);
    for (uint32_t i = 0; i < flash->num_units; i++) {
        if (request->units[i].status == FTL_UNIT_ERASED) {
            erased |= (uint8_t)BIT(request->units[i].plane);
        }
        parity += is_parity(request, i);
        ftl->mount.is_old |= is_old(request, i);
        note_unit(ftl, request, i);
    }
    note_planes(ftl, request, erased, parity);
    if (ftl->mount.is_old) {
        ftl->state = FTL_FAILED;
    }
    if (erased == flash->planes) {
        flash->wordline = ftl->layout.geometry.wordlines;
    } else {
        flash->wordline++;
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
    bool any = start_dies(ftl, FTL_REQUEST_SCAN, scan_row);

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
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return;
    }
    if (request->units[0].status != FTL_UNIT_GOOD) {
        ftl_mount_ignore(
            ftl, ftl->map[ftl->config.logical_units + mount->next_page - 1]);
        return;
    }
    ftl_trim_apply(ftl, mount->next_page - 1, mount->page,
                   mount->page + FTL_UNIT_DATA);
}

/* Whether a list names planes of a superblock that take data. */
static bool has_planes(const struct ftl *ftl, uint32_t superblock,
                       const uint8_t *planes)
{
    uint32_t dies = ftl->layout.geometry.dies;

    for (uint32_t die = 0; die < dies; die++) {
        if ((planes[superblock * dies + die] &
             ftl_good_planes(ftl, superblock, die)) != 0) {
            return true;
        }
    }
    return false;
}

/*
 * Everything is read: set the state of each superblock.
 *
 * Rows that may be torn are the last ones before the power cut, and all rows
 * that mounts have programmed since then.  Older torn rows do not exist,
 * because a mount that ends has erased the superblocks of those that it knew.
 * When a checkpoint began, no row was in flight.
 */
static void set_superblocks(struct ftl *ftl)
{
    uint64_t last = ftl->mount.last_normal_row;
    uint64_t margin = (uint64_t)FTL_SUSPECT_ROWS * ftl->layout.geometry.dies;

    for (uint32_t i = 0; i < ftl->entries; i++) {
        if (ftl->map[i] != FTL_NOWHERE) {
            ftl_map_set_valid(ftl, ftl->map[i]);
        }
    }
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        struct ftl_superblock *at = &ftl->superblocks[i];

        ftl_superblock_measure(ftl, i);
        if (at->is_known) {
            ftl_superblock_enter(ftl, i,
                                 i == ftl->checkpoint.superblock
                                     ? FTL_SUPERBLOCK_META
                                     : FTL_SUPERBLOCK_CLOSED);
            continue;
        }
        at->is_erased =
            at->valid == 0 && !has_planes(ftl, i, ftl->mount.used_planes);
        at->is_partial = has_planes(ftl, i, ftl->mount.partial_planes);
        if (i == ftl->streams[FTL_STREAM_MOVE].superblock) {
            ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_OPEN);
        } else if (!at->is_erased) {
            at->is_suspect = !at->is_own && (at->valid == 0 || at->is_partial ||
                                             at->last_row + margin > last);
            ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_CLOSED);
        } else if (!ftl_superblock_is_good(ftl, i)) {
            ftl_superblock_enter(ftl, i, FTL_SUPERBLOCK_RETIRED);
        }
        ftl->checkpoint.opened += !at->is_erased;
    }
    ftl->next_row_number = ftl->mount.last_row + FTL_ROW_GAP;
    ftl->mount.settle_row =
        MAX(last - MIN(last, margin), ftl->mount.checkpoint_row);
    ftl->mount.phase = ftl->free_superblocks < FTL_HOST_LEAVES_FREE - 1
                           ? FTL_MOUNT_DROP
                           : FTL_MOUNT_SETTLE;
}

static bool step_pages(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;

    if (mount->requests != 0) {
        return false;
    }
    while (mount->next_page < ftl->entries - ftl->config.logical_units) {
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
    set_superblocks(ftl);
    return true;
}

/* ---- Superblocks that may have torn rows. */

/*
 * Mounts that were cut have left copies.  They are valid only where the
 * originals have been erased.  Without them, a unit that is readable now, but
 * not when it is copied, has no other copy: so they are erased only when there
 * is little space.
 */
static bool step_drop(struct ftl *ftl)
{
    bool any = ftl_collect_step(ftl);

    if (!ftl_collect_is_due(ftl)) {
        ftl->mount.phase = FTL_MOUNT_SETTLE;
        any = true;
    }
    return any;
}

static bool step_settle(struct ftl *ftl)
{
    bool is_done;
    bool any = ftl_collect_settle(ftl, &is_done);

    if (is_done) {
        ftl->mount.phase = FTL_MOUNT_CLEAR;
    }
    return ftl_row_step(ftl) || any;
}

static bool step_clear(struct ftl *ftl)
{
    bool any = ftl_collect_step(ftl);

    any |= ftl_row_step(ftl);
    if (!ftl_collect_is_due(ftl)) {
        ftl->state = FTL_READY;
        ftl_parity_mounted(ftl);
        if (ftl_health_is_worn_out(ftl)) {
            ftl_health_set_read_only(ftl);
        }
        any = true;
    }
    return any;
}

/* ---- All together. */

void ftl_mount_begin(struct ftl *ftl)
{
    struct ftl_mount *mount = &ftl->mount;

    ftl_collect_stop(ftl);
    memset(ftl->map, 0xff, ftl->entries * sizeof(ftl->map[0]));
    memset(ftl->valid, 0, ftl->layout.places / 8 + 1);
    memset(mount->row_numbers, 0,
           ftl->layout.superblocks * ftl->layout.superblock_rows *
               sizeof(mount->row_numbers[0]));
    memset(mount->used_planes, 0,
           (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies);
    memset(mount->partial_planes, 0,
           (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies);
    ftl->free_superblocks = ftl->layout.superblocks;
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i] = (struct ftl_superblock){
            .is_own = ftl->superblocks[i].is_own,
            .has_parity = ftl->superblocks[i].has_parity,
        };
        ftl_superblock_measure(ftl, i);
    }
    memset(mount->versions, 0, ftl->entries * sizeof(mount->versions[0]));
    memset(mount->probes, 0,
           (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies *
               ftl->layout.geometry.planes * sizeof(mount->probes[0]));
    ftl->checkpoint.superblock = FTL_NOWHERE;
    ftl->checkpoint.next = FTL_NOWHERE;
    ftl->checkpoint.opened = 0;
    mount->checkpoint_row = 0;
    mount->phase = FTL_MOUNT_PROBE;
    mount->next_die = 0;
    mount->next_page = 0;
    mount->last_row = 0;
    mount->last_normal_row = 0;
    mount->is_in_vain = false;
}

static bool step_phase(struct ftl *ftl)
{
    switch ((enum ftl_mount_phase)ftl->mount.phase) {
    case FTL_MOUNT_PROBE:
        return step_probe(ftl);
    case FTL_MOUNT_LOAD:
        return step_load(ftl);
    case FTL_MOUNT_SCAN:
        return step_scan(ftl);
    case FTL_MOUNT_PAGES:
        return step_pages(ftl);
    case FTL_MOUNT_DROP:
        return step_drop(ftl);
    case FTL_MOUNT_SETTLE:
        return step_settle(ftl);
    case FTL_MOUNT_CLEAR:
        break;
    }
    return step_clear(ftl);
}

static bool is_waiting_for_flash(const struct ftl *ftl)
{
    return ftl->free_requests.count != ftl->config.num_requests;
}

bool ftl_mount_step(struct ftl *ftl)
{
    bool any;

    if (ftl->mount.is_in_vain) {
        if (is_waiting_for_flash(ftl)) {
            return false;
        }
        ftl_mount_begin(ftl);
        return true;
    }
    any = step_phase(ftl);
    if (!any && !is_waiting_for_flash(ftl)) {
        /* There is no space to move units to. */
        ftl_collect_stop(ftl);
        ftl->is_read_only = true;
        ftl->state = FTL_READY;
        any = true;
    }
    return any;
}
