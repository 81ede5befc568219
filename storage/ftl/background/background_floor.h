/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor background upwards: see base_floor.h. */
#ifndef ESSD_FTL_BACKGROUND_FLOOR_H
#define ESSD_FTL_BACKGROUND_FLOOR_H

#include "storage/ftl/background/ftl_checkpointing.h"
#include "storage/ftl/ftl_wiping.h"
#include "storage/ftl/rows/rows_floor.h"

struct ftl_background_floor {
    union {
        struct ftl_rows_floor rows_floor;
        struct ftl_rows_floor;
    };
    bool is_full; /* operations waited for space that nothing could make */
    bool records_capacity; /* a page with the capacity is being written */
    struct ftl_adopted adopted;
    struct ftl_checkpoint checkpoint;
    struct ftl_wiping wipe;
};

#endif
