/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/toe/record_aead.h"

#include "mbedtls/gcm.h"

_Static_assert(sizeof(mbedtls_gcm_context) <= sizeof(struct record_key),
               "RECORD_AEAD_WORDS are enough");

static mbedtls_gcm_context *context_of(struct record_key *key)
{
    return (mbedtls_gcm_context *)key->words;
}

static void set_key(struct record_key *key, const uint8_t *bytes, size_t len)
{
    int error;

    mbedtls_gcm_init(context_of(key));
    error = mbedtls_gcm_setkey(context_of(key), MBEDTLS_CIPHER_ID_AES, bytes,
                               (unsigned int)len * 8);
    ASSERT(error == 0);
}

static void seal_record(struct record_key *key, const uint8_t *nonce,
                        const uint8_t *header, size_t header_len, uint8_t *data,
                        size_t length, uint8_t *tag)
{
    int error = mbedtls_gcm_crypt_and_tag(
        context_of(key), MBEDTLS_GCM_ENCRYPT, length, nonce, RECORD_IV_LEN,
        header, header_len, data, data, RECORD_TAG_LEN, tag);

    ASSERT(error == 0);
}

static bool open_record(struct record_key *key, const uint8_t *nonce,
                        const uint8_t *header, size_t header_len, uint8_t *data,
                        size_t length, const uint8_t *tag)
{
    return mbedtls_gcm_auth_decrypt(context_of(key), length, nonce,
                                    RECORD_IV_LEN, header, header_len, tag,
                                    RECORD_TAG_LEN, data, data) == 0;
}

const struct record_aead record_gcm = {
    .set_key = set_key,
    .seal = seal_record,
    .open = open_record,
};
