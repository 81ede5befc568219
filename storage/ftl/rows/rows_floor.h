/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor rows upwards: see base_floor.h. */
#ifndef ESSD_FTL_ROWS_FLOOR_H
#define ESSD_FTL_ROWS_FLOOR_H

#include "storage/ftl/base/ftl_system_row.h"
#include "storage/ftl/pages/pages_floor.h"
#include "storage/ftl/rows/ftl_parity.h"
#include "storage/ftl/rows/ftl_power.h"

struct ftl_rows_floor {
    union {
        struct ftl_pages_floor pages_floor;
        struct ftl_pages_floor;
    };
    struct ftl_system_sums *sums;
    uint8_t *pad; /* data of a unit that fills a row */
    struct ftl_power power;
    struct ftl_parity parity;
};

#endif
