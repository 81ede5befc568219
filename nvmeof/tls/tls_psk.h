/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pre-shared keys of NVMe/TCP: from the configured key of a host to the key
 * that TLS uses, and the names of keys in a ClientHello.
 * Spec: NVM Express TCP Transport 1.1 section 3.6.1 (TP 8011, TP 8018).
 */
#ifndef ESSD_NVMEOF_TLS_PSK_H
#define ESSD_NVMEOF_TLS_PSK_H

#include "nvmeof/auth/auth_key.h"
#include "nvmeof/tls/tls_keys.h"

enum {
    TLS_NQN_MAX = 223,
    /* "NVMe1R02", two NQNs, and the digest of 48 bytes in base64. */
    TLS_IDENTITY_MAX = 8 + 2 * (1 + TLS_NQN_MAX) + 1 + 64,
    TLS_DIGEST_TEXT_MAX = 64, /* 48 bytes in base64 */
};

/* The name of a key.  Version 1 has a digest, which says which key it is. */
struct tls_identity {
    uint8_t version;   /* 0 or 1 */
    bool is_generated; /* by DH-HMAC-CHAP; otherwise retained */
    uint8_t hash;      /* enum auth_hash: of its cipher suite */
    char hostnqn[TLS_NQN_MAX + 1];
    char subnqn[TLS_NQN_MAX + 1];
    char digest[TLS_DIGEST_TEXT_MAX + 1]; /* empty in version 0 */
};

/** @return false when these bytes are no identity of NVMe/TCP */
MUST_USE bool tls_identity_parse(struct tls_identity *identity,
                                 const uint8_t *bytes, size_t len);

/*
 * How a key is derived.  Programs that use libnvme before version 1.16 leave
 * the lengths of label and context out, and swap the bytes of the length of the
 * output.  They cannot be told apart by an identity of version 0.
 */
enum tls_style { TLS_STYLE_SPEC, TLS_STYLE_OLD_LIBNVME, TLS_STYLES };

/** The cipher suite of a configured key: that of its hash, or of its length. */
enum auth_hash tls_psk_hash(const struct auth_key *configured);

/**
 * Derive the key that TLS uses from a generated one, as tls_psk_derive() does
 * from a configured one, and set the identity's digest.
 *
 * @param generated  as long as identity->hash
 * @param identity   the names and the hash; its version is 1
 */
void tls_psk_generated(const struct tls_crypto *crypto,
                       const uint8_t *generated, struct tls_identity *identity,
                       struct tls_secret *psk);

/**
 * Derive the key that TLS uses.
 *
 * @param configured  that of the host; not empty
 * @return false when the identity is not that of this key
 */
MUST_USE bool tls_psk_derive(const struct tls_crypto *crypto,
                             const struct auth_key *configured,
                             const struct tls_identity *identity,
                             enum tls_style style, struct tls_secret *psk);

#endif
