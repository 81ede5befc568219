/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of rows: each has an open superblock. */
#ifndef ESSD_FTL_STREAM_H
#define ESSD_FTL_STREAM_H

#include "lib/util.h"

struct ftl_accumulator;

enum ftl_stream_id { FTL_STREAM_HOST, FTL_STREAM_MOVE, FTL_STREAMS };

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
     * For each die, the number of the row in flight, or 0.  The next one waits,
     * because it must not be programmed if this one fails.
     */
    uint64_t *die_rows;
};

#endif
