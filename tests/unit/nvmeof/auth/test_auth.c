/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transactions of DH-HMAC-CHAP: every outcome, and every message in every
 * state.  The expected responses come from Python's hashlib and hmac.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/crypto/crypto.h"
#include "nvmeof/auth/auth.h"

#define HOST_NQN                                                               \
    "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
#define SUB_NQN "nqn.2014-08.org.example:essd"

enum { T_ID = 0xbeef };

static struct crypto arithmetic;
static struct auth_crypto ops;
static uint8_t next_random;
static struct auth_key host_key, ctrl_key;
static struct auth_peer peer;
static struct auth_session session;

static void count_up(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    while (len-- > 0) {
        *buf++ = next_random++;
    }
}

static void set_key(struct auth_key *key, enum auth_hash hash, uint8_t len,
                    uint8_t first)
{
    *key = (struct auth_key){.len = len, .hash = (uint8_t)hash};
    for (uint8_t i = 0; i < len; i++) {
        key->bytes[i] = (uint8_t)(first + i);
    }
}

static void begin_session(void)
{
    next_random = 1;
    crypto_init(&arithmetic, count_up, NULL);
    ops = crypto_ops(&arithmetic);
    set_key(&host_key, AUTH_SHA256, 32, 0);
    set_key(&ctrl_key, AUTH_SHA512, 64, 0x80);
    peer = (struct auth_peer){
        .hostnqn = HOST_NQN,
        .subnqn = SUB_NQN,
        .host_key = &host_key,
        .ctrl_key = &ctrl_key,
    };
    auth_start(&session);
}

static void send_message(const uint8_t *buf, size_t len)
{
    auth_message(&session, &ops, &peer, buf, len);
    if (auth_is_computing(&session)) {
        assert_int_equal(auth_answer_len(&session), 0);
        auth_begin_power(&session, &ops);
        while (!ops.dh_step(ops.ctx)) {
        }
        auth_end_power(&session, &ops, &peer);
    }
}

static void send_negotiate(uint8_t hashes, uint8_t dhs)
{
    uint8_t buf[AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN];

    auth_negotiate_emit(buf, &(struct auth_negotiate){.t_id = T_ID,
                                                      .has_dhchap = true,
                                                      .hashes = hashes,
                                                      .dhs = dhs});
    send_message(buf, sizeof(buf));
}

static void assert_failure(enum auth_failure explanation)
{
    uint8_t buf[AUTH_FAILURE_LEN];
    struct auth_failure_message failure;

    assert_int_equal(session.state, AUTH_FAILURE1);
    assert_int_equal(auth_answer_len(&session), AUTH_FAILURE_LEN);
    auth_answer(&session, buf);
    assert_true(auth_failure_parse(&failure, buf, sizeof(buf)));
    assert_int_equal(failure.id, AUTH_ID_FAILURE1);
    assert_int_equal(failure.t_id, session.t_id);
    assert_int_equal(failure.explanation, explanation);
    assert_int_equal(session.state, AUTH_REFUSED);
}

/* A host: what it computes from the challenge. */
struct host {
    uint8_t challenge[AUTH_CHALLENGE_MAX];
    struct auth_challenge parsed;
    uint8_t r1[AUTH_HASH_MAX], c2[AUTH_HASH_MAX], public[AUTH_DH_MAX];
    uint8_t secret_hash[AUTH_HASH_MAX];
    struct crypto crypto;
    struct auth_reply reply;
};

static void raise_power(const struct auth_crypto *crypto, enum auth_dh dh,
                        const uint8_t *base, const uint8_t *exponent,
                        uint8_t *result)
{
    crypto->dh_start(crypto->ctx, dh, base, exponent);
    while (!crypto->dh_step(crypto->ctx)) {
    }
    crypto->dh_result(crypto->ctx, result);
}

