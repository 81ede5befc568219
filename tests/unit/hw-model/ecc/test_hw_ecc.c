/* SPDX-License-Identifier: BSD-2-Clause */
/* Error correction of memories: what is corrected, detected, counted. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "hw-model/ecc/hw_ecc.h"
#include "lib/regfields.h"
#include "hw-model/regs/ecc.h"
#include "tests/test_fixture.h"

#define WORD     UINT64_C(0x80001000)
#define NO_CLEAR UINT64_MAX

static struct hw_ecc ecc;
static bool irq;
static uint64_t cleared;

static void set_irq(void *ctx, bool level)
{
    (void)ctx;
    irq = level;
}

static void ignore_change(void *ctx)
{
    (void)ctx;
}

static void clear_word(void *ctx, uint64_t addr)
{
    (void)ctx;
    cleared = addr;
}

static uint32_t read_reg(uint32_t offset)
{
    uint32_t value;

    assert_true(hw_ecc_reg_read(&ecc, offset, &value));
    return value;
}

static void write_reg(uint32_t offset, uint32_t value)
{
    assert_true(hw_ecc_reg_write(&ecc, offset, value));
}

static int set_up(void **state)
{
    const struct hw_ecc_config config = {
        .set_irq = set_irq,
        .changed = ignore_change,
        .clear_word = clear_word,
    };

    (void)state;
    hw_ecc_init(&ecc, &config);
    hw_ecc_reset(&ecc, true);
    write_reg(A_ECC_CTRL, 3);
    cleared = NO_CLEAR;
    return 0;
}

static void scrub_range(uint64_t addr, uint32_t len, uint32_t how)
{
    write_reg(A_ECC_SCRUB_LO, (uint32_t)addr);
    write_reg(A_ECC_SCRUB_HI, (uint32_t)(addr >> 32));
    write_reg(A_ECC_SCRUB_LEN, len);
    write_reg(A_ECC_SCRUB, how);
}

static void test_a_single_error_is_corrected_and_counted(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 1));
    assert_true(hw_ecc_read(&ecc, WORD - 8, 8, false));
    assert_true(hw_ecc_read(&ecc, WORD + 8, 8, false));
    assert_int_equal(read_reg(A_ECC_CORRECTED), 0);
    assert_false(irq);
    assert_true(hw_ecc_read(&ecc, WORD + 7, 1, false));
    assert_true(hw_ecc_read(&ecc, WORD - 100, 200, true));
    assert_int_equal(read_reg(A_ECC_CORRECTED), 2);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 0);
    assert_int_equal(read_reg(A_ECC_CORRECTED_LO), (uint32_t)WORD);
    assert_true(irq);
    write_reg(A_ECC_STATUS, 1);
    assert_false(irq);
}

static void test_a_double_error_is_detected(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 1));
    assert_true(hw_ecc_inject(&ecc, WORD, 4));
    assert_false(hw_ecc_read(&ecc, WORD - 4096, 8192, true));
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 1);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD);
    assert_int_equal(read_reg(A_ECC_STATUS), 6);
    assert_true(irq);
    write_reg(A_ECC_STATUS, 2);
    assert_int_equal(read_reg(A_ECC_STATUS), 0);
    assert_false(irq);
    assert_false(hw_ecc_read(&ecc, WORD, 1, false));
    assert_int_equal(read_reg(A_ECC_STATUS), 2); /* by a hart */
}

static void test_the_registers_have_the_first_address_of_each_kind(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 1));
    assert_true(hw_ecc_inject(&ecc, WORD + 8, 3));
    assert_true(hw_ecc_inject(&ecc, WORD + 16, 1));
    assert_true(hw_ecc_inject(&ecc, WORD + 24, 3));
    assert_false(hw_ecc_read(&ecc, WORD, 16, true));
    assert_false(hw_ecc_read(&ecc, WORD + 16, 16, false));
    assert_int_equal(read_reg(A_ECC_CORRECTED_LO), (uint32_t)WORD);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD + 8);
    assert_int_equal(read_reg(A_ECC_STATUS), 7); /* a device has found it */
    write_reg(A_ECC_STATUS, 3);
    assert_false(hw_ecc_read(&ecc, WORD + 16, 16, false));
    assert_int_equal(read_reg(A_ECC_CORRECTED_LO), (uint32_t)WORD + 16);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD + 24);
    assert_int_equal(read_reg(A_ECC_STATUS), 3);
}

static void test_flipping_a_bit_twice_restores_it(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_false(hw_ecc_has_errors(&ecc));
}

static void test_a_write_gives_right_check_bits(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_true(hw_ecc_inject(&ecc, WORD + 8, 1));
    assert_true(hw_ecc_write(&ecc, WORD, 8, false));
    assert_int_equal(ecc.count, 1);
    assert_true(hw_ecc_read(&ecc, WORD, 8, false));
    assert_true(hw_ecc_write(&ecc, WORD - 4096, 8192, true));
    assert_false(hw_ecc_has_errors(&ecc));
    assert_int_equal(read_reg(A_ECC_STATUS), 0); /* nothing was read */
}

static void test_a_write_of_a_part_of_a_word_reads_it(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 1));
    assert_true(hw_ecc_write(&ecc, WORD + 4, 4, false));
    assert_false(hw_ecc_has_errors(&ecc));
    assert_int_equal(read_reg(A_ECC_CORRECTED), 1);
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_false(hw_ecc_write(&ecc, WORD, 7, false));
    assert_int_equal(read_reg(A_ECC_STATUS), 3); /* by a hart */
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD);
    assert_int_equal(ecc.count, 1);
}

