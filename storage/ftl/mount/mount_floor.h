/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor mount upwards: see base_floor.h. */
#ifndef ESSD_FTL_MOUNT_FLOOR_H
#define ESSD_FTL_MOUNT_FLOOR_H

#include "storage/ftl/background/background_floor.h"
#include "storage/ftl/mount/ftl_mounting.h"

struct ftl_mount_floor {
    union {
        struct ftl_background_floor background_floor;
        struct ftl_background_floor;
    };
    struct ftl_mounting mounting;
};

#endif
