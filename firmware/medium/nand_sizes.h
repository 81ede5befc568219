/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sizes of the translation layer of a drive with a NAND array.  They follow
 * from the array and the drive's identity, and are the same at every start.
 * Programs that work on an array while the drive is off use the same sizes.
 */
#ifndef ESSD_MEDIUM_NAND_SIZES_H
#define ESSD_MEDIUM_NAND_SIZES_H

#include "storage/ftl/ftl.h"

enum {
    NAND_SIZES_REQUESTS = 256, /* commands of the controller in progress: a
                                * power of two */
    NAND_SIZES_UNIT_SHIFT = 12,
};
_Static_assert(1 << NAND_SIZES_UNIT_SHIFT == (int)FTL_UNIT_DATA,
               "a unit's data");

/* How long operations of the flash take, in microseconds.  All are 0 if
 * operations take no time. */
struct nand_times {
    uint32_t program_us;   /* a die programs a row */
    uint32_t transfer_us;  /* the channel transfers a row to a die */
    uint32_t erase_us;     /* a die erases blocks */
    uint32_t read_us;      /* a die reads a page */
    uint32_t channel_dies; /* dies that share a channel */
};

struct nand_sizes {
    /* The capacity in bytes.  If it is 0, or more than the array has space for,
     * the capacity is the largest for which the array has space. */
    uint64_t capacity_bytes;
    /* When the power fails, capacitors supply the drive until the write buffer
     * is saved. */
    bool has_capacitors;
    uint32_t budget_us; /* how long they last; 0: without limit */
    struct nand_times times;
    uint32_t hard_bits; /* wrong bits of a unit that hard decoding corrects */
};

/**
 * The largest number of units of the write buffer that the drive can save when
 * the power fails: there is space for them on the flash, and they are
 * programmed before the capacitors are empty.
 *
 * @param ftl  as for nand_sizes_begin()
 * @return 0 when this number is too small for a write buffer
 */
uint32_t nand_sizes_saved(const struct ftl_config *ftl,
                          const struct nand_sizes *sizes);

/**
 * Set what does not depend on the blocks that the factory has marked as bad.
 *
 * @param ftl  the caller has set geometry and bad_planes; bad_planes has no
 *             marks yet
 * @param sizes  if nand_sizes_saved() is 0, the write buffer gets the size that
 *               it has without capacitors
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
