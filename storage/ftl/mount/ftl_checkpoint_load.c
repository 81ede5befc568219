/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading: a mount takes the map from the latest checkpoint that is complete.
 *
 * A mount does not trust what the checkpoint says about superblocks that have
 * changed since.  Before it loads the checkpoint, it has probed the first
 * wordline of all blocks.  It scans the superblocks in which this wordline is
 * erased, lost or newer than the checkpoint.  If contents in the other
 * superblocks are not in the map of the checkpoint, durable contents had
 * superseded them, so the mount misses nothing there.  Before a superblock was
 * erased after the checkpoint, all its contents were copied, trimmed or
 * superseded.  The scan finds the copies, trims and later contents, unless they
 * cannot be read or were lost: see ftl_mount_repair.c.
 */
#include "storage/ftl/background/ftl_checkpoint.h"
#include "storage/ftl/map/map.h"
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/pages/pages.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

/* Find the latest checkpoint with a smaller number than `below`. */
static bool find_checkpoint(struct ftl_mount_floor *ftl, uint64_t below)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t planes = ftl->layout.geometry.planes;
    size_t all =
        (size_t)ftl->layout.superblocks * ftl->layout.geometry.dies * planes;

    checkpoint->row = 0;
    for (size_t i = 0; i < all; i++) {
        uint64_t probe = ftl->mount.probes[i];
        uint64_t row = probe & ~FTL_PROBE_CHECKPOINT;

        if (probe < FTL_PROBE_PARITY && (probe & FTL_PROBE_CHECKPOINT) != 0 &&
            row < below && row > checkpoint->row) {
            checkpoint->row = row;
            checkpoint->next =
                (uint32_t)(i / planes / ftl->layout.geometry.dies);
        }
    }
    checkpoint->next_row = 0;
    checkpoint->pieces = 0;
    checkpoint->is_header_good = false;
    checkpoint->is_at_end = false;
    checkpoint->rebuilds = false;
    memset(checkpoint->is_taken, 0,
           ftl_checkpoint_pieces(&ftl->background_floor) / 8 + 1);
    return checkpoint->row != 0;
}

bool ftl_checkpoint_find(struct ftl_mount_floor *ftl)
{
    ftl->checkpoint.free_rows =
        (uint32_t)(BIT(ftl_checkpoint_rows(&ftl->layout)) - 1);
    return find_checkpoint(ftl, UINT64_MAX);
}

/* Read the next row. */
static void read_row(struct ftl_mount_floor *ftl, struct ftl_request *request,
                     uint8_t planes)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t slot = (uint32_t)__builtin_ctz(checkpoint->free_rows);
    uint32_t first = request->row * ftl->layout.row_units;

    checkpoint->free_rows &= ~BIT(slot);
    request->op = (uint16_t)slot;
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(&ftl->layout, i, &unit);
        if ((planes & BIT(unit.plane)) != 0) {
            ftl_request_add(
                &ftl->layout, request, first + i,
                &(struct ftl_flash_unit){
                    .data = ftl_checkpoint_row_data(&ftl->background_floor,
                                                    slot, i),
                    .length = FTL_UNIT_DATA,
                    .system = request->system[request->flash.num_units],
                });
        }
    }
    checkpoint->requests++;
    ftl_request_send(&ftl->ops, request);
}

bool ftl_checkpoint_expects(const struct ftl_mount_floor *ftl,
                            const struct ftl_request *request, uint32_t entry,
                            uint32_t place, const struct ftl_system *system)
{
    (void)request;
    (void)entry;
    (void)place;
    return system->kind == FTL_KIND_CHECKPOINT &&
           system->version == ftl->checkpoint.row;
}

bool ftl_checkpoint_load_done(struct ftl_mount_floor *ftl,
                              struct ftl_request *request,
                              enum ftl_flash_status status)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    uint32_t erased = 0;

    checkpoint->requests--;
    checkpoint->free_rows |= BIT(request->op);
    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        return false;
    }
    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        struct ftl_system system;

        erased += request->units[i].status == FTL_UNIT_ERASED;
        if (request->units[i].status == FTL_UNIT_GOOD &&
            ftl_system_parse(&system, request->system[i]) &&
            system.kind == FTL_KIND_CHECKPOINT &&
            system.version == checkpoint->row) {
            ftl_checkpoint_take_piece(&ftl->background_floor, system.number,
                                      request->units[i].data);
        }
    }
    checkpoint->is_at_end |= erased == request->flash.num_units;
    return false;
}

