/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capacity that hosts see on a drive with a certain NAND array.  Code of
 * the firmware computes it.
 */
#ifndef ESSD_NATIVE_NAND_SPACE_H
#define ESSD_NATIVE_NAND_SPACE_H

#include "hw-model/nand/nand_profile.h"

/**
 * Set the planes that the factory has marked as bad.
 *
 * @param bad  as in struct ftl_config: a byte for each die of each block
 */
void nand_space_mark(uint8_t *bad, const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed);

/**
 * Bytes that hosts can store on a new drive with such an array.
 *
 * @param seed  of the blocks that the factory has marked as bad
 * @param spare_percent  see ftl_space()
 * @return 0 if there is no memory for the computation
 */
uint64_t nand_space_bytes(const struct nand_geometry *geometry,
                          const struct nand_profile *profile, uint64_t seed,
                          unsigned int spare_percent);

#endif
