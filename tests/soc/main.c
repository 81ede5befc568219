/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A firmware image that tests the SoC.  It is in an image slot, as the real
 * firmware is.  The straps choose what to test, the results go to the console,
 * and tests/py/test_soc.py reads them there.
 */
#include "firmware/arch/arch.h"
#include "firmware/drivers/flash.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/plic.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/log.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/time.h"
#include "firmware/hal/wait.h"
#include "firmware/store/flash_layout.h"
#include "firmware/store/store.h"
#include "hw-model/regs/soc.h"
#include "lib/regfields.h"
#include "hw-model/regs/spi_dma.h"

#include <string.h>

enum trial { /* chosen by the straps */
             TRY_IDLE = 0,
             TRY_ASSERT = 1,
             TRY_TRAP = 2,
             TRY_HANG = 3,
             TRY_RESET = 4,
             TRY_HARTS = 5,
             TRY_FLASH = 6,
             TRY_INTERRUPT = 7,
             TRY_RANDOM = 8,
             TRY_SPI_DMA = 9,
             TRY_COMPUTE = 10,
             TRY_WRITES = 11,
};

#define WATCHDOG_PERIOD_US 1000000
#define KICK_US            100000
#define SPARE_AREA         0x01800000u /* an unused part of the flash */
#define UART_IER           (SOC_UART_BASE + 1)
#define UART_IIR           (SOC_UART_BASE + 2)
#define HART_RUNNING       0x1a2b3c4d
/* Here a test says which registers to write: see try_writes(). */
#define WRITES_ADDR (SOC_DRAM_BASE + 0x07000000)
#define WRITES_MAX  8

struct soc {
    struct uart uart;
    struct log log;
    struct sysctl sysctl;
    struct watchdog watchdog;
    struct gpio straps;
    struct gpio gpio;
    struct spi spi;
    struct flash flash;
    struct plic plic;
    struct hal_wait wait;
};

void hart_main(uint64_t hart);
void hart_start(void);

static struct soc soc;
static uint32_t hart_state[SOC_HARTS_MAX];
uint8_t hart_stack[SOC_HARTS_MAX][4096] __attribute__((aligned(16)));

/* Woken harts start here; a0 is the hart's number. */
__asm__(".text\n"
        ".globl hart_start\n"
        "hart_start:\n"
        "    la sp, hart_stack\n"
        "    addi t0, a0, 1\n"
        "    slli t0, t0, 12\n"
        "    add sp, sp, t0\n"
        "    call hart_main\n"
        "1:  wfi\n"
        "    j 1b\n");

void hart_main(uint64_t hart)
{
    hart_state[hart] = HART_RUNNING;
    hal_dma_mb();
}

/* Wait until the main hart sees it; other harts write hart_state. */
static bool hart_is_running(uint32_t hart)
{
    return mmio_read32((uintptr_t)&hart_state[hart]) == HART_RUNNING;
}

static void try_harts(void)
{
    uint32_t harts = sysctl_harts(&soc.sysctl);

    sysctl_set_hart_entry(&soc.sysctl, (uintptr_t)hart_start);
    for (uint32_t hart = 1; hart < harts; hart++) {
        mmio_write32(SOC_CLINT_BASE + 4 * hart, 1);
        for (int tries = 0; tries < 1000 && !hart_is_running(hart); tries++) {
            hal_delay_us(100);
        }
        log_line(&soc.log, "soc: hart %u %s", hart,
                 hart_is_running(hart) ? "runs" : "does not run");
    }
}

static bool sector_works(uint32_t addr)
{
    uint8_t out[FLASH_PAGE_BYTES + 32];
    uint8_t in[sizeof(out)];
    uint8_t ones[sizeof(out)];

    memset(ones, 0xff, sizeof(ones));
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = (uint8_t)(i * 7 + addr / FLASH_SECTOR_BYTES);
    }
    if (!flash_erase_sector(&soc.flash, addr)) {
        return false;
    }
    flash_read(&soc.flash, addr + 9, in, sizeof(in));
    if (memcmp(in, ones, sizeof(in)) != 0) {
        return false;
    }
    if (!flash_program(&soc.flash, addr + 9, out, sizeof(out))) {
        return false;
    }
    flash_read(&soc.flash, addr + 9, in, sizeof(in));
    return memcmp(in, out, sizeof(in)) == 0;
}

/* Read across the limit of 3-byte addresses. */
static bool boundary_works(void)
{
    const uint32_t boundary = 0x01000000;
    uint8_t whole[64];
    uint8_t parts[64];

    flash_read(&soc.flash, boundary - 32, whole, sizeof(whole));
    flash_read(&soc.flash, boundary - 32, parts, 32);
    flash_read(&soc.flash, boundary, parts + 32, 32);
    return memcmp(whole, parts, sizeof(whole)) == 0 &&
           memcmp(whole + 32, "ESSD-IMG", 8) == 0;
}

