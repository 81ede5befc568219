/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Garbage collection takes the superblock whose age times the space that it
 * gives, divided by the cost of moving, is the largest.  An old superblock is
 * taken although it is rather full, because what is still valid in it will
 * probably not be overwritten soon.
 */
#include "storage/ftl/base/ftl_policies.h"

static bool has_more_benefit(const struct ftl_victim *one,
                             const struct ftl_victim *other)
{
    return one->age * (one->capacity - one->valid) / one->valid >
           other->age * (other->capacity - other->valid) / other->valid;
}

const struct ftl_victim_policy ftl_cost_benefit = {"cost-benefit",
                                                   has_more_benefit};
