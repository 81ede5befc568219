/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of NVMe/TCP.  The values were made with Python's hmac, hashlib, base64
 * and zlib, by the text of the specification and the order of bytes that
 * libnvme 1.15 and libnvme 1.16 use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/crypto/aead.h"
#include "nvmeof/tls/tls_psk.h"
#include "tests/unit/nvmeof/tls/hex.h"

#define HOST                                                                   \
    "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
#define SUB "nqn.2024-01.test:essd:1"

struct row {
    const char *key, *identity;
    enum tls_style style;
    const char *psk;
};

static const struct row rows[] = {
    {"NVMeTLSkey-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe0R01 " HOST " " SUB, TLS_STYLE_SPEC,
     "e9afef4054a179454a9525476be6ea76"
     "03194838c6893f587602380c21af5563"},
    {"NVMeTLSkey-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe0R01 " HOST " " SUB, TLS_STYLE_OLD_LIBNVME,
     "90d8260d49ce73c02c6e303eb0e084be"
     "52eb8be83192926b5d16cff1a40a77fc"},
    {"NVMeTLSkey-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe1R01 " HOST " " SUB " fc4IAvhxfmBOVl5aM9clPBmRDcuPRKIvhXtMhMEQj5Y=",
     TLS_STYLE_SPEC,
     "0b8ed723223552aa2d00ddfd9a6babd9"
     "33e56f3c40734e7984925bf64ea440ba"},
    {"NVMeTLSkey-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe1R01 " HOST " " SUB " fc4IAvhxfmBOVl5aM9clPBmRDcuPRKIvhXtMhMEQj5Y=",
     TLS_STYLE_OLD_LIBNVME,
     "c09bdbe93ed08027e4ad3e848520d0b6"
     "315604f8c8e7d77ff9832ccc913a76fe"},
    {"NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe0R01 " HOST " " SUB, TLS_STYLE_SPEC,
     "cbc8afe7c5369dd8f51f5ec56399dbdb"
     "0a05a6182d1013dd4c41aed71fa6935e"},
    {"NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe0R01 " HOST " " SUB, TLS_STYLE_OLD_LIBNVME,
     "a028b34a4afd1be71be452e4633b6bc9"
     "7c87b0aa8116041b29348c74ab82d221"},
    {"NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe1R01 " HOST " " SUB " lpVo548iDHMHW3MAsTBZ0VGf6jgKmaoBL3atAlLVw7Y=",
     TLS_STYLE_SPEC,
     "af53825e95a93e8178b1af37b3252561"
     "8badd487c265ec9a52bcd06636dc939d"},
    {"NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
     "NVMe1R01 " HOST " " SUB " km+8nyHr/4qQiGbHHSyLpWBK0wQgekLyj+mjopfg0oc=",
     TLS_STYLE_OLD_LIBNVME,
     "87dd9a78c9b7dca95576dceecad6982c"
     "a4edc0ee3ed2f2c7c82a587243bb645a"},
    {"NVMeTLSkey-1:02:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe0R02 " HOST " " SUB, TLS_STYLE_SPEC,
     "4b06e0a1db629b53a0f961fd0fd3b25c"
     "839eefe4e62eddfccda4a56ff344c78e"
     "fc82a782302e6bc01fbf38a5b491d9fc"},
    {"NVMeTLSkey-1:02:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe0R02 " HOST " " SUB, TLS_STYLE_OLD_LIBNVME,
     "6a6ae9fd19da918cc9cabb58ee388524"
     "e2ca89c2f4ab56d398555d858e6b6821"
     "abcd37359e8749f2eef8492f4007449b"},
    {"NVMeTLSkey-1:02:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe1R02 " HOST " " SUB
     " G+iVZlibhmrU3tDFbDluJ+NsTd7qgsvbnXc35SevJtpeWOU9Nil35THa0Cb4lUAC",
     TLS_STYLE_SPEC,
     "38ae16567cf3a46a617e5153647179a6"
     "2cafd25ce5e209d385c10446eef75695"
     "ea42d6ca251aad7e6050647a51b2d9ea"},
    {"NVMeTLSkey-1:02:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe1R02 " HOST " " SUB
     " kcxsMbGzH+sCMcVHJefehUplyfTnn1VK//9qgPy5qXmcpykvk4r23v6cJitSAy2x",
     TLS_STYLE_OLD_LIBNVME,
     "95c0e539b077b09d2c3af082f4ed9569"
     "c8fc7a8f3e801dec6b7f63a2431d8672"
     "b6f4b9c6f714e54620e993125222fcf5"},
    {"NVMeTLSkey-1:00:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe0R02 " HOST " " SUB, TLS_STYLE_SPEC,
     "5fc6884b3e3ea51e4a193e28bd70caf9"
     "723b2babe2b6494d344d11712dc18113"
     "f9221a8a3dd2cdfc49d8b1cb18fb616b"},
    {"NVMeTLSkey-1:00:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe0R02 " HOST " " SUB, TLS_STYLE_OLD_LIBNVME,
     "1fd37ed9c474db8f4a748fbd314b029d"
     "5c1c79005e39d77bbe5e9ab36bc20f27"
     "3129b4d3b137397a500a55cdd1ec8a7f"},
    {"NVMeTLSkey-1:00:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe1R02 " HOST " " SUB
     " 8NR3O4aFwCjEeFuJe74gBKRqauoKQ8XeEw4d4jZ2030Wjp2Nyc8PFA+J3Hhbd5oh",
     TLS_STYLE_SPEC,
     "62a23a92c2d75689ced81098cd25df58"
     "a4c11f553d4ff0446088183a28165a9a"
     "05f10993c269a47240642bc91d24e4fd"},
    {"NVMeTLSkey-1:00:"
     "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw=="
     ":",
     "NVMe1R02 " HOST " " SUB
     " 8NR3O4aFwCjEeFuJe74gBKRqauoKQ8XeEw4d4jZ2030Wjp2Nyc8PFA+J3Hhbd5oh",
     TLS_STYLE_OLD_LIBNVME,
     "db8be2c18bc89d5d5a845170e27def0b"
     "b7e830f7e1b58bf21d90ba6f155f03c4"
     "3511e0c0537f276557c7a98dd352b950"},
};

