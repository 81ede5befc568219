/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/signature/signature.h"

#include <crypto_hash_sha512.h>
#include <crypto_sign_ed25519.h>

_Static_assert(sizeof(crypto_hash_sha512_state) <=
                   sizeof(((struct image_digest *)0)->state),
               "the state fits");

static crypto_hash_sha512_state *sodium_state(struct image_digest *digest)
{
    return (crypto_hash_sha512_state *)(void *)digest->state;
}

void image_digest_begin(struct image_digest *digest)
{
    (void)crypto_hash_sha512_init(sodium_state(digest));
}

void image_digest_add(struct image_digest *digest, const uint8_t *data,
                      size_t len)
{
    (void)crypto_hash_sha512_update(sodium_state(digest), data, len);
}

void image_digest_end(struct image_digest *digest, uint8_t hash[IMAGE_HASH_LEN])
{
    (void)crypto_hash_sha512_final(sodium_state(digest), hash);
}

bool signature_is_good(const struct image_header *header, const uint8_t *buf,
                       const uint8_t *key)
{
    uint8_t bytes[IMAGE_SIGNED_LEN];

    if (header->format < 2 || !header->is_signed) {
        return false;
    }
    image_header_signed_bytes(buf, bytes);
    return crypto_sign_ed25519_verify_detached(header->signature, bytes,
                                               sizeof(bytes), key) == 0;
}
