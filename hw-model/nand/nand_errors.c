/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors of NAND flash: see nand_errors.h.  Why the numbers of the model are
 * what they are is in docs/hardware/nand-profiles.md.
 */
#include "hw-model/nand/nand_errors.h"

#include "lib/random.h"

#define DAY_NS    (UINT64_C(86400) * 1000000000)
#define PER_BITS  UINT64_C(1000000000000000) /* rates are per 10^15 bits */
#define RATE_MAX  (PER_BITS / RATE_MAX_PART)
#define FIXED_ONE 65536 /* numbers with 16 fractional bits */

/*
 * The numbers of the model that are the same for every profile.  A name that
 * ends in PART is the divisor of a fraction: 8 stands for one eighth.
 */
/* All of these are chosen; the reason follows the colon. */
enum {
    /* At most 1/4 of all bits are wrong: far more than can be corrected. */
    RATE_MAX_PART = 4,
    /* Weights of pages, blocks and wordlines are multiples of 1/64: exact
     * enough for integers. */
    WEIGHT_ONE = 64,
    /* Weights of blocks deviate from 1 by up to 13/64, which is 20%: some
     * blocks need soft decoding long before others. */
    BLOCK_SPREAD = 13,
    /* Those of wordlines by up to 10/64, which is 16%: layers differ in the
     * same way in each block (source H of nand-profiles.md, without a size). */
    WORDLINE_SPREAD = 10,
    /* 1/8 of the wrong bits is the noise of one read, the others are wrong in
     * each read: a unit that is read again has other wrong bits, not many. */
    NOISE_PART = 8,
    /* The number of wrong bits has a Poisson distribution; from this mean on, a
     * normal one: close enough to it. */
    NORMAL_MEAN = 8,
    /* A new block fails with 1/256 of the rated probability: rare, but
     * possible. */
    FAILURE_MIN_PART = 256,
    /* After 16 times the rated erasures, failures do not become more frequent:
     * the product of the third power and a probability fits into 64 bits. */
    FAILURE_MAX_WEAR = 16,
    /* At most 1/2 of all operations fail: firmware still makes progress. */
    FAILURE_MAX_PART = 2,
    /* 1/16 of the units of a half programmed wordline read as they were
     * written: firmware must not take a unit that reads for a wordline that is
     * whole. */
    TORN_GOOD_PART = 16,
};

/* What a hash is for, so that draws for different purposes are independent. */
enum nand_draw {
    DRAW_LASTING = 1,
    DRAW_NOISE,
    DRAW_BLOCK_QUALITY,
    DRAW_WORDLINE_QUALITY,
    DRAW_PROGRAM,
    DRAW_ERASE,
    DRAW_FACTORY,
    DRAW_TORN,
};

static uint64_t hash_add(uint64_t hash, uint64_t value)
{
    return random_mix(hash ^ value);
}

static uint64_t hash_place(const struct nand_spot *spot, enum nand_draw draw)
{
    uint64_t hash = hash_add(spot->seed, draw);

    hash = hash_add(hash, (uint64_t)spot->block << 32 | spot->number);
    return hash_add(hash, (uint64_t)spot->wordline << 16 |
                              (uint64_t)spot->page << 8 | spot->unit);
}

/* ---- Logarithms of base 2, with 16 fractional bits. */

/* log2(x) of x >= 1.  The polynomial deviates by less than 2^-14. */
static int64_t log2_fixed(uint64_t x)
{
    /* log2(1 + f) / f, as coefficients of f^0, f^1, ... times 2^30. */
    static const int64_t series[] = {1548984137, -769566510, 473089609,
                                     -241702533, 62990999};
    unsigned int exponent;
    int64_t fraction, sum = 0;

    ASSERT(x != 0);
    exponent = 63 - (unsigned int)__builtin_clzll(x);
    fraction = exponent == 0 ? 0 : (int64_t)(x << (64 - exponent) >> 34);
    for (unsigned int i = ARRAY_LEN(series); i-- != 0;) {
        sum = series[i] + sum * fraction / (INT64_C(1) << 30);
    }
    sum = sum * fraction / (INT64_C(1) << 30);
    return (int64_t)exponent * FIXED_ONE + (sum >> 14);
}