static struct crypto arithmetic;

static struct tls_crypto make_crypto(void)
{
    crypto_init(&arithmetic, NULL, NULL);
    return crypto_tls_ops(&arithmetic);
}

static bool parse_text(struct tls_identity *identity, const char *text)
{
    return tls_identity_parse(identity, (const uint8_t *)text, strlen(text));
}

static bool derive_row(const struct row *row, struct tls_secret *psk)
{
    const struct tls_crypto crypto = make_crypto();
    struct tls_identity identity;
    struct auth_key key;

    assert_true(auth_psk_parse(&key, row->key));
    assert_true(parse_text(&identity, row->identity));
    return tls_psk_derive(&crypto, &key, &identity, row->style, psk);
}

static void test_keys_of_all_forms_are_derived(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_secret psk;
        uint8_t want[48];
        size_t len = hex_to(want, rows[i].psk);

        assert_true(derive_row(&rows[i], &psk));
        assert_memory_equal(psk.bytes, want, len);
    }
}

static void test_an_identity_of_another_key_is_refused(void **state)
{
    const struct tls_crypto crypto = make_crypto();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (unsigned int byte = 0; byte < 48; byte++) {
            struct tls_identity identity;
            struct tls_secret psk;
            struct auth_key key;

            assert_true(auth_psk_parse(&key, rows[i].key));
            assert_true(parse_text(&identity, rows[i].identity));
            if (identity.version == 0 || byte >= key.len) {
                continue;
            }
            key.bytes[byte] ^= 1;
            assert_false(
                tls_psk_derive(&crypto, &key, &identity, rows[i].style, &psk));
        }
    }
}

static void test_a_key_has_the_suite_of_its_hash_only(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    struct tls_identity identity;
    struct tls_secret psk;
    struct auth_key key;

    (void)state;
    assert_true(auth_psk_parse(&key, rows[4].key));
    assert_true(parse_text(&identity, "NVMe0R02 " HOST " " SUB));
    assert_false(
        tls_psk_derive(&crypto, &key, &identity, TLS_STYLE_SPEC, &psk));
    assert_true(parse_text(&identity, "NVMe0G01 " HOST " " SUB));
    assert_false(
        tls_psk_derive(&crypto, &key, &identity, TLS_STYLE_SPEC, &psk));
}

