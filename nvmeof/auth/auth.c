/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/auth/auth.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

/* Allowed transitions.  REFUSED is reachable from every state but the finals.
 */
static const uint16_t auth_next[AUTH_STATES] = {
    [AUTH_NEGOTIATE] = BIT(AUTH_COMPUTE_PUBLIC) | BIT(AUTH_CHALLENGE) |
                       BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_COMPUTE_PUBLIC] =
        BIT(AUTH_CHALLENGE) | BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_CHALLENGE] = BIT(AUTH_REPLY) | BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_REPLY] = BIT(AUTH_COMPUTE_SHARED) | BIT(AUTH_SUCCESS1) |
                   BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_COMPUTE_SHARED] =
        BIT(AUTH_SUCCESS1) | BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_SUCCESS1] = BIT(AUTH_SUCCESS2) | BIT(AUTH_PROVEN) |
                      BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_SUCCESS2] = BIT(AUTH_PROVEN) | BIT(AUTH_FAILURE1) | BIT(AUTH_REFUSED),
    [AUTH_FAILURE1] = BIT(AUTH_REFUSED),
};

/* The only writer of session->state. */
static void auth_enter(struct auth_session *session, enum auth_state next)
{
    ASSERT(auth_next[session->state] & BIT(next));
    session->state = (uint8_t)next;
}

/* Compare in a time that does not depend on the bytes. */
static bool is_same(const uint8_t *a, const uint8_t *b, size_t len)
{
    uint8_t difference = 0;

    for (size_t i = 0; i < len; i++) {
        difference |= a[i] ^ b[i];
    }
    return difference == 0;
}

void auth_start(struct auth_session *session)
{
    memset(session, 0, sizeof(*session));
}

void auth_wipe(struct auth_session *session)
{
    wipe_bytes(session->exponent, sizeof(session->exponent));
    wipe_bytes(session->dh_value, sizeof(session->dh_value));
    wipe_bytes(session->response, sizeof(session->response));
    wipe_bytes(session->psk, sizeof(session->psk));
}

void auth_refuse(struct auth_session *session, enum auth_failure failure)
{
    session->failure = (uint8_t)failure;
    auth_enter(session, AUTH_REFUSED);
}

static void prepare_failure(struct auth_session *session,
                            enum auth_failure failure)
{
    if (session->state != AUTH_FAILURE1) {
        session->failure = (uint8_t)failure;
        auth_enter(session, AUTH_FAILURE1);
    }
}

void auth_withdraw(struct auth_session *session)
{
    prepare_failure(session, AUTH_FAILED_PROOF);
}

/* ---- Responses. */

/*
 * Derive the key that is used from the one in the secret, so that a host with
 * the same secret for several subsystems has several keys.
 */
static uint8_t transform_key(const struct auth_crypto *crypto,
                             const struct auth_key *key, const char *nqn,
                             uint8_t *transformed)
{
    static const char label[] = "NVMe-over-Fabrics";
    const struct auth_bytes parts[] = {
        {nqn, strlen(nqn)},
        {label, sizeof(label) - 1},
    };

    if (key->hash == AUTH_HASH_NONE) {
        memcpy(transformed, key->bytes, key->len);
        return key->len;
    }
    crypto->hmac(crypto->ctx, (enum auth_hash)key->hash,
                 (struct auth_bytes){key->bytes, key->len}, parts,
                 ARRAY_LEN(parts), transformed);
    return auth_hash_len(key->hash);
}

void auth_compute_response(const struct auth_crypto *crypto,
                           const struct auth_response *in, uint8_t *response)
{
    uint8_t hash_len = auth_hash_len((uint8_t)in->hash);
    uint8_t challenge[AUTH_HASH_MAX];
    uint8_t key[AUTH_HASH_MAX];
    uint8_t numbers[7]; /* sequence number, T_ID, SC_C */
    uint8_t key_len = transform_key(crypto, in->key, in->nqn, key);
    const struct auth_bytes parts[] = {
        {challenge, hash_len},
        {numbers, sizeof(numbers)},
        {in->role, strlen(in->role)},
        {in->nqn, strlen(in->nqn)},
        {"", 1}, /* a NUL separates the names */
        {in->peer_nqn, strlen(in->peer_nqn)},
    };

    if (in->secret_hash != NULL) {
        crypto->hmac(crypto->ctx, in->hash,
                     (struct auth_bytes){in->secret_hash, hash_len},
                     &(struct auth_bytes){in->challenge, hash_len}, 1,
                     challenge);
    } else {
        memcpy(challenge, in->challenge, hash_len);
    }
    put_le32(numbers, in->seqnum);
    put_le16(numbers + 4, in->t_id);
    numbers[6] = in->concat;
    crypto->hmac(crypto->ctx, in->hash, (struct auth_bytes){key, key_len},
                 parts, ARRAY_LEN(parts), response);
    wipe_bytes(key, sizeof(key));
}

