/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-sysctl: system controller of the drive.
 * Reference: docs/hardware/sysctl.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/sysctl.h
 *  + named GPIO input "watchdog": the watchdog's interrupt; pending when the
 *    machine is reset, it makes the reset cause WATCHDOG
 *  + named GPIO outputs "strap" 0..7: the strap pins' levels, driven after
 *    every reset
 *  + sysbus IRQ 0: level, high from the time at which the power fails
 *  + property "power-fail", at run time: true makes the power fail; QEMU ends
 *    as by SIGKILL when the capacitors are empty, or when firmware needs no
 *    more power
 *  + properties "plp" (the board has capacitors), "plp-budget-us" (for how many
 *    microseconds they supply the board), "dram-mib", "harts", "straps" (8
 *    bits), "boot-key" (64 hexadecimal digits, or not set: no key is fused),
 *    "key-log" (the name of a character device for the key log; not set: nobody
 *    keeps it)
 */
#ifndef ESSD_SYSCTL_H
#define ESSD_SYSCTL_H

#include "chardev/char-fe.h"
#include "hw/sysbus.h"
#include "qom/object.h"
#include "hw/registerfields.h"
#include "hw-model/core/countdown.h"
#include "hw-model/regs/sysctl.h"

#define TYPE_ESSD_SYSCTL "essd-sysctl"
OBJECT_DECLARE_SIMPLE_TYPE(EssdSysctlState, ESSD_SYSCTL)

#define ESSD_STRAPS 8

struct EssdSysctlState {
    SysBusDevice parent_obj;

    MemoryRegion iomem;
    qemu_irq strap[ESSD_STRAPS];

    /* Properties. */
    uint32_t dram_mib;
    uint32_t harts;
    uint8_t straps;
    char *boot_key;
    bool plp;
    uint32_t plp_budget_us;
    CharBackend key_log;

    /* The line of the key log that has not ended.  It is secret, so it is not
     * saved. */
    char key_line[SYSCTL_KEY_LOG_LINE];
    uint32_t key_line_len;

    qemu_irq power_irq;
    QEMUTimer *power_timer; /* when to look at `power` */

    /* Saved with the machine. */
    bool powered; /* false until the first reset is over */
    bool watchdog_pending;
    uint32_t cause; /* enum sysctl_reset_cause of the last reset */
    /* Cause of the reset in progress; POWER_ON: not requested by this block. */
    uint32_t next_cause;
    uint32_t boot_status;
    uint32_t hart_entry[2];
    bool is_failing; /* the power has failed; capacitors supply the board */
    struct countdown power; /* what is left in the capacitors */
    uint32_t scratch[SYSCTL_SCRATCH_WORDS];
};

/* Make the power of a board with capacitors fail.  It has not failed yet. */
void essd_sysctl_fail_power(EssdSysctlState *s);

/*
 * Switch the power off, which ends this process: the only function that does.
 * Frames that have left the drive are passed on; nothing else that is in
 * progress is completed.
 */
G_NORETURN void essd_sysctl_end_power(void);

#endif