static void test_generated_keys_are_those_of_python(void **state)
{
    static const struct {
        enum auth_hash hash;
        const char *generated, *digest, *psk;
    } made[] = {
        {AUTH_SHA256,
         "43afd1fab29fabe9e62f9f047a189300"
         "53b9c939ec32954b5545bf674e068e42",
         "tTXM4Q8YliUoTee0ymYWgNFk9Vpj4oj2P1f8VafSiFc=",
         "5df81df1c61c13ef407a1b041e82018c"
         "3d7b393f6796879ddef81fff08c107b1"},
        {AUTH_SHA384,
         "6ded3234f70c298fd7ace55257eb551b"
         "62c13f0bed873fd8b84e011b20543178"
         "874679f1a1b7a930c935992ac38c8797",
         "pzxf36PV2ZLCZQybtrSJkhG5Ye87gfAO0ixhX/+Aj3zav23dF/aaOVxZSFnRyhz7",
         "f98b9679d7c1c8c7e5e8ec5b1bba7222"
         "d67f8fe45a86c50b2558b9982c095a86"
         "b3cf8feaf904fec4283c313e3ad3f371"},
    };

    const struct tls_crypto crypto = make_crypto();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        struct tls_identity identity = {
            .version = 1,
            .is_generated = true,
            .hash = (uint8_t)made[i].hash,
            .hostnqn = HOST,
            .subnqn = SUB,
        };
        uint8_t generated[TLS_SECRET_MAX], expected[TLS_SECRET_MAX];
        struct tls_secret psk;

        (void)hex_to(generated, made[i].generated);
        tls_psk_generated(&crypto, generated, &identity, &psk);
        assert_string_equal(identity.digest, made[i].digest);
        assert_memory_equal(psk.bytes, expected, hex_to(expected, made[i].psk));
    }
}

static void test_identities_are_taken_apart(void **state)
{
    struct tls_identity identity;

    (void)state;
    assert_true(parse_text(&identity, "NVMe1R02 " HOST " " SUB " AbC+/="));
    assert_int_equal(identity.version, 1);
    assert_int_equal(identity.hash, AUTH_SHA384);
    assert_false(identity.is_generated);
    assert_string_equal(identity.hostnqn, HOST);
    assert_string_equal(identity.subnqn, SUB);
    assert_string_equal(identity.digest, "AbC+/=");
}

static void test_texts_that_are_no_identities_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "NVMe0R01",
        "NVMe0R01 ",
        "NVMe0R01 a",
        "NVMe0R01 a ",
        "NVMe0R01  b",
        "NVMe0R01 a b ",
        "NVMe0R01 a b c",
        "NVMe1R01 a b",
        "NVMe1R01 a b ",
        "NVMe1R01 a b c ",
        "NVMe1R01 a b c d",
        "NVMe2R01 a b",
        "NVMe0R00 a b",
        "NVMe0R03 a b",
        "NVMe0X01 a b",
        "nvme0R01 a b",
        "NVMe0R01 a\tb c",
        "NVMe0R01 a \x80",
    };
    struct tls_identity identity;
    char long_text[300];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_false(parse_text(&identity, texts[i]));
    }
    memset(long_text, 'a', sizeof(long_text));
    memcpy(long_text, "NVMe0R01 ", 9);
    memcpy(long_text + 9 + 223, " b", 3);
    assert_true(parse_text(&identity, long_text));
    memset(long_text + 9, 'a', 224);
    memcpy(long_text + 9 + 224, " b", 3);
    assert_false(parse_text(&identity, long_text));
}

static void test_texts_that_are_no_keys_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "NVMeTLSkey-1:01:",
        "NVMeTLSkey-1:01::",
        "NVMeTLSkey-1:03:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        "NVMeTLSkey-1:02:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaI:",
        "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH",
        "NVMeTLSkey-2:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        "DHHC-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:",
        /* 64 bytes */
        "NVMeTLSkey-1:00:"
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v"
        "MDEyMzQ1Njc4OTo7PD0+P4zODhA=:",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct auth_key key;

        memset(&key, 0xa5, sizeof(key));
        assert_false(auth_psk_parse(&key, texts[i]));
        assert_int_equal(key.len, 0);
    }
}
