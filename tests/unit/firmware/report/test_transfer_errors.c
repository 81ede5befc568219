/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the log of hardware errors and the console have of transfers with parity
 * errors, and of operations that broke a rule of the flash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/report/nand_rules.h"
#include "firmware/report/transfer_errors.h"
#include "tests/test_fixture.h"

enum { START_US = 1000, MINUTE_US = 60000000 };

static struct log the_log;
static struct hw_log hw_log;
static struct transfer_errors errors;
static struct nand_rules rules;

/* Die 9 is die 1 of channel 2, if each channel has 4. */
static const struct nand_seam seam = {.dies = 4, .rules_broken = 5};
static const struct ftl_flash_op op = {
    .kind = FTL_FLASH_PROGRAM, .die = 9, .block = 0x123, .wordline = 0x45};

uint64_t hal_now_us(void)
{
    return 0;
}

static int start_log(void **state)
{
    const struct hw_log_config config = {.boot = 3};

    (void)state;
    log_init(&the_log, (struct log_sink){0});
    memset(&hw_log, 0, sizeof(hw_log));
    hw_log_init(&hw_log, &config);
    errors = (struct transfer_errors){.log = &the_log, .hw_log = &hw_log};
    rules = (struct nand_rules){.log = &the_log, .hw_log = &hw_log};
    return 0;
}

TEST_FIXTURE(start_log, NULL)

/* How often the console has this text. */
static unsigned int count_lines(const char *text)
{
    static char shown[LOG_RING_BYTES + 1];
    unsigned int count = 0;

    shown[log_tail(&the_log, shown, LOG_RING_BYTES)] = '\0';
    for (const char *at = shown; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static void expect_error(enum hw_error_kind kind, uint64_t address,
                         uint64_t info, bool is_fatal)
{
    const struct hw_error *error =
        &hw_log.records.error[hw_log.records.count - 1];

    assert_true(hw_log.records.count > 0);
    assert_int_equal(error->kind, kind);
    assert_int_equal(error->address, address);
    assert_int_equal(error->info, info);
    assert_int_equal(error->is_fatal, is_fatal);
}

static void test_a_transfer_of_the_flash_is_logged_and_shown(void **state)
{
    (void)state;
    transfer_errors_note_nand(&errors, &op, 12, START_US);
    expect_error(HW_ERROR_NAND_TRANSFER, UINT64_C(0x901230045), 12, false);
    assert_int_equal(
        count_lines("nand: data of die 9, block 291 had a parity error on its "
                    "way between DRAM and flash; 12 such errors since the "
                    "start"),
        1);
}

static void test_a_transfer_of_the_rnic_is_logged_with_its_direction(
    void **state)
{
    (void)state;
    transfer_errors_note_rnic(&errors, 0x17, true, 1, START_US);
    expect_error(HW_ERROR_RNIC_TRANSFER, 0x17, 1, true);
    assert_int_equal(count_lines("rnic: data of queue pair 0x17 had a parity "
                                 "error on its way to DRAM; its connection "
                                 "ends; 1 such errors since the start"),
                     1);
    transfer_errors_note_rnic(&errors, 0x18, false, 2, START_US + MINUTE_US);
    expect_error(HW_ERROR_RNIC_TRANSFER, UINT64_C(1) << 32 | 0x18, 2, true);
    assert_int_equal(count_lines("error on its way from DRAM;"), 1);
}

static void test_the_console_shows_one_error_a_minute_of_each_device(
    void **state)
{
    (void)state;
    transfer_errors_note_nand(&errors, &op, 1, START_US);
    transfer_errors_note_nand(&errors, &op, 2, START_US + MINUTE_US - 1);
    assert_int_equal(count_lines("nand: data of die"), 1);
    assert_int_equal(count_lines("rnic: data of"), 0);
    transfer_errors_note_rnic(&errors, 7, true, 1, START_US + 1);
    assert_int_equal(count_lines("rnic: data of"), 1);
    transfer_errors_note_nand(&errors, &op, 3, START_US + MINUTE_US);
    assert_int_equal(count_lines("nand: data of die"), 2);
    assert_int_equal(count_lines("; 3 such errors"), 1);
    transfer_errors_note_rnic(&errors, 7, true, 2, START_US + MINUTE_US);
    assert_int_equal(count_lines("rnic: data of"), 1);
}

static void test_a_broken_rule_is_logged_and_shown(void **state)
{
    (void)state;
    nand_rules_note(&rules, &seam, &op, 2, START_US);
    expect_error(HW_ERROR_NAND_RULE, UINT64_C(0x901230045),
                 UINT64_C(5) << 32 | FTL_FLASH_PROGRAM << 8 | 2, false);
    assert_int_equal(
        count_lines("nand: bug in this firmware: the flash refused a program "
                    "of channel 2, die 1, block 291, wordline 69: these "
                    "blocks are not in the same mode (rule 2); 5 such errors "
                    "since the start; please report this"),
        1);
}

static void test_a_rule_without_a_text_is_shown_as_unknown(void **state)
{
    (void)state;
    nand_rules_note(&rules, &seam, &op, 0, START_US);
    assert_int_equal(count_lines(": the rule is unknown (rule 0);"), 1);
    nand_rules_note(&rules, &seam, &op, 200, START_US + MINUTE_US);
    assert_int_equal(count_lines(": the rule is unknown (rule 200);"), 1);
}

static void test_the_console_shows_one_broken_rule_a_minute(void **state)
{
    (void)state;
    for (uint64_t us = START_US; us < START_US + 2 * (uint64_t)MINUTE_US;
         us += MINUTE_US / 4) {
        nand_rules_note(&rules, &seam, &op, 3, us);
    }
    assert_int_equal(count_lines("bug in this firmware"), 2);
}
