/* SPDX-License-Identifier: BSD-2-Clause */
/* The only `volatile` of the firmware.  Device memory is strongly ordered. */
#include "firmware/hal/mmio.h"

uint8_t mmio_read8(uintptr_t addr)
{
    return *(const volatile uint8_t *)addr;
}

uint32_t mmio_read32(uintptr_t addr)
{
    return *(const volatile uint32_t *)addr;
}

uint64_t mmio_read64(uintptr_t addr)
{
    return *(const volatile uint64_t *)addr;
}

void mmio_write8(uintptr_t addr, uint8_t value)
{
    *(volatile uint8_t *)addr = value;
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    *(volatile uint32_t *)addr = value;
}

void mmio_write64(uintptr_t addr, uint64_t value)
{
    *(volatile uint64_t *)addr = value;
}