void auth_generate_psk(const struct auth_crypto *crypto, enum auth_hash hash,
                       const uint8_t *secret_hash, const uint8_t *c1,
                       const uint8_t *c2, uint8_t *psk)
{
    size_t len = auth_hash_len((uint8_t)hash);
    const struct auth_bytes parts[] = {{c1, len}, {c2, len}};

    crypto->hmac(crypto->ctx, hash, (struct auth_bytes){secret_hash, len},
                 parts, ARRAY_LEN(parts), psk);
}

/* The Reply is complete: check R1, and compute R2 if the host wants it. */
static void judge_reply(struct auth_session *session,
                        const struct auth_crypto *crypto,
                        const struct auth_peer *peer,
                        const uint8_t *secret_hash)
{
    uint8_t expected[AUTH_HASH_MAX];
    struct auth_response response = {
        .hash = (enum auth_hash)session->hash,
        .key = peer->host_key,
        .challenge = session->c1,
        .seqnum = session->s1,
        .t_id = session->t_id,
        .concat = session->concat,
        .role = "HostHost",
        .nqn = peer->hostnqn,
        .peer_nqn = peer->subnqn,
        .secret_hash = secret_hash,
    };

    auth_compute_response(crypto, &response, expected);
    if (!is_same(expected, session->response, auth_hash_len(session->hash)) ||
        (session->wants_proof && peer->ctrl_key->len == 0)) {
        prepare_failure(session, AUTH_FAILED_PROOF);
        return;
    }
    if (session->wants_proof) {
        response.key = peer->ctrl_key;
        response.challenge = session->c2;
        response.seqnum = session->s2;
        response.role = "Controller";
        response.nqn = peer->subnqn;
        response.peer_nqn = peer->hostnqn;
        auth_compute_response(crypto, &response, session->response);
    }
    if (session->concat != AUTH_CONCAT_NONE) {
        auth_generate_psk(crypto, (enum auth_hash)session->hash, secret_hash,
                          session->c1, session->c2, session->psk);
    }
    auth_enter(session, AUTH_SUCCESS1);
}

/* ---- Messages of the host. */

/* Choose the weakest offered algorithm that the drive accepts from this host:
 * the stronger ones cost both sides time.  @return 0xff if there is none */
static uint8_t choose_least(uint8_t offered, uint8_t least, uint8_t limit)
{
    for (uint8_t id = least; id < limit; id++) {
        if (offered & BIT(id)) {
            return id;
        }
    }
    return 0xff;
}

static uint32_t random_seqnum(const struct auth_crypto *crypto)
{
    uint8_t bytes[4];

    crypto->random(crypto->ctx, bytes, sizeof(bytes));
    return MAX(get_le32(bytes), 1u); /* 0 has a meaning of its own */
}

/* Choose the algorithms.  A generated key needs a hash that a cipher suite has,
 * and a secret of Diffie-Hellman.  @return whether the host offers them */
static bool choose_algorithms(struct auth_session *session,
                              const struct auth_peer *peer,
                              const struct auth_negotiate *negotiate)
{
    bool has_concat = negotiate->concat != AUTH_CONCAT_NONE;

    session->concat = negotiate->concat;
    session->hash = choose_least(negotiate->hashes,
                                 MAX(peer->least_hash, (uint8_t)AUTH_SHA256),
                                 has_concat ? AUTH_SHA384 + 1 : AUTH_HASHES);
    session->dh =
        choose_least(negotiate->dhs,
                     has_concat ? MAX(peer->least_dh, (uint8_t)AUTH_FFDHE2048)
                                : peer->least_dh,
                     AUTH_DHS);
    if (session->hash >= AUTH_HASHES) {
        prepare_failure(session, AUTH_FAILED_HASH);
        return false;
    }
    if (session->dh >= AUTH_DHS) {
        prepare_failure(session, AUTH_FAILED_DH);
        return false;
    }
    return true;
}

