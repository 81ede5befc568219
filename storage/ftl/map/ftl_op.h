/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of the medium. */
#ifndef ESSD_FTL_OP_H
#define ESSD_FTL_OP_H

#include "storage/ftl/base/ftl_list.h"
#include "storage/ftl/base/ftl_pieces.h"

struct ftl;

enum ftl_op_state {
    FTL_OP_FREE,
    FTL_OP_QUEUED,  /* Waits for its turn, for slots or for requests. */
    FTL_OP_FILLING, /* Waits for the old contents of a unit. */
    FTL_OP_READING, /* Waits for requests. */
    FTL_OP_DURABLE, /* Waits until `barrier` is durable. */
};

struct ftl_op {
    uint8_t state;  /* enum ftl_op_state */
    uint8_t status; /* enum media_status */
    bool needs_durable;
    bool is_long;      /* a trim that has taken one step and needs more steps */
    bool is_throttled; /* an event says that it waits for a slot */
    uint16_t requests; /* in progress */
    uint16_t fill_slot;
    struct ftl_cursor next; /* in the pieces */
    uint64_t next_sector;
    uint64_t end_sector;
    uint64_t barrier;
    struct media_io io;
    uint32_t failed_block; /* with an error of protection information */
};

/* The operations of hosts. */
struct ftl_io {
    struct ftl_op *ops;
    struct ftl_link *op_links;
    struct ftl_list free_ops;
    bool has_next;        /* `next` gets the next operation that is free */
    struct media_io next; /* ftl_io_submit_next() */
    void (*start_next)(struct ftl *ftl); /* an operation is free for it */
    struct ftl_list reads;               /* QUEUED */
    struct ftl_list changes;             /* QUEUED: writes, trims and flushes */
    struct ftl_list trims;   /* QUEUED: trims that take many steps */
    struct ftl_list filling; /* FILLING: those with more units to change */
    struct ftl_list moving; /* QUEUED: writes that end in ftl_io_end_moving() */
    struct ftl_list barriers; /* DURABLE */
    uint32_t failed_block;    /* of the operation that has just ended */
};

#endif
