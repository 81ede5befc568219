/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * There is no wear levelling: the contents of a superblock stay where they are
 * until garbage collection takes them.
 */
#include "storage/ftl/base/ftl_policies.h"

static bool is_never_due(uint32_t least, uint32_t most, uint32_t spread)
{
    (void)least;
    (void)most;
    (void)spread;
    return false;
}

const struct ftl_levelling_policy ftl_level_never = {"never", is_never_due};
