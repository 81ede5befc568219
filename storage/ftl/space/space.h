/* SPDX-License-Identifier: BSD-2-Clause */
/* Superblocks, dies and planes, and which of them are used. */
#ifndef ESSD_FTL_SPACE_H
#define ESSD_FTL_SPACE_H

#include "storage/ftl/space/space_floor.h"

/* ---- ftl_superblock.c */
/**
 * Make a free superblock the one that takes a stream's rows.
 * @param is_urgent  a slot waits whose row may have failed
 * @return false when none is free for this stream
 */
MUST_USE bool ftl_superblock_open(struct ftl_space_floor *ftl, uint32_t stream,
                                  bool is_urgent);
/** Take a free superblock, of which there must be one, for a checkpoint. */
uint32_t ftl_superblock_take(struct ftl_space_floor *ftl);
/** Let a superblock, if it is open, take no more than its stripe needs. */
void ftl_superblock_end(struct ftl_space_floor *ftl, uint32_t superblock);
/** The same for all that are open: their stripes are completed. */
void ftl_superblock_end_all(struct ftl_space_floor *ftl);
/** Count the units of a superblock that can hold data. */
void ftl_superblock_measure(struct ftl_space_floor *ftl, uint32_t superblock);
/** Whether enough of its planes may be used. */
bool ftl_superblock_is_good(const struct ftl_space_floor *ftl,
                            uint32_t superblock);
/** The only writer of a superblock's state, once it is mounted. */
void ftl_superblock_enter(struct ftl_space_floor *ftl, uint32_t superblock,
                          enum ftl_superblock_state next);

/** The program of a row has ended, and is not repeated. */
void ftl_superblock_note_row(struct ftl_space_floor *ftl,
                             const struct ftl_request *request,
                             enum ftl_flash_status status);

/* ---- ftl_erase.c */
/** Begin to erase a superblock. */
void ftl_superblock_erase(struct ftl_space_floor *ftl, uint32_t superblock,
                          enum ftl_cause cause);
/** Go on erasing. @return whether it is done: it is free */
bool ftl_superblock_erase_step(struct ftl_space_floor *ftl,
                               uint32_t superblock);
bool ftl_superblock_erase_done(struct ftl_space_floor *ftl,
                               struct ftl_request *request,
                               enum ftl_flash_status status);

/* ---- ftl_planes.c */
/** The planes of a die of a superblock that take data. */
uint8_t ftl_good_planes(const struct ftl_space_floor *ftl, uint32_t superblock,
                        uint32_t die);

/* ---- ftl_dies.c */
/** A die does not answer any more: leave it out, and move what it holds. */
void ftl_dies_note_dead(struct ftl_space_floor *ftl, uint32_t die);
/** Have the record of dead dies programmed: see ftl_dead.c. */
void ftl_dies_record(struct ftl_space_floor *ftl);

/* ---- ftl_due.c: superblocks that move soon */
/** Have a superblock moved soon: see struct ftl_superblock. */
void ftl_due_move_soon(struct ftl_space_floor *ftl, uint32_t superblock,
                       enum ftl_cause cause);
/** Whether there is a superblock that moves soon and is not stuck. */
bool ftl_due_has_any(const struct ftl_space_floor *ftl);
/** A superblock that moves soon has been moved. */
void ftl_due_has_moved(struct ftl_space_floor *ftl, uint32_t superblock);

/* ---- ftl_wear.c: erase counts */
/** A superblock has been erased. */
void ftl_wear_note_erasure(struct ftl_space_floor *ftl, uint32_t superblock);
/**
 * @param is_host  it is for what hosts write, or for as short a time
 * @return the free superblock to be taken, or FTL_NOWHERE
 */
uint32_t ftl_wear_find_free(const struct ftl_space_floor *ftl, bool is_host);
/* Whether the host's stream would take a superblock, after one more erasure,
 * before those that were erased the fewest times. */
bool ftl_wear_is_reused(const struct ftl_space_floor *ftl, uint32_t superblock);

/* ---- ftl_health.c: planes that have failed */
/** Programs or erasures have failed in planes: remember this. */
void ftl_health_note_failure(struct ftl_space_floor *ftl, uint32_t superblock,
                             uint32_t die, uint8_t planes);
/** The planes of a block of a die because of which the mount takes stripes of
 * the superblock for half erased.
 * @param at  of the block and die in lists of planes */
uint8_t ftl_health_gone_planes(const struct ftl_space_floor *ftl, size_t at);
/** Have the first page programmed. */
void ftl_health_write(struct ftl_space_floor *ftl);
/** Whether the medium is read-only also after restarts. */
bool ftl_health_is_read_only(const struct ftl_space_floor *ftl);
/** Make the medium read-only, from now on and after restarts. */
void ftl_health_set_read_only(struct ftl_space_floor *ftl);
/** Whether the flash has lost too many planes for collection to get on. */
bool ftl_health_is_worn_out(const struct ftl_space_floor *ftl);

/* ---- ftl_reclaim.c */
/** Units of a superblock have nearly too many wrong bits, or too many.
 * @param cause  what has found this */
void ftl_reclaim_note_weak(struct ftl_space_floor *ftl, uint32_t superblock,
                           enum ftl_cause cause);
/** A read has ended: have the superblock moved if a unit has nearly too many
 * wrong bits. */
void ftl_reclaim_note_read(struct ftl_space_floor *ftl,
                           const struct ftl_request *request);

#endif
