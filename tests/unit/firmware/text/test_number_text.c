/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that a user types. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/text/number_text.h"

static void test_digits_are_a_number(void **state)
{
    static const struct {
        const char *text;
        uint32_t base, max, value;
    } rows[] = {
        {"0", 10, 0, 0},
        {"00000000000000000000007", 10, 9, 7},
        {"256", 10, 256, 256},
        {"7f", 16, 0x7f, 0x7f},
        {"aF9", 16, 0xffff, 0xaf9},
        {"4294967295", 10, UINT32_MAX, UINT32_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t value = 1234;

        assert_true(number_text_parse(rows[i].text, strlen(rows[i].text),
                                      rows[i].base, rows[i].max, &value));
        assert_int_equal(value, rows[i].value);
    }
}

static void test_what_is_no_number_is_refused(void **state)
{
    static const struct {
        const char *text;
        uint32_t base, max;
    } rows[] = {
        {"", 10, 9},     {"10", 10, 9},
        {"a", 10, 99},   {"g", 16, 99},
        {"-1", 10, 99},  {" 1", 10, 99},
        {"1 ", 10, 99},  {"4294967296", 10, UINT32_MAX},
        {"0x1", 16, 99}, {"99999999999999999999999", 10, UINT32_MAX},
        {":", 16, 99},   {"/", 16, 99},
        {"G", 16, 99},   {"`", 16, 99},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t value;

        assert_false(number_text_parse(rows[i].text, strlen(rows[i].text),
                                       rows[i].base, rows[i].max, &value));
    }
}

static void test_the_text_ends_at_its_length(void **state)
{
    uint32_t value;

    (void)state;
    assert_true(number_text_parse("12345", 2, 10, 99, &value));
    assert_int_equal(value, 12);
}
