/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which errors of the hardware become entries of the log and persistent events.
 * tests/native/test_hw_errors.c asks the same of a whole drive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/report/hw_errors.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { BOOT = 7, KEPT = 256 };

static struct log the_log;
static struct hw_log hw_log;
static struct hw_errors errors;
static struct flash_failures failures;
static struct hw_error saved[KEPT];
static unsigned int saves, events;
static struct nvmf_vendor_event event; /* the last one */
static char event_text[NVMF_EVENT_TEXT_MAX + 1];
static uint8_t event_data[NVMF_EVENT_DATA_MAX];
static uint64_t now_us;

uint64_t hal_now_us(void)
{
    return now_us;
}

static bool save_error(void *ctx, const struct hw_error *error)
{
    (void)ctx;
    assert_true(saves < KEPT);
    saved[saves++] = *error;
    return true;
}

static void record_event(void *ctx, const struct nvmf_vendor_event *made)
{
    assert_ptr_equal(ctx, &events);
    events++;
    event = *made;
    strcpy(event_text, made->text);
    memcpy(event_data, made->data, made->data_len);
}

static void begin_log(const struct hw_error_records *records,
                      const struct telemetry_panic *panic)
{
    const struct hw_errors_config config = {.log = &the_log,
                                            .hw_log = &hw_log,
                                            .flash_failures = &failures,
                                            .record = record_event,
                                            .ctx = &events};
    const struct hw_log_config log = {
        .records = records, .boot = BOOT, .save = save_error};

    memset(&hw_log, 0, sizeof(hw_log));
    memset(&errors, 0, sizeof(errors));
    hw_errors_start(&errors, &config, &log, panic, now_us);
}

static int start_log(void **state)
{
    (void)state;
    log_init(&the_log, (struct log_sink){0});
    failures = (struct flash_failures){0};
    saves = events = 0;
    now_us = 1000;
    begin_log(NULL, NULL);
    return 0;
}

TEST_FIXTURE(start_log, NULL)

static const struct hw_error *newest_error(void)
{
    assert_true(hw_log.records.count > 0);
    return &hw_log.records.error[hw_log.records.count - 1];
}

static void take_step(void)
{
    hw_errors_step(&errors, now_us);
}

/* An operation at the die, in block 5, at wordline 6. */
static void fail_op(enum nand_seam_failure failure, uint32_t die,
                    bool is_mounting)
{
    const struct ftl_flash_op op = {
        .die = (uint16_t)die, .block = 5, .wordline = 6};
    const struct hw_errors_op failed = {.op = &op,
                                        .failure = failure,
                                        .is_mounting = is_mounting,
                                        .transfer_errors = 44};

    hw_errors_note_op(&errors, &failed, now_us);
}

