/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes that the flash driver sends.  The test provides `spi_transfer` and
 * the chip select, and so a flash that records the bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/drivers/flash.h"
#include "firmware/hal/time.h"

#include <stdio.h>
#include <string.h>

static struct {
    char text[4096]; /* "[" selects, "]" deselects, hex bytes were sent */
    size_t len;
    uint8_t id[3];
    unsigned int busy; /* number of status reads that still return busy */
    bool is_stuck;
    bool is_selected;
    uint8_t opcode;
    uint64_t now_us;
    uint64_t step_us; /* each read of the clock adds this */
} part;

static const struct spi spi;
static const struct gpio gpio;

static void note_transfer(const char *text)
{
    size_t len = strlen(text);

    assert_true(part.len + len < sizeof(part.text));
    memcpy(part.text + part.len, text, len + 1);
    part.len += len;
}

static uint8_t answer_byte(size_t at)
{
    if (part.opcode == 0x9f) {
        return part.id[at];
    }
    if (part.opcode == 0x05) {
        if (part.is_stuck || part.busy > 0) {
            part.busy -= !part.is_stuck;
            return 1;
        }
        return 0;
    }
    return (uint8_t)at;
}

void spi_transfer(const struct spi *bus, const uint8_t *tx, uint8_t *rx,
                  size_t len)
{
    char hex[8];

    assert_ptr_equal(bus, &spi);
    assert_true(part.is_selected || len == 0);
    for (size_t i = 0; i < len; i++) {
        if (tx) {
            if (part.text[part.len - 1] == '[') {
                part.opcode = tx[i];
            }
            snprintf(hex, sizeof(hex), "%02x", tx[i]);
            note_transfer(hex);
        }
        if (rx) {
            rx[i] = answer_byte(i);
        }
    }
    if (rx) {
        snprintf(hex, sizeof(hex), "<%zu", len);
        note_transfer(hex);
    }
}

void spi_receive(const struct spi *bus, uint8_t *rx, size_t len)
{
    spi_transfer(bus, NULL, rx, len);
}

void gpio_write(const struct gpio *pins, unsigned int pin, bool level)
{
    assert_ptr_equal(pins, &gpio);
    assert_int_equal(pin, 5);
    assert_int_equal(level, part.is_selected);
    part.is_selected = !level;
    note_transfer(level ? "]" : "[");
}

void gpio_set_output(const struct gpio *pins, unsigned int pin, bool level)
{
    (void)pins;
    assert_int_equal(pin, 5);
    assert_true(level);
}

uint64_t hal_now_us(void)
{
    return part.now_us += part.step_us;
}

void hal_delay_us(uint32_t us)
{
    part.now_us += us;
}

static struct flash start_flash(void)
{
    struct flash flash;

    memset(&part, 0, sizeof(part));
    memcpy(part.id, "\xef\x40\x19", 3);
    assert_true(flash_init(&flash, &spi, &gpio, 5));
    assert_string_equal(part.text, "[66][99][9f<3]");
    memset(part.text, 0, sizeof(part.text));
    part.len = 0;
    return flash;
}

static void test_flash_refuses_a_wrong_id(void **state)
{
    static const char *const id[] = {"\xef\x40\x18", "\xef\x40\x20",
                                     "\xff\xff\xff", "\0\0\0"};
    struct flash flash;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(id); i++) {
        memset(&part, 0, sizeof(part));
        memcpy(part.id, id[i], 3);
        assert_false(flash_init(&flash, &spi, &gpio, 5));
    }
}

static void test_flash_reads_with_as_many_address_bytes_as_needed(void **state)
{
    struct flash flash = start_flash();
    uint8_t buf[32];

    (void)state;
    flash_read(&flash, 0x00fffff0, buf, 16);
    assert_string_equal(part.text, "[03fffff0<16]");
    part.len = 0;
    flash_read(&flash, 0x01000000, buf, 4);
    assert_string_equal(part.text, "[1301000000<4]");
    part.len = 0;
    flash_read(&flash, 0x00fffffc, buf, 6);
    assert_string_equal(part.text, "[03fffffc<4][1301000000<2]");
    assert_memory_equal(buf, "\0\1\2\3\0\1", 6);
}

static void test_flash_erases_and_waits(void **state)
{
    struct flash flash = start_flash();

    (void)state;
    part.busy = 2;
    assert_true(flash_erase_sector(&flash, 0x00123000));
    assert_string_equal(part.text, "[06][20123000][05<1][05<1][05<1]");
    part.len = 0;
    assert_true(flash_erase_sector(&flash, 0x01fff000));
    assert_string_equal(part.text, "[06][2101fff000][05<1]");
}

static void test_flash_programs_page_by_page(void **state)
{
    struct flash flash = start_flash();

    (void)state;
    assert_true(flash_program(&flash, 0x0001fe, "\1\2\3\4", 4));
    assert_string_equal(part.text,
                        "[06][020001fe0102][05<1][06][020002000304][05<1]");
    part.len = 0;
    assert_true(flash_program(&flash, 0x01000000, "\7", 1));
    assert_string_equal(part.text, "[06][120100000007][05<1]");
}

static void test_flash_gives_up_on_a_part_that_stays_busy(void **state)
{
    struct flash flash = start_flash();
    uint64_t start_us = part.now_us;

    (void)state;
    part.is_stuck = true;
    part.step_us = 20000;
    assert_false(flash_erase_sector(&flash, 0));
    assert_true(part.now_us - start_us >= 500000);
    assert_false(flash_program(&flash, 0, "\0", 1));
}

