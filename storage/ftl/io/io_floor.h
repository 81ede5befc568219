/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known from the floor io upwards: see base_floor.h. */
#ifndef ESSD_FTL_IO_FLOOR_H
#define ESSD_FTL_IO_FLOOR_H

#include "storage/ftl/mount/mount_floor.h"

struct ftl_io_floor {
    union {
        struct ftl_mount_floor mount_floor;
        struct ftl_mount_floor;
    };
    bool is_volatile; /* see ftl_set_volatile() */
};

#endif
