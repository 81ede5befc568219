/* SPDX-License-Identifier: BSD-2-Clause */
/* X25519 against RFC 7748 sections 5.2 and 6.1, and RFC 8448 section 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/crypto/x25519.h"
#include "tests/unit/nvmeof/tls/hex.h"

static void expect_product(const char *scalar, const char *point,
                           const char *expected)
{
    uint8_t a[32], b[32], want[32], result[32];

    hex_to(a, scalar);
    hex_to(want, expected);
    if (point != NULL) {
        hex_to(b, point);
    }
    assert_true(x25519_multiply(a, point != NULL ? b : NULL, result));
    assert_memory_equal(result, want, 32);
}

static void test_x25519_gives_the_products_of_rfc_7748(void **state)
{
    (void)state;
    expect_product(
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
    expect_product(
        "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
}

static void test_x25519_repeated_1000_times_gives_the_value_of_rfc_7748(
    void **state)
{
    uint8_t k[32] = {9}, u[32] = {9}, result[32], want[32];

    (void)state;
    for (unsigned int i = 0; i < 1000; i++) {
        assert_true(x25519_multiply(k, u, result));
        memcpy(u, k, 32);
        memcpy(k, result, 32);
    }
    hex_to(want,
           "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
    assert_memory_equal(k, want, 32);
}

static void test_x25519_gives_the_values_of_rfc_8448(void **state)
{
    (void)state;
    expect_product(
        "b1580eeadf6dd589b8ef4f2d5652578cc810e9980191ec8d058308cea216a21e",
        NULL,
        "c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f");
    expect_product(
        "b1580eeadf6dd589b8ef4f2d5652578cc810e9980191ec8d058308cea216a21e",
        "99381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c",
        "8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
}

static void test_x25519_takes_a_point_above_the_prime_modulo_it(void **state)
{
    uint8_t scalar[32] = {1, 2, 3}, above[32], nine[32] = {9};
    uint8_t a[32], b[32];

    (void)state;
    memset(above, 0xff, 32); /* p + 9, with the unused bit set */
    above[0] = 0xed + 9;
    assert_true(x25519_multiply(scalar, above, a));
    assert_true(x25519_multiply(scalar, nine, b));
    assert_memory_equal(a, b, 32);
}

static void test_x25519_says_that_a_point_was_of_small_order(void **state)
{
    uint8_t scalar[32] = {1, 2, 3}, zero[32] = {0}, one[32] = {1}, result[32];

    (void)state;
    assert_false(x25519_multiply(scalar, zero, result));
    assert_false(x25519_multiply(scalar, one, result));
}
