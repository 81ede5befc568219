/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference: RISC-V Platform-Level Interrupt Controller specification 1.0. */
#include "firmware/drivers/plic.h"

#include "firmware/hal/mmio.h"
#include "hw-model/regs/soc.h"

enum {
    CONTEXT_THRESHOLD = 0,
    CONTEXT_CLAIM = 4,
};

static uintptr_t context_base(const struct plic *plic)
{
    return plic->base + SOC_PLIC_CONTEXT +
           (uintptr_t)SOC_PLIC_CONTEXT_STRIDE * plic->hart;
}

static uintptr_t enable_addr(const struct plic *plic)
{
    return plic->base + SOC_PLIC_ENABLE +
           (uintptr_t)SOC_PLIC_ENABLE_STRIDE * plic->hart;
}

void plic_init(struct plic *plic, uintptr_t base, uint32_t hart)
{
    *plic = (struct plic){.base = base, .hart = hart};
    mmio_write32(enable_addr(plic), 0);
    mmio_write32(context_base(plic) + CONTEXT_THRESHOLD, 0);
}

void plic_enable(const struct plic *plic, uint32_t irq)
{
    ASSERT(irq > 0 && irq < SOC_IRQS);
    mmio_write32(plic->base + SOC_PLIC_PRIORITY + 4 * (uintptr_t)irq, 1);
    mmio_write32(enable_addr(plic), mmio_read32(enable_addr(plic)) | BIT(irq));
}

void plic_disable(const struct plic *plic, uint32_t irq)
{
    ASSERT(irq > 0 && irq < SOC_IRQS);
    mmio_write32(enable_addr(plic), mmio_read32(enable_addr(plic)) & ~BIT(irq));
}

uint32_t plic_claim(const struct plic *plic)
{
    uint32_t irq = mmio_read32(context_base(plic) + CONTEXT_CLAIM);

    return irq != 0 ? BIT(irq) : 0;
}

uint32_t plic_claim_all(const struct plic *plic)
{
    uint32_t irqs = 0;

    for (;;) {
        uint32_t irq = mmio_read32(context_base(plic) + CONTEXT_CLAIM);

        if (irq == 0) {
            return irqs;
        }
        irqs |= BIT(irq);
    }
}

void plic_complete(const struct plic *plic, uint32_t irqs)
{
    for (uint32_t irq = 1; irq < SOC_IRQS; irq++) {
        if (irqs & BIT(irq)) {
            mmio_write32(context_base(plic) + CONTEXT_CLAIM, irq);
        }
    }
}
