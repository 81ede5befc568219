/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watchdog: Arm CMSDK APB watchdog.  When it expires for the first time, it
 * raises its interrupt; when it expires a second time, it resets the machine.
 */
#ifndef ESSD_DRIVERS_WATCHDOG_H
#define ESSD_DRIVERS_WATCHDOG_H

#include "lib/util.h"

struct watchdog {
    uintptr_t base;
};

/* This neither starts nor stops the watchdog. */
void watchdog_init(struct watchdog *watchdog, uintptr_t base);

/* Start: without a kick, the machine resets 2 * `period_us` later. */
void watchdog_start(const struct watchdog *watchdog, uint32_t period_us);

void watchdog_kick(const struct watchdog *watchdog);

/*
 * Let the watchdog expire at once.  After its first expiry this resets the
 * machine, with the watchdog as the cause.
 */
void watchdog_expire(const struct watchdog *watchdog);

void watchdog_stop(const struct watchdog *watchdog);

#endif