static bool is_loaded(const struct ftl_mount_floor *ftl)
{
    return ftl->checkpoint.is_header_good &&
           ftl->checkpoint.pieces ==
               ftl_checkpoint_pieces(&ftl->background_floor);
}

/*
 * Whether the rows of a die are read in this pass: those that answer come
 * first.  A die whose planes had all failed when the checkpoint was written
 * holds nothing of it.  The rows of such a die are erased, but the checkpoint
 * does not end there.  The planes that have failed are not known yet, but each
 * die that holds something of the checkpoint has programmed its first wordline.
 */
static bool is_read(const struct ftl_mount_floor *ftl, uint32_t die)
{
    return ftl->dies.is_dead[die] == ftl->checkpoint.rebuilds &&
           !ftl_mount_is_block_erased(&ftl->space_floor, ftl->checkpoint.next,
                                      die);
}

/* @return whether there was a row to read */
static bool load_rows(struct ftl_mount_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;
    bool any = false;

    while (checkpoint->free_rows != 0 && !checkpoint->is_at_end &&
           !is_loaded(ftl) &&
           checkpoint->next_row != ftl->layout.superblock_rows) {
        struct ftl_request *request =
            ftl_request_take(&ftl->ops, FTL_REQUEST_LOAD);
        uint8_t planes;

        if (request == NULL) {
            break;
        }
        request->row = checkpoint->next * ftl->layout.superblock_rows +
                       checkpoint->next_row++;
        ftl_layout_row(&ftl->layout, request->row, &request->flash);
        planes = ftl_mount_planes(&ftl->space_floor, request->flash.block,
                                  request->flash.die);
        if (planes == 0 || !is_read(ftl, request->flash.die)) {
            ftl_request_free(&ftl->ops, request);
        } else {
            read_row(ftl, request, planes);
        }
        any = true;
    }
    return any;
}

/*
 * Whether the first wordlines of a superblock that was closed show that it has
 * not been erased since.
 */
static bool is_unchanged(struct ftl_mount_floor *ftl, uint32_t superblock)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    bool has_any = false;

    for (uint32_t die = 0; die < geometry->dies; die++) {
        uint32_t at = superblock * geometry->dies + die;
        uint8_t planes = ftl_good_planes(&ftl->space_floor, superblock, die);

        for (uint32_t plane = 0; plane < geometry->planes; plane++) {
            uint64_t probe = ftl->mount.probes[at * geometry->planes + plane];

            if ((planes & BIT(plane)) == 0) {
                continue;
            }
            if (probe == FTL_PROBE_PARITY) {
                continue; /* A parity unit has no row number. */
            }
            if (probe == FTL_PROBE_ERASED || probe > ftl->checkpoint.row) {
                return false;
            }
            ftl->superblocks[superblock].last_row =
                MAX(ftl->superblocks[superblock].last_row, probe);
            has_any = true;
        }
    }
    return has_any;
}

static void mark_units(struct ftl_mount_floor *ftl, uint32_t superblock,
                       uint32_t row, uint8_t planes)
{
    for (uint32_t i = 0; i < ftl->layout.row_units; i++) {
        uint32_t place = ftl_place(&ftl->layout, superblock, row, i);

        if ((planes & BIT(ftl->layout.units[i].plane)) != 0) {
            ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
        }
    }
}

/* Mark the places of a superblock that no entry may name as if others had named
 * them: those of bad planes, and all of the superblock that holds the
 * checkpoint. */
