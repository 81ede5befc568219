/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signatures of images.  The signature was made by OpenSSL 3.0 with the key of
 * RFC 8032 section 7.1, test 1, through tools/essd/storage/image.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/flash_ram/flash_ram.h"
#include "firmware/signature/signature.h"

#include <string.h>

enum { IMAGE_BYTES = 4096 };

static const uint8_t key[SIGNATURE_KEY_LEN] = {
    0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
    0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
    0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};

static const uint8_t signature[IMAGE_SIGNATURE_LEN] = {
    0xc9, 0x80, 0x93, 0xcf, 0x77, 0x96, 0xbc, 0x10, 0xf8, 0xf7, 0x87,
    0x28, 0xa0, 0xe0, 0x5a, 0xab, 0xd1, 0xc3, 0xf8, 0xbd, 0x0c, 0x64,
    0xa0, 0x47, 0x24, 0xcf, 0x96, 0x7c, 0xc5, 0x9c, 0x65, 0x57, 0x51,
    0xcd, 0xa0, 0x12, 0x01, 0x7b, 0xce, 0x34, 0x98, 0x92, 0x0a, 0xf9,
    0x7d, 0x21, 0x1d, 0x78, 0x4d, 0x32, 0x76, 0x33, 0x9a, 0x19, 0x54,
    0x08, 0x32, 0x8c, 0xb3, 0x9b, 0xcf, 0x50, 0x71, 0x07};

static struct image_header signed_header(uint8_t *buf)
{
    static uint8_t image[IMAGE_BYTES];
    struct image_header header;

    for (size_t i = 0; i < sizeof(image); i++) {
        image[i] = (uint8_t)i;
    }
    header = flash_ram_header("1.2.3", 0, image, sizeof(image));
    header.security = 5;
    header.is_signed = true;
    memcpy(header.signature, signature, sizeof(signature));
    image_header_emit(&header, buf);
    return header;
}

static bool is_accepted(const uint8_t *buf, const uint8_t *with)
{
    struct image_header header;

    return image_header_parse(&header, buf, IMAGE_HEADER_LEN) == IMAGE_OK &&
           signature_is_good(&header, buf, with);
}

static void test_a_signature_of_openssl_is_accepted(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];

    (void)state;
    (void)signed_header(buf);
    assert_true(is_accepted(buf, key));
    image_header_set_sequence(buf, 77);
    assert_true(is_accepted(buf, key));
}

static void test_every_flipped_bit_that_is_signed_is_noticed(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];

    (void)state;
    (void)signed_header(buf);
    /* Every eleventh bit, because each check takes long with sanitizers. */
    for (size_t bit = 0; bit < 8 * 224; bit += 11) {
        size_t at = bit / 8;

        if (at >= 12 && at < 16) {
            continue; /* the sequence number is not signed */
        }
        buf[at] ^= (uint8_t)(1u << bit % 8);
        image_header_set_sequence(buf, 0); /* makes the CRC right */
        assert_false(is_accepted(buf, key));
        buf[at] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_another_key_is_refused(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    uint8_t other[SIGNATURE_KEY_LEN];
    static const uint8_t zero[SIGNATURE_KEY_LEN];

    (void)state;
    (void)signed_header(buf);
    memcpy(other, key, sizeof(other));
    other[0] ^= 1;
    assert_false(is_accepted(buf, other));
    assert_false(is_accepted(buf, zero));
}

static void test_an_image_without_a_signature_is_refused(void **state)
{
    uint8_t buf[IMAGE_HEADER_LEN];
    struct image_header header;

    (void)state;
    header = signed_header(buf);
    header.is_signed = false;
    image_header_emit(&header, buf);
    assert_false(is_accepted(buf, key));
    header = signed_header(buf);
    header.format = 1;
    image_header_emit(&header, buf);
    assert_false(is_accepted(buf, key));
}

static void test_the_digest_is_sha_512(void **state)
{
    /* SHA-512 of "abc": FIPS 180-2 appendix C.1. */
    static const uint8_t expected[] = {0xdd, 0xaf, 0x35, 0xa1,
                                       0x93, 0x61, 0x7a, 0xba};
    struct image_digest digest;
    uint8_t hash[IMAGE_HASH_LEN];

    (void)state;
    image_digest_begin(&digest);
    image_digest_add(&digest, (const uint8_t *)"a", 1);
    image_digest_add(&digest, (const uint8_t *)"bc", 2);
    image_digest_end(&digest, hash);
    assert_memory_equal(hash, expected, sizeof(expected));
}
