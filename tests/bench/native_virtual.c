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
 * Writes one line of JSON: docs/json.md, `essd fields bench`.
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

struct measured {
    struct load_workload workload;
    uint32_t writes; /* how many of its commands are writes, whatever its opcode
                        is */
};

/* The depth of a queue with 64 entries is 63. */
static const struct measured measured[] = {
    {{"4k-randread-qd1", NVM_READ, SMALL, 1, 1, LOAD_RANDOM}, 0},
    {{"4k-randread-qd64", NVM_READ, SMALL, 64, 1, LOAD_RANDOM}, 0},
    {{"4k-randwrite-qd1", NVM_WRITE, SMALL, 1, 1, LOAD_RANDOM}, 0},
    {{"4k-randwrite-qd64", NVM_WRITE, SMALL, 64, 1, LOAD_RANDOM}, 0},
    {{"128k-read-qd64", NVM_READ, LARGE, 64, 1, LOAD_SEQUENTIAL}, 0},
    {{"128k-write-qd64", NVM_WRITE, LARGE, 64, 1, LOAD_SEQUENTIAL}, 0},
    {{"4k-mixed-qd1-qd16", NVM_READ, SMALL, 17, 1, LOAD_RANDOM}, 16},
    {{"4k-mixed-qd16-qd16", NVM_READ, SMALL, 32, 1, LOAD_RANDOM}, 16},
};

static const struct load_workload fill = {"fill", NVM_WRITE, LARGE,
                                          8,      1,         LOAD_SEQUENTIAL};

/* The commands with one opcode that have ended since the start of a workload.
 */
struct latencies {
    uint32_t count;
    uint64_t sum_ns;
    uint64_t ns[LATENCIES_MAX];
};

struct results {
    struct latencies reads;
    struct latencies writes;
    uint64_t digest; /* of all latencies of the run, in their order */
};

static void note_latency(void *ctx, uint8_t opcode, uint64_t latency_ns)
{
    struct results *results = ctx;
    struct latencies *latencies =
        opcode == NVM_READ ? &results->reads : &results->writes;

    if (latencies->count < LATENCIES_MAX) {
        latencies->ns[latencies->count] = latency_ns;
    }
    latencies->count++;
    latencies->sum_ns += latency_ns;
    results->digest = random_mix(results->digest ^ latency_ns);
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

static const struct measured *measured_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(measured); i++) {
        if (strcmp(measured[i].workload.name, name) == 0) {
            return &measured[i];
        }
    }
    fprintf(stderr, "native_virtual: there is no workload %s\n", name);
    exit(2);
}

/* The figures of the whole drive while a workload was running. */
struct drive_figures {
    double seconds;
    double instructions; /* of the firmware, for each I/O */
    double hart_busy;
};

/* `kind` follows the name of a workload that consists of reads and writes. */
static void print_row(const struct load_workload *workload, const char *kind,
                      struct latencies *latencies,
                      const struct drive_figures *drive)
{
    printf("{\"workload\": \"%s%s\", \"ios\": %u, \"iops\": %.3f, "
           "\"mb_s\": %.3f, \"mean_us\": %.3f, \"p99_us\": %.3f, "
           "\"virtual_s\": %.9f, \"instructions\": %.3f, "
           "\"hart_busy\": %.6f}",
           workload->name, kind, latencies->count,
           latencies->count / drive->seconds,
           (double)latencies->count * workload->len_bytes / drive->seconds /
               1e6,
           (double)latencies->sum_ns / latencies->count / 1e3,
           percentile_us(latencies, 99), drive->seconds, drive->instructions,
           drive->hart_busy);
}

static void measure_workload(struct load *load, struct results *results,
                             const struct measured *what, uint64_t duration_ns)
{
    const struct load_workload *workload = &what->workload;
    struct latencies *reads = &results->reads, *writes = &results->writes;
    uint64_t begin_ns = load->world.now_ns, blocks = load->world.blocks;
    struct drive_figures drive;

    reads->count = writes->count = 0;
    reads->sum_ns = writes->sum_ns = 0;
    load->stop_ns = begin_ns + duration_ns;
    load->writes = what->writes;
    load_run(load, workload, UINT32_MAX);
    load->stop_ns = 0;
    load->writes = 0;
    blocks = load->world.blocks - blocks;
    drive.seconds = (double)(load->world.now_ns - begin_ns) / 1e9;
    drive.instructions =
        (double)blocks * BLOCK_INSTRUCTIONS / (reads->count + writes->count);
    drive.hart_busy =
        (double)(blocks * load->world.block_ps) / 1e12 / drive.seconds;
    if (what->writes == 0) {
        print_row(workload, "", workload->opcode == NVM_READ ? reads : writes,
                  &drive);
    } else {
        print_row(workload, "-reads", reads, &drive);
        printf(", ");
        print_row(workload, "-writes", writes, &drive);
    }
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
    struct results *results = calloc(1, sizeof(*results));
    struct nand_ram nand;

    ASSERT(load != NULL && results != NULL);
    if (argc <= ARG_WORKLOADS || nand_profile_find(argv[ARG_PROFILE]) == NULL) {
        fprintf(stderr, "usage: native_virtual PROFILE CHANNELS DIES MIPS SEED "
                        "MILLISECONDS WORKLOAD...\n");
        return 2;
    }
    for (int i = ARG_WORKLOADS; i < argc; i++) {
        (void)measured_named(argv[i]);
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
    load->ctx = results;
    printf("{\"workloads\": [");
    for (int i = ARG_WORKLOADS; i < argc; i++) {
        printf("%s", i == ARG_WORKLOADS ? "" : ", ");
        measure_workload(load, results, measured_named(argv[i]),
                         number_in(argv[ARG_MILLISECONDS]) * 1000000ul);
        load_flush(load);
    }
    printf("], \"digest\": \"%016lx\"}\n", (unsigned long)results->digest);
    load_end(load);
    nand_storage_end(&nand);
    free(results);
    free(load);
    return 0;
}
