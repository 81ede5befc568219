/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of DDP segments, with the RDMAP fields that stand in them.
 * Spec: RFC 5041 sections 4.2 (tagged) and 4.3 (untagged); RFC 5040 sections
 * 4.1 to 4.4 (RDMAP control, READ request) and 4.8 (Terminate).
 *
 * Parsing checks lengths only.  Whether version, opcode, queue and numbers are
 * allowed is the question of net/iwarp.
 */
#ifndef ESSD_NET_WIRE_DDP_H
#define ESSD_NET_WIRE_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; fields of more than one byte are big-endian */
       DDP_CONTROL = 0, /* T:1 L:1 reserved:4 DV:2, from the top bit */
       DDP_RDMAP = 1,   /* RV:2 reserved:2 opcode:4 */
       DDP_STAG = 2,    /* tagged */
       DDP_TO = 6,      /* tagged, 64 bits */
       DDP_TAGGED_LEN = 14,
       DDP_INV_STAG = 2, /* untagged: with Invalidate, else 0 */
       DDP_QN = 6,       /* untagged */
       DDP_MSN = 10,
       DDP_MO = 14,
       DDP_UNTAGGED_LEN = 18,
       DDP_HEADER_MAX = DDP_UNTAGGED_LEN,
};

enum { DDP_VERSION = 1, RDMAP_VERSION = 1 };

enum rdmap_opcode {
    RDMAP_WRITE = 0,
    RDMAP_READ_REQUEST = 1,
    RDMAP_READ_RESPONSE = 2,
    RDMAP_SEND = 3,
    RDMAP_SEND_INV = 4,
    RDMAP_SEND_SE = 5,
    RDMAP_SEND_SE_INV = 6,
    RDMAP_TERMINATE = 7,
    RDMAP_OPCODES,
};

/* Queue numbers of untagged messages. */
enum { DDP_QN_SEND = 0, DDP_QN_READ = 1, DDP_QN_TERMINATE = 2 };

struct ddp {
    bool is_tagged;
    bool is_last;
    uint8_t version;       /* 2 bits */
    uint8_t rdmap_version; /* 2 bits */
    uint8_t opcode;        /* enum rdmap_opcode, or any value up to 15 */
    uint32_t stag;         /* tagged; untagged: to invalidate */
    uint64_t to;           /* tagged */
    uint32_t qn, msn, mo;  /* untagged */
};

/* Length of a segment's header. */
static inline uint32_t ddp_header_bytes(bool is_tagged)
{
    return is_tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
}

/** @return the length of the header; 0 when it is cut short */
MUST_USE uint32_t ddp_parse(struct ddp *ddp, const uint8_t *buf, size_t len);

/** Write the header.  @return its length */
uint32_t ddp_emit(const struct ddp *ddp, uint8_t *buf);

/* ---- READ request: follows the untagged header. */

enum {
    RDMAP_READ_SINK_STAG = 0,
    RDMAP_READ_SINK_TO = 4,
    RDMAP_READ_SIZE = 12,
    RDMAP_READ_SOURCE_STAG = 16,
    RDMAP_READ_SOURCE_TO = 20,
    RDMAP_READ_LEN = 28,
};

struct rdmap_read {
    uint32_t sink_stag, source_stag;
    uint64_t sink_to, source_to;
    uint32_t len_bytes;
};

/** @return false when it is not RDMAP_READ_LEN bytes long */
MUST_USE bool rdmap_read_parse(struct rdmap_read *read, const uint8_t *buf,
                               size_t len);
void rdmap_read_emit(const struct rdmap_read *read, uint8_t *buf);

/* ---- Terminate: follows the untagged header. */

enum {
    RDMAP_TERM_CONTROL = 0, /* layer:4 type:4 */
    RDMAP_TERM_CODE = 1,
    RDMAP_TERM_HEADERS = 2, /* M:1 D:1 R:1 reserved:13 */
    RDMAP_TERM_LEN = 4,
    RDMAP_TERM_SEGMENT = 4, /* with M: length of the DDP segment, 16 bits */
    RDMAP_TERM_HEADER = 6,  /* with D: its DDP header; with R: the READ's */
    RDMAP_TERM_MAX = RDMAP_TERM_HEADER + DDP_HEADER_MAX + RDMAP_READ_LEN,
};

enum rdmap_layer { RDMAP_LAYER_RDMAP, RDMAP_LAYER_DDP, RDMAP_LAYER_LLP };

/* Layer, type and code in one number: 0xLTCC (RFC 5040 section 4.8, RFC 5041
 * section 8.2, RFC 5044 section 8, RFC 6581 section 9). */
enum rdmap_error {
    RDMAP_LOCAL_CATASTROPHIC = 0x0000,
    RDMAP_PROTECT_STAG = 0x0100,
    RDMAP_PROTECT_BOUNDS = 0x0101,
    RDMAP_PROTECT_ACCESS = 0x0102,
    RDMAP_PROTECT_STREAM = 0x0103,
    RDMAP_PROTECT_WRAP = 0x0104,
    RDMAP_PROTECT_INVALIDATE = 0x0109,
    RDMAP_BAD_VERSION = 0x0205,
    RDMAP_BAD_OPCODE = 0x0206,
    RDMAP_CATASTROPHIC = 0x0207,
    DDP_LOCAL_CATASTROPHIC = 0x1000,
    DDP_TAGGED_STAG = 0x1100,
    DDP_TAGGED_BOUNDS = 0x1101,
    DDP_TAGGED_STREAM = 0x1102,
    DDP_TAGGED_WRAP = 0x1103,
    DDP_TAGGED_VERSION = 0x1104,
    DDP_UNTAGGED_QN = 0x1201,
    DDP_UNTAGGED_NO_BUFFER = 0x1202,
    DDP_UNTAGGED_MSN = 0x1203,
    DDP_UNTAGGED_MO = 0x1204,
    DDP_UNTAGGED_TOO_LONG = 0x1205,
    DDP_UNTAGGED_VERSION = 0x1206,
    MPA_ERROR_CRC = 0x2002,
    MPA_ERROR_LENGTH = 0x2003,
};

struct rdmap_terminate {
    uint16_t error;  /* 0xLTCC: enum rdmap_error, or any value */
    uint8_t headers; /* M 80h, D 40h, R 20h */
    uint16_t segment_len;
    const uint8_t *header; /* what follows, with D and R; NULL: nothing */
    uint32_t header_len;
};

enum { RDMAP_TERM_M = 0x80, RDMAP_TERM_D = 0x40, RDMAP_TERM_R = 0x20 };

/** @return false when it is cut short; whether what follows has the right
 * length is not checked, because the flags of some peers are elsewhere */
MUST_USE bool rdmap_terminate_parse(struct rdmap_terminate *terminate,
                                    const uint8_t *buf, size_t len);

/** @param buf  RDMAP_TERM_MAX bytes.  @return the length */
uint32_t rdmap_terminate_emit(const struct rdmap_terminate *terminate,
                              uint8_t *buf);

#endif
