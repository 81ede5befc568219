/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field PRINFO of commands for blocks with protection information.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_PROTECTION_H
#define ESSD_NVMEOF_TARGET_BASE_PROTECTION_H

#include "nvmeof/target/base/base.h"

enum {
    PRINFO_SHIFT = 26,  /* of the action and the checks, in dword 12 */
    PRINFO_PRACT = 0x8, /* insert on a write, remove on a read */
};

/* block_bytes.c */

/* PRINFO of a command's own blocks. */
uint32_t protection_info(const struct nvmf_request *req);
bool protection_drops_metadata(const struct nvmf_ns *ns, uint32_t info);
/* Bytes of each block, with its metadata if that follows the block. */
uint32_t protection_stride_bytes(const struct nvmf_ns *ns, bool is_interleaved);
uint32_t protection_stride(const struct nvmf_request *req);

#endif