/* 2^x, rounded down.  The polynomial deviates by less than 2^-15. */
static uint64_t exp2_fixed(int64_t x)
{
    /* (2^f - 1) / f, as above. */
    static const int64_t series[] = {744246958, 258392800, 57381868, 13704289};
    int64_t exponent = x >> 16;
    int64_t fraction = (x & (FIXED_ONE - 1)) << 14, sum = 0;
    uint64_t mantissa;

    if (exponent < 0) {
        return 0;
    }
    if (exponent > 62) {
        return UINT64_C(1) << 63;
    }
    for (unsigned int i = ARRAY_LEN(series); i-- != 0;) {
        sum = series[i] + (sum * fraction >> 30);
    }
    mantissa = (UINT64_C(1) << 30) + (uint64_t)(sum * fraction >> 30);
    return exponent >= 30 ? mantissa << (exponent - 30)
                          : mantissa >> (30 - exponent);
}

/* ---- The error rate. */

/* factor * 2^(log1 * exp1 + log2 * exp2), with exponents in hundredths. */
static uint64_t rate_term(uint64_t factor, int64_t log1, uint16_t exp1,
                          int64_t log2, uint16_t exp2)
{
    if (factor == 0) {
        return 0;
    }
    return MIN(
        exp2_fixed(log2_fixed(factor) + (log1 * exp1 + log2 * exp2) / 100),
        RATE_MAX);
}

/* log2 of a number above 0 that has 2^shift in place of 1. */
static int64_t log2_shifted(uint64_t x, unsigned int shift)
{
    return log2_fixed(x) - (int64_t)shift * FIXED_ONE;
}

uint64_t nand_error_rate(const struct nand_profile *profile,
                         const struct nand_stress *stress)
{
    const struct nand_rber *rber =
        &nand_profile_mode(profile, stress->is_slc)->rber;
    uint64_t days = stress->age_ns / (DAY_NS >> 16);
    uint64_t reads = ((uint64_t)stress->reads << 16) / stress->block_pages;
    int64_t cycles = log2_shifted(MAX(stress->wear, NAND_WEAR_CYCLE), 8);
    uint64_t rate = rber->fresh;

    if (stress->wear != 0) {
        rate += rate_term(rber->wear, cycles, rber->wear_exp, 0, 0);
    }
    if (days != 0) {
        rate += rate_term(rber->retention, cycles, rber->retention_wear_exp,
                          log2_shifted(days, 16), rber->retention_exp);
    }
    if (reads != 0) {
        rate += rate_term(rber->disturb, cycles, rber->disturb_wear_exp,
                          log2_shifted(reads, 16), rber->disturb_exp);
    }
    return MIN(rate, RATE_MAX);
}

/* ---- Draws. */

static uint64_t square_root(uint64_t x)
{
    unsigned int log2 = x == 0 ? 0 : 63 - (unsigned int)__builtin_clzll(x);
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << log2 / 2; bit != 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= x) {
            root += bit;
        }
    }
    return root;
}

/* A number with the Poisson distribution whose mean is small. */
static uint32_t draw_few(uint64_t mean, uint64_t hash)
{
    /* log2(e) = 1.442695 */
    uint64_t p = exp2_fixed(32 * FIXED_ONE - (int64_t)(mean * 94548 >> 16));
    uint64_t uniform = hash >> 32, sum = p;
    uint32_t count = 0;

    while (uniform >= sum && count < 64) {
        count++;
        p = (p * mean >> 16) / count;
        sum += p;
    }
    return count;
}

/* About the same for other means: a normal distribution. */
static uint32_t draw_many(uint64_t mean, uint64_t hash)
{
    /* Eight uniform numbers of 16 bits: their sum's mean and deviation. */
    const int64_t sum_mean = 8 * 65535 / 2, sum_deviation = 53510;
    int64_t sum = 0, bits;

    for (unsigned int i = 0; i < 2; i++) {
        for (unsigned int shift = 0; shift < 64; shift += 16) {
            sum += (int64_t)(hash >> shift & 0xffff);
        }
        hash = random_mix(hash);
    }
    bits = (int64_t)mean +
           (int64_t)square_root(mean << 16) * (sum - sum_mean) / sum_deviation;
    return bits < 0 ? 0 : (uint32_t)((bits + FIXED_ONE / 2) / FIXED_ONE);
}

