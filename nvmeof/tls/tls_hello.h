/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the handshake: ClientHello as it comes, and what the drive
 * answers.  Spec: RFC 8446 section 4.
 */
#ifndef ESSD_NVMEOF_TLS_HELLO_H
#define ESSD_NVMEOF_TLS_HELLO_H

#include "nvmeof/tls/tls_record.h"

enum tls_message {
    TLS_CLIENT_HELLO = 1,
    TLS_SERVER_HELLO = 2, /* also HelloRetryRequest */
    TLS_ENCRYPTED_EXTENSIONS = 8,
    TLS_FINISHED = 20,
    TLS_MESSAGE_HASH = 254,
};

enum {                         /* byte offsets of a message's header */
       TLS_MESSAGE = 0,        /* enum tls_message */
       TLS_MESSAGE_LENGTH = 1, /* 24 bits, big-endian, of what follows */
       TLS_MESSAGE_HEADER_LEN = 4,
       TLS_RANDOM_LEN = 32,
       TLS_SESSION_MAX = 32,
       TLS_SERVER_HELLO_MAX = 160,
};

/* What a ClientHello says that matters to the drive.  Pointers are into it. */
struct tls_client_hello {
    const uint8_t *session;
    uint8_t session_len;
    bool has_sha256, has_sha384; /* their cipher suites are offered */
    bool has_tls13;
    bool has_dhe_psk; /* a key exchange beside the pre-shared key */
    bool has_early_data;
    bool has_x25519; /* the group is supported */
    bool has_psk, has_key_share, has_groups, has_modes; /* extensions */
    const uint8_t *share; /* the public value for X25519; NULL: none */
    const uint8_t *identities, *binders; /* lists, without their lengths */
    uint16_t identities_len, binders_len;
    uint32_t binders_at; /* bytes of the message before the binders' length */
};

/**
 * @param message  the whole message with its header
 * @return TLS_ALERT_NONE, or what is wrong with its form
 */
MUST_USE enum tls_alert tls_client_hello_parse(struct tls_client_hello *hello,
                                               const uint8_t *message,
                                               size_t len);

/** Whether it offers what the drive needs, apart from a key.
 * @return TLS_ALERT_NONE, or what it lacks */
MUST_USE enum tls_alert tls_client_hello_judge(
    const struct tls_client_hello *hello);

/** One of the keys that a ClientHello offers. */
struct tls_offer {
    const uint8_t *identity, *binder;
    uint16_t identity_len;
    uint8_t binder_len;
};

/** @param number  from 0
 * @return false when there is none with this number */
MUST_USE bool tls_client_hello_offer(const struct tls_client_hello *hello,
                                     uint16_t number, struct tls_offer *offer);

struct tls_server_hello {
    const uint8_t *random; /* TLS_RANDOM_LEN bytes */
    const uint8_t *session;
    uint8_t session_len;
    enum auth_hash hash;  /* of the cipher suite */
    const uint8_t *share; /* X25519_LEN bytes; NULL: HelloRetryRequest */
    uint16_t psk;         /* number of the key */
};

/** @param message  TLS_SERVER_HELLO_MAX bytes
 * @return its length */
size_t tls_server_hello_emit(const struct tls_server_hello *hello,
                             uint8_t *message);

#endif
