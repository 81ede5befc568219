/* SPDX-License-Identifier: BSD-2-Clause */
/* What a mount has found out so far, and how much it may do in this step. */
#ifndef ESSD_FTL_FINDINGS_H
#define ESSD_FTL_FINDINGS_H

#include "storage/ftl/space/space_floor.h"

/** Whether the mount is finding out what is on the flash. */
static inline bool ftl_mount_is_scanning(const struct ftl_space_floor *ftl)
{
    return ftl->state == FTL_MOUNTING && (ftl->mount.phase == FTL_MOUNT_SCAN ||
                                          ftl->mount.phase == FTL_MOUNT_REPAIR);
}

/** Whether the rows that may be torn are being copied. */
static inline bool ftl_mount_is_settling(const struct ftl_space_floor *ftl)
{
    return ftl->state == FTL_MOUNTING && ftl->mount.phase == FTL_MOUNT_SETTLE;
}

/** A unit that was found during the mount cannot be read. */
void ftl_mount_ignore(struct ftl_space_floor *ftl, uint32_t place);
/**
 * How many units of other dies may be left out when a unit of a row is rebuilt.
 * It is 0 unless the result can be checked: the mount knows the number of the
 * row, will find it out, or knows the number of the checkpoint.
 * @param request  reads the row
 */
uint32_t ftl_mount_most_left_out(const struct ftl_space_floor *ftl,
                                 const struct ftl_request *request,
                                 uint32_t row);
/** Whether a rebuilt unit has the row number that the mount knows, if any. */
bool ftl_mount_expects_row(const struct ftl_space_floor *ftl, uint32_t row,
                           const struct ftl_system *system);
/** @return the row number of a row that was programmed since the mount has
 * ended; 0 for other rows */
uint64_t ftl_mount_noted_row(const struct ftl_space_floor *ftl, uint32_t row);
/**
 * Take the next part of a loop over `count` items, of which mount.next_item is
 * the next one: as many as this step may still deal with.
 * @return the end of the part; `count` when it is the last one
 */
uint32_t ftl_mount_part(struct ftl_mount *mount, uint32_t count);
/** Take `items` of those that this step may deal with. @return false when none
 * are left */
bool ftl_mount_take(struct ftl_mount *mount, uint32_t items);
/** Rows with larger numbers may be torn.  Valid when the scan has ended. */
uint64_t ftl_mount_settle_row(const struct ftl_space_floor *ftl);
/** How many of the last rows may be torn. */
uint64_t ftl_mount_suspect_rows(const struct ftl_layout *layout);
/** The planes of a block and die that may hold something. */
uint8_t ftl_mount_planes(const struct ftl_space_floor *ftl, uint32_t superblock,
                         uint32_t die);
/** Whether the probes have found all planes of a block of a die erased. */
bool ftl_mount_is_block_erased(const struct ftl_space_floor *ftl,
                               uint32_t superblock, uint32_t die);
/** The planes of a die's block that are not known to have failed, and whose
 * first wordline is erased or lost. */
uint8_t ftl_mount_gone_planes(const struct ftl_space_floor *ftl,
                              uint32_t superblock, uint32_t die);

#endif
