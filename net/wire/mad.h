/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams (MADs) of QP1, 256 bytes each.
 * Spec: IBTA Vol 1 sections 13.4.2 and 13.4.3 (header), 16.7.1 (CM class).
 *
 * Left out: RMPP and directed routes, which no class of ours uses.
 */
#ifndef ESSD_NET_WIRE_MAD_H
#define ESSD_NET_WIRE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       MAD_BASE_VERSION = 0, /* 1 */
       MAD_MGMT_CLASS = 1,
       MAD_CLASS_VERSION = 2,
       MAD_METHOD = 3,
       MAD_STATUS = 4,
       MAD_CLASS_SPECIFIC = 6,
       MAD_TRANSACTION_ID = 8,
       MAD_ATTRIBUTE_ID = 16,
       MAD_RESERVED = 18,
       MAD_ATTRIBUTE_MODIFIER = 20,
       MAD_HEADER_LEN = 24,
       MAD_LEN = 256, /* length of every MAD */
       MAD_DATA_LEN = MAD_LEN - MAD_HEADER_LEN,
};

enum {
    MAD_CLASS_CM = 0x07,
    MAD_CLASS_VERSION_CM = 2,
    MAD_METHOD_GET = 0x01,
    MAD_METHOD_SEND = 0x03,
    MAD_METHOD_GET_RESP = 0x81,
};

/* The queue pair and the Q_Key that MADs of the CM use (QP1). */
enum {
    GSI_QPN = 1,
    GSI_QKEY = 0x80010000,
};

struct mad {
    uint8_t mgmt_class;
    uint8_t class_version;
    uint8_t method;
    uint16_t status;
    uint16_t class_specific;
    uint16_t attribute_id;
    uint32_t attribute_modifier;
    uint64_t transaction_id;
};

/** @return false below MAD_LEN bytes or for a base version other than 1 */
MUST_USE bool mad_parse(struct mad *mad, const uint8_t *buf, size_t len);

/** Write MAD_HEADER_LEN bytes. */
void mad_emit(const struct mad *mad, uint8_t *buf);

#endif
