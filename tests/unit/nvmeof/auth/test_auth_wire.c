/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of each message.  Literal bytes follow the tables of NVM Express
 * Base 2.0 section 8.13.5. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/auth/auth_wire.h"

/* What Linux 6.12 sends. */
static const uint8_t negotiate_linux[72] = {
    0x00,     0x00, 0, 0, 0x34, 0x12, 0x00, 0x01, /* T_ID 1234h, one protocol */
    0x01,     0x00, 3, 6, 1,    2,    3,          /* three hash functions */
    [42] = 0, 1,    2, 3, 4,    5,                /* six groups */
};

static void test_negotiate_lists_hashes_and_groups(void **state)
{
    struct auth_negotiate negotiate;
    uint8_t buf[72];

    (void)state;
    assert_true(auth_negotiate_parse(&negotiate, negotiate_linux,
                                     sizeof(negotiate_linux)));
    assert_int_equal(negotiate.t_id, 0x1234);
    assert_int_equal(negotiate.concat, 0);
    assert_true(negotiate.has_dhchap);
    assert_int_equal(negotiate.hashes, 0x0e);
    assert_int_equal(negotiate.dhs, 0x3f);
    memset(buf, 0xa5, sizeof(buf));
    auth_negotiate_emit(buf, &negotiate);
    assert_memory_equal(buf, negotiate_linux, sizeof(buf));
}

