/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/drive.h"

#include "firmware/app/version.h"
#include "firmware/hal/time.h"
#include "firmware/store/store.h"
#include "hw-model/regs/soc.h"

#define WATCHDOG_PERIOD_US 2000000
#define KICK_US            500000

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

static void report_port(struct drive *drive, unsigned int i)
{
    static const char *const fec[] = {"no FEC", "FC-FEC", "RS-FEC"};
    const struct config_port *port = &drive->config.port[i];
    const uint8_t *mac = drive->identity.mac[i];
    const uint8_t *ip = port->ipv4;

    log_line(&drive->log,
             "port%u: %02x:%02x:%02x:%02x:%02x:%02x, %u.%u.%u.%u/%u%s, "
             "MTU %u, %u Gb/s, %s",
             i, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], ip[0], ip[1],
             ip[2], ip[3], port->ipv4_prefix, port->has_ipv6 ? " and IPv6" : "",
             port->mtu_bytes, port->speed_gbps, fec[port->fec]);
}

/* Who we are and what we are to do, from flash. */
static void read_flash(struct drive *drive)
{
    uint32_t fresh = (uint32_t)sysctl_random64(&drive->sysctl) >> 1;

    if (!flash_init(&drive->flash, &drive->spi, &drive->gpio,
                    SOC_GPIO_FLASH_SELECT)) {
        log_line(&drive->log, "drive: no flash answers");
        return;
    }
    if (!store_count_boot(&drive->flash, fresh, &drive->generation)) {
        log_line(&drive->log, "drive: the boot count cannot be written");
    }
    if (!store_read_config(&drive->flash, &drive->config)) {
        log_line(&drive->log, "drive: no good configuration: defaults");
    }
    drive->has_identity = store_read_identity(&drive->flash, &drive->identity);
    if (!drive->has_identity) {
        log_line(&drive->log, "drive: no good identity block");
        return;
    }
    log_line(&drive->log, "drive: %s, serial %s, boot %u",
             drive->identity.model, drive->identity.serial, drive->generation);
    log_line(&drive->log, "drive: %s", drive->identity.subsystem_nqn);
    for (unsigned int i = 0; i < CONFIG_PORTS; i++) {
        report_port(drive, i);
    }
}

void drive_init(struct drive *drive, void *free_memory, size_t free_bytes)
{
    *drive = (struct drive){0};
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
    log_line(&drive->log,
             "drive: DRAM %zu MiB, %zu free, harts %u, straps %02x",
             sysctl_dram_bytes(&drive->sysctl) >> 20, free_bytes >> 20,
             sysctl_harts(&drive->sysctl), gpio_read_all(&drive->straps_gpio));
    read_flash(drive);
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
