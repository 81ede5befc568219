/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor space upwards: see base_floor.h. */
#ifndef ESSD_FTL_SPACE_FLOOR_H
#define ESSD_FTL_SPACE_FLOOR_H

#include "storage/ftl/base/ftl_policies.h"
#include "storage/ftl/ops/ops_floor.h"
#include "storage/ftl/space/ftl_mount_found.h"
#include "storage/ftl/space/ftl_stream.h"
#include "storage/ftl/space/ftl_superblock.h"

struct ftl_space_floor {
    union {
        struct ftl_ops_floor ops_floor;
        struct ftl_ops_floor;
    };
    const struct ftl_levelling_policy *levelling;
    const struct ftl_stream_policy *streaming;
    bool is_read_only;     /* writes and trims are refused */
    bool is_read_only_now; /* only until the next start */
    uint64_t accepted;     /* number of writes and trims that were accepted */
    uint64_t forced;       /* what was accepted up to this number is programmed
                            * even if its row is not full */
    /* Of each block, a byte for each die with a bit for each plane. */
    uint8_t *factory_planes; /* must not be touched */
    uint8_t *failed_planes;  /* have failed, which the drive remembers */
    uint8_t *bad_planes;     /* these and others that take no data now */
    bool *health_changed;    /* of each health page: it is to be programmed */
    uint32_t health_changes; /* pages for which this is so */
    struct ftl_superblock *superblocks;
    uint32_t free_superblocks;
    /* Superblocks that are kept free for the copies of a mount, in addition to
     * FTL_HOST_LEAVES_FREE; 0 unless blocks are short. */
    uint32_t more_free;
    bool has_emptied;      /* some superblock may have become empty */
    uint32_t num_due;      /* superblocks that move soon */
    uint32_t num_opened;   /* since the last checkpoint */
    uint32_t *wear;        /* of each superblock: erasures, ever */
    uint32_t wear_changes; /* since all were written */
    uint32_t num_streams;
    struct ftl_stream streams[FTL_STREAMS_MAX];
    uint64_t next_row_number;
    /* Since the mount has ended, each row notes its number in
     * mount.row_numbers.  This is the first such number. */
    uint64_t first_noted;
    struct ftl_mount mount;
};

#endif
