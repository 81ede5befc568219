/* SPDX-License-Identifier: BSD-2-Clause */
/* Power-loss protection: see ftl_power.c. */
#ifndef ESSD_FTL_POWER_H
#define ESSD_FTL_POWER_H

#include "lib/util.h"

struct ftl_power {
    uint32_t marking; /* markers that are being programmed */
    bool has_marked;  /* MARKS: a marker is on flash */
    /* The mount has found a marker, or the last checkpoint of an orderly
     * power-off, and no row of normal operation is newer.  It is of the start
     * with the number `proof_start`. */
    bool has_proof;
    uint32_t proof_start;
    /* The medium was read-only before this start.  It may have had no space for
     * a marker, and there was nothing to save. */
    bool was_read_only;
};

#endif
