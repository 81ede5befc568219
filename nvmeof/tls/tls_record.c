/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tls/tls_record.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

void tls_header_emit(const struct tls_header *header, uint8_t *buf)
{
    buf[TLS_TYPE] = header->type;
    put_be16(buf + TLS_VERSION, TLS_VERSION_12);
    put_be16(buf + TLS_LENGTH, header->len_bytes);
}

enum tls_alert tls_header_parse(struct tls_header *header, const uint8_t *buf)
{
    *header = (struct tls_header){
        .type = buf[TLS_TYPE],
        .len_bytes = get_be16(buf + TLS_LENGTH),
    };
    if (header->type < TLS_TYPE_CCS || header->type > TLS_TYPE_DATA) {
        return TLS_ALERT_UNEXPECTED;
    }
    if (buf[TLS_VERSION] != 3) {
        return TLS_ALERT_VERSION;
    }
    if (header->len_bytes >
        (header->type == TLS_TYPE_DATA ? TLS_CIPHER_MAX : TLS_PLAIN_MAX)) {
        return TLS_ALERT_OVERFLOW;
    }
    return TLS_ALERT_NONE;
}

size_t tls_traffic_key(const struct tls_crypto *crypto, enum auth_hash hash,
                       const struct tls_secret *secret, uint8_t *key,
                       uint8_t *iv)
{
    const struct auth_bytes nothing = {"", 0};
    size_t len = hash == AUTH_SHA384 ? 32 : 16;

    tls_expand_label(crypto, hash, secret, "key", nothing, key, len);
    tls_expand_label(crypto, hash, secret, "iv", nothing, iv, TLS_IV_LEN);
    return len;
}

void tls_update_secret(const struct tls_crypto *crypto, enum auth_hash hash,
                       struct tls_secret *secret)
{
    const struct auth_bytes nothing = {"", 0};
    struct tls_secret next = *secret;

    tls_expand_label(crypto, hash, secret, "traffic upd", nothing, next.bytes,
                     auth_hash_len((uint8_t)hash));
    *secret = next;
    wipe_bytes(&next, sizeof(next));
}

void tls_half_init(struct tls_half *half, const struct tls_crypto *crypto,
                   enum auth_hash hash, const struct tls_secret *secret)
{
    uint8_t key[32];
    size_t len = tls_traffic_key(crypto, hash, secret, key, half->iv);

    crypto->aead_init(&half->aead, key, len);
    half->sequence = 0;
    half->blocks = 0;
    wipe_bytes(key, sizeof(key));
}

/* Begin the record with the next sequence number. */
static void begin_record(struct tls_half *half, const struct tls_crypto *crypto,
                         bool encrypts, const uint8_t *header)
{
    uint8_t nonce[TLS_IV_LEN];

    ASSERT(!tls_half_is_spent(half));
    memcpy(nonce, half->iv, sizeof(nonce));
    put_be32(nonce + 8, get_be32(nonce + 8) ^ half->sequence);
    half->sequence++;
    half->blocks +=
        (get_be16(header + TLS_LENGTH) + TLS_BLOCK_LEN - 1u) / TLS_BLOCK_LEN;
    crypto->aead_begin(&half->aead, encrypts, nonce,
                       (struct auth_bytes){header, TLS_HEADER_LEN});
}

void tls_seal_begin(struct tls_half *half, const struct tls_crypto *crypto,
                    uint32_t len_bytes, uint8_t *header)
{
    const struct tls_header fields = {TLS_TYPE_DATA,
                                      (uint16_t)(len_bytes + TLS_OVERHEAD)};

    ASSERT(len_bytes <= TLS_PLAIN_MAX);
    tls_header_emit(&fields, header);
    begin_record(half, crypto, true, header);
}

void tls_seal_end(struct tls_half *half, const struct tls_crypto *crypto,
                  enum tls_type type, uint8_t *to)
{
    uint8_t byte = (uint8_t)type;

    crypto->aead_add(&half->aead, &byte, to, 1);
    crypto->aead_end(&half->aead, to + 1);
}

size_t tls_seal(struct tls_half *half, const struct tls_crypto *crypto,
                enum tls_type type, const uint8_t *data, uint32_t len_bytes,
                uint8_t *record)
{
    uint8_t *to = record + TLS_HEADER_LEN;

    tls_seal_begin(half, crypto, len_bytes, record);
    crypto->aead_add(&half->aead, data, to, len_bytes);
    tls_seal_end(half, crypto, type, to + len_bytes);
    return TLS_HEADER_LEN + (size_t)len_bytes + TLS_OVERHEAD;
}

void tls_open_begin(struct tls_half *half, const struct tls_crypto *crypto,
                    const uint8_t *header)
{
    begin_record(half, crypto, false, header);
}

bool tls_open_end(struct tls_half *half, const struct tls_crypto *crypto,
                  const uint8_t *tag)
{
    uint8_t expected[TLS_TAG_LEN];

    crypto->aead_end(&half->aead, expected);
    return tls_is_equal(expected, tag, TLS_TAG_LEN);
}
