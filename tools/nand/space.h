/* SPDX-License-Identifier: BSD-2-Clause */
/* What capacity a drive with an array has. */
#ifndef ESSD_TOOLS_NAND_SPACE_H
#define ESSD_TOOLS_NAND_SPACE_H

#include "image.h"

/** Bytes that hosts can store on a new drive with such an array. */
uint64_t space_bytes(const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed);

/**
 * The command `size`: print how many bytes the smallest array of a kind has
 * with which a drive has the capacity wishes->capacity_bytes.
 * @return an exit status
 */
int print_size(const struct wishes *wishes);

#endif
