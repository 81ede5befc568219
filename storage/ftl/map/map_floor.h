/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor map upwards: see base_floor.h. */
#ifndef ESSD_FTL_MAP_FLOOR_H
#define ESSD_FTL_MAP_FLOOR_H

#include "storage/ftl/base/ftl_entry.h"
#include "storage/ftl/map/ftl_collection.h"
#include "storage/ftl/map/ftl_kept.h"
#include "storage/ftl/map/ftl_op.h"
#include "storage/ftl/map/ftl_slot.h"
#include "storage/ftl/space/space_floor.h"

struct ftl_map_floor {
    union {
        struct ftl_space_floor space_floor;
        struct ftl_space_floor;
    };
    const struct ftl_victim_policy *victims;
    bool has_marks; /* some unit has or had marked blocks, so reads look at
                     * the marks */
    uint32_t *map;
    uint8_t *valid; /* one bit for each place */
    struct ftl_keep keep;
    /* Slots of the write buffer whose contents are complete after the next
     * ftl_memory_run(), which then calls ftl_keep_accept() for them. */
    uint16_t filled[FTL_FILLED];
    uint32_t num_filled;
    struct ftl_buffer buffer;
    struct ftl_collection collection;
    struct ftl_io io; /* which operations of hosts wait */
};

#endif