static void try_flash(void)
{
    uint32_t generation = 0;

    log_line(&soc.log, "soc: flash below 16 MiB %s",
             sector_works(0x00f00000) ? "works" : "fails");
    log_line(&soc.log, "soc: flash above 16 MiB %s",
             sector_works(SPARE_AREA) ? "works" : "fails");
    log_line(&soc.log, "soc: flash across 16 MiB %s",
             boundary_works() ? "works" : "fails");
    log_line(&soc.log, "soc: boot count %s",
             store_count_boot(&soc.flash, 1, &generation) ? "works" : "fails");
    log_line(&soc.log, "soc: boot number %u", generation);
}

/* The UART's transmitter is empty, so its interrupt is raised at once. */
static void try_interrupt(void)
{
    uint64_t start_us;
    uint64_t took_us;
    uint32_t irqs;

    log_flush(&soc.log);
    start_us = hal_now_us();
    hal_wait_until(&soc.wait, start_us + 30000);
    took_us = hal_now_us() - start_us;
    log_line(&soc.log, "soc: timer %s",
             took_us >= 30000 && took_us < 3000000 ? "works" : "fails");
    log_flush(&soc.log);

    plic_enable(&soc.plic, SOC_IRQ_UART);
    mmio_write8(UART_IER, 2);
    start_us = hal_now_us();
    hal_wait_until(&soc.wait, start_us + 5000000);
    took_us = hal_now_us() - start_us;
    irqs = plic_claim_all(&soc.plic);
    mmio_write8(UART_IER, 0);
    (void)mmio_read8(UART_IIR);
    plic_complete(&soc.plic, irqs);
    log_line(&soc.log, "soc: interrupt %s, sources %x",
             took_us < 5000000 ? "works" : "fails", irqs);
    log_line(&soc.log, "soc: claimed again %x", plic_claim_all(&soc.plic));
}

static void try_random(void)
{
    uint64_t first = sysctl_random64(&soc.sysctl);

    log_line(&soc.log, "soc: random %s",
             first != sysctl_random64(&soc.sysctl) ? "works" : "fails");
}

static void start_dma(uint64_t addr, uint32_t len)
{
    mmio_write32(SOC_SPI_DMA_BASE + A_SPI_DMA_ADDR_LO, (uint32_t)addr);
    mmio_write32(SOC_SPI_DMA_BASE + A_SPI_DMA_ADDR_HI, (uint32_t)(addr >> 32));
    mmio_write32(SOC_SPI_DMA_BASE + A_SPI_DMA_LEN, len);
    mmio_write32(SOC_SPI_DMA_BASE + A_SPI_DMA_CTRL, 1);
}

/* Every byte that DMA reads is the same as the polled controller's. */
static bool dma_reads_the_same(void)
{
    static uint8_t by_dma[3 * FLASH_SECTOR_BYTES + 1];
    static uint8_t polled[sizeof(by_dma)];

    flash_read(&soc.flash, FLASH_SLOT_A_ADDR, by_dma, sizeof(by_dma));
    for (size_t i = 0; i < sizeof(polled); i += 8) {
        flash_read(&soc.flash, FLASH_SLOT_A_ADDR + (uint32_t)i, polled + i,
                   MIN(sizeof(polled) - i, (size_t)8));
    }
    return memcmp(by_dma, polled, sizeof(polled)) == 0;
}

/* While no device is selected, DMA receives zeros. */
static void try_spi_dma(void)
{
    const uintptr_t status_reg = SOC_SPI_DMA_BASE + A_SPI_DMA_STATUS;
    const uint64_t no_memory = 0x40000000;
    static uint8_t buf[16];

    log_line(&soc.log, "soc: DMA reads %s",
             dma_reads_the_same() ? "works" : "fails");
    start_dma(no_memory, 16);
    log_line(&soc.log, "soc: DMA to no memory: status %x",
             mmio_read32(status_reg));
    start_dma(SOC_SYSCTL_BASE, 16);
    log_line(&soc.log, "soc: DMA to registers: status %x",
             mmio_read32(status_reg));
    memset(buf, 0x5a, sizeof(buf));
    start_dma((uintptr_t)buf, 0);
    start_dma((uintptr_t)buf, SPI_DMA_LEN_MAX + 1);
    log_line(&soc.log, "soc: DMA of bad lengths: first byte %x, status %x",
             buf[0], mmio_read32(status_reg));
    start_dma((uintptr_t)buf + 1, sizeof(buf) - 2);
    hal_dma_rmb();
    log_line(&soc.log, "soc: DMA of 14 bytes: %x %x %x %x, status %x", buf[0],
             buf[1], buf[14], buf[15], mmio_read32(status_reg));
}

static __attribute__((noinline)) void compute_number(uint32_t *number)
{
    *number = *number * 1664525u + 1013904223u;
    __asm__ volatile("" ::: "memory");
}

