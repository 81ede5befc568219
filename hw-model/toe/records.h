/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of TLS 1.3 as the TCP offload engine opens and seals them.
 * Reference: docs/hardware/toe.md, section 4.3; RFC 8446 section 5.
 *
 * It knows nothing of the engine: where bytes go is handed in, so that tests
 * can use it by itself.  No byte of a record is handed on before its tag was
 * found right.
 */
#ifndef ESSD_HW_TOE_RECORDS_H
#define ESSD_HW_TOE_RECORDS_H

#include "hw-model/toe/record_aead.h"

enum {
    RECORD_HEADER_LEN = 5,
    RECORD_PLAIN_MAX = 16384,
    RECORD_OVERHEAD = 1 + RECORD_TAG_LEN, /* type and tag */
    RECORD_CIPHER_MAX = RECORD_PLAIN_MAX + 256,
    RECORD_KEY_MAX = 32,

    RECORDS_RX_LEN = 65536, /* the largest window of such a connection */
    RECORDS_TX_LEN = 65536, /* sealed and not acknowledged */
    RECORD_HEAD_LEN = 8,    /* what is told of a record that has no data */
};

enum record_type {
    RECORD_ALERT = 21,
    RECORD_HANDSHAKE = 22,
    RECORD_DATA = 23,
};

/* What RFC 8446 wants to be answered. */
enum record_alert {
    RECORD_UNEXPECTED = 10,
    RECORD_BAD_MAC = 20,
    RECORD_OVERFLOW = 22,
    RECORD_VERSION = 70,
    RECORD_INTERNAL = 80, /* the key is used up */
    RECORD_FINE = 255,
};

/* One direction. */
struct record_half {
    bool is_on;
    uint8_t iv[RECORD_IV_LEN];
    uint64_t sequence; /* of the next record */
    uint64_t blocks;   /* of AES with this key, parts of one included */
    struct record_key key;
};

/* A record that has no data for the stream. */
struct record_note {
    uint8_t type;
    uint16_t len_bytes;
    uint8_t head[RECORD_HEAD_LEN]; /* its first bytes */
};

/* What a stream's bytes go to. */
struct records_sink {
    void *ctx;
    /* The next bytes of the content. */
    void (*deliver)(void *ctx, const uint8_t *data, uint32_t len);
    /* So many bytes of the stream are content of nothing. */
    void (*consume)(void *ctx, uint32_t len);
};

/* What was received. */
struct records_rx {
    struct record_half half;
    bool is_held;  /* at a record that has no data: `note` */
    uint8_t alert; /* enum record_alert: what came is not allowed */
    struct record_note note;
    uint32_t have; /* bytes that no whole record has */
    uint8_t bytes[RECORDS_RX_LEN];
};

/* What is sent. */
struct records_tx {
    struct record_half half;
    uint64_t made, acked; /* bytes of the stream */
    uint8_t bytes[RECORDS_TX_LEN];
};

/** @param key  len_bytes of it: 16 or 32 */
void record_half_begin(struct record_half *half, const struct record_aead *aead,
                       const uint8_t *key, size_t len, const uint8_t *iv,
                       uint64_t sequence);

/** Whether its key must not be used for another record. */
bool record_half_is_spent(const struct record_half *half);

/** Keep bytes of the stream that come before those of the next records_take(),
 * and open nothing yet. */
void records_keep(struct records_rx *rx, const uint8_t *data, uint32_t len);

/** Take bytes of the stream; together with those that wait no more than
 * RECORDS_RX_LEN.  What comes after an alert is dropped. */
void records_take(struct records_rx *rx, const struct record_aead *aead,
                  const struct records_sink *sink, const uint8_t *data,
                  uint32_t len);

/** Go on after a record that has no data. */
void records_resume(struct records_rx *rx, const struct record_aead *aead,
                    const struct records_sink *sink);

/** The most content for which there is room in a record now. */
uint32_t records_room(const struct records_tx *tx);

/**
 * Make a record, whose `len` bytes of content are at RECORD_HEADER_LEN of
 * `record`, which has room for RECORD_OVERHEAD more.
 */
void records_seal(struct records_tx *tx, const struct record_aead *aead,
                  enum record_type type, uint8_t *record, uint32_t len);

#endif
