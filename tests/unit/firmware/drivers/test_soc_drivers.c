/* SPDX-License-Identifier: BSD-2-Clause */
/* The exact register accesses of the drivers of the SoC's standard parts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fake_mmio.h"
#include "firmware/drivers/gpio.h"
#include "firmware/drivers/plic.h"
#include "firmware/drivers/spi.h"
#include "firmware/drivers/sysctl.h"
#include "firmware/drivers/uart.h"
#include "firmware/drivers/watchdog.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/time.h"

#define BASE 0x1000u

static unsigned int barriers;

void hal_dma_wmb(void)
{
    barriers++;
}

void hal_dma_rmb(void)
{
    barriers++;
}

/* The drive has no address translation; this one shows that it is asked. */
uint64_t hal_dma_addr(const void *ptr)
{
    return (uintptr_t)ptr + 0x100000000u;
}

/* Time stamps for the log, which is tested with the UART as its sink. */
uint64_t hal_now_us(void)
{
    return 0;
}

static void test_uart_fills_the_fifo_once_per_status_read(void **state)
{
    struct uart uart = {.base = BASE};

    (void)state;
    EXPECT({'R', BASE + 5, 0x20}, {'W', BASE, 'a'}, {'W', BASE, 'b'});
    assert_int_equal(uart_write(&uart, "ab", 2), 2);
    EXPECT({'R', BASE + 5, 0});
    assert_int_equal(uart_write(&uart, "ab", 2), 0);
    EXPECT({'R', BASE + 5, 0x20}, {'W', BASE, '0'}, {'W', BASE, '1'},
           {'W', BASE, '2'}, {'W', BASE, '3'}, {'W', BASE, '4'},
           {'W', BASE, '5'}, {'W', BASE, '6'}, {'W', BASE, '7'},
           {'W', BASE, '8'}, {'W', BASE, '9'}, {'W', BASE, 'a'},
           {'W', BASE, 'b'}, {'W', BASE, 'c'}, {'W', BASE, 'd'},
           {'W', BASE, 'e'}, {'W', BASE, 'f'}, {'R', BASE + 5, 0});
    assert_int_equal(uart_write(&uart, "0123456789abcdefXY", 18), 16);
    fake_mmio_done();
}

static void test_uart_takes_what_a_log_writes(void **state)
{
    struct uart uart = {.base = BASE};
    static struct log log;

    (void)state;
    log_init(&log, uart_log_sink(&uart));
    log_raw(&log, "ab", 2);
    EXPECT({'R', BASE + 5, 0x20}, {'W', BASE, 'a'}, {'W', BASE, 'b'},
           {'R', BASE + 5, 0}, {'R', BASE + 5, 0x40});
    log_flush(&log); /* waits until the transmitter is idle */
    fake_mmio_done();
}

static void test_a_key_log_takes_lines_byte_by_byte(void **state)
{
    struct sysctl sysctl = {.base = BASE};

    (void)state;
    EXPECT({'r', BASE + 0x50, 0}, {'r', BASE + 0x50, 1});
    assert_false(sysctl_key_log_is_open(&sysctl));
    assert_true(sysctl_key_log_is_open(&sysctl));
    EXPECT({'w', BASE + 0x54, 'A'}, {'w', BASE + 0x54, 'b'},
           {'w', BASE + 0x54, '\n'});
    sysctl_key_log_put(&sysctl, "Ab\n");
    fake_mmio_done();
}

static void test_uart_reads_only_received_characters(void **state)
{
    struct uart uart = {.base = BASE};
    char c = '-';

    (void)state;
    EXPECT({'R', BASE + 5, 0x60});
    assert_false(uart_read(&uart, &c));
    EXPECT({'R', BASE + 5, 0x01}, {'R', BASE, 'q'});
    assert_true(uart_read(&uart, &c));
    assert_int_equal(c, 'q');
    fake_mmio_done();
}

