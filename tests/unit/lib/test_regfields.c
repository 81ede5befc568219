/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "lib/regfields.h"

/* clang-format off */
REG32(SAMPLE, 0x24)
    FIELD(SAMPLE, LOW, 0, 4)
    FIELD(SAMPLE, TOP, 31, 1)
    FIELD(SAMPLE, ALL, 0, 32)
/* clang-format on */

static void test_fields_have_qemu_s_names(void **state)
{
    (void)state;
    assert_int_equal(A_SAMPLE, 0x24);
    assert_int_equal(R_SAMPLE, 9);
    assert_int_equal(R_SAMPLE_TOP_SHIFT, 31);
    assert_int_equal(R_SAMPLE_LOW_LENGTH, 4);
    assert_true(R_SAMPLE_TOP_MASK == 0x80000000u);
    assert_true(R_SAMPLE_ALL_MASK == 0xffffffffu);
}

static void test_getting_and_setting_a_field_leaves_the_others(void **state)
{
    (void)state;
    assert_int_equal(FIELD_GET(0xdeadbeef, SAMPLE, LOW), 0xf);
    assert_int_equal(FIELD_GET(0xdeadbeef, SAMPLE, TOP), 1);
    assert_true(FIELD_SET(0xdeadbeef, SAMPLE, LOW, 0x12) == 0xdeadbee2);
    assert_true(FIELD_SET(0x5eadbeef, SAMPLE, TOP, 1) == 0xdeadbeef);
    assert_true(FIELD_MAKE(SAMPLE, LOW, 0x12) == 2);
    assert_true(FIELD_MAKE(SAMPLE, TOP, 1) == 0x80000000u);
}
