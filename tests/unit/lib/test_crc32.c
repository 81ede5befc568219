/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of both CRC-32 implementations: this file is linked with each of
 * them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "lib/crc32.h"

/* Catalogues of CRCs give this check value for CRC-32/ISO-HDLC. */
static void test_crc32_of_the_check_string(void **state)
{
    (void)state;
    assert_int_equal(crc32_update(0, "123456789", 9), 0xcbf43926);
}

static void test_crc32_continues_at_any_split(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 9; n++) {
        uint32_t crc = crc32_update(0, "123456789", n);

        assert_int_equal(crc32_update(crc, &"123456789"[n], 9 - n), 0xcbf43926);
    }
}

/* zlib's value; each entry of a table of bytes is used. */
static void test_crc32_of_every_byte(void **state)
{
    uint8_t bytes[256];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    assert_int_equal(crc32_update(0, bytes, sizeof(bytes)), 0x29058c73);
}
