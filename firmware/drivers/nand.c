/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the NAND controller: see nand.h. */
#include "firmware/drivers/nand.h"

#include <string.h>

#include "firmware/hal/relax.h"

static uint32_t reg_read(const struct nand *nand, uint32_t offset)
{
    return mmio_read32(nand->regs + offset);
}

/* ---- Bring-up */

static bool config_is_valid(const struct nand_config *config)
{
    return config->queue < NAND_QUEUES &&
           cmd_queue_size_is_valid(config->commands);
}

static void reset_controller(const struct nand *nand)
{
    mmio_write32(nand->regs + A_NAND_CTRL, FIELD_SET(0, NAND_CTRL, RESET, 1));
    while (FIELD_GET(reg_read(nand, A_NAND_CTRL), NAND_CTRL, RESET)) {
        hal_relax();
    }
}

bool nand_find(uintptr_t regs, struct nand_info *info)
{
    uint32_t array = mmio_read32(regs + A_NAND_GEOMETRY0);
    uint32_t plane = mmio_read32(regs + A_NAND_GEOMETRY1);
    uint32_t cell = mmio_read32(regs + A_NAND_GEOMETRY2);
    uint32_t ecc = mmio_read32(regs + A_NAND_ECC);

    *info = (struct nand_info){
        .channels = (uint8_t)FIELD_GET(array, NAND_GEOMETRY0, CHANNELS),
        .dies = (uint8_t)FIELD_GET(array, NAND_GEOMETRY0, DIES),
        .planes = (uint8_t)FIELD_GET(array, NAND_GEOMETRY0, PLANES),
        .units = (uint8_t)FIELD_GET(array, NAND_GEOMETRY0, UNITS),
        .blocks = (uint16_t)FIELD_GET(plane, NAND_GEOMETRY1, BLOCKS),
        .wordlines = (uint16_t)FIELD_GET(plane, NAND_GEOMETRY1, WORDLINES),
        .pages = (uint8_t)FIELD_GET(cell, NAND_GEOMETRY2, PAGES),
        .endurance = mmio_read32(regs + A_NAND_ENDURANCE),
        .hard_bits = (uint16_t)FIELD_GET(ecc, NAND_ECC, HARD_BITS),
        .steps = (uint8_t)FIELD_GET(ecc, NAND_ECC, STEPS),
    };
    return mmio_read32(regs + A_NAND_ID) == NAND_ID_VALUE && array != 0;
}

enum init_result nand_init(struct nand *nand, const struct nand_config *config)
{
    struct nand_info info;

    *nand = (struct nand){
        .regs = config->regs,
        .queue.regs = config->regs + (uintptr_t)config->queue * QUEUE_STRIDE,
        .index = config->queue,
    };
    if (!config_is_valid(config)) {
        return INIT_BAD_CONFIG;
    }
    if (!nand_find(config->regs, &info)) {
        return INIT_NO_DEVICE;
    }
    if (config->queue == 0) {
        reset_controller(nand);
    }
    if (!cmd_queue_alloc(&nand->queue, config->dram, config->commands,
                         NAND_CMD_LEN)) {
        return INIT_NO_MEMORY;
    }
    return cmd_queue_start(&nand->queue) ? INIT_OK : INIT_REFUSED;
}

/* ---- Entries */

static uint64_t dma_addr_or_zero(const void *ptr)
{
    return ptr != NULL ? hal_dma_addr(ptr) : 0;
}

void nand_entry_read(uint8_t *entry, const struct nand_place *place, void *data,
                     uint16_t offset_bytes, uint16_t len_bytes, void *meta,
                     bool more)
{
    dma_store64(entry, NAND_ENTRY_DATA, dma_addr_or_zero(data));
    dma_store64(entry, NAND_ENTRY_META, dma_addr_or_zero(meta));
    dma_store64(entry, NAND_ENTRY_OFFSET,
                (uint64_t)offset_bytes | (uint64_t)len_bytes << 16 |
                    (uint64_t)place->wordline << 32 |
                    (uint64_t)place->plane << 48 | (uint64_t)place->page << 56);
    dma_store64(entry, NAND_ENTRY_UNIT,
                (uint64_t)place->unit | (more ? NAND_ENTRY_MORE << 8 : 0));
}

void nand_entry_program(uint8_t *entry, const void *data, const void *meta,
                        const uint8_t system[NAND_SYSTEM_LEN])
{
    dma_store64(entry, NAND_ENTRY_DATA, hal_dma_addr(data));
    dma_store64(entry, NAND_ENTRY_META, dma_addr_or_zero(meta));
    dma_store64(entry, NAND_ENTRY_OFFSET, (uint64_t)NAND_DATA_LEN << 16);
    dma_store64(entry, NAND_ENTRY_UNIT, 0);
    memcpy(entry + NAND_ENTRY_SYSTEM, system, NAND_SYSTEM_LEN);
}

