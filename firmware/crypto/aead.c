/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/crypto/aead.h"

#include "firmware/crypto/x25519.h"
#include "mbedtls/gcm.h"

_Static_assert(sizeof(mbedtls_gcm_context) <= sizeof(struct tls_aead),
               "TLS_AEAD_WORDS are enough");

/* The functions of Mbed TLS fail only for lengths that TLS does not use. */
static void must_work(int error)
{
    ASSERT(error == 0);
}

static mbedtls_gcm_context *context_of(struct tls_aead *aead)
{
    return (mbedtls_gcm_context *)aead->words;
}

static void aead_init(struct tls_aead *aead, const uint8_t *key, size_t len)
{
    mbedtls_gcm_init(context_of(aead));
    must_work(mbedtls_gcm_setkey(context_of(aead), MBEDTLS_CIPHER_ID_AES, key,
                                 (unsigned int)len * 8));
}

static void aead_begin(struct tls_aead *aead, bool encrypts,
                       const uint8_t *nonce, struct auth_bytes header)
{
    mbedtls_gcm_context *gcm = context_of(aead);

    must_work(mbedtls_gcm_starts(
        gcm, encrypts ? MBEDTLS_GCM_ENCRYPT : MBEDTLS_GCM_DECRYPT, nonce,
        TLS_IV_LEN));
    must_work(mbedtls_gcm_update_ad(gcm, header.ptr, header.len));
}

static void aead_add(struct tls_aead *aead, const uint8_t *from, uint8_t *to,
                     size_t len)
{
    size_t done = 0;

    must_work(mbedtls_gcm_update(context_of(aead), from, len, to, len, &done));
    ASSERT(done == len);
}

static void aead_end(struct tls_aead *aead, uint8_t *tag)
{
    size_t done;

    must_work(
        mbedtls_gcm_finish(context_of(aead), NULL, 0, &done, tag, TLS_TAG_LEN));
}

struct tls_crypto crypto_tls_ops(struct crypto *crypto)
{
    return (struct tls_crypto){
        .base = crypto_ops(crypto),
        .aead_init = aead_init,
        .aead_begin = aead_begin,
        .aead_add = aead_add,
        .aead_end = aead_end,
        .x25519 = x25519_multiply,
    };
}
