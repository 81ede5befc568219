/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command's SGL1 means to an RDMA transport: the only file of the
 * binding that knows keyed descriptors.
 * Spec: NVMe over Fabrics 1.1 sections 2.3 and 7.3.3.
 */
#ifndef ESSD_NVMEOF_RDMA_SGL_H
#define ESSD_NVMEOF_RDMA_SGL_H

#include "nvmeof/target/transport.h"

/* Where the host's data is. */
struct rdma_remote {
    uint64_t addr;
    uint32_t rkey;
    bool is_keyed;    /* else there is no host memory to reach */
    bool invalidates; /* the response carries rkey to be invalidated */
};

/**
 * Read the descriptor of a capsule.
 *
 * @param capsule    the capsule as received, NVME_SQE_LEN bytes and more
 * @param len_bytes  of the capsule
 * @param lkey       for a piece of data in the capsule
 */
void rdma_sgl_read(struct rdma_remote *remote, struct nvmf_data *data,
                   uint8_t *capsule, uint32_t len_bytes, uint32_t lkey);

#endif