struct register_write {
    uint32_t addr;
    uint32_t value;
};

struct writes {
    uint32_t count; /* the last word that a test writes; 0: it was read */
    struct register_write list[WRITES_MAX];
};

/*
 * Write registers whenever a test asks for it, and execute instructions in
 * between: without waiting for an interrupt, and without a function that
 * returns.
 */
static void try_writes(void)
{
    volatile struct writes *writes = (volatile struct writes *)WRITES_ADDR;

    for (;;) {
        uint32_t count = MIN(writes->count, (uint32_t)WRITES_MAX);
        struct register_write list[WRITES_MAX];

        for (uint32_t i = 0; i < count; i++) {
            list[i].addr = writes->list[i].addr;
            list[i].value = writes->list[i].value;
        }
        /* The test may give the next list as soon as it sees what the last
         * write does. */
        if (count != 0) {
            writes->count = 0;
        }
        for (uint32_t i = 0; i < count; i++) {
            mmio_write32(list[i].addr, list[i].value);
        }
    }
}

static void try_once(enum trial trial)
{
    switch (trial) {
    case TRY_ASSERT:
        log_flush(&soc.log);
        ASSERT(trial == TRY_IDLE);
        break;
    case TRY_TRAP:
        log_flush(&soc.log);
        (void)mmio_read32(0);
        break;
    case TRY_HANG:
        log_flush(&soc.log);
        for (;;) {
        }
    case TRY_COMPUTE:
        log_flush(&soc.log);
        for (uint32_t number = 0;;) {
            compute_number(&number);
        }
    case TRY_WRITES:
        log_flush(&soc.log);
        try_writes();
        break;
    case TRY_RESET:
        log_flush(&soc.log);
        sysctl_reset(&soc.sysctl, SYSCTL_RESET_SOFTWARE);
        arch_stop();
    default:
        break;
    }
}

static void report_last_reset(void)
{
    struct sysctl_boot boot = sysctl_boot(&soc.sysctl);
    struct sysctl_panic panic;

    log_line(&soc.log, "soc: reset by %s, slot %d, A %s, B %s",
             sysctl_reset_cause_name(sysctl_reset_cause(&soc.sysctl)),
             boot.slot, sysctl_boot_verdict_name(boot.verdict[0]),
             sysctl_boot_verdict_name(boot.verdict[1]));
    if (sysctl_take_panic(&soc.sysctl, &panic)) {
        log_line(&soc.log, "soc: panic %u: %s cause %lu value %lx file %s",
                 panic.count, panic.is_trap ? "trap" : "assertion",
                 panic.mcause, panic.mtval, panic.file);
    }
}

static void soc_init(void)
{
    uart_init(&soc.uart, SOC_UART_BASE);
    log_init(&soc.log, uart_log_sink(&soc.uart));
    ASSERT(sysctl_init(&soc.sysctl, SOC_SYSCTL_BASE));
    watchdog_init(&soc.watchdog, SOC_WATCHDOG_BASE);
    watchdog_start(&soc.watchdog, WATCHDOG_PERIOD_US);
    gpio_init(&soc.straps, SOC_STRAPS_BASE);
    gpio_init(&soc.gpio, SOC_GPIO_BASE);
    spi_init(&soc.spi, SOC_SPI_BASE, SOC_SPI_DMA_BASE);
    plic_init(&soc.plic, SOC_PLIC_BASE, 0);
    hal_wait_init(&soc.wait);
    ASSERT(flash_init(&soc.flash, &soc.spi, &soc.gpio, SOC_GPIO_FLASH_SELECT));
}

void arch_main(uint64_t hart)
{
    enum sysctl_reset_cause cause;
    enum trial trial;

    (void)hart;
    soc_init();
    report_last_reset();
    cause = sysctl_reset_cause(&soc.sysctl);
    trial = (enum trial)gpio_read_all(&soc.straps);
    log_line(&soc.log, "soc: trial %d, DRAM %zu MiB", trial,
             sysctl_dram_bytes(&soc.sysctl) >> 20);
    if (trial == TRY_HARTS) {
        try_harts();
    } else if (trial == TRY_FLASH) {
        try_flash();
    } else if (trial == TRY_INTERRUPT) {
        try_interrupt();
    } else if (trial == TRY_RANDOM) {
        try_random();
    } else if (trial == TRY_SPI_DMA) {
        try_spi_dma();
    } else if (cause == SYSCTL_RESET_POWER_ON || cause == SYSCTL_RESET_PIN) {
        try_once(trial);
    }
    log_line(&soc.log, "soc: idle");
    for (uint64_t kicks = 0;; kicks++) {
        watchdog_kick(&soc.watchdog);
        if (kicks % 20 == 19) {
            log_line(&soc.log, "soc: alive");
        }
        log_flush(&soc.log);
        hal_wait_until(&soc.wait, hal_now_us() + KICK_US);
    }
}
