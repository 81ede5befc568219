/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identity block: what distinguishes this drive from every other.  It is
 * written once, when the drive is made.  These functions do not access the
 * flash.
 * Reference: docs/hardware/flash.md, "Identity block"
 */
#ifndef ESSD_STORE_IDENTITY_H
#define ESSD_STORE_IDENTITY_H

#include "lib/util.h"

#define IDENTITY_LEN        448 /* length of version 1, CRC included */
#define IDENTITY_MAC_COUNT  8
#define IDENTITY_SERIAL_LEN 20
#define IDENTITY_MODEL_LEN  40
#define IDENTITY_NQN_LEN    223

struct identity {
    char serial[IDENTITY_SERIAL_LEN + 1]; /* ASCII without padding */
    char model[IDENTITY_MODEL_LEN + 1];
    uint8_t mac[IDENTITY_MAC_COUNT][6]; /* 0 and 1 belong to the ports */
    uint8_t ca_guid[8];                 /* in wire order */
    uint8_t uuid[16];                   /* RFC 9562, in wire order */
    uint8_t nguid[16];
    char subsystem_nqn[IDENTITY_NQN_LEN + 1];
    /* The capacity of a drive with NAND flash, a multiple of 4096; 0: the
     * largest that the array has space for. */
    uint64_t capacity_bytes;
};

/**
 * @return false when the block is too short, damaged or of a later version, or
 *         when a text in it has no end or is not printable ASCII
 */
MUST_USE bool identity_parse(struct identity *identity, const uint8_t *buf,
                             size_t len);

/* Write all IDENTITY_LEN bytes of `buf`. */
void identity_emit(const struct identity *identity, uint8_t *buf);

/*
 * Make the identifiers of a namespace: the drive's own UUID or NGUID, with the
 * last four bytes exclusive-or `nsid` in big-endian order.  `nsid` is not 0.
 */
void identity_namespace_uuid(const struct identity *identity, uint32_t nsid,
                             uint8_t uuid[16]);
void identity_namespace_nguid(const struct identity *identity, uint32_t nsid,
                              uint8_t nguid[16]);

#endif
