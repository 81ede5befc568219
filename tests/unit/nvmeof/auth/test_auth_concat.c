/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DH-HMAC-CHAP with secure channel concatenation: who gets a generated key, and
 * which.  The literal values come from Python's hashlib and hmac.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/auth_secrets.h"
#include "tests/auth_host.h"

#define HOST_NQN                                                               \
    "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
#define SUB_NQN "nqn.2014-08.org.example:essd"

enum { MESSAGE_MAX = 4096 };

static struct crypto arithmetic;
static struct auth_crypto ops;
static struct auth_key host_key, ctrl_key;
static struct auth_peer peer;
static struct auth_session session;
static struct auth_host host;
static uint8_t message[MESSAGE_MAX];

static void count_up(void *ctx, uint8_t *buf, size_t len)
{
    uint8_t *next = ctx;

    while (len-- > 0) {
        *buf++ = (*next)++;
    }
}

/* A session of a host that asks for `concat`, where it may ask for `allowed`.
 */
static void begin_session(uint8_t concat, uint8_t allowed,
                          const char *ctrl_secret)
{
    static uint8_t next_random;

    next_random = 1;
    crypto_init(&arithmetic, count_up, &next_random);
    ops = crypto_ops(&arithmetic);
    assert_true(auth_key_parse(&host_key, SECRET));
    assert_true(auth_key_parse(&ctrl_key, DRIVE_SECRET));
    peer = (struct auth_peer){
        .hostnqn = HOST_NQN,
        .subnqn = SUB_NQN,
        .host_key = &host_key,
        .ctrl_key = &ctrl_key,
        .concat = allowed,
    };
    auth_start(&session);
    auth_host_init(&host, HOST_NQN, SUB_NQN, SECRET, ctrl_secret);
    host.concat = concat;
}

static void send_message(size_t len)
{
    auth_message(&session, &ops, &peer, message, len);
    if (auth_is_computing(&session)) {
        auth_begin_power(&session, &ops);
        while (!ops.dh_step(ops.ctx)) {
        }
        auth_end_power(&session, &ops, &peer);
    }
}

static void send_negotiate(uint8_t hashes, uint8_t dhs)
{
    send_message(auth_host_negotiate(&host, hashes, dhs, message));
}

/* @return the length of the Reply in `message` */
static size_t make_reply(void)
{
    uint8_t challenge[MESSAGE_MAX];
    size_t len = auth_answer_len(&session);

    auth_answer(&session, challenge);
    return auth_host_reply(&host, challenge, len, message);
}

static void assert_failure(enum auth_failure explanation)
{
    assert_int_equal(session.state, AUTH_FAILURE1);
    assert_int_equal(session.failure, explanation);
}

static void assert_bytes(const uint8_t *bytes, size_t len, const char *expected)
{
    char text[2 * AUTH_HASH_MAX + 1];

    for (size_t i = 0; i < len; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    assert_string_equal(text, expected);
}

static void count_from(uint8_t *bytes, uint8_t first)
{
    for (uint8_t i = 0; i < AUTH_PSK_MAX; i++) {
        bytes[i] = (uint8_t)(first + i);
    }
}

static void test_a_generated_key_is_that_of_python(void **state)
{
    static const struct {
        enum auth_hash hash;
        const char *psk;
    } rows[] = {
        {AUTH_SHA256, "43afd1fab29fabe9e62f9f047a189300"
                      "53b9c939ec32954b5545bf674e068e42"},
        {AUTH_SHA384, "6ded3234f70c298fd7ace55257eb551b"
                      "62c13f0bed873fd8b84e011b20543178"
                      "874679f1a1b7a930c935992ac38c8797"},
    };
    uint8_t secret_hash[AUTH_PSK_MAX], c1[AUTH_PSK_MAX], c2[AUTH_PSK_MAX];
    uint8_t psk[AUTH_PSK_MAX];

    (void)state;
    begin_session(0, 0, "");
    count_from(secret_hash, 0);
    count_from(c1, 0x40);
    count_from(c2, 0x80);
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        auth_generate_psk(&ops, rows[row].hash, secret_hash, c1, c2, psk);
        assert_bytes(psk, auth_hash_len((uint8_t)rows[row].hash),
                     rows[row].psk);
    }
}

static void test_a_response_depends_on_sc_c(void **state)
{
    static const struct {
        uint8_t concat;
        const char *response;
    } rows[] = {
        {AUTH_CONCAT_NONE, "83dea8a1b92385c630e844fa464868a0"
                           "27717200c645e696454e5f48793c3314"},
        {AUTH_CONCAT_NEW, "a114d83bdf9f8f8a38a46a869763171f"
                          "fdbfe5b0e62337712e6f7bd87bf101bf"},
        {AUTH_CONCAT_REPLACE, "c4ee55fc63fb7be3b58164b3ecc76555"
                              "6d437e525d3f0b347e0e58af13451cf3"},
    };
    uint8_t secret_hash[AUTH_PSK_MAX], c1[AUTH_PSK_MAX];
    uint8_t response[AUTH_HASH_MAX];

    (void)state;
    begin_session(0, 0, "");
    count_from(secret_hash, 0);
    count_from(c1, 0x40);
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        auth_compute_response(&ops,
                              &(struct auth_response){
                                  .hash = AUTH_SHA256,
                                  .key = &host_key,
                                  .challenge = c1,
                                  .seqnum = 0x01020304,
                                  .t_id = 0xbeef,
                                  .concat = rows[row].concat,
                                  .role = "HostHost",
                                  .nqn = HOST_NQN,
                                  .peer_nqn = SUB_NQN,
                                  .secret_hash = secret_hash,
                              },
                              response);
        assert_bytes(response, 32, rows[row].response);
    }
}

