/* SPDX-License-Identifier: BSD-2-Clause */
/* What serves the operations of hosts. */
#ifndef ESSD_FTL_IO_H
#define ESSD_FTL_IO_H

#include "storage/ftl/io/io_floor.h"

/* ---- ftl_io.c: operations of the medium */
bool ftl_io_step(struct ftl_io_floor *ftl);
/** Do the copies of writes together, and end these writes.
 * @return whether there were any */
bool ftl_io_end_moving(struct ftl_io_floor *ftl);
/** Refuse all operations that wait. @return whether there were any */
bool ftl_io_refuse(struct ftl_io_floor *ftl);
bool ftl_io_read_done(struct ftl_io_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);
/** The same as ftl_io_read_done() for a request whose units are all good.  This
 * function also frees the request. */
void ftl_io_read_good(struct ftl_io_floor *ftl, struct ftl_request *request);
bool ftl_io_fill_done(struct ftl_io_floor *ftl, struct ftl_request *request,
                      enum ftl_flash_status status);

/** See struct ftl_kind. */
bool ftl_io_expects(const struct ftl_io_floor *ftl,
                    const struct ftl_request *request, uint32_t entry,
                    uint32_t place, const struct ftl_system *system);

/** An operation is free: start the one that comes before all others. */
void ftl_io_start_next(struct ftl_io_floor *ftl);

/* ---- ftl_protect.c: operations on blocks with metadata */
/** @return false when a block fails the checks of a write, or its data is lost;
 * op->status says why */
MUST_USE bool ftl_protect_check_write(struct ftl_io_floor *ftl,
                                      struct ftl_op *op);
/** Add moves that write the next blocks of an operation to a part of a unit.
 * The next ftl_memory_run() does these moves. */
void ftl_protect_write(struct ftl_io_floor *ftl, struct ftl_op *op,
                       uint8_t *data, uint8_t *meta, uint32_t offset,
                       uint32_t length);
/** Read a part of a unit in DRAM. @param data  NULL: the blocks are trimmed */
void ftl_protect_read(struct ftl_io_floor *ftl, struct ftl_op *op,
                      const uint8_t *data, const uint8_t *meta, uint32_t offset,
                      uint32_t length);
/** Name a part of a unit on flash in a request. */
void ftl_protect_read_flash(struct ftl_io_floor *ftl, struct ftl_op *op,
                            struct ftl_request *request, uint32_t place,
                            uint32_t offset, uint32_t length);
/** The request has read good units. */
void ftl_protect_read_done(struct ftl_io_floor *ftl, struct ftl_op *op,
                           const struct ftl_request *request);
/** A part of a unit is trimmed: its metadata has bytes of FFh. */
void ftl_protect_trim(uint8_t *meta, uint32_t offset, uint32_t length);

/* ---- The same as the functions of ftl.h that they serve */
void ftl_protect_note_failed(struct ftl_io_floor *ftl,
                             const struct ftl_move *move, enum ftl_check check);
bool ftl_io_submit(struct ftl_io_floor *ftl, const struct media_io *io);
void ftl_io_submit_next(struct ftl_io_floor *ftl, const struct media_io *io);
bool ftl_io_withdraw_next(struct ftl_io_floor *ftl);

#endif