/* Take the challenge, and prepare a correct reply. */
static void take_challenge(struct host *host, bool wants_proof)
{
    static const uint8_t exponent[AUTH_EXPONENT_MAX] = {9, 8, 7, 6, 5};
    size_t len = auth_answer_len(&session);
    uint8_t secret[AUTH_DH_MAX];
    struct auth_crypto crypto;
    uint16_t dh_len;

    assert_true(len <= sizeof(host->challenge));
    auth_answer(&session, host->challenge);
    assert_true(auth_challenge_parse(&host->parsed, host->challenge, len));
    assert_int_equal(host->parsed.t_id, T_ID);
    dh_len = auth_dh_len(host->parsed.dh);
    crypto_init(&host->crypto, count_up, NULL);
    crypto = crypto_ops(&host->crypto);
    if (dh_len != 0) {
        raise_power(&crypto, (enum auth_dh)host->parsed.dh, NULL, exponent,
                    host->public);
        raise_power(&crypto, (enum auth_dh)host->parsed.dh,
                    host->parsed.dh_value, exponent, secret);
        crypto.hash(crypto.ctx, (enum auth_hash)host->parsed.hash, secret,
                    dh_len, host->secret_hash);
    }
    auth_compute_response(
        &crypto,
        &(struct auth_response){
            .hash = (enum auth_hash)host->parsed.hash,
            .key = &host_key,
            .challenge = host->parsed.c1,
            .seqnum = host->parsed.seqnum,
            .t_id = T_ID,
            .role = "HostHost",
            .nqn = HOST_NQN,
            .peer_nqn = SUB_NQN,
            .secret_hash = dh_len != 0 ? host->secret_hash : NULL,
        },
        host->r1);
    memset(host->c2, 0xc2, sizeof(host->c2));
    host->reply = (struct auth_reply){
        .t_id = T_ID,
        .hash_len = auth_hash_len(host->parsed.hash),
        .has_challenge = wants_proof,
        .dh_len = dh_len,
        .seqnum = wants_proof ? 0x77 : 0,
        .r1 = host->r1,
        .c2 = host->c2,
        .dh_value = host->public,
    };
}

static void send_reply(const struct host *host)
{
    uint8_t buf[AUTH_REPLY_MAX];

    send_message(buf, auth_reply_emit(buf, &host->reply));
}

static void test_responses_are_those_of_python(void **state)
{
    static const struct {
        enum auth_hash hash, transformation;
        uint8_t key_len;
        bool has_secret;
        const char *response;
    } rows[] = {
        {AUTH_SHA256, AUTH_SHA256, 32, false,
         "3cdb3d7e13f7cfe6659e728415b1b697"
         "33a372bd4799e01b1452e9d26a1b306e"},
        {AUTH_SHA256, AUTH_SHA256, 32, true,
         "284a3d09399146abc7fb3932019da8b5"
         "34cbf7b083135bf059485274135c4843"},
        {AUTH_SHA384, AUTH_HASH_NONE, 32, false,
         "e8f17d707ecff7a1111f615788844521110773f86c5618b5"
         "7c9f14f288655aa1793751acaebec3b5f19082f33d95adc1"},
        {AUTH_SHA384, AUTH_HASH_NONE, 32, true,
         "da52e61baaf41a7c032f0fb967afd59b6db1822d921eea7d"
         "dc5a0055a4e11cd9bc6741f90c7c48fd296553dd85571e55"},
        {AUTH_SHA512, AUTH_SHA384, 48, false,
         "5923a82e82e31acf2027cd4e9f3f286818739d78baf5dffbed3d16bf1c6e5f5a"
         "ab5aaada4637e70bcdcd07ef1540ccf4e90dd61467ba87c35c985960955e4793"},
        {AUTH_SHA512, AUTH_SHA384, 48, true,
         "e75ffd00a61c4f82944e76fd864117b73e9ca26a9868f8a8ebb3f9b2f42d69a9"
         "42650c965d73c7806843a9709c046649d20f93c290c71822f8cfbf7fc20e46be"},
        {AUTH_SHA256, AUTH_SHA512, 64, true,
         "40c641e8ad3b063f9d12d2dfec8899be"
         "993bebbb1e43e75ac6b75460891dd22f"},
    };
    uint8_t challenge[AUTH_HASH_MAX], response[AUTH_HASH_MAX];
    uint8_t secret[256], secret_hash[AUTH_HASH_MAX];

    (void)state;
    begin_session();
    memset(secret, 0x42, sizeof(secret));
    for (uint8_t i = 0; i < sizeof(challenge); i++) {
        challenge[i] = (uint8_t)(0xa0 + i);
    }
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        char text[2 * AUTH_HASH_MAX + 1];
        struct auth_key key;

        set_key(&key, rows[row].transformation, rows[row].key_len, 0);
        ops.hash(ops.ctx, rows[row].hash, secret, sizeof(secret), secret_hash);
        auth_compute_response(
            &ops,
            &(struct auth_response){
                .hash = rows[row].hash,
                .key = &key,
                .challenge = challenge,
                .seqnum = 0x12345678,
                .t_id = T_ID,
                .role = "HostHost",
                .nqn = HOST_NQN,
                .peer_nqn = SUB_NQN,
                .secret_hash = rows[row].has_secret ? secret_hash : NULL,
            },
            response);
        for (size_t i = 0; i < auth_hash_len((uint8_t)rows[row].hash); i++) {
            (void)snprintf(text + 2 * i, 3, "%02x", response[i]);
        }
        assert_string_equal(text, rows[row].response);
    }
}