static void take_negotiate(struct auth_session *session,
                           const struct auth_crypto *crypto,
                           const struct auth_peer *peer, const uint8_t *buf,
                           size_t len)
{
    struct auth_negotiate negotiate;

    if (!auth_negotiate_parse(&negotiate, buf, len)) {
        prepare_failure(session, AUTH_FAILED_PAYLOAD);
        return;
    }
    if (negotiate.concat != AUTH_CONCAT_NONE &&
        negotiate.concat != peer->concat) {
        prepare_failure(session, AUTH_FAILED_CONCAT);
        return;
    }
    if (!negotiate.has_dhchap) {
        prepare_failure(session, AUTH_FAILED_PROTOCOL);
        return;
    }
    if (!choose_algorithms(session, peer, &negotiate)) {
        return;
    }
    session->s1 = random_seqnum(crypto);
    crypto->random(crypto->ctx, session->c1, auth_hash_len(session->hash));
    if (session->dh == AUTH_DH_NULL) {
        auth_enter(session, AUTH_CHALLENGE);
        return;
    }
    crypto->random(crypto->ctx, session->exponent,
                   auth_exponent_len(session->dh));
    auth_enter(session, AUTH_COMPUTE_PUBLIC);
}

static void take_reply(struct auth_session *session,
                       const struct auth_crypto *crypto,
                       const struct auth_peer *peer, const uint8_t *buf,
                       size_t len)
{
    uint8_t hash_len = auth_hash_len(session->hash);
    struct auth_reply reply;

    if (!auth_reply_parse(&reply, buf, len) || reply.hash_len != hash_len ||
        reply.dh_len != auth_dh_len(session->dh) ||
        (session->concat != AUTH_CONCAT_NONE && !reply.has_challenge) ||
        (reply.dh_len != 0 &&
         !crypto->dh_accepts(crypto->ctx, (enum auth_dh)session->dh,
                             reply.dh_value))) {
        prepare_failure(session, AUTH_FAILED_PAYLOAD);
        return;
    }
    /* A host that reflects the challenge wants the controller to answer it. */
    if (reply.has_challenge && is_same(reply.c2, session->c1, hash_len)) {
        prepare_failure(session, AUTH_FAILED_PROOF);
        return;
    }
    /* Sequence number 0: this challenge is only for the generated key. */
    session->wants_proof =
        reply.has_challenge &&
        (session->concat == AUTH_CONCAT_NONE || reply.seqnum != 0);
    session->s2 = reply.seqnum;
    memcpy(session->response, reply.r1, hash_len);
    memcpy(session->c2, reply.c2, hash_len);
    if (reply.dh_len == 0) {
        judge_reply(session, crypto, peer, NULL);
        return;
    }
    memcpy(session->dh_value, reply.dh_value, reply.dh_len);
    auth_enter(session, AUTH_COMPUTE_SHARED);
}

/* The host ends the transaction because it does not accept an answer. */
static void take_failure2(struct auth_session *session, const uint8_t *buf,
                          size_t len)
{
    struct auth_failure_message failure;
    bool is_known = auth_failure_parse(&failure, buf, len) &&
                    failure.explanation != AUTH_OK &&
                    failure.explanation < AUTH_FAILURES;

    auth_refuse(session, is_known ? (enum auth_failure)failure.explanation
                                  : AUTH_FAILED_PAYLOAD);
}

/* Whether this message is the one that the state waits for. */
static bool is_expected(const struct auth_session *session,
                        const struct auth_header *header)
{
    if (header->type == AUTH_TYPE_COMMON) {
        return header->id == AUTH_ID_NEGOTIATE
                   ? session->state == AUTH_NEGOTIATE
                   : header->id == AUTH_ID_FAILURE2 &&
                         (session->state == AUTH_REPLY ||
                          session->state == AUTH_SUCCESS2);
    }
    return header->type == AUTH_TYPE_DHCHAP &&
           ((header->id == AUTH_ID_REPLY && session->state == AUTH_REPLY) ||
            (header->id == AUTH_ID_SUCCESS2 &&
             session->state == AUTH_SUCCESS2));
}

