/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arithmetic of authentication (nvmeof/auth/auth_crypto.h), done by Mbed
 * TLS in memory of this struct.
 */
#ifndef ESSD_CRYPTO_CRYPTO_H
#define ESSD_CRYPTO_CRYPTO_H

#include "firmware/crypto/dh_power.h"
#include "nvmeof/auth/auth_crypto.h"

/* Treat as opaque. */
struct crypto {
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
    struct dh_power power;
};

/** @param random  fills a buffer with bytes that nobody can predict */
void crypto_init(struct crypto *crypto,
                 void (*random)(void *ctx, uint8_t *buf, size_t len),
                 void *random_ctx);

/** The functions for authentication; `crypto` must outlive their use. */
struct auth_crypto crypto_ops(struct crypto *crypto);

#endif
