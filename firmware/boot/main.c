/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boot ROM.  It reads the headers of both image slots from the SPI flash,
 * loads the newer image, falls back to the other one if the first is not
 * intact, records what it found, and starts the image.
 * Reference: docs/hardware/boot.md
 *
 * Not implemented: signatures, and a fallback from images that start but never
 * kick the watchdog.
 */
#include "firmware/arch/arch.h"
#include "firmware/drivers/flash.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/log.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/image.h"
#include "hw-model/regs/soc.h"
#include "lib/crc32.h"

#define SLOTS              2
#define WATCHDOG_PERIOD_US 5000000

struct slot {
    struct image_header header;
    enum sysctl_boot_verdict verdict;
};

struct boot {
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct spi spi;
    struct gpio gpio;
    struct flash flash;
    struct watchdog watchdog;
    struct slot slot[SLOTS];
};

static const uint32_t slot_addr[SLOTS] = {FLASH_SLOT_A_ADDR, FLASH_SLOT_B_ADDR};

static enum sysctl_boot_verdict verdict_of(enum image_check check)
{
    static const enum sysctl_boot_verdict verdict[] = {
        [IMAGE_OK] = SYSCTL_VERDICT_UNTRIED,
        [IMAGE_EMPTY] = SYSCTL_VERDICT_EMPTY,
        [IMAGE_HEADER_CRC] = SYSCTL_VERDICT_HEADER_CRC,
        [IMAGE_VERSION] = SYSCTL_VERDICT_HEADER,
    };

    return verdict[check];
}

static void read_header(struct boot *boot, unsigned int i)
{
    struct slot *slot = &boot->slot[i];
    uint8_t buf[IMAGE_HEADER_LEN];

    flash_read(&boot->flash, slot_addr[i], buf, sizeof(buf));
    slot->verdict =
        verdict_of(image_header_parse(&slot->header, buf, sizeof(buf)));
    if (slot->verdict == SYSCTL_VERDICT_UNTRIED &&
        !image_header_fits(&slot->header, SOC_DRAM_BASE,
                           sysctl_dram_bytes(&boot->sysctl))) {
        slot->verdict = SYSCTL_VERDICT_RANGE;
    }
}

static void load_image(struct boot *boot, unsigned int i)
{
    struct slot *slot = &boot->slot[i];
    void *to = (void *)(uintptr_t)slot->header.load_addr;

    flash_read(&boot->flash, slot_addr[i] + FLASH_SLOT_IMAGE_OFFSET, to,
               slot->header.len_bytes);
    slot->verdict =
        crc32_update(0, to, slot->header.len_bytes) == slot->header.image_crc
            ? SYSCTL_VERDICT_GOOD
            : SYSCTL_VERDICT_IMAGE_CRC;
}

static void report_slot(struct boot *boot, unsigned int i)
{
    const struct slot *slot = &boot->slot[i];
    const char *verdict = sysctl_boot_verdict_name(slot->verdict);
    char name = (char)('A' + i);

    if (slot->verdict == SYSCTL_VERDICT_EMPTY ||
        slot->verdict == SYSCTL_VERDICT_HEADER_CRC ||
        slot->verdict == SYSCTL_VERDICT_HEADER) {
        log_line(&boot->log, "boot: slot %c: %s", name, verdict);
        return;
    }
    log_line(&boot->log,
             "boot: slot %c: firmware %s, sequence %u, %u bytes: %s", name,
             slot->header.version, slot->header.sequence,
             slot->header.len_bytes, verdict);
}

/*
 * @return the untried slot with the higher sequence, A when both are equal, -1
 *         when there is none
 */
static int newest_slot(const struct boot *boot)
{
    int best = -1;

    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &boot->slot[i];

        if (slot->verdict == SYSCTL_VERDICT_UNTRIED &&
            (best < 0 ||
             slot->header.sequence > boot->slot[best].header.sequence)) {
            best = i;
        }
    }
    return best;
}

static int choose_slot(struct boot *boot)
{
    for (;;) {
        int i = newest_slot(boot);

        if (i < 0) {
            return -1;
        }
        load_image(boot, (unsigned int)i);
        if (boot->slot[i].verdict == SYSCTL_VERDICT_GOOD) {
            return i;
        }
    }
}

static void record_status(struct boot *boot, int chosen)
{
    struct sysctl_boot status = {
        .is_done = true,
        .slot = chosen < 0    ? SYSCTL_SLOT_NONE
                : chosen == 0 ? SYSCTL_SLOT_A
                              : SYSCTL_SLOT_B,
        .verdict = {boot->slot[0].verdict, boot->slot[1].verdict},
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
    int chosen;

    boot_init(&boot);
    for (unsigned int i = 0; i < SLOTS; i++) {
        read_header(&boot, i);
    }
    chosen = choose_slot(&boot);
    record_status(&boot, chosen);
    for (unsigned int i = 0; i < SLOTS; i++) {
        report_slot(&boot, i);
    }
    if (chosen < 0) {
        stop_boot(&boot, "no slot holds a good image");
    }
    log_line(&boot.log, "boot: starting slot %c", 'A' + chosen);
    log_flush(&boot.log);
    watchdog_start(&boot.watchdog, WATCHDOG_PERIOD_US);
    arch_start((uintptr_t)boot.slot[chosen].header.entry, hart);
}
