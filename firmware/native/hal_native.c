/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's hal in a native process: register accesses go to the device
 * cores of the node to which the address belongs, and the time is the world's.
 */
#include "firmware/hal/barrier.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "firmware/native/blocks.h"
#include "firmware/native/world.h"

static const struct native_node *node_of(uintptr_t addr)
{
    for (const struct native_node *node = native_world()->nodes; node != NULL;
         node = node->next) {
        if (addr - (uintptr_t)node->space < NATIVE_NODE_SPACE) {
            return node;
        }
    }
    ASSERT(false); /* the address belongs to no node */
    return NULL;
}

static uint32_t reg_read(uintptr_t addr)
{
    bool was_counting = blocks_count(false);
    const struct native_node *node = node_of(addr);
    uint32_t value = node->ops->mmio_read(node->ctx, (uint32_t)addr);

    blocks_count(was_counting);
    return value;
}

static void reg_write(uintptr_t addr, uint32_t value)
{
    bool was_counting = blocks_count(false);
    const struct native_node *node = node_of(addr);

    node->ops->mmio_write(node->ctx, (uint32_t)addr, value);
    blocks_count(was_counting);
}

uint8_t mmio_read8(uintptr_t addr)
{
    return (uint8_t)reg_read(addr);
}

uint32_t mmio_read32(uintptr_t addr)
{
    ASSERT(addr % 4 == 0);
    return reg_read(addr);
}

uint64_t mmio_read64(uintptr_t addr)
{
    uint64_t low = mmio_read32(addr);

    return (uint64_t)mmio_read32(addr + 4) << 32 | low;
}

void mmio_write8(uintptr_t addr, uint8_t value)
{
    reg_write(addr, value);
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    ASSERT(addr % 4 == 0);
    reg_write(addr, value);
}

void mmio_write64(uintptr_t addr, uint64_t value)
{
    mmio_write32(addr, (uint32_t)value);
    mmio_write32(addr + 4, (uint32_t)(value >> 32));
}

/*
 * The lower half of a pointer into a node's address space is the bus address.
 */
uint64_t hal_dma_addr(const void *ptr)
{
    const struct native_node *node = node_of((uintptr_t)ptr);
    uint64_t addr = (uint32_t)(uintptr_t)ptr;

    ASSERT(native_node_dma(node, addr, 1) != NULL);
    return addr;
}

uint64_t hal_now_ns(void)
{
    return native_world()->now_ns;
}

uint64_t hal_now_us(void)
{
    return native_world()->now_ns / 1000;
}

void hal_delay_us(uint32_t us)
{
    native_world()->now_ns += us * UINT64_C(1000);
}

void hal_relax(void)
{
    bool was_counting = blocks_count(false);

    for (struct native_node *node = native_world()->nodes; node != NULL;
         node = node->next) {
        node->ops->relax(node->ctx);
    }
    blocks_count(was_counting);
}

/* In one thread, program order is all the order that is needed. */
void hal_dma_wmb(void)
{
}

void hal_dma_rmb(void)
{
}

void hal_dma_mb(void)
{
}
