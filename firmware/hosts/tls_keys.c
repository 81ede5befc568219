/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hosts/tls_keys.h"

#include <string.h>

#include "lib/wipe.h"
#include "nvmeof/wire/fabrics.h"

_Static_assert((int)AUTH_PSK_MAX == (int)TLS_SECRET_MAX,
               "a generated key is as long as that of TLS");
_Static_assert((int)NVMF_KEY_DIGEST_MAX == (int)TLS_DIGEST_TEXT_MAX &&
                   (int)NVMF_NQN_MAX == (int)TLS_NQN_MAX,
               "the target's names are those of identities");

static const char *own_nqn(const struct tls_keys *own)
{
    return nvmf_target_config(own->target)->subnqn;
}

/* The generated key with this name.  NULL: there is none */
static const struct nvmf_generated_key *find_generated(
    const struct tls_keys *own, const struct tls_identity *identity)
{
    const struct nvmf_generated_key *key = NULL;

    if (identity->is_generated && identity->version == 1 &&
        strcmp(identity->subnqn, own_nqn(own)) == 0) {
        key = nvmf_target_generated_key(own->target, identity->hostnqn,
                                        identity->digest);
    }
    return key != NULL && key->hash == identity->hash ? key : NULL;
}

/* There is one configured key of a host, of which older programs derive another
 * one. */
static unsigned int find_configured(const struct tls_keys *own,
                                    const struct tls_identity *identity,
                                    struct tls_secret *keys)
{
    const struct auth_key *key =
        host_table_tls_key(own->hosts, identity->hostnqn);
    unsigned int count = 0;

    if (key == NULL || (strcmp(identity->subnqn, own_nqn(own)) != 0 &&
                        strcmp(identity->subnqn, NVME_DISCOVERY_NQN) != 0)) {
        return 0;
    }
    for (int style = 0; style < TLS_STYLES; style++) {
        count += tls_psk_derive(own->crypto, key, identity,
                                (enum tls_style)style, &keys[count]);
    }
    return count;
}

unsigned int tls_keys_find(void *ctx, const struct tls_identity *identity,
                           struct tls_secret *keys)
{
    const struct tls_keys *own = ctx;
    const struct nvmf_generated_key *key;

    if (!identity->is_generated) {
        return find_configured(own, identity, keys);
    }
    key = find_generated(own, identity);
    if (key == NULL) {
        return 0;
    }
    memcpy(keys[0].bytes, key->psk, sizeof(keys[0].bytes));
    return 1;
}

uint32_t tls_keys_number(void *ctx, const struct tls_identity *identity)
{
    const struct nvmf_generated_key *key = find_generated(ctx, identity);

    return key != NULL ? key->number : 0;
}

void tls_keys_derive(void *ctx, struct nvmf_generated_key *key)
{
    const struct tls_keys *own = ctx;
    struct tls_identity identity = {
        .version = 1,
        .is_generated = true,
        .hash = key->hash,
    };
    struct tls_secret psk;

    memcpy(identity.hostnqn, key->hostnqn, sizeof(identity.hostnqn));
    memcpy(identity.subnqn, own_nqn(own), strlen(own_nqn(own)) + 1);
    tls_psk_generated(own->crypto, key->psk, &identity, &psk);
    memcpy(key->psk, psk.bytes, sizeof(key->psk));
    memcpy(key->digest, identity.digest, sizeof(key->digest));
    wipe_bytes(&psk, sizeof(psk));
}
