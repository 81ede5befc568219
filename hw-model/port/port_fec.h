/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bit errors of one direction of a cable, and their correction by FEC.
 * Reference: docs/hardware/port.md, section 4.
 * Spec: IEEE 802.3 clause 74 (2112,2080), clause 108 RS(528,514), clause 49.
 *
 * Errors are independent of each other.  The model draws the distance from one
 * error to the next (a geometric distribution, by splitmix64), so that a frame
 * without errors costs one subtraction.
 *
 * With bit error ratio p, a frame of L octets with FCS, which occupies
 * B = ceil((L + 9) / 8) blocks with preamble and terminating character:
 *
 *   no FEC   P(lost)     = 1 - (1 - p)^(66 B)         any wrong bit
 *   FC-FEC   P(clean)    = (1 - p)^2112
 *            P(restored) = sum over i = 0..2111 of p (1 - p)^(2111 - k(i))
 *            k(i)        = min(10, 2111 - i)          bits after the first
 *                                                     error, i: a burst of up
 *                                                     to 11 bits is corrected
 *   RS-FEC   P(clean)    = (1 - q)^528
 *            P(restored) = sum over k = 1..7 of C(528,k) q^k (1 - q)^(528 - k)
 *            q           = 1 - (1 - p)^10
 *   both     P(lost)     = 1/C * sum over s = 0..C-1 of
 *                          1 - (P(clean) + P(restored))^n(s)
 *            n(s)        = ceil((s + B) / C)          codewords of the frame
 *
 * C is the number of blocks in a codeword, 32 or 80.  A frame begins at any
 * block s of a codeword with equal chance.  It is lost with one codeword that
 * cannot be corrected, all blocks of which the decoder marks as wrong.
 *
 * Not implemented: decoders that accept a wrong codeword as correct, error
 * bursts from equalisers and descramblers, codewords without frames.
 */
#ifndef ESSD_HW_PORT_FEC_H
#define ESSD_HW_PORT_FEC_H

#include "lib/util.h"

/* Bit error ratios are counted in units of 10^-18. */
#define FEC_BER_ONE UINT64_C(1000000000000000000)
#define FEC_BER_MAX (FEC_BER_ONE / 2)

enum {
    FEC_BLOCK_BITS = 66, /* 8 octets in 64B/66B code */

    FEC_FC_BLOCKS = 32,     /* blocks in a codeword, 65 bits each */
    FEC_FC_BITS = 2112,     /* bits of a codeword with parity */
    FEC_FC_BURST_BITS = 11, /* longest error burst that is corrected */

    FEC_RS_BLOCKS = 80, /* blocks in a codeword, as 20 blocks of 257 bits */
    FEC_RS_SYMBOLS = 528,
    FEC_RS_SYMBOL_BITS = 10,
    FEC_RS_CORRECTED_SYMBOLS = 7,
};

struct fec_lane {      /* saved unchanged */
    uint64_t random;   /* state of the random generator */
    uint64_t gap_bits; /* correct bits before the next error */
    uint64_t ber_atto; /* error ratio in units of 10^-18, 0..FEC_BER_MAX */
};

struct fec_verdict {
    bool is_lost;
    uint32_t corrected;     /* corrected codewords */
    uint32_t uncorrectable; /* uncorrectable codewords */
};

/**
 * Initialise a lane.  The same seed and the same calls give the same errors.
 */
void fec_lane_init(struct fec_lane *lane, uint64_t seed, uint64_t ber_atto);

/**
 * The number of blocks that a frame occupies: preamble, frame, terminating
 * character.
 */
uint32_t fec_frame_blocks(uint32_t len_octets);

/**
 * Whether FC-FEC corrects a codeword whose first and last wrong bits are these.
 */
static inline bool fec_fc_restores(uint64_t first_bit, uint64_t last_bit)
{
    return last_bit - first_bit < FEC_FC_BURST_BITS;
}

/**
 * Pass a frame over the lane.  With ber_atto 0 the frame stays intact.
 *
 * @param fec         enum port_fec
 * @param len_octets  length of the frame with FCS
 */
struct fec_verdict fec_frame(struct fec_lane *lane, uint8_t fec,
                             uint32_t len_octets);

#endif
