/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One authentication transaction of DH-HMAC-CHAP, on the controller's side.
 * Spec: NVM Express Base 2.0 section 8.13 (8.3.4 in later revisions).
 *
 *   host -> controller                      controller -> host
 *   AUTH_Negotiate           auth_message()
 *                                           auth_answer()  Challenge
 *   Reply                    auth_message()
 *                                           auth_answer()  Success1 or Failure1
 *   Success2 or Failure2     auth_message()
 *
 * Nothing here reads a clock, allocates or logs.  With a Diffie-Hellman group,
 * auth_is_computing() becomes true twice: the owner then runs the
 * exponentiation between auth_begin_power() and auth_end_power().
 *
 * With secure channel concatenation, a session that is AUTH_PROVEN has a
 * generated key, which its owner takes before auth_wipe().
 */
#ifndef ESSD_NVMEOF_AUTH_AUTH_H
#define ESSD_NVMEOF_AUTH_AUTH_H

#include "nvmeof/auth/auth_crypto.h"
#include "nvmeof/auth/auth_key.h"

enum auth_state {
    AUTH_NEGOTIATE,      /* Waits for AUTH_Negotiate. */
    AUTH_COMPUTE_PUBLIC, /* Waits for the controller's DH value. */
    AUTH_CHALLENGE,      /* The Challenge is ready; waits to send it. */
    AUTH_REPLY,          /* Waits for the Reply. */
    AUTH_COMPUTE_SHARED, /* Waits for the shared DH secret. */
    AUTH_SUCCESS1,       /* Success1 is ready; waits to send it. */
    AUTH_SUCCESS2,       /* Waits for Success2 or AUTH_Failure2. */
    AUTH_FAILURE1,       /* AUTH_Failure1 is ready; waits to send it. */
    AUTH_PROVEN,         /* The host has proven its identity.  Final. */
    AUTH_REFUSED,        /* Authentication has failed.  Final. */
    AUTH_STATES
};

/* What the drive knows of the host, and of itself. */
struct auth_peer {
    const char *hostnqn; /* NUL terminated, at most 223 characters */
    const char *subnqn;
    const struct auth_key *host_key; /* not empty */
    const struct auth_key *ctrl_key; /* empty: cannot prove its own identity */
    uint8_t least_hash;              /* the weakest that is accepted */
    uint8_t least_dh;
    uint8_t concat; /* enum auth_concat: what the host may ask for here */
};

/* Treat as opaque, except for `state` and `failure`, and for `concat`, `hash`
 * and `psk` when it is PROVEN. */
struct auth_session {
    uint8_t state;    /* enum auth_state */
    uint8_t failure;  /* enum auth_failure: why it was refused */
    uint8_t hash;     /* enum auth_hash, once it is negotiated */
    uint8_t dh;       /* enum auth_dh */
    uint8_t concat;   /* enum auth_concat, once it is negotiated */
    bool wants_proof; /* the host wants the controller's response */
    uint16_t t_id;
    uint32_t s1, s2;
    uint8_t c1[AUTH_HASH_MAX], c2[AUTH_HASH_MAX];
    uint8_t response[AUTH_HASH_MAX]; /* R1 of the host; later R2 for it */
    uint8_t exponent[AUTH_EXPONENT_MAX];
    uint8_t dh_value[AUTH_DH_MAX]; /* the controller's; later the host's */
    uint8_t psk[AUTH_PSK_MAX];     /* the generated key, unless concat is NONE:
                                    * as long as the hash */
};

void auth_start(struct auth_session *session);

/** The data of one Authentication Send.  The host may send anything. */
void auth_message(struct auth_session *session,
                  const struct auth_crypto *crypto,
                  const struct auth_peer *peer, const uint8_t *buf, size_t len);

/** Whether the next answer needs an exponentiation first. */
static inline bool auth_is_computing(const struct auth_session *session)
{
    return session->state == AUTH_COMPUTE_PUBLIC ||
           session->state == AUTH_COMPUTE_SHARED;
}

/** Start the exponentiation.  The caller then calls crypto->dh_step(). */
void auth_begin_power(struct auth_session *session,
                      const struct auth_crypto *crypto);

/** Take the result of the exponentiation that is done. */
void auth_end_power(struct auth_session *session,
                    const struct auth_crypto *crypto,
                    const struct auth_peer *peer);

/** Bytes of the message that is ready for the host; 0 if there is none. */
size_t auth_answer_len(const struct auth_session *session);

/**
 * Write the message that is ready for the host.
 *
 * @param buf  auth_answer_len() bytes, at most AUTH_CHALLENGE_MAX
 */
void auth_answer(struct auth_session *session, uint8_t *buf);

/** Prepare AUTH_Failure1 instead of the answer that is ready: the host's proof
 * is void, because its entry has changed meanwhile. */
void auth_withdraw(struct auth_session *session);

/** Refuse the host, for a reason outside of the messages. */
void auth_refuse(struct auth_session *session, enum auth_failure failure);

/** Wipe the secrets of a session that is over. */
void auth_wipe(struct auth_session *session);

/** Compute a response, as hosts and controllers do.
 * @param role  "HostHost" for R1, "Controller" for R2
 * @param secret  DH secret, auth_dh_len(session->dh) bytes; NULL for the null
 *   group */
struct auth_response {
    enum auth_hash hash;
    const struct auth_key *key;
    const uint8_t *challenge;
    uint32_t seqnum;
    uint16_t t_id;
    uint8_t concat; /* SC_C */
    const char *role;
    const char *nqn; /* of the one who responds, which the key belongs to */
    const char *peer_nqn;
    const uint8_t
        *secret_hash; /* hash of the DH secret; NULL without a group */
};

/** The key that both sides generate: HMAC of both challenges with the hash of
 * the Diffie-Hellman secret.  Spec: NVM Express Base 2.1 section 8.3.4.5.9.
 * @param psk  auth_hash_len(hash) bytes */
void auth_generate_psk(const struct auth_crypto *crypto, enum auth_hash hash,
                       const uint8_t *secret_hash, const uint8_t *c1,
                       const uint8_t *c2, uint8_t *psk);

/** @param response  auth_hash_len(in->hash) bytes */
void auth_compute_response(const struct auth_crypto *crypto,
                           const struct auth_response *in, uint8_t *response);

#endif
