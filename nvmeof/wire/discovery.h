/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The discovery log page: a header, then an entry for each path to a subsystem.
 * Spec: NVMe over Fabrics 1.1 section 5.3; RDMA entries section 7.3.5.
 */
#ifndef ESSD_NVMEOF_WIRE_DISCOVERY_H
#define ESSD_NVMEOF_WIRE_DISCOVERY_H

#include <stdint.h>

enum { /* byte offsets in the header; little-endian */
       DISCOVERY_GENCTR = 0,
       DISCOVERY_NUMREC = 8,
       DISCOVERY_RECFMT = 16,
       DISCOVERY_HEADER_LEN = 1024,
};

enum { /* byte offsets in an entry */
       DISCOVERY_TRTYPE = 0,
       DISCOVERY_ADRFAM = 1,
       DISCOVERY_SUBTYPE = 2,
       DISCOVERY_TREQ = 3,
       DISCOVERY_PORTID = 4,
       DISCOVERY_CNTLID = 6,
       DISCOVERY_ASQSZ = 8,
       DISCOVERY_EFLAGS = 10,
       DISCOVERY_TRSVCID = 32,
       DISCOVERY_SUBNQN = 256,
       DISCOVERY_TRADDR = 512,
       DISCOVERY_TSAS = 768,
       DISCOVERY_RDMA_QPTYPE = DISCOVERY_TSAS + 0,
       DISCOVERY_RDMA_PRTYPE = DISCOVERY_TSAS + 1,
       DISCOVERY_RDMA_CMS = DISCOVERY_TSAS + 2,
       DISCOVERY_RDMA_PKEY = DISCOVERY_TSAS + 8,
       DISCOVERY_TCP_SECTYPE = DISCOVERY_TSAS + 0,
       DISCOVERY_ENTRY_LEN = 1024,
};

enum nvme_trtype {
    TRTYPE_RDMA = 1,
    TRTYPE_TCP = 3,
    TRTYPE_INTRA_HOST = 254,
};

enum {
    SUBTYPE_REFERRAL = 1, /* another discovery service */
    SUBTYPE_NVM = 2,
    SUBTYPE_CURRENT_DISCOVERY = 3,
    TREQ_REQUIRED = 0x1, /* a secure channel is */
    TREQ_NOT_REQUIRED = 0x2,
    TREQ_SQ_FLOW_CONTROL_OPTIONAL = 0x4,
    EFLAGS_DUPRETINFO = 0x1, /* every address returns the same log */
    EFLAGS_EPCSD = 0x2,      /* persistent connections are supported */
    RDMA_QPTYPE_RC = 1,
    RDMA_PRTYPE_ROCE = 3,
    RDMA_PRTYPE_ROCEV2 = 4,
    RDMA_PRTYPE_IWARP = 5,
    RDMA_CMS_RDMA_CM = 1,
    TCP_SECTYPE_NONE = 0,
    TCP_SECTYPE_TLS13 = 2,
};

/* Transport Specific Address Subtype; the transport says which members are
 * valid. */
struct nvme_tsas {
    uint8_t rdma_qptype, rdma_prtype, rdma_cms;
    uint8_t tcp_sectype;
};

struct discovery_entry {
    uint8_t trtype; /* enum nvme_trtype */
    uint8_t adrfam, subtype, treq;
    uint16_t portid, cntlid;
    uint16_t asqsz; /* 1's based */
    uint16_t eflags;
    const char *trsvcid;   /* at most 32 characters */
    const char *subnqn;    /* at most 223 characters */
    const char *traddr;    /* at most 256 characters */
    struct nvme_tsas tsas; /* of RDMA or TCP; others have none */
};

/** @param buf  DISCOVERY_HEADER_LEN bytes, all written; RECFMT is 0. */
void discovery_header_emit(uint8_t *buf, uint64_t genctr, uint64_t numrec);

/**
 * Text is padded with NULs, since some hosts compare addresses byte by byte and
 * would not match one padded with spaces.
 *
 * @param buf  DISCOVERY_ENTRY_LEN bytes, all written.
 */
void discovery_entry_emit(uint8_t *buf, const struct discovery_entry *entry);

#endif
