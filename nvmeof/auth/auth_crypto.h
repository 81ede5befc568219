/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of DH-HMAC-CHAP, as authentication sees it.
 *
 * Everything that depends on a key or on a private exponent takes the same time
 * whatever its value is.
 */
#ifndef ESSD_NVMEOF_AUTH_CRYPTO_H
#define ESSD_NVMEOF_AUTH_CRYPTO_H

#include "nvmeof/auth/auth_wire.h"

struct auth_bytes {
    const void *ptr;
    size_t len;
};

struct auth_crypto {
    void *ctx; /* first argument of every function below */

    /** Fill `buf` with random bytes that nobody can predict. */
    void (*random)(void *ctx, uint8_t *buf, size_t len);

    /** @param digest  auth_hash_len(hash) bytes */
    void (*hash)(void *ctx, enum auth_hash hash, const uint8_t *data,
                 size_t len, uint8_t *digest);

    /** HMAC of the parts, one after the other.
     * @param mac  auth_hash_len(hash) bytes */
    void (*hmac)(void *ctx, enum auth_hash hash, struct auth_bytes key,
                 const struct auth_bytes *parts, size_t count, uint8_t *mac);

    /** Whether a peer's Diffie-Hellman value is in 2..p-2. */
    bool (*dh_accepts)(void *ctx, enum auth_dh dh, const uint8_t *value);

    /**
     * Start to raise `base` to the power of `exponent`.  Only one
     * exponentiation runs at a time; starting one drops that before it.
     *
     * @param base      auth_dh_len(dh) bytes; NULL for the generator
     * @param exponent  auth_exponent_len(dh) bytes; both are copied
     */
    void (*dh_start)(void *ctx, enum auth_dh dh, const uint8_t *base,
                     const uint8_t *exponent);

    /** Do a bounded part of the work.  @return true when it is done */
    bool (*dh_step)(void *ctx);

    /** Get the result, auth_dh_len(dh) bytes, and wipe the working memory. */
    void (*dh_result)(void *ctx, uint8_t *value);
};

#endif