static void test_spi_never_overruns_the_receive_fifo(void **state)
{
    struct spi spi = {.base = BASE};
    const uint8_t tx[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    uint8_t rx[9];

    (void)state;
    EXPECT({'w', BASE + 8, 1}, {'w', BASE + 8, 2}, {'w', BASE + 8, 3},
           {'w', BASE + 8, 4}, {'w', BASE + 8, 5}, {'w', BASE + 8, 6},
           {'w', BASE + 8, 7}, {'w', BASE + 8, 8}, {'r', BASE + 12, 4},
           {'r', BASE + 12, 12}, {'r', BASE + 8, 11}, {'r', BASE + 8, 12},
           {'r', BASE + 8, 13}, {'r', BASE + 8, 14}, {'r', BASE + 8, 15},
           {'r', BASE + 8, 16}, {'r', BASE + 8, 17}, {'r', BASE + 8, 18},
           {'w', BASE + 8, 9}, {'r', BASE + 12, 0}, {'r', BASE + 12, 4},
           {'r', BASE + 8, 19});
    spi_transfer(&spi, tx, rx, sizeof(tx));
    for (size_t i = 0; i < sizeof(rx); i++) {
        assert_int_equal(rx[i], 11 + i);
    }
    EXPECT({'w', BASE + 8, 0}, {'r', BASE + 12, 4}, {'r', BASE + 8, 5});
    spi_transfer(&spi, NULL, NULL, 1);
    fake_mmio_done();
}

static void expect_dma(const uint8_t *to, uint32_t len, uint32_t status)
{
    uint64_t addr = hal_dma_addr(to);

    EXPECT({'w', 2 * BASE, (uint32_t)addr},
           {'w', 2 * BASE + 4, (uint32_t)(addr >> 32)},
           {'w', 2 * BASE + 8, len}, {'w', 2 * BASE + 12, 1},
           {'r', 2 * BASE + 16, 1}, {'r', 2 * BASE + 16, status});
}

static void test_spi_receives_long_pieces_by_dma(void **state)
{
    struct spi spi = {.base = BASE, .dma_base = 2 * BASE};
    static uint8_t rx[65536];

    (void)state;
    barriers = 0;
    expect_dma(rx, 16, 0);
    spi_receive(&spi, rx, 16);
    assert_int_equal(barriers, 2);
    expect_dma(rx, 65536, 0);
    spi_receive(&spi, rx, 65536);
    fake_mmio_done();
}

static void test_one_offset_gives_the_dma_address_of_all_memory(void **state)
{
    static uint8_t memory[4096];
    uintptr_t offset = hal_dma_offset(memory);

    (void)state;
    assert_int_not_equal(offset, 0);
    for (size_t i = 0; i < sizeof(memory); i += 511) {
        assert_int_equal((uintptr_t)&memory[i] + offset,
                         hal_dma_addr(&memory[i]));
    }
}

static void test_spi_receives_a_short_rest_without_dma(void **state)
{
    struct spi spi = {.base = BASE, .dma_base = 2 * BASE};
    static uint8_t rx[65537];
    uint64_t addr = hal_dma_addr(rx);

    (void)state;
    EXPECT({'w', 2 * BASE, (uint32_t)addr},
           {'w', 2 * BASE + 4, (uint32_t)(addr >> 32)},
           {'w', 2 * BASE + 8, 65536}, {'w', 2 * BASE + 12, 1},
           {'r', 2 * BASE + 16, 0}, {'w', BASE + 8, 0}, {'r', BASE + 12, 4},
           {'r', BASE + 8, 0x5a});
    spi_receive(&spi, rx, sizeof(rx));
    assert_int_equal(rx[65536], 0x5a);
    fake_mmio_done();
}

static void test_gpio_touches_only_its_pin(void **state)
{
    struct gpio gpio = {.base = BASE};

    (void)state;
    EXPECT({'w', BASE + (1 << 3 << 2), 8});
    gpio_write(&gpio, 3, true);
    EXPECT({'w', BASE + (1 << 3 << 2), 0});
    gpio_write(&gpio, 3, false);
    EXPECT({'r', BASE + 0x400, 0x40}, {'w', BASE + 4, 1},
           {'w', BASE + 0x400, 0x41}, {'w', BASE + 4, 1});
    gpio_set_output(&gpio, 0, true);
    EXPECT({'r', BASE + 0x3fc, 0xa5});
    assert_int_equal(gpio_read_all(&gpio), 0xa5);
    fake_mmio_done();
}

static void test_watchdog_is_locked_except_during_a_write(void **state)
{
    struct watchdog watchdog = {.base = BASE};

    (void)state;
    EXPECT({'w', BASE + 0xc00, 0x1acce551}, {'w', BASE, 250},
           {'w', BASE + 0xc00, 0}, {'w', BASE + 0xc00, 0x1acce551},
           {'w', BASE + 8, 3}, {'w', BASE + 0xc00, 0});
    watchdog_start(&watchdog, 250);
    EXPECT({'w', BASE + 0xc00, 0x1acce551}, {'w', BASE + 12, 1},
           {'w', BASE + 0xc00, 0});
    watchdog_kick(&watchdog);
    EXPECT({'w', BASE + 0xc00, 0x1acce551}, {'w', BASE + 8, 0},
           {'w', BASE + 0xc00, 0});
    watchdog_stop(&watchdog);
    fake_mmio_done();
}

static void test_plic_claims_until_nothing_is_pending(void **state)
{
    struct plic plic = {.base = BASE, .hart = 2};
    const uintptr_t claim = BASE + 0x202004;

    (void)state;
    EXPECT({'r', claim, 10}, {'r', claim, 31}, {'r', claim, 0});
    assert_int_equal(plic_claim_all(&plic), 1u << 31 | 1u << 10);
    EXPECT({'w', claim, 10}, {'w', claim, 31});
    plic_complete(&plic, 1u << 31 | 1u << 10);
    EXPECT({'w', BASE + 4 * 9, 1}, {'r', BASE + 0x2100, 2},
           {'w', BASE + 0x2100, 0x202});
    plic_enable(&plic, 9);
    EXPECT({'r', BASE + 0x2100, 0x202}, {'w', BASE + 0x2100, 2});
    plic_disable(&plic, 9);
    fake_mmio_done();
}

static void test_sysctl_boot_status_survives_the_round_trip(void **state)
{
    struct sysctl sysctl = {.base = BASE};
    struct sysctl_boot boot = {
        .is_done = true,
        .slot = SYSCTL_SLOT_B,
        .verdict = {SYSCTL_VERDICT_IMAGE_CRC, SYSCTL_VERDICT_GOOD},
    };
    struct sysctl_boot back;

    (void)state;
    EXPECT({'w', BASE + 0xc, 0x80000162});
    sysctl_set_boot(&sysctl, &boot);
    EXPECT({'r', BASE + 0xc, 0x80000162});
    back = sysctl_boot(&sysctl);
    assert_true(back.is_done);
    assert_int_equal(back.slot, boot.slot);
    assert_int_equal(back.verdict[0], boot.verdict[0]);
    assert_int_equal(back.verdict[1], boot.verdict[1]);
    EXPECT({'w', BASE + 0x10, 0x5e7a0004});
    sysctl_reset(&sysctl, SYSCTL_RESET_PANIC);
    EXPECT({'r', BASE, 0x44535346});
    assert_false(sysctl_init(&sysctl, BASE));
    fake_mmio_done();
}

/* Only an orderly restart writes the write buffer to the flash. */
static void test_sysctl_tells_planned_resets_from_others(void **state)
{
    (void)state;
    assert_true(sysctl_reset_is_unplanned(SYSCTL_RESET_PIN));
    assert_true(sysctl_reset_is_unplanned(SYSCTL_RESET_WATCHDOG));
    assert_true(sysctl_reset_is_unplanned(SYSCTL_RESET_PANIC));
    assert_false(sysctl_reset_is_unplanned(SYSCTL_RESET_SOFTWARE));
    assert_false(sysctl_reset_is_unplanned(SYSCTL_RESET_POWER_ON));
}

static void test_sysctl_takes_a_panic_once(void **state)
{
    struct sysctl sysctl = {.base = BASE};
    struct sysctl_panic panic;

    (void)state;
    EXPECT({'r', BASE + 0x80, 0x434e4150}, {'r', BASE + 0x88, 2},
           {'r', BASE + 0x84, 3}, {'r', BASE + 0x8c, 0}, {'r', BASE + 0x90, 5},
           {'r', BASE + 0x94, 0}, {'r', BASE + 0x98, 0x80001234},
           {'r', BASE + 0x9c, 1}, {'r', BASE + 0xa0, 0x10},
           {'r', BASE + 0xa4, 0}, {'r', BASE + 0xa8, 0x00632e78},
           {'r', BASE + 0xac, 0}, {'r', BASE + 0xb0, 0}, {'r', BASE + 0xb4, 0},
           {'r', BASE + 0xb8, 0}, {'w', BASE + 0x80, 0});
    assert_true(sysctl_take_panic(&sysctl, &panic));
    assert_true(panic.is_trap);
    assert_int_equal(panic.count, 3);
    assert_int_equal(panic.mcause, 5);
    assert_true(panic.mepc == 0x180001234ull);
    assert_string_equal(panic.file, "x.c");
    EXPECT({'r', BASE + 0x80, 0});
    assert_false(sysctl_take_panic(&sysctl, &panic));
    fake_mmio_done();
}