void auth_message(struct auth_session *session,
                  const struct auth_crypto *crypto,
                  const struct auth_peer *peer, const uint8_t *buf, size_t len)
{
    struct auth_header header;

    if (session->state == AUTH_PROVEN || session->state == AUTH_REFUSED) {
        return; /* the transaction is over */
    }
    if (!auth_header_parse(&header, buf, len)) {
        prepare_failure(session, AUTH_FAILED_PAYLOAD);
        return;
    }
    if (session->state == AUTH_NEGOTIATE) {
        session->t_id = header.t_id;
    }
    if (!is_expected(session, &header)) {
        prepare_failure(session, AUTH_FAILED_MESSAGE);
        return;
    }
    if (header.t_id != session->t_id) {
        prepare_failure(session, AUTH_FAILED_PAYLOAD);
        return;
    }
    if (header.id == AUTH_ID_NEGOTIATE) {
        take_negotiate(session, crypto, peer, buf, len);
    } else if (header.id == AUTH_ID_REPLY) {
        take_reply(session, crypto, peer, buf, len);
    } else if (header.id == AUTH_ID_SUCCESS2) {
        auth_enter(session, AUTH_PROVEN);
    } else {
        take_failure2(session, buf, len);
    }
}

/* ---- Exponentiation. */

void auth_begin_power(struct auth_session *session,
                      const struct auth_crypto *crypto)
{
    bool is_shared = session->state == AUTH_COMPUTE_SHARED;

    ASSERT(auth_is_computing(session));
    crypto->dh_start(crypto->ctx, (enum auth_dh)session->dh,
                     is_shared ? session->dh_value : NULL, session->exponent);
}

void auth_end_power(struct auth_session *session,
                    const struct auth_crypto *crypto,
                    const struct auth_peer *peer)
{
    uint8_t secret_hash[AUTH_HASH_MAX];

    ASSERT(auth_is_computing(session));
    crypto->dh_result(crypto->ctx, session->dh_value);
    if (session->state == AUTH_COMPUTE_PUBLIC) {
        auth_enter(session, AUTH_CHALLENGE);
        return;
    }
    crypto->hash(crypto->ctx, (enum auth_hash)session->hash, session->dh_value,
                 auth_dh_len(session->dh), secret_hash);
    wipe_bytes(session->dh_value, sizeof(session->dh_value));
    wipe_bytes(session->exponent, sizeof(session->exponent));
    judge_reply(session, crypto, peer, secret_hash);
    wipe_bytes(secret_hash, sizeof(secret_hash));
}

/* ---- Answers to the host. */

size_t auth_answer_len(const struct auth_session *session)
{
    switch ((enum auth_state)session->state) {
    case AUTH_CHALLENGE:
        return (size_t)AUTH_CHALLENGE_LEN + auth_hash_len(session->hash) +
               auth_dh_len(session->dh);
    case AUTH_SUCCESS1:
        return (size_t)AUTH_SUCCESS1_LEN +
               (session->wants_proof ? auth_hash_len(session->hash) : 0);
    case AUTH_FAILURE1:
        return AUTH_FAILURE_LEN;
    case AUTH_NEGOTIATE:
    case AUTH_COMPUTE_PUBLIC:
    case AUTH_REPLY:
    case AUTH_COMPUTE_SHARED:
    case AUTH_SUCCESS2:
    case AUTH_PROVEN:
    case AUTH_REFUSED:
    case AUTH_STATES:
        break;
    }
    return 0;
}

void auth_answer(struct auth_session *session, uint8_t *buf)
{
    if (session->state == AUTH_CHALLENGE) {
        auth_challenge_emit(buf, &(struct auth_challenge){
                                     .t_id = session->t_id,
                                     .hash = session->hash,
                                     .dh = session->dh,
                                     .seqnum = session->s1,
                                     .c1 = session->c1,
                                     .dh_value = session->dh_value,
                                 });
        auth_enter(session, AUTH_REPLY);
    } else if (session->state == AUTH_SUCCESS1) {
        auth_success1_emit(
            buf, &(struct auth_success1){
                     .t_id = session->t_id,
                     .hash_len = auth_hash_len(session->hash),
                     .r2 = session->wants_proof ? session->response : NULL,
                 });
        auth_enter(session, session->wants_proof ? AUTH_SUCCESS2 : AUTH_PROVEN);
    } else {
        ASSERT(session->state == AUTH_FAILURE1);
        auth_failure_emit(buf, &(struct auth_failure_message){
                                   .t_id = session->t_id,
                                   .id = AUTH_ID_FAILURE1,
                                   .explanation = session->failure,
                               });
        auth_enter(session, AUTH_REFUSED);
    }
}
