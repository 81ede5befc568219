/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles of NAND parts: see nand_profile.h.  Where each number comes from, or
 * that it was chosen, is in docs/hardware/nand-profiles.md.
 */
#include "hw-model/nand/nand_profile.h"

#include <string.h>

enum {
    GEOMETRY_CHANNELS = 16, /* the controller's model has tables for 256 dies */
    GEOMETRY_DIES = 16,     /* of a channel: the same */
    GEOMETRY_PLANES = 4,    /* a command has four block numbers */
    GEOMETRY_UNITS = 4,     /* no part has pages of more than 16 KiB */
    GEOMETRY_PAGES = 4,     /* no part has more than four bits in a cell */
};

#define PER_MILLION(n) ((uint32_t)((UINT64_C(n) << 32) / 1000000))
#define PER_BILLION(n) ((uint32_t)((UINT64_C(n) << 32) / 1000000000))

/* Errors per 10^15 bits. */
#define RATE_E3(n) (UINT64_C(n) * UINT64_C(1000000000000)) /* n * 10^-3 */
#define RATE_E6(n) (UINT64_C(n) * UINT64_C(1000000000))    /* n * 10^-6 */

/* One bit per cell in a part that was made for more. */
#define SLC_MODE_RBER                                                          \
    {                                                                          \
        .fresh = RATE_E6(2),                                                   \
        .wear = 25,                                                            \
        .wear_exp = 205,                                                       \
        .retention = 60000000,                                                 \
        .retention_wear_exp = 14,                                              \
        .retention_exp = 54,                                                   \
        .disturb = 37000,                                                      \
        .disturb_wear_exp = 33,                                                \
        .disturb_exp = 171,                                                    \
    }

static const struct nand_profile profiles[] = {
    {
        .name = "tlc2021",
        .text = "TLC with 176 layers, as of 2021",
        .planes = 4,
        .units = 4,
        .wordlines = 704,
        .native =
            {
                .pages = 3,
                .read_ns = {40000, 56000, 54000},
                .program_ns = 1170000,
                .erase_ns = 10000000,
                .endurance = 3000,
                .rber =
                    {
                        .fresh = RATE_E6(1480),
                        .wear = 94000,
                        .wear_exp = 205,
                        .retention = UINT64_C(62800000000),
                        .retention_wear_exp = 14,
                        .retention_exp = 54,
                        .disturb = 3730000,
                        .disturb_wear_exp = 33,
                        .disturb_exp = 171,
                    },
                .page_weight = {45, 77, 70},
            },
        .slc =
            {
                .pages = 1,
                .read_ns = {25000},
                .program_ns = 200000,
                .erase_ns = 5000000,
                .endurance = 50000,
                .rber = SLC_MODE_RBER,
                .page_weight = {64},
            },
        .channel_mbps = 1600,
        .command_ns = 500,
        .spare_bytes = 2208,
        .suspend_ns = 30000,
        .resume_ns = 20000,
        .read_copy_ns = 3000,
        .program_copy_ns = 3000,
        .decode_ns = 2000,
        .soft_decode_ns = 10000,
        .steps = 3,
        .bits = {223, 280, 330, 371},
        .factory_bad = PER_MILLION(5000),
        .program_failure = PER_BILLION(10),
        .erase_failure = PER_MILLION(10),
    },
    {
        .name = "slc",
        .text = "SLC with short latencies, 48 layers",
        .planes = 4,
        .units = 1,
        .wordlines = 768,
        .native =
            {
                .pages = 1,
                .read_ns = {3000},
                .program_ns = 100000,
                .erase_ns = 2000000,
                .endurance = 50000,
                .rber =
                    {
                        .fresh = RATE_E6(1),
                        .wear = 20,
                        .wear_exp = 205,
                        .retention = 10000000,
                        .retention_wear_exp = 14,
                        .retention_exp = 54,
                        .disturb = 3700,
                        .disturb_wear_exp = 33,
                        .disturb_exp = 171,
                    },
                .page_weight = {64},
            },
        .channel_mbps = 800,
        .command_ns = 300,
        .spare_bytes = 552,
        .suspend_ns = 10000,
        .resume_ns = 10000,
        .decode_ns = 1000,
        .soft_decode_ns = 5000,
        .steps = 1,
        .bits = {223, 300},
        .factory_bad = PER_MILLION(5000),
        .program_failure = PER_BILLION(1),
        .erase_failure = PER_MILLION(1),
    },
    {
        .name = "mlc2d",
        .text = "planar MLC, as of 2013",
        .planes = 2,
        .units = 4,
        .wordlines = 256,
        .native =
            {
                .pages = 2,
                .read_ns = {90000, 115000},
                .program_ns = 3200000,
                .erase_ns = 3000000,
                .endurance = 3000,
                .rber =
                    {
                        .fresh = RATE_E6(150),
                        .wear = 60000,
                        .wear_exp = 205,
                        .retention = UINT64_C(20000000000),
                        .retention_wear_exp = 14,
                        .retention_exp = 54,
                        .disturb = 3730000,
                        .disturb_wear_exp = 33,
                        .disturb_exp = 171,
                    },
                .page_weight = {48, 80},
            },
        .channel_mbps = 166,
        .command_ns = 500,
        .spare_bytes = 1872,
        .read_copy_ns = 3000,
        .program_copy_ns = 3000,
        .decode_ns = 10000,
        .steps = 0,
        .bits = {160},
        .factory_bad = PER_MILLION(10000),
        .program_failure = PER_BILLION(100),
        .erase_failure = PER_MILLION(20),
    },
    {
        .name = "qlc",
        .text = "QLC with 144 layers, as of 2021",
        .planes = 4,
        .units = 4,
        .wordlines = 576,
        .native =
            {
                .pages = 4,
                .read_ns = {47900, 76200, 134600, 228100},
                .program_ns = 6500000,
                .erase_ns = 15000000,
                .endurance = 1000,
                .rber =
                    {
                        .fresh = RATE_E6(2000),
                        .wear = 1000000,
                        .wear_exp = 205,
                        .retention = UINT64_C(62800000000),
                        .retention_wear_exp = 14,
                        .retention_exp = 54,
                        .disturb = 7460000,
                        .disturb_wear_exp = 33,
                        .disturb_exp = 171,
                    },
                .page_weight = {40, 56, 72, 88},
            },
        .slc =
            {
                .pages = 1,
                .read_ns = {30000},
                .program_ns = 250000,
                .erase_ns = 7000000,
                .endurance = 40000,
                .rber = SLC_MODE_RBER,
                .page_weight = {64},
            },
        .channel_mbps = 1200,
        .command_ns = 500,
        .spare_bytes = 2208,
        .suspend_ns = 50000,
        .resume_ns = 30000,
        .read_copy_ns = 3000,
        .program_copy_ns = 3000,
        .decode_ns = 2000,
        .soft_decode_ns = 10000,
        .steps = 4,
        .bits = {223, 280, 330, 371, 450},
        .factory_bad = PER_MILLION(5000),
        .program_failure = PER_BILLION(20),
        .erase_failure = PER_MILLION(20),
    },
};