static void test_each_failure_of_the_array_has_its_kind(void **state)
{
    static const uint8_t kinds[][2] = {
        {NAND_SEAM_PROGRAM, HW_ERROR_PROGRAM},
        {NAND_SEAM_ERASE, HW_ERROR_ERASE},
        {NAND_SEAM_UNCORRECTABLE, HW_ERROR_UNCORRECTABLE},
        {NAND_SEAM_TRANSFER, HW_ERROR_NAND_TRANSFER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        fail_op(kinds[i][0], 3, false);
        assert_int_equal(newest_error()->kind, kinds[i][1]);
        assert_true(newest_error()->address == 0x300050006);
        assert_int_equal(newest_error()->boot, BOOT);
        assert_true(newest_error()->time_us == now_us);
        assert_int_equal(newest_error()->is_fatal,
                         kinds[i][1] == HW_ERROR_NAND_TRANSFER);
    }
    assert_true(newest_error()->info == 44);
    fail_op(NAND_SEAM_PROGRAM, 4, false);
    assert_true(newest_error()->info == 2); /* the second one */
}

static void test_a_row_that_a_power_cut_has_torn_is_no_error(void **state)
{
    (void)state;
    fail_op(NAND_SEAM_UNCORRECTABLE, 3, true);
    assert_int_equal(hw_log.records.count, 0);
    fail_op(NAND_SEAM_PROGRAM, 3, true); /* but this is one */
    assert_int_equal(hw_log.records.count, 1);
}

static void test_a_dead_die_is_noted_once(void **state)
{
    (void)state;
    hw_errors_note_die(&errors, 1, now_us);
    hw_errors_note_die(&errors, 2, now_us);
    hw_errors_note_die(&errors, 1, now_us);
    assert_int_equal(hw_log.records.count, 2);
    assert_true(newest_error()->is_fatal);
    take_step();
    assert_int_equal(events, 2);
    assert_string_equal(event.name, "flash die dead");
}

static void test_a_read_only_array_is_noted_once(void **state)
{
    (void)state;
    hw_errors_note_read_only(&errors, now_us);
    hw_errors_note_read_only(&errors, now_us);
    assert_int_equal(hw_log.records.count, 1);
    assert_int_equal(newest_error()->kind, HW_ERROR_READ_ONLY);
    /* Capacitors fail at a power cut, each time. */
    hw_errors_note_capacitors(&errors, now_us);
    assert_int_equal(hw_log.records.count, 2);
    assert_int_equal(newest_error()->kind, HW_ERROR_CAPACITORS);
    take_step();
    assert_int_equal(events, 0); /* both have SMART's own events */
}

static void test_an_event_says_where_its_error_is(void **state)
{
    (void)state;
    hw_errors_note_die(&errors, 3, now_us);
    take_step();
    assert_int_equal(event.code, HW_ERROR_EVENT_CODE + HW_ERROR_DIE);
    assert_string_equal(
        event_text, "hardware error 1: flash die dead: address 0x3, info 1");
    assert_int_equal(event.data_len, 24);
    assert_int_equal(get_le32(event_data), 1);        /* number */
    assert_int_equal(get_le32(event_data + 4), BOOT); /* boot */
    assert_true(get_le64(event_data + 8) == 3);       /* address */
    assert_true(get_le64(event_data + 16) == 1);      /* info */
    take_step();
    assert_int_equal(events, 1); /* once */
}

static void test_what_was_corrected_is_no_event(void **state)
{
    struct hw_error corrected = {.kind = HW_ERROR_NAND_TRANSFER};

    (void)state;
    hw_log_note(&hw_log, &corrected, now_us);
    fail_op(NAND_SEAM_PROGRAM, 0, false);
    fail_op(NAND_SEAM_ERASE, 0, false);
    fail_op(NAND_SEAM_UNCORRECTABLE, 0, false);
    take_step();
    assert_int_equal(events, 0);
    fail_op(NAND_SEAM_TRANSFER, 0, false);
    take_step();
    assert_int_equal(events, 1);
    assert_string_equal(event.name, "flash transfer failed");
}

static void fail_transfers(uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        fail_op(NAND_SEAM_TRANSFER, first + i, false);
        take_step();
    }
}

static void test_a_kind_has_a_limited_number_of_events_in_an_hour(void **state)
{
    (void)state;
    fail_transfers(0, 20);
    assert_int_equal(events, HW_ERROR_EVENTS);

    /* Another kind has its own share. */
    hw_errors_note_die(&errors, 9, now_us);
    take_step();
    assert_int_equal(events, HW_ERROR_EVENTS + 1);

    now_us += HW_ERROR_HOUR_US - 1;
    fail_transfers(50, 1);
    assert_int_equal(events, HW_ERROR_EVENTS + 1);
    now_us++;
    fail_transfers(50, 20);
    assert_int_equal(events, 2 * HW_ERROR_EVENTS + 1);
}

static void test_an_error_that_comes_again_is_one_event(void **state)
{
    (void)state;
    fail_transfers(0, 1);
    fail_transfers(0, 1);
    assert_int_equal(events, 1);
    fail_transfers(1, 1);
    assert_int_equal(events, 2);
    fail_transfers(0, 1); /* another one came between */
    assert_int_equal(events, 3);
    now_us += HW_ERROR_HOUR_US;
    fail_transfers(0, 1);
    assert_int_equal(events, 4);
}

