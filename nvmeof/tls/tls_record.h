/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of TLS 1.3.  Spec: RFC 8446 section 5.
 *
 * A record is encrypted and decrypted in pieces, because its bytes come out of
 * a ring and go into another one.
 */
#ifndef ESSD_NVMEOF_TLS_RECORD_H
#define ESSD_NVMEOF_TLS_RECORD_H

#include "nvmeof/tls/tls_keys.h"

enum tls_type {
    TLS_TYPE_NONE = 0,
    TLS_TYPE_CCS = 20, /* change_cipher_spec, which means nothing any more */
    TLS_TYPE_ALERT = 21,
    TLS_TYPE_HANDSHAKE = 22,
    TLS_TYPE_DATA = 23,
};

enum tls_alert {
    TLS_ALERT_CLOSE = 0,
    TLS_ALERT_UNEXPECTED = 10,
    TLS_ALERT_BAD_MAC = 20,
    TLS_ALERT_OVERFLOW = 22,
    TLS_ALERT_HANDSHAKE = 40,
    TLS_ALERT_ILLEGAL = 47,
    TLS_ALERT_DECODE = 50,
    TLS_ALERT_DECRYPT = 51,
    TLS_ALERT_VERSION = 70,
    TLS_ALERT_INTERNAL = 80,
    TLS_ALERT_MISSING = 109,
    TLS_ALERT_NONE = 255,
};

enum {                  /* byte offsets of a record's header */
       TLS_TYPE = 0,    /* enum tls_type; TLS_TYPE_DATA if it is encrypted */
       TLS_VERSION = 1, /* 3, 1 or 3, 3: not looked at */
       TLS_LENGTH = 3,  /* big-endian, of what follows */
       TLS_HEADER_LEN = 5,
       TLS_VERSION_12 = 0x0303,
       TLS_VERSION_13 = 0x0304,
       TLS_PLAIN_MAX = 16384,
       TLS_OVERHEAD = 1 + TLS_TAG_LEN, /* of an encrypted record */
       TLS_CIPHER_MAX = TLS_PLAIN_MAX + 256,
       TLS_ALERT_LEN = 2,
};

/* After so many blocks of AES with one key its connection ends.  The limit of
 * RFC 8446 section 5.5 is 2^24.5 records with all of their 2^14 bytes; most
 * records of a drive are much shorter. */
enum { TLS_BLOCK_LEN = 16 };
#define TLS_BLOCKS_MAX (UINT64_C(23726566) * (TLS_PLAIN_MAX / TLS_BLOCK_LEN))

struct tls_header {
    uint8_t type;
    uint16_t len_bytes;
};

/** @param buf  TLS_HEADER_LEN bytes, all written */
void tls_header_emit(const struct tls_header *header, uint8_t *buf);

/** @return TLS_ALERT_NONE, or what to answer to these TLS_HEADER_LEN bytes */
enum tls_alert tls_header_parse(struct tls_header *header, const uint8_t *buf);

/* One direction of a connection. */
struct tls_half {
    struct tls_aead aead;
    uint8_t iv[TLS_IV_LEN];
    uint32_t sequence; /* of the next record */
    uint64_t blocks;   /* encrypted or decrypted, parts of one included */
};

/** The key and the IV of a traffic secret.
 * @param key  32 bytes; @return how many of them it has */
size_t tls_traffic_key(const struct tls_crypto *crypto, enum auth_hash hash,
                       const struct tls_secret *secret, uint8_t *key,
                       uint8_t *iv);

/** The traffic secret after a KeyUpdate.  Spec: RFC 8446 section 7.2. */
void tls_update_secret(const struct tls_crypto *crypto, enum auth_hash hash,
                       struct tls_secret *secret);

/** Begin with a traffic secret. */
void tls_half_init(struct tls_half *half, const struct tls_crypto *crypto,
                   enum auth_hash hash, const struct tls_secret *secret);

/** Whether the key must not be used for another record. */
static inline bool tls_half_is_spent(const struct tls_half *half)
{
    return half->blocks >= TLS_BLOCKS_MAX || half->sequence == UINT32_MAX;
}

/** Begin a record with `len_bytes` of content: write its header. */
void tls_seal_begin(struct tls_half *half, const struct tls_crypto *crypto,
                    uint32_t len_bytes, uint8_t *header);

/** After the content was added: write the TLS_OVERHEAD bytes behind it. */
void tls_seal_end(struct tls_half *half, const struct tls_crypto *crypto,
                  enum tls_type type, uint8_t *to);

/** Make a whole record; `data` may not overlap `record`.
 * @return its length */
size_t tls_seal(struct tls_half *half, const struct tls_crypto *crypto,
                enum tls_type type, const uint8_t *data, uint32_t len_bytes,
                uint8_t *record);

/** Begin to decrypt a record with this header. */
void tls_open_begin(struct tls_half *half, const struct tls_crypto *crypto,
                    const uint8_t *header);

/** After its bytes were added.
 * @param tag  the last TLS_TAG_LEN bytes of the record
 * @return false when it is not authentic: nothing of it may be used */
MUST_USE bool tls_open_end(struct tls_half *half,
                           const struct tls_crypto *crypto, const uint8_t *tag);

#endif
