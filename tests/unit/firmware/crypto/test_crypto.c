/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes, HMAC and exponentiation, against values of RFCs and of Python's
 * hashlib, hmac and pow().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/crypto/crypto.h"
#include "firmware/crypto/dh_groups.h"
#include "tests/own_stack.h"

static struct crypto crypto;

static void fill_with_five(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, 5, len);
}

static struct auth_crypto begin_crypto(void)
{
    crypto_init(&crypto, fill_with_five, NULL);
    return crypto_ops(&crypto);
}

static void assert_hex(const uint8_t *bytes, size_t len, const char *hex)
{
    char text[2 * AUTH_HASH_MAX + 1];

    assert_true(len <= AUTH_HASH_MAX);
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    assert_string_equal(text, hex);
}

static void test_hashes_of_abc_are_those_of_fips_180(void **state)
{
    static const char *const digest[AUTH_HASHES] = {
        [AUTH_SHA256] = "ba7816bf8f01cfea414140de5dae2223"
                        "b00361a396177a9cb410ff61f20015ad",
        [AUTH_SHA384] = "cb00753f45a35e8bb5a03d699ac65007"
                        "272c32ab0eded1631a8b605a43ff5bed"
                        "8086072ba1e7cc2358baeca134c825a7",
        [AUTH_SHA512] = "ddaf35a193617abacc417349ae204131"
                        "12e6fa4e89a97ea20a9eeee64b55d39a"
                        "2192992a274fc1a836ba3c23a3feebbd"
                        "454d4423643ce80e2a9ac94fa54ca49f",
    };
    struct auth_crypto ops = begin_crypto();
    uint8_t out[AUTH_HASH_MAX];

    (void)state;
    for (unsigned int hash = AUTH_SHA256; hash < AUTH_HASHES; hash++) {
        ops.hash(ops.ctx, (enum auth_hash)hash, (const uint8_t *)"abc", 3, out);
        assert_hex(out, auth_hash_len((uint8_t)hash), digest[hash]);
    }
}

/* RFC 4231 test case 2, with the data in two parts. */
static void test_hmac_gives_the_values_of_rfc_4231(void **state)
{
    static const char *const mac[AUTH_HASHES] = {
        [AUTH_SHA256] = "5bdcc146bf60754e6a042426089575c7"
                        "5a003f089d2739839dec58b964ec3843",
        [AUTH_SHA384] = "af45d2e376484031617f78d2b58a6b1b"
                        "9c7ef464f5a01b47e42ec3736322445e"
                        "8e2240ca5e69e2c78b3239ecfab21649",
        [AUTH_SHA512] = "164b7a7bfcf819e2e395fbe73b56e0a3"
                        "87bd64222e831fd610270cd7ea250554"
                        "9758bf75c05a994a6d034f65f8f0e6fd"
                        "caeab1a34d4a6b4b636e070a38bce737",
    };
    const struct auth_bytes parts[] = {{"what do ya want ", 16},
                                       {"for nothing?", 12}};
    struct auth_crypto ops = begin_crypto();
    uint8_t out[AUTH_HASH_MAX];

    (void)state;
    for (unsigned int hash = AUTH_SHA256; hash < AUTH_HASHES; hash++) {
        ops.hmac(ops.ctx, (enum auth_hash)hash, (struct auth_bytes){"Jefe", 4},
                 parts, ARRAY_LEN(parts), out);
        assert_hex(out, auth_hash_len((uint8_t)hash), mac[hash]);
    }
}

static unsigned int raise_to(const struct auth_crypto *ops, enum auth_dh dh,
                             const uint8_t *base, const uint8_t *exponent,
                             uint8_t *result)
{
    unsigned int steps = 1;

    ops->dh_start(ops->ctx, dh, base, exponent);
    while (!ops->dh_step(ops->ctx)) {
        steps++;
    }
    ops->dh_result(ops->ctx, result);
    return steps;
}

/* The expected values are SHA-256 of Python's pow(2, x, p) and
 * pow(pow(2, y, p), x, p). */
