/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes and limits that several floors need. */
#ifndef ESSD_FTL_LIMITS_H
#define ESSD_FTL_LIMITS_H

#include "storage/ftl/base/ftl_layout.h"

enum {
    FTL_SECTOR_SHIFT = 9,
    FTL_UNIT_SECTORS = FTL_UNIT_DATA >> FTL_SECTOR_SHIFT,
    FTL_TRIM_UNITS = 8 * FTL_UNIT_DATA, /* logical units of a trim page */
    FTL_TRIM_SLOTS = 16,                /* trim pages in the buffer, at most */
    FTL_FILLED = 64,                    /* entries of ftl.filled[] */
    /* Garbage collection has buffers for one row of each die, within these
     * limits. */
    FTL_MOVE_ROWS_MIN = 2,
    FTL_MOVE_ROWS_MAX = 32,
    FTL_VERSION_SHIFT = 5, /* of mount.versions[]; below it, the attempt */
    FTL_ROW_GAP = 4096,    /* row numbers that a mount leaves unused */
    /*
     * A mount takes the last rows for rows that may be torn: this many for each
     * die.  While a row is in flight, at most half as many are started: the
     * other half is for rows that fail.
     */
    FTL_SUSPECT_ROWS = 8,
    FTL_ROWS_AHEAD = FTL_SUSPECT_ROWS / 2,
    FTL_DIE_ROWS = 2, /* of a stream that are in flight to a die, at most */
    /*
     * Entries of the map, words of memory, or the like that one step deals with
     * at most.  The map of a large array has millions of entries.  A loop over
     * all of them would hold up everything else that the drive does, and the
     * watchdog would bite on a busy computer.
     */
    FTL_TURN_ITEMS = 65536,

    /* Free superblocks that the host's stream leaves, and with which garbage
     * collection begins. */
    FTL_HOST_LEAVES_FREE = 3,
    FTL_COLLECT_BELOW = 5,
    FTL_URGENT_LEAVES_FREE = 2, /* the same, for contents of failed rows */
    FTL_MOVE_LEAVES_FREE = 1,   /* the same for the other stream, and for what
                                 * is in the buffer when the medium becomes
                                 * read-only */
    FTL_RESERVE = 8,         /* superblocks that are no part of the capacity */
    FTL_CHECKPOINT_ROWS = 8, /* of a checkpoint in progress, at most */
    FTL_WORN_RESERVE = 6,    /* with fewer of these, the medium is read-only */
    FTL_RESERVE_ROWS = 3,    /* rows of a superblock that are no capacity */
    FTL_REUSED_MAX = 2, /* superblocks that are `is_reused` at the same time */
    FTL_STUCK_RETRIES = 3, /* see `retries` of struct ftl_superblock */
    /*
     * A unit is rebuilt even if so many others cannot be read and nobody knows
     * whether they are in the sum.  If they are, the row number of the result
     * is wrong and shows it, because the XOR of one or two different numbers is
     * not 0.  The XOR of more numbers may be 0.
     */
    FTL_LEFT_OUT_MAX = 2,
};

#endif
