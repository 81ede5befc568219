/* SPDX-License-Identifier: BSD-2-Clause */
/* What scrubbing is doing. */
#ifndef ESSD_FTL_SCRUBBING_H
#define ESSD_FTL_SCRUBBING_H

#include "lib/util.h"

struct ftl_scrub {
    uint64_t last_us; /* time of the last row */
    /* The next row to be read.  Rows are counted over all superblocks and all
     * passes since the array was new, so a position that was recorded later is
     * larger. */
    uint64_t next_row;
    uint64_t recorded_row; /* the position in the page that was written last */
    uint64_t record_us; /* when the position is to be recorded again; 0 before
                         * the first row */
    bool is_reading;
};

#endif
