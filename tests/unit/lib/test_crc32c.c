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

/* The polynomial, one bit at a time. */
static uint32_t slow_digest(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < 8 * len; i++) {
        uint32_t bit = (crc ^ (uint32_t)bytes[i / 8] >> i % 8) & 1;

        crc = crc >> 1 ^ (bit != 0 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void test_the_digest_of_a_read_command_is_that_of_rfc_3720(void **state)
{
    static const uint8_t pdu[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
    };

    (void)state;
    assert_int_equal(crc32c_update(0, pdu, sizeof(pdu)), 0xd9963a56);
    assert_int_equal(crc32c_update(0, "123456789", 9), 0xe3069283);
}

/* Every alignment and every length around the slices of eight bytes. */
static void test_a_digest_does_not_depend_on_where_the_bytes_are(void **state)
{
    _Alignas(8) uint8_t bytes[96];

    (void)state;
    for (unsigned int i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 151 + 7);
    }
    for (size_t from = 0; from < 16; from++) {
        for (size_t len = 0; len <= sizeof(bytes) - from; len++) {
            assert_int_equal(crc32c_update(0, bytes + from, len),
                             slow_digest(bytes + from, len));
        }
    }
}
