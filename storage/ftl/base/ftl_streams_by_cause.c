/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is moved for space goes to stream 0 of what is moved.  Stream 1 takes
 * what wear levelling and scrubbing move.  They choose superblocks that nobody
 * has overwritten for long, so what garbage collection moves does not get in
 * between.  This costs an open superblock.
 */
#include "storage/ftl/base/ftl_policies.h"

static uint8_t choose_by_cause(enum ftl_cause cause)
{
    return cause == FTL_CAUSE_LEVEL || cause == FTL_CAUSE_SCRUB;
}

const struct ftl_stream_policy ftl_streams_by_cause = {"by-cause", 2,
                                                       choose_by_cause};
