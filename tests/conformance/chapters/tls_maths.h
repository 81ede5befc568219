/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of the chapter `tls`: the key schedule of TLS 1.3 on the
 * functions of Mbed TLS and libsodium.  Nothing here uses nvmeof/tls or
 * firmware/crypto, so that what these do wrongly is noticed.
 * Spec: RFC 8446 section 7.1; RFC 5869; RFC 2104.
 */
#ifndef ESSD_CONFORM_TLS_MATHS_H
#define ESSD_CONFORM_TLS_MATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MATHS_HASH = 48, /* the longest hash */
    MATHS_POINT = 32,
    MATHS_TAG = 16,
    MATHS_IV = 12,
};

static inline size_t maths_hash_len(bool is_384)
{
    return is_384 ? 48 : 32;
}

void maths_hash(bool is_384, const void *data, size_t len, uint8_t *digest);

/** @param key  as long as the hash */
void maths_hmac(bool is_384, const uint8_t *key, const void *data, size_t len,
                uint8_t *mac);

/** HKDF-Expand-Label.  @param context  as long as the hash, or NULL */
void maths_expand(bool is_384, const uint8_t *secret, const char *label,
                  const void *context, size_t context_len, uint8_t *out,
                  size_t len);

/** Derive-Secret; the digest is that of the transcript, NULL: of nothing. */
void maths_derive(bool is_384, const uint8_t *secret, const char *label,
                  const uint8_t *digest, uint8_t *out);

/** @param point  NULL: the base point */
void maths_multiply(const uint8_t *scalar, const uint8_t *point,
                    uint8_t *result);

/* One direction of a connection. */
struct maths_key {
    uint8_t key[32], iv[MATHS_IV];
    size_t key_len;
    uint64_t sequence;
};

void maths_key_init(struct maths_key *key, bool is_384, const uint8_t *secret);

/** The key after a KeyUpdate; `secret` becomes the next one, too. */
void maths_update(struct maths_key *key, bool is_384, uint8_t *secret);

/** Encrypt `len` bytes in place; the tag follows them. */
void maths_seal(struct maths_key *key, const uint8_t header[5], uint8_t *bytes,
                size_t len);

/** Decrypt `len` bytes in place, which the tag follows.
 * @return whether they are authentic */
bool maths_open(struct maths_key *key, const uint8_t header[5], uint8_t *bytes,
                size_t len);

#endif