static void mark_forbidden_places(struct ftl_mount_floor *ftl,
                                  uint32_t superblock)
{
    uint32_t dies = ftl->layout.geometry.dies;
    uint8_t all = (uint8_t)(BIT(ftl->layout.geometry.planes) - 1);

    for (uint32_t die = 0; die < dies; die++) {
        uint8_t planes =
            superblock == ftl->checkpoint.next
                ? all
                : all & ~ftl_mount_planes(&ftl->space_floor, superblock, die);

        /* The rows of a die: see ftl_layout_row(). */
        for (uint32_t row = die;
             planes != 0 && row < ftl->layout.superblock_rows; row += dies) {
            mark_units(ftl, superblock, row, planes);
        }
    }
}

/* Whether an entry may be one of the checkpoint's map.  Its place is marked. */
static bool is_entry_good(struct ftl_mount_floor *ftl, uint32_t number)
{
    uint32_t entry = ftl->map[number];
    uint32_t place = ftl_entry_place(entry);

    if (entry == FTL_NOWHERE) {
        return true;
    }
    if (ftl_is_in_slot(entry) ||
        (ftl_is_lost(entry) && number >= ftl->config.logical_units)) {
        return false;
    }
    if (entry == FTL_LOST_NOWHERE) {
        return true;
    }
    if (place >= ftl->layout.places ||
        ftl_map_is_valid(&ftl->map_floor, place)) {
        return false;
    }
    ftl->valid[place / 8] |= (uint8_t)BIT(place % 8);
    return true;
}

/*
 * The map that was loaded must be consistent, so that using it is safe: mark,
 * check, and remove the marks.  Then take the checkpoint over, or forget its
 * map.  Each of these steps is done in parts, and returns whether it is done.
 */
static bool mark_places(struct ftl_mount_floor *ftl)
{
    uint32_t *i = &ftl->mount.next_item;

    for (; *i < ftl->layout.superblocks; ++*i) {
        if (!ftl_mount_take(&ftl->mount, ftl->layout.superblock_rows)) {
            return false;
        }
        mark_forbidden_places(ftl, *i);
    }
    return true;
}

/* This takes a large part of a mount's time, so the loop divides nothing. */
static bool check_entries(struct ftl_mount_floor *ftl)
{
    bool is_good = ftl->checkpoint.is_map_good;
    uint32_t end = ftl_mount_part(&ftl->mount, ftl->entries);

    for (uint32_t i = ftl->mount.next_item; is_good && i < end; i++) {
        is_good = is_entry_good(ftl, i);
    }
    ftl->mount.next_item = end;
    ftl->checkpoint.is_map_good = is_good;
    return end == ftl->entries || !is_good;
}

static bool remove_marks(struct ftl_mount_floor *ftl)
{
    uint32_t first = ftl->mount.next_item;
    uint32_t bytes = ftl->layout.places / 8 + 1;
    uint32_t end = ftl_mount_part(&ftl->mount, bytes);

    memset(ftl->valid + first, 0, end - first);
    ftl->mount.next_item = end;
    return end == bytes;
}

static bool set_versions(struct ftl_mount_floor *ftl)
{
    uint64_t key = ftl_checkpoint_key(&ftl->mount);
    uint32_t end = ftl_mount_part(&ftl->mount, ftl->entries);

    for (uint32_t *i = &ftl->mount.next_item; *i < end; ++*i) {
        ftl->mount.versions[*i] = key;
    }
    return end == ftl->entries;
}

static bool forget_map(struct ftl_mount_floor *ftl)
{
    uint32_t first = ftl->mount.next_item;
    uint32_t end = ftl_mount_part(&ftl->mount, ftl->entries);

    memset(ftl->map + first, 0xff, (end - first) * sizeof(ftl->map[0]));
    ftl->mount.next_item = end;
    return end == ftl->entries;
}

uint64_t ftl_checkpoint_key(const struct ftl_mount *mount)
{
    return mount->checkpoint_row << FTL_VERSION_SHIFT | FTL_ATTEMPTS_MAX;
}

