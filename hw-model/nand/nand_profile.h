/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of NAND parts, and the geometry of an array that is made of them.
 * Numbers and their sources: docs/hardware/nand-profiles.md.
 */
#ifndef ESSD_HW_NAND_PROFILE_H
#define ESSD_HW_NAND_PROFILE_H

#include "lib/util.h"

/* Sizes of a unit, repeated from regs/nand.h; nand_array.c asserts that they
 * agree. */
enum {
    NAND_UNIT_DATA = 4096, /* bytes of data of a unit: nand.md, section 1 */
    NAND_UNIT_META = 64,   /* bytes of metadata: the same */
    NAND_UNIT_SYSTEM = 16, /* system bytes: the same */
};

enum {
    NAND_PROFILE_PAGES = 4, /* pages of a wordline, at most */
    NAND_PROFILE_STEPS = 4, /* soft steps of the error correction, at most */
    NAND_PROFILE_NAME = 16, /* bytes of a name, with the NUL */
    /* Blocks of a plane, at least: a translation layer with eight blocks would
     * not behave like one with hundreds. */
    NAND_SUPERBLOCKS = 200,
    /* The blocks with the same number on all dies have at least so many
     * wordlines together, because the firmware does not count some of them as
     * capacity. */
    NAND_SUPERBLOCK_ROWS = 8,
};

/*
 * Raw bit error rate of a mode, in errors per 10^15 bits:
 *
 *     fresh + wear * N^wear_exp
 *           + retention * N^retention_wear_exp * D^retention_exp
 *           + disturb * N^disturb_wear_exp * R^disturb_exp
 *
 * N: erasures of the block, in units of the native mode; D: days since the unit
 * was programmed; R: reads of a page since the block was erased, on average of
 * the block.  Exponents are in hundredths.
 */
struct nand_rber {
    uint64_t fresh;
    uint64_t wear;
    uint64_t retention;
    uint64_t disturb;
    uint16_t wear_exp;
    uint16_t retention_wear_exp;
    uint16_t retention_exp;
    uint16_t disturb_wear_exp;
    uint16_t disturb_exp;
};

/* What differs between the part's own mode and its SLC mode. */
struct nand_cell_mode {
    uint8_t pages;                        /* of a wordline; 0: no such mode */
    uint32_t read_ns[NAND_PROFILE_PAGES]; /* tR of each page: lower first */
    uint32_t program_ns;                  /* tPROG of a whole wordline */
    uint32_t erase_ns;                    /* tBERS */
    uint32_t endurance;                   /* erasures that are rated */

    struct nand_rber rber;
    uint8_t page_weight[NAND_PROFILE_PAGES]; /* of a page's error rate; 64: 1 */
};

struct nand_profile {
    char name[NAND_PROFILE_NAME];
    const char *text; /* what it is, for people */

    uint8_t planes;     /* of a die */
    uint8_t units;      /* of a page */
    uint16_t wordlines; /* of a block of the real part */

    struct nand_cell_mode native;
    struct nand_cell_mode
        slc; /* pages is 1, or 0 if the part has no such mode */

    /* The channel. */
    uint32_t channel_mbps; /* bytes per microsecond */
    uint32_t command_ns;   /* command and address cycles of an operation */
    uint32_t spare_bytes;  /* of a page, transferred with it */

    /* Suspension of a program or an erase; 0: the part has none. */
    uint32_t suspend_ns; /* until the die can read */
    uint32_t resume_ns;  /* which the operation takes longer afterwards */

    /* Cache operations; 0: the part has none.  The copy does not make a program
     * longer, because the time of a program includes it. */
    uint32_t read_copy_ns;    /* tRCBSY: page register to cache register */
    uint32_t program_copy_ns; /* tPCBSY: cache register to page register */

    /* Error correction of a unit. */
    uint32_t decode_ns;      /* of the first, hard decoding */
    uint32_t soft_decode_ns; /* of each step after it; a read comes on top */
    uint8_t steps;           /* soft steps */
    /* Wrong bits that can be corrected by the hard decoding, and by each step:
     * ascending. */
    uint16_t bits[1 + NAND_PROFILE_STEPS];

    /* Failures, in events per 2^32 operations. */
    uint32_t factory_bad;     /* of blocks */
    uint32_t program_failure; /* of wordlines at the rated endurance */
    uint32_t erase_failure;   /* of blocks at the rated endurance */
};

/* An array.  All dies are alike. */
struct nand_geometry {
    uint8_t channels;   /* 1..16 */
    uint8_t dies;       /* 1..16, of a channel */
    uint8_t planes;     /* 1..4, of a die */
    uint8_t units;      /* 1..4, of a page */
    uint8_t pages;      /* 1..4, of a wordline in the native mode */
    uint16_t blocks;    /* of a plane, 1..65535 */
    uint16_t wordlines; /* of a block, 1..65535 */
};

/** @return the number of profiles; `nand_profile(0)` is the default */
unsigned int nand_profile_count(void);
const struct nand_profile *nand_profile(unsigned int index);

/** @return NULL when there is no profile of this name */
const struct nand_profile *nand_profile_find(const char *name);

/** The mode that a block has: SLC, or the part's own. */
static inline const struct nand_cell_mode *nand_profile_mode(
    const struct nand_profile *profile, bool is_slc)
{
    return is_slc ? &profile->slc : &profile->native;
}

enum nand_fit {
    NAND_FITS,
    NAND_FIT_BAD_CHANNELS, /* channels are not 1..16 */
    NAND_FIT_BAD_DIES,     /* dies of a channel are not 1..16 */
    NAND_FIT_TOO_SMALL,    /* even the smallest blocks are too few */
    NAND_FIT_TOO_LARGE,    /* more than 65535 blocks of a plane */
};

/**
 * Choose the geometry of an array that holds at least `capacity_bytes` of data
 * in the native mode, in all its blocks.  Blocks have as many wordlines as
 * those of the part, or fewer, so that a plane has NAND_SUPERBLOCKS blocks or
 * more.  The blocks with the same number on all dies have NAND_SUPERBLOCK_ROWS
 * wordlines or more together.
 *
 * @param fit  the result, or what does not fit
 * @param nearest_bytes  when the capacity does not fit: the nearest that does
 */
MUST_USE bool nand_geometry_for(const struct nand_profile *profile,
                                uint64_t capacity_bytes, unsigned int channels,
                                unsigned int dies,
                                struct nand_geometry *geometry,
                                enum nand_fit *fit, uint64_t *nearest_bytes);

/** Whether the numbers are within their ranges. */
MUST_USE bool nand_geometry_is_valid(const struct nand_geometry *geometry);

uint32_t nand_geometry_dies(const struct nand_geometry *geometry);
uint32_t nand_geometry_blocks(const struct nand_geometry *geometry);
/** Bytes of data that all blocks hold in the native mode. */
uint64_t nand_geometry_bytes(const struct nand_geometry *geometry);

#endif