static void test_negotiate_ignores_unknown_identifiers(void **state)
{
    struct auth_negotiate negotiate;
    uint8_t buf[72];

    (void)state;
    memcpy(buf, negotiate_linux, sizeof(buf));
    buf[12] = 0; /* reserved */
    buf[13] = 0xe0;
    buf[42] = 6;
    assert_true(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    assert_int_equal(negotiate.hashes, BIT(AUTH_SHA512));
    assert_int_equal(negotiate.dhs, 0x3e);
}

static void test_negotiate_takes_dhchap_from_several_protocols(void **state)
{
    struct auth_negotiate negotiate;
    uint8_t buf[136] = {0};

    (void)state;
    memcpy(buf, negotiate_linux, 8);
    buf[7] = 2;
    buf[8] = 0x77; /* another protocol, whose lists have another form */
    buf[10] = 0xff;
    memcpy(buf + 72, negotiate_linux + 8, 64);
    assert_true(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    assert_int_equal(negotiate.hashes, 0x0e);
    buf[72] = 0x78;
    assert_true(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    assert_false(negotiate.has_dhchap);
}

static void test_negotiate_refuses_wrong_lengths(void **state)
{
    struct auth_negotiate negotiate;
    uint8_t buf[72];

    (void)state;
    for (size_t len = 0; len < sizeof(negotiate_linux); len++) {
        assert_false(auth_negotiate_parse(&negotiate, negotiate_linux, len));
    }
    memcpy(buf, negotiate_linux, sizeof(buf));
    buf[7] = 0;
    assert_false(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    buf[7] = 2;
    assert_false(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    buf[7] = 1;
    buf[10] = 31;
    assert_false(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
    buf[10] = 3;
    buf[11] = 31;
    assert_false(auth_negotiate_parse(&negotiate, buf, sizeof(buf)));
}

static void test_challenge_has_its_bytes(void **state)
{
    uint8_t c1[32], value[256], buf[AUTH_CHALLENGE_MAX],
        expected[304] = {
            0x01, 0x01, 0,    0,    0x34, 0x12, 32,   0,
            1,    1,    0x00, 0x01, 0x78, 0x56, 0x34, 0x12,
        };
    struct auth_challenge challenge = {
        .t_id = 0x1234,
        .hash = AUTH_SHA256,
        .dh = AUTH_FFDHE2048,
        .seqnum = 0x12345678,
        .c1 = c1,
        .dh_value = value,
    };

    (void)state;
    memset(c1, 0xc1, sizeof(c1));
    memset(value, 0xd1, sizeof(value));
    memset(expected + 16, 0xc1, 32);
    memset(expected + 48, 0xd1, 256);
    memset(buf, 0xa5, sizeof(buf));
    assert_int_equal(auth_challenge_emit(buf, &challenge), sizeof(expected));
    assert_memory_equal(buf, expected, sizeof(expected));
    for (size_t len = 0; len < sizeof(expected); len++) {
        assert_false(auth_challenge_parse(&challenge, buf, len));
    }
    assert_true(auth_challenge_parse(&challenge, buf, sizeof(expected)));
    assert_int_equal(challenge.seqnum, 0x12345678);
    assert_ptr_equal(challenge.dh_value, buf + 48);
}

static void test_reply_has_its_bytes_and_refuses_truncations(void **state)
{
    uint8_t r1[32], c2[32], value[256], buf[AUTH_REPLY_MAX],
        expected[336] = {
            0x01, 0x02, 0,    0,    0x34, 0x12, 32,   0,
            1,    0,    0x00, 0x01, 0x78, 0x56, 0x34, 0x12,
        };
    struct auth_reply reply = {
        .t_id = 0x1234,
        .hash_len = 32,
        .has_challenge = true,
        .dh_len = 256,
        .seqnum = 0x12345678,
        .r1 = r1,
        .c2 = c2,
        .dh_value = value,
    };

    (void)state;
    memset(r1, 0x11, sizeof(r1));
    memset(c2, 0xc2, sizeof(c2));
    memset(value, 0xd1, sizeof(value));
    memset(expected + 16, 0x11, 32);
    memset(expected + 48, 0xc2, 32);
    memset(expected + 80, 0xd1, 256);
    memset(buf, 0xa5, sizeof(buf));
    assert_int_equal(auth_reply_emit(buf, &reply), sizeof(expected));
    assert_memory_equal(buf, expected, sizeof(expected));
    for (size_t len = 0; len < sizeof(expected); len++) {
        assert_false(auth_reply_parse(&reply, expected, len));
    }
    assert_true(auth_reply_parse(&reply, expected, sizeof(expected)));
    assert_true(reply.has_challenge);
    assert_int_equal(reply.seqnum, 0x12345678);
    assert_ptr_equal(reply.r1, expected + 16);
    assert_ptr_equal(reply.c2, expected + 48);
    assert_ptr_equal(reply.dh_value, expected + 80);
}

static void test_success1_has_a_response_only_if_asked_for(void **state)
{
    uint8_t r2[32], buf[AUTH_SUCCESS1_MAX],
        expected[48] = {
            0x01, 0x03, 0, 0, 0x34, 0x12, 32, 0, 1,
        };
    struct auth_success1 success1 = {.t_id = 0x1234, .hash_len = 32, .r2 = r2};

    (void)state;
    memset(r2, 0x22, sizeof(r2));
    memset(expected + 16, 0x22, 32);
    memset(buf, 0xa5, sizeof(buf));
    assert_int_equal(auth_success1_emit(buf, &success1), 48);
    assert_memory_equal(buf, expected, 48);
    for (size_t len = 0; len < sizeof(expected); len++) {
        assert_false(auth_success1_parse(&success1, expected, len));
    }
    success1.r2 = NULL;
    memset(buf, 0xa5, sizeof(buf));
    assert_int_equal(auth_success1_emit(buf, &success1), 16);
    expected[8] = 0;
    assert_memory_equal(buf, expected, 16);
    assert_true(auth_success1_parse(&success1, expected, 16));
    assert_null(success1.r2);
}

static void test_failure_has_reason_1_and_an_explanation(void **state)
{
    static const uint8_t expected[8] = {0x00, 0xf0, 0, 0, 0x34, 0x12, 1, 7};
    struct auth_failure_message failure = {0x1234, AUTH_ID_FAILURE1, 7};
    uint8_t buf[8];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    auth_failure_emit(buf, &failure);
    assert_memory_equal(buf, expected, sizeof(buf));
    for (size_t len = 0; len < sizeof(expected); len++) {
        assert_false(auth_failure_parse(&failure, expected, len));
    }
    assert_true(auth_failure_parse(&failure, expected, sizeof(expected)));
    assert_int_equal(failure.explanation, 7);
}

static void test_success2_is_a_header_of_16_bytes(void **state)
{
    static const uint8_t expected[16] = {0x01, 0x04, 0, 0, 0x34, 0x12};
    uint8_t buf[16];
    struct auth_header header;

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    auth_success2_emit(buf, 0x1234);
    assert_memory_equal(buf, expected, sizeof(buf));
    for (size_t len = 0; len < AUTH_HEADER_LEN; len++) {
        assert_false(auth_header_parse(&header, buf, len));
    }
    assert_true(auth_header_parse(&header, buf, sizeof(buf)));
    assert_int_equal(header.type, AUTH_TYPE_DHCHAP);
    assert_int_equal(header.id, AUTH_ID_SUCCESS2);
}
