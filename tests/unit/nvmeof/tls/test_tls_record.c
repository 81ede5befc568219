/* SPDX-License-Identifier: BSD-2-Clause */
/* Records: AES-GCM against vectors of McGrew and Viega (test cases 4 and 16),
 * and what of a record is authenticated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "firmware/crypto/aead.h"
#include "nvmeof/tls/tls_record.h"
#include "tests/unit/nvmeof/tls/hex.h"

static struct crypto arithmetic;

static struct tls_crypto make_crypto(void)
{
    crypto_init(&arithmetic, NULL, NULL);
    return crypto_tls_ops(&arithmetic);
}

static void expect_vector(const char *key_digits, const char *cipher_digits,
                          const char *tag_digits)
{
    const struct tls_crypto crypto = make_crypto();
    uint8_t key[32], iv[12], header[20], plain[60], cipher[60], tag[16];
    uint8_t out[60], made[16];
    struct tls_aead aead;

    size_t key_len = hex_to(key, key_digits);

    hex_to(iv, "cafebabefacedbaddecaf888");
    hex_to(header, "feedfacedeadbeeffeedfacedeadbeefabaddad2");
    hex_to(plain, "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a31"
                  "8a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b3"
                  "9");
    hex_to(cipher, cipher_digits);
    hex_to(tag, tag_digits);
    crypto.aead_init(&aead, key, key_len);
    for (size_t cut = 0; cut <= sizeof(plain); cut++) { /* in two pieces */
        crypto.aead_begin(&aead, true, iv, (struct auth_bytes){header, 20});
        crypto.aead_add(&aead, plain, out, cut);
        crypto.aead_add(&aead, plain + cut, out + cut, sizeof(plain) - cut);
        crypto.aead_end(&aead, made);
        assert_memory_equal(out, cipher, sizeof(cipher));
        assert_memory_equal(made, tag, sizeof(tag));
        crypto.aead_begin(&aead, false, iv, (struct auth_bytes){header, 20});
        crypto.aead_add(&aead, out, out, cut);
        crypto.aead_add(&aead, out + cut, out + cut, sizeof(plain) - cut);
        crypto.aead_end(&aead, made);
        assert_memory_equal(out, plain, sizeof(plain));
        assert_memory_equal(made, tag, sizeof(tag));
    }
}

static void test_aes_gcm_gives_the_published_bytes_in_any_two_pieces(
    void **state)
{
    (void)state;
    expect_vector("feffe9928665731c6d6a8f9467308308",
                  "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329ac"
                  "a12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e09"
                  "1",
                  "5bc94fbc3221a5db94fae95ae7121a47");
    expect_vector(
        "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555"
        "d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f66"
        "2",
        "76fc6ece0f4e1768cddf8853bb2d551b");
}

/* ---- Records. */

static struct tls_half sender, receiver;

static void make_pair(const struct tls_crypto *crypto, enum auth_hash hash)
{
    const struct tls_secret secret = {{1, 2, 3, 4}};

    tls_half_init(&sender, crypto, hash, &secret);
    tls_half_init(&receiver, crypto, hash, &secret);
}

/* @return whether the record is authentic; it is decrypted in place */
static bool open_record(const struct tls_crypto *crypto, uint8_t *record,
                        size_t len)
{
    size_t inner = len - TLS_HEADER_LEN - TLS_TAG_LEN;

    tls_open_begin(&receiver, crypto, record);
    crypto->aead_add(&receiver.aead, record + TLS_HEADER_LEN,
                     record + TLS_HEADER_LEN, inner);
    return tls_open_end(&receiver, crypto, record + len - TLS_TAG_LEN);
}

