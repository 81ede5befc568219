/* SPDX-License-Identifier: BSD-2-Clause */
/* The sums of which units are rebuilt. */
#ifndef ESSD_FTL_RESCUE_SUM_H
#define ESSD_FTL_RESCUE_SUM_H

#include "storage/ftl/rows/rows_floor.h"

/** Find the units that are not good. */
void ftl_rescue_find_units(const struct ftl_rows_floor *ftl,
                           struct ftl_rescue *rescue);
/** Begin an attempt: the sum is empty, or has what the accumulator has. */
void ftl_rescue_begin_sum(struct ftl_rows_floor *ftl,
                          struct ftl_rescue *rescue);
/** Read the units of the next die. @return false when there is none */
bool ftl_rescue_read_next_die(struct ftl_rows_floor *ftl,
                              struct ftl_rescue *rescue);
/** Add what was read of a die to the sum. */
void ftl_rescue_add_die(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                        const struct ftl_request *request,
                        enum ftl_flash_status status);
/** How many units of other dies may be left out. */
uint32_t ftl_rescue_most_left_out(const struct ftl_rows_floor *ftl,
                                  const struct ftl_rescue *rescue);
/** Whether a unit could be rebuilt. */
bool ftl_rescue_is_rebuilt(const struct ftl_rows_floor *ftl,
                           struct ftl_rescue *rescue, uint32_t unit);
/** Copy a rebuilt unit to where the request reads it to.
 * @return whether no word of it was lost */
bool ftl_rescue_copy_unit(struct ftl_rows_floor *ftl, struct ftl_rescue *rescue,
                          uint32_t unit);

#endif
