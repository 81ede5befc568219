/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of a mount alone know of it. */
#ifndef ESSD_FTL_MOUNTING_H
#define ESSD_FTL_MOUNTING_H

#include "lib/util.h"

struct ftl_mounting {
    uint32_t next_region; /* PROBE: of memory, to be cleared before */
    bool has_ignored;     /* mount.ignored is valid */
    uint32_t next_die;    /* whose scan has not begun */
    uint32_t next_page;
    uint32_t requests; /* in progress */
    bool is_old;       /* units of a layout that is not supported were found */
    uint8_t
        *unreadable;   /* one bit for each place: the scan could not read it */
    uint32_t next_row; /* REPAIR: over all superblocks */
    uint64_t last_row; /* the largest row number that was found */
    bool has_settled;  /* SETTLE: all copies are on flash */
    bool has_dropped;  /* the phase DROP has begun */
    bool prefers_originals; /* to half erased superblocks' copies, for space */
    /* Of each block, a byte for each die with a bit for each plane. */
    uint8_t *used_planes;    /* something in them is not erased */
    uint8_t *partial_planes; /* some of their rows are erased or lost */
    uint8_t *page;           /* data and metadata of a trim page */
};

#endif