void nand_entry_result(const uint8_t *entry, struct nand_result *result)
{
    uint32_t word = dma_load32(entry, NAND_ENTRY_RESULT);

    *result = (struct nand_result){
        .status = (enum nand_cqe_status)FIELD_GET(word, NAND_RESULT, STATUS),
        .steps = (uint8_t)FIELD_GET(word, NAND_RESULT, STEPS),
        .bits = (uint16_t)FIELD_GET(word, NAND_RESULT, BITS),
    };
    memcpy(result->system, entry + NAND_ENTRY_SYSTEM, NAND_SYSTEM_LEN);
}

/* ---- Commands */

static uint64_t command_head(const struct nand_command *command)
{
    uint8_t flags = command->slc ? NAND_CMD_SLC : 0;

    if (command->urgent) {
        flags |= NAND_CMD_URGENT;
    }
    return (uint64_t)command->opcode | (uint64_t)flags << 8 |
           (uint64_t)command->entries << 16 | (uint64_t)command->channel << 32 |
           (uint64_t)command->die << 40 | (uint64_t)command->planes << 48;
}

bool nand_submit(struct nand *nand, const struct nand_command *command)
{
    struct cmd_queue *queue = &nand->queue;
    uint8_t *slot =
        queue->commands + (size_t)(queue->cmd_pi & queue->mask) * NAND_CMD_LEN;
    uint64_t blocks = 0;

    if (!cmd_queue_has_room(queue)) {
        return false;
    }
    for (unsigned int i = NAND_PLANES_MAX; i-- > 0;) {
        blocks = blocks << 16 | command->block[i];
    }
    dma_store64(slot, NAND_CMD_OPCODE, command_head(command));
    dma_store64(slot, NAND_CMD_COOKIE, command->cookie);
    dma_store64(slot, NAND_CMD_LIST, dma_addr_or_zero(command->list));
    dma_store64(slot, NAND_CMD_BLOCK, blocks);
    dma_store64(slot, NAND_CMD_WORDLINE,
                (uint64_t)command->wordline | (uint64_t)command->tag << 32);
    queue->cmd_pi++;
    return true;
}

void nand_kick(struct nand *nand)
{
    cmd_queue_kick(&nand->queue);
}

/* ---- Completions */

static struct nand_done parse_completion(const uint8_t *entry)
{
    return (struct nand_done){
        .cookie = dma_load64(entry, QUEUE_CQE_COOKIE),
        .time_ns = dma_load64(entry, QUEUE_CQE_TIMESTAMP),
        .status = (enum nand_cqe_status)dma_load8(entry, QUEUE_CQE_STATUS),
        .failed_planes = dma_load8(entry, NAND_CQE_FAILED_PLANES),
        .rule = dma_load8(entry, NAND_CQE_DETAIL),
        .steps = dma_load8(entry, NAND_CQE_STEPS),
        .bits = (uint16_t)dma_load32(entry, NAND_CQE_BITS),
    };
}

unsigned int nand_poll(struct nand *nand, unsigned int budget,
                       nand_done_fn *done, void *ctx)
{
    unsigned int count = 0;
    const uint8_t *entry;

    while (count < budget && (entry = cmd_queue_next(&nand->queue)) != NULL) {
        struct nand_done found;

        hal_dma_rmb();
        found = parse_completion(entry);
        nand->queue.cq_ci++;
        count++;
        done(ctx, &found);
    }
    if (count > 0) {
        cmd_queue_publish_taken(&nand->queue);
    }
    return count;
}

bool nand_arm(struct nand *nand)
{
    return cmd_queue_arm(&nand->queue);
}

void nand_irq_enable(struct nand *nand)
{
    uint32_t enable = reg_read(nand, A_NAND_IRQ_ENABLE);

    mmio_write32(nand->regs + A_NAND_IRQ_ENABLE, enable | BIT(nand->index));
}

void nand_irq_take(struct nand *nand)
{
    mmio_write32(nand->regs + A_NAND_IRQ_STATUS, BIT(nand->index));
}

uint64_t nand_counter_read(const struct nand *nand, enum nand_counter counter)
{
    uint32_t offset = NAND_COUNTER_BASE + 8 * (uint32_t)counter;
    uint32_t low = reg_read(nand, offset);

    return (uint64_t)reg_read(nand, offset + 4) << 32 | low;
}
