/* SPDX-License-Identifier: BSD-2-Clause */
/* Superblocks. */
#ifndef ESSD_FTL_SUPERBLOCK_H
#define ESSD_FTL_SUPERBLOCK_H

#include "lib/util.h"

enum ftl_superblock_state {
    FTL_SUPERBLOCK_FREE,    /* Is erased and not in use. */
    FTL_SUPERBLOCK_ERASING, /* Waits for its erasures; then free or retired. */
    FTL_SUPERBLOCK_OPEN,    /* Takes the rows of a stream. */
    FTL_SUPERBLOCK_CLOSED,  /* Takes no more rows. */
    FTL_SUPERBLOCK_RETIRED, /* Is not used: too many planes are bad. */
    FTL_SUPERBLOCK_META,    /* Holds a checkpoint. */
};

struct ftl_superblock {
    uint8_t state; /* enum ftl_superblock_state */
    bool is_erased;
    bool is_partial; /* found at the start: some rows are erased or lost */
    bool
        has_normal_row; /* found at the start: a row that no mount programmed */
    bool is_known;      /* found at the start: unchanged since checkpoint */
    bool is_spoilt;     /* found at the start: a word of the parity was lost */
    bool was_moving; /* it is known and, as the checkpoint says, moves soon */
    bool is_own; /* opened since the start: what was programmed is not torn */
    bool has_failed_row; /* one of its rows has failed during the mount */
    bool is_given_up;    /* a program has failed although the flash is intact,
                          * and was not repeated */
    bool is_reused;  /* its latest erasure has said that it is programmed again
                      * soon, and this has not happened yet */
    bool is_suspect; /* it may have rows that are half programmed */
    bool has_parity; /* opened since the start: its stripes have parity */
    bool moves_soon; /* its valid units are moved even if no space is
                      * needed: they are in danger, or stay too long */
    uint8_t cause;   /* enum ftl_cause: why it moves soon, or was erased last */
    uint16_t erasures; /* in progress */
    uint16_t rows_in_flight;
    uint16_t next_die;     /* ERASING: whose erasure has not begun */
    bool is_stuck;         /* a valid unit could not be read, so not be moved */
    uint8_t retries;       /* failed tries, each after another superblock was
                            * moved */
    uint8_t space_retries; /* further tries, because space was needed */
    uint32_t stuck_moved;  /* collection.moved at the last try */
    uint32_t stuck_valid; /* it is tried again when `valid` is less than this */
    uint32_t valid;       /* units that must not be lost */
    uint32_t capacity;    /* units of planes that are not bad */
    /* A trim has made units of it invalid.  It may be erased when all trim
     * pages that were accepted up to this number are durable. */
    uint64_t trim_accepted;
    uint64_t used_us; /* when it was opened or closed, since the start */
    /* The largest row number: found at the start, or when it was closed. */
    uint64_t last_row;
};

#endif
