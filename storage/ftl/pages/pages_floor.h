/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor pages upwards: see base_floor.h. */
#ifndef ESSD_FTL_PAGES_FLOOR_H
#define ESSD_FTL_PAGES_FLOOR_H

#include "storage/ftl/map/map_floor.h"
#include "storage/ftl/pages/ftl_scrubbing.h"

struct ftl_pages_floor {
    union {
        struct ftl_map_floor map_floor;
        struct ftl_map_floor;
    };
    uint32_t trim_pages;
    uint32_t health_pages; /* after the trim pages */
    uint32_t wear_pages;
    uint32_t next_wear_page; /* the next one that is to be written */
    /* Of each trim page: contents of its units with a smaller version are lost,
     * because nobody knows whether they were trimmed; or 0. */
    uint64_t *lost_rows;
    struct ftl_scrub scrub;
};

#endif
