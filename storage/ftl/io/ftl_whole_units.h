/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes of whole units without metadata, in runs: most bytes of hosts are
 * written so.
 */
#ifndef ESSD_FTL_WHOLE_UNITS_H
#define ESSD_FTL_WHOLE_UNITS_H

#include "storage/ftl/io/io_floor.h"
#include "storage/ftl/map/map.h"

/** Give a slot that was just taken for new contents what comes before them.
 * @param entry  of the map: where the contents before them are */
void ftl_slot_set_before(struct ftl_io_floor *ftl, uint16_t index,
                         uint32_t entry);

/**
 * Go on with a write, as long as it writes whole units, each from one piece,
 * into slots of their own.  The next ftl_memory_run() copies the data.
 *
 * @param most  units that are written, at most
 * @return how many were written; what comes next has to be written in the usual
 *         way, if there is anything
 */
uint32_t ftl_write_whole_units(struct ftl_io_floor *ftl, struct ftl_op *op,
                               uint32_t most);

#endif
