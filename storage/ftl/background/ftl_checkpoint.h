/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that write and load checkpoints offer each other. */
#ifndef ESSD_FTL_CHECKPOINT_H
#define ESSD_FTL_CHECKPOINT_H

#include "storage/ftl/background/background_floor.h"

/* ---- ftl_checkpoint.c */
/** Rows of a checkpoint that may be in progress at the same time. */
uint32_t ftl_checkpoint_rows(const struct ftl_layout *layout);
bool ftl_checkpoint_step(struct ftl_background_floor *ftl);
/** Whether no victim of garbage collection may be chosen or moved. */
bool ftl_checkpoint_holds_collection(const struct ftl_background_floor *ftl);
/** Whether no other row may be programmed. */
bool ftl_checkpoint_holds_rows(const struct ftl_background_floor *ftl);
bool ftl_checkpoint_row_done(struct ftl_background_floor *ftl,
                             struct ftl_request *request,
                             enum ftl_flash_status status);
/** Space is needed: erase the checkpoint. @return whether there was one, or
 * this is not known yet */
bool ftl_checkpoint_give_up(struct ftl_background_floor *ftl);

/** Number of pieces of a checkpoint. */
uint32_t ftl_checkpoint_pieces(const struct ftl_background_floor *ftl);

/** The place that a checkpoint records for a logical unit with this entry of
 * the map: where the durable contents of the unit are.  Call this only while no
 * row is in flight, because then no slot follows another one. */
uint32_t ftl_checkpoint_place(const struct ftl_background_floor *ftl,
                              uint32_t entry);

/** Write a piece of the checkpoint that is being written to 4096 bytes. */
void ftl_checkpoint_emit_piece(const struct ftl_background_floor *ftl,
                               uint32_t piece, uint8_t *to);

/** Take over a piece that was read: into the map, or into the tables of
 * superblocks and planes. */
void ftl_checkpoint_take_piece(struct ftl_background_floor *ftl, uint32_t piece,
                               const uint8_t *from);

/** Whether the checkpoint that was loaded says that a superblock moves soon. */
bool ftl_checkpoint_moves_soon(const struct ftl_checkpoint *checkpoint,
                               uint32_t superblock);

/** The memory for a unit of a row of the checkpoint, which is being programmed
 * or read in `slot`. */
uint8_t *ftl_checkpoint_row_data(const struct ftl_background_floor *ftl,
                                 uint32_t slot, uint32_t unit);

/* ---- The same as the functions of ftl.h that they serve */
bool ftl_checkpoint_is_stopped(const struct ftl_background_floor *ftl);
bool ftl_checkpoint_makes_space(const struct ftl_background_floor *ftl);
void ftl_checkpoint_stop(struct ftl_background_floor *ftl);

#endif
