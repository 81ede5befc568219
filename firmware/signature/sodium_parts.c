/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This project uses a few files of libsodium.  Here are the functions that they
 * need from the other files.  Signatures are checked with public data only, so
 * no function has to take constant time or to erase memory; X25519 of libsodium
 * calls none of them.
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

/* libsodium prepares the hash here for messages that are hashed already, which
 * this project does not use. */
void _crypto_sign_ed25519_ref10_hinit(crypto_hash_sha512_state *state,
                                      int is_prehashed)
{
    ASSERT(!is_prehashed);
    (void)crypto_hash_sha512_init(state);
}
