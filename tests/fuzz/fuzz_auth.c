/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of DH-HMAC-CHAP.  The input is a list of records: a byte that says
 * what to do, two bytes of length, and that many bytes of message.  Whatever
 * comes, no host may be proven: the fuzzer does not know the secret.
 *
 * The arithmetic is a stand-in that is fast and keeps the lengths.  Texts of
 * secrets go through the same input.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/auth/auth.h"

enum {
    RECORD_HEADER_LEN = 3,
    PIPELINED = 0x80, /* the next message comes before an answer is taken */
    STEPS = 32,
    SEED_LEN = 72,
};

static uint8_t next_random;

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    while (len-- > 0) {
        *buf++ = (uint8_t)(next_random = (uint8_t)(next_random * 5 + 1));
    }
}

/* A sum that the fuzzer cannot predict, because it has the key in it. */
static void mix_bytes(uint8_t *out, size_t out_len, const uint8_t *data,
                      size_t len, uint32_t *state)
{
    for (size_t i = 0; i < len; i++) {
        *state = (*state ^ data[i]) * 16777619u;
    }
    for (size_t i = 0; i < out_len; i++) {
        *state = (*state ^ (uint32_t)i) * 16777619u;
        out[i] = (uint8_t)(*state >> 24);
    }
}

static void hash_stand_in(void *ctx, enum auth_hash hash, const uint8_t *data,
                          size_t len, uint8_t *digest)
{
    uint32_t state = 2166136261u;

    (void)ctx;
    mix_bytes(digest, auth_hash_len((uint8_t)hash), data, len, &state);
}

static void hmac_stand_in(void *ctx, enum auth_hash hash, struct auth_bytes key,
                          const struct auth_bytes *parts, size_t count,
                          uint8_t *mac)
{
    uint32_t state = 2166136261u;

    (void)ctx;
    mix_bytes(NULL, 0, key.ptr, key.len, &state);
    for (size_t i = 0; i < count; i++) {
        mix_bytes(NULL, 0, parts[i].ptr, parts[i].len, &state);
    }
    mix_bytes(mac, auth_hash_len((uint8_t)hash), NULL, 0, &state);
}

static bool accept_all(void *ctx, enum auth_dh dh, const uint8_t *value)
{
    (void)ctx;
    return value[auth_dh_len((uint8_t)dh) - 1] != 1;
}

static uint8_t power_of; /* the group under way */

static void start_stand_in(void *ctx, enum auth_dh dh, const uint8_t *base,
                           const uint8_t *exponent)
{
    uint8_t sum = exponent[auth_exponent_len((uint8_t)dh) - 1];

    (void)ctx;
    if (base != NULL) {
        sum = (uint8_t)(sum + base[auth_dh_len((uint8_t)dh) - 1]);
    }
    power_of = (uint8_t)dh;
    next_random = (uint8_t)(next_random + sum);
}

static bool step_stand_in(void *ctx)
{
    (void)ctx;
    return true;
}

static void result_stand_in(void *ctx, uint8_t *value)
{
    (void)ctx;
    memset(value, 0x5a, auth_dh_len(power_of));
}

static const struct auth_crypto stand_in = {
    .random = fill_random,
    .hash = hash_stand_in,
    .hmac = hmac_stand_in,
    .dh_accepts = accept_all,
    .dh_start = start_stand_in,
    .dh_step = step_stand_in,
    .dh_result = result_stand_in,
};

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    uint8_t negotiate[SEED_LEN];
    struct auth_reply reply = {.t_id = 7, .hash_len = 32, .seqnum = n % 3 == 1};
    uint8_t zeroes[AUTH_DH_MAX] = {0};
    uint8_t message[AUTH_REPLY_MAX];
    bool has_concat = n >= AUTH_DHS; /* the second half of the seeds */
    uint8_t dh = (uint8_t)(n % AUTH_DHS);
    size_t len;

    if (n >= 2 * (size_t)AUTH_DHS ||
        room < 2 * RECORD_HEADER_LEN + SEED_LEN + AUTH_REPLY_MAX) {
        return 0;
    }
    auth_negotiate_emit(negotiate, &(struct auth_negotiate){
                                       .t_id = 7,
                                       .concat = has_concat ? AUTH_CONCAT_NEW
                                                            : AUTH_CONCAT_NONE,
                                       .has_dhchap = true,
                                       .hashes = BIT(AUTH_SHA256),
                                       .dhs = (uint8_t)BIT(dh),
                                   });
    reply.has_challenge = has_concat || n % 3 == 1;
    reply.dh_len = auth_dh_len(dh);
    reply.r1 = zeroes;
    reply.c2 = zeroes;
    reply.dh_value = zeroes;
    len = auth_reply_emit(message, &reply);
    buf[0] = 0;
    put_le16(buf + 1, SEED_LEN);
    memcpy(buf + RECORD_HEADER_LEN, negotiate, SEED_LEN);
    buf += RECORD_HEADER_LEN + SEED_LEN;
    buf[0] = dh;
    put_le16(buf + 1, (uint16_t)len);
    memcpy(buf + RECORD_HEADER_LEN, message, len);
    return 2 * RECORD_HEADER_LEN + SEED_LEN + len;
}

/* Do what the state asks for besides messages. */
static void serve_session(struct auth_session *session,
                          const struct auth_peer *peer)
{
    uint8_t answer[AUTH_CHALLENGE_MAX];
    size_t len;

    if (auth_is_computing(session)) {
        auth_begin_power(session, &stand_in);
        auth_end_power(session, &stand_in, peer);
    }
    len = auth_answer_len(session);
    if (len > sizeof(answer)) {
        abort();
    }
    if (len != 0) {
        auth_answer(session, answer);
    }
    if (session->state == AUTH_PROVEN) {
        abort();
    }
}

static void try_secret(const uint8_t *data, size_t len)
{
    char text[256];
    struct auth_key key;

    len = MIN(len, sizeof(text) - 1);
    memcpy(text, data, len);
    text[len] = '\0';
    if (auth_key_parse(&key, text) &&
        (key.len == 0 || key.len > AUTH_HASH_MAX)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct auth_key key = {32, AUTH_SHA256, {0x77, 0x13, 0x9a}};
    struct auth_session session;
    struct auth_peer peer = {
        .hostnqn = "nqn.2014-08.org.example:host",
        .subnqn = "nqn.2014-08.org.example:drive",
        .host_key = &key,
        .ctrl_key = &key,
        .concat = AUTH_CONCAT_NEW,
    };

    try_secret(data, len);
    next_random = 1;
    auth_start(&session);
    for (unsigned int i = 0; i < STEPS && len >= RECORD_HEADER_LEN; i++) {
        uint8_t how = data[0];
        size_t part = MIN(get_le16(data + 1), len - RECORD_HEADER_LEN);
        uint8_t *copy = malloc(part != 0 ? part : 1);

        if (copy == NULL) {
            abort();
        }
        /* A copy of the exact length, so that reads beyond it are found. */
        memcpy(copy, data + RECORD_HEADER_LEN, part);
        peer.least_hash = how >> 4 & 3;
        peer.least_dh = (how & 7) < AUTH_DHS ? how & 7 : 0;
        auth_message(&session, &stand_in, &peer, copy, part);
        free(copy);
        if (!(how & PIPELINED)) {
            serve_session(&session, &peer);
        }
        data += RECORD_HEADER_LEN + part;
        len -= RECORD_HEADER_LEN + part;
    }
    return 0;
}
