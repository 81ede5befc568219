/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done besides the operations of hosts. */
#ifndef ESSD_FTL_BACKGROUND_H
#define ESSD_FTL_BACKGROUND_H

#include "storage/ftl/background/background_floor.h"

/* ---- ftl_capacity.c */
/** Take the capacity from the metadata of a page that the mount has read. */
void ftl_capacity_take_page(struct ftl_background_floor *ftl,
                            const uint8_t *meta);
/** Take the capacity that the flash says, in logical units.  If it is not the
 * configured one, the mount begins again. */
void ftl_capacity_take(struct ftl_background_floor *ftl, uint32_t units);
/** The capacity is final, as it was confirmed or all pages were read. */
void ftl_capacity_decide(struct ftl_background_floor *ftl);
/** The mount begins again: use the capacity that it has found, if any. */
void ftl_capacity_change(struct ftl_background_floor *ftl);
/** The mount has ended: if no page has the capacity, write a page with it. */
void ftl_capacity_record(struct ftl_background_floor *ftl);
/** When this page is on flash, complete its stripe. */
bool ftl_capacity_step(struct ftl_background_floor *ftl);

/* ---- ftl_adopt.c: the description of the write buffer for the next start */
/** Find the buffer of the earlier start, or begin with an empty one. */
void ftl_keep_start(struct ftl_background_floor *ftl);
/** Go on making it empty, if nothing is adopted.
 * @param items  words of trims to deal with, at most
 * @return how many were dealt with */
uint32_t ftl_keep_empty(struct ftl_background_floor *ftl, uint32_t items);
/** Adopt what was found.  Call this when the flash is mounted.
 * @return whether anything was done */
bool ftl_keep_step(struct ftl_background_floor *ftl);

/* ---- ftl_power.c: power-loss protection */
bool ftl_power_step(struct ftl_background_floor *ftl);
/** The mount has read everything: find out whether the buffer was saved. */
void ftl_power_mounted(struct ftl_background_floor *ftl);
/**
 * Program a marker before the mount erases the one that it has found.
 * @param is_done  set when the marker is programmed, is not needed, or has no
 *                 space
 * @return whether anything was done
 */
bool ftl_power_mark_mount(struct ftl_background_floor *ftl, bool *is_done);

/* ---- ftl_scrub.c: moving contents before they cannot be read */
/** Read the next row if it is time. */
bool ftl_scrub_step(struct ftl_background_floor *ftl, uint64_t *deadline_us);
/** That row has been read. */
bool ftl_scrub_done(struct ftl_background_floor *ftl,
                    struct ftl_request *request, enum ftl_flash_status status);

/* ---- ftl_collect.c: garbage collection */
bool ftl_collect_step(struct ftl_background_floor *ftl);
/** At the end of the mount: have the suspect superblocks moved soon, if the
 * mount could not erase them. */
void ftl_collect_rest_of_suspects(struct ftl_background_floor *ftl);
/** Whether a superblock is left that this phase of the mount is to erase. */
bool ftl_collect_is_due(const struct ftl_background_floor *ftl);
/**
 * Copy the units of rows that may be torn; nothing is erased.
 * @param is_done  set when all copies are on flash
 * @return whether anything was done
 */
bool ftl_collect_settle(struct ftl_background_floor *ftl, bool *is_done);
/** Forget what waits to be moved. */
void ftl_collect_stop(struct ftl_background_floor *ftl);
/** Whether the contents of a superblock are being moved, or can be moved to
 * make space. */
bool ftl_collect_has_victim(const struct ftl_background_floor *ftl);
/** Try superblocks again that are stuck. @return whether there are any */
bool ftl_collect_retry(struct ftl_background_floor *ftl);

/* ---- ftl_move.c: reading units that garbage collection moves */
/** Take slots for the valid units of the victim's next row, and read them.
 * @return false when there are too few slots, or no request */
bool ftl_collect_read_row(struct ftl_background_floor *ftl);
bool ftl_collect_read_done(struct ftl_background_floor *ftl,
                           struct ftl_request *request,
                           enum ftl_flash_status status);
/** Units of the victim are given up: go on searching the map for the entries
 * that name them. @return whether there are such units */
bool ftl_collect_find_lost(struct ftl_background_floor *ftl);
/** See struct ftl_kind. */
bool ftl_collect_expects(const struct ftl_background_floor *ftl,
                         const struct ftl_request *request, uint32_t entry,
                         uint32_t place, const struct ftl_system *system);

/* ---- The same as the functions of ftl.h that they serve */
bool ftl_keep_is_adopting(const struct ftl_background_floor *ftl);
uint32_t ftl_capacity_units(const struct ftl_background_floor *ftl);
bool ftl_capacity_is_final(const struct ftl_background_floor *ftl);
bool ftl_power_is_saved(const struct ftl_background_floor *ftl);
void ftl_power_begin(struct ftl_background_floor *ftl);
bool ftl_power_was_saved(const struct ftl_background_floor *ftl,
                         uint32_t start);

#endif
