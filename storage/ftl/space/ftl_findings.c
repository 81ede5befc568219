/* SPDX-License-Identifier: BSD-2-Clause */
/* What a mount has found out so far, and how much it may do in this step. Those
 * who ask need not know how it finds that out. */
#include "storage/ftl/space/ftl_findings.h"

/* The planes that a mount reads: all but those that the factory has marked.  A
 * plane that has failed later is read, because it may hold contents. */
uint8_t ftl_mount_planes(const struct ftl_space_floor *ftl, uint32_t superblock,
                         uint32_t die)
{
    uint8_t bad =
        ftl->factory_planes[superblock * ftl->layout.geometry.dies + die];

    return (uint8_t)((BIT(ftl->layout.geometry.planes) - 1) & ~bad);
}

bool ftl_mount_is_block_erased(const struct ftl_space_floor *ftl,
                               uint32_t superblock, uint32_t die)
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

uint8_t ftl_mount_gone_planes(const struct ftl_space_floor *ftl,
                              uint32_t superblock, uint32_t die)
{
    const struct ftl_geometry *geometry = &ftl->layout.geometry;
    uint32_t at = superblock * geometry->dies + die;
    uint8_t planes = ftl_mount_planes(ftl, superblock, die) &
                     (uint8_t)~ftl->failed_planes[at];

    for (uint32_t plane = 0; plane < geometry->planes; plane++) {
        uint64_t probe = ftl->mount.probes[at * geometry->planes + plane];

        if (probe != FTL_PROBE_ERASED && probe != FTL_PROBE_LOST) {
            planes &= (uint8_t)~BIT(plane);
        }
    }
    return planes;
}

/*
 * The mount begins again without the unit.  But if a die has died in this pass,
 * this may be why the unit cannot be read, and the scan of the next pass may be
 * able to rebuild what this one could not.  So the next pass decides.
 */
void ftl_mount_ignore(struct ftl_space_floor *ftl, uint32_t place)
{
    if (ftl->dies.num_dead == ftl->mount.num_dead) {
        ftl->mount.ignored[place / 8] |= (uint8_t)BIT(place % 8);
    }
    ftl->mount.is_in_vain = true;
}

/*
 * All units of a checkpoint have the same row number.  If one of them is left
 * out of a sum, the number of the result is 0.  If two are left out, the number
 * looks right although the result is not.
 */
uint32_t ftl_mount_most_left_out(const struct ftl_space_floor *ftl,
                                 const struct ftl_request *request,
                                 uint32_t row)
{
    switch ((enum ftl_request_kind)request->kind) {
    case FTL_REQUEST_SCAN:
    case FTL_REQUEST_REPAIR:
        return FTL_LEFT_OUT_MAX;
    case FTL_REQUEST_LOAD:
        return 1;
    case FTL_REQUEST_PAGE:
    case FTL_REQUEST_MOVE:
        return ftl->state == FTL_MOUNTING && ftl->mount.row_numbers[row] != 0
                   ? FTL_LEFT_OUT_MAX
                   : 0;
    default:
        return 0;
    }
}

bool ftl_mount_expects_row(const struct ftl_space_floor *ftl, uint32_t row,
                           const struct ftl_system *system)
{
    uint64_t number = ftl->mount.row_numbers[row];

    return ftl->state != FTL_MOUNTING || number == 0 || system->row == number;
}

uint64_t ftl_mount_noted_row(const struct ftl_space_floor *ftl, uint32_t row)
{
    uint64_t number = ftl->mount.row_numbers[row];

    return ftl->state != FTL_MOUNTING && number >= ftl->first_noted ? number
                                                                    : 0;
}

bool ftl_mount_take(struct ftl_mount *mount, uint32_t items)
{
    bool has_any = mount->turn_left != 0;

    mount->turn_left -= MIN(mount->turn_left, items);
    return has_any;
}

uint32_t ftl_mount_part(struct ftl_mount *mount, uint32_t count)
{
    uint32_t items = MIN(count - mount->next_item, mount->turn_left);

    mount->turn_left -= items;
    return mount->next_item + items;
}

/* How many of the last rows may be torn. */
uint64_t ftl_mount_suspect_rows(const struct ftl_layout *layout)
{
    return (uint64_t)FTL_SUSPECT_ROWS * layout->geometry.dies;
}

uint64_t ftl_mount_settle_row(const struct ftl_space_floor *ftl)
{
    uint64_t last = ftl->mount.last_normal_row;

    return MAX(last - MIN(last, ftl_mount_suspect_rows(&ftl->layout)),
               ftl->mount.checkpoint_row);
}
