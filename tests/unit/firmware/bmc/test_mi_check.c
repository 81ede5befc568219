/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of management messages, with the published check values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firmware/bmc/mi_check.h"

static const uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};

static void test_the_pec_is_crc_8_of_smbus(void **state)
{
    (void)state;
    assert_int_equal(mi_pec(0, digits, sizeof(digits)), 0xf4);
    assert_int_equal(mi_pec(mi_pec(0, digits, 4), digits + 4, 5), 0xf4);
    assert_int_equal(mi_pec(0, digits, 0), 0);
}

static void test_the_integrity_check_is_crc_32c(void **state)
{
    (void)state;
    assert_int_equal(mi_crc32c(digits, sizeof(digits)), 0xe3069283);
    assert_int_equal(mi_crc32c(digits, 0), 0);
}
