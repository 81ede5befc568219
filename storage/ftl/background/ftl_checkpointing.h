/* SPDX-License-Identifier: BSD-2-Clause */
/* The checkpoint that is written, loaded or checked. */
#ifndef ESSD_FTL_CHECKPOINTING_H
#define ESSD_FTL_CHECKPOINTING_H

#include "storage/ftl/space/ftl_stream.h"

/* What a mount does with a checkpoint that was loaded, one after another. */
enum ftl_checkpoint_check {
    FTL_CHECK_NONE,     /* It is still being loaded. */
    FTL_CHECK_MARKS,    /* Marks the places that no entry may name. */
    FTL_CHECK_ENTRIES,  /* Checks the entries of the map. */
    FTL_CHECK_UNMARKS,  /* Removes all marks. */
    FTL_CHECK_VERSIONS, /* Takes it over, and sets the versions of entries. */
    FTL_CHECK_FORGETS,  /* Or: forgets the map, because it is not complete. */
};

enum ftl_checkpoint_state {
    FTL_CHECKPOINT_IDLE,     /* Waits until one is due. */
    FTL_CHECKPOINT_DRAINING, /* Waits until no row is in flight. */
    FTL_CHECKPOINT_WRITING,  /* Programs it, and nothing else is programmed. */
    FTL_CHECKPOINT_ERASING,  /* Erases the one before it. */
};

struct ftl_checkpoint {
    uint8_t state;       /* enum ftl_checkpoint_state */
    bool is_last;        /* the power goes off after this checkpoint */
    bool is_stopped;     /* nothing is collected, as the power goes off */
    bool has_failed;     /* a row of it could not be programmed */
    bool is_header_good; /* the header that was loaded is intact */
    bool is_needed;      /* some FTL_LOST_NOWHERE is recorded nowhere else */
    bool is_at_end;      /* while loading: no further row is programmed */
    bool was_read_only;  /* loaded: the header has ftl.is_read_only */
    bool had_marks;      /* loaded: the header has ftl.has_marks */
    bool is_final; /* written or loaded: all of the buffer was on flash, and the
                    * power was to go off after this checkpoint */
    uint32_t start; /* loaded: the number of the start that has written it */
    uint32_t superblock; /* holds the valid checkpoint, or FTL_NOWHERE */
    uint32_t next;       /* superblock that is written, erased or loaded */
    uint64_t row;        /* number: the checkpoint knows rows below it */
    uint32_t next_row;   /* to be loaded, in superblock `next` */
    bool rebuilds;       /* loading: only the rows of dead dies, from parity */
    uint8_t check;       /* loading: enum ftl_checkpoint_check */
    bool is_map_good;    /* loading: all entries so far are consistent */
    /* is_needed: entries of the map before this one are not
     * FTL_LOST_NOWHERE. */
    uint32_t needed_from;
    struct ftl_stream writer; /* the rows that are written, and their parity */
    uint32_t pieces;          /* number of pieces written or loaded so far */
    uint8_t *is_taken;        /* one bit for each piece: it has been loaded */
    uint32_t requests;        /* number of requests in progress */
    uint32_t free_rows;       /* one bit for each row of `data` */
    uint8_t *table;           /* loaded: whether each superblock was closed */
    uint8_t *planes;          /* loaded: planes that have failed */
    uint8_t *data;            /* contents of the rows in progress */
};

#endif
