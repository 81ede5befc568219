/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AES-GCM as the TCP offload engine uses it, for whole records in one place.
 * record_gcm.c has it from Mbed TLS.
 */
#ifndef ESSD_HW_TOE_RECORD_AEAD_H
#define ESSD_HW_TOE_RECORD_AEAD_H

#include "lib/util.h"

enum {
    RECORD_AEAD_WORDS = 128, /* memory for one key; record_gcm.c checks that it
                              * is enough */
    RECORD_TAG_LEN = 16,
    RECORD_IV_LEN = 12,
};

/* One key.  It belongs to the functions below. */
struct record_key {
    uint64_t words[RECORD_AEAD_WORDS];
};

struct record_aead {
    /** @param len  16 or 32 */
    void (*set_key)(struct record_key *key, const uint8_t *bytes, size_t len);

    /** Encrypt `len` bytes where they are.
     * @param tag  RECORD_TAG_LEN bytes, all written */
    void (*seal)(struct record_key *key, const uint8_t *nonce,
                 const uint8_t *header, size_t header_len, uint8_t *data,
                 size_t len, uint8_t *tag);

    /** Decrypt `len` bytes where they are.
     * @return false when they are not authentic: nothing may be used */
    bool (*open)(struct record_key *key, const uint8_t *nonce,
                 const uint8_t *header, size_t header_len, uint8_t *data,
                 size_t len, const uint8_t *tag);
};

/* That of Mbed TLS. */
extern const struct record_aead record_gcm;

#endif
