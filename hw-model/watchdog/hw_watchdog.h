/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watchdog, with the registers of Arm's CMSDK APB watchdog (Cortex-M System
 * Design Kit, DDI 0479).
 * Reference: docs/hardware/soc.md, section 4
 *
 * Unlike QEMU's model of that part, it counts only time in which the hart could
 * have run (hw-model/core/countdown.h).
 *
 * Not modelled: the registers for integration tests.
 */
#ifndef ESSD_HW_WATCHDOG_H
#define ESSD_HW_WATCHDOG_H

#include "hw-model/core/countdown.h"
#include "hw-model/core/env.h"
#include "lib/regfields.h"
#include "hw-model/regs/watchdog.h"

struct hw_watchdog_config {
    struct dev_env env; /* only the clock, the timer and the interrupt */
    uint32_t tick_ns;   /* length of a tick of the counter */
    void *ctx;

    /**
     * Whether the hart could have run in the time since the last call.  It
     * could not when it sleeps although its wake-up is due, or when the
     * computer has given it no processor.
     */
    bool (*could_run)(void *ctx);

    /** The second expiry: reset the machine. */
    void (*bite)(void *ctx);
};

/* Saved state. */
struct hw_watchdog_state {
    struct countdown countdown;
    uint32_t load;
    uint32_t control;
    uint8_t has_expired; /* once: the interrupt is raised */
    uint8_t is_locked;
};

struct hw_watchdog {
    struct hw_watchdog_config config;
    struct hw_watchdog_state state;
};

void hw_watchdog_init(struct hw_watchdog *watchdog,
                      const struct hw_watchdog_config *config);
void hw_watchdog_reset(struct hw_watchdog *watchdog);

/** @return false when it cannot be read; *value is 0 then */
MUST_USE bool hw_watchdog_read(struct hw_watchdog *watchdog, uint32_t offset,
                               uint32_t *value);

/** @return false when it cannot be written, or the registers are locked */
MUST_USE bool hw_watchdog_write(struct hw_watchdog *watchdog, uint32_t offset,
                                uint32_t value);

void hw_watchdog_timer(struct hw_watchdog *watchdog);

/** After the state was loaded: set timer and interrupt. */
void hw_watchdog_loaded(struct hw_watchdog *watchdog);

#endif
