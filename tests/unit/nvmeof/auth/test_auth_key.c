/* SPDX-License-Identifier: BSD-2-Clause */
/* Secrets in the form of `nvme gen-dhchap-key`; made with Python's base64 and
 * zlib.crc32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/auth/auth_key.h"
#include "tests/own_stack.h"

#define BASE_32 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"
#define BASE_48                                                                \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==" \
    ":"
#define BASE_64                                                                \
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1" \
    "Njc4OTo7PD0+P4zODhA=:"

static void test_secrets_of_all_lengths_give_their_keys(void **state)
{
    static const struct {
        const char *text;
        uint8_t hash, len;
    } rows[] = {
        {"DHHC-1:00:" BASE_32, AUTH_HASH_NONE, 32},
        {"DHHC-1:00:" BASE_64, AUTH_HASH_NONE, 64},
        {"DHHC-1:01:" BASE_32, AUTH_SHA256, 32},
        {"DHHC-1:02:" BASE_48, AUTH_SHA384, 48},
        {"DHHC-1:03:" BASE_64, AUTH_SHA512, 64},
    };

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        struct auth_key key;

        assert_true(auth_key_parse(&key, rows[row].text));
        assert_int_equal(key.hash, rows[row].hash);
        assert_int_equal(key.len, rows[row].len);
        for (uint8_t i = 0; i < key.len; i++) {
            assert_int_equal(key.bytes[i], i);
        }
    }
}

static void test_malformed_secrets_give_no_key(void **state)
{
    static const char *const texts[] = {
        "",
        "DHHC-1",
        "DHHC-1:01",
        "DHHC-1:01:",
        "DHHC-1:01::",
        "DHHC-1:04:" BASE_32,
        "DHHC-1:11:" BASE_32,
        "DHHC-2:01:" BASE_32,
        "DHHC-1:02:" BASE_32, /* the length is not that of the hash */
        "DHHC-1:01:" BASE_32 "x",
        "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR",
        "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaS:", /* CRC */
        "DHHC-1:01:BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        "DHHC-1:01:AAECAwQFBgcI!QoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygp"
        "KissLS4vcSEgBQ=:",
        "DHHC-1:03:" BASE_48 BASE_64,
        "DHHC-1:03:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA:",
    };
    static const struct auth_key empty;

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(texts); row++) {
        struct auth_key key;

        memset(&key, 0xa5, sizeof(key));
        assert_false(auth_key_parse(&key, texts[row]));
        assert_memory_equal(&key, &empty, sizeof(key));
    }
}

static struct auth_key key_of_the_stack;

static void parse_key(void *arg)
{
    (void)!auth_key_parse(&key_of_the_stack, arg);
}

static void test_a_key_stays_nowhere_on_the_stack(void **state)
{
    static const uint8_t start[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                    8, 9, 10, 11, 12, 13, 14, 15};
    char good[] = "DHHC-1:00:" BASE_64;
    char bad[] = "DHHC-1:01:" BASE_64; /* the length is not that of the hash */

    (void)state;
    own_stack_run(parse_key, good);
    assert_int_equal(key_of_the_stack.len, 64);
    assert_false(own_stack_has(start, sizeof(start)));
    own_stack_run(parse_key, bad);
    assert_int_equal(key_of_the_stack.len, 0);
    assert_false(own_stack_has(start, sizeof(start)));
}
