/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short reads: of data of one unit, into one piece, without metadata.  Most
 * operations of hosts are such reads.  So they set only the fields of the
 * operation and of its request that the end of a read needs.  ftl_io_submit()
 * is here, since it starts them.
 */
#ifndef ESSD_FTL_SHORT_READ_H
#define ESSD_FTL_SHORT_READ_H

#include "storage/ftl/io/io_floor.h"

/** Whether a read may begin at once: no other read waits. */
bool ftl_serves_reads(const struct ftl_io_floor *ftl);

#endif
