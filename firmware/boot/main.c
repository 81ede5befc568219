/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boot ROM.  It has an image loaded from one of the slots in the SPI flash
 * (boot_slots.c), records what it found, and starts the image.
 * Reference: docs/hardware/boot.md
 */
#include "firmware/arch/arch.h"
#include "firmware/boot/boot_slots.h"
#include "firmware/drivers/ecc.h"
#include "firmware/drivers/flash.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/log.h"
#include "hw-model/regs/soc.h"

#define WATCHDOG_PERIOD_US 5000000

struct boot {
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct spi spi;
    struct gpio gpio;
    struct flash flash;
    struct watchdog watchdog;
    struct ecc ecc;
    uint8_t key[SYSCTL_KEY_BYTES];
    struct boot_slots slots;
};

static void report_slot(struct boot *boot, unsigned int i)
{
    const struct boot_slot *slot = &boot->slots.slot[i];
    const char *verdict = sysctl_boot_verdict_name(slot->verdict);
    char name = (char)('A' + i);

    if (slot->verdict == SYSCTL_VERDICT_EMPTY ||
        slot->verdict == SYSCTL_VERDICT_HEADER_CRC ||
        slot->verdict == SYSCTL_VERDICT_BOARD ||
        slot->verdict == SYSCTL_VERDICT_HEADER) {
        log_line(&boot->log, "boot: slot %c: %s", name, verdict);
        return;
    }
    log_line(&boot->log,
             "boot: slot %c: firmware %s, sequence %u, %u bytes: %s", name,
             slot->header.version, slot->header.sequence,
             slot->header.len_bytes, verdict);
}

static void report_trial(struct boot *boot, uint8_t chosen)
{
    const struct boot_slots *slots = &boot->slots;
    const struct slot_record *state = &slots->state;

    if (slots->has_lost) {
        log_line(&boot->log, "boot: the newest state of the slots in flash is "
                             "damaged; a new one was made");
    }
    if (slots->gave_up) {
        log_line(&boot->log,
                 "boot: slot %c was started %u times and never declared itself "
                 "good; going back to slot %c",
                 "-AB"[state->failed], SLOT_ATTEMPTS, "-AB"[chosen]);
    } else if (slots->waits) {
        log_line(&boot->log,
                 "boot: slot %c was activated, but starts only after an "
                 "orderly reset or a power cycle; starting slot %c once more",
                 "-AB"[state->chosen], "-AB"[chosen]);
    } else if (slots->cannot_record && chosen != state->chosen) {
        log_line(&boot->log,
                 "boot: slot %c is on trial, but the flash does not take the "
                 "count of its starts; going back to slot %c",
                 "-AB"[state->chosen], "-AB"[chosen]);
    } else if (state->is_on_trial && chosen == state->chosen) {
        log_line(&boot->log, "boot: slot %c is on trial, start %u of %u",
                 "-AB"[chosen], state -> attempts, SLOT_ATTEMPTS);
    }
}

static void record_status(struct boot *boot, uint8_t chosen)
{
    struct sysctl_boot status = {
        .is_done = true,
        .slot = (enum sysctl_boot_slot)chosen,
        .verdict = {boot->slots.slot[0].verdict, boot->slots.slot[1].verdict},
    };

    sysctl_set_boot(&boot->sysctl, &status);
}

/* Report on the console why nothing can be started, and stop until a reset. */
static void stop_boot(struct boot *boot, const char *why)
{
    log_line(&boot->log, "boot: stopped: %s", why);
    log_flush(&boot->log);
    arch_stop();
}

static void boot_init(struct boot *boot)
{
    bool is_our_chip = sysctl_init(&boot->sysctl, SOC_SYSCTL_BASE);

    uart_init(&boot->uart, SOC_UART_BASE);
    log_init(&boot->log, uart_log_sink(&boot->uart));
    if (!is_our_chip) {
        stop_boot(boot, "unknown chip");
    }
    log_line(&boot->log, "boot: mask ROM, reset by %s",
             sysctl_reset_cause_name(sysctl_reset_cause(&boot->sysctl)));
    gpio_init(&boot->gpio, SOC_GPIO_BASE);
    spi_init(&boot->spi, SOC_SPI_BASE, SOC_SPI_DMA_BASE);
    watchdog_init(&boot->watchdog, SOC_WATCHDOG_BASE);
    if (!flash_init(&boot->flash, &boot->spi, &boot->gpio,
                    SOC_GPIO_FLASH_SELECT)) {
        stop_boot(boot, "the flash does not answer");
    }
}

void arch_main(uint64_t hart)
{
    /* Static, because the ROM's main function has no caller. */
    static struct boot boot;
    struct boot_config config = {
        .flash = &boot.flash,
        .dram = (uint8_t *)(uintptr_t)SOC_DRAM_BASE,
        .dram_addr = SOC_DRAM_BASE,
    };
    uint8_t chosen;

    boot_init(&boot);
    config.dram_bytes = sysctl_dram_bytes(&boot.sysctl);
    if (sysctl_boot_key(&boot.sysctl, boot.key)) {
        config.key = boot.key;
    }
    if (ecc_init(&boot.ecc, SOC_ECC_BASE)) {
        config.clear_lost_words = ecc_clear_memory;
        config.clear_ctx = &boot.ecc;
    }
    config.is_unplanned =
        sysctl_reset_is_unplanned(sysctl_reset_cause(&boot.sysctl));
    boot_slots_read(&boot.slots, &config);
    chosen = boot_slots_choose(&boot.slots);
    record_status(&boot, chosen);
    for (unsigned int i = 0; i < SLOT_COUNT; i++) {
        report_slot(&boot, i);
    }
    if (chosen == 0) {
        stop_boot(&boot, "no slot holds a good image");
    }
    report_trial(&boot, chosen);
    log_line(&boot.log, "boot: starting slot %c", "-AB"[chosen]);
    log_flush(&boot.log);
    watchdog_start(&boot.watchdog, WATCHDOG_PERIOD_US);
    arch_start((uintptr_t)boot.slots.slot[chosen - 1].header.entry, hart);
}
