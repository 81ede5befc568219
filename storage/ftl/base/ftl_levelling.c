/* SPDX-License-Identifier: BSD-2-Clause */
/* When wear levelling moves a superblock that is erased too rarely. */
#include "storage/ftl/base/ftl_policies.h"

static bool is_beyond_spread(uint32_t least, uint32_t most, uint32_t spread)
{
    return most - least > spread;
}

/* Its contents stay where they are until garbage collection takes them. */
static bool is_never_due(uint32_t least, uint32_t most, uint32_t spread)
{
    (void)least;
    (void)most;
    (void)spread;
    return false;
}

const struct ftl_levelling_policy ftl_level_spread = {"spread",
                                                      is_beyond_spread};
const struct ftl_levelling_policy ftl_level_never = {"never", is_never_due};