/* @param mean  with 16 fractional bits */
static uint32_t draw_count(uint64_t mean, uint64_t hash)
{
    return mean < NORMAL_MEAN * FIXED_ONE ? draw_few(mean, hash)
                                          : draw_many(mean, hash);
}

/* A weight of 1 on average. */
static uint64_t draw_weight(uint64_t hash, uint64_t spread)
{
    return WEIGHT_ONE - spread + hash % (2 * spread + 1);
}

uint16_t nand_error_bits(const struct nand_profile *profile,
                         const struct nand_spot *spot,
                         const struct nand_stress *stress)
{
    const struct nand_cell_mode *mode =
        nand_profile_mode(profile, stress->is_slc);
    uint64_t block_hash =
        hash_add(hash_add(spot->seed, DRAW_BLOCK_QUALITY), spot->block);
    uint64_t wordline_hash =
        hash_add(hash_add(spot->seed, DRAW_WORDLINE_QUALITY), spot->wordline);
    uint64_t block_weight = draw_weight(block_hash, BLOCK_SPREAD);
    uint64_t wordline_weight = draw_weight(wordline_hash, WORDLINE_SPREAD);
    uint64_t mean = nand_error_rate(profile, stress) * NAND_CODEWORD_BITS /
                    (PER_BITS >> 16);
    uint64_t noise;
    uint32_t bits;

    mean = mean * mode->page_weight[stress->page] / WEIGHT_ONE * block_weight /
           WEIGHT_ONE * wordline_weight / WEIGHT_ONE;
    noise = mean / NOISE_PART;
    /* Most wrong bits are wrong in each read, some are noise of this read. */
    bits = draw_count(mean - noise, hash_place(spot, DRAW_LASTING)) +
           draw_count(noise,
                      hash_add(hash_place(spot, DRAW_NOISE), stress->reads));
    return (uint16_t)MIN(bits, NAND_BITS_MAX);
}

bool nand_correct_bits(const struct nand_profile *profile, uint16_t bits,
                       uint8_t *steps)
{
    *steps = 0;
    while (bits > profile->bits[*steps]) {
        if (*steps == profile->steps) {
            return false;
        }
        (*steps)++;
    }
    return true;
}

/* ---- Failures. */

/* Whether an event of this probability at the rated endurance happens now. */
static bool draw_failure(const struct nand_profile *profile, uint32_t rated,
                         uint32_t wear, uint64_t hash)
{
    uint64_t ratio =
        MIN((uint64_t)wear * NAND_WEAR_CYCLE / profile->native.endurance,
            (uint64_t)FAILURE_MAX_WEAR * FIXED_ONE);
    uint64_t cube = (ratio * ratio >> 16) * ratio >> 16;
    uint64_t chance = (rated * cube >> 16) + rated / FAILURE_MIN_PART;

    return hash >> 32 < MIN(chance, (UINT64_C(1) << 32) / FAILURE_MAX_PART);
}

bool nand_program_fails(const struct nand_profile *profile,
                        const struct nand_spot *spot, uint32_t wear)
{
    return draw_failure(profile, profile->program_failure, wear,
                        hash_place(spot, DRAW_PROGRAM));
}

bool nand_erase_fails(const struct nand_profile *profile,
                      const struct nand_spot *spot, uint32_t wear)
{
    return draw_failure(profile, profile->erase_failure, wear,
                        hash_place(spot, DRAW_ERASE));
}

bool nand_is_factory_bad(const struct nand_profile *profile, uint64_t seed,
                         uint32_t block)
{
    return hash_add(hash_add(seed, DRAW_FACTORY), block) >> 32 <
           profile->factory_bad;
}

bool nand_torn_unit_reads(const struct nand_spot *spot)
{
    return hash_place(spot, DRAW_TORN) % TORN_GOOD_PART == 0;
}

uint32_t nand_erase_wear(const struct nand_profile *profile, bool is_slc)
{
    return is_slc ? MAX(NAND_WEAR_CYCLE * profile->native.endurance /
                            profile->slc.endurance,
                        1)
                  : NAND_WEAR_CYCLE;
}
