/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the power is failing. */
#ifndef ESSD_FTL_PHASES_H
#define ESSD_FTL_PHASES_H

#include "storage/ftl/base/base_floor.h"

enum ftl_power_phase {
    FTL_POWER_ON,    /* Works as usual, until the power fails. */
    FTL_POWER_SAVES, /* Programs what is in the write buffer. */
    FTL_POWER_MARKS, /* Programs markers until their stripe is complete. */
    FTL_POWER_SAVED, /* Does nothing, until the power is off. */
};

/** Whether capacitors supply the drive, or did, and it saves the buffer. */
static inline bool ftl_power_is_failing(const struct ftl_base_floor *ftl)
{
    return ftl->power_phase != FTL_POWER_ON;
}

#endif
