/* SPDX-License-Identifier: BSD-2-Clause */
/* Wear levelling moves a superblock when others were erased far more often. */
#include "storage/ftl/base/ftl_policies.h"

static bool is_beyond_spread(uint32_t least, uint32_t most, uint32_t spread)
{
    return most - least > spread;
}

const struct ftl_levelling_policy ftl_level_spread = {"spread",
                                                      is_beyond_spread};
