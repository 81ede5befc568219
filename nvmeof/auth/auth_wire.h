/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of in-band authentication with DH-HMAC-CHAP.
 * Spec: NVM Express Base 2.0 section 8.13 (8.3.4 in later revisions).
 *
 * Left out: authentication protocols other than DH-HMAC-CHAP.
 */
#ifndef ESSD_NVMEOF_AUTH_WIRE_H
#define ESSD_NVMEOF_AUTH_WIRE_H

#include "lib/util.h"

enum auth_hash {                     /* hash function identifiers */
                 AUTH_HASH_NONE = 0, /* in a secret: the key is used without
                                        transformation */
                 AUTH_SHA256 = 1,
                 AUTH_SHA384 = 2,
                 AUTH_SHA512 = 3,
                 AUTH_HASHES
};

enum auth_dh { /* Diffie-Hellman group identifiers */
               AUTH_DH_NULL = 0,
               AUTH_FFDHE2048 = 1,
               AUTH_FFDHE3072 = 2,
               AUTH_FFDHE4096 = 3,
               AUTH_FFDHE6144 = 4,
               AUTH_FFDHE8192 = 5,
               AUTH_DHS
};

enum {
    AUTH_HASH_MAX = 64,     /* bytes of the longest hash */
    AUTH_DH_MAX = 1024,     /* bytes of the longest Diffie-Hellman value */
    AUTH_EXPONENT_MAX = 52, /* bytes of the longest private exponent */
    AUTH_PSK_MAX = 48,      /* bytes of the longest generated key */
};

/** Bytes of a hash; 0 if the identifier is unknown. */
uint8_t auth_hash_len(uint8_t hash);

/** Bytes of a Diffie-Hellman value; 0 for the null group and for unknown ones.
 */
uint16_t auth_dh_len(uint8_t dh);

/** Bytes of a private exponent: RFC 7919 section 5.2, rounded up. */
uint8_t auth_exponent_len(uint8_t dh);

/** Names for logs: "sha256", "ffdhe2048", "null". */
const char *auth_hash_name(uint8_t hash);
const char *auth_dh_name(uint8_t dh);

enum { /* AUTH_TYPE */
       AUTH_TYPE_COMMON = 0x00,
       AUTH_TYPE_DHCHAP = 0x01,
};

enum {                           /* AUTH_ID */
       AUTH_ID_NEGOTIATE = 0x00, /* with AUTH_TYPE_COMMON, as the failures */
       AUTH_ID_CHALLENGE = 0x01,
       AUTH_ID_REPLY = 0x02,
       AUTH_ID_SUCCESS1 = 0x03,
       AUTH_ID_SUCCESS2 = 0x04,
       AUTH_ID_FAILURE1 = 0xf0, /* sent by the controller */
       AUTH_ID_FAILURE2 = 0xf1, /* sent by the host */
};

enum auth_failure { /* reason code explanation of reason code 1 */
                    AUTH_OK = 0,
                    AUTH_FAILED_PROOF = 0x01, /* authentication failed */
                    AUTH_FAILED_PROTOCOL =
                        0x02, /* authentication protocol not usable */
                    AUTH_FAILED_CONCAT =
                        0x03, /* secure channel concatenation mismatch */
                    AUTH_FAILED_HASH = 0x04,    /* hash function not usable */
                    AUTH_FAILED_DH = 0x05,      /* DH group not usable */
                    AUTH_FAILED_PAYLOAD = 0x06, /* incorrect payload */
                    AUTH_FAILED_MESSAGE = 0x07, /* incorrect protocol message */
                    AUTH_FAILURES
};

/* The beginning of every message. */
enum { /* byte offsets; everything little-endian */
       AUTH_TYPE = 0,
       AUTH_ID = 1,
       AUTH_T_ID = 4,
       AUTH_HEADER_LEN = 6,
};

struct auth_header {
    uint8_t type;
    uint8_t id;
    uint16_t t_id;
};

/** @return false when the message is too short to have a header */
MUST_USE bool auth_header_parse(struct auth_header *header, const uint8_t *buf,
                                size_t len);

/*
 * Secure channel concatenation: SC_C of AUTH_Negotiate.  The host wants a key
 * of TLS that both sides generate from what they have agreed on.
 * Spec: NVM Express Base 2.1 section 8.3.4.3; 01h is obsolete.
 */
enum auth_concat {
    AUTH_CONCAT_NONE = 0,
    AUTH_CONCAT_NEW = 2,     /* NEWTLSPSK, on an admin queue without TLS */
    AUTH_CONCAT_REPLACE = 3, /* REPLACETLSPSK, behind TLS with such a key */
};

/*
 * AUTH_Negotiate.  A host offers protocols, each with a list of hash functions
 * and one of Diffie-Hellman groups.
 */
enum {
    AUTH_NEGOTIATE_SC_C = 6,
    AUTH_NEGOTIATE_NAPD = 7,
    AUTH_NEGOTIATE_LEN = 8, /* NAPD descriptors follow */

    AUTH_PROTOCOL_ID = 0, /* offsets in a descriptor */
    AUTH_PROTOCOL_HALEN = 2,
    AUTH_PROTOCOL_DHLEN = 3,
    AUTH_PROTOCOL_HASHES = 4,
    AUTH_PROTOCOL_DHS = 34,
    AUTH_PROTOCOL_LEN = 64,
    AUTH_PROTOCOL_IDS = 30, /* identifiers that fit into each list */
    AUTH_PROTOCOL_DHCHAP = 1,
};

