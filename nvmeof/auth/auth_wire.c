/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/auth/auth_wire.h"

#include <string.h>

#include "lib/bytes.h"

static const struct {
    const char *name;
    uint8_t len;
} hashes[AUTH_HASHES] = {
    [AUTH_HASH_NONE] = {"none", 0},
    [AUTH_SHA256] = {"sha256", 32},
    [AUTH_SHA384] = {"sha384", 48},
    [AUTH_SHA512] = {"sha512", 64},
};

static const struct {
    const char *name;
    uint16_t len;
    uint8_t exponent_len;
} dhs[AUTH_DHS] = {
    [AUTH_DH_NULL] = {"null", 0, 0},
    [AUTH_FFDHE2048] = {"ffdhe2048", 256, 30},
    [AUTH_FFDHE3072] = {"ffdhe3072", 384, 36},
    [AUTH_FFDHE4096] = {"ffdhe4096", 512, 42},
    [AUTH_FFDHE6144] = {"ffdhe6144", 768, 48},
    [AUTH_FFDHE8192] = {"ffdhe8192", AUTH_DH_MAX, AUTH_EXPONENT_MAX},
};

uint8_t auth_hash_len(uint8_t hash)
{
    return hash < AUTH_HASHES ? hashes[hash].len : 0;
}

uint16_t auth_dh_len(uint8_t dh)
{
    return dh < AUTH_DHS ? dhs[dh].len : 0;
}

uint8_t auth_exponent_len(uint8_t dh)
{
    return dh < AUTH_DHS ? dhs[dh].exponent_len : 0;
}

const char *auth_hash_name(uint8_t hash)
{
    return hash < AUTH_HASHES ? hashes[hash].name : "unknown";
}

const char *auth_dh_name(uint8_t dh)
{
    return dh < AUTH_DHS ? dhs[dh].name : "unknown";
}

bool auth_header_parse(struct auth_header *header, const uint8_t *buf,
                       size_t len)
{
    if (len < AUTH_HEADER_LEN) {
        return false;
    }
    *header = (struct auth_header){
        .type = buf[AUTH_TYPE],
        .id = buf[AUTH_ID],
        .t_id = get_le16(buf + AUTH_T_ID),
    };
    return true;
}

/* Write the header, and zeroes up to `len`. */
static void header_emit(uint8_t *buf, uint8_t type, uint8_t id, uint16_t t_id,
                        size_t len)
{
    memset(buf, 0, len);
    buf[AUTH_TYPE] = type;
    buf[AUTH_ID] = id;
    put_le16(buf + AUTH_T_ID, t_id);
}

/* The known identifiers of a list, as bits. */
static uint8_t known_ids(const uint8_t *ids, uint8_t count, uint8_t limit)
{
    unsigned int known = 0;

    for (uint8_t i = 0; i < count; i++) {
        if (ids[i] < limit) {
            known |= BIT(ids[i]);
        }
    }
    return (uint8_t)known;
}

bool auth_negotiate_parse(struct auth_negotiate *negotiate, const uint8_t *buf,
                          size_t len)
{
    size_t count;

    if (len < AUTH_NEGOTIATE_LEN) {
        return false;
    }
    count = buf[AUTH_NEGOTIATE_NAPD];
    if (count == 0 || len < AUTH_NEGOTIATE_LEN + count * AUTH_PROTOCOL_LEN) {
        return false;
    }
    *negotiate = (struct auth_negotiate){
        .t_id = get_le16(buf + AUTH_T_ID),
        .concat = buf[AUTH_NEGOTIATE_SC_C],
    };
    for (size_t i = 0; i < count; i++) {
        const uint8_t *protocol =
            buf + AUTH_NEGOTIATE_LEN + i * AUTH_PROTOCOL_LEN;

        if (protocol[AUTH_PROTOCOL_ID] != AUTH_PROTOCOL_DHCHAP ||
            negotiate->has_dhchap) {
            continue;
        }
        if (protocol[AUTH_PROTOCOL_HALEN] > AUTH_PROTOCOL_IDS ||
            protocol[AUTH_PROTOCOL_DHLEN] > AUTH_PROTOCOL_IDS) {
            return false;
        }
        negotiate->has_dhchap = true;
        negotiate->hashes =
            known_ids(protocol + AUTH_PROTOCOL_HASHES,
                      protocol[AUTH_PROTOCOL_HALEN], AUTH_HASHES) &
            (uint8_t)~BIT(AUTH_HASH_NONE);
        negotiate->dhs = known_ids(protocol + AUTH_PROTOCOL_DHS,
                                   protocol[AUTH_PROTOCOL_DHLEN], AUTH_DHS);
    }
    return true;
}

