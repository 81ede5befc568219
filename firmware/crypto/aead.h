/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions for TLS (nvmeof/tls/tls_crypto.h): AES-GCM is done by Mbed TLS,
 * X25519 by libsodium. */
#ifndef ESSD_CRYPTO_AEAD_H
#define ESSD_CRYPTO_AEAD_H

#include "firmware/crypto/crypto.h"
#include "nvmeof/tls/tls_crypto.h"

/** The functions for TLS; `crypto` must outlive their use. */
struct tls_crypto crypto_tls_ops(struct crypto *crypto);

#endif
