/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of NAND flash, against the formulas of the profiles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/nand/nand_errors.h"
#include "lib/random.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

enum { BLOCK_PAGES = 81 };

/* The formula of struct nand_rber, in floating point. */
static double rate_formula(const struct nand_rber *rber, double cycles,
                           double days, double reads)
{
    double n = cycles < 1 ? 1 : cycles;
    double rate = (double)rber->fresh;

    if (cycles > 0) {
        rate += (double)rber->wear * pow(n, rber->wear_exp / 100.0);
    }
    if (days > 0) {
        rate += (double)rber->retention *
                pow(n, rber->retention_wear_exp / 100.0) *
                pow(days, rber->retention_exp / 100.0);
    }
    if (reads > 0) {
        rate += (double)rber->disturb * pow(n, rber->disturb_wear_exp / 100.0) *
                pow(reads, rber->disturb_exp / 100.0);
    }
    return rate;
}

static void test_the_error_rate_follows_the_formula_of_the_profile(void **state)
{
    static const uint32_t cycles[] = {0, 1, 10, 300, 1000, 3000, 6000};
    static const uint32_t hours[] = {0, 1, 24, 2160, 87600};
    static const uint32_t reads[] = {0, 1, 100, 50000, 1000000};

    (void)state;
    for (unsigned int i = 0; i < nand_profile_count() * 7 * 5 * 5 * 2; i++) {
        const struct nand_profile *profile = nand_profile(i / 350);
        bool is_slc = i % 2 != 0;
        uint32_t c = cycles[i / 50 % 7], h = hours[i / 10 % 5],
                 r = reads[i / 2 % 5];
        struct nand_stress stress = {
            .wear = c * NAND_WEAR_CYCLE,
            .age_ns = h * (DAY_NS / 24),
            .reads = r,
            .block_pages = BLOCK_PAGES,
            .is_slc = is_slc,
        };
        double expected =
            rate_formula(&nand_profile_mode(profile, is_slc)->rber, c, h / 24.0,
                         (double)r / BLOCK_PAGES);
        double rate = (double)nand_error_rate(profile, &stress);

        if (expected > 2.5e14) {
            expected = 2.5e14; /* a quarter of all bits: the bound */
        }
        if (fabs(rate - expected) > expected * 0.002 + 1) {
            fail_msg("%s, %u cycles, %u hours, %u reads: %g, not %g",
                     profile->name, c, h, r, rate, expected);
        }
    }
}

/* Sum of the wrong bits of all units of some blocks, and of their squares. */
static void sum_bits(const struct nand_profile *profile,
                     const struct nand_stress *stress, double *mean,
                     double *zeros)
{
    const struct nand_cell_mode *mode =
        nand_profile_mode(profile, stress->is_slc);
    struct nand_spot spot = {.seed = 1};
    struct nand_stress s = *stress;
    uint64_t sum = 0, none = 0, count = 0;

    for (spot.block = 0; spot.block < 150; spot.block++) {
        for (spot.wordline = 0; spot.wordline < 150; spot.wordline++) {
            for (s.page = 0; s.page < mode->pages; s.page++) {
                uint16_t bits;

                spot.page = s.page;
                bits = nand_error_bits(profile, &spot, &s);
                sum += bits;
                none += bits == 0;
                count++;
            }
        }
    }
    *mean = (double)sum / (double)count;
    *zeros = (double)none / (double)count;
}

static void test_wrong_bits_are_as_many_as_the_rate_says(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count() * 4; i++) {
        const struct nand_profile *profile = nand_profile(i / 4);
        struct nand_stress stress = {
            .wear = i % 2 * profile->native.endurance * NAND_WEAR_CYCLE,
            .age_ns = i % 2 * 90 * DAY_NS,
            .block_pages = BLOCK_PAGES,
            .is_slc = i % 4 >= 2,
        };
        double expected, mean, zeros;

        if (stress.is_slc && profile->slc.pages == 0) {
            continue;
        }
        expected = (double)nand_error_rate(profile, &stress) / 1e15 *
                   NAND_CODEWORD_BITS;
        sum_bits(profile, &stress, &mean, &zeros);
        if (fabs(mean - expected) > 0.03 * expected + 0.01) {
            fail_msg("%s: %g wrong bits, not %g", profile->name, mean,
                     expected);
        }
        if (expected < 0.2) {
            assert_true(fabs(zeros - exp(-expected)) < 0.01);
        }
    }
}

/* What is done to a block before it is read. */
struct ordeal {
    unsigned int lives; /* times the rated erasures of its mode */
    unsigned int days;
    unsigned int reads; /* of each page */
};

/* Percent of the units of some blocks that cannot be corrected, rounded up. */
static unsigned int lost_percent(const struct nand_profile *profile,
                                 bool is_slc, struct ordeal ordeal)
{
    const struct nand_cell_mode *mode = nand_profile_mode(profile, is_slc);
    struct nand_stress s = {
        .wear =
            ordeal.lives * mode->endurance * nand_erase_wear(profile, is_slc),
        .age_ns = ordeal.days * DAY_NS,
        .reads = ordeal.reads * BLOCK_PAGES,
        .block_pages = BLOCK_PAGES,
        .is_slc = is_slc,
    };
    struct nand_spot spot = {.seed = 5};
    unsigned int lost = 0, count = 0;

    for (spot.block = 0; spot.block < 100; spot.block++) {
        for (spot.wordline = 0; spot.wordline < 50; spot.wordline++) {
            for (s.page = 0; s.page < mode->pages; s.page++) {
                uint8_t steps;

                spot.page = s.page;
                lost += !nand_correct_bits(
                    profile, nand_error_bits(profile, &spot, &s), &steps);
                count++;
            }
        }
    }
    return (100 * lost + count - 1) / count;
}

