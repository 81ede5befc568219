/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a host in the same drive asks of the target besides its commands.
 */
#ifndef ESSD_NVMEOF_TARGET_INSIDE_H
#define ESSD_NVMEOF_TARGET_INSIDE_H

#include "nvmeof/target/target.h"

/* The blocks of a namespace, and who may use it. */
struct nvmf_ns_blocks {
    uint64_t size_blocks;
    uint8_t block_shift;  /* 9 for 512 bytes, 12 for 4096 bytes */
    uint8_t atomic_shift; /* media_geometry.atomic_shift */
    bool has_metadata;
    bool has_zones;
    bool is_private;  /* only one controller may have it */
    bool is_attached; /* to the controller of the queue pair */
};

/**
 * Describe a namespace as it is now.
 *
 * @param qpair  a queue pair of the host that asks
 * @return false when there is no namespace of this NSID, or it is being deleted
 */
MUST_USE bool nvmf_target_ns_blocks(const struct nvmf_target *target,
                                    uint32_t nsid, uint16_t qpair,
                                    struct nvmf_ns_blocks *blocks);

#endif
