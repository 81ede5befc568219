/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's end of TLS 1.3 for a load: a pre-shared key, X25519 and
 * TLS_AES_128_GCM_SHA256.  It uses the drive's own functions, and trusts what
 * the drive sends; the conformance suite has a client that does neither.
 */
#ifndef ESSD_TESTS_BENCH_TLS_CLIENT_H
#define ESSD_TESTS_BENCH_TLS_CLIENT_H

#include "firmware/crypto/aead.h"
#include "nvmeof/tls/tls_psk.h"
#include "nvmeof/tls/tls_record.h"

enum {
    TLS_CLIENT_HELLO_MAX = 1024, /* bytes of the records that it makes */
    TLS_CLIENT_RECORD = TLS_HEADER_LEN + TLS_PLAIN_MAX + TLS_OVERHEAD,
};

struct tls_client {
    struct crypto arithmetic;
    struct tls_crypto crypto;
    uint8_t exponent[X25519_LEN];
    struct tls_secret secret; /* of the key schedule, the latest one */
    uint8_t transcript[2 * TLS_CLIENT_HELLO_MAX];
    size_t transcript_len;
    struct tls_half sends, receives;
};

/** Begin a handshake with a key and its name.
 * @param record  TLS_CLIENT_HELLO_MAX bytes for ClientHello
 * @return how many were written */
size_t tls_client_begin(struct tls_client *client, const struct auth_key *key,
                        const struct tls_identity *name, uint8_t *record);

/** Bytes of the record that begins here, with its header.
 * @return 0: it is not complete */
size_t tls_client_record_len(const uint8_t *bytes, size_t len);

/** Take the drive's two records, ServerHello and its Finished.
 * @param flight  is decrypted in place
 * @param record  TLS_CLIENT_HELLO_MAX bytes for Finished
 * @return how many were written */
size_t tls_client_finish(struct tls_client *client, uint8_t *flight,
                         uint8_t *record);

/** Decrypt a record with data in place, behind its header.
 * @return how many bytes of data it has */
size_t tls_client_open(struct tls_client *client, uint8_t *record, size_t len);

#endif
