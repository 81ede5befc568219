/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended transport headers that may follow a BTH; roce_opcode.h gives
 * the ones that each opcode has, and their order.
 * Spec: IBTA Vol 1 sections 9.3 (DETH, RETH, AETH, ImmDt, IETH).
 *
 * Left out: RDETH (reliable datagram) and XRCETH.  Of the headers of atomics
 * only the length is known, because the drive refuses atomics.
 */
#ifndef ESSD_NET_WIRE_ROCE_EXT_H
#define ESSD_NET_WIRE_ROCE_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* RETH: in a READ request, and in the first or only packet of a WRITE;
        * big-endian */
       RETH_VA = 0,
       RETH_RKEY = 8,
       RETH_DMA_LEN = 12,
       RETH_LEN = 16,
};

enum { /* AETH: in acknowledgements and READ responses */
       AETH_SYNDROME = 0,
       AETH_MSN = 1, /* 24 bits */
       AETH_LEN = 4,
};

enum { /* DETH: in datagrams (UD) */
       DETH_QKEY = 0,
       DETH_RESERVED = 4,
       DETH_SRC_QP = 5, /* 24 bits */
       DETH_LEN = 8,
};

enum { /* IETH: invalidate; ImmDt: immediate data; the two headers of atomics */
       IETH_RKEY = 0,
       IETH_LEN = 4,
       IMMDT_DATA = 0,
       IMMDT_LEN = 4,
       ATOMICETH_LEN = 28,
       ATOMICACKETH_LEN = 8,
};

/* Kind of an AETH: bits 6:5 of its syndrome.  Spec: 9.7.5.2.1, table 47. */
enum aeth_kind {
    AETH_ACK = 0,      /* value: credit count code, 31 is "not limited" */
    AETH_RNR_NAK = 1,  /* value: RNR timer code */
    AETH_RESERVED = 2, /* treat as a malformed packet */
    AETH_NAK = 3,      /* value: enum aeth_nak */
};

enum aeth_nak {
    AETH_NAK_PSN_SEQUENCE = 0,
    AETH_NAK_INVALID_REQUEST = 1,
    AETH_NAK_REMOTE_ACCESS = 2,
    AETH_NAK_REMOTE_OPERATION = 3,
    AETH_NAK_INVALID_RD_REQUEST = 4,
};

enum { AETH_CREDIT_UNLIMITED = 31 };

struct reth {
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_len_bytes;
};

struct aeth {
    enum aeth_kind kind;
    uint8_t value; /* 5 bits */
    uint32_t msn;  /* 24 bits */
};

struct deth {
    uint32_t qkey;
    uint32_t src_qp; /* 24 bits */
};

/* Each parse returns false when the header is cut short; each emit writes the
 * header's *_LEN bytes. */
MUST_USE bool reth_parse(struct reth *reth, const uint8_t *buf, size_t len);
void reth_emit(const struct reth *reth, uint8_t *buf);

/** Returns false also when the reserved bit 7 of the syndrome is set. */
MUST_USE bool aeth_parse(struct aeth *aeth, const uint8_t *buf, size_t len);
void aeth_emit(const struct aeth *aeth, uint8_t *buf);

MUST_USE bool deth_parse(struct deth *deth, const uint8_t *buf, size_t len);
void deth_emit(const struct deth *deth, uint8_t *buf);

MUST_USE bool ieth_parse(uint32_t *rkey, const uint8_t *buf, size_t len);
void ieth_emit(uint32_t rkey, uint8_t *buf);

MUST_USE bool immdt_parse(uint32_t *data, const uint8_t *buf, size_t len);
void immdt_emit(uint32_t data, uint8_t *buf);

/**
 * The wait that an RNR NAK asks for.  Spec: 9.7.5.2.8, table 45.
 *
 * @param code  0..31; 0 is the longest
 * @return microseconds, 10..655360
 */
uint32_t rnr_timer_us(uint8_t code);

#endif
