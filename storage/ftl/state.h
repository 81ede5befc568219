/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the translation layer.  The types are declared by the floors
 * that use them.
 */
#ifndef ESSD_FTL_STATE_H
#define ESSD_FTL_STATE_H

#include "storage/ftl/background/ftl_checkpointing.h"
#include "storage/ftl/background/ftl_power.h"
#include "storage/ftl/base/ftl_entry.h"
#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_limits.h"
#include "storage/ftl/base/ftl_list.h"
#include "storage/ftl/base/ftl_pieces.h"
#include "storage/ftl/base/ftl_policies.h"
#include "storage/ftl/base/ftl_system_row.h"
#include "storage/ftl/ftl.h"
#include "storage/ftl/ftl_wiping.h"
#include "storage/ftl/map/ftl_collection.h"
#include "storage/ftl/map/ftl_kept.h"
#include "storage/ftl/map/ftl_op.h"
#include "storage/ftl/map/ftl_slot.h"
#include "storage/ftl/ops/ftl_request.h"
#include "storage/ftl/pages/ftl_scrubbing.h"
#include "storage/ftl/rows/ftl_parity.h"
#include "storage/ftl/space/ftl_mount_found.h"
#include "storage/ftl/space/ftl_stream.h"
#include "storage/ftl/space/ftl_superblock.h"

struct ftl {
    struct ftl_config config;
    const struct ftl_victim_policy *victims;
    const struct ftl_levelling_policy *levelling;
    struct ftl_layout layout;
    struct ftl_system_sums *sums;
    enum ftl_state state;
    uint8_t power_phase; /* enum ftl_power_phase */
    bool is_volatile;
    bool is_full;      /* operations waited for space that nothing could make */
    bool is_read_only; /* writes and trims are refused */
    bool is_read_only_now; /* only until the next start */
    bool records_capacity; /* a page with the capacity is being written */
    bool has_marks; /* some unit has or had marked blocks, so reads look at
                     * the marks */
    uint64_t now_us;
    /*
     * Before wake_us, ftl_step() has something to do only if has_work is set.
     * When a host's read ends, it need not set has_work if is_calm is set,
     * which means that nothing waits for requests.
     */
    bool has_work;
    bool is_calm;
    uint64_t wake_us;

    uint32_t entries; /* of the map: logical units, then pages */
    uint32_t trim_pages;
    uint32_t health_pages; /* after the trim pages */
    uint32_t *map;
    uint8_t *valid; /* one bit for each place */
    /* Of each trim page: contents of its units with a smaller version are lost,
     * because nobody knows whether they were trimmed; or 0. */
    uint64_t *lost_rows;
    /* Of each block, a byte for each die with a bit for each plane. */
    uint8_t *factory_planes; /* must not be touched */
    struct ftl_wiping wipe;
    uint8_t *wiped_failed;   /* failed_planes, during a wipe */
    uint32_t *wiped_wear;    /* wear, during a wipe */
    uint8_t *failed_planes;  /* have failed, which the drive remembers */
    uint8_t *bad_planes;     /* these and others that take no data now */
    bool *health_changed;    /* of each health page: it is to be programmed */
    uint32_t health_changes; /* pages for which this is so */
    struct ftl_superblock *superblocks;
    uint32_t free_superblocks;
    bool has_emptied;    /* some superblock may have become empty */
    uint32_t num_due;    /* superblocks that move soon */
    uint32_t num_opened; /* since the last checkpoint */
    /* Superblocks that are kept free for the copies of a mount, in addition to
     * FTL_HOST_LEAVES_FREE; 0 unless blocks are short. */
    uint32_t more_free;
    uint32_t *wear; /* of each superblock: erasures, ever */
    uint32_t wear_pages;
    uint32_t next_wear_page; /* the next one that is to be written */
    uint32_t wear_changes;   /* since all were written */

    struct ftl_stream streams[FTL_STREAMS];
    uint64_t next_row_number;
    struct ftl_hold hold;
    struct ftl_dies dies;
    uint64_t accepted; /* number of writes and trims that were accepted */
    uint64_t forced;   /* what was accepted up to this number is programmed
                        * even if its row is not full */

    struct ftl_keep keep;
    struct ftl_power power;
    struct ftl_adopted adopted;
    uint8_t *pad; /* data of a unit that fills a row */
    /* Slots of the write buffer whose contents are complete after the next
     * ftl_memory_run(), which then calls ftl_keep_accept() for them. */
    uint16_t filled[FTL_FILLED];
    uint32_t num_filled;
    struct ftl_buffer buffer;
    struct ftl_ops ops;

    struct ftl_io io;

    struct ftl_parity parity;
    struct ftl_scrub scrub;
    struct ftl_collection collection;
    struct ftl_checkpoint checkpoint;
    struct ftl_mount mount;
    struct ftl_counters counters;
};

#endif
