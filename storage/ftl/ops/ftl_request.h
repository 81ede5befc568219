/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests: operations of the flash. */
#ifndef ESSD_FTL_REQUEST_H
#define ESSD_FTL_REQUEST_H

#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_limits.h"
#include "storage/ftl/base/ftl_list.h"
#include "storage/ftl/base/ftl_pieces.h"
#include "storage/ftl/ftl_flash.h"

enum ftl_request_kind {
    FTL_REQUEST_FREE,
    FTL_REQUEST_READ, /* of a host */
    FTL_REQUEST_FILL, /* of the old contents of a slot */
    FTL_REQUEST_ROW,  /* programs a row */
    FTL_REQUEST_ERASE,
    FTL_REQUEST_WIPE,       /* erases a block that may hold anything */
    FTL_REQUEST_SCAN,       /* reads the system bytes of a row */
    FTL_REQUEST_REPAIR,     /* rebuilds system bytes that could not be read */
    FTL_REQUEST_PROBE,      /* reads those of one unit of each plane */
    FTL_REQUEST_LOAD,       /* reads a row of a checkpoint */
    FTL_REQUEST_CHECKPOINT, /* programs one */
    FTL_REQUEST_PAGE,       /* reads a trim page */
    FTL_REQUEST_MOVE,       /* reads units that are moved */
    FTL_REQUEST_SCRUB,      /* reads units to find out how good they are */
};

/* What a request of a read with metadata reads, and where its data go. */
struct ftl_protected_read {
    struct ftl_cursor to;
    uint32_t block;  /* number of its first block in the operation */
    uint16_t offset; /* in the unit, in bytes */
    uint16_t length;
};

struct ftl_request {
    uint8_t kind;              /* enum ftl_request_kind */
    bool is_marker;            /* ROW: the marker of ftl_power.c */
    bool is_short;             /* READ: of ftl_short_read.h */
    uint8_t stream;            /* ROW */
    uint8_t parity_planes;     /* ROW: they hold parity */
    uint8_t failed_planes;     /* it has ended with FTL_FLASH_FAILED in these */
    uint64_t lost_units;       /* ROW: a bit for each unit of which a word was
                                * lost in DRAM after the row was put together */
    struct ftl_rescue *rescue; /* rebuilds units of it, or NULL */
    uint8_t attempts;          /* ROW, ERASE: so many times it had to be held */
    bool is_refused; /* ROW, ERASE: it is one of those of ftl.num_refused */
    uint16_t op;     /* READ, FILL: of the medium */
    uint32_t numbers[FTL_OP_UNITS]; /* READ: the logical unit of each unit */
    uint32_t row;                   /* counted over all superblocks */
    uint64_t row_number;            /* ROW */
    struct ftl_flash_op flash;
    uint16_t slots[FTL_OP_UNITS]; /* of each unit, or FTL_LIST_END */
    struct ftl_flash_unit units[FTL_OP_UNITS];
    _Alignas(8) uint8_t system[FTL_OP_UNITS][FTL_UNIT_SYSTEM];
    /*
     * SCAN, REPAIR: the dies whose units were left out when a unit was rebuilt,
     * because they could not be read.  If there are any, the unit is right only
     * if its row number is that of the other units of the row.
     */
    uint8_t num_left_out[FTL_OP_UNITS];
    uint8_t left_out[FTL_OP_UNITS][FTL_LEFT_OUT_MAX];
    struct ftl_protected_read read; /* READ of an operation with metadata */
    _Alignas(8) uint8_t meta[FTL_UNIT_META]; /* the same */
};

/* Dies that have died. */
struct ftl_dies {
    bool *is_dead; /* of each die */
    uint32_t num_dead;
    bool *is_recorded;     /* dead dies in the record on flash: ftl_dead.c */
    uint64_t recorded_row; /* the row number in this record */
    /* Rows from this number on were put together since the latest death. */
    uint64_t dead_row;
    uint32_t num_distrusted; /* recorded dies that have answered */
};

/* The operations of the flash. */
struct ftl_ops {
    uint32_t num_requests;
    struct ftl_request *requests;
    struct ftl_link *request_links;
    struct ftl_list free_requests; /* a stack, as ftl_io.free_ops */
    uint32_t kept_requests;        /* free requests that reads of hosts leave to
                                    * programs, erasures and garbage collection */
    struct ftl_list unsent; /* in the order in which they are to be sent */
};

/* Programs and erasures that have failed although the flash is intact: see
 * ftl_hold.c. */
struct ftl_hold {
    /* Superblocks that were given up, since the last program that succeeded,
     * because programs failed although the flash is intact. */
    uint32_t failed_rounds;
    uint64_t retry_us;     /* while programs are held, nothing is programmed
                            * before this time */
    struct ftl_list held;  /* requests that wait until they are sent again */
    uint8_t held_attempts; /* the most attempts of a request in `held` */
    bool holds_row;        /* one of them programs a row */
    uint32_t num_refused;  /* see ftl_is_storage_failing() */
};

#endif
