/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scan: a mount reads the system bytes of all rows of the superblocks whose
 * contents it does not know from a checkpoint.
 *
 * Each die is read from its first block to its last, all dies at the same time.
 * Of each logical unit the latest version counts.  Of several copies of it, the
 * one with the largest attempt counts, and of these the one that was programmed
 * first.  So when power fails while garbage collection copies a superblock, the
 * originals count, and the superblock with the copies holds nothing:
 * collections that are cut again and again use up no space.
 */
#include "storage/ftl/mount/mount.h"
#include "storage/ftl/ops/ops.h"
#include "storage/ftl/rows/rows.h"
#include "storage/ftl/space/ftl_findings.h"
#include "storage/ftl/space/space.h"

#include <string.h>

/*
 * Whether the scan leaves a block out, because the checkpoint says what is in
 * it, or because it is erased.
 */
static bool is_left_out(struct ftl_mount_floor *ftl, uint32_t superblock,
                        uint32_t die)
{
    if (ftl->superblocks[superblock].is_known) {
        return true;
    }
    if (!ftl_mount_is_block_erased(&ftl->space_floor, superblock, die)) {
        return false;
    }
    ftl->mounting
        .partial_planes[superblock * ftl->layout.geometry.dies + die] |=
        ftl_mount_planes(&ftl->space_floor, superblock, die);
    return true;
}

bool ftl_mount_scan_row(struct ftl_mount_floor *ftl,
                        struct ftl_request *request)
{
    const struct ftl_layout *layout = &ftl->layout;
    struct ftl_flash_op *flash = &request->flash;
    uint32_t first;

