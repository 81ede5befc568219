/* SPDX-License-Identifier: BSD-2-Clause */
/* The internal log of hardware errors: when its entries go to flash. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/usage/hw_log.h"
#include "tests/test_fixture.h"

#include <string.h>

static struct hw_log hw_log;
static struct hw_error_records flash;

static bool save_error(void *ctx, const struct hw_error *error)
{
    uint8_t data[RECORD_DATA_LEN];
    struct hw_error back;

    (void)ctx;
    hw_error_emit(error, data);
    hw_error_parse(&back, data);
    assert_int_equal(back.number, error->number);
    assert_int_equal(back.boot, error->boot);
    assert_int_equal(back.kind, error->kind);
    assert_int_equal(back.is_fatal, error->is_fatal);
    assert_int_equal(back.repeats, error->repeats);
    assert_int_equal(back.time_us, error->time_us);
    assert_int_equal(back.address, error->address);
    assert_int_equal(back.info, error->info);
    hw_error_records_add(&flash, &back);
    return true;
}

static void start_log(uint32_t boot)
{
    const struct hw_log_config config = {
        .records = &flash,
        .boot = boot,
        .save = save_error,
    };

    hw_log_init(&hw_log, &config);
}

static int set_up(void **state)
{
    (void)state;
    memset(&flash, 0, sizeof(flash));
    start_log(7);
    return 0;
}

static void note_error(uint64_t address, bool is_fatal, uint64_t now_us)
{
    struct hw_error error;

    memset(&error, 0, sizeof(error));
    error.kind = HW_ERROR_MEMORY_CORRECTED;
    error.is_fatal = is_fatal;
    error.address = address;
    error.time_us = now_us;
    hw_log_note(&hw_log, &error, now_us);
}

static void test_entries_are_written_once_a_minute(void **state)
{
    (void)state;
    assert_int_equal(hw_log_step(&hw_log, 0), UINT64_MAX);
    note_error(1, false, 1000);
    note_error(2, false, 2000);
    assert_int_equal(hw_log_step(&hw_log, 2000), 1000 + HW_LOG_PERIOD_US);
    assert_int_equal(flash.count, 0);
    assert_int_equal(hw_log_step(&hw_log, 1000 + HW_LOG_PERIOD_US), UINT64_MAX);
    assert_int_equal(flash.count, 2);
    assert_int_equal(flash.error[1].address, 2);
    assert_int_equal(flash.error[1].number, 2);
    assert_int_equal(flash.error[1].boot, 7);
}

static void test_a_fatal_error_is_written_at_once_with_those_before(
    void **state)
{
    (void)state;
    note_error(1, false, 1000);
    note_error(2, true, 2000);
    assert_int_equal(hw_log_step(&hw_log, 2000), UINT64_MAX);
    assert_int_equal(flash.count, 2);
}

static void test_repeats_of_an_error_are_one_entry(void **state)
{
    (void)state;
    note_error(1, false, 1000);
    note_error(1, false, 2000);
    note_error(1, false, 3000);
    note_error(2, false, 4000);
    hw_log_stop(&hw_log);
    assert_int_equal(flash.count, 2);
    assert_int_equal(flash.error[0].repeats, 2);
    /* What is in flash does not change: a repeat is a new entry. */
    note_error(2, false, 5000);
    hw_log_stop(&hw_log);
    assert_int_equal(flash.count, 3);
}

static void test_more_errors_than_the_buffer_holds_are_counted(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < HW_LOG_NEW + 5; i++) {
        note_error(i, false, 1000);
    }
    assert_int_equal(hw_log.dropped, 5);
    note_error(99, true, 1000); /* there is room for a fatal one */
    hw_log_step(&hw_log, 1000);
    assert_int_equal(flash.count, HW_LOG_NEW + 1);
    assert_int_equal(flash.error[HW_LOG_NEW].address, 99);
}

static void test_fatal_errors_without_end_do_not_wear_out_the_flash(
    void **state)
{
    uint64_t now_us = 1000;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        note_error(i, true, now_us);
        hw_log_step(&hw_log, now_us);
        note_error(i, false, now_us);
        now_us += HW_LOG_PERIOD_US / 1000;
    }
    assert_int_equal(hw_log.number, HW_LOG_MOST);
    assert_int_equal(hw_log.dropped, 2000 - HW_LOG_MOST);
    note_error(1, true, now_us);
    hw_log_step(&hw_log, now_us);
    assert_int_equal(hw_log.saved, HW_LOG_MOST + 1);
}

/* Otherwise nobody would know why the drive was reset. */
static void test_an_error_with_a_reset_is_never_dropped(void **state)
{
    const struct hw_error lost = {
        .kind = HW_ERROR_MEMORY_LOST,
        .is_fatal = true,
        .address = 0x80001000,
    };

    (void)state;
    for (uint32_t i = 0; i <= HW_LOG_MOST; i++) {
        note_error(i, true, 1000);
    }
    assert_int_equal(hw_log.dropped, 1);
    hw_log_note_reset(&hw_log, &lost, 1000);
    hw_log_step(&hw_log, 1000);
    assert_int_equal(flash.count, HW_LOG_MOST + 1);
    assert_int_equal(flash.error[HW_LOG_MOST].address, 0x80001000);
    assert_int_equal(hw_log.dropped, 1);
}

static void test_numbers_go_on_after_a_restart(void **state)
{
    (void)state;
    note_error(1, true, 1000);
    hw_log_step(&hw_log, 1000);
    start_log(8);
    assert_int_equal(hw_log.records.count, 1);
    note_error(2, true, 500);
    hw_log_step(&hw_log, 500);
    assert_int_equal(flash.count, 2);
    assert_int_equal(flash.error[1].number, 2);
    assert_int_equal(flash.error[1].boot, 8);
}

TEST_FIXTURE(set_up, NULL)
