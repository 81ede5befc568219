/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/tcp/tcp_sgl.h"

#include "lib/bytes.h"
#include "nvmeof/wire/sgl.h"

/* A transport data block: the data is at the host, without an address. */
enum { SGL_TRANSPORT = 0x5a };

void tcp_sgl_read(struct nvmf_data *data, const uint8_t *sqe,
                  const struct nvmf_piece *in_capsule)
{
    const uint8_t *descriptor = sqe + SQE_SGL1;
    struct sgl sgl;

    *data = (struct nvmf_data){0};
    if (descriptor[SGL_TYPE] == SGL_TRANSPORT) {
        data->len_bytes = get_le32(descriptor + SGL_LENGTH);
        return;
    }
    data->status = sgl_parse(&sgl, descriptor);
    if (data->status != NVME_SC_SUCCESS) {
        return;
    }
    if (sgl.kind != SGL_IN_CAPSULE) {
        data->status = NVME_SC_SGL_INVALID_TYPE; /* keys mean nothing here */
        return;
    }
    data->status = sgl_check_in_capsule(&sgl, in_capsule->len_bytes);
    if (data->status != NVME_SC_SUCCESS || sgl.len_bytes == 0) {
        return;
    }
    data->len_bytes = sgl.len_bytes;
    data->in_capsule = (struct nvmf_piece){
        .ptr = (uint8_t *)in_capsule->ptr + sgl.address,
        .len_bytes = sgl.len_bytes,
        .handle = in_capsule->handle,
    };
}
