/* SPDX-License-Identifier: BSD-2-Clause */
/* Which units a row takes. */
#ifndef ESSD_FTL_ROW_FILL_H
#define ESSD_FTL_ROW_FILL_H

#include "storage/ftl/rows/rows_floor.h"

/* Which slots a row takes. */
struct ftl_row_plan {
    uint32_t stream;
    bool takes_pages;
    bool is_marker; /* the row takes no slots: it is padding with a marker */
};

/**
 * Forget units that wait to be moved and need it no longer.
 *
 * @return whether there were any
 */
bool ftl_row_drop_moves(struct ftl_rows_floor *ftl);

/** Add all its units to the request of a row, whose die and planes are known.
 */
void ftl_row_fill(struct ftl_rows_floor *ftl, const struct ftl_row_plan *plan,
                  struct ftl_request *request, uint64_t row_number);

#endif
