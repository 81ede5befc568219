/* SPDX-License-Identifier: BSD-2-Clause */
/* Time since power-on, from the machine timer (SOC_TIMEBASE_HZ). */
#ifndef ESSD_HAL_TIME_H
#define ESSD_HAL_TIME_H

#include <stdint.h>

/*
 * Never goes back; has steps of 100 ns.  Cheap, because it reads a control
 * register instead of MMIO.
 */
uint64_t hal_now_ns(void);
uint64_t hal_now_us(void);

/*
 * Busy-wait for at least `us`: for hardware that needs a pause, not for
 * waiting.
 */
void hal_delay_us(uint32_t us);

#endif