/* A device writes from the middle of one word to the middle of another. */
static void test_a_write_fails_if_a_word_at_its_edge_is_lost(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD + 8, 3));
    assert_true(hw_ecc_inject(&ecc, WORD + 16, 3));
    assert_false(hw_ecc_write(&ecc, WORD + 4, 16, true));
    assert_int_equal(ecc.count, 2); /* nothing was written */
    assert_int_equal(read_reg(A_ECC_STATUS), 6);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 1);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD + 16);
    assert_false(hw_ecc_write(&ecc, WORD + 20, 8, true));
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 2);
    assert_true(hw_ecc_write(&ecc, WORD + 4, 12, true));
    assert_int_equal(ecc.count, 1);
    assert_true(hw_ecc_write(&ecc, WORD + 17, 0, true));
    assert_int_equal(ecc.count, 1); /* no byte was written */
}

static void test_a_scrub_corrects_its_range_only(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 1));
    assert_true(hw_ecc_inject(&ecc, WORD + 16, 1));
    assert_true(hw_ecc_inject(&ecc, WORD + 8, 3));
    scrub_range(WORD, 16, 1);
    assert_int_equal(ecc.count, 2);
    assert_int_equal(read_reg(A_ECC_CORRECTED), 1);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 0);
    assert_int_equal(cleared, NO_CLEAR);
    scrub_range(WORD, 16, 2);
    assert_int_equal(cleared, WORD + 8);
    assert_int_equal(ecc.count, 1);
    assert_true(hw_ecc_read(&ecc, WORD + 8, 8, false));
}

static void test_only_power_on_clears_errors_and_findings(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_false(hw_ecc_read(&ecc, WORD, 8, false));
    hw_ecc_reset(&ecc, false);
    assert_false(irq); /* CTRL is 0 */
    assert_int_equal(read_reg(A_ECC_STATUS), 2);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), (uint32_t)WORD);
    assert_true(hw_ecc_has_errors(&ecc));
    hw_ecc_reset(&ecc, true);
    assert_int_equal(read_reg(A_ECC_STATUS), 0);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 0);
    assert_false(hw_ecc_has_errors(&ecc));
}

/* Firmware checks memory before a hart reads it.  A check goes on from its
 * first word, and stops at a word that is lost. */
static void test_a_check_finds_the_lost_words_of_a_range_one_by_one(
    void **state)
{
    static const uint64_t lost[] = {WORD + 0x40, WORD + 8, WORD + 0x80,
                                    WORD + 0x100};
    static const uint64_t found[] = {WORD + 8, WORD + 0x40, WORD + 0x80};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(lost); i++) {
        assert_true(hw_ecc_inject(&ecc, lost[i], 3));
    }
    assert_true(hw_ecc_inject(&ecc, WORD + 0x10, 1));
    assert_true(hw_ecc_inject(&ecc, WORD + 0x48, 1));
    for (unsigned int i = 0; i < ARRAY_LEN(found); i++) {
        uint64_t from = i == 0 ? WORD : found[i - 1] + 8;

        scrub_range(from, (uint32_t)(WORD + 0x100 - from),
                    FIELD_MAKE(ECC_SCRUB, CHECK, 1));
        assert_int_equal(FIELD_GET(read_reg(A_ECC_STATUS), ECC_STATUS, BY_DMA),
                         1);
        assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), found[i]);
        assert_int_equal(read_reg(A_ECC_UNCORRECTED), i + 1);
        assert_int_equal(read_reg(A_ECC_CORRECTED), i);
        assert_true(irq);
        write_reg(A_ECC_STATUS, 3);
    }
    scrub_range(found[2] + 8, 0x100 - 0x88, FIELD_MAKE(ECC_SCRUB, CHECK, 1));
    assert_int_equal(read_reg(A_ECC_STATUS), 0);
    assert_int_equal(cleared, NO_CLEAR);
    assert_int_equal(ecc.count, 6); /* a check changes nothing */
    /* A part of a word is the word. */
    scrub_range(WORD + 12, 2, FIELD_MAKE(ECC_SCRUB, CHECK, 1));
    assert_int_equal(read_reg(A_ECC_UNCORRECTED_LO), WORD + 8);
}

/* In this order, a check finds nothing that was cleared before. */
static void test_a_scrub_corrects_then_clears_then_checks(void **state)
{
    (void)state;
    assert_true(hw_ecc_inject(&ecc, WORD, 3));
    assert_true(hw_ecc_inject(&ecc, WORD + 8, 1));
    scrub_range(WORD, 16, 7);
    assert_int_equal(cleared, WORD);
    assert_int_equal(read_reg(A_ECC_UNCORRECTED), 0);
    assert_int_equal(read_reg(A_ECC_CORRECTED), 1);
    assert_false(hw_ecc_has_errors(&ecc));
}

static void test_what_cannot_be_injected_is_refused(void **state)
{
    (void)state;
    assert_false(hw_ecc_inject(&ecc, WORD + 1, 1));
    assert_false(hw_ecc_inject(&ecc, WORD, 0));
    for (uint32_t i = 0; i < HW_ECC_WORDS; i++) {
        assert_true(hw_ecc_inject(&ecc, WORD + 8 * i, 1));
    }
    assert_false(hw_ecc_inject(&ecc, WORD - 8, 1));
    assert_true(hw_ecc_inject(&ecc, WORD, 2)); /* the word is in the list */
}

static void test_registers_that_do_not_exist_are_refused(void **state)
{
    uint32_t value;

    (void)state;
    assert_false(hw_ecc_reg_read(&ecc, 0x100, &value));
    assert_false(hw_ecc_reg_write(&ecc, A_ECC_ID, 1));
    assert_int_equal(read_reg(A_ECC_ID), ECC_ID_VALUE);
}

TEST_FIXTURE(set_up, NULL)