static void test_records_are_opened_in_their_order_only(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    uint8_t first[64], second[64], copy[64];
    size_t len;

    (void)state;
    for (int hash = AUTH_SHA256; hash <= AUTH_SHA384; hash++) {
        make_pair(&crypto, (enum auth_hash)hash);
        len = tls_seal(&sender, &crypto, TLS_TYPE_DATA, (const uint8_t *)"one",
                       3, first);
        assert_int_equal(len, 5 + 3 + 17);
        assert_int_equal(tls_seal(&sender, &crypto, TLS_TYPE_DATA,
                                  (const uint8_t *)"two", 3, second),
                         len);
        memcpy(copy, first, sizeof(copy));
        assert_true(open_record(&crypto, first, len));
        assert_memory_equal(first + 5, "one\x17", 4);
        assert_false(open_record(&crypto, copy, len)); /* replayed */
        make_pair(&crypto, (enum auth_hash)hash);
        assert_false(open_record(&crypto, second, len)); /* too early */
    }
}

static void test_every_bit_of_a_record_is_authenticated(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    uint8_t record[64], bad[64];
    size_t len;

    (void)state;
    make_pair(&crypto, AUTH_SHA256);
    len = tls_seal(&sender, &crypto, TLS_TYPE_DATA, (const uint8_t *)"abc", 3,
                   record);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        make_pair(&crypto, AUTH_SHA256);
        memcpy(bad, record, len);
        bad[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        assert_false(open_record(&crypto, bad, len));
    }
    make_pair(&crypto, AUTH_SHA256);
    assert_true(open_record(&crypto, record, len));
}

static void test_a_header_overwrites_a_dirty_buffer(void **state)
{
    uint8_t buf[5];
    const struct tls_header header = {TLS_TYPE_ALERT, 0x102};

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    tls_header_emit(&header, buf);
    assert_memory_equal(buf, "\x15\x03\x03\x01\x02", 5);
}

static void test_headers_are_judged(void **state)
{
    static const struct {
        uint8_t bytes[5];
        enum tls_alert alert;
    } rows[] = {
        {{22, 3, 1, 0x02, 0x0a}, TLS_ALERT_NONE},
        {{22, 3, 3, 0x40, 0x00}, TLS_ALERT_NONE},
        {{22, 3, 3, 0x40, 0x01}, TLS_ALERT_OVERFLOW},
        {{23, 3, 3, 0x41, 0x00}, TLS_ALERT_NONE},
        {{23, 3, 3, 0x41, 0x01}, TLS_ALERT_OVERFLOW},
        {{19, 3, 3, 0, 1}, TLS_ALERT_UNEXPECTED},
        {{24, 3, 3, 0, 1}, TLS_ALERT_UNEXPECTED},
        {{22, 2, 0, 0, 1}, TLS_ALERT_VERSION},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct tls_header header;

        assert_int_equal(tls_header_parse(&header, rows[i].bytes),
                         rows[i].alert);
    }
}

static void test_a_key_ends_after_its_blocks(void **state)
{
    const struct tls_crypto crypto = make_crypto();
    uint8_t record[64];

    (void)state;
    make_pair(&crypto, AUTH_SHA256);
    /* Contents of 15 and 16 bytes, each with its type and a tag. */
    tls_seal(&sender, &crypto, TLS_TYPE_DATA,
             (const uint8_t *)"0123456789abcdef", 15, record);
    assert_int_equal(sender.blocks, 2);
    tls_seal(&sender, &crypto, TLS_TYPE_DATA,
             (const uint8_t *)"0123456789abcdef", 16, record);
    assert_int_equal(sender.blocks, 2 + 3);
    sender.blocks = TLS_BLOCKS_MAX - 1;
    assert_false(tls_half_is_spent(&sender));
    tls_seal(&sender, &crypto, TLS_TYPE_DATA, (const uint8_t *)"", 0, record);
    assert_true(tls_half_is_spent(&sender));
    /* Sequence numbers are not used twice either. */
    sender.blocks = 0;
    sender.sequence = UINT32_MAX;
    assert_true(tls_half_is_spent(&sender));
}