static void test_a_host_proves_itself_with_every_hash_and_group(void **state)
{
    (void)state;
    for (uint8_t hash = AUTH_SHA256; hash < AUTH_HASHES; hash++) {
        for (uint8_t dh = AUTH_DH_NULL; dh < AUTH_DHS; dh++) {
            uint8_t buf[AUTH_SUCCESS1_MAX];
            struct host host;

            begin_session();
            send_negotiate((uint8_t)BIT(hash), (uint8_t)BIT(dh));
            take_challenge(&host, false);
            assert_int_equal(host.parsed.hash, hash);
            assert_int_equal(host.parsed.dh, dh);
            send_reply(&host);
            assert_int_equal(auth_answer_len(&session), AUTH_SUCCESS1_LEN);
            assert_int_equal(session.state, AUTH_SUCCESS1);
            auth_answer(&session, buf);
            assert_int_equal(session.state, AUTH_PROVEN);
        }
    }
}

static void test_the_drive_proves_itself_when_asked(void **state)
{
    (void)state;
    for (uint8_t dh = AUTH_DH_NULL; dh <= AUTH_FFDHE2048; dh++) {
        uint8_t buf[AUTH_SUCCESS1_MAX], r2[AUTH_HASH_MAX];
        struct auth_success1 success1;
        struct host host;
        size_t len;

        begin_session();
        send_negotiate(BIT(AUTH_SHA256), (uint8_t)BIT(dh));
        take_challenge(&host, true);
        send_reply(&host);
        len = auth_answer_len(&session);
        auth_answer(&session, buf);
        assert_true(auth_success1_parse(&success1, buf, len));
        auth_compute_response(
            &ops,
            &(struct auth_response){
                .hash = AUTH_SHA256,
                .key = &ctrl_key,
                .challenge = host.c2,
                .seqnum = 0x77,
                .t_id = T_ID,
                .role = "Controller",
                .nqn = SUB_NQN,
                .peer_nqn = HOST_NQN,
                .secret_hash = dh != AUTH_DH_NULL ? host.secret_hash : NULL,
            },
            r2);
        assert_non_null(success1.r2);
        assert_memory_equal(success1.r2, r2, 32);
        assert_int_equal(session.state, AUTH_SUCCESS2);
        auth_success2_emit(buf, T_ID);
        send_message(buf, AUTH_SUCCESS2_LEN);
        assert_int_equal(session.state, AUTH_PROVEN);
    }
}

static void test_a_wrong_key_fails(void **state)
{
    struct host host;

    (void)state;
    for (uint8_t dh = AUTH_DH_NULL; dh <= AUTH_FFDHE2048; dh++) {
        begin_session();
        send_negotiate(BIT(AUTH_SHA256), (uint8_t)BIT(dh));
        take_challenge(&host, false);
        host.r1[31] ^= 1; /* as good as another key */
        send_reply(&host);
        assert_failure(AUTH_FAILED_PROOF);
    }
}

static void test_a_host_that_wants_proof_of_a_drive_without_key_fails(
    void **state)
{
    struct host host;

    (void)state;
    begin_session();
    memset(&ctrl_key, 0, sizeof(ctrl_key));
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_DH_NULL));
    take_challenge(&host, true);
    send_reply(&host);
    assert_failure(AUTH_FAILED_PROOF);
}

static void test_a_replayed_reply_fails(void **state)
{
    struct host host, later;

    (void)state;
    begin_session();
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_DH_NULL));
    take_challenge(&host, false);
    auth_start(&session);
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_DH_NULL));
    take_challenge(&later, false);
    assert_memory_not_equal(host.parsed.c1, later.parsed.c1, 32);
    assert_int_not_equal(host.parsed.seqnum, later.parsed.seqnum);
    send_reply(&host);
    assert_failure(AUTH_FAILED_PROOF);
}

