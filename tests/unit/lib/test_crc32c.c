/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples of RFC 3720, appendix B.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/crc32c.h"
#include "tests/test_fixture.h"

TEST_FIXTURE(NULL, NULL)

static void test_the_digest_is_that_of_rfc_3720(void **state)
{
    uint8_t bytes[32] = {0};

    (void)state;
    assert_int_equal(crc32c_update(0, bytes, 0), 0);
    assert_int_equal(crc32c_update(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c_update(0, bytes, 32), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    assert_int_equal(crc32c_update(0, bytes, 32), 0x46dd794e);
}

static void test_a_digest_goes_on(void **state)
{
    uint8_t bytes[256];
    uint32_t whole;

    (void)state;
    for (unsigned int i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 37);
    }
    whole = crc32c_update(0, bytes, sizeof(bytes));
    for (size_t i = 0; i <= sizeof(bytes); i++) {
        uint32_t crc = crc32c_update(0, bytes, i);

        assert_int_equal(crc32c_update(crc, bytes + i, sizeof(bytes) - i),
                         whole);
    }
}
