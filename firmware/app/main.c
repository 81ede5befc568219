/* SPDX-License-Identifier: BSD-2-Clause */
/* The firmware on its SoC: one context, one loop. */
#include "firmware/app/board.h"
#include "firmware/app/console.h"
#include "firmware/app/drive.h"
#include "firmware/app/version.h"
#include "firmware/arch/arch.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "hw-model/regs/soc.h"

/* The only ones: everything else is handed them. */
static struct board board;
static struct drive drive;
static struct hal_wait sleep;
static struct console console;

static bool start(void)
{
    struct drive_config config = {
        .dram = &board.dram,
        .log = &board.log,
        .identity = &board.identity,
        .config = &board.config,
        .saved_config = &board.saved_config,
        .save_config = board_save_config,
        .save_ctx = &board,
        .usage =
            {
                .usage = &board.usage,
                .is_power_on =
                    sysctl_reset_cause(&board.sysctl) == SYSCTL_RESET_POWER_ON,
                .errors = &board.errors,
                .save = board_save_usage,
                .save_error = board_save_error,
                .save_ctx = &board,
            },
        .generation = board.generation,
        .random_seed = sysctl_random64(&board.sysctl),
        .port_regs = {SOC_PORT0_BASE, SOC_PORT1_BASE},
        .rnic_regs = SOC_RNIC_BASE,
        .lag_regs = SOC_LAG_BASE,
        .media_regs = SOC_MEDIA_BASE,
        .block_shift = 9,
        .version = ESSD_FW_VERSION,
        .slot_version = {board.slot_version[0], board.slot_version[1]},
        .active_slot = sysctl_boot(&board.sysctl).slot == SYSCTL_SLOT_B ? 2 : 1,
    };
    static const uint8_t irq[] = {SOC_IRQ_PORT0, SOC_IRQ_PORT1, SOC_IRQ_RNIC,
                                  SOC_IRQ_MEDIA, SOC_IRQ_UART};

    if (!board.has_identity) {
        log_line(&board.log, "drive: without identity there is no service");
        return false;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(irq); i++) {
        plic_enable(&board.plic, irq[i]);
    }
    if (!drive_init(&drive, &config, hal_now_us())) {
        return false;
    }
    console_init(&console, &board.uart, &board.log, &drive);
    return true;
}

/* What the boot ROM held against the images, where a host can read it. */
static void report_images(void)
{
    struct sysctl_boot boot = sysctl_boot(&board.sysctl);

    for (uint8_t i = 0; i < ARRAY_LEN(boot.verdict); i++) {
        if (boot.verdict[i] != SYSCTL_VERDICT_UNTRIED &&
            boot.verdict[i] != SYSCTL_VERDICT_GOOD) {
            drive_report_image(&drive, (uint8_t)(i + 1));
        }
    }
}

/* Until an interrupt or the earlier of two deadlines. */
static void rest(uint64_t board_deadline_us)
{
    uint64_t deadline_us;
    uint32_t irqs;

    if (!drive_arm(&drive, &deadline_us)) {
        return;
    }
    hal_wait_until(&sleep, MIN(deadline_us, board_deadline_us));
    irqs = plic_claim(&board.plic);
    drive_irqs(&drive, irqs);
    if (irqs & BIT(SOC_IRQ_UART)) {
        console_poll(&console);
    }
    plic_complete(&board.plic, irqs);
}

void arch_main(uint64_t hart)
{
    struct sysctl sysctl;
    uint8_t *free_memory = arch_free_memory();
    uintptr_t dram_end;
    bool is_serving;

    (void)hart;
    ASSERT(sysctl_init(&sysctl, SOC_SYSCTL_BASE));
    dram_end = SOC_DRAM_BASE + sysctl_dram_bytes(&sysctl);
    hal_wait_init(&sleep);
    board_init(&board, free_memory, dram_end - (uintptr_t)free_memory);
    is_serving = start();
    if (is_serving) {
        report_images();
    }
    for (;;) {
        uint64_t now_us = hal_now_us();
        bool is_busy = is_serving && drive_step(&drive, now_us);
        uint64_t deadline_us = board_step(&board);

        is_busy |= is_serving && console_step(&console, now_us);
        if (is_busy) {
            continue;
        }
        if (is_serving) {
            rest(deadline_us);
        } else {
            hal_wait_until(&sleep, deadline_us);
        }
    }
}
