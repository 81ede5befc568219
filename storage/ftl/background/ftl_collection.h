/* SPDX-License-Identifier: BSD-2-Clause */
/* What garbage collection and scrubbing are doing. */
#ifndef ESSD_FTL_COLLECTION_H
#define ESSD_FTL_COLLECTION_H

#include "storage/ftl/base/ftl_list.h"

/* Garbage collection. */
struct ftl_collection {
    uint32_t victim; /* or FTL_NOWHERE */
    uint8_t cause;   /* enum ftl_cause: why this victim was chosen */
    uint32_t next_row;
    uint32_t reads; /* requests in progress */
    uint32_t slots; /* in use */
    /* The slots of units that are given up: the map is searched for the entries
     * that name these units. */
    struct ftl_list lost;
    uint32_t next_entry; /* of the map, to be searched */
    bool has_read;       /* units of the victim could be read */
    uint32_t moved;      /* superblocks that were moved, counting only those of
                          * which units could be read */
    bool is_due_next;    /* the next victim is one that moves soon */
    bool has_emptied;    /* some superblock may have become empty */
    uint32_t num_due;    /* superblocks that move soon */
};

/* Scrubbing. */
struct ftl_scrub {
    uint64_t last_us; /* time of the last row */
    /* The next row to be read.  Rows are counted over all superblocks and all
     * passes since the array was new, so a position that was recorded later is
     * larger. */
    uint64_t next_row;
    uint64_t recorded_row; /* the position in the page that was written last */
    uint64_t record_us; /* when the position is to be recorded again; 0 before
                         * the first row */
    bool is_reading;
};

#endif
