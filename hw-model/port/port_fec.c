/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/port/port_fec.h"

#include <math.h>

#include "lib/random.h"
#include "lib/regfields.h"
#include "hw-model/regs/port.h"

enum {
    BLOCK_OCTETS = 8,
    PREAMBLE_OCTETS = 8, /* with the start of frame delimiter */
    TERMINATE_OCTETS = 1,
    FEC_RS_BITS = FEC_RS_SYMBOLS * FEC_RS_SYMBOL_BITS,
};
_Static_assert((int)FEC_RS_BITS == FEC_RS_BLOCKS * FEC_BLOCK_BITS,
               "RS-FEC adds no bits to the stream");
_Static_assert((int)FEC_FC_BITS == FEC_FC_BLOCKS * FEC_BLOCK_BITS,
               "nor does FC-FEC");

#define GAP_MAX UINT64_C(0x7fffffffffffffff)

/* Draw the distance to the next error from a geometric distribution. */
static void draw_gap(struct fec_lane *lane)
{
    double u = ((double)(random_next(&lane->random) >> 11) + 0.5) * 0x1p-53;
    double p = (double)lane->ber_atto / (double)FEC_BER_ONE;
    double gap = lane->ber_atto == 0 ? INFINITY : floor(log(u) / log1p(-p));

    lane->gap_bits = gap < 0x1p63 ? (uint64_t)gap : GAP_MAX;
}

void fec_lane_init(struct fec_lane *lane, uint64_t seed, uint64_t ber_atto)
{
    *lane = (struct fec_lane){
        .random = seed,
        .ber_atto = MIN(ber_atto, FEC_BER_MAX),
    };
    draw_gap(lane);
}

uint32_t fec_frame_blocks(uint32_t len_octets)
{
    return (len_octets + PREAMBLE_OCTETS + TERMINATE_OCTETS + BLOCK_OCTETS -
            1) /
           BLOCK_OCTETS;
}

/*
 * Find the next wrong bit from *at on, and advance *at to the bit after it.
 * @return false when all `bits` are used up without one
 */
static bool next_error(struct fec_lane *lane, uint64_t bits, uint64_t *at,
                       uint64_t *where)
{
    if (lane->gap_bits >= bits - *at) {
        lane->gap_bits -= bits - *at;
        return false;
    }
    *where = *at + lane->gap_bits;
    *at = *where + 1;
    draw_gap(lane);
    return true;
}

static void judge_fc(struct fec_lane *lane, struct fec_verdict *verdict)
{
    uint64_t at = 0, where, first = 0, last = 0;
    bool is_clean = true;

    while (next_error(lane, FEC_FC_BITS, &at, &where)) {
        first = is_clean ? where : first;
        last = where;
        is_clean = false;
    }
    if (!fec_fc_restores(first, last)) {
        verdict->uncorrectable++;
    } else {
        verdict->corrected += !is_clean;
    }
}

static void judge_rs(struct fec_lane *lane, struct fec_verdict *verdict)
{
    uint64_t at = 0, where, last = UINT64_MAX;
    uint32_t symbols = 0;

    while (next_error(lane, FEC_RS_BITS, &at, &where)) {
        symbols += where / FEC_RS_SYMBOL_BITS != last;
        last = where / FEC_RS_SYMBOL_BITS;
    }
    if (symbols > FEC_RS_CORRECTED_SYMBOLS) {
        verdict->uncorrectable++;
    } else {
        verdict->corrected += symbols != 0;
    }
}

/*
 * The number of codewords that `blocks` touch, with a random start in the
 * first.
 */
static uint32_t count_codewords(struct fec_lane *lane, uint32_t blocks,
                                uint32_t blocks_each)
{
    uint32_t start =
        (uint32_t)((random_next(&lane->random) >> 32) * blocks_each >> 32);

    return (start + blocks + blocks_each - 1) / blocks_each;
}

struct fec_verdict fec_frame(struct fec_lane *lane, uint8_t fec,
                             uint32_t len_octets)
{
    struct fec_verdict verdict = {0};
    uint32_t blocks = fec_frame_blocks(len_octets);
    uint64_t at = 0, where;
    uint32_t n;

    if (lane->ber_atto == 0) {
        return verdict;
    }
    switch (fec) {
    case PORT_FEC_FC:
        for (n = count_codewords(lane, blocks, FEC_FC_BLOCKS); n > 0; n--) {
            judge_fc(lane, &verdict);
        }
        break;
    case PORT_FEC_RS:
        for (n = count_codewords(lane, blocks, FEC_RS_BLOCKS); n > 0; n--) {
            judge_rs(lane, &verdict);
        }
        break;
    default:
        while (
            next_error(lane, (uint64_t)blocks * FEC_BLOCK_BITS, &at, &where)) {
            verdict.is_lost = true;
        }
        break;
    }
    verdict.is_lost |= verdict.uncorrectable != 0;
    return verdict;
}
