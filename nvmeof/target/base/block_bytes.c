/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of the host's data the blocks of a command are, if they have
 * metadata.
 */
#include "nvmeof/target/base/base.h"
#include "nvmeof/target/base/protection.h"

enum { METADATA_LEN = 8 };

uint32_t protection_info(const struct nvmf_request *req)
{
    return req->sqe.cdw12 >> PRINFO_SHIFT & 0xf;
}

/* Whether only data is transferred.  Without protection information there is
 * nothing that the drive could make or remove. */
bool protection_drops_metadata(const struct nvmf_ns *ns, uint32_t info)
{
    return ns->geometry.pi_type != 0 && (info & PRINFO_PRACT);
}

uint32_t protection_stride_bytes(const struct nvmf_ns *ns, bool is_interleaved)
{
    return (UINT32_C(1) << ns->geometry.block_shift) +
           (is_interleaved ? METADATA_LEN : 0);
}

/* Bytes of the host's data for each block. */
uint32_t protection_stride(const struct nvmf_request *req)
{
    return protection_stride_bytes(
        req->ns, !protection_drops_metadata(req->ns, protection_info(req)));
}

uint32_t protection_blocks_in(const struct nvmf_ns *ns,
                              const struct nvmf_request *req, uint32_t bytes)
{
    return bytes / protection_stride_bytes(ns, !protection_drops_metadata(
                                                   ns, protection_info(req)));
}

/* A host's buffers hold whole blocks. */
uint32_t protection_round_window(const struct nvmf_request *req, uint32_t bytes)
{
    return bytes - bytes % protection_stride(req);
}
