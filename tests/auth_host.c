/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/auth_host.h"

#include <string.h>

#include "lib/random.h"

enum { T_ID = 0x4711, S2 = 0x00c0ffee };

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    struct auth_host *host = ctx;

    while (len-- > 0) {
        *buf++ = (uint8_t)random_next(&host->random);
    }
}

void auth_host_init(struct auth_host *host, const char *hostnqn,
                    const char *subnqn, const char *secret,
                    const char *ctrl_secret)
{
    memset(host, 0, sizeof(*host));
    host->hostnqn = hostnqn;
    host->subnqn = subnqn;
    host->t_id = T_ID;
    host->random = 99;
    ASSERT(secret[0] == '\0' || auth_key_parse(&host->key, secret));
    ASSERT(ctrl_secret[0] == '\0' ||
           auth_key_parse(&host->ctrl_key, ctrl_secret));
    crypto_init(&host->crypto, fill_random, host);
    host->ops = crypto_ops(&host->crypto);
}

size_t auth_host_negotiate(struct auth_host *host, uint8_t hashes, uint8_t dhs,
                           uint8_t *buf)
{
    auth_negotiate_emit(buf, &(struct auth_negotiate){
                                 .t_id = host->t_id,
                                 .concat = host->concat,
                                 .has_dhchap = true,
                                 .hashes = hashes,
                                 .dhs = dhs,
                             });
    return AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN;
}

static void raise_power(struct auth_host *host, const uint8_t *base,
                        const uint8_t *exponent, uint8_t *value)
{
    const struct auth_crypto *ops = &host->ops;

    ops->dh_start(ops->ctx, (enum auth_dh)host->dh, base, exponent);
    while (!ops->dh_step(ops->ctx)) {
    }
    ops->dh_result(ops->ctx, value);
}

static void agree_on_secret(struct auth_host *host, const uint8_t *peer_value)
{
    uint8_t exponent[AUTH_EXPONENT_MAX], secret[AUTH_DH_MAX];

    fill_random(host, exponent, sizeof(exponent));
    raise_power(host, NULL, exponent, host->dh_value);
    raise_power(host, peer_value, exponent, secret);
    host->ops.hash(host->ops.ctx, (enum auth_hash)host->hash, secret,
                   auth_dh_len(host->dh), host->secret_hash);
}

size_t auth_host_reply(struct auth_host *host, const uint8_t *buf, size_t len,
                       uint8_t *reply)
{
    bool wants_proof = host->ctrl_key.len != 0;
    struct auth_challenge challenge;
    struct auth_header header;

    if (!auth_header_parse(&header, buf, len) ||
        header.type != AUTH_TYPE_DHCHAP || header.id != AUTH_ID_CHALLENGE ||
        header.t_id != host->t_id ||
        !auth_challenge_parse(&challenge, buf, len)) {
        return 0;
    }
    host->hash = challenge.hash;
    host->dh = challenge.dh;
    if (host->dh != AUTH_DH_NULL) {
        agree_on_secret(host, challenge.dh_value);
    }
    fill_random(host, host->c2, sizeof(host->c2));
    auth_compute_response(
        &host->ops,
        &(struct auth_response){
            .hash = (enum auth_hash)host->hash,
            .key = &host->key,
            .challenge = challenge.c1,
            .seqnum = challenge.seqnum,
            .t_id = host->t_id,
            .concat = host->concat,
            .role = "HostHost",
            .nqn = host->hostnqn,
            .peer_nqn = host->subnqn,
            .secret_hash = host->dh != AUTH_DH_NULL ? host->secret_hash : NULL,
        },
        host->r1);
    if (host->concat != AUTH_CONCAT_NONE && host->dh != AUTH_DH_NULL) {
        auth_generate_psk(&host->ops, (enum auth_hash)host->hash,
                          host->secret_hash, challenge.c1, host->c2, host->psk);
    }
    return auth_reply_emit(
        reply, &(struct auth_reply){
                   .t_id = host->t_id,
                   .hash_len = auth_hash_len(host->hash),
                   .has_challenge = wants_proof || host->concat != 0,
                   .dh_len = auth_dh_len(host->dh),
                   .seqnum = wants_proof ? S2 : 0,
                   .r1 = host->r1,
                   .c2 = host->c2,
                   .dh_value = host->dh_value,
               });
}

bool auth_host_accepts(struct auth_host *host, const uint8_t *buf, size_t len)
{
    uint8_t r2[AUTH_HASH_MAX];
    struct auth_success1 success1;
    struct auth_header header;

    if (!auth_header_parse(&header, buf, len) ||
        header.type != AUTH_TYPE_DHCHAP || header.id != AUTH_ID_SUCCESS1 ||
        header.t_id != host->t_id ||
        !auth_success1_parse(&success1, buf, len) ||
        success1.hash_len != auth_hash_len(host->hash)) {
        return false;
    }
    if (host->ctrl_key.len == 0) {
        return success1.r2 == NULL;
    }
    auth_compute_response(
        &host->ops,
        &(struct auth_response){
            .hash = (enum auth_hash)host->hash,
            .key = &host->ctrl_key,
            .challenge = host->c2,
            .seqnum = S2,
            .t_id = host->t_id,
            .concat = host->concat,
            .role = "Controller",
            .nqn = host->subnqn,
            .peer_nqn = host->hostnqn,
            .secret_hash = host->dh != AUTH_DH_NULL ? host->secret_hash : NULL,
        },
        r2);
    return success1.r2 != NULL &&
           memcmp(success1.r2, r2, success1.hash_len) == 0;
}
