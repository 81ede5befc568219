/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures a drive with NAND flash in virtual time, for
 * `essd bench --native --timing virtual`.
 *
 *   native_virtual PROFILE CHANNELS DIES MIPS SEED MILLISECONDS WORKLOAD...
 *
 * The firmware, the device models and the host run in this process.  Operations
 * of the flash and transfers on its channels take the times of the part.  The
 * firmware's instructions take time as on a hart that executes MIPS million of
 * them a second; with 0, they take none.  Frames and the host take no time.
 * Nothing depends on the computer, so the same build gives the same figures for
 * the same arguments, and the same digest of all latencies.
 *
 * Instructions are counted as basic blocks (firmware/native/blocks.h), because
 * this computer's processor has other instructions than the drive's.
 *
 * Writes one line of JSON: docs/json.md, "essd bench --native".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "tests/bench/load.h"

enum {
    ARG_PROFILE = 1,
    ARG_CHANNELS,
    ARG_DIES,
    ARG_MIPS,
    ARG_SEED,
    ARG_MILLISECONDS,
    ARG_WORKLOADS,
};

enum {
    SMALL = 4096,
    LARGE = 131072,
    LATENCIES_MAX = 1 << 22,
    BLOCK_INSTRUCTIONS = 7, /* of a block, on average: docs/nand.md, "Time" */
    PS_PER_US = 1000000,
    SPAN_BYTES = 64 * 1024 * 1024, /* what the workloads use at most */
};

/* The depth of a queue with 64 entries is 63. */
static const struct load_workload workloads[] = {
    {"4k-randread-qd1", NVM_READ, SMALL, 1, 1, LOAD_RANDOM},
    {"4k-randread-qd64", NVM_READ, SMALL, 64, 1, LOAD_RANDOM},
    {"4k-randwrite-qd1", NVM_WRITE, SMALL, 1, 1, LOAD_RANDOM},
    {"4k-randwrite-qd64", NVM_WRITE, SMALL, 64, 1, LOAD_RANDOM},
    {"128k-read-qd64", NVM_READ, LARGE, 64, 1, LOAD_SEQUENTIAL},
    {"128k-write-qd64", NVM_WRITE, LARGE, 64, 1, LOAD_SEQUENTIAL},
};

static const struct load_workload fill = {"fill", NVM_WRITE, LARGE,
                                          8,      1,         LOAD_SEQUENTIAL};

/* The commands that have ended since the start of a workload. */
struct latencies {
    uint32_t count;
    uint64_t sum_ns;
    uint64_t digest; /* of all latencies of the run, in their order */
    uint64_t ns[LATENCIES_MAX];
};

static void note_latency(void *ctx, uint64_t latency_ns)
{
    struct latencies *latencies = ctx;

    if (latencies->count < LATENCIES_MAX) {
        latencies->ns[latencies->count] = latency_ns;
    }
    latencies->count++;
    latencies->sum_ns += latency_ns;
    latencies->digest = random_mix(latencies->digest ^ latency_ns);
}

static int compare_latencies(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static double percentile_us(struct latencies *latencies, unsigned int percent)
{
    uint32_t kept = MIN(latencies->count, (uint32_t)LATENCIES_MAX);

    if (kept == 0) {
        return 0;
    }
    qsort(latencies->ns, kept, sizeof(latencies->ns[0]), compare_latencies);
    return (double)latencies->ns[(uint64_t)(kept - 1) * percent / 100] / 1e3;
}

static const struct load_workload *workload_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    fprintf(stderr, "native_virtual: there is no workload %s\n", name);
    exit(2);
}

static void measure_workload(struct load *load, struct latencies *latencies,
                             const struct load_workload *workload,
                             uint64_t duration_ns)
{
    uint64_t begin_ns = load->world.now_ns, blocks = load->world.blocks;
    double seconds, instructions;

    latencies->count = 0;
    latencies->sum_ns = 0;
    load->stop_ns = begin_ns + duration_ns;
    load_run(load, workload, UINT32_MAX);
    load->stop_ns = 0;
    seconds = (double)(load->world.now_ns - begin_ns) / 1e9;
    blocks = load->world.blocks - blocks;
    instructions = (double)blocks * BLOCK_INSTRUCTIONS / latencies->count;
    printf("{\"workload\": \"%s\", \"ios\": %u, \"iops\": %.3f, "
           "\"mb_s\": %.3f, \"mean_us\": %.3f, \"p99_us\": %.3f, "
           "\"virtual_s\": %.9f, \"instructions\": %.3f, "
           "\"hart_busy\": %.6f}",
           workload->name, latencies->count, latencies->count / seconds,
           (double)latencies->count * workload->len_bytes / seconds / 1e6,
           (double)latencies->sum_ns / latencies->count / 1e3,
           percentile_us(latencies, 99), seconds, instructions,
           (double)(blocks * load->world.block_ps) / 1e12 / seconds);
}

/* Let the firmware's instructions take time. */
static void set_speed(struct native_world *world, uint64_t mips)
{
    world->block_ps = mips == 0 ? 0 : BLOCK_INSTRUCTIONS * PS_PER_US / mips;
}

static unsigned long number_in(const char *text)
{
    return strtoul(text, NULL, 10);
}

static void init_array(struct nand_ram *nand, char **words)
{
    const struct nand_storage_config config = {
        .profile = words[ARG_PROFILE],
        .channels = (uint8_t)number_in(words[ARG_CHANNELS]),
        .dies = (uint8_t)number_in(words[ARG_DIES]),
        .blocks = 200,
        .wordlines = 8,
        .seed = number_in(words[ARG_SEED]),
    };

    nand_storage_init(nand, &config);
}

int main(int argc, char **argv)
{
    struct load *load = calloc(1, sizeof(*load));
    struct latencies *latencies = calloc(1, sizeof(*latencies));
    struct nand_ram nand;

    ASSERT(load != NULL && latencies != NULL);
    if (argc <= ARG_WORKLOADS || nand_profile_find(argv[ARG_PROFILE]) == NULL) {
        fprintf(stderr, "usage: native_virtual PROFILE CHANNELS DIES MIPS SEED "
                        "MILLISECONDS WORKLOAD...\n");
        return 2;
    }
    for (int i = ARG_WORKLOADS; i < argc; i++) {
        (void)workload_named(argv[i]);
    }
    load->seed = number_in(argv[ARG_SEED]);
    init_array(&nand, argv);
    load->nand = &nand;
    load->flash_is_realtime = true;
    load_start(load, &fill);
    load->span_bytes = MIN(load->drive->drive.medium.size_blocks * LOAD_BLOCK,
                           (uint64_t)SPAN_BYTES);
    load_run(load, &fill, (uint32_t)(load->span_bytes / LARGE));
    load_flush(load);
    set_speed(&load->world, number_in(argv[ARG_MIPS]));
    load->ended = note_latency;
    load->ctx = latencies;
    printf("{\"workloads\": [");
    for (int i = ARG_WORKLOADS; i < argc; i++) {
        printf("%s", i == ARG_WORKLOADS ? "" : ", ");
        measure_workload(load, latencies, workload_named(argv[i]),
                         number_in(argv[ARG_MILLISECONDS]) * 1000000ul);
        load_flush(load);
    }
    printf("], \"digest\": \"%016lx\"}\n", (unsigned long)latencies->digest);
    load_end(load);
    nand_storage_end(&nand);
    free(latencies);
    free(load);
    return 0;
}
