/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe/RDMA private data of the CM messages REQ (after the RDMA IP CM header),
 * REP and REJ (reason 28).
 * Spec: NVMe over Fabrics 1.1 section 7.3.6.
 */
#ifndef ESSD_NVMEOF_WIRE_RDMA_PRIVATE_H
#define ESSD_NVMEOF_WIRE_RDMA_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

enum { /* byte offsets; everything little-endian */
       RDMA_REQ_RECFMT = 0,
       RDMA_REQ_QID = 2,
       RDMA_REQ_HRQSIZE = 4,
       RDMA_REQ_HSQSIZE = 6,
       RDMA_REQ_CNTLID = 8,
       NVME_RDMA_REQ_LEN = 32,

       RDMA_REP_RECFMT = 0,
       RDMA_REP_CRQSIZE = 2,
       NVME_RDMA_REP_LEN = 32,

       RDMA_REJ_RECFMT = 0,
       RDMA_REJ_STS = 2,
       NVME_RDMA_REJ_LEN = 4,
};

enum nvme_rdma_status {
    NVME_RDMA_OK = 0,
    NVME_RDMA_INVALID_LENGTH = 1,
    NVME_RDMA_INVALID_RECFMT = 2,
    NVME_RDMA_INVALID_QID = 3,
    NVME_RDMA_INVALID_HSQSIZE = 4,
    NVME_RDMA_INVALID_HRQSIZE = 5,
    NVME_RDMA_NO_RESOURCES = 6,
    NVME_RDMA_INVALID_IRD = 7,
    NVME_RDMA_INVALID_ORD = 8,
    NVME_RDMA_INVALID_CNTLID = 9,
};

struct nvme_rdma_req {
    uint16_t qid;
    uint16_t hrqsize; /* 1's based */
    uint16_t hsqsize; /* 0's based */
    uint16_t cntlid;  /* since Fabrics 1.1; older hosts send 0 */
};

/**
 * @param len  of the REQ's private data; CM messages are padded, so it may
 *             exceed NVME_RDMA_REQ_LEN.
 * @return NVME_RDMA_OK, or the status for the REJ.
 */
MUST_USE enum nvme_rdma_status nvme_rdma_req_parse(struct nvme_rdma_req *req,
                                                   const uint8_t *buf,
                                                   size_t len);

/** For hosts and tests.  @param buf  NVME_RDMA_REQ_LEN bytes, all written. */
void nvme_rdma_req_emit(uint8_t *buf, const struct nvme_rdma_req *req);

/**
 * @param buf      NVME_RDMA_REP_LEN bytes, all written.
 * @param crqsize  receive queue entries of the controller, 1's based.
 */
void nvme_rdma_rep_emit(uint8_t *buf, uint16_t crqsize);

/** For hosts and tests.  @return false if short or of an unknown format. */
MUST_USE bool nvme_rdma_rep_parse(uint16_t *crqsize, const uint8_t *buf,
                                  size_t len);

/** @param buf  NVME_RDMA_REJ_LEN bytes, all written. */
void nvme_rdma_rej_emit(uint8_t *buf, enum nvme_rdma_status status);

/** For hosts and tests.  @return false if short or of an unknown format. */
MUST_USE bool nvme_rdma_rej_parse(uint16_t *status, const uint8_t *buf,
                                  size_t len);

#endif
