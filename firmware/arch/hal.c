/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of hal/ that need instructions of the hart or its timer. */
#include "firmware/arch/arch.h"
#include "firmware/arch/csr.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "hw-model/regs/soc.h"

#define NS_PER_TICK    (1000000000u / SOC_TIMEBASE_HZ)
#define TICKS_PER_US   (SOC_TIMEBASE_HZ / 1000000u)
#define CLINT_MTIMECMP (SOC_CLINT_BASE + 0x4000) /* 8 bytes per hart */

void arch_stop(void)
{
    csr_write(mie, 0);
    for (;;) {
        __asm__ volatile("wfi");
    }
}

void arch_enable_nmi(void)
{
    __asm__ volatile("csrsi 0x744, 8"); /* mnstatus.NMIE */
}

void hal_dma_wmb(void)
{
    __asm__ volatile("fence w, ow" : : : "memory");
}

void hal_dma_rmb(void)
{
    __asm__ volatile("fence ir, r" : : : "memory");
}

void hal_dma_mb(void)
{
    __asm__ volatile("fence iorw, iorw" : : : "memory");
}

uint64_t hal_now_ns(void)
{
    return csr_read(time) * NS_PER_TICK;
}

uint64_t hal_now_us(void)
{
    return csr_read(time) / TICKS_PER_US;
}

void hal_delay_us(uint32_t us)
{
    uint64_t start = csr_read(time);

    while (csr_read(time) - start < (uint64_t)us * TICKS_PER_US) {
    }
}

void hal_wait_init(struct hal_wait *wait)
{
    wait->deadline_ticks = 0;
    csr_write(mie, MIE_EXTERNAL | MIE_TIMER | MIE_SOFTWARE);
}

void hal_wait_until(struct hal_wait *wait, uint64_t deadline_us)
{
    uint64_t deadline = deadline_us > UINT64_MAX / TICKS_PER_US
                            ? UINT64_MAX
                            : deadline_us * TICKS_PER_US;

    if (deadline < wait->deadline_ticks ||
        wait->deadline_ticks <= csr_read(time)) {
        wait->deadline_ticks = deadline;
        mmio_write64(CLINT_MTIMECMP + 8 * csr_read(mhartid), deadline);
    }
    __asm__ volatile("wfi" : : : "memory");
}
