/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep until something happens.  Interrupts are never taken: mstatus.MIE
 * stays clear, a pending one only ends the sleep.  Who wakes up looks at the
 * PLIC (drivers/plic.h) and at its rings.
 */
#ifndef ESSD_HAL_WAIT_H
#define ESSD_HAL_WAIT_H

#include <stdint.h>

/* What the hart's timer is set to. */
struct hal_wait {
    uint64_t deadline_ticks;
};

/* Once, before the first hal_wait_until(): which interrupts end a sleep. */
void hal_wait_init(struct hal_wait *wait);

/*
 * Return at `deadline_us` (hal_now_us() time), or before that as soon as an
 * external or software interrupt is pending; at once if one already is.  May
 * also return at an earlier deadline of a call before: a timer that runs is not
 * set anew only to run longer.
 */
void hal_wait_until(struct hal_wait *wait, uint64_t deadline_us);

#endif
