/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key schedule of TLS 1.3.
 *
 * A cipher suite is named by its hash: AUTH_SHA256 stands for
 * TLS_AES_128_GCM_SHA256 and AUTH_SHA384 for TLS_AES_256_GCM_SHA384.
 * Spec: RFC 8446 section 7; RFC 5869.
 */
#ifndef ESSD_NVMEOF_TLS_KEYS_H
#define ESSD_NVMEOF_TLS_KEYS_H

#include "nvmeof/tls/tls_crypto.h"

enum {
    TLS_SECRET_MAX = 48, /* bytes of the longest hash of a cipher suite */
};

/* A secret as long as the hash of its cipher suite. */
struct tls_secret {
    uint8_t bytes[TLS_SECRET_MAX];
};

/** HKDF-Extract.  @param salt  NULL: as many zeroes as the hash has bytes */
void tls_extract(const struct tls_crypto *crypto, enum auth_hash hash,
                 const struct tls_secret *salt, struct auth_bytes input,
                 struct tls_secret *out);

/** HKDF-Expand-Label.
 * @param label  without "tls13 "
 * @param len    of the output, at most that of the hash */
void tls_expand_label(const struct tls_crypto *crypto, enum auth_hash hash,
                      const struct tls_secret *secret, const char *label,
                      struct auth_bytes context, uint8_t *out, size_t len);

/** Derive-Secret of a transcript whose hash is `digest`. */
void tls_derive(const struct tls_crypto *crypto, enum auth_hash hash,
                const struct tls_secret *secret, const char *label,
                const uint8_t *digest, struct tls_secret *out);

/** The next of the three extracted secrets: "derived" from `secret`, and then
 * extracted with `input`; NULL: as many zeroes as the hash has bytes. */
void tls_next_secret(const struct tls_crypto *crypto, enum auth_hash hash,
                     const struct tls_secret *secret, const uint8_t *input,
                     size_t len, struct tls_secret *out);

/** The MAC of Finished messages and PSK binders: that of `digest`, with the
 * "finished" key of `base`. */
void tls_finished_mac(const struct tls_crypto *crypto, enum auth_hash hash,
                      const struct tls_secret *base, const uint8_t *digest,
                      uint8_t *mac);

/** Compare in a time that does not depend on the bytes. */
bool tls_is_equal(const uint8_t *a, const uint8_t *b, size_t len);

#endif
