/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_sgl.h"

#include "nvmeof/wire/sgl.h"

void rdma_sgl_read(struct rdma_remote *remote, struct nvmf_data *data,
                   uint8_t *capsule, uint32_t len_bytes, uint32_t lkey)
{
    struct sgl sgl;

    *remote = (struct rdma_remote){0};
    *data = (struct nvmf_data){0};
    data->status = sgl_parse(&sgl, capsule + SQE_SGL1);
    if (data->status != NVME_SC_SUCCESS) {
        return;
    }
    if (sgl.kind != SGL_IN_CAPSULE) {
        *remote = (struct rdma_remote){
            .addr = sgl.address,
            .rkey = sgl.key,
            .is_keyed = true,
            .invalidates = sgl.kind == SGL_KEYED_INVALIDATE,
        };
        data->len_bytes = sgl.len_bytes;
        return;
    }
    data->status = sgl_check_in_capsule(&sgl, len_bytes - NVME_SQE_LEN);
    if (data->status != NVME_SC_SUCCESS || sgl.len_bytes == 0) {
        return;
    }
    data->len_bytes = sgl.len_bytes;
    data->in_capsule = (struct nvmf_piece){
        .ptr = capsule + NVME_SQE_LEN + sgl.address,
        .len_bytes = sgl.len_bytes,
        .handle = lkey,
    };
}
