/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets of DH-HMAC-CHAP, as `nvme gen-dhchap-key` prints them:
 * "DHHC-1:", two digits for the hash of the transformation, ":", the key and
 * its CRC-32 in base64, ":".
 * Spec: NVM Express Base 2.0 section 8.13.5.8.
 */
#ifndef ESSD_NVMEOF_AUTH_KEY_H
#define ESSD_NVMEOF_AUTH_KEY_H

#include "nvmeof/auth/auth_wire.h"

enum {
    AUTH_KEY_TEXT_MAX = 128
}; /* characters of the longest secret, rounded */

struct auth_key {
    uint8_t len;  /* 32, 48 or 64; 0: there is no key */
    uint8_t hash; /* of the transformation, enum auth_hash */
    uint8_t bytes[AUTH_HASH_MAX];
};

/** @return false when the text is not a secret, or its CRC-32 is wrong; *key is
 *          then empty */
MUST_USE bool auth_key_parse(struct auth_key *key, const char *text);

/**
 * The same of a pre-shared key for TLS, as `nvme gen-tls-key` prints it:
 * "NVMeTLSkey-1:", two digits, ":", the key of 32 or 48 bytes and its CRC-32 in
 * base64, ":".  Hash 0 stands for a key that is used without transformation.
 * Spec: NVM Express TCP Transport 1.1 section 3.6.1.5.
 */
MUST_USE bool auth_psk_parse(struct auth_key *key, const char *text);

#endif
