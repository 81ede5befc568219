/* SPDX-License-Identifier: BSD-2-Clause */
/* Power-loss protection: see ftl_power.c. */
#ifndef ESSD_FTL_POWER_H
#define ESSD_FTL_POWER_H

#include "lib/util.h"

enum ftl_power_phase {
    FTL_POWER_ON,    /* Works as usual, until the power fails. */
    FTL_POWER_SAVES, /* Programs what is in the write buffer. */
    FTL_POWER_MARKS, /* Programs markers until their stripe is complete. */
    FTL_POWER_SAVED, /* Does nothing, until the power is off. */
};

struct ftl_power {
    uint8_t phase;    /* enum ftl_power_phase */
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
