/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A countdown that measures what firmware did with its time: a watchdog, or the
 * energy of capacitors.  It counts only time in which firmware could have run.
 *
 * The virtual clock runs on while the computer stops the emulator, or gives it
 * no processor.  So the owner looks at the countdown in steps of at most
 * COUNTDOWN_STEP_NS.  A look that comes later than COUNTDOWN_LATE_NS after the
 * end of its step counts as if it had come then.  A step in which the owner
 * knows that firmware could not run counts nothing.
 */
#ifndef ESSD_HW_CORE_COUNTDOWN_H
#define ESSD_HW_CORE_COUNTDOWN_H

#include "lib/util.h"

#define COUNTDOWN_STEP_NS UINT64_C(100000000)
#define COUNTDOWN_LATE_NS UINT64_C(100000000)

/* All fields are saved state. */
struct countdown {
    uint64_t left_ns;
    uint64_t since_ns; /* when the step in progress began */
    uint8_t is_running;
};

/** Begin, or begin again. */
void countdown_start(struct countdown *countdown, uint64_t now_ns,
                     uint64_t length_ns);

void countdown_stop(struct countdown *countdown);

/** When countdown_look() is called next; UINT64_MAX while it is stopped. */
uint64_t countdown_deadline_ns(const struct countdown *countdown);

/** How much would be left if the owner looked now. */
uint64_t countdown_left_ns(const struct countdown *countdown, uint64_t now_ns);

/**
 * End the step in progress and begin the next one.
 *
 * @param could_run  whether firmware could have run in the step
 * @return true when nothing is left; the countdown has stopped then
 */
MUST_USE bool countdown_look(struct countdown *countdown, uint64_t now_ns,
                             bool could_run);

#endif
