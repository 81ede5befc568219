/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bit errors of one direction of a cable, and their correction by FEC.
 * Reference: docs/hardware/port.md, section 4, with the formulas.
 * Spec: IEEE 802.3 clause 74 (2112,2080), clause 108 RS(528,514), clause 49.
 *
 * Errors are independent of each other.  The model draws the distance from one
 * error to the next, so that a frame without errors costs one subtraction.
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
