/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of rows: each has an open superblock.  They are numbered, 0 to
 * ftl.num_streams - 1; a policy (ftl_policies.h) says how many there are, and
 * which one takes what is moved.
 */
#ifndef ESSD_FTL_STREAM_H
#define ESSD_FTL_STREAM_H

#include "lib/util.h"
#include "storage/ftl/base/ftl_policies.h"

struct ftl_accumulator;

enum {
    /* What hosts write, and pages. */
    FTL_HOST_STREAM = 0,
    /* The first stream of what is moved.  A mount knows only this one. */
    FTL_MOVED_STREAM = 1,
    FTL_STREAMS_MAX = FTL_MOVED_STREAM + FTL_MOVED_STREAMS_MAX,
};

struct ftl_stream {
    uint32_t superblock; /* or FTL_NOWHERE */
    uint32_t next_row;   /* in the superblock, in the order of programming */
    uint32_t rows_in_flight;
    /* The stream completes its stripe without waiting for more units, and then
     * programs no more rows of the superblock. */
    bool is_ending;
    /* The same, but the stream goes on with the superblock's next stripe. */
    bool completes_stripe;
    struct ftl_accumulator *accumulator; /* of the stripe, or NULL */
    /*
     * For each die, the numbers of FTL_DIE_ROWS rows in flight, or 0.  Without
     * ftl_config.queues_rows only the first one is used.  The next row waits,
     * because it must not be programmed if one of these fails.
     */
    uint64_t *die_rows;
};

#endif
