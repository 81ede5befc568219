/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes of the NVMe/RDMA binding's pools, derived from the target's limits.
 */
#ifndef ESSD_NVMEOF_RDMA_LIMITS_H
#define ESSD_NVMEOF_RDMA_LIMITS_H

#include "nvmeof/limits.h"

enum {
    RDMA_MANAGERS = 2, /* connection managers, one for each RDMA protocol */

    /* One receive buffer for each entry of every SQ. */
    RDMA_CAPSULES = NVMF_MAX_REQUESTS,
    /* A receive buffer is posted again before its response is sent, so an SQ
     * entry may have one running command and one response in flight. */
    RDMA_REQUESTS = 2 * RDMA_CAPSULES,
    RDMA_CAPSULE_STRIDE = NVMF_IO_CAPSULE_LEN, /* a multiple of cache lines */

    /* For fused pairs, a capsule has room for a block of 4096 bytes with its
     * metadata. */
    RDMA_SPARE_MIN = 4096 + 8,

    RDMA_CAPSULE_BYTES = RDMA_CAPSULES * RDMA_CAPSULE_STRIDE,

    /* Half-open connections of one address.  Linux makes one at a time, and
     * other hosts perhaps all of a controller's. */
    RDMA_HALF_OPEN_PER_HOST = 32,
    /* Half-open connections of all addresses, each of which takes one of the
     * RNIC's neighbours: firmware/app/limit_sums.c. */
    RDMA_HALF_OPEN_MAX = 496,
    /* When the drive is full, so many half-open connections keep their places
     * for so long. */
    RDMA_HALF_OPEN_FEW = 16,
    RDMA_HALF_OPEN_YOUNG_US = 1000000,

    /* Outstanding READs of one QP; a peer may allow fewer. */
    RDMA_MAX_RD_ATOMIC = 16,
    /* Work requests that one command posts at once: two for its data, each of
     * up to VERBS_MAX_SGE pieces, and one for the response. */
    RDMA_WRS_PER_REQUEST = 3,
    RDMA_SQ_PER_ENTRY = 4, /* send ring slots for each entry of the SQ */
};

_Static_assert(4 * RDMA_HALF_OPEN_PER_HOST * (int)NVMF_MAX_DEPTH <=
                   (int)NVMF_TOTAL_DEPTH,
               "those of one address hold a quarter of all entries at most");

#endif
