/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive_memory.h"

#include "nvmeof/rdma/rdma_limits.h"

/* Buffers of operations, telemetry, RDMA and echo services. */
enum {
    ALWAYS_BYTES = RDMA_CAPSULE_BYTES + BUF_POOL_BYTES + ECHO_MEMORY_LEN +
                   NVMF_FIRMWARE_MAX + (4 << 20),
};

uint32_t drive_memory_of_services(const struct config *config)
{
    return ALWAYS_BYTES + (uint32_t)tcp_services_dram(config) +
           (uint32_t)aoe_service_dram(config);
}

/* A device has found a lost word of DRAM. */
static bool note_lost_word(void *ctx, uint64_t addr)
{
    struct drive *drive = ctx;

    return nand_medium_note_lost_word(&drive->nand, addr);
}

/* The patrol has found a lost word of DRAM. */
static bool note_patrolled_word(void *ctx, uint64_t addr)
{
    struct drive *drive = ctx;

    return nand_medium_note_patrolled_word(&drive->nand, addr);
}

static bool is_lost_word_noted(void *ctx)
{
    const struct drive *drive = ctx;

    return !nand_medium_needs_lost_word(&drive->nand);
}

bool drive_memory_look(void *ctx)
{
    struct drive *drive = ctx;

    return memory_check_look(&drive->memory, drive->now_us);
}

bool drive_memory_is_intact(void *ctx, const void *memory, size_t len_bytes)
{
    struct drive *drive = ctx;

    return memory_check_read(&drive->memory, memory, len_bytes, drive->now_us);
}

uint64_t drive_memory_trap_word(const struct drive_config *config)
{
    const struct telemetry_panic *panic = config->telemetry.panic;

    return panic != NULL && panic->is_trap
               ? memory_check_trap_word(panic->mcause, panic->mtval,
                                        config->ecc.dram_base,
                                        config->ecc.dram_bytes)
               : 0;
}

void drive_memory_start(struct drive *drive, const struct drive_config *config,
                        const void *buffers)
{
    const struct memory_check_config memory = {
        .regs = config->ecc.regs,
        .log = drive->log,
        .errors = &drive->hw_log,
        .dram_base = config->ecc.dram_base,
        .dram_bytes = config->ecc.dram_bytes,
        .sram_base = config->ecc.sram_base,
        .sram_bytes = config->ecc.sram_bytes,
        .buffers = hal_dma_addr(buffers),
        .buffers_bytes = BUF_POOL_BYTES,
        .lost_word = note_lost_word,
        .patrolled_word = note_patrolled_word,
        .is_noted = is_lost_word_noted,
        .ctx = drive,
        .trap_word = drive_memory_trap_word(config),
    };

    memory_check_init(&drive->memory, &memory, drive->now_us);
}
