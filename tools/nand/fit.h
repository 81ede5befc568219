/* SPDX-License-Identifier: BSD-2-Clause */
/* Which array the command line describes, or what in it does not fit. */
#ifndef ESSD_TOOLS_NAND_FIT_H
#define ESSD_TOOLS_NAND_FIT_H

#include "image.h"

/* A number of bytes as options take it, such as "300M". */
struct size_text {
    char text[24];
};
struct size_text size_text(uint64_t bytes);

/**
 * Find the profile of the command line.
 *
 * @param path  the file that the message begins with; NULL: none
 * @return NULL when there is none; this function has printed why
 */
const struct nand_profile *fit_profile(const char *path,
                                       const struct wishes *wishes);

/**
 * Choose the geometry of an array that holds so many bytes in all its blocks.
 * If none fits, print one line that names the nearest size that does.
 */
MUST_USE bool fit_geometry(const char *path, const struct wishes *wishes,
                           const struct nand_profile *profile,
                           uint64_t array_bytes,
                           struct nand_geometry *geometry);

#endif
