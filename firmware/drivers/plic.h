/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt controller, one context per hart.  The harts take no interrupts
 * (hal/wait.h): a loop asks which are pending, serves the devices, then
 * completes the interrupts.
 *
 * The gateway latches an interrupt when a device raises its line, and does not
 * latch it again at completion.  Therefore serve a device until its status is
 * clear before completing its interrupt.
 */
#ifndef ESSD_DRIVERS_PLIC_H
#define ESSD_DRIVERS_PLIC_H

#include "lib/util.h"

struct plic {
    uintptr_t base;
    uint32_t hart;
};

/* Disable every source for this hart. */
void plic_init(struct plic *plic, uintptr_t base, uint32_t hart);

/* @param irq  1..31 (SOC_IRQ_...) */
void plic_enable(const struct plic *plic, uint32_t irq);
void plic_disable(const struct plic *plic, uint32_t irq);

/*
 * Claim one interrupt.
 * @return its bit, 0 when none is pending
 */
uint32_t plic_claim(const struct plic *plic);

/*
 * Claim all pending interrupts.
 * @return one bit per source: bit n is source n
 */
uint32_t plic_claim_all(const struct plic *plic);

/*
 * Complete the claimed interrupts of the sources in `irqs`, so that they can
 * occur again.
 */
void plic_complete(const struct plic *plic, uint32_t irqs);

#endif
