/* SPDX-License-Identifier: BSD-2-Clause */
/* What garbage collection is doing. */
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
};

#endif