struct auth_negotiate {
    uint16_t t_id;
    uint8_t concat;  /* SC_C, enum auth_concat or another value */
    bool has_dhchap; /* DH-HMAC-CHAP is one of the protocols */
    uint8_t hashes;  /* BIT(enum auth_hash) of the known ones offered */
    uint8_t dhs;     /* BIT(enum auth_dh) */
};

/** @return false when a length does not fit the message */
MUST_USE bool auth_negotiate_parse(struct auth_negotiate *negotiate,
                                   const uint8_t *buf, size_t len);

/** For hosts and tests: one descriptor with the known identifiers of both sets.
 * @param buf  AUTH_NEGOTIATE_LEN + AUTH_PROTOCOL_LEN bytes, all written */
void auth_negotiate_emit(uint8_t *buf, const struct auth_negotiate *negotiate);

/* DH-HMAC-CHAP_Challenge.  C1 and the controller's DH value follow. */
enum {
    AUTH_CHALLENGE_HL = 6,
    AUTH_CHALLENGE_HASH = 8,
    AUTH_CHALLENGE_DH = 9,
    AUTH_CHALLENGE_DHVLEN = 10,
    AUTH_CHALLENGE_SEQNUM = 12,
    AUTH_CHALLENGE_LEN = 16,
    AUTH_CHALLENGE_MAX = AUTH_CHALLENGE_LEN + AUTH_HASH_MAX + AUTH_DH_MAX,
};

struct auth_challenge {
    uint16_t t_id;
    uint8_t hash;      /* a known enum auth_hash, which fixes the length */
    uint8_t dh;        /* a known enum auth_dh */
    uint32_t seqnum;   /* S1 */
    const uint8_t *c1; /* of the hash's length */
    const uint8_t *dh_value; /* of the group's length */
};

/** @param buf  AUTH_CHALLENGE_MAX bytes.  @return the message's length */
size_t auth_challenge_emit(uint8_t *buf,
                           const struct auth_challenge *challenge);

/** For hosts and tests.  The pointers point into `buf`. */
MUST_USE bool auth_challenge_parse(struct auth_challenge *challenge,
                                   const uint8_t *buf, size_t len);

/* DH-HMAC-CHAP_Reply.  R1, C2 and the host's DH value follow. */
enum {
    AUTH_REPLY_HL = 6,
    AUTH_REPLY_CVALID = 8,
    AUTH_REPLY_DHVLEN = 10,
    AUTH_REPLY_SEQNUM = 12,
    AUTH_REPLY_LEN = 16,
    AUTH_REPLY_MAX = AUTH_REPLY_LEN + 2 * AUTH_HASH_MAX + AUTH_DH_MAX,
};

struct auth_reply {
    uint16_t t_id;
    uint8_t hash_len;
    bool has_challenge; /* CVALID: the host wants the controller's proof */
    uint16_t dh_len;
    uint32_t seqnum; /* S2 */
    const uint8_t *r1, *c2, *dh_value;
};

/** The pointers point into `buf`.  @return false when a length does not fit */
MUST_USE bool auth_reply_parse(struct auth_reply *reply, const uint8_t *buf,
                               size_t len);

/** For hosts and tests.  @param buf  AUTH_REPLY_MAX bytes.
 * @return the message's length */
size_t auth_reply_emit(uint8_t *buf, const struct auth_reply *reply);

/* DH-HMAC-CHAP_Success1.  R2 follows if RVALID is set. */
enum {
    AUTH_SUCCESS1_HL = 6,
    AUTH_SUCCESS1_RVALID = 8,
    AUTH_SUCCESS1_LEN = 16,
    AUTH_SUCCESS1_MAX = AUTH_SUCCESS1_LEN + AUTH_HASH_MAX,
};

struct auth_success1 {
    uint16_t t_id;
    uint8_t hash_len;
    const uint8_t *r2; /* NULL if the host asked for no proof */
};

/** @param buf  AUTH_SUCCESS1_MAX bytes.  @return the message's length */
size_t auth_success1_emit(uint8_t *buf, const struct auth_success1 *success1);

/** For hosts and tests.  r2 points into `buf`. */
MUST_USE bool auth_success1_parse(struct auth_success1 *success1,
                                  const uint8_t *buf, size_t len);

/* DH-HMAC-CHAP_Success2, which has no fields but the header. */
enum { AUTH_SUCCESS2_LEN = 16 };

/** For hosts and tests.  @param buf  AUTH_SUCCESS2_LEN bytes, all written */
void auth_success2_emit(uint8_t *buf, uint16_t t_id);

/* AUTH_Failure1 and AUTH_Failure2. */
enum {
    AUTH_FAILURE_REASON = 6,
    AUTH_FAILURE_EXPLANATION = 7,
    AUTH_FAILURE_LEN = 8,
    AUTH_REASON_FAILED = 1,
};

struct auth_failure_message {
    uint16_t t_id;
    uint8_t id;          /* AUTH_ID_FAILURE1 or AUTH_ID_FAILURE2 */
    uint8_t explanation; /* enum auth_failure */
};

/** @param buf  AUTH_FAILURE_LEN bytes, all written */
void auth_failure_emit(uint8_t *buf,
                       const struct auth_failure_message *failure);

MUST_USE bool auth_failure_parse(struct auth_failure_message *failure,
                                 const uint8_t *buf, size_t len);

#endif
