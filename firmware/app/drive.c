/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive.h"

#include "firmware/app/version.h"
#include "firmware/hal/time.h"
#include "hw-model/regs/soc.h"

#define WATCHDOG_PERIOD_US 2000000
#define KICK_US 500000

static void report_reset(struct drive *drive)
{
    struct sysctl_boot boot = sysctl_boot(&drive->sysctl);
    struct sysctl_panic panic;

    log_line(&drive->log, "drive: firmware %s, reset by %s, slot %c",
             ESSD_FW_VERSION,
             sysctl_reset_cause_name(sysctl_reset_cause(&drive->sysctl)),
             "-AB"[boot.slot]);
    if (sysctl_take_panic(&drive->sysctl, &panic)) {
        log_line(&drive->log, "drive: panic %u before: %s %s:%u at 0x%lx",
                 panic.count, panic.is_trap ? "trap" : "assertion", panic.file,
                 panic.line, panic.mepc);
    }
}

void drive_init(struct drive *drive, void *free_memory, size_t free_bytes)
{
    *drive = (struct drive){ 0 };
    uart_init(&drive->uart, SOC_UART_BASE);
    log_init(&drive->log, &drive->uart);
    ASSERT(sysctl_init(&drive->sysctl, SOC_SYSCTL_BASE));
    watchdog_init(&drive->watchdog, SOC_WATCHDOG_BASE);
    watchdog_start(&drive->watchdog, WATCHDOG_PERIOD_US);
    gpio_init(&drive->straps_gpio, SOC_STRAPS_BASE);
    gpio_init(&drive->gpio, SOC_GPIO_BASE);
    spi_init(&drive->spi, SOC_SPI_BASE);
    plic_init(&drive->plic, SOC_PLIC_BASE, 0);
    dram_init(&drive->dram, free_memory, free_bytes);
    report_reset(drive);
    log_line(&drive->log, "drive: DRAM %zu MiB, %zu free, harts %u, straps %02x",
             sysctl_dram_bytes(&drive->sysctl) >> 20, free_bytes >> 20,
             sysctl_harts(&drive->sysctl), gpio_read_all(&drive->straps_gpio));
    if (!flash_init(&drive->flash, &drive->spi, &drive->gpio,
                    SOC_GPIO_FLASH_SELECT)) {
        log_line(&drive->log, "drive: no flash answers");
    }
}

uint64_t drive_step(struct drive *drive)
{
    uint64_t now_us = hal_now_us();

    if (now_us >= drive->kick_us) {
        watchdog_kick(&drive->watchdog);
        drive->kick_us = now_us + KICK_US;
    }
    return log_poll(&drive->log) ? drive->kick_us : now_us;
}
