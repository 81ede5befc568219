/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of policies: see ftl_policies.h. */
#include "storage/ftl/base/ftl_policies.h"

#include <string.h>

#include "lib/util.h"

static const struct ftl_victim_policy *const victim_policies[] = {
    &ftl_cost_benefit,
    &ftl_greedy,
};

static const struct ftl_levelling_policy *const levelling_policies[] = {
    &ftl_level_spread,
    &ftl_level_never,
};

static const struct ftl_stream_policy *const stream_policies[] = {
    &ftl_streams_by_source,
    &ftl_streams_by_cause,
};

const struct ftl_victim_policy *ftl_victim_policy(unsigned int row)
{
    return row < ARRAY_LEN(victim_policies) ? victim_policies[row] : NULL;
}

const struct ftl_stream_policy *ftl_stream_policy(unsigned int row)
{
    return row < ARRAY_LEN(stream_policies) ? stream_policies[row] : NULL;
}

const struct ftl_victim_policy *ftl_find_victim_policy(const char *name)
{
    for (unsigned int i = 0; i < ARRAY_LEN(victim_policies); i++) {
        if (name == NULL || strcmp(victim_policies[i]->name, name) == 0) {
            return victim_policies[i];
        }
    }
    return NULL;
}

const struct ftl_levelling_policy *ftl_find_levelling_policy(const char *name)
{
    for (unsigned int i = 0; i < ARRAY_LEN(levelling_policies); i++) {
        if (name == NULL || strcmp(levelling_policies[i]->name, name) == 0) {
            return levelling_policies[i];
        }
    }
    return NULL;
}

const struct ftl_stream_policy *ftl_find_stream_policy(const char *name)
{
    for (unsigned int i = 0; i < ARRAY_LEN(stream_policies); i++) {
        if (name == NULL || strcmp(stream_policies[i]->name, name) == 0) {
            return stream_policies[i];
        }
    }
    return NULL;
}
