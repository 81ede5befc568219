/* SPDX-License-Identifier: BSD-2-Clause */
/* The key schedule against the values of RFC 8448 section 3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/crypto/aead.h"
#include "nvmeof/tls/tls_keys.h"
#include "tests/unit/nvmeof/tls/hex.h"

static void no_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0, len);
}

static struct crypto arithmetic;

static struct tls_crypto make_crypto(void)
{
    crypto_init(&arithmetic, no_random, NULL);
    return crypto_tls_ops(&arithmetic);
}

static void expect_bytes(const uint8_t *bytes, const char *digits)
{
    uint8_t want[64];
    size_t len = hex_to(want, digits);

    assert_memory_equal(bytes, want, len);
}

static void test_the_three_extracted_secrets_are_those_of_rfc_8448(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    uint8_t zeroes[32] = {0}, shared[32];
    struct tls_secret secret;

    (void)state;
    hex_to(shared,
           "8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
    tls_extract(&crypto, AUTH_SHA256, NULL, (struct auth_bytes){zeroes, 32},
                &secret);
    expect_bytes(secret.bytes, "33ad0a1c607ec03b09e6cd9893680ce2"
                               "10adf300aa1f2660e1b22e10f170f92a");
    tls_next_secret(&crypto, AUTH_SHA256, &secret, shared, 32, &secret);
    expect_bytes(secret.bytes, "1dc826e93606aa6fdc0aadc12f741b01"
                               "046aa6b99f691ed221a9f0ca043fbeac");
    tls_next_secret(&crypto, AUTH_SHA256, &secret, NULL, 0, &secret);
    expect_bytes(secret.bytes, "18df06843d13a08bf2a449844c5f8a47"
                               "8001bc4d4c627984d5a41da8d0402919");
}

static void test_traffic_keys_are_those_of_rfc_8448(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    const struct auth_bytes nothing = {"", 0};
    struct tls_secret secret;
    uint8_t out[32];

    (void)state;
    hex_to(secret.bytes,
           "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
    tls_expand_label(&crypto, AUTH_SHA256, &secret, "key", nothing, out, 16);
    expect_bytes(out, "3fce516009c21727d0f2e4e86ee403bc");
    tls_expand_label(&crypto, AUTH_SHA256, &secret, "iv", nothing, out, 12);
    expect_bytes(out, "5d313eb2671276ee13000b30");
    tls_expand_label(&crypto, AUTH_SHA256, &secret, "finished", nothing, out,
                     32);
    expect_bytes(out, "008d3b66f816ea559f96b537e885c31f"
                      "c068bf492c652f01f288a1d8cdc19fc8");
}

static void test_comparison_notices_every_bit(void **state)
{
    uint8_t a[32] = {0}, b[32] = {0};

    (void)state;
    assert_true(tls_is_equal(a, b, sizeof(a)));
    for (unsigned int bit = 0; bit < 256; bit++) {
        b[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(tls_is_equal(a, b, sizeof(a)));
        b[bit / 8] = 0;
    }
}
