/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the translation layer as a whole: see base_floor.h.
 */
#ifndef ESSD_FTL_STATE_H
#define ESSD_FTL_STATE_H

#include "storage/ftl/io/io_floor.h"

struct ftl {
    union {
        struct ftl_io_floor io_floor;
        struct ftl_io_floor;
    };
    uint8_t *wiped_failed; /* failed_planes, during a wipe */
    uint32_t *wiped_wear;  /* wear, during a wipe */
};

#endif
