/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/crypto/crypto.h"

#include <string.h>

#include "mbedtls/platform_util.h"
#include "mbedtls/sha256.h"
#include "mbedtls/sha512.h"

enum { BLOCK_MAX = 128 }; /* block length of SHA-384 and SHA-512 */

struct hash {
    enum auth_hash type;
    union {
        mbedtls_sha256_context sha256;
        mbedtls_sha512_context sha512; /* and of SHA-384 */
    };
};

/* The functions of Mbed TLS fail only in builds with hardware drivers. */
static void hash_begin(struct hash *hash, enum auth_hash type)
{
    int error;

    hash->type = type;
    if (type == AUTH_SHA256) {
        mbedtls_sha256_init(&hash->sha256);
        error = mbedtls_sha256_starts(&hash->sha256, 0);
    } else {
        mbedtls_sha512_init(&hash->sha512);
        error = mbedtls_sha512_starts(&hash->sha512, type == AUTH_SHA384);
    }
    ASSERT(error == 0);
}

static void hash_add(struct hash *hash, const void *data, size_t len)
{
    int error = hash->type == AUTH_SHA256
                    ? mbedtls_sha256_update(&hash->sha256, data, len)
                    : mbedtls_sha512_update(&hash->sha512, data, len);

    ASSERT(error == 0);
}

static void hash_end(struct hash *hash, uint8_t *digest)
{
    uint8_t full[AUTH_HASH_MAX]; /* some versions write 64 bytes for SHA-384 */
    int error = hash->type == AUTH_SHA256
                    ? mbedtls_sha256_finish(&hash->sha256, full)
                    : mbedtls_sha512_finish(&hash->sha512, full);

    ASSERT(error == 0);
    memcpy(digest, full, auth_hash_len((uint8_t)hash->type));
    mbedtls_platform_zeroize(full, sizeof(full));
    mbedtls_platform_zeroize(hash, sizeof(*hash));
}

static size_t block_len(enum auth_hash type)
{
    return type == AUTH_SHA256 ? 64 : BLOCK_MAX;
}

/* Begin one of the two hashes of an HMAC: its first block is the key, exclusive
 * or `pad`.  Spec: RFC 2104 section 2. */
static void hmac_begin(struct hash *hash, enum auth_hash type,
                       struct auth_bytes key, uint8_t pad)
{
    uint8_t block[BLOCK_MAX] = {0};

    ASSERT(key.len <= block_len(type));
    memcpy(block, key.ptr, key.len);
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= pad;
    }
    hash_begin(hash, type);
    hash_add(hash, block, block_len(type));
    mbedtls_platform_zeroize(block, sizeof(block));
}

static void crypto_random(void *ctx, uint8_t *buf, size_t len)
{
    struct crypto *crypto = ctx;

    crypto->random(crypto->random_ctx, buf, len);
}

static void crypto_hash(void *ctx, enum auth_hash type, const uint8_t *data,
                        size_t len, uint8_t *digest)
{
    struct hash hash;

    (void)ctx;
    hash_begin(&hash, type);
    hash_add(&hash, data, len);
    hash_end(&hash, digest);
}

static void crypto_hmac(void *ctx, enum auth_hash type, struct auth_bytes key,
                        const struct auth_bytes *parts, size_t count,
                        uint8_t *mac)
{
    uint8_t inner[AUTH_HASH_MAX];
    struct hash hash;

    (void)ctx;
    hmac_begin(&hash, type, key, 0x36);
    for (size_t i = 0; i < count; i++) {
        hash_add(&hash, parts[i].ptr, parts[i].len);
    }
    hash_end(&hash, inner);
    hmac_begin(&hash, type, key, 0x5c);
    hash_add(&hash, inner, auth_hash_len((uint8_t)type));
    hash_end(&hash, mac);
    mbedtls_platform_zeroize(inner, sizeof(inner));
}

static bool crypto_dh_accepts(void *ctx, enum auth_dh dh, const uint8_t *value)
{
    (void)ctx;
    return dh_power_accepts(dh, value);
}

static void crypto_dh_start(void *ctx, enum auth_dh dh, const uint8_t *base,
                            const uint8_t *exponent)
{
    struct crypto *crypto = ctx;

    dh_power_start(&crypto->power, dh, base, exponent);
}

static bool crypto_dh_step(void *ctx)
{
    struct crypto *crypto = ctx;

    return dh_power_step(&crypto->power);
}

static void crypto_dh_result(void *ctx, uint8_t *value)
{
    struct crypto *crypto = ctx;

    dh_power_result(&crypto->power, value);
}

void crypto_init(struct crypto *crypto,
                 void (*random)(void *ctx, uint8_t *buf, size_t len),
                 void *random_ctx)
{
    memset(crypto, 0, sizeof(*crypto));
    crypto->random = random;
    crypto->random_ctx = random_ctx;
}

struct auth_crypto crypto_ops(struct crypto *crypto)
{
    return (struct auth_crypto){
        .ctx = crypto,
        .random = crypto_random,
        .hash = crypto_hash,
        .hmac = crypto_hmac,
        .dh_accepts = crypto_dh_accepts,
        .dh_start = crypto_dh_start,
        .dh_step = crypto_dh_step,
        .dh_result = crypto_dh_result,
    };
}
