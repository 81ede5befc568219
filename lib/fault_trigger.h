/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a fault rule fires: on which of the events that match it.
 * Reference: docs/faults.md, section "When a rule fires".
 *
 * Models and firmware use the same trigger, so that `nth=3` means the same at
 * every place where a fault can be injected.
 */
#ifndef ESSD_LIB_FAULT_TRIGGER_H
#define ESSD_LIB_FAULT_TRIGGER_H

#include "lib/random.h"
#include "lib/util.h"

#define FAULT_CHANCE_ALWAYS (UINT64_C(1) << 32)

struct fault_trigger {
    /* Settings.  Events are counted from 1; 0 means that a setting is off. */
    uint32_t nth;   /* fire only on this event after the skipped ones */
    uint32_t every; /* fire on each event whose number is a multiple of it */
    uint32_t after; /* number of events to skip first */
    uint32_t times; /* largest number of events to fire on */
    uint64_t
        chance; /* probability in units of 2^-32: FAULT_CHANCE_ALWAYS is 1 */
    uint64_t random; /* state of the generator; its first value is the seed */

    /* Counters. */
    uint64_t matched; /* events that matched the rule */
    uint64_t fired;   /* events on which it fired */
};

/** Count one event that matches the rule. @return whether the rule fires */
static inline bool fault_trigger_event(struct fault_trigger *trigger)
{
    uint64_t number = ++trigger->matched;

    if (number <= trigger->after ||
        (trigger->times != 0 && trigger->fired >= trigger->times)) {
        return false;
    }
    number -= trigger->after;
    if ((trigger->nth != 0 && number != trigger->nth) ||
        (trigger->every != 0 && number % trigger->every != 0)) {
        return false;
    }
    if (trigger->chance < FAULT_CHANCE_ALWAYS &&
        random_next(&trigger->random) >> 32 >= trigger->chance) {
        return false;
    }
    trigger->fired++;
    return true;
}

#endif
