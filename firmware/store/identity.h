/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity block: what makes this drive a different one from every other.
 * Written once, when the drive is made.  Pure: no flash access.
 * Reference: docs/hardware/flash.md, "Identity block"
 */
#ifndef ESSD_STORE_IDENTITY_H
#define ESSD_STORE_IDENTITY_H

#include "lib/util.h"

#define IDENTITY_LEN        448 /* of version 1, CRC included */
#define IDENTITY_MAC_COUNT  8
#define IDENTITY_SERIAL_LEN 20
#define IDENTITY_MODEL_LEN  40
#define IDENTITY_NQN_LEN    223

struct identity {
    char serial[IDENTITY_SERIAL_LEN + 1]; /* ASCII, without padding */
    char model[IDENTITY_MODEL_LEN + 1];
    uint8_t mac[IDENTITY_MAC_COUNT][6]; /* 0 and 1 are the ports' own */
    uint8_t ca_guid[8];                 /* as on the wire */
    uint8_t uuid[16];                   /* RFC 9562, as on the wire */
    uint8_t nguid[16];
    char subsystem_nqn[IDENTITY_NQN_LEN + 1];
};

/**
 * @return false when it is short, damaged, of a later version, or a text in it
 *         does not end or holds what is not printable ASCII
 */
MUST_USE bool identity_parse(struct identity *identity, const uint8_t *buf,
                             size_t len);

/* Write all IDENTITY_LEN bytes of `buf`. */
void identity_emit(const struct identity *identity, uint8_t *buf);

/*
 * What a namespace is known by: the drive's own UUID or NGUID with the last
 * four bytes exclusive-or `nsid`, big-endian.  `nsid` is not 0.
 */
void identity_namespace_uuid(const struct identity *identity, uint32_t nsid,
                             uint8_t uuid[16]);
void identity_namespace_nguid(const struct identity *identity, uint32_t nsid,
                              uint8_t nguid[16]);

#endif
