/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Submission queue entry: the 64 bytes that start every command capsule.
 * Spec: NVM Express Base 1.4 section 4.2; Fabrics 1.1 section 2.1.
 */
#ifndef ESSD_NVMEOF_WIRE_SQE_H
#define ESSD_NVMEOF_WIRE_SQE_H

#include <stdint.h>

enum { /* byte offsets; everything little-endian */
       SQE_OPCODE = 0,
       SQE_FLAGS = 1, /* PSDT:2 reserved:4 FUSE:2, from the top bit */
       SQE_CID = 2,
       SQE_NSID = 4, /* for fabrics commands FCTYPE, then reserved bytes */
       SQE_FCTYPE = 4,
       SQE_CDW2 = 8,
       SQE_CDW3 = 12,
       SQE_MPTR = 16,
       SQE_SGL1 = 24,
       SQE_CDW10 = 40,
       SQE_CDW11 = 44,
       SQE_CDW12 = 48,
       SQE_CDW13 = 52,
       SQE_CDW14 = 56,
       SQE_CDW15 = 60,
       NVME_SQE_LEN = 64,
};

enum { /* PSDT */
       SQE_PSDT_PRP = 0,
       SQE_PSDT_SGL = 1, /* SGL for data; an address for metadata, if any */
       SQE_PSDT_SGL_METADATA = 2, /* SGLs for data and for metadata */
};

enum { /* FUSE; 0 for a command on its own */
       SQE_FUSE_FIRST = 1,
       SQE_FUSE_SECOND = 2,
};

struct nvme_sqe {
    uint8_t opcode;
    uint8_t fuse;
    uint8_t psdt;
    uint8_t fctype; /* only of fabrics commands */
    uint16_t cid;
    uint32_t nsid; /* not of fabrics commands */
    uint32_t cdw2, cdw3;
    uint64_t mptr;
    uint32_t cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
};

/**
 * @param buf  NVME_SQE_LEN bytes.  A transport ends a connection whose capsule
 *             is shorter.
 */
void nvme_sqe_parse(struct nvme_sqe *sqe, const uint8_t *buf);

/**
 * For hosts and tests.  SGL1 is written as zero.
 *
 * @param buf  NVME_SQE_LEN bytes, all written.
 */
void nvme_sqe_emit(uint8_t *buf, const struct nvme_sqe *sqe);

#endif
