/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Garbage collection takes the emptiest superblock, whatever its age.  This
 * moves the fewest units now.  But units that nobody overwrites stay between
 * others, and are moved again and again.
 */
#include "storage/ftl/base/ftl_policies.h"

static bool is_emptier(const struct ftl_victim *one,
                       const struct ftl_victim *other)
{
    return one->valid < other->valid;
}

const struct ftl_victim_policy ftl_greedy = {"greedy", is_emptier};
