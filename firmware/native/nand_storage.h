/* SPDX-License-Identifier: BSD-2-Clause */
/* The storage of a new NAND array, in memory. */
#ifndef ESSD_NATIVE_NAND_STORAGE_H
#define ESSD_NATIVE_NAND_STORAGE_H

#include "hw-model/nand/nand_ram.h"

struct nand_storage_config {
    const char *profile; /* of a part: nand_profile_find() */
    uint8_t channels;
    uint8_t dies;       /* of a channel */
    uint16_t blocks;    /* of a plane */
    uint16_t wordlines; /* of a block */
    uint64_t seed;  /* of all errors and of the factory's bad blocks; 0: 1 */
    bool is_sparse; /* zeros take no memory, but access is slower */
};

/** Make an array that was never programmed. */
void nand_storage_init(struct nand_ram *ram,
                       const struct nand_storage_config *config);
void nand_storage_end(struct nand_ram *ram);

#endif
