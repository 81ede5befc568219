/* SPDX-License-Identifier: BSD-2-Clause */
/* What reads, writes and trims of hosts do for the queues of ftl_io.c. */
#ifndef ESSD_FTL_IO_PARTS_H
#define ESSD_FTL_IO_PARTS_H

#include "storage/ftl/io/io_floor.h"

/* What a write or a trim of a unit did. */
enum ftl_progress {
    FTL_PROGRESS_DONE,
    /* The unit waits for a read or for a request.  This wait ends also if
     * nothing is programmed. */
    FTL_PROGRESS_WAITS,
    FTL_PROGRESS_NO_SLOT, /* it waits until something is programmed */
};

/* ---- ftl_io.c */
/** Submit an operation that is no short read, or one that has to wait.
 * @return false when no operation is free */
MUST_USE bool ftl_io_submit_any(struct ftl_io_floor *ftl,
                                const struct media_io *io);

/* ---- ftl_io_read.c */
/** Whether all units of a read are good. */
bool ftl_io_are_units_good(struct ftl_io_floor *ftl,
                           const struct ftl_request *request,
                           enum ftl_flash_status status);
/**
 * Read units until one has to wait.
 * @return whether all units have been read, or their requests sent
 */
bool ftl_read_units(struct ftl_io_floor *ftl, struct ftl_op *op);
/** @return whether the operation has left the queue */
bool ftl_read_step(struct ftl_io_floor *ftl, struct ftl_op *op);

/* ---- ftl_io_write.c */
enum ftl_progress ftl_write_unit(struct ftl_io_floor *ftl, struct ftl_op *op);
enum ftl_progress ftl_write_trim_unit(struct ftl_io_floor *ftl,
                                      struct ftl_op *op);
/**
 * Start a write of one whole unit from one piece, without metadata, into a slot
 * of its own.  The next ftl_step() copies the data, and ends the operation.
 * @return false when the write has to be started in the usual way
 */
bool ftl_write_short(struct ftl_io_floor *ftl, struct ftl_op *op);

#endif