static void test_a_reflected_challenge_fails(void **state)
{
    struct host host;

    (void)state;
    begin_session();
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_DH_NULL));
    take_challenge(&host, true);
    memcpy(host.c2, host.parsed.c1, 32);
    send_reply(&host);
    assert_failure(AUTH_FAILED_PROOF);
}

static void test_the_weakest_accepted_algorithms_are_chosen(void **state)
{
    (void)state;
    begin_session();
    send_negotiate(0x0e, 0x3f);
    assert_int_equal(session.hash, AUTH_SHA256);
    assert_int_equal(session.dh, AUTH_DH_NULL);
    begin_session();
    peer.least_hash = AUTH_SHA384;
    peer.least_dh = AUTH_FFDHE2048;
    send_negotiate(0x0e, 0x3f);
    assert_int_equal(session.hash, AUTH_SHA384);
    assert_int_equal(session.dh, AUTH_FFDHE2048);
}

static void test_a_downgrade_below_the_least_fails(void **state)
{
    (void)state;
    begin_session();
    peer.least_hash = AUTH_SHA512;
    send_negotiate(BIT(AUTH_SHA256) | BIT(AUTH_SHA384), 0x3f);
    assert_failure(AUTH_FAILED_HASH);
    begin_session();
    peer.least_dh = AUTH_FFDHE3072;
    send_negotiate(0x0e, BIT(AUTH_DH_NULL) | BIT(AUTH_FFDHE2048));
    assert_failure(AUTH_FAILED_DH);
    begin_session();
    send_negotiate(0, 0x3f);
    assert_failure(AUTH_FAILED_HASH);
    begin_session();
    send_negotiate(0x0e, 0);
    assert_failure(AUTH_FAILED_DH);
}

static void test_other_protocols_and_secure_channels_fail(void **state)
{
    uint8_t buf[AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN];
    struct auth_negotiate negotiate = {.t_id = T_ID, .hashes = 2, .dhs = 1};

    (void)state;
    begin_session();
    auth_negotiate_emit(buf, &negotiate);
    send_message(buf, sizeof(buf));
    assert_failure(AUTH_FAILED_PROTOCOL);
    begin_session();
    negotiate.has_dhchap = true;
    negotiate.concat = AUTH_CONCAT_NEW;
    auth_negotiate_emit(buf, &negotiate);
    send_message(buf, sizeof(buf));
    assert_failure(AUTH_FAILED_CONCAT);
    begin_session();
    send_message(buf, sizeof(buf) - 1);
    assert_failure(AUTH_FAILED_PAYLOAD);
    begin_session();
    send_message(buf, 1);
    assert_failure(AUTH_FAILED_PAYLOAD);
}

static void test_a_malformed_reply_fails(void **state)
{
    struct host host;

    (void)state;
    for (unsigned int kind = 0; kind < 5; kind++) {
        uint8_t buf[AUTH_REPLY_MAX];
        size_t len;

        begin_session();
        send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048));
        take_challenge(&host, false);
        if (kind == 0) {
            host.reply.t_id ^= 1;
        } else if (kind == 1) {
            host.reply.hash_len = 31;
        } else if (kind == 2) {
            host.reply.dh_len = 0;
        } else if (kind == 3) {
            memset(host.public, 0, sizeof(host.public));
        }
        len = auth_reply_emit(buf, &host.reply);
        send_message(buf, kind == 4 ? len - 1 : len);
        assert_failure(AUTH_FAILED_PAYLOAD);
    }
}

static void test_the_host_may_refuse_the_drive(void **state)
{
    uint8_t buf[AUTH_SUCCESS1_MAX];
    struct host host;

    (void)state;
    begin_session();
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_DH_NULL));
    take_challenge(&host, true);
    send_reply(&host);
    auth_answer(&session, buf);
    auth_failure_emit(buf, &(struct auth_failure_message){
                               T_ID, AUTH_ID_FAILURE2, AUTH_FAILED_PROOF});
    send_message(buf, AUTH_FAILURE_LEN);
    assert_int_equal(session.state, AUTH_REFUSED);
    assert_int_equal(session.failure, AUTH_FAILED_PROOF);
    assert_int_equal(auth_answer_len(&session), 0);
}

