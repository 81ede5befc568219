/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's side of a handshake of TLS 1.3: a pre-shared key and X25519,
 * nothing else.  There are no certificates, no tickets, no early data and no
 * updates of keys.  Spec: RFC 8446.
 *
 *   ClientHello                    ->
 *                                  <- HelloRetryRequest, if it has no value for
 *                                     X25519; ClientHello again
 *                                  <- ServerHello, EncryptedExtensions,
 * Finished Finished                       ->
 *
 * A step (tls_server_step()) has at most one multiplication of X25519.  A
 * handshake uses the memory of its struct only.
 */
#ifndef ESSD_NVMEOF_TLS_SERVER_H
#define ESSD_NVMEOF_TLS_SERVER_H

#include "nvmeof/tls/tls_hello.h"
#include "nvmeof/tls/tls_psk.h"

enum {
    TLS_HELLO_MAX = 4096, /* bytes of a ClientHello */
    TLS_RECORD_MAX = TLS_HEADER_LEN + TLS_HELLO_MAX, /* in a handshake */
    TLS_TRANSCRIPT_MAX = TLS_HELLO_MAX + 640,
    TLS_OUT_MAX = 512,
    TLS_NAMES_MAX = 4, /* of keys in a ClientHello that are looked up */
};

/* What a handshake waits for. */
enum tls_server_state {
    TLS_SERVER_IDLE,     /* Has no connection; waits for tls_server_start(). */
    TLS_SERVER_HELLO_1,  /* Waits for the ClientHello. */
    TLS_SERVER_HELLO_2,  /* Waits for the one after HelloRetryRequest. */
    TLS_SERVER_PUBLIC,   /* Computes its public value. */
    TLS_SERVER_SHARED,   /* Computes the shared secret. */
    TLS_SERVER_FINISHED, /* Waits for the Finished of the client. */
    TLS_SERVER_DONE,     /* Has the secrets; waits for tls_server_wipe(). */
    TLS_SERVER_FAILED,   /* Has failed; waits for tls_server_wipe(). */
    TLS_SERVER_STATES
};

struct tls_server_config {
    const struct tls_crypto *crypto;

    /**
     * Find the keys with this name.
     *
     * @param keys  TLS_STYLES places
     * @return how many there are; 0: the name is unknown
     */
    unsigned int (*find_keys)(void *ctx, const struct tls_identity *identity,
                              struct tls_secret *keys);
    void *ctx;
};

/* A handshake.  Others read `state`, `alert`, `out`, `is_known`, and when it is
 * DONE `identity`, `key`, `hash`, `from_client` and `from_server`. */
struct tls_server {
    struct tls_server_config config;
    uint8_t state;    /* enum tls_server_state */
    uint8_t alert;    /* enum tls_alert: why it has failed */
    bool was_alerted; /* by the client */
    bool is_known;    /* the client has proven a key, or repeats what one
                       * has sent that had it */
    bool was_retried; /* HelloRetryRequest was sent */
    uint8_t hash;     /* enum auth_hash: of the cipher suite */
    uint16_t psk;     /* number of the key in the ClientHello */
    uint8_t session_len;
    uint8_t session[TLS_SESSION_MAX];
    struct tls_identity identity;
    struct tls_secret key; /* with this name, that the client has */

    uint8_t exponent[X25519_LEN];
    uint8_t peer_share[X25519_LEN];
    uint8_t share[X25519_LEN];

    struct tls_secret early;                    /* then the handshake secret */
    struct tls_secret from_client, from_server; /* traffic secrets */
    struct tls_secret next_from_client, next_from_server; /* of the data */
    struct tls_half receives, sends;                      /* of the handshake */
    bool encrypts;

    uint32_t transcript_len;
    uint32_t hello_at; /* where the ClientHello begins in the transcript */
    uint8_t transcript[TLS_TRANSCRIPT_MAX];

    uint32_t record_len;
    uint8_t record[TLS_RECORD_MAX];

    uint16_t out_len; /* bytes to send; the caller sets it to 0 */
    uint8_t out[TLS_OUT_MAX];
};

/** Begin a handshake. */
void tls_server_start(struct tls_server *server,
                      const struct tls_server_config *config);

/** Take bytes of the client, up to the end of a record.
 * @return how many were taken; 0: call tls_server_step() first */
uint32_t tls_server_take(struct tls_server *server, const uint8_t *bytes,
                         uint32_t len);

/**
 * Do a bounded part of the work.  Bytes in `out` are to be sent, also those of
 * an alert; the caller calls this only while `out_len` is 0.
 *
 * @return whether there is more to do without further bytes
 */
bool tls_server_step(struct tls_server *server);

/** Forget everything. */
void tls_server_wipe(struct tls_server *server);

#endif
