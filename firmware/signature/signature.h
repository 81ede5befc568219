/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the hash and the signature of firmware images: SHA-512 and Ed25519 of
 * libsodium (tools/essd/build/libraries.py).
 * Reference: docs/hardware/boot.md, "Signatures"
 */
#ifndef ESSD_SIGNATURE_SIGNATURE_H
#define ESSD_SIGNATURE_SIGNATURE_H

#include "firmware/store/image.h"
#include "lib/util.h"

enum { SIGNATURE_KEY_LEN = 32 };

/* The state of a hash: room for libsodium's state, whose size signature.c
 * checks. */
struct image_digest {
    _Alignas(8) uint8_t state[256];
};

void image_digest_begin(struct image_digest *digest);
void image_digest_add(struct image_digest *digest, const uint8_t *data,
                      size_t len);
void image_digest_end(struct image_digest *digest,
                      uint8_t hash[IMAGE_HASH_LEN]);

/**
 * Check the signature of a header, which covers the hash of the image.
 *
 * @param buf  the header's bytes, which image_header_parse() has accepted
 * @param key  SIGNATURE_KEY_LEN bytes: the public key
 * @return false when the header is not signed, or with another key
 */
MUST_USE bool signature_is_good(const struct image_header *header,
                                const uint8_t *buf, const uint8_t *key);

#endif
