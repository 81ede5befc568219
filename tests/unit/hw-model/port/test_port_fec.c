/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bit errors and FEC: measured values are compared with the formulas of
 * hw-model/port/port_fec.h, which this test computes itself.
 *
 * A count that is the sum of independent events has a standard deviation.  A
 * deviation of 4.5 times that has a probability of 1 in 150,000; the seed is
 * fixed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "lib/regfields.h"
#include "hw-model/port/port_fec.h"
#include "hw-model/regs/port.h"

enum { FRAMES = 40000 };
static const double sigmas = 4.5;

static double choose_log(unsigned int n, unsigned int k)
{
    return lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);
}

static double binomial_probability(unsigned int n, unsigned int k, double p)
{
    return exp(choose_log(n, k) + k * log(p) + (n - k) * log1p(-p));
}

/* The probabilities that a codeword has no error, and that it is corrected. */
static void codeword_chances(uint8_t fec, double p, double *clean,
                             double *restored)
{
    *restored = 0;
    if (fec == PORT_FEC_RS) {
        double q = 1 - pow(1 - p, 10);

        *clean = pow(1 - q, 528);
        for (unsigned int k = 1; k <= 7; k++) {
            *restored += binomial_probability(528, k, q);
        }
        return;
    }
    *clean = pow(1 - p, 2112);
    for (unsigned int first = 0; first < 2112; first++) {
        unsigned int left = 2111 - first; /* bits after the first error */

        *restored += p * pow(1 - p, 2111 - (left < 10 ? left : 10));
    }
}

/*
 * The probability that a frame is lost, averaged over its positions in the
 * codewords.
 */
static double frame_loss(uint8_t fec, double p, uint32_t octets,
                         double *codewords)
{
    unsigned int blocks = (octets + 8 + 1 + 7) / 8;
    unsigned int each = fec == PORT_FEC_RS ? 80 : 32;
    double clean, restored, loss = 0;

    *codewords = 0;
    if (fec == PORT_FEC_NONE) {
        return 1 - pow(1 - p, 66.0 * blocks);
    }
    codeword_chances(fec, p, &clean, &restored);
    for (unsigned int at = 0; at < each; at++) {
        unsigned int n = (at + blocks + each - 1) / each;

        loss += (1 - pow(clean + restored, n)) / each;
        *codewords += (double)n / each;
    }
    return loss;
}

static void expect_near(const char *what, uint64_t measured, double n,
                        double chance)
{
    double expected = n * chance;
    double bound = sigmas * sqrt(n * chance * (1 - chance)) + 1;

    if (fabs((double)measured - expected) > bound) {
        fail_msg("%s: %lu, expected %.1f +- %.1f", what,
                 (unsigned long)measured, expected, bound);
    }
}

static void measure_lane(uint8_t fec, double p, uint32_t octets,
                         unsigned int frames)
{
    struct fec_lane lane;
    uint64_t lost = 0, corrected = 0, uncorrectable = 0;
    double each, loss = frame_loss(fec, p, octets, &each);

    fec_lane_init(&lane, 20210508 + octets + fec, (uint64_t)(p * 1e18));
    for (unsigned int i = 0; i < frames; i++) {
        struct fec_verdict verdict = fec_frame(&lane, fec, octets);

        lost += verdict.is_lost;
        corrected += verdict.corrected;
        uncorrectable += verdict.uncorrectable;
        assert_true(verdict.is_lost || verdict.uncorrectable == 0);
    }
    expect_near("frames lost", lost, frames, loss);
    if (fec != PORT_FEC_NONE) {
        double clean, restored;

        codeword_chances(fec, p, &clean, &restored);
        expect_near("corrected", corrected, frames * each, restored);
        expect_near("uncorrectable", uncorrectable, frames * each,
                    1 - clean - restored);
    } else {
        assert_int_equal(corrected + uncorrectable, 0);
    }
}