    for (;; flash->block++, flash->wordline = 0) {
        if (flash->block == layout->superblocks) {
            return false;
        }
        flash->planes =
            ftl_mount_planes(&ftl->space_floor, flash->block, flash->die);
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
    memset(request->num_left_out, 0, sizeof(request->num_left_out));
    for (uint32_t i = 0; i < layout->row_units; i++) {
        struct ftl_flash_unit unit;

        ftl_layout_unit(layout, i, &unit);
        if ((flash->planes & BIT(unit.plane)) != 0) {
            ftl_request_add(&ftl->layout, request, first + i,
                            &(struct ftl_flash_unit){
                                .system = request->system[flash->num_units]});
        }
    }
    ftl->counters.scanned_rows++;
    ftl_request_send(&ftl->ops, request);
    return true;
}

static struct ftl_superblock *superblock_of(const struct ftl_mount_floor *ftl,
                                            uint32_t place)
{
    return &ftl->superblocks[ftl_place_superblock(&ftl->layout, place)];
}

/* The value by which units are compared: the later version counts and, of its
 * copies, the one with the largest attempt. */
static uint64_t version_key(const struct ftl_system *system)
{
    return system->version << FTL_VERSION_SHIFT | system->attempt;
}

bool ftl_mount_is_unconfirmed(const struct ftl_mount_floor *ftl,
                              uint32_t number)
{
    uint32_t place = ftl_entry_place(ftl->map[number]);

    return ftl->mount.checkpoint_row != 0 && place != FTL_NOWHERE &&
           ftl->mount.versions[number] == ftl_checkpoint_key(&ftl->mount) &&
           !superblock_of(ftl, place)->is_known;
}

/*
 * Whether an erasure of a superblock may have begun in a plane of some die, so
 * that the stripes through this plane have no parity any more.  Other planes of
 * the die may still be readable.  A superblock whose first stripe was never
 * completed looks the same, and has no parity either.  A plane that had failed
 * before looks the same, too, but the stripes have parity without it.  If the
 * mount learns only later that it has failed, it begins again.
 */
static bool is_half_erased(const struct ftl_mount_floor *ftl,
                           uint32_t superblock, uint32_t plane)
{
    for (uint32_t die = 0; die < ftl->layout.geometry.dies; die++) {
        uint8_t gone =
            ftl_mount_gone_planes(&ftl->space_floor, superblock, die);

        if ((gone & BIT(plane)) != 0) {
            return true;
        }
    }
    return false;
}

/*
 * Whether a place cannot be read, is on a dead die, or may be in a block or
 * superblock that is half erased.  If so, another copy of the same contents is
 * preferred: it would survive a die that dies from now on, and is not copied
 * once more.  What the scan has rebuilt of a dead die are the system bytes: the
 * data are perhaps in a stripe in which a program has failed.
 */
static bool is_doubtful(const struct ftl_mount_floor *ftl, uint32_t place)
{
    struct ftl_flash_unit unit;
    uint32_t row = ftl_place_row(&ftl->layout, place);
    struct ftl_flash_op op;
    uint32_t block;

    ftl_layout_row(&ftl->layout, row, &op);
    ftl_layout_unit(&ftl->layout, place % ftl->layout.row_units, &unit);
    block = (uint32_t)op.block * ftl->layout.geometry.dies + op.die;
    return (ftl->mounting.unreadable[place / 8] & BIT(place % 8)) != 0 ||
           ftl->dies.is_dead[op.die] ||
           ftl->mount
                   .probes[block * ftl->layout.geometry.planes + unit.plane] ==
               FTL_PROBE_LOST ||
           (!ftl->mounting.prefers_originals &&
            is_half_erased(ftl, op.block, unit.plane));
}

bool ftl_mount_has_half_erased(const struct ftl_mount_floor *ftl)
{
    for (uint32_t i = 0; i < ftl->layout.superblocks; i++) {
        bool has_contents =
            ftl->superblocks[i].last_row != 0 && !ftl->superblocks[i].is_known;

        for (uint32_t plane = 0; plane < ftl->layout.geometry.planes; plane++) {
            if (has_contents && is_half_erased(ftl, i, plane)) {
                return true;
            }
        }
    }
    return false;
}

/*
 * Whether an entry names a place, as the checkpoint says, in a superblock that
 * was to be moved then.  This superblock is not scanned, and the place may have
 * lost its parity.
 */
static bool is_moving(const struct ftl_mount_floor *ftl, uint32_t number)
{
    uint32_t place = ftl_entry_place(ftl->map[number]);

    return ftl->mount.checkpoint_row != 0 && place != FTL_NOWHERE &&
           ftl->mount.versions[number] == ftl_checkpoint_key(&ftl->mount) &&
           superblock_of(ftl, place)->was_moving;
}

/*
 * Whether a unit that was found is to replace an entry of the map.  If only the
 * checkpoint says what the entry names, in a superblock that is scanned or that
 * was to be moved, each copy that is later than the checkpoint replaces it.
 */
static bool is_better(struct ftl_mount_floor *ftl, uint32_t entry,
                      uint32_t place, const struct ftl_system *system)
{
    uint32_t other = ftl_entry_place(ftl->map[entry]);
    bool doubts, doubts_other, is_own, other_is_own;

    if (ftl_mount_is_unconfirmed(ftl, entry)) {
        return other == place || system->row > ftl->mount.checkpoint_row;
    }
    if (is_moving(ftl, entry)) {
        return system->row > ftl->mount.checkpoint_row;
    }
    if (version_key(system) != ftl->mount.versions[entry]) {
        return version_key(system) > ftl->mount.versions[entry];
    }
    if (other == FTL_NOWHERE) {
        return true;
    }
    doubts = is_doubtful(ftl, place);
    doubts_other = is_doubtful(ftl, other);
    /* If both are doubtful, only one may be when failed planes are known. */
    ftl->mount.has_doubted |= doubts || doubts_other;
    if (doubts != doubts_other) {
        return doubts_other;
    }
    is_own = superblock_of(ftl, place)->is_own;
    other_is_own = superblock_of(ftl, other)->is_own;
    if (is_own != other_is_own) {
        return is_own;
    }
    return system->row <
           ftl->mount.row_numbers[ftl_place_row(&ftl->layout, other)];
}

/*
 * Read the system bytes of a unit of a row.
 * @return false when the unit cannot be read, or must be ignored
 */
static bool parse_unit(const struct ftl_mount_floor *ftl,
                       const struct ftl_request *request, uint32_t index,
                       uint32_t *place, struct ftl_system *system)
{
    const struct ftl_flash_unit *unit = &request->units[index];

    *place = request->row * ftl->layout.row_units +
             ftl_layout_index(&ftl->layout, unit);
    return unit->status == FTL_UNIT_GOOD &&
           (ftl->mount.ignored[*place / 8] & BIT(*place % 8)) == 0 &&
           ftl_system_parse(system, request->system[index]);
}

/*
 * All units of a row have the same number.  If some have a smaller one, they
 * are left over in a plane whose erasure had failed: all that was valid in the
 * plane had been moved before, and the plane was not used when the superblock
 * was programmed again.
 */
static uint64_t find_row_number(const struct ftl_mount_floor *ftl,
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

uint64_t ftl_mount_common_number(const struct ftl_mount_floor *ftl,
                                 const struct ftl_request *request)
{
    uint64_t best = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < request->flash.num_units; i++) {
        struct ftl_system system, other;
        uint32_t count = 0, place;

        if (request->num_left_out[i] != 0 ||
            !parse_unit(ftl, request, i, &place, &system)) {
            continue;
        }
        for (uint32_t j = 0; j < request->flash.num_units; j++) {
            count += parse_unit(ftl, request, j, &place, &other) &&
                     other.row == system.row;
        }
        if (count > most) {
            most = count;
            best = system.row;
        }
    }
    return best;
}

/* A unit is rebuilt, and right.  The planes of the dies that were left out are
 * in no sum of this stripe, so they have failed. */
static void note_left_out(struct ftl_mount_floor *ftl,
                          const struct ftl_request *request, uint32_t index)
{
    for (uint32_t i = 0; i < request->num_left_out[index]; i++) {
        ftl_health_note_failure(&ftl->space_floor, request->flash.block,
                                request->left_out[index][i],
                                (uint8_t)BIT(request->units[index].plane));
    }
}

bool ftl_mount_note_unit(struct ftl_mount_floor *ftl,
                         const struct ftl_request *request, uint32_t index)
{
    struct ftl_mount *mount = &ftl->mount;
    struct ftl_superblock *superblock = &ftl->superblocks[request->flash.block];
    struct ftl_system system;
    uint32_t entry, place;

    if (!parse_unit(ftl, request, index, &place, &system) ||
        system.row != mount->row_numbers[request->row]) {
        return false;
    }
    ftl->mounting.last_row = MAX(ftl->mounting.last_row, system.row);
    if (!system.is_of_mount) {
        mount->last_normal_row = MAX(mount->last_normal_row, system.row);
        superblock->has_normal_row = true;
        mount->last_data_row = system.kind == FTL_KIND_PAD
                                   ? mount->last_data_row
                                   : MAX(mount->last_data_row, system.row);
    }
    superblock->last_row = MAX(superblock->last_row, system.row);
    /* All units of a checkpoint have the same number, so that a wrong sum of
     * them looks right, and proves nothing about the planes. */
    if (system.kind != FTL_KIND_CHECKPOINT) {
        note_left_out(ftl, request, index);
    }
    if (system.kind == FTL_KIND_PAD && (system.number & FTL_MARKER) != 0) {
        ftl_marker_found(&ftl->mount, system.row, system.number);
    }
    if (system.kind == FTL_KIND_DATA &&
        system.number < ftl->config.logical_units) {
        entry = system.number;
        ftl->has_marks |= system.marks != 0;
    } else if (system.kind == FTL_KIND_TRIM &&
               system.number < ftl->entries - ftl->config.logical_units) {
        entry = ftl->config.logical_units + system.number;
    } else {
        return true;
    }
    if (is_better(ftl, entry, place, &system)) {
        ftl->map[entry] = system.is_lost ? FTL_LOST | place : place;
        mount->versions[entry] = version_key(&system);
    }
    return true;
}

/*
 * Note which planes of a row are erased, or have lost their contents.
 * @param parity  units that hold parity
 */
static void note_planes(struct ftl_mount_floor *ftl,
                        const struct ftl_request *request, uint8_t erased,
                        uint32_t parity)
{
    const struct ftl_flash_op *flash = &request->flash;
    uint32_t at =
        (uint32_t)flash->block * ftl->layout.geometry.dies + flash->die;
    bool is_lost = ftl->mount.row_numbers[request->row] == 0 && parity == 0;

    ftl->mounting.used_planes[at] |= flash->planes & (uint8_t)~erased;
    ftl->mounting.partial_planes[at] |= is_lost ? flash->planes : erased;
}

/* Whether firmware without parity has written a unit. */
static bool is_old(const struct ftl_request *request, uint32_t index)
{
    return request->units[index].status == FTL_UNIT_GOOD &&
           ftl_system_is_old(request->system[index]);
}

/*
 * Take over a unit that was read, or note that it could not be read.  A unit of
 * a dead die that was rebuilt, but is not of this row, was rebuilt wrongly: it
 * could not be read.
 */
static void scan_unit(struct ftl_mount_floor *ftl,
                      const struct ftl_request *request, uint32_t index)
{
    uint32_t place = request->row * ftl->layout.row_units +
                     ftl_layout_index(&ftl->layout, &request->units[index]);
    uint8_t status = request->units[index].status;
    bool is_of_dead_die = ftl->dies.is_dead[request->flash.die];
    bool is_ignored = (ftl->mount.ignored[place / 8] & BIT(place % 8)) != 0;
    bool is_noted;

    ftl->mounting.is_old |= is_old(request, index);
    ftl->superblocks[request->flash.block].is_spoilt |=
        status == FTL_UNIT_GOOD && ftl_system_is_spoilt(request->system[index]);
    is_noted = ftl_mount_note_unit(ftl, request, index);
    if (status == FTL_UNIT_UNCORRECTABLE ||
        (status == FTL_UNIT_GOOD && is_of_dead_die && !is_noted &&
         !is_ignored)) {
        ftl->mounting.unreadable[place / 8] |= (uint8_t)BIT(place % 8);
        ftl->mount.has_unrebuilt |= is_of_dead_die;
    }
}

/* Whether a unit holds parity.  A mount needs none of it. */
static bool is_parity(const struct ftl_request *request, uint32_t index)
{
    return request->units[index].status == FTL_UNIT_GOOD &&
           ftl_system_is_parity(request->system[index]);
}

bool ftl_mount_scan_done(struct ftl_mount_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status)
{
    struct ftl_flash_op *flash = &request->flash;
    uint8_t erased = 0;
    uint32_t parity = 0;

    if (status != FTL_FLASH_OK) {
        ftl->state = FTL_FAILED;
        ftl->mounting.requests--;
        return false;
    }
    ftl->mount.row_numbers[request->row] =
        ftl->dies.is_dead[flash->die] ? ftl_mount_common_number(ftl, request)
                                      : find_row_number(ftl, request);
    for (uint32_t i = 0; i < flash->num_units; i++) {
        if (request->units[i].status == FTL_UNIT_ERASED) {
            erased |= (uint8_t)BIT(request->units[i].plane);
        }
        parity += is_parity(request, i);
        scan_unit(ftl, request, i);
    }
    note_planes(ftl, request, erased, parity);
    if (ftl->mounting.is_old) {
        ftl->state = FTL_FAILED;
    }
    if (erased == flash->planes) {
        flash->wordline = ftl->layout.geometry.wordlines;
    } else {
        flash->wordline++;
    }
    if (ftl->state == FTL_MOUNTING && ftl_mount_scan_row(ftl, request)) {
        return true;
    }
    ftl->mounting.requests--;
    return false;
}
