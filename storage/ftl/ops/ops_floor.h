/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor ops upwards: see base_floor.h. */
#ifndef ESSD_FTL_OPS_FLOOR_H
#define ESSD_FTL_OPS_FLOOR_H

#include "storage/ftl/base/base_floor.h"
#include "storage/ftl/ops/ftl_request.h"

struct ftl_ops_floor {
    union {
        struct ftl_base_floor base_floor;
        struct ftl_base_floor;
    };
    struct ftl_ops ops;
    struct ftl_hold hold;
    struct ftl_dies dies;
};

#endif
