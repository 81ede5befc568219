/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of the main loop that serves the watchdog.
 *
 * It measures the time between two kicks with hal_now_us(), because the
 * watchdog counts all of a turn that takes long.  The time of the main loop
 * leaves most of such a turn out.
 */
#ifndef ESSD_LOOP_WATCHDOG_KEEPER_H
#define ESSD_LOOP_WATCHDOG_KEEPER_H

#include "firmware/drivers/watchdog.h"
#include "firmware/loop/loop.h"

#define WATCHDOG_KICK_US 500000

struct watchdog_keeper {
    const struct watchdog *watchdog;
    uint64_t kick_us; /* hal_now_us() of the next kick */
};

/** The step; its context is a struct watchdog_keeper. */
enum loop_work watchdog_keeper_step(void *ctx, struct loop_step *step);

#endif
