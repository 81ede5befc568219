/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Base Transport Header: the first 12 bytes of every RoCEv2 payload.
 * Spec: IBTA Vol 1 section 9.2; RoCEv2 is annex A17.
 */
#ifndef ESSD_NET_WIRE_BTH_H
#define ESSD_NET_WIRE_BTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       BTH_OPCODE = 0, /* roce_opcode.h */
       BTH_FLAGS = 1,  /* SE:1 M:1 PadCnt:2 TVer:4, from the top bit */
       BTH_PKEY = 2,
       BTH_FECN = 4,    /* FECN:1 BECN:1 reserved:6; not covered by the ICRC */
       BTH_DEST_QP = 5, /* 24 bits */
       BTH_ACK_REQ = 8, /* A:1 reserved:7 */
       BTH_PSN = 9,     /* 24 bits */
       BTH_LEN = 12,
};

enum { BTH_PKEY_DEFAULT = 0xffff };

struct bth {
    uint8_t opcode;
    uint8_t pad_bytes; /* 0..3 zero bytes between payload and ICRC */
    bool solicited;
    bool migrated; /* MigReq: the path state is "migrated" */
    bool fecn;
    bool becn;
    bool ack_requested;
    uint16_t pkey;
    uint32_t dest_qp; /* 24 bits */
    uint32_t psn;     /* 24 bits, wraps: compare with psn_diff() only */
};

/** @return false when cut short, or when the transport version is not 0 */
MUST_USE bool bth_parse(struct bth *bth, const uint8_t *buf, size_t len);

/** Write BTH_LEN bytes. */
void bth_emit(const struct bth *bth, uint8_t *buf);

#endif
