/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference: Arm Cortex-M System Design Kit TRM, DDI 0479, "APB watchdog". */
#include "firmware/drivers/watchdog.h"

#include "firmware/hal/mmio.h"
#include "hw-model/regs/soc.h"

enum {
    WDOG_LOAD = 0x000,
    WDOG_CONTROL = 0x008,
    WDOG_INTCLR = 0x00c,
    WDOG_LOCK = 0xc00,

    CONTROL_COUNT = 0x1, /* count, and raise the interrupt */
    CONTROL_RESET = 0x2,

    TICKS_PER_US = SOC_WATCHDOG_HZ / 1000000,
};

#define WDOG_UNLOCK 0x1acce551u

/*
 * Write a register.  The registers are locked except during this write, so that
 * stray writes cannot stop the watchdog.
 */
static void write_register(const struct watchdog *watchdog, uintptr_t offset,
                           uint32_t value)
{
    mmio_write32(watchdog->base + WDOG_LOCK, WDOG_UNLOCK);
    mmio_write32(watchdog->base + offset, value);
    mmio_write32(watchdog->base + WDOG_LOCK, 0);
}

void watchdog_init(struct watchdog *watchdog, uintptr_t base)
{
    watchdog->base = base;
}

void watchdog_start(const struct watchdog *watchdog, uint32_t period_us)
{
    write_register(watchdog, WDOG_LOAD, period_us * TICKS_PER_US);
    write_register(watchdog, WDOG_CONTROL, CONTROL_COUNT | CONTROL_RESET);
}

void watchdog_kick(const struct watchdog *watchdog)
{
    write_register(watchdog, WDOG_INTCLR, 1);
}

void watchdog_expire(const struct watchdog *watchdog)
{
    write_register(watchdog, WDOG_LOAD, 1);
}

void watchdog_stop(const struct watchdog *watchdog)
{
    write_register(watchdog, WDOG_CONTROL, 0);
}
