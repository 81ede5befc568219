/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hosts write and what is moved are kept apart, because units that were
 * moved will probably stay longer.
 */
#include "storage/ftl/base/ftl_policies.h"

static uint8_t choose_only_one(enum ftl_cause cause)
{
    (void)cause;
    return 0;
}

const struct ftl_stream_policy ftl_streams_by_source = {"by-source", 1,
                                                        choose_only_one};