static void test_both_sides_generate_the_same_key(void **state)
{
    (void)state;
    for (uint8_t concat = AUTH_CONCAT_NEW; concat <= AUTH_CONCAT_REPLACE;
         concat++) {
        for (uint8_t hash = AUTH_SHA256; hash <= AUTH_SHA384; hash++) {
            begin_session(concat, concat, "");
            send_negotiate((uint8_t)BIT(hash), BIT(AUTH_FFDHE2048));
            send_message(make_reply());
            /* The challenge of the host is for the key only. */
            assert_int_equal(auth_answer_len(&session), AUTH_SUCCESS1_LEN);
            auth_answer(&session, message);
            assert_true(auth_host_accepts(&host, message, AUTH_SUCCESS1_LEN));
            assert_int_equal(session.state, AUTH_PROVEN);
            assert_int_equal(session.concat, concat);
            assert_int_equal(session.hash, hash);
            assert_memory_equal(session.psk, host.psk, auth_hash_len(hash));
        }
    }
}

static void test_both_sides_prove_themselves_and_generate_a_key(void **state)
{
    uint8_t before[AUTH_PSK_MAX] = {0};
    size_t len;

    (void)state;
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, DRIVE_SECRET);
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048));
    send_message(make_reply());
    len = auth_answer_len(&session);
    assert_int_equal(len, AUTH_SUCCESS1_LEN + 32);
    auth_answer(&session, message);
    assert_true(auth_host_accepts(&host, message, len));
    assert_int_equal(session.state, AUTH_SUCCESS2);
    auth_success2_emit(message, host.t_id);
    send_message(AUTH_SUCCESS2_LEN);
    assert_int_equal(session.state, AUTH_PROVEN);
    assert_memory_equal(session.psk, host.psk, 32);
    auth_wipe(&session);
    assert_memory_equal(session.psk, before, sizeof(before));
}

static void test_a_host_asks_only_for_what_it_may_have(void **state)
{
    static const uint8_t values[] = {AUTH_CONCAT_NONE,    1, AUTH_CONCAT_NEW,
                                     AUTH_CONCAT_REPLACE, 4, 0xff};
    static const uint8_t allowed[] = {AUTH_CONCAT_NONE, AUTH_CONCAT_NEW,
                                      AUTH_CONCAT_REPLACE};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        for (size_t j = 0; j < ARRAY_LEN(allowed); j++) {
            begin_session(values[i], allowed[j], "");
            send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048));
            if (values[i] == AUTH_CONCAT_NONE || values[i] == allowed[j]) {
                assert_int_equal(session.state, AUTH_CHALLENGE);
            } else {
                assert_failure(AUTH_FAILED_CONCAT);
            }
        }
    }
}

/* SHA-512 has no cipher suite, and the null group no secret. */
static void test_algorithms_that_make_no_key_are_not_chosen(void **state)
{
    (void)state;
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    send_negotiate(0x0e, 0x3f);
    assert_int_equal(session.state, AUTH_CHALLENGE);
    assert_int_equal(session.hash, AUTH_SHA256);
    assert_int_equal(session.dh, AUTH_FFDHE2048);
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    send_negotiate(BIT(AUTH_SHA512), 0x3f);
    assert_failure(AUTH_FAILED_HASH);
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    send_negotiate(0x0e, BIT(AUTH_DH_NULL));
    assert_failure(AUTH_FAILED_DH);
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    peer.least_hash = AUTH_SHA512;
    send_negotiate(0x0e, 0x3f);
    assert_failure(AUTH_FAILED_HASH);
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    peer.least_dh = AUTH_FFDHE3072;
    send_negotiate(0x0e, BIT(AUTH_FFDHE2048) | BIT(AUTH_FFDHE3072));
    assert_int_equal(session.dh, AUTH_FFDHE3072);
}

/* Without C2 nothing of the host is in the key. */
static void test_a_reply_without_a_challenge_fails(void **state)
{
    size_t len;

    (void)state;
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048));
    len = make_reply();
    message[AUTH_REPLY_CVALID] = 0;
    send_message(len);
    assert_failure(AUTH_FAILED_PAYLOAD);
}

/* Somebody between both sides changes SC_C: the host's proof is for another
 * one. */
static void test_a_changed_sc_c_fails(void **state)
{
    size_t len;

    (void)state;
    begin_session(AUTH_CONCAT_NEW, AUTH_CONCAT_NEW, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                              message);
    message[AUTH_NEGOTIATE_SC_C] = AUTH_CONCAT_NONE;
    send_message(len);
    send_message(make_reply());
    assert_failure(AUTH_FAILED_PROOF);
}