static void test_fec_loss_and_correction_follow_the_formula(void **state)
{
    static const double ber[] = {1e-7, 1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 2e-3};
    static const uint32_t octets[] = {64, 1518, 4200, 9018};

    (void)state;
    for (uint8_t fec = PORT_FEC_NONE; fec <= PORT_FEC_RS; fec++) {
        for (size_t i = 0; i < ARRAY_LEN(ber); i++) {
            for (size_t k = 0; k < ARRAY_LEN(octets); k++) {
                /* Otherwise, all frames are lost. */
                if (ber[i] * octets[k] < 1) {
                    measure_lane(fec, ber[i], octets[k], FRAMES);
                }
            }
        }
    }
}

/*
 * Two wrong bits in one symbol count as one.  This shows only with many
 * codewords at the limit of correction.
 */
static void test_fec_rs_counts_symbols_not_bits(void **state)
{
    (void)state;
    measure_lane(PORT_FEC_RS, 1.2e-3, 64, 1000000);
}

/* Bursts are too rare among independent errors for a statistical test. */
static void test_fec_fc_restores_bursts_of_11_bits(void **state)
{
    (void)state;
    assert_true(fec_fc_restores(0, 0));
    assert_true(fec_fc_restores(0, 10));
    assert_false(fec_fc_restores(0, 11));
    assert_true(fec_fc_restores(2101, 2111));
    assert_false(fec_fc_restores(2100, 2111));
    /* The code is not cyclic at this length. */
    assert_false(fec_fc_restores(0, 2111));
}

/* The mode makes a difference: at 10^-4 RS-FEC corrects what FC-FEC cannot. */
static void test_fec_rs_corrects_what_fc_cannot(void **state)
{
    double each;

    (void)state;
    assert_true(frame_loss(PORT_FEC_NONE, 1e-4, 1518, &each) > 0.7);
    assert_true(frame_loss(PORT_FEC_FC, 1e-4, 1518, &each) > 0.05);
    assert_true(frame_loss(PORT_FEC_RS, 1e-4, 1518, &each) < 1e-5);
}

static void test_fec_same_seed_gives_the_same_errors(void **state)
{
    struct fec_lane a, b, other;
    bool is_different = false;

    (void)state;
    fec_lane_init(&a, 7, FEC_BER_ONE / 10000);
    fec_lane_init(&b, 7, FEC_BER_ONE / 10000);
    fec_lane_init(&other, 8, FEC_BER_ONE / 10000);
    for (unsigned int i = 0; i < 1000; i++) {
        struct fec_verdict x = fec_frame(&a, PORT_FEC_FC, 1518);
        struct fec_verdict y = fec_frame(&b, PORT_FEC_FC, 1518);
        struct fec_verdict z = fec_frame(&other, PORT_FEC_FC, 1518);

        assert_int_equal(x.is_lost, y.is_lost);
        assert_int_equal(x.corrected, y.corrected);
        is_different |= x.is_lost != z.is_lost || x.corrected != z.corrected;
    }
    assert_true(is_different);
}

static void test_fec_a_clean_cable_does_nothing(void **state)
{
    struct fec_lane lane, before;

    (void)state;
    fec_lane_init(&lane, 1, 0);
    before = lane;
    for (uint8_t fec = PORT_FEC_NONE; fec <= PORT_FEC_RS; fec++) {
        struct fec_verdict verdict = fec_frame(&lane, fec, 9018);

        assert_false(verdict.is_lost);
        assert_int_equal(verdict.corrected + verdict.uncorrectable, 0);
    }
    assert_memory_equal(&lane, &before, sizeof(lane));
}

static void test_fec_the_worst_ratio_loses_everything(void **state)
{
    struct fec_lane lane;

    (void)state;
    fec_lane_init(&lane, 1, FEC_BER_ONE);
    assert_int_equal(lane.ber_atto, FEC_BER_MAX);
    for (uint8_t fec = PORT_FEC_NONE; fec <= PORT_FEC_RS; fec++) {
        assert_true(fec_frame(&lane, fec, 64).is_lost);
    }
}