/* The table in nand-profiles.md, "How long data is kept". */
static void test_a_worn_block_holds_data_for_90_days_and_not_for_ever(
    void **state)
{
    static const struct ordeal rated = {1, 90, 50}, three = {3, 365, 50},
                               ten = {10, 365, 50};

    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);

        assert_int_equal(lost_percent(profile, false, rated), 0);
        if (profile->native.pages > 1) {
            assert_true(lost_percent(profile, false, three) > 90);
            assert_int_equal(lost_percent(profile, false, ten), 100);
        } else {
            assert_int_equal(lost_percent(profile, false, three), 0);
            assert_in_range(lost_percent(profile, false, ten), 81, 99);
        }
    }
}

static void test_only_reads_make_an_slc_mode_lose_data(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);

        if (profile->slc.pages != 0) {
            assert_int_equal(
                lost_percent(profile, true, (struct ordeal){1, 90, 50}), 0);
            assert_int_equal(
                lost_percent(profile, true, (struct ordeal){10, 365, 50}), 0);
            assert_int_equal(
                lost_percent(profile, true, (struct ordeal){1, 90, 10000}), 0);
            assert_true(lost_percent(profile, true,
                                     (struct ordeal){1, 90, 30000}) > 90);
        }
    }
}

/* They change when the arithmetic changes: then files give other errors. */
static void test_the_errors_of_a_seed_are_these(void **state)
{
    static const uint16_t expected[2][6] = {
        {41, 61, 57, 31, 60, 52},
        {51, 142, 106, 71, 129, 130},
    };
    const struct nand_profile *profile = nand_profile(0);

    (void)state;
    for (unsigned int i = 0; i < 12; i++) {
        struct nand_spot spot = {.seed = 42,
                                 .block = i * 3,
                                 .number = 5,
                                 .wordline = (uint16_t)(i % 5),
                                 .page = (uint8_t)(i % 3),
                                 .unit = (uint8_t)(i % 4)};
        struct nand_stress stress = {.wear = i / 6 * 1500 * NAND_WEAR_CYCLE,
                                     .age_ns = i / 6 * 30 * DAY_NS,
                                     .reads = i,
                                     .block_pages = BLOCK_PAGES,
                                     .page = (uint8_t)(i % 3)};

        assert_int_equal(nand_error_bits(profile, &spot, &stress),
                         expected[i / 6][i % 6]);
    }
}

static void test_reading_again_changes_few_bits(void **state)
{
    const struct nand_profile *profile = nand_profile(0);
    struct nand_spot spot = {.seed = 3};
    struct nand_stress stress = {.wear = 1000 * NAND_WEAR_CYCLE,
                                 .age_ns = 30 * DAY_NS,
                                 .block_pages = BLOCK_PAGES};
    unsigned int low = UINT16_MAX, high = 0;

    (void)state;
    for (stress.reads = 0; stress.reads < 100; stress.reads++) {
        unsigned int bits = nand_error_bits(profile, &spot, &stress);

        low = MIN(low, bits);
        high = MAX(high, bits);
    }
    assert_true(high > low);
    assert_true(high - low < 40);
}

static void test_bits_beyond_each_limit_take_another_step(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);
        uint8_t steps;

        for (unsigned int step = 0; step <= profile->steps; step++) {
            uint16_t limit = profile->bits[step];

            assert_true(nand_correct_bits(profile, limit, &steps));
            assert_int_equal(steps, step);
            if (step < profile->steps) {
                assert_true(
                    nand_correct_bits(profile, (uint16_t)(limit + 1), &steps));
                assert_int_equal(steps, step + 1);
            } else {
                assert_false(
                    nand_correct_bits(profile, (uint16_t)(limit + 1), &steps));
                assert_int_equal(steps, profile->steps);
            }
        }
    }
}

static unsigned int count_failures(const struct nand_profile *profile,
                                   uint32_t cycles, bool is_erase)
{
    struct nand_spot spot = {.seed = 11};
    unsigned int failures = 0;

    for (spot.number = 0; spot.number < 20000; spot.number++) {
        uint32_t wear = cycles * NAND_WEAR_CYCLE;

        failures += is_erase ? nand_erase_fails(profile, &spot, wear)
                             : nand_program_fails(profile, &spot, wear);
    }
    return failures;
}

static void test_failures_grow_with_the_third_power_of_wear(void **state)
{
    struct nand_profile profile = *nand_profile(0);

    (void)state;
    profile.program_failure = UINT32_MAX / 50; /* 2% at the rated endurance */
    profile.erase_failure = UINT32_MAX / 50;
    for (unsigned int i = 0; i < 2; i++) {
        assert_in_range(count_failures(&profile, 0, i != 0), 0, 6);
        assert_in_range(count_failures(&profile, 1500, i != 0), 30, 72);
        assert_in_range(count_failures(&profile, 3000, i != 0), 350, 450);
        assert_in_range(count_failures(&profile, 6000, i != 0), 3000, 3400);
        assert_in_range(count_failures(&profile, 60000, i != 0), 9700, 10300);
    }
}

static void test_few_wordlines_fail_within_the_rated_life(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        assert_int_equal(count_failures(nand_profile(i),
                                        nand_profile(i)->native.endurance,
                                        false),
                         0);
    }
}

static void test_the_factory_marks_its_share_of_blocks(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < nand_profile_count(); i++) {
        const struct nand_profile *profile = nand_profile(i);
        double expected = 100000.0 * profile->factory_bad / 4294967296.0;
        unsigned int bad = 0;

        for (uint32_t block = 0; block < 100000; block++) {
            bad += nand_is_factory_bad(profile, i, block);
        }
        assert_true(fabs(bad - expected) < 5 * sqrt(expected));
    }
}
