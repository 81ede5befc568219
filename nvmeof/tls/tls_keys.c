/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_keys.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

static struct auth_bytes secret_bytes(enum auth_hash hash,
                                      const struct tls_secret *secret)
{
    return (struct auth_bytes){secret->bytes, auth_hash_len((uint8_t)hash)};
}

void tls_extract(const struct tls_crypto *crypto, enum auth_hash hash,
                 const struct tls_secret *salt, struct auth_bytes input,
                 struct tls_secret *out)
{
    const struct tls_secret zeroes = {{0}};
    struct tls_secret prk;

    crypto->base.hmac(crypto->base.ctx, hash,
                      secret_bytes(hash, salt != NULL ? salt : &zeroes), &input,
                      1, prk.bytes);
    *out = prk;
    wipe_bytes(&prk, sizeof(prk));
}

void tls_expand_label(const struct tls_crypto *crypto, enum auth_hash hash,
                      const struct tls_secret *secret, const char *label,
                      struct auth_bytes context, uint8_t *out, size_t len)
{
    uint8_t head[3];
    uint8_t context_len = (uint8_t)context.len;
    uint8_t block = 1;
    uint8_t full[AUTH_HASH_MAX];
    const struct auth_bytes parts[] = {
        {head, sizeof(head)}, {"tls13 ", 6}, {label, strlen(label)},
        {&context_len, 1},    context,       {&block, 1},
    };

    ASSERT(len <= auth_hash_len((uint8_t)hash) && context.len <= UINT8_MAX);
    put_be16(head, (uint16_t)len);
    head[2] = (uint8_t)(6 + strlen(label));
    crypto->base.hmac(crypto->base.ctx, hash, secret_bytes(hash, secret), parts,
                      ARRAY_LEN(parts), full);
    memcpy(out, full, len);
    wipe_bytes(full, sizeof(full));
}

void tls_derive(const struct tls_crypto *crypto, enum auth_hash hash,
                const struct tls_secret *secret, const char *label,
                const uint8_t *digest, struct tls_secret *out)
{
    size_t len = auth_hash_len((uint8_t)hash);

    tls_expand_label(crypto, hash, secret, label,
                     (struct auth_bytes){digest, len}, out->bytes, len);
}

void tls_next_secret(const struct tls_crypto *crypto, enum auth_hash hash,
                     const struct tls_secret *secret, const uint8_t *input,
                     size_t len, struct tls_secret *out)
{
    static const uint8_t zeroes[TLS_SECRET_MAX];
    uint8_t empty[AUTH_HASH_MAX];
    struct tls_secret derived;

    crypto->base.hash(crypto->base.ctx, hash, zeroes, 0, empty);
    tls_derive(crypto, hash, secret, "derived", empty, &derived);
    if (input == NULL) {
        input = zeroes;
        len = auth_hash_len((uint8_t)hash);
    }
    tls_extract(crypto, hash, &derived, (struct auth_bytes){input, len}, out);
    wipe_bytes(&derived, sizeof(derived));
}

void tls_finished_mac(const struct tls_crypto *crypto, enum auth_hash hash,
                      const struct tls_secret *base, const uint8_t *digest,
                      uint8_t *mac)
{
    size_t len = auth_hash_len((uint8_t)hash);
    const struct auth_bytes message = {digest, len};
    struct tls_secret key;

    tls_expand_label(crypto, hash, base, "finished", (struct auth_bytes){"", 0},
                     key.bytes, len);
    crypto->base.hmac(crypto->base.ctx, hash, secret_bytes(hash, &key),
                      &message, 1, mac);
    wipe_bytes(&key, sizeof(key));
}

bool tls_is_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    uint8_t difference = 0;

    for (size_t i = 0; i < len; i++) {
        difference |= a[i] ^ b[i];
    }
    return difference == 0;
}
