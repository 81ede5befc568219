/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decodes a command's SGL1 for an RDMA transport.  No other file of the RDMA
 * binding knows keyed descriptors.
 * Spec: NVMe over Fabrics 1.1 sections 2.3 and 7.3.3.
 */
#ifndef ESSD_NVMEOF_RDMA_SGL_H
#define ESSD_NVMEOF_RDMA_SGL_H

#include "nvmeof/target/transport.h"

/* The host memory that a command names. */
struct rdma_remote {
    uint64_t addr;
    uint32_t rkey;
    bool is_keyed;    /* addr and rkey are valid: the descriptor was keyed */
    bool invalidates; /* the response invalidates rkey (SEND with Invalidate) */
};

/**
 * Read the descriptor of a capsule.  data->status is the NVMe status of a
 * descriptor that is refused.
 *
 * @param capsule    the capsule as received, at least NVME_SQE_LEN bytes
 * @param len_bytes  length of the capsule
 * @param lkey       local key of the capsule, for data that it contains
 */
void rdma_sgl_read(struct rdma_remote *remote, struct nvmf_data *data,
                   uint8_t *capsule, uint32_t len_bytes, uint32_t lkey);

#endif
