/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's side of TLS 1.3 with a pre-shared key, for the chapter `tls`: it can
 * also break the rules.  It has a stream of nvme_tcp_peer.h below it.
 * Spec: RFC 8446; NVMe TCP 1.1 section 3.6.1.
 */
#ifndef ESSD_CONFORM_TLS_PEER_H
#define ESSD_CONFORM_TLS_PEER_H

#include "nvme_tcp_peer.h"
#include "tls_maths.h"

/* The host and its key, which is the bytes 1, 2, 3 and so on. */
#define TLS_PEER_HOST "nqn.2014-08.org.example:nvme-tcp-peer"
#define TLS_PEER_KEY                                                           \
    "NVMeTLSkey-1:01:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:"
#define TLS_PEER_KEY_384                                                       \
    "NVMeTLSkey-1:02:"                                                         \
    "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wyg3Bcw==" \
    ":"
#define TLS_PEER_OTHER_KEY                                                     \
    "NVMeTLSkey-1:01:AgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICGrMmyA:"
#define TLS_PEER_DISCOVERY "nqn.2014-08.org.nvmexpress.discovery"

enum {
    TLS_PEER_ALERT = 21, /* types of records */
    TLS_PEER_HANDSHAKE = 22,
    TLS_PEER_DATA = 23,
    TLS_PEER_MOST = 16384, /* bytes in a record */
    TLS_PEER_RECORD = 5 + TLS_PEER_MOST + 256,
};

/* What is unusual or wrong in a ClientHello, or in Finished. */
enum tls_peer_flaw {
    TLS_PEER_RIGHT,
    TLS_PEER_NO_SHARE,    /* no value for X25519: not wrong */
    TLS_PEER_SESSION,     /* an empty session id: not wrong */
    TLS_PEER_STRANGER,    /* an unknown name before the right one: not wrong */
    TLS_PEER_GREASE,      /* extensions and suites of no meaning: not wrong */
    TLS_PEER_WRONG_KEY,   /* the key is another one */
    TLS_PEER_WRONG_NAME,  /* of a host that the drive does not know */
    TLS_PEER_WRONG_DRIVE, /* the name is for another subsystem */
    TLS_PEER_NO_PSK,
    TLS_PEER_OLD,      /* TLS 1.2 */
    TLS_PEER_EARLY,    /* early data is asked for */
    TLS_PEER_NO_GROUP, /* P-256 only */
    TLS_PEER_NO_SUITE, /* ChaCha20 only */
    TLS_PEER_NO_MODES, /* no psk_key_exchange_modes */
    TLS_PEER_PSK_ONLY, /* no key exchange beside the pre-shared key */
    TLS_PEER_TWICE,    /* an extension is there twice */
    TLS_PEER_SHORT,    /* the list of extensions ends too early */
    TLS_PEER_ZERO,     /* a point of small order */
    TLS_PEER_BAD_FINISHED,
};

struct tls_peer {
    struct conf *conf;
    struct stream *stream;
    const char *subnqn; /* of the identity; NULL: the drive's */
    /* A generated key, as long as the hash, and its digest; NULL: the key of
     * TLS_PEER_HOST. */
    const uint8_t *generated;
    const char *digest;
    bool is_384;
    enum tls_peer_flaw flaw;
    uint32_t piece; /* bytes in each segment of a ClientHello; 0: all */
    bool is_open;   /* the handshake is over */
    bool was_retried;
    size_t binders_at; /* in the message, where they begin */
    uint8_t *message;  /* the ClientHello */
    size_t len;
    uint8_t *transcript;
    size_t transcript_len;
    uint8_t scalar[MATHS_POINT];
    uint8_t early[MATHS_HASH]; /* then the later secrets */
    uint8_t from_client[MATHS_HASH], from_server[MATHS_HASH];
    bool has_keys; /* the drive's records are encrypted */
    struct maths_key sends, receives;
    bool takes_updates;   /* KeyUpdates of the drive may come before data */
    unsigned int updates; /* that have come so */
    uint8_t *plain;       /* what was received */
    uint32_t plain_len, plain_taken;
};

/** Of a stream that is open. */
struct tls_peer *tls_peer_new(struct conf *conf, struct stream *stream);

/** Send a ClientHello. */
void tls_peer_hello(struct tls_peer *peer);

/** Make one without sending it.  @return its length, without a record */
size_t tls_peer_make_hello(struct tls_peer *peer);

/** Take what the drive sends up to its Finished, which has to be right; answer
 * a HelloRetryRequest. */
void tls_peer_flight(struct tls_peer *peer);

/** Send Finished; the keys are those of data from now on. */
void tls_peer_finish(struct tls_peer *peer);

/** All of that. */
void tls_peer_shake(struct tls_peer *peer);

/** Make a record.  @param record  TLS_PEER_RECORD bytes  @return its length */
size_t tls_peer_seal(struct tls_peer *peer, uint8_t type, const void *data,
                     size_t len, uint8_t *record);

/** Send data, in records that are as long as may be. */
void tls_peer_send(struct tls_peer *peer, const void *data, size_t len);

/** The drive's next bytes of data, which must come; valid until the next
 * call. */
const uint8_t *tls_peer_take(struct tls_peer *peer, uint32_t len);

/** The drive answers a KeyUpdate; its next records have another key. */
void tls_peer_take_update(struct tls_peer *peer);

/** The drive ends the connection with this alert and a FIN. */
void tls_peer_refused(struct tls_peer *peer, uint8_t alert);

#endif
