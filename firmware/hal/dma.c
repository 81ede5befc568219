/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and harts see DRAM at the same addresses: there is no IOMMU. */
#include "firmware/hal/dram.h"

uint64_t hal_dma_addr(const void *ptr)
{
    return (uintptr_t)ptr;
}

void *hal_dma_ptr(uint64_t addr)
{
    return (void *)(uintptr_t)addr;
}
