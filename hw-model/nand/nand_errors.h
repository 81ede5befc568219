/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of NAND flash: how many bits of a unit are wrong, what the error
 * correction makes of it, and whether a program or an erase fails.
 *
 * Everything is a function of the array's seed, the place and the counters that
 * are passed: nothing is remembered.  The arithmetic is in integers, so that
 * every compiler and machine gives the same result.
 */
#ifndef ESSD_HW_NAND_ERRORS_H
#define ESSD_HW_NAND_ERRORS_H

#include "hw-model/nand/nand_profile.h"
#include "lib/util.h"

enum {
    /* Bits of a codeword, with parity: (4096 + 64 + 16) bytes * 8 / 0.90.  The
     * code rate is chosen: the parity then fits into the spare area.  `mlc2d`
     * has less of it, and a weaker code. */
    NAND_CODEWORD_BITS = 37120,
    /* Wear is counted in 1/256 of an erasure (struct nand_block), so that
     * erasures in SLC mode, each a small part of one, can be counted. */
    NAND_WEAR_CYCLE = 256,
    /* Most wrong bits that are reported: far more than can be corrected, and
     * it fits into the 16 bits of RESULT. */
    NAND_BITS_MAX = 4096,
};

/* What the number of wrong bits of a unit depends on. */
struct nand_stress {
    uint32_t wear;        /* in NAND_WEAR_CYCLE-ths */
    uint64_t age_ns;      /* since the unit was programmed */
    uint32_t reads;       /* of the block since it was erased */
    uint32_t block_pages; /* pages of the block, among which these were */
    uint8_t page;         /* of the wordline */
    bool is_slc;
};

/**
 * Raw bit error rate, on average of all blocks and wordlines.
 *
 * @return errors per 10^15 bits
 */
uint64_t nand_error_rate(const struct nand_profile *profile,
                         const struct nand_stress *stress);

/* Where a unit is; every number is that of the array, not of its parent. */
struct nand_spot {
    uint64_t seed;   /* of the array */
    uint32_t block;  /* of the array: index of its record */
    uint32_t number; /* erase number of the block */
    uint16_t wordline;
    uint8_t page;
    uint8_t unit;
};

/** The number of wrong bits of a unit that is read now. */
uint16_t nand_error_bits(const struct nand_profile *profile,
                         const struct nand_spot *spot,
                         const struct nand_stress *stress);

/**
 * What the error correction makes of a number of wrong bits.
 *
 * @param steps  steps beyond the first; all of them when it fails
 * @return false when they cannot be corrected
 */
MUST_USE bool nand_correct_bits(const struct nand_profile *profile,
                                uint16_t bits, uint8_t *steps);

/** Whether programming the wordline fails. */
bool nand_program_fails(const struct nand_profile *profile,
                        const struct nand_spot *spot, uint32_t wear);

/** Whether the erasure that gives the block the number spot->number fails. */
bool nand_erase_fails(const struct nand_profile *profile,
                      const struct nand_spot *spot, uint32_t wear);

/** Whether the factory marked the block as bad. */
bool nand_is_factory_bad(const struct nand_profile *profile, uint64_t seed,
                         uint32_t block);

/** Whether a unit of a half programmed wordline reads as it was written. */
bool nand_torn_unit_reads(const struct nand_spot *spot);

/** What an erasure in this mode adds to the wear. */
uint32_t nand_erase_wear(const struct nand_profile *profile, bool is_slc);

#endif