static uint8_t list_ids(uint8_t *ids, uint8_t known, uint8_t limit)
{
    uint8_t count = 0;

    for (uint8_t id = 0; id < limit; id++) {
        if (known & BIT(id)) {
            ids[count++] = id;
        }
    }
    return count;
}

void auth_negotiate_emit(uint8_t *buf, const struct auth_negotiate *negotiate)
{
    uint8_t *protocol = buf + AUTH_NEGOTIATE_LEN;

    header_emit(buf, AUTH_TYPE_COMMON, AUTH_ID_NEGOTIATE, negotiate->t_id,
                AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN);
    buf[AUTH_NEGOTIATE_SC_C] = negotiate->concat;
    buf[AUTH_NEGOTIATE_NAPD] = 1;
    protocol[AUTH_PROTOCOL_ID] =
        negotiate->has_dhchap ? AUTH_PROTOCOL_DHCHAP : 0;
    protocol[AUTH_PROTOCOL_HALEN] = list_ids(protocol + AUTH_PROTOCOL_HASHES,
                                             negotiate->hashes, AUTH_HASHES);
    protocol[AUTH_PROTOCOL_DHLEN] =
        list_ids(protocol + AUTH_PROTOCOL_DHS, negotiate->dhs, AUTH_DHS);
}

size_t auth_challenge_emit(uint8_t *buf, const struct auth_challenge *challenge)
{
    uint8_t hash_len = auth_hash_len(challenge->hash);
    uint16_t dh_len = auth_dh_len(challenge->dh);

    header_emit(buf, AUTH_TYPE_DHCHAP, AUTH_ID_CHALLENGE, challenge->t_id,
                AUTH_CHALLENGE_LEN);
    buf[AUTH_CHALLENGE_HL] = hash_len;
    buf[AUTH_CHALLENGE_HASH] = challenge->hash;
    buf[AUTH_CHALLENGE_DH] = challenge->dh;
    put_le16(buf + AUTH_CHALLENGE_DHVLEN, dh_len);
    put_le32(buf + AUTH_CHALLENGE_SEQNUM, challenge->seqnum);
    memcpy(buf + AUTH_CHALLENGE_LEN, challenge->c1, hash_len);
    if (dh_len != 0) {
        memcpy(buf + AUTH_CHALLENGE_LEN + hash_len, challenge->dh_value,
               dh_len);
    }
    return (size_t)AUTH_CHALLENGE_LEN + hash_len + dh_len;
}

bool auth_challenge_parse(struct auth_challenge *challenge, const uint8_t *buf,
                          size_t len)
{
    uint8_t hash_len;
    uint16_t dh_len;

    if (len < AUTH_CHALLENGE_LEN) {
        return false;
    }
    hash_len = buf[AUTH_CHALLENGE_HL];
    dh_len = get_le16(buf + AUTH_CHALLENGE_DHVLEN);
    if (hash_len == 0 || hash_len != auth_hash_len(buf[AUTH_CHALLENGE_HASH]) ||
        buf[AUTH_CHALLENGE_DH] >= AUTH_DHS ||
        dh_len != auth_dh_len(buf[AUTH_CHALLENGE_DH]) ||
        len < (size_t)AUTH_CHALLENGE_LEN + hash_len + dh_len) {
        return false;
    }
    *challenge = (struct auth_challenge){
        .t_id = get_le16(buf + AUTH_T_ID),
        .hash = buf[AUTH_CHALLENGE_HASH],
        .dh = buf[AUTH_CHALLENGE_DH],
        .seqnum = get_le32(buf + AUTH_CHALLENGE_SEQNUM),
        .c1 = buf + AUTH_CHALLENGE_LEN,
        .dh_value = buf + AUTH_CHALLENGE_LEN + hash_len,
    };
    return true;
}

