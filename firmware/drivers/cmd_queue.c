/* SPDX-License-Identifier: BSD-2-Clause */
/* Bring-up of a command queue: see cmd_queue.h. */
#include "firmware/drivers/cmd_queue.h"

bool cmd_queue_alloc(struct cmd_queue *queue, struct dram *dram,
                     uint16_t commands, uint32_t cmd_bytes)
{
    size_t n = commands;

    queue->page = dram_alloc(dram, QUEUE_PAGE_LEN, QUEUE_ALIGN);
    queue->commands = dram_alloc(dram, n * cmd_bytes, cmd_bytes);
    queue->completions = dram_alloc(dram, n * QUEUE_CQE_LEN, QUEUE_ALIGN);
    queue->mask = commands - 1u;
    return queue->page != NULL && queue->commands != NULL &&
           queue->completions != NULL;
}

static void write_address(const struct cmd_queue *queue, uint32_t low_offset,
                          const void *ptr)
{
    uint64_t addr = hal_dma_addr(ptr);

    mmio_write32(queue->regs + low_offset, (uint32_t)addr);
    mmio_write32(queue->regs + low_offset + 4, (uint32_t)(addr >> 32));
}

bool cmd_queue_start(const struct cmd_queue *queue)
{
    uint32_t log2 = (uint32_t)__builtin_ctz(queue->mask + 1);
    uint32_t sizes = FIELD_SET(0, QUEUE_SIZES, CMD, log2);

    sizes = FIELD_SET(sizes, QUEUE_SIZES, CQ, log2);
    write_address(queue, A_QUEUE_PAGE_LO, queue->page);
    write_address(queue, A_QUEUE_CMD_LO, queue->commands);
    write_address(queue, A_QUEUE_CQ_LO, queue->completions);
    mmio_write32(queue->regs + A_QUEUE_SIZES, sizes);
    hal_dma_wmb();
    mmio_write32(queue->regs + A_QUEUE_ENABLE, 1);
    return mmio_read32(queue->regs + A_QUEUE_ENABLE) == 1;
}
