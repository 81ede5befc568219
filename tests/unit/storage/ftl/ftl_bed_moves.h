/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves of the translation layer, with those of protection information: what
 * the NAND controller does in docs/hardware/nand.md, sections 9 and 10.
 */
#ifndef ESSD_TEST_FTL_BED_MOVES_H
#define ESSD_TEST_FTL_BED_MOVES_H

#include "storage/ftl/ftl.h"

/* Do all moves of the list in order, and empty it.
 * @param guard  of the block of which the list may hold only a part; 0 at first
 */
void bed_moves_run(struct ftl *ftl, struct ftl_moves *moves, uint16_t *guard);

/* The CRC of what a list of the units of a program contains. */
uint16_t bed_moves_list_crc(const struct ftl_flash_op *op);

#endif
