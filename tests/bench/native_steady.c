/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures how many random writes of 4 KiB the flash allows in the steady state
 * of a drive with NAND flash, in virtual time.
 *
 *   native_steady [PROFILE CHANNELS DIES BLOCKS WORDLINES [DEPTH [SPARE]]]
 *
 * The array has CHANNELS channels with DIES dies each; a plane has BLOCKS
 * blocks with WORDLINES wordlines each.  Hosts see so much of the array that
 * the spare is SPARE percent (see ftl_space()).  First, the whole namespace is
 * written sequentially twice; then twice its size is written at random.  During
 * this, operations of the flash take no time.  After this, they take the times
 * of the profile, and the writes of the last second of virtual time are
 * counted. Instructions of the firmware and frames on the cable take no time.
 * All data are zeros, which take no memory.  The figures are printed as a JSON
 * object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/ftl/ftl.h"
#include "firmware/native/nand_space.h"
#include "lib/random.h"
#include "tests/bench/load.h"

enum {
    SMALL = 4096,
    LARGE = 131072,
    STEP = 1000, /* commands between two readings of the clock */
};
#define WARM_UP_NS UINT64_C(500000000)
#define MEASURE_NS UINT64_C(1000000000)

static const struct load_workload fill = {"fill", NVM_WRITE, LARGE,
                                          8,      1,         LOAD_SEQUENTIAL};
static struct load_workload overwrite = {"overwrite", NVM_WRITE, SMALL,
                                         63,          1,         LOAD_RANDOM};

static uint64_t namespace_bytes(const struct load *load)
{
    return load->drive->drive.medium.size_blocks * LOAD_BLOCK;
}

static void run_for(struct load *load, uint64_t duration_ns, uint64_t *commands)
{
    uint64_t end_ns = load->world.now_ns + duration_ns;

    *commands = 0;
    while (load->world.now_ns < end_ns) {
        load_run(load, &overwrite, STEP);
        *commands += STEP;
    }
}

static void write_namespace(struct load *load)
{
    load_start(load, &overwrite);
    load->span_bytes = namespace_bytes(load);
    load_run(load, &fill, (uint32_t)(2 * load->span_bytes / LARGE));
    load_run(load, &overwrite, (uint32_t)(2 * load->span_bytes / SMALL));
    load_flush(load);
    load_end(load);
}

static void measure_writes(struct load *load)
{
    const struct ftl_counters *counters;
    struct ftl_counters before;
    uint64_t commands, begin_ns;
    double seconds, programmed;

    load->flash_is_realtime = true;
    load_start(load, &overwrite);
    /* Not the places of write_namespace(), in the same order. */
    load->random = random_mix(load->random);
    run_for(load, WARM_UP_NS, &commands);
    counters = ftl_counters(load->drive->drive.nand.ftl);
    before = *counters;
    begin_ns = load->world.now_ns;
    run_for(load, MEASURE_NS, &commands);
    seconds = (double)(load->world.now_ns - begin_ns) / 1e9;
    programmed = (double)(counters->units - before.units);
    printf(" \"iops\": %.0f, \"mb_s\": %.1f, \"write_amplification\": %.2f}\n",
           (double)commands / seconds, (double)commands * SMALL / seconds / 1e6,
           programmed / (programmed -
                         (double)(counters->moved_units - before.moved_units)));
    load_end(load);
}

static unsigned int number_of(char **argv, int argc, int at, unsigned int given)
{
    return argc > at ? (unsigned int)strtoul(argv[at], NULL, 10) : given;
}

/* What hosts see of the array. */
static uint64_t capacity_of(const struct nand_storage_config *config,
                            unsigned int spare_percent)
{
    const struct nand_profile *profile = nand_profile_find(config->profile);
    const struct nand_geometry geometry = {
        .channels = config->channels,
        .dies = config->dies,
        .planes = profile->planes,
        .units = profile->units,
        .pages = profile->native.pages,
        .blocks = config->blocks,
        .wordlines = config->wordlines,
    };

    return nand_space_bytes(&geometry, profile, 1, spare_percent);
}

int main(int argc, char **argv)
{
    const struct nand_storage_config config = {
        .profile = argc > 1 ? argv[1] : "tlc2021",
        .channels = (uint8_t)number_of(argv, argc, 2, 8),
        .dies = (uint8_t)number_of(argv, argc, 3, 4),
        .blocks = (uint16_t)number_of(argv, argc, 4, 200),
        .wordlines = (uint16_t)number_of(argv, argc, 5, 4),
        .is_sparse = true,
    };
    struct load *load = calloc(1, sizeof(*load));
    struct nand_ram nand;

    ASSERT(load != NULL);
    overwrite.depth = number_of(argv, argc, 6, overwrite.depth);
    nand_storage_init(&nand, &config);
    load->capacity_bytes =
        capacity_of(&config, number_of(argv, argc, 7, FTL_SPARE_PERCENT));
    load->nand = &nand;
    write_namespace(load);
    printf("{\"profile\": \"%s\", \"channels\": %u, \"dies\": %u, "
           "\"blocks\": %u, \"wordlines\": %u, \"capacity_bytes\": %" PRIu64
           ",\n",
           config.profile, config.channels, config.dies, config.blocks,
           config.wordlines, load->span_bytes);
    fflush(stdout);
    measure_writes(load);
    nand_storage_end(&nand);
    free(load);
    return 0;
}
