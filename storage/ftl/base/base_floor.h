/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all floors know of the translation layer.
 *
 * Each floor has a struct like this one, which contains that of the floor below
 * twice over: without a name, so that its members are members of this floor's
 * struct, too; and with a name, so that it can be handed to the functions of
 * the floor below.  A function gets the struct of its own floor, and so cannot
 * see what belongs to a higher one.  The struct in state.h has all of it.
 */
#ifndef ESSD_FTL_BASE_FLOOR_H
#define ESSD_FTL_BASE_FLOOR_H

#include "storage/ftl/base/ftl_layout.h"
#include "storage/ftl/base/ftl_limits.h"
#include "storage/ftl/ftl.h"

struct ftl_base_floor {
    struct ftl_config config;
    struct ftl_layout layout;
    enum ftl_state state;
    uint8_t power_phase; /* enum ftl_power_phase */
    /*
     * Before wake_us, ftl_step() has something to do only if has_work is set.
     * When a host's read ends, it need not set has_work if is_calm is set,
     * which means that nothing waits for requests.
     */
    bool has_work;
    bool is_calm;
    uint64_t wake_us;
    uint64_t now_us;
    uint32_t entries; /* of the map: logical units, then pages */
    struct ftl_counters counters;
};

#endif