static void test_flash_counts_what_has_failed(void **state)
{
    struct flash flash = start_flash();
    struct flash_failures failures = {0};

    (void)state;
    flash.failures = &failures;
    assert_true(flash_program(&flash, 0x0001fe, "\1\2\3\4", 4));
    assert_true(flash_erase_sector(&flash, 0x2000));
    assert_int_equal(failures.count, 0);
    part.is_stuck = true;
    part.step_us = 20000;
    assert_false(flash_erase_sector(&flash, 0x2000));
    assert_int_equal(failures.count, 1);
    assert_int_equal(failures.addr, 0x2000);
    assert_false(flash_program(&flash, 0x1001234, "\0", 1));
    assert_int_equal(failures.count, 2);
    assert_int_equal(failures.addr, 0x1001234);
}

static void count_end(void *ctx)
{
    unsigned int *ends = ctx;

    (*ends)++;
}

/* So the watchdog is kicked while a record of many sectors is written. */
static void test_flash_tells_the_end_of_each_command(void **state)
{
    struct flash flash = start_flash();
    unsigned int ends = 0;

    (void)state;
    flash.ended = count_end;
    flash.ended_ctx = &ends;
    for (uint32_t sector = 0; sector < 16; sector++) {
        assert_true(flash_erase_sector(&flash, sector * FLASH_SECTOR_BYTES));
        assert_int_equal(ends, sector + 1);
    }
    assert_true(flash_program(&flash, 0x0001fe, "\1\2\3\4", 4));
    assert_int_equal(ends, 18);
    part.is_stuck = true;
    part.step_us = 20000;
    assert_false(flash_erase_sector(&flash, 0));
    assert_int_equal(ends, 18);
}

/* ---- Erasures for which the caller does not wait. */

static struct flash_change change;

static struct flash start_erasure(unsigned int busy)
{
    struct flash flash = start_flash();

    change = (struct flash_change){0};
    flash.change = &change;
    part.busy = busy;
    flash_start_erase(&flash, 0x00123000);
    assert_string_equal(part.text, "[06][20123000]");
    part.len = 0;
    return flash;
}

static void test_flash_erases_while_its_caller_goes_on(void **state)
{
    struct flash flash = start_erasure(2);

    (void)state;
    assert_int_equal(flash_poll(&flash), FLASH_BUSY);
    assert_int_equal(flash_poll(&flash), FLASH_BUSY);
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    assert_string_equal(part.text, "[05<1][05<1][05<1]");
    part.len = 0;
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    assert_true(flash_program(&flash, 0, "\7", 1));
    assert_string_equal(part.text, "[06][0200000007][05<1]");
}

static void test_flash_tells_the_end_of_an_erasure_once(void **state)
{
    struct flash flash = start_erasure(1);
    unsigned int ends = 0;

    (void)state;
    flash.ended = count_end;
    flash.ended_ctx = &ends;
    assert_int_equal(flash_poll(&flash), FLASH_BUSY);
    assert_int_equal(ends, 0);
    for (unsigned int i = 0; i < 3; i++) {
        assert_int_equal(flash_poll(&flash), FLASH_DONE);
        assert_int_equal(ends, 1);
    }
}

/* The part ignores commands while it is busy. */
static void test_flash_waits_for_an_erasure_before_other_commands(void **state)
{
    uint8_t buf[4];
    struct flash flash = start_erasure(1);

    (void)state;
    flash_read(&flash, 0, buf, sizeof(buf));
    assert_string_equal(part.text, "[05<1][05<1][03000000<4]");
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    flash = start_erasure(1);
    assert_true(flash_program(&flash, 0, "\7", 1));
    assert_string_equal(part.text, "[05<1][05<1][06][0200000007][05<1]");
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    flash = start_erasure(1);
    assert_true(flash_erase_sector(&flash, 0x1000));
    assert_string_equal(part.text, "[05<1][05<1][06][20001000][05<1]");
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    flash = start_erasure(1);
    flash_start_erase(&flash, 0x2000);
    assert_string_equal(part.text, "[05<1][05<1][06][20002000]");
}

/* The computer stops the emulator, part included, between two questions. */
static void test_flash_is_patient_while_nobody_asks_the_part(void **state)
{
    struct flash flash = start_erasure(3);

    (void)state;
    for (unsigned int i = 0; i < 3; i++) {
        part.now_us += 30000000;
        assert_int_equal(flash_poll(&flash), FLASH_BUSY);
    }
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
    part.busy = 3;
    part.step_us = 30000000;
    assert_true(flash_program(&flash, 0, "\7", 1));
}

static void test_flash_gives_up_on_an_erasure_that_does_not_end(void **state)
{
    struct flash_failures failures = {0};
    struct flash flash = start_erasure(0);
    unsigned int polls = 0;

    (void)state;
    flash.failures = &failures;
    part.is_stuck = true;
    part.step_us = 20000;
    while (flash_poll(&flash) == FLASH_BUSY) {
        polls++;
    }
    assert_int_equal(flash_poll(&flash), FLASH_FAILED);
    assert_in_range(polls, 140, 151);
    assert_int_equal(failures.count, 1);
    assert_int_equal(failures.addr, 0x00123000);
    /* A function that waits for the erasure waits no longer than that. */
    flash = start_erasure(0);
    flash.failures = &failures;
    part.is_stuck = true;
    part.step_us = 20000;
    assert_false(flash_program(&flash, 0, "\7", 1));
    assert_int_equal(failures.count, 3);
    assert_int_equal(flash_poll(&flash), FLASH_FAILED);
    /* The next one is a new attempt. */
    part.is_stuck = false;
    flash_start_erase(&flash, 0x1000);
    assert_int_equal(flash_poll(&flash), FLASH_DONE);
}
