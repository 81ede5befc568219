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
    uint32_t program = mmio_read32(regs + A_NAND_PROGRAM_TIME);
    uint32_t others = mmio_read32(regs + A_NAND_OTHER_TIMES);

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
        .queues_programs = FIELD_GET(cell, NAND_GEOMETRY2, QUEUES) != 0,
        .program_us = (uint16_t)FIELD_GET(program, NAND_PROGRAM_TIME, BUSY),
        .transfer_us =
            (uint16_t)FIELD_GET(program, NAND_PROGRAM_TIME, TRANSFER),
        .erase_us = (uint16_t)FIELD_GET(others, NAND_OTHER_TIMES, ERASE),
        .read_us = (uint16_t)FIELD_GET(others, NAND_OTHER_TIMES, READ),
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

void nand_kick(struct nand *nand)
{
    cmd_queue_kick(&nand->queue);
}

/* ---- Moves */

bool nand_moves_init(struct nand_moves *moves, uintptr_t regs,
                     struct dram *dram)
{
    uint8_t *list =
        dram_alloc(dram, NAND_MOVE_HEADER_LEN + NAND_MOVES_MAX * NAND_MOVE_LEN,
                   NAND_MOVE_ALIGN);

    if (list == NULL) {
        return false;
    }
    *moves = (struct nand_moves){
        .regs = regs,
        .list = list,
        .list_addr = hal_dma_addr(list),
        .addr_offset = hal_dma_offset(list),
    };
    dma_store64(list, NAND_MOVE_STATUS, 0); /* This sets GUARD to 0, too. */
    return true;
}

static void change_by_hart(uint8_t *to, const uint8_t *from, uint32_t len,
                           bool copies)
{
    if (copies) {
        memcpy(to, from, len);
        return;
    }
    for (uint32_t i = 0; i < len; i++) {
        to[i] ^= from[i];
    }
}

/* The same for the units of a row. */
static void add_row_by_hart(const struct nand_moves *moves, uint8_t *sum,
                            const uint8_t *list, uint32_t count, bool begins)
{
    uint8_t *meta = sum + (size_t)count * NAND_DATA_LEN;
    uint8_t *system = meta + (size_t)count * NAND_META_LEN;

    for (uint32_t i = 0; i < count; i++, list += NAND_ENTRY_LEN) {
        uintptr_t data_addr = dma_load64(list, NAND_ENTRY_DATA);
        uintptr_t meta_addr = dma_load64(list, NAND_ENTRY_META);

        change_by_hart(sum + (size_t)i * NAND_DATA_LEN,
                       (const uint8_t *)(data_addr - moves->addr_offset),
                       NAND_DATA_LEN, begins);
        change_by_hart(meta + (size_t)i * NAND_META_LEN,
                       (const uint8_t *)(meta_addr - moves->addr_offset),
                       NAND_META_LEN, begins);
        change_by_hart(system + (size_t)i * NAND_SYSTEM_LEN,
                       list + NAND_ENTRY_SYSTEM, NAND_SYSTEM_LEN, begins);
    }
}

void nand_move_by_hart(const struct nand_moves *moves, uint32_t index)
{
    const uint8_t *move =
        nand_moves_first(moves) + (size_t)index * NAND_MOVE_LEN;
    uintptr_t source = dma_load64(move, NAND_MOVE_SOURCE);
    uintptr_t target = dma_load64(move, NAND_MOVE_TARGET);
    const uint8_t *from = (const uint8_t *)(source - moves->addr_offset);
    uint8_t *to = (uint8_t *)(target - moves->addr_offset);
    uint32_t len = dma_load32(move, NAND_MOVE_LENGTH);

    uint8_t opcode = dma_load8(move, NAND_MOVE_OPCODE);

    if (opcode == NAND_MOVE_ADD_ROW) {
        add_row_by_hart(moves, to, from, len,
                        dma_load8(move, NAND_MOVE_FLAGS) == NAND_MOVE_BEGIN);
        return;
    }
    change_by_hart(to, from, len, opcode == NAND_MOVE_COPY);
}

uint32_t nand_moves_run(const struct nand_moves *moves, uint32_t count)
{
    dma_store64(moves->list, NAND_MOVE_COUNT, count); /* This sets DONE to 0. */
    hal_dma_wmb();
    mmio_write32(moves->regs + A_NAND_MOVE,
                 (uint32_t)(moves->list_addr / NAND_MOVE_ALIGN));
    hal_dma_mb();
    return dma_load32(moves->list, NAND_MOVE_DONE);
}

enum nand_move_status nand_moves_take_status(const struct nand_moves *moves)
{
    uint32_t status = dma_load32(moves->list, NAND_MOVE_STATUS);

    dma_store32(moves->list, NAND_MOVE_STATUS, NAND_MOVE_OK);
    /* If the controller could not read the header, it has written nothing. */
    return status == NAND_MOVE_OK ? NAND_MOVE_REFUSED
                                  : (enum nand_move_status)status;
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
