/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a mount offer each other. */
#ifndef ESSD_FTL_MOUNT_H
#define ESSD_FTL_MOUNT_H

#include "lib/util.h"

struct ftl;
struct ftl_request;

/* ---- ftl_mount_probe.c */
/**
 * Read one unit of each plane of the first wordline of a request's block, or of
 * the next one.
 * @return false when there is none
 */
bool ftl_mount_probe_block(struct ftl *ftl, struct ftl_request *request);
/** Whether probes have found nothing in any plane of a block and die. */
bool ftl_mount_is_block_erased(const struct ftl *ftl, uint32_t superblock,
                               uint32_t die);

/* ---- ftl_mount_scan.c */
/**
 * Read the row that a request names, or the next one of its die.
 * @return false when there is none
 */
bool ftl_mount_scan_row(struct ftl *ftl, struct ftl_request *request);
/** The row number that most units of a row have, or 0. */
uint64_t ftl_mount_common_number(const struct ftl *ftl,
                                 const struct ftl_request *request);
/** Take the unit `index` of a row into the map.  @return false when it has no
 * contents, must be ignored, or is not of this row */
bool ftl_mount_note_unit(struct ftl *ftl, const struct ftl_request *request,
                         uint32_t index);
/** Whether an entry names what the checkpoint says about a superblock that is
 * scanned, and the scan has found neither this nor something later. */
bool ftl_mount_is_unconfirmed(const struct ftl *ftl, uint32_t number);

/* ---- ftl_mount_repair.c */
/**
 * Rebuild what the scan could not read.
 * @param is_done  set when that has ended
 * @return whether anything was done
 */
bool ftl_mount_repair_step(struct ftl *ftl, bool *is_done);

/* ---- ftl_mount_pages.c */
/**
 * Read the pages.
 * @param is_done  set when that has ended
 * @return whether anything was done
 */
bool ftl_mount_pages_step(struct ftl *ftl, bool *is_done);

#endif
