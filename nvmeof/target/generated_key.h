/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of TLS that hosts generate with the drive when they authenticate, as the
 * owner of TLS sees them: connect/generated.c.
 */
#ifndef ESSD_NVMEOF_TARGET_GENERATED_KEY_H
#define ESSD_NVMEOF_TARGET_GENERATED_KEY_H

#include "nvmeof/target/target.h"

enum { NVMF_KEY_DIGEST_MAX = 64 }; /* characters: 48 bytes in base64 */

struct nvmf_generated_key {
    uint32_t number;                      /* of no other key since power-on */
    uint8_t hash;                         /* SHA-256 or SHA-384 */
    char hostnqn[NVMF_NQN_MAX + 1];       /* the only host that may use it */
    char digest[NVMF_KEY_DIGEST_MAX + 1]; /* names it in the identity */
    uint8_t psk[AUTH_PSK_MAX];            /* as long as the hash */
};

/* Who turns generated keys into those of TLS. */
struct nvmf_key_maker {
    void *ctx;

    /** Replace the generated key in `psk` by the key of TLS that is derived
     * from it, and set `digest`. */
    void (*derive)(void *ctx, struct nvmf_generated_key *key);
};

/** Hosts may generate keys from now on. */
void nvmf_target_set_key_maker(struct nvmf_target *target,
                               const struct nvmf_key_maker *maker);

/** Find the generated key with this name, unless it is void.
 *
 * @return NULL: there is none.  Valid until the call returns to the main loop
 */
const struct nvmf_generated_key *nvmf_target_generated_key(
    const struct nvmf_target *target, const char *hostnqn, const char *digest);

#endif