/* Bring a new session into a state. */
static void reach_state(enum auth_state wanted)
{
    uint8_t buf[AUTH_CHALLENGE_MAX];
    struct host host;
    bool needs_dh =
        wanted == AUTH_COMPUTE_PUBLIC || wanted == AUTH_COMPUTE_SHARED;
    uint8_t offer[AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN];

    begin_session();
    if (wanted == AUTH_NEGOTIATE) {
        return;
    }
    auth_negotiate_emit(
        offer, &(struct auth_negotiate){
                   .t_id = T_ID,
                   .has_dhchap = true,
                   .hashes = wanted == AUTH_FAILURE1 ? 0 : BIT(AUTH_SHA256),
                   .dhs = needs_dh ? BIT(AUTH_FFDHE2048) : BIT(AUTH_DH_NULL),
               });
    if (wanted == AUTH_COMPUTE_PUBLIC) {
        auth_message(&session, &ops, &peer, offer, sizeof(offer));
        return;
    }
    send_message(offer, sizeof(offer));
    if (session.state == wanted) {
        return;
    }
    if (wanted == AUTH_REFUSED) {
        auth_refuse(&session, AUTH_FAILED_PROOF);
        return;
    }
    take_challenge(&host, wanted == AUTH_SUCCESS2);
    if (session.state == wanted) {
        return;
    }
    auth_message(&session, &ops, &peer, buf, auth_reply_emit(buf, &host.reply));
    if (session.state == wanted) {
        return;
    }
    auth_answer(&session, buf);
    assert_int_equal(session.state, wanted);
}

/* Every message that the state does not wait for ends the transaction. */
static void test_messages_out_of_order_fail_in_every_state(void **state)
{
    static const struct {
        uint8_t type, id;
        uint16_t allowed; /* BIT(enum auth_state) */
    } messages[] = {
        {AUTH_TYPE_COMMON, AUTH_ID_NEGOTIATE, BIT(AUTH_NEGOTIATE)},
        {AUTH_TYPE_COMMON, AUTH_ID_FAILURE1, 0},
        {AUTH_TYPE_COMMON, AUTH_ID_FAILURE2,
         BIT(AUTH_REPLY) | BIT(AUTH_SUCCESS2)},
        {AUTH_TYPE_DHCHAP, AUTH_ID_NEGOTIATE, 0},
        {AUTH_TYPE_DHCHAP, AUTH_ID_CHALLENGE, 0},
        {AUTH_TYPE_DHCHAP, AUTH_ID_REPLY, BIT(AUTH_REPLY)},
        {AUTH_TYPE_DHCHAP, AUTH_ID_SUCCESS1, 0},
        {AUTH_TYPE_DHCHAP, AUTH_ID_SUCCESS2, BIT(AUTH_SUCCESS2)},
        {AUTH_TYPE_COMMON, AUTH_ID_REPLY, 0},
        {0x02, 0x02, 0},
    };

    (void)state;
    for (unsigned int from = 0; from < AUTH_STATES; from++) {
        for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
            uint8_t buf[128] = {messages[i].type, messages[i].id};

            if (messages[i].allowed & BIT(from)) {
                continue;
            }
            reach_state((enum auth_state)from);
            assert_int_equal(session.state, from);
            buf[4] = T_ID & 0xff;
            buf[5] = T_ID >> 8;
            auth_message(&session, &ops, &peer, buf, sizeof(buf));
            if (from == AUTH_PROVEN || from == AUTH_REFUSED) {
                assert_int_equal(session.state, from);
            } else {
                assert_int_equal(session.state, AUTH_FAILURE1);
                if (from != AUTH_FAILURE1) {
                    assert_failure(AUTH_FAILED_MESSAGE);
                }
            }
        }
    }
}

static void test_secrets_are_wiped(void **state)
{
    static const uint8_t zeroes[AUTH_DH_MAX];
    uint8_t buf[AUTH_SUCCESS1_MAX];
    struct host host;

    (void)state;
    begin_session();
    send_negotiate(BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048));
    take_challenge(&host, true);
    send_reply(&host);
    assert_memory_equal(session.exponent, zeroes, sizeof(session.exponent));
    assert_memory_equal(session.dh_value, zeroes, sizeof(session.dh_value));
    auth_answer(&session, buf);
    auth_wipe(&session);
    assert_memory_equal(session.response, zeroes, sizeof(session.response));
}
