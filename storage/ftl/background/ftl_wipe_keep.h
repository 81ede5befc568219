/* SPDX-License-Identifier: BSD-2-Clause */
/* The superblock that holds pages during a wipe: see ftl_wipe_keep.c. */
#ifndef ESSD_FTL_WIPE_KEEP_H
#define ESSD_FTL_WIPE_KEEP_H

#include "storage/ftl/background/background_floor.h"

/** @return a superblock, not before `first`, that may be the keeper, or
 * FTL_NOWHERE */
uint32_t ftl_wipe_find_keeper(const struct ftl_background_floor *ftl,
                              uint32_t first);
/** Program no more rows into the keeper, because an operation in it has failed
 * although the flash is intact. */
void ftl_wipe_give_up_keeper(struct ftl_background_floor *ftl);
/** Whether the keeper holds all pages and the marker. */
bool ftl_wipe_keeper_is_complete(const struct ftl_background_floor *ftl);
/**
 * Go on programming pages.
 * @param is_done  set when all are programmed, or the keeper is full
 * @return whether anything was done
 */
bool ftl_wipe_keep_step(struct ftl_background_floor *ftl, bool *is_done);
void ftl_wipe_keep_done(struct ftl_background_floor *ftl,
                        const struct ftl_request *request,
                        enum ftl_flash_status status);

#endif
