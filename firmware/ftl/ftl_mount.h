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

#endif
