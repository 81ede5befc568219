/* SPDX-License-Identifier: BSD-2-Clause */
#include "tls_maths.h"

#include <string.h>

#include <crypto_scalarmult_curve25519.h>

#include "lib/util.h"
#include "mbedtls/gcm.h"
#include "mbedtls/sha256.h"
#include "mbedtls/sha512.h"

enum { TEXT = 1024, LABEL = 6 + 12 };

static void must_work(int error)
{
    ASSERT(error == 0);
}

void maths_hash(bool is_384, const void *data, size_t len, uint8_t *digest)
{
    uint8_t full[64];

    must_work(is_384 ? mbedtls_sha512(data, len, full, 1)
                     : mbedtls_sha256(data, len, full, 0));
    memcpy(digest, full, maths_hash_len(is_384));
}

void maths_hmac(bool is_384, const uint8_t *key, const void *data, size_t len,
                uint8_t *mac)
{
    size_t block = is_384 ? 128 : 64, hash = maths_hash_len(is_384);
    uint8_t text[128 + TEXT] = {0};

    ASSERT(len <= TEXT);
    memcpy(text, key, hash);
    for (size_t i = 0; i < block; i++) {
        text[i] ^= 0x36;
    }
    if (len != 0) {
        memcpy(text + block, data, len);
    }
    maths_hash(is_384, text, block + len, mac);
    for (size_t i = 0; i < block; i++) {
        text[i] ^= 0x36 ^ 0x5c;
    }
    memcpy(text + block, mac, hash);
    maths_hash(is_384, text, block + hash, mac);
}

void maths_expand(bool is_384, const uint8_t *secret, const char *label,
                  const void *context, size_t context_len, uint8_t *out,
                  size_t len)
{
    uint8_t info[3 + LABEL + 1 + 512 + 1], full[MATHS_HASH];
    size_t label_len = strlen(label), at = 3;

    ASSERT(label_len <= LABEL - 6 && context_len < 256);
    info[0] = (uint8_t)(len >> 8);
    info[1] = (uint8_t)len;
    info[2] = (uint8_t)(6 + label_len);
    memcpy(info + at, "tls13 ", 6);
    memcpy(info + at + 6, label, label_len);
    at += 6 + label_len;
    info[at++] = (uint8_t)context_len;
    if (context_len != 0) {
        memcpy(info + at, context, context_len);
    }
    at += context_len;
    info[at++] = 1;
    maths_hmac(is_384, secret, info, at, full);
    memcpy(out, full, len);
}

void maths_derive(bool is_384, const uint8_t *secret, const char *label,
                  const uint8_t *digest, uint8_t *out)
{
    uint8_t nothing[MATHS_HASH];
    size_t len = maths_hash_len(is_384);

    maths_hash(is_384, "", 0, nothing);
    maths_expand(is_384, secret, label, digest != NULL ? digest : nothing, len,
                 out, len);
}

void maths_multiply(const uint8_t *scalar, const uint8_t *point,
                    uint8_t *result)
{
    must_work(point != NULL
                  ? crypto_scalarmult_curve25519(result, scalar, point)
                  : crypto_scalarmult_curve25519_base(result, scalar));
}

void maths_key_init(struct maths_key *key, bool is_384, const uint8_t *secret)
{
    key->key_len = is_384 ? 32 : 16;
    key->sequence = 0;
    maths_expand(is_384, secret, "key", NULL, 0, key->key, key->key_len);
    maths_expand(is_384, secret, "iv", NULL, 0, key->iv, MATHS_IV);
}

/* Begin with the next record. */
static void gcm_begin(mbedtls_gcm_context *gcm, struct maths_key *key,
                      uint8_t *nonce)
{
    mbedtls_gcm_init(gcm);
    must_work(mbedtls_gcm_setkey(gcm, MBEDTLS_CIPHER_ID_AES, key->key,
                                 (unsigned int)key->key_len * 8));
    memcpy(nonce, key->iv, MATHS_IV);
    for (unsigned int i = 0; i < 8; i++) {
        nonce[MATHS_IV - 1 - i] ^= (uint8_t)(key->sequence >> 8 * i);
    }
    key->sequence++;
}

void maths_update(struct maths_key *key, bool is_384, uint8_t *secret)
{
    uint8_t next[MATHS_HASH];

    maths_expand(is_384, secret, "traffic upd", NULL, 0, next,
                 maths_hash_len(is_384));
    memcpy(secret, next, maths_hash_len(is_384));
    maths_key_init(key, is_384, secret);
}

void maths_seal(struct maths_key *key, const uint8_t header[5], uint8_t *bytes,
                size_t len)
{
    mbedtls_gcm_context gcm;
    uint8_t nonce[MATHS_IV];

    gcm_begin(&gcm, key, nonce);
    must_work(mbedtls_gcm_crypt_and_tag(&gcm, MBEDTLS_GCM_ENCRYPT, len, nonce,
                                        MATHS_IV, header, 5, bytes, bytes,
                                        MATHS_TAG, bytes + len));
    mbedtls_gcm_free(&gcm);
}

bool maths_open(struct maths_key *key, const uint8_t header[5], uint8_t *bytes,
                size_t len)
{
    mbedtls_gcm_context gcm;
    uint8_t nonce[MATHS_IV];
    int error;

    gcm_begin(&gcm, key, nonce);
    error = mbedtls_gcm_auth_decrypt(&gcm, len, nonce, MATHS_IV, header, 5,
                                     bytes + len, MATHS_TAG, bytes, bytes);
    mbedtls_gcm_free(&gcm);
    return error == 0;
}
