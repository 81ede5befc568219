/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of TLS 1.3 as nvmeof/tls sees it: that of authentication,
 * AES-GCM in pieces, and X25519.
 */
#ifndef ESSD_NVMEOF_TLS_CRYPTO_H
#define ESSD_NVMEOF_TLS_CRYPTO_H

#include "nvmeof/auth/auth_crypto.h"

enum {
    TLS_AEAD_WORDS = 128, /* memory for one key; the crypto checks that it is
                           * enough */
    TLS_TAG_LEN = 16,
    TLS_IV_LEN = 12,
    X25519_LEN = 32,
};

/* One key of AES-GCM and the record that is under way.  It belongs to the
 * functions below. */
struct tls_aead {
    uint64_t words[TLS_AEAD_WORDS];
};

struct tls_crypto {
    struct auth_crypto base; /* random numbers, hashes and HMAC */

    /** Set a key of 16 or 32 bytes. */
    void (*aead_init)(struct tls_aead *aead, const uint8_t *key, size_t len);

    /** Begin a record.
     * @param nonce  TLS_IV_LEN bytes
     * @param header authenticated, not encrypted */
    void (*aead_begin)(struct tls_aead *aead, bool encrypts,
                       const uint8_t *nonce, struct auth_bytes header);

    /** Encrypt or decrypt the next bytes of a record; `to` may be `from`. */
    void (*aead_add)(struct tls_aead *aead, const uint8_t *from, uint8_t *to,
                     size_t len);

    /** @param tag  TLS_TAG_LEN bytes, all written */
    void (*aead_end)(struct tls_aead *aead, uint8_t *tag);

    /** Multiply a point.  Everything has X25519_LEN bytes.
     * @param scalar  the function clamps a copy of it
     * @param point   NULL: the base point
     * @return false when the result is 0: the point was of small order */
    bool (*x25519)(const uint8_t *scalar, const uint8_t *point,
                   uint8_t *result);
};

#endif
