/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sizes of the translation layer of a drive with a NAND array.  They follow
 * from the array and the drive's identity, and are the same at every start.
 * Programs that work on an array while the drive is off use the same sizes.
 */
#ifndef ESSD_APP_NAND_SIZES_H
#define ESSD_APP_NAND_SIZES_H

#include "firmware/ftl/ftl.h"

enum {
    NAND_SIZES_REQUESTS = 256, /* commands of the controller in progress: a
                                * power of two */
    NAND_SIZES_UNIT_SHIFT = 12,
};
_Static_assert(1 << NAND_SIZES_UNIT_SHIFT == (int)FTL_UNIT_DATA,
               "a unit's data");

struct nand_sizes {
    /* The capacity in bytes.  If it is 0, or more than the array has space for,
     * the capacity is the largest for which the array has space. */
    uint64_t capacity_bytes;
    /* When the power fails, capacitors supply the drive until the write buffer
     * is saved. */
    bool has_capacitors;
    uint32_t hard_bits; /* wrong bits of a unit that hard decoding corrects */
};

/**
 * Set what does not depend on the blocks that the factory has marked as bad.
 *
 * @param ftl  the caller has set geometry and bad_planes; bad_planes has no
 *             marks yet
 */
void nand_sizes_begin(struct ftl_config *ftl, const struct nand_sizes *sizes);

/**
 * Set what also depends on the blocks that the factory has marked: the
 * capacity, and the time between two rows of scrubbing.
 *
 * @param ftl  as nand_sizes_begin() has left it; bad_planes now has the marks
 * @return false when the array is too small, or too large
 */
MUST_USE bool nand_sizes_choose(struct ftl_config *ftl,
                                const struct nand_sizes *sizes);

#endif
