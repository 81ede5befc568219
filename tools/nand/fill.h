/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preconditioning, a part of essd-nand age: the namespaces of a drive are
 * filled, then overwritten, by the translation layer of the firmware.
 */
#ifndef ESSD_TOOLS_NAND_FILL_H
#define ESSD_TOOLS_NAND_FILL_H

#include "image.h"

enum {
    FILL_PATTERN_LEN = 16, /* repeated in each unit */
    /* Fields of the pattern, little-endian. */
    FILL_PATTERN_UNIT = 0,   /* 8 bytes: number of the unit in its namespace */
    FILL_PATTERN_NSID = 8,   /* 4 bytes */
    FILL_PATTERN_WRITE = 12, /* 4 bytes: see fill_namespaces() */
};

/**
 * Write the first wishes->fill percent of each namespace sequentially, then
 * write wishes->drive_writes times as many units as all namespaces have
 * together.  These later writes overwrite the filled parts, at random or
 * sequentially.
 *
 * Each unit of 4096 bytes gets a pattern of 16 bytes, which is repeated.  Its
 * last four bytes are 0 in the first pass, and count the later writes from 1.
 * Metadata is FFh, which says that protection information is not to be checked.
 *
 * @return an exit status; if it is not 0, an error message was printed
 */
int fill_namespaces(const struct image *image, const struct wishes *wishes);

#endif