bool auth_reply_parse(struct auth_reply *reply, const uint8_t *buf, size_t len)
{
    if (len < AUTH_REPLY_LEN) {
        return false;
    }
    *reply = (struct auth_reply){
        .t_id = get_le16(buf + AUTH_T_ID),
        .hash_len = buf[AUTH_REPLY_HL],
        .has_challenge = buf[AUTH_REPLY_CVALID] & 1,
        .dh_len = get_le16(buf + AUTH_REPLY_DHVLEN),
        .seqnum = get_le32(buf + AUTH_REPLY_SEQNUM),
    };
    if (len < AUTH_REPLY_LEN + 2u * reply->hash_len + reply->dh_len) {
        return false;
    }
    reply->r1 = buf + AUTH_REPLY_LEN;
    reply->c2 = reply->r1 + reply->hash_len;
    reply->dh_value = reply->c2 + reply->hash_len;
    return true;
}

size_t auth_reply_emit(uint8_t *buf, const struct auth_reply *reply)
{
    uint8_t hash_len = reply->hash_len;

    header_emit(buf, AUTH_TYPE_DHCHAP, AUTH_ID_REPLY, reply->t_id,
                AUTH_REPLY_LEN + 2u * hash_len);
    buf[AUTH_REPLY_HL] = hash_len;
    buf[AUTH_REPLY_CVALID] = reply->has_challenge;
    put_le16(buf + AUTH_REPLY_DHVLEN, reply->dh_len);
    put_le32(buf + AUTH_REPLY_SEQNUM, reply->seqnum);
    memcpy(buf + AUTH_REPLY_LEN, reply->r1, hash_len);
    if (reply->c2 != NULL) {
        memcpy(buf + AUTH_REPLY_LEN + hash_len, reply->c2, hash_len);
    }
    if (reply->dh_len != 0) {
        memcpy(buf + AUTH_REPLY_LEN + 2u * hash_len, reply->dh_value,
               reply->dh_len);
    }
    return AUTH_REPLY_LEN + 2u * hash_len + reply->dh_len;
}

size_t auth_success1_emit(uint8_t *buf, const struct auth_success1 *success1)
{
    header_emit(buf, AUTH_TYPE_DHCHAP, AUTH_ID_SUCCESS1, success1->t_id,
                AUTH_SUCCESS1_LEN);
    buf[AUTH_SUCCESS1_HL] = success1->hash_len;
    if (success1->r2 == NULL) {
        return AUTH_SUCCESS1_LEN;
    }
    buf[AUTH_SUCCESS1_RVALID] = 1;
    memcpy(buf + AUTH_SUCCESS1_LEN, success1->r2, success1->hash_len);
    return (size_t)AUTH_SUCCESS1_LEN + success1->hash_len;
}

bool auth_success1_parse(struct auth_success1 *success1, const uint8_t *buf,
                         size_t len)
{
    bool has_r2;

    if (len < AUTH_SUCCESS1_LEN) {
        return false;
    }
    has_r2 = buf[AUTH_SUCCESS1_RVALID] & 1;
    if (has_r2 && len < (size_t)AUTH_SUCCESS1_LEN + buf[AUTH_SUCCESS1_HL]) {
        return false;
    }
    *success1 = (struct auth_success1){
        .t_id = get_le16(buf + AUTH_T_ID),
        .hash_len = buf[AUTH_SUCCESS1_HL],
        .r2 = has_r2 ? buf + AUTH_SUCCESS1_LEN : NULL,
    };
    return true;
}

void auth_success2_emit(uint8_t *buf, uint16_t t_id)
{
    header_emit(buf, AUTH_TYPE_DHCHAP, AUTH_ID_SUCCESS2, t_id,
                AUTH_SUCCESS2_LEN);
}

void auth_failure_emit(uint8_t *buf, const struct auth_failure_message *failure)
{
    header_emit(buf, AUTH_TYPE_COMMON, failure->id, failure->t_id,
                AUTH_FAILURE_LEN);
    buf[AUTH_FAILURE_REASON] = AUTH_REASON_FAILED;
    buf[AUTH_FAILURE_EXPLANATION] = failure->explanation;
}

bool auth_failure_parse(struct auth_failure_message *failure,
                        const uint8_t *buf, size_t len)
{
    if (len < AUTH_FAILURE_LEN) {
        return false;
    }
    *failure = (struct auth_failure_message){
        .t_id = get_le16(buf + AUTH_T_ID),
        .id = buf[AUTH_ID],
        .explanation = buf[AUTH_FAILURE_EXPLANATION],
    };
    return true;
}