/* Take over what has been loaded, except for the versions. */
static void accept_checkpoint(struct ftl_mount_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    ftl_health_take_planes(&ftl->pages_floor, checkpoint->planes);
    ftl->is_read_only |= checkpoint->was_read_only;
    ftl->has_marks |= checkpoint->had_marks;
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        ftl->superblocks[i].is_known = i != checkpoint->next &&
                                       checkpoint->table[i] != 0 &&
                                       is_unchanged(ftl, i);
        ftl->superblocks[i].was_moving =
            ftl->superblocks[i].is_known &&
            ftl_checkpoint_moves_soon(&ftl->checkpoint, i);
    }
    checkpoint->superblock = checkpoint->next;
    checkpoint->next = FTL_NOWHERE;
    ftl->superblocks[checkpoint->superblock].is_known = true;
    ftl->mounting.last_row = checkpoint->row;
    ftl->mount.last_normal_row = checkpoint->row;
    ftl->mount.last_data_row = checkpoint->row;
    ftl->mount.checkpoint_row = checkpoint->row;
}

static void enter_check(struct ftl_mount_floor *ftl,
                        enum ftl_checkpoint_check next)
{
    ftl->checkpoint.check = (uint8_t)next;
    ftl->mount.next_item = 0;
}

/* Go on with what has been loaded.
 * @return whether the mount has done with all checkpoints */
static bool step_check(struct ftl_mount_floor *ftl)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    switch ((enum ftl_checkpoint_check)checkpoint->check) {
    case FTL_CHECK_MARKS:
        if (mark_places(ftl)) {
            checkpoint->is_map_good = true;
            enter_check(ftl, FTL_CHECK_ENTRIES);
        }
        break;
    case FTL_CHECK_ENTRIES:
        if (check_entries(ftl)) {
            enter_check(ftl, FTL_CHECK_UNMARKS);
        }
        break;
    case FTL_CHECK_UNMARKS:
        if (!remove_marks(ftl)) {
            break;
        }
        if (checkpoint->is_map_good) {
            accept_checkpoint(ftl);
        }
        enter_check(ftl, checkpoint->is_map_good ? FTL_CHECK_VERSIONS
                                                 : FTL_CHECK_FORGETS);
        break;
    case FTL_CHECK_VERSIONS:
        if (set_versions(ftl)) {
            enter_check(ftl, FTL_CHECK_NONE);
            return true;
        }
        break;
    case FTL_CHECK_FORGETS:
        if (forget_map(ftl)) {
            enter_check(ftl, FTL_CHECK_NONE);
            if (!find_checkpoint(ftl, checkpoint->row)) {
                checkpoint->next = FTL_NOWHERE;
                return true;
            }
        }
        break;
    case FTL_CHECK_NONE:
        break;
    }
    return false;
}

/* Do so until the step has dealt with as much as it may. @return the same */
static bool run_check(struct ftl_mount_floor *ftl)
{
    while (ftl->checkpoint.check != FTL_CHECK_NONE) {
        if (step_check(ftl)) {
            return true;
        }
        if (ftl->mount.turn_left == 0) {
            break;
        }
    }
    return false;
}

/*
 * If a die died before the checkpoint was written, it holds none of the pieces.
 * Otherwise, rebuild those that it holds.
 * @return whether there may be any
 */
static bool begin_rebuilding(struct ftl_mount_floor *ftl)
{
    if (is_loaded(ftl) || ftl->checkpoint.rebuilds || ftl->dies.num_dead == 0) {
        return false;
    }
    ftl->checkpoint.rebuilds = true;
    ftl->checkpoint.is_at_end = false;
    ftl->checkpoint.next_row = 0;
    return true;
}

bool ftl_checkpoint_load(struct ftl_mount_floor *ftl, bool *is_done)
{
    struct ftl_checkpoint *checkpoint = &ftl->checkpoint;

    *is_done = false;
    if (checkpoint->check != FTL_CHECK_NONE) {
        *is_done = run_check(ftl);
        return true;
    }
    if (load_rows(ftl)) {
        return true;
    }
    if (checkpoint->requests != 0) {
        return false;
    }
    if (begin_rebuilding(ftl)) {
        return true;
    }
    enter_check(ftl, is_loaded(ftl) ? FTL_CHECK_MARKS : FTL_CHECK_FORGETS);
    *is_done = run_check(ftl);
    return true;
}
