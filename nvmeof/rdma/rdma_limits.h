/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes of the NVMe/RDMA binding's pools, derived from the target's limits.
 */
#ifndef ESSD_NVMEOF_RDMA_LIMITS_H
#define ESSD_NVMEOF_RDMA_LIMITS_H

#include "nvmeof/limits.h"

enum {
    /* One receive buffer for each entry of every SQ. */
    RDMA_CAPSULES = NVMF_MAX_REQUESTS,
    /* A buffer is posted again before its response is acknowledged, so each
     * SQ entry may have one command running and one response under way. */
    RDMA_REQUESTS = 2 * RDMA_CAPSULES,
    RDMA_CAPSULE_STRIDE = NVMF_IO_CAPSULE_LEN, /* whole cache lines */

    RDMA_BUF_CLASSES = 3,
    RDMA_SMALL_LEN = 4096,
    RDMA_SMALL_COUNT = 4096,
    RDMA_MEDIUM_LEN = 32768,
    RDMA_MEDIUM_COUNT = 256,
    RDMA_LARGE_LEN = 131072,
    RDMA_LARGE_COUNT = 256,
    RDMA_WINDOW_MIN = RDMA_LARGE_LEN, /* less only from the reserve */

    /* Small buffers that are kept for each owner, whatever others hold; a long
     * command takes at most so many of them, so that short ones have some. */
    RDMA_RESERVE = 8,
    RDMA_RESERVE_LONG = 4,
    /* Of the rest of each class, an owner may hold this part of what is free,
     * as one to so many. */
    RDMA_SHARE = 4,

    RDMA_CAPSULE_BYTES = RDMA_CAPSULES * RDMA_CAPSULE_STRIDE,
    RDMA_BUF_BYTES = RDMA_SMALL_LEN * RDMA_SMALL_COUNT +
                     RDMA_MEDIUM_LEN * RDMA_MEDIUM_COUNT +
                     RDMA_LARGE_LEN * RDMA_LARGE_COUNT,

    RDMA_MAX_RD_ATOMIC =
        16, /* READs outstanding on one QP, if the peer agrees */
    /* Work requests of one command under way: its data in two of up to
     * VERBS_MAX_SGE pieces, and the response. */
    RDMA_WRS_PER_REQUEST = 3,
    RDMA_SQ_PER_ENTRY = 4, /* send ring slots for each entry of the SQ */
};

#endif
