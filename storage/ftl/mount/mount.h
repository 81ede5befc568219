/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a mount offer each other. */
#ifndef ESSD_FTL_MOUNT_H
#define ESSD_FTL_MOUNT_H

#include "storage/ftl/mount/mount_floor.h"

/* ---- ftl_mount.c, and the ends of requests */
/** Begin, or begin again; no request is in progress. */
void ftl_mount_begin(struct ftl_mount_floor *ftl);
bool ftl_mount_probe_done(struct ftl_mount_floor *ftl,
                          struct ftl_request *request,
                          enum ftl_flash_status status);
/** Superblocks that a mount needs for its copies: see ftl.more_free. */
uint32_t ftl_mount_more_free(const struct ftl_mount_floor *ftl);
bool ftl_mount_step(struct ftl_mount_floor *ftl);
bool ftl_mount_scan_done(struct ftl_mount_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status);
bool ftl_mount_page_done(struct ftl_mount_floor *ftl,
                         struct ftl_request *request,
                         enum ftl_flash_status status);
bool ftl_mount_repair_done(struct ftl_mount_floor *ftl,
                           struct ftl_request *request,
                           enum ftl_flash_status status);

/* ---- ftl_mount_clear.c */
/** Go on clearing all that the mount enters. @return whether this is done */
bool ftl_mount_clear(struct ftl_mount_floor *ftl);

/* ---- ftl_mount_probe.c */
/**
 * Read one unit of each plane of the first wordline of the request's block, or
 * of the next block that has planes to read.
 * @return false when there is no such block
 */
bool ftl_mount_probe_block(struct ftl_mount_floor *ftl,
                           struct ftl_request *request);

/* ---- ftl_mount_scan.c */
/**
 * Read the request's row, or the next row of its die that has to be read.
 * @return false when there is no such row
 */
bool ftl_mount_scan_row(struct ftl_mount_floor *ftl,
                        struct ftl_request *request);
/** The row number that most units of a row have, or 0. */
uint64_t ftl_mount_common_number(const struct ftl_mount_floor *ftl,
                                 const struct ftl_request *request);
/** Whether a scanned superblock with contents may be half erased. */
bool ftl_mount_has_half_erased(const struct ftl_mount_floor *ftl);
/** Enter the unit `index` of a row into the map, unless later contents are
 * known.  @return false when the unit cannot be read, must be ignored, or is
 * not of this row */
bool ftl_mount_note_unit(struct ftl_mount_floor *ftl,
                         const struct ftl_request *request, uint32_t index);
/** Whether an entry still names a place in a scanned superblock only because
 * the checkpoint says so: the scan has found neither these contents nor later
 * ones. */
bool ftl_mount_is_unconfirmed(const struct ftl_mount_floor *ftl,
                              uint32_t number);

/* ---- ftl_mount_repair.c */
/**
 * Rebuild what the scan could not read.
 * @param is_done  set when all of it is rebuilt or given up
 * @return whether anything was done
 */
bool ftl_mount_repair_step(struct ftl_mount_floor *ftl, bool *is_done);

/* ---- ftl_mount_pages.c */
/**
 * Read the pages with trims, health and wear.
 * @param is_done  set when all pages were read
 * @return whether anything was done
 */
bool ftl_mount_pages_step(struct ftl_mount_floor *ftl, bool *is_done);

/* ---- ftl_checkpoint_load.c */
bool ftl_checkpoint_load_done(struct ftl_mount_floor *ftl,
                              struct ftl_request *request,
                              enum ftl_flash_status status);
/** The value in mount.versions[] for contents that only the checkpoint names:
 * later than all versions that the checkpoint knows. */
uint64_t ftl_checkpoint_key(const struct ftl_mount *mount);
/** Find the latest checkpoint, for ftl_checkpoint_load(). @return false when
 * there is none */
bool ftl_checkpoint_find(struct ftl_mount_floor *ftl);
/**
 * Load the latest checkpoint that is complete.
 * @param is_done  set when that has ended, also if there is none
 * @return whether anything was done
 */
bool ftl_checkpoint_load(struct ftl_mount_floor *ftl, bool *is_done);
/** See struct ftl_kind. */
bool ftl_checkpoint_expects(const struct ftl_mount_floor *ftl,
                            const struct ftl_request *request, uint32_t entry,
                            uint32_t place, const struct ftl_system *system);

#endif
