/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of libsodium that this project uses need of the others.  Only
 * public data is checked here, so nothing has to be hidden from timing or
 * erased.
 */
#include "lib/util.h"

#include <crypto_hash_sha512.h>
#include <sign_ed25519_ref10.h>
#include <utils.h>

#include <string.h>

void sodium_memzero(void *const to, const size_t len)
{
    memset(to, 0, len);
}

int sodium_memcmp(const void *const a, const void *const b, size_t len)
{
    return memcmp(a, b, len) == 0 ? 0 : -1;
}

int sodium_is_zero(const unsigned char *bytes, const size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

/* libsodium hashes messages here that are hashed already, which this project
 * does not do. */
void _crypto_sign_ed25519_ref10_hinit(crypto_hash_sha512_state *state,
                                      int is_prehashed)
{
    ASSERT(!is_prehashed);
    (void)crypto_hash_sha512_init(state);
}
