/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt controller, one context per hart.  Interrupts are never taken
 * (hal/wait.h): a loop asks which are pending, serves them, and completes them.
 *
 * The gateway notes an interrupt when a device raises its line, and not again
 * at completion: serve a device until its status is clear before completing.
 */
#ifndef ESSD_DRIVERS_PLIC_H
#define ESSD_DRIVERS_PLIC_H

#include "lib/util.h"

struct plic {
    uintptr_t base;
    uint32_t hart;
};

/* Every source off for this hart. */
void plic_init(struct plic *plic, uintptr_t base, uint32_t hart);

/* @param irq  1..31 (SOC_IRQ_...) */
void plic_enable(const struct plic *plic, uint32_t irq);
void plic_disable(const struct plic *plic, uint32_t irq);

/* Claim one interrupt. @return its bit, 0 when none is pending */
uint32_t plic_claim(const struct plic *plic);

/* Claim all that is pending. @return one bit per source, bit n is source n */
uint32_t plic_claim_all(const struct plic *plic);

/* Let the sources in `irqs`, as they were claimed them, come again. */
void plic_complete(const struct plic *plic, uint32_t irqs);

#endif
