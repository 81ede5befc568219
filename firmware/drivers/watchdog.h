/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watchdog: Arm CMSDK APB watchdog.  The first time it runs out it raises its
 * interrupt, the second time it resets the machine.
 */
#ifndef ESSD_DRIVERS_WATCHDOG_H
#define ESSD_DRIVERS_WATCHDOG_H

#include "lib/util.h"

struct watchdog {
    uintptr_t base;
};

/* Started or stopped as it was before; no effect on a running one. */
void watchdog_init(struct watchdog *watchdog, uintptr_t base);

/* The machine resets unless kicked; 2 * `period_us` after the last kick. */
void watchdog_start(const struct watchdog *watchdog, uint32_t period_us);

void watchdog_kick(const struct watchdog *watchdog);

void watchdog_stop(const struct watchdog *watchdog);

#endif