static void test_powers_in_all_groups_are_those_of_python(void **state)
{
    static const struct {
        enum auth_dh dh;
        const char *public_hash;
        const char *shared_hash;
    } rows[] = {
        {AUTH_FFDHE2048,
         "9bb339bb52f18c63f028de70d646e72b10e2b5f6eacccacfc3f62224cc3b9bae",
         "e6f162cdcaa84abb0935d59bc029a751b87cd7315e3f7c1d76d18fd0522bbacf"},
        {AUTH_FFDHE3072,
         "aa26f8292a5cae4296cdd5fa652ed3798b75a7cdbf95b671dd076d065b10c17c",
         "59419b8830a48270a682b491fe877728871430a2eda53227f3fd8948c673160f"},
        {AUTH_FFDHE4096,
         "2e35c06efd9aca13816b4fa25462bf6702f2057004aee0b063e8be41f61042ed",
         "0c24d5d823f20168dbfa5b4ec1d3c2fefbeeded474d0b1760c9002a48a97d20e"},
        {AUTH_FFDHE6144,
         "d5f2c5d3252088bb90f5c35af72e7a3e366d83e47d00fa3a3d15b1e452a374a8",
         "1f30c0f861ced1ee10097579661cf6f12889b4aaa2c8f43cb36da9bae3835b07"},
        {AUTH_FFDHE8192,
         "f6e3dd92e0c27d6da4d29f828150eff842988f79e09153c848eef0559f2e721d",
         "1677e6888c5b2348e57d67935c7db4f1c0ea6a66dbac0033c70eac60d8fd4b61"},
    };
    struct auth_crypto ops = begin_crypto();
    uint8_t x[AUTH_EXPONENT_MAX], y[AUTH_EXPONENT_MAX];
    uint8_t value[AUTH_DH_MAX], other[AUTH_DH_MAX], digest[32];

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        enum auth_dh dh = rows[row].dh;
        uint16_t len = auth_dh_len((uint8_t)dh);

        for (unsigned int i = 0; i < AUTH_EXPONENT_MAX; i++) {
            x[i] = (uint8_t)(7 * i + len * 8u / 1024);
            y[i] = (uint8_t)(13 * i + 5);
        }
        raise_to(&ops, dh, NULL, x, value);
        ops.hash(ops.ctx, AUTH_SHA256, value, len, digest);
        assert_hex(digest, sizeof(digest), rows[row].public_hash);
        raise_to(&ops, dh, NULL, y, other);
        raise_to(&ops, dh, other, x, other);
        ops.hash(ops.ctx, AUTH_SHA256, other, len, digest);
        assert_hex(digest, sizeof(digest), rows[row].shared_hash);
        raise_to(&ops, dh, NULL, y, other);
        assert_true(ops.dh_accepts(ops.ctx, dh, other));
    }
}

static void test_the_number_of_steps_does_not_depend_on_the_exponent(
    void **state)
{
    struct auth_crypto ops = begin_crypto();
    uint8_t zero[AUTH_EXPONENT_MAX] = {0}, ones[AUTH_EXPONENT_MAX];
    uint8_t value[AUTH_DH_MAX], one[AUTH_DH_MAX] = {0};
    unsigned int steps;

    (void)state;
    memset(ones, 0xff, sizeof(ones));
    steps = raise_to(&ops, AUTH_FFDHE2048, NULL, zero, value);
    one[255] = 1; /* 2^0 */
    assert_memory_equal(value, one, 256);
    assert_int_equal(raise_to(&ops, AUTH_FFDHE2048, NULL, ones, value), steps);
}

static void test_values_0_1_p_minus_1_and_beyond_are_refused(void **state)
{
    struct auth_crypto ops = begin_crypto();
    uint8_t value[AUTH_DH_MAX];

    (void)state;
    for (unsigned int dh = AUTH_FFDHE2048; dh < AUTH_DHS; dh++) {
        uint16_t len = auth_dh_len((uint8_t)dh);

        memset(value, 0, sizeof(value));
        assert_false(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        value[len - 1] = 1;
        assert_false(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        value[len - 1] = 2;
        assert_true(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        memcpy(value, dh_group_prime((enum auth_dh)dh), len);
        value[len - 1] -= 2;
        assert_true(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        value[len - 1]++; /* p - 1 */
        assert_false(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        value[len - 1]++; /* p */
        assert_false(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
        memset(value, 0xff, len);
        assert_false(ops.dh_accepts(ops.ctx, (enum auth_dh)dh, value));
    }
}

static void test_the_working_memory_is_wiped_with_the_result(void **state)
{
    static const struct dh_power empty;
    struct auth_crypto ops = begin_crypto();
    uint8_t exponent[AUTH_EXPONENT_MAX] = {1}, value[AUTH_DH_MAX];

    (void)state;
    raise_to(&ops, AUTH_FFDHE2048, NULL, exponent, value);
    assert_memory_equal(&crypto.power, &empty, sizeof(empty));
}

static uint8_t mac_of_the_stack[AUTH_HASH_MAX];

static void make_mac(void *arg)
{
    const enum auth_hash *hash = arg;
    struct auth_crypto ops = begin_crypto();

    ops.hmac(ops.ctx, *hash, (struct auth_bytes){"key", 3},
             &(struct auth_bytes){"text", 4}, 1, mac_of_the_stack);
}

/* Keys are derived with HMAC. */
static void test_an_hmac_stays_nowhere_on_the_stack(void **state)
{
    (void)state;
    for (unsigned int i = AUTH_SHA256; i < AUTH_HASHES; i++) {
        enum auth_hash hash = (enum auth_hash)i;

        own_stack_run(make_mac, &hash);
        assert_false(
            own_stack_has(mac_of_the_stack, auth_hash_len((uint8_t)hash)));
    }
}
