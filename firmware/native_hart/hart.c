/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What firmware/arch and firmware/hal are on the drive's hart, for a native
 * one: see hw-model/core/native_hart.h.
 */
#include "firmware/native_hart/hart.h"

#include "firmware/arch/arch.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "hw-model/regs/soc.h"

#define NS_PER_TICK    (1000000000u / SOC_TIMEBASE_HZ)
#define TICKS_PER_US   (SOC_TIMEBASE_HZ / 1000000u)
#define CLINT_MTIMECMP (SOC_CLINT_BASE + 0x4000)

/* Of the registers mie and mip. */
#define MIE_SOFTWARE (1u << 3)
#define MIE_TIMER    (1u << 7)
#define MIE_EXTERNAL (1u << 11)

/* From the linker script. */
extern uint8_t __zeroed_start[], __zeroed_end[];
extern uint8_t __guard_bottom[], __stack_bottom[], __stack_top[];

const struct native_hart_ops *native_ops;

static void hart_start_firmware(const struct native_hart_ops *ops)
{
    ops->fill(__zeroed_start, 0, (size_t)(__zeroed_end - __zeroed_start));
    native_ops = ops;
    arch_main(0);
}

extern const struct native_hart_image native_hart_image;
__attribute__((section(".image"), used))
const struct native_hart_image native_hart_image = {
    .magic = NATIVE_HART_MAGIC,
    .version = NATIVE_HART_VERSION,
    .ops_bytes = sizeof(struct native_hart_ops),
    .guard_bottom = (uintptr_t)__guard_bottom,
    .stack_bottom = (uintptr_t)__stack_bottom,
    .stack_top = (uintptr_t)__stack_top,
    .start = hart_start_firmware,
    .trap = native_trap,
};

/* arch.h */

void arch_stop(void)
{
    native_ops->set_enabled(native_ops->ctx, 0);
    for (;;) {
        native_ops->wait(native_ops->ctx);
    }
}

/* There is no such interrupt: a watchdog that expires resets the drive. */
void arch_enable_nmi(void)
{
}

/* Registers. */

static inline uint64_t reg_read(uintptr_t addr, unsigned int size)
{
    uint64_t value;

    if (!native_ops->read(native_ops->ctx, addr, size, &value)) {
        native_fault(addr, false, __builtin_return_address(0));
    }
    return value;
}

static inline void reg_write(uintptr_t addr, unsigned int size, uint64_t value)
{
    if (!native_ops->write(native_ops->ctx, addr, size, value)) {
        native_fault(addr, true, __builtin_return_address(0));
    }
}

uint8_t mmio_read8(uintptr_t addr)
{
    return (uint8_t)reg_read(addr, 1);
}

uint32_t mmio_read32(uintptr_t addr)
{
    return (uint32_t)reg_read(addr, 4);
}

uint64_t mmio_read64(uintptr_t addr)
{
    return reg_read(addr, 8);
}

void mmio_write8(uintptr_t addr, uint8_t value)
{
    reg_write(addr, 1, value);
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    reg_write(addr, 4, value);
}

void mmio_write64(uintptr_t addr, uint64_t value)
{
    reg_write(addr, 8, value);
}

void hal_relax(void)
{
    native_ops->relax(native_ops->ctx);
}

/* Devices run in other threads, too. */

void hal_dma_wmb(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

void hal_dma_rmb(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

void hal_dma_mb(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Time. */

static uint64_t hart_ticks_now(void)
{
    return native_ops->ticks(native_ops->ctx);
}

uint64_t hal_now_ns(void)
{
    return hart_ticks_now() * NS_PER_TICK;
}

uint64_t hal_now_us(void)
{
    return hart_ticks_now() / TICKS_PER_US;
}

void hal_delay_us(uint32_t us)
{
    uint64_t since = hart_ticks_now();

    while (hart_ticks_now() - since < (uint64_t)us * TICKS_PER_US) {
        hal_relax();
    }
}

void hal_wait_init(struct hal_wait *wait)
{
    wait->deadline_ticks = 0;
    native_ops->set_enabled(native_ops->ctx,
                            MIE_EXTERNAL | MIE_TIMER | MIE_SOFTWARE);
}

void hal_wait_until(struct hal_wait *wait, uint64_t deadline_us)
{
    uint64_t deadline = deadline_us > UINT64_MAX / TICKS_PER_US
                            ? UINT64_MAX
                            : deadline_us * TICKS_PER_US;

    if (deadline < wait->deadline_ticks ||
        wait->deadline_ticks <= hart_ticks_now()) {
        wait->deadline_ticks = deadline;
        mmio_write64(CLINT_MTIMECMP, deadline);
    }
    native_ops->wait(native_ops->ctx);
}
