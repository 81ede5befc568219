/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watchdog registers: those of Arm's CMSDK APB watchdog.  Includes nothing;
 * include it after QEMU's hw/registerfields.h or lib/regfields.h.
 * Reference: docs/hardware/soc.md, section 4
 */
#ifndef ESSD_REGS_WATCHDOG_H
#define ESSD_REGS_WATCHDOG_H

/* clang-format off */
REG32(WDOG_LOAD, 0x000)                /* rw, reset 0xffffffff */
REG32(WDOG_VALUE, 0x004)               /* ro */
REG32(WDOG_CONTROL, 0x008)             /* rw, reset 0 */
    FIELD(WDOG_CONTROL, INTEN, 0, 1)         /* count, raise the interrupt */
    FIELD(WDOG_CONTROL, RESEN, 1, 1)         /* then reset the machine */
REG32(WDOG_INTCLR, 0x00c)              /* wo: load again, end the interrupt */
REG32(WDOG_RIS, 0x010)                 /* ro: bit 0, it has expired */
REG32(WDOG_MIS, 0x014)                 /* ro: the same, if INTEN is set */
REG32(WDOG_LOCK, 0xc00)                /* rw: WDOG_UNLOCK_VALUE unlocks */
REG32(WDOG_PID4, 0xfd0)                /* ro: 12 words with numbers of the */
REG32(WDOG_CID3, 0xffc)                /* part, 8 bits each */
/* clang-format on */

#define WDOG_UNLOCK_VALUE 0x1acce551u

#endif
