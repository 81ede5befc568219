/* SPDX-License-Identifier: BSD-2-Clause */
/* X25519, done by libsodium.  Spec: RFC 7748 section 5. */
#ifndef ESSD_CRYPTO_X25519_H
#define ESSD_CRYPTO_X25519_H

#include "nvmeof/tls/tls_crypto.h"

/** As tls_crypto.x25519. */
MUST_USE bool x25519_multiply(const uint8_t *scalar, const uint8_t *point,
                              uint8_t *result);

#endif
