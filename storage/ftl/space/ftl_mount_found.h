/* SPDX-License-Identifier: BSD-2-Clause */
/* What floors below the mount ask and note of it. */
#ifndef ESSD_FTL_MOUNT_FOUND_H
#define ESSD_FTL_MOUNT_FOUND_H

#include "lib/util.h"

/* What a probe has found in the first wordline of a block, if not a row number.
 * The superblock of a checkpoint has the flag, and the checkpoint's number. */
#define FTL_PROBE_ERASED     UINT64_C(0)
#define FTL_PROBE_LOST       UINT64_MAX
#define FTL_PROBE_PARITY     (UINT64_MAX - 1) /* or the die is dead */
#define FTL_PROBE_CHECKPOINT (UINT64_C(1) << 63)

enum ftl_mount_phase {
    FTL_MOUNT_PROBE,  /* Reads one unit of the first wordline of all blocks. */
    FTL_MOUNT_LOAD,   /* Reads the latest checkpoint. */
    FTL_MOUNT_SCAN,   /* Reads the system bytes of all other rows. */
    FTL_MOUNT_REPAIR, /* Rebuilds system bytes that could not be read. */
    FTL_MOUNT_PAGES,  /* Reads the trim pages. */
    FTL_MOUNT_DROP,   /* Erases copies that earlier mounts have left. */
    FTL_MOUNT_SETTLE, /* Copies what is in rows that may be torn. */
    FTL_MOUNT_CLEAR,  /* Collects and erases the superblocks of these rows. */
};

/* What traces say besides. */
enum {
    FTL_MOUNT_READY = FTL_MOUNT_CLEAR + 1, /* the mount has ended */
    FTL_MOUNT_FAILED,
};

struct ftl_mount {
    uint8_t phase;          /* enum ftl_mount_phase */
    uint32_t turn_left;     /* of the FTL_TURN_ITEMS of this step */
    uint32_t next_item;     /* of a loop that takes several steps */
    bool is_other_capacity; /* the flash has another capacity than configured */
    bool is_in_vain;     /* a unit that was found cannot be read: begin again */
    uint32_t num_dead;   /* dies that were dead when this pass began */
    uint8_t *ignored;    /* one bit for each place: it could not be read */
    uint32_t capacity;   /* the capacity that the flash says, in logical units;
                          * 0: it is the configured one */
    bool has_capacity;   /* a page says what the capacity is */
    bool has_lost_pages; /* pages that the checkpoint named cannot be read */
    bool has_unrebuilt;  /* some unit of a stripe could not be rebuilt */
    uint64_t *probes;    /* of each plane of each block */
    /* The largest row number that was found, without rows of mounts. */
    uint64_t last_normal_row;
    uint64_t last_data_row;  /* the same, of rows that hold more than padding */
    uint64_t checkpoint_row; /* number of the checkpoint, or 0 */
    uint64_t marker_row;     /* number of the newest marker, or 0 */
    uint32_t marker_start;   /* the start that this marker is of */
    bool needs_marker;       /* another marker is to be programmed */
    bool has_doubted; /* of two copies that the scan has compared, one or both
                       * may be half erased, or cannot be read */
    uint8_t copied_again;  /* how often it has begun again because of failed
                            * rows beside its copies */
    uint64_t settle_row;   /* SETTLE: rows with larger numbers may be torn */
    uint64_t *versions;    /* of each entry of the map, and attempts */
    uint64_t *row_numbers; /* of each row */
};

#endif
