/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's side of DH-HMAC-CHAP, for tests: it makes the messages, which a
 * test may spoil before it sends them.
 */
#ifndef TESTS_AUTH_HOST_H
#define TESTS_AUTH_HOST_H

#include "firmware/crypto/crypto.h"
#include "nvmeof/auth/auth.h"

struct auth_host {
    const char *hostnqn, *subnqn;
    struct auth_key key, ctrl_key; /* empty ctrl_key: wants no proof */
    uint16_t t_id;
    uint8_t concat; /* SC_C; 0 unless a test sets it */

    struct crypto crypto;
    struct auth_crypto ops;
    uint64_t random;
    uint8_t hash, dh;
    uint8_t r1[AUTH_HASH_MAX], c2[AUTH_HASH_MAX];
    uint8_t secret_hash[AUTH_HASH_MAX];
    uint8_t dh_value[AUTH_DH_MAX];
    uint8_t psk[AUTH_HASH_MAX]; /* the generated key, if it wants one */
};

/** The secrets are texts; an empty one is no key. */
void auth_host_init(struct auth_host *host, const char *hostnqn,
                    const char *subnqn, const char *secret,
                    const char *ctrl_secret);

/** @param buf  4096 bytes.  @return the message's length */
size_t auth_host_negotiate(struct auth_host *host, uint8_t hashes, uint8_t dhs,
                           uint8_t *buf);

/** Take the Challenge and make the Reply.  @return its length; 0 if the
 *  message was no Challenge for this host */
size_t auth_host_reply(struct auth_host *host, const uint8_t *challenge,
                       size_t len, uint8_t *buf);

/** Check Success1. @return whether it is what the host wants */
MUST_USE bool auth_host_accepts(struct auth_host *host, const uint8_t *buf,
                                size_t len);

#endif