/* What a lost record has fenced off, hidden or protected is not safe. */
static void test_each_lost_record_of_the_spi_flash_is_an_event(void **state)
{
    static const struct hw_error_records records = {
        .losses = 2, .lost_addr = {0x1900000, 0x30000}};
    struct hw_error_records later;

    (void)state;
    begin_log(&records, NULL);
    assert_int_equal(hw_log.records.count, 2);
    assert_int_equal(newest_error()->kind, HW_ERROR_RECORD_LOST);
    assert_true(newest_error()->is_fatal);
    assert_true(newest_error()->address == 0x30000);
    take_step();
    assert_int_equal(events, 2);
    assert_int_equal(event.code, HW_ERROR_EVENT_CODE + HW_ERROR_RECORD_LOST);
    assert_string_equal(event_text,
                        "hardware error 2: record in SPI flash lost: address "
                        "0x30000, info 2");
    take_step();
    assert_int_equal(events, 2);
    /* They are still lost at the next start. */
    later = hw_log.records;
    later.losses = records.losses;
    memcpy(later.lost_addr, records.lost_addr, sizeof(later.lost_addr));
    begin_log(&later, NULL);
    assert_int_equal(hw_log.records.count, 2);
}

static void test_the_spi_flash_does_not_log_each_of_its_failures(void **state)
{
    (void)state;
    take_step();
    assert_int_equal(hw_log.records.count, 0);
    failures = (struct flash_failures){.count = 3, .addr = 0x1000};
    take_step();
    assert_int_equal(hw_log.records.count, 1);
    assert_int_equal(newest_error()->kind, HW_ERROR_FLASH_WRITE);
    assert_true(newest_error()->address == 0x1000);
    assert_true(newest_error()->info == 3);
    assert_int_equal(events, 1);

    /* An entry is a write to the same flash: no other one for an hour. */
    failures = (struct flash_failures){.count = 4, .addr = 0x2000};
    now_us += HW_ERROR_HOUR_US - 1;
    take_step();
    assert_int_equal(hw_log.records.count, 1);
    now_us++;
    take_step();
    assert_true(newest_error()->info == 4);
    now_us += HW_ERROR_HOUR_US;
    take_step(); /* nothing new */
    assert_int_equal(events, 2);
}

static void test_a_crash_is_noted_at_the_next_start(void **state)
{
    struct telemetry_panic panic = {
        .is_trap = true, .mepc = 0x80001234, .mcause = 5};

    (void)state;
    begin_log(NULL, &panic);
    assert_int_equal(newest_error()->kind, HW_ERROR_CRASH);
    assert_true(newest_error()->is_fatal);
    assert_true(newest_error()->address == 0x80001234);
    assert_true(newest_error()->info == 5);
    take_step();
    assert_int_equal(events, 0); /* a crash has an event of its own */
}

/* The last start ended by an assertion in the file, after these errors. */
static void begin_after(const char *file, uint8_t kind, uint32_t boot,
                        bool is_trap)
{
    static struct hw_error_records kept;
    struct telemetry_panic panic = {.is_trap = is_trap, .file = file};

    kept = (struct hw_error_records){
        .error = {{.kind = HW_ERROR_DIE, .number = 4, .boot = boot},
                  {.kind = kind, .number = 5, .boot = boot}},
        .count = 2};
    begin_log(&kept, &panic);
    events = 0;
    take_step();
}

static void test_the_error_that_stopped_the_firmware_becomes_an_event(
    void **state)
{
    (void)state;
    begin_after("firmware/memory/memory_check.c", HW_ERROR_MEMORY_LOST,
                BOOT - 1, false);
    assert_int_equal(events, 1);
    assert_string_equal(event.name, "memory word lost");
    assert_int_equal(get_le32(event_data), 5);
    assert_int_equal(get_le32(event_data + 4), BOOT - 1);
}

static void test_other_errors_of_earlier_starts_are_no_events(void **state)
{
    (void)state;
    begin_after("firmware/memory/memory_check.c", HW_ERROR_MEMORY_LOST,
                BOOT - 2, false);
    assert_int_equal(events, 0);
    begin_after("firmware/memory/memory_check.c", HW_ERROR_DIE, BOOT - 1,
                false);
    assert_int_equal(events, 0);
    begin_after("firmware/memory/memory_check.c", HW_ERROR_MEMORY_LOST,
                BOOT - 1, true);
    assert_int_equal(events, 0);
    begin_after("firmware/app/main.c", HW_ERROR_MEMORY_LOST, BOOT - 1, false);
    assert_int_equal(events, 0);
}
