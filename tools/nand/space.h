/* SPDX-License-Identifier: BSD-2-Clause */
/* The capacity that hosts see on a drive with a certain array. */
#ifndef ESSD_TOOLS_NAND_SPACE_H
#define ESSD_TOOLS_NAND_SPACE_H

#include "image.h"

/** Bytes that hosts can store on a new drive with such an array.
 *  @param spare_percent  see ftl_space() */
uint64_t space_bytes(const struct nand_geometry *geometry,
                     const struct nand_profile *profile, uint64_t seed,
                     unsigned int spare_percent);

/**
 * Whether the firmware can write a checkpoint of the map of the array that the
 * command line describes.  If it cannot, print one line that names the nearest
 * size of which it can.
 *
 * @param path  the file that the message begins with
 */
MUST_USE bool space_is_mapped(const char *path, const struct wishes *wishes);

/**
 * The command `size`: find the smallest array of a kind with which a drive has
 * at least the capacity wishes->capacity_bytes, and print how many bytes of
 * data all its blocks hold.
 * @return an exit status
 */
int print_size(const struct wishes *wishes);

/**
 * The command `space`: print how many bytes hosts can store on a drive whose
 * array holds wishes->capacity_bytes in all its blocks.
 * @return an exit status
 */
int print_space(const struct wishes *wishes);

#endif