unsigned int nand_profile_count(void)
{
    return ARRAY_LEN(profiles);
}

const struct nand_profile *nand_profile(unsigned int index)
{
    ASSERT(index < ARRAY_LEN(profiles));
    return &profiles[index];
}

const struct nand_profile *nand_profile_find(const char *name)
{
    for (unsigned int i = 0; i < ARRAY_LEN(profiles); i++) {
        if (strcmp(profiles[i].name, name) == 0) {
            return &profiles[i];
        }
    }
    return NULL;
}

uint32_t nand_geometry_dies(const struct nand_geometry *geometry)
{
    return (uint32_t)geometry->channels * geometry->dies;
}

uint32_t nand_geometry_blocks(const struct nand_geometry *geometry)
{
    return nand_geometry_dies(geometry) * geometry->planes * geometry->blocks;
}

/* Bytes of data of wordline 0 of every block of all dies that has one index. */
static uint64_t wordline_stripe_bytes(const struct nand_geometry *geometry)
{
    return (uint64_t)nand_geometry_dies(geometry) * geometry->planes *
           geometry->pages * geometry->units * NAND_UNIT_DATA;
}

uint64_t nand_geometry_bytes(const struct nand_geometry *geometry)
{
    return wordline_stripe_bytes(geometry) * geometry->wordlines *
           geometry->blocks;
}

bool nand_geometry_is_valid(const struct nand_geometry *geometry)
{
    return geometry->channels >= 1 && geometry->channels <= GEOMETRY_CHANNELS &&
           geometry->dies >= 1 && geometry->dies <= GEOMETRY_DIES &&
           geometry->planes >= 1 && geometry->planes <= GEOMETRY_PLANES &&
           geometry->units >= 1 && geometry->units <= GEOMETRY_UNITS &&
           geometry->pages >= 1 && geometry->pages <= GEOMETRY_PAGES &&
           geometry->blocks >= 1 && geometry->wordlines >= 1;
}

bool nand_geometry_for(const struct nand_profile *profile,
                       uint64_t capacity_bytes, unsigned int channels,
                       unsigned int dies, struct nand_geometry *geometry,
                       enum nand_fit *fit, uint64_t *nearest_bytes)
{
    uint64_t stripe, least, smallest, largest, wordlines, blocks;

    *nearest_bytes = 0;
    if (channels < 1 || channels > GEOMETRY_CHANNELS) {
        *fit = NAND_FIT_BAD_CHANNELS;
        return false;
    }
    if (dies < 1 || dies > GEOMETRY_DIES) {
        *fit = NAND_FIT_BAD_DIES;
        return false;
    }
    *geometry = (struct nand_geometry){
        .channels = (uint8_t)channels,
        .dies = (uint8_t)dies,
        .planes = profile->planes,
        .units = profile->units,
        .pages = profile->native.pages,
    };
    stripe = wordline_stripe_bytes(geometry);
    least = (NAND_SUPERBLOCK_ROWS + channels * dies - 1) / (channels * dies);
    smallest = stripe * least * NAND_SUPERBLOCKS;
    largest = stripe * profile->wordlines * UINT16_MAX;
    if (capacity_bytes < smallest) {
        *fit = NAND_FIT_TOO_SMALL;
        *nearest_bytes = smallest;
        return false;
    }
    if (capacity_bytes > largest) {
        *fit = NAND_FIT_TOO_LARGE;
        *nearest_bytes = largest;
        return false;
    }
    wordlines =
        MIN(capacity_bytes / (stripe * NAND_SUPERBLOCKS), profile->wordlines);
    blocks = (capacity_bytes + stripe * wordlines - 1) / (stripe * wordlines);
    geometry->wordlines = (uint16_t)wordlines;
    geometry->blocks = (uint16_t)blocks;
    *fit = NAND_FITS;
    return true;
}
