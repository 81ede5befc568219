/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows, the parity of their stripes, and its use. */
#ifndef ESSD_FTL_ROWS_H
#define ESSD_FTL_ROWS_H

#include "storage/ftl/rows/rows_floor.h"

/* ---- ftl_row.c */
bool ftl_row_step(struct ftl_rows_floor *ftl);
bool ftl_row_done(struct ftl_rows_floor *ftl, struct ftl_request *request,
                  enum ftl_flash_status status);

/** While the power fails, in place of ftl_row_step(): program rows of the
 * host's stream, and those that the others need to complete their stripes.
 * @return whether anything was done */
bool ftl_row_save(struct ftl_rows_floor *ftl);
/** Program a marker as the next row of a stream.  ftl_marker_done() is called
 * when it has ended. @return false when no request or no row is free */
MUST_USE bool ftl_row_mark(struct ftl_rows_floor *ftl, uint32_t stream);

/* ---- ftl_stream.c */
/** A stream's superblock takes no more rows. */
void ftl_stream_close(struct ftl_rows_floor *ftl, uint32_t stream);
/** Close superblocks that take no more rows. @return whether there were any */
bool ftl_stream_close_ended(struct ftl_rows_floor *ftl);

/* ---- ftl_marker.c */
/** @return the `number` of the units of a marker that is programmed now */
uint32_t ftl_marker_number(const struct ftl_rows_floor *ftl);
/** The number of the start for which a marker or a checkpoint is written. */
uint32_t ftl_marker_start(const struct ftl_rows_floor *ftl);
/** The mount has found a marker. @param number  of its units */
void ftl_marker_found(struct ftl_mount *mount, uint64_t row, uint32_t number);
/** A marker has been programmed, or (`is_ok` false) its row has failed. */
void ftl_marker_done(struct ftl_rows_floor *ftl, bool is_ok);

/* ---- The same as the functions of ftl.h that they serve */
bool ftl_damage_note_lost(struct ftl_rows_floor *ftl, const uint8_t *word);
bool ftl_damage_note_patrolled(struct ftl_rows_floor *ftl, const uint8_t *word);

#endif
