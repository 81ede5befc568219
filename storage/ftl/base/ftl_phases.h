/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the translation layer is doing now, as far as others need to know: the
 * mount, and the end of the power.  These questions look only at the state, so
 * that whoever asks one need not know the files that do the work.
 */
#ifndef ESSD_FTL_PHASES_H
#define ESSD_FTL_PHASES_H

#include "storage/ftl/state.h"

/** Whether capacitors supply the drive, or did, and it saves the buffer. */
static inline bool ftl_power_is_failing(const struct ftl_power *power)
{
    return power->phase != FTL_POWER_ON;
}

/** Whether the mount is finding out what is on the flash. */
static inline bool ftl_mount_is_scanning(const struct ftl *ftl)
{
    return ftl->state == FTL_MOUNTING && (ftl->mount.phase == FTL_MOUNT_SCAN ||
                                          ftl->mount.phase == FTL_MOUNT_REPAIR);
}

/** Whether the rows that may be torn are being copied. */
static inline bool ftl_mount_is_settling(const struct ftl *ftl)
{
    return ftl->state == FTL_MOUNTING && ftl->mount.phase == FTL_MOUNT_SETTLE;
}

/** Whether the stripes of what is programmed now get parity. */
static inline bool ftl_makes_parity(const struct ftl *ftl)
{
    return ftl->layout.has_parity && ftl->parity.num_dead == 0;
}

#endif
