/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the scratch buffers: scratch.c.
 */
#ifndef ESSD_NVMEOF_TARGET_IO_SCRATCH_H
#define ESSD_NVMEOF_TARGET_IO_SCRATCH_H

#include "nvmeof/target/request/queue.h"
#include "storage/block/piece.h"

/* Memory into which commands read blocks that do not go to a host: scratch.c */
enum { SCRATCH_BYTES = 128 * 1024, SCRATCH_COUNT = 4 };
struct nvmf_scratch {
    uint32_t used; /* BIT(number) */
    bool is_served;
    struct nvmf_queue waiting;
    struct nvmf_piece piece[SCRATCH_COUNT];
    _Alignas(64) uint8_t memory[SCRATCH_COUNT][SCRATCH_BYTES];
};

#endif
