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
 * wishes->drive_writes times as many units as all namespaces have together.
 * These go to what was filled, at random or sequentially.
 *
 * Each unit of 4096 bytes gets a pattern of 16 bytes, which is repeated.  The
 * last four are 0 in the first pass; in the writes after it, they count these
 * writes from 1.  Metadata is FFh, which says that protection information is
 * not to be checked.
 *
 * @return an exit status; what is wrong was printed
 */
int fill_namespaces(const struct image *image, const struct wishes *wishes);

#endif
