/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep until something happens.  The harts take no interrupts: mstatus.MIE
 * stays clear, and a pending interrupt only ends the sleep.  After the sleep,
 * the caller looks at the PLIC (drivers/plic.h) and at its rings.
 */
#ifndef ESSD_HAL_WAIT_H
#define ESSD_HAL_WAIT_H

#include <stdint.h>

/* The deadline that the hart's timer is set to. */
struct hal_wait {
    uint64_t deadline_ticks;
};

/*
 * Choose the interrupts that end a sleep.  Call this once, before the first
 * hal_wait_until().
 */
void hal_wait_init(struct hal_wait *wait);

/*
 * Sleep until `deadline_us` (hal_now_us() time), or until an external or
 * software interrupt is pending.  This may also return at the earlier deadline
 * of a previous call, because a running timer is not set again to a later
 * deadline.
 */
void hal_wait_until(struct hal_wait *wait, uint64_t deadline_us);

#endif
