/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The four rows of the Ethernet SSD white paper in virtual time, for `essd
 * paper`.
 *
 *   native_paper SETTING=NUMBER... [/ VARIANT SETTING=NUMBER...]...
 *
 * Firmware, device models and host run in this process, as in native_virtual.
 * Here frames take time too (firmware/native/cable.h).  First, the whole
 * namespace is written sequentially twice; then the sequential rows run.  After
 * random overwrites of the namespace, the random rows run.  What prepares the
 * flash takes no virtual time, unless overwrites_take_time is 1.  With
 * is_direct = 1 the translation layer alone prepares it, in less time
 * (tests/bench/direct.h).  All data are zeros, which take no memory.
 *
 * Each row is measured once with the settings, and once more for each variant,
 * which changes some of them.  A row runs in a process of its own, a copy of
 * this one, so that all of them find the same flash.
 *
 * Writes one JSON object for each row, one a line.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "firmware/native/nand_space.h"
#include "firmware/native/native_harts.h"
#include "lib/random.h"
#include "storage/ftl/ftl.h"
#include "tests/bench/direct.h"
#include "tests/bench/histogram.h"
#include "tests/bench/load.h"
#include "tests/bench/paper_settings.h"

enum {
    SMALL = 4096,
    MIDDLE = 65536,
    LARGE = 131072,
    DEPTH = 64,
    VARIANTS_MAX = 128,
    BINS = 40,              /* of the throughput over time */
    BLOCK_INSTRUCTIONS = 7, /* of a block, on average: docs/nand.md, "Time" */
    PS_PER_US = 1000000,
    SETTLE_NS = 1000000000,
};

/* What a row does. */
struct paper_row {
    struct load_workload workload;
    uint32_t writes; /* load.writes of one host */
    bool is_extra;   /* it is measured only if its bit of `rows` is set */
};

static const struct paper_row sequential[] = {
    {{"128k-read", NVM_READ, LARGE, DEPTH, 1, LOAD_SEQUENTIAL}, 0, false},
    {{"128k-write", NVM_WRITE, LARGE, DEPTH, 1, LOAD_SEQUENTIAL}, 0, false},
};
static const struct paper_row at_random[] = {
    {{"4k-randread", NVM_READ, SMALL, DEPTH, 1, LOAD_RANDOM}, 0, false},
    {{"4k-randwrite", NVM_WRITE, SMALL, DEPTH, 1, LOAD_RANDOM}, 0, false},
    /* What drives of a CDN's cache, and of an object store, have to do. */
    {{"cdn", NVM_READ, MIDDLE, DEPTH, 1, LOAD_RANDOM}, DEPTH / 8, true},
    {{"objects", NVM_READ, MIDDLE, DEPTH, 1, LOAD_RANDOM}, DEPTH / 2, true},
};
static const struct load_workload fill = {"fill", NVM_WRITE, LARGE,
                                          8,      1,         LOAD_SEQUENTIAL};
static const struct load_workload overwrite = {
    "overwrite", NVM_WRITE, SMALL, DEPTH, 1, LOAD_RANDOM};

struct variant {
    const char *name;
    struct paper_settings settings;
};

/* Counters of the drive at one time. */
struct snapshot {
    uint64_t now_ns;
    uint64_t blocks;
    uint64_t dies_ns;
    uint64_t channels_ns;
    uint64_t sent_ps, received_ps; /* by the drive */
    uint64_t memory_ps;            /* for which the memory was busy */
    uint64_t units, moved_units;
    uint64_t stages_ns[STAGES + 1]; /* in each stage, and in turns */
};

struct row {
    struct load *load;
    uint64_t begin_ns, end_ns;
    bool has_begun, has_ended;
    struct snapshot first, last;
    struct histogram latencies;
    uint64_t bins[BINS];
    uint64_t operations; /* of the translation layer, summed over commands */
    uint64_t digest;     /* of all latencies, in their order */
};

static struct snapshot take_snapshot(const struct load *load)
{
    const struct hw_nand *nand = load->drive->machine.nand;
    const struct ftl_counters *ftl = ftl_counters(load->drive->drive.nand.ftl);
    struct snapshot snapshot = {
        .now_ns = load->world.now_ns,
        .blocks = load->world.blocks,
        .sent_ps = load->cable.lane[0].busy_ps + load->second.lane[0].busy_ps,
        .received_ps =
            load->cable.lane[1].busy_ps + load->second.lane[1].busy_ps,
        .memory_ps = load->drive->machine.dma->busy_ps,
        .units = ftl->units,
        .moved_units = ftl->moved_units,
    };

    memcpy(snapshot.stages_ns, load->drive->harts.stage_ns,
           sizeof(snapshot.stages_ns));
    for (uint32_t i = 0; i < nand->num_dies; i++) {
        snapshot.dies_ns += hw_nand_busy_time(nand, i);
    }
    for (uint32_t i = 0; i < nand->geometry.channels; i++) {
        snapshot.channels_ns += hw_nand_channel_time(nand, i);
    }
    return snapshot;
}

static void note_end(void *ctx, uint8_t opcode, uint64_t latency_ns)
{
    struct row *row = ctx;
    struct load *load = row->load;
    uint64_t now_ns = load->world.now_ns;
    uint32_t most;

    (void)opcode;
    if (!row->has_begun && now_ns >= row->begin_ns) {
        row->has_begun = true;
        row->first = take_snapshot(load);
    }
    if (row->has_begun && !row->has_ended && now_ns >= row->end_ns) {
        row->has_ended = true;
        row->last = take_snapshot(load);
    }
    if (!row->has_begun || row->has_ended) {
        return;
    }
    histogram_add(&row->latencies, latency_ns);
    row->bins[(now_ns - row->begin_ns) * BINS /
              (row->end_ns - row->begin_ns)]++;
    row->operations += ftl_operations(load->drive->drive.nand.ftl, &most);
    row->digest = random_mix(row->digest ^ latency_ns);
}

static void print_histogram(const struct histogram *latencies)
{
    static const struct {
        const char *name;
        uint32_t millionths;
    } percentiles[] = {{"p50", 500000},
                       {"p90", 900000},
                       {"p99", 990000},
                       {"p99_9", 999000},
                       {"p99_99", 999900}};
    const char *before = "";

    printf("\"mean_ns\": %.3f, \"max_ns\": %" PRIu64,
           (double)latencies->sum / (double)MAX(latencies->count, 1u),
           latencies->max);
    for (size_t i = 0; i < ARRAY_LEN(percentiles); i++) {
        printf(", \"%s_ns\": %" PRIu64, percentiles[i].name,
               histogram_percentile(latencies, percentiles[i].millionths));
    }
    printf(", \"histogram\": {\"unit\": \"ns\", \"significant_digits\": 2, "
           "\"counts\": [");
    for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        if (latencies->counts[i] != 0) {
            printf("%s[%" PRIu64 ", %" PRIu64 "]", before, histogram_top(i),
                   latencies->counts[i]);
            before = ", ";
        }
    }
    printf("]}");
}

static double share_of(uint64_t part, double whole)
{
    return (double)part / whole;
}

/* The parts of the time for which each resource was busy. */
static void print_busy(const struct row *row,
                       const struct paper_settings *settings)
{
    const struct snapshot *first = &row->first, *last = &row->last;
    const struct hw_nand *nand = row->load->drive->machine.nand;
    double ns = (double)(last->now_ns - first->now_ns);
    double ports = (double)settings->ports;
    uint32_t most;

    (void)ftl_operations(row->load->drive->drive.nand.ftl, &most);
    printf("\"busy\": {\"hart\": %.6f, \"dies\": %.6f, \"channels\": %.6f, "
           "\"port_out\": %.6f, \"port_in\": %.6f, \"memory\": %.6f, "
           "\"operations\": %.6f}",
           settings->hart_mips == 0
               ? 0
               : share_of((last->blocks - first->blocks) *
                              row->load->world.block_ps,
                          ns * 1e3 * (double)settings->harts),
           share_of(last->dies_ns - first->dies_ns, ns * nand->num_dies),
           share_of(last->channels_ns - first->channels_ns,
                    ns * nand->geometry.channels),
           share_of(last->sent_ps - first->sent_ps, ns * 1e3 * ports),
           share_of(last->received_ps - first->received_ps, ns * 1e3 * ports),
           share_of(last->memory_ps - first->memory_ps, ns * 1e3),
           share_of(row->operations,
                    (double)(MAX(row->latencies.count, 1u) * most)));
}

/* The parts of the time for which a hart was in each stage, and in turns of the
 * main loop; zeros with one hart. */
static void print_stages(const struct row *row)
{
    static const char *const names[STAGES + 1] = {"transport", "target",
                                                  "medium", "turns"};
    double ns = (double)(row->last.now_ns - row->first.now_ns);

    printf(", \"stages\": {");
    for (unsigned int i = 0; i < ARRAY_LEN(names); i++) {
        printf("%s\"%s\": %.6f", i == 0 ? "" : ", ", names[i],
               share_of(row->last.stages_ns[i] - row->first.stages_ns[i], ns));
    }
    printf("}");
}

static void print_row(const struct row *row, const struct variant *variant)
{
    const struct snapshot *first = &row->first, *last = &row->last;
    double seconds = (double)(last->now_ns - first->now_ns) / 1e9;
    double ios = (double)row->latencies.count;
    double programmed = (double)(last->units - first->units);
    double written =
        programmed - (double)(last->moved_units - first->moved_units);

    printf("{\"row\": \"%s\", \"variant\": \"%s\", \"ios\": %" PRIu64
           ", \"iops\": %.3f, \"mb_s\": %.3f, \"virtual_s\": %.9f, "
           "\"instructions\": %.3f, \"write_amplification\": %.4f, ",
           row->load->workload->name, variant->name, row->latencies.count,
           ios / seconds, ios * row->load->workload->len_bytes / seconds / 1e6,
           seconds,
           (double)(last->blocks - first->blocks) * BLOCK_INSTRUCTIONS / ios,
           written == 0 ? 0 : programmed / written);
    print_busy(row, &variant->settings);
    print_stages(row);
    printf(", \"over_time\": [");
    for (unsigned int i = 0; i < BINS; i++) {
        printf("%s%" PRIu64, i == 0 ? "" : ", ", row->bins[i]);
    }
    printf("], ");
    print_histogram(&row->latencies);
    printf(", \"digest\": \"%016" PRIx64 "\"}\n", row->digest);
}

static void apply_settings(struct load *load, struct nand_profile *part,
                           const struct paper_settings *settings)
{
    static struct dma_time dma;
    const struct cable_time time = {
        .speed_mbps = settings->port_mbps,
        .delay_ns =
            settings->cable_ns + settings->switch_ns + settings->rnic_ns,
        .fifo_bytes = (uint32_t)settings->fifo_bytes,
    };

    cable_set_time(&load->cable, &time);
    /* The windows of an earlier world are gone. */
    dma = (struct dma_time){
        .settings = {.bus_mbps = settings->dma_mbps,
                     .bus_ns = settings->dma_ns,
                     .memory_mbps = settings->memory_mbps,
                     .memory_ns = settings->memory_ns},
    };
    machine_use_dma(&load->drive->machine, &dma, &load->cable, 0);
    if (load->ports > 1) {
        cable_set_time(&load->second, &time);
        machine_use_dma(&load->drive->machine, &dma, &load->second, 0);
    }
    paper_part(part, settings);
    nand_array_set_times(load->drive->machine.nand->array, part);
    load->world.block_ps =
        settings->hart_mips == 0
            ? 0
            : BLOCK_INSTRUCTIONS * PS_PER_US / settings->hart_mips;
    native_harts_use(load->drive, (unsigned int)settings->harts,
                     settings->handover_ns, settings->message_ns);
}

static void measure_row(struct load *load, const struct paper_row *what,
                        const struct variant *variant)
{
    struct load_workload workload = what->workload;
    static struct row row;
    static struct nand_profile part;

    uint32_t hosts =
        (uint32_t)MAX(variant->settings.hosts, variant->settings.ports);

    workload.depth *= (uint32_t)variant->settings.hosts;
    load->writes = what->writes * (uint32_t)variant->settings.hosts;
    load->has_paths = variant->settings.hosts == 1;
    if (hosts > 1) {
        load_connect(load, hosts);
        native_world_pass(&load->world, SETTLE_NS);
    }
    apply_settings(load, &part, &variant->settings);
    row.load = load;
    row.begin_ns = load->world.now_ns + variant->settings.warm_us * 1000;
    row.end_ns = row.begin_ns + variant->settings.measure_us * 1000;
    load->ended = note_end;
    load->ctx = &row;
    load->stop_ns = row.end_ns + 1;
    /* Not the places of the overwrites, in the same order: after these, units
     * that follow each other here would be beside each other in the flash. */
    load->random = random_mix(variant->settings.seed);
    load_run(load, &workload, UINT32_MAX);
    if (!row.has_ended || row.latencies.count == 0) {
        fprintf(stderr, "native_paper: %s, %s: no command has ended in time\n",
                workload.name, variant->name);
        exit(1);
    }
    print_row(&row, variant);
    fflush(stdout);
}

/* Measure a row in a copy of this process. */
static void fork_row(struct load *load, const struct paper_row *row,
                     const struct variant *variant)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    ASSERT(child >= 0);
    if (child == 0) {
        measure_row(load, row, variant);
        _exit(0);
    }
    ASSERT(waitpid(child, &status, 0) == child);
    if (status != 0) {
        exit(1);
    }
}

static void start_drive(struct load *load, bool is_timed)
{
    load->flash_is_realtime = is_timed;
    load_start(load, &fill);
    load->span_bytes = load->drive->drive.medium.size_blocks * LOAD_BLOCK;
}

/* Measure rows, whose bits of `rows` begin with this one. */
static void measure_rows(struct load *load, const struct paper_row *rows,
                         size_t num_rows, unsigned int first_bit,
                         const struct variant *variants, unsigned int count)
{
    start_drive(load, true);
    native_world_pass(&load->world, SETTLE_NS);
    for (size_t i = 0; i < num_rows * count; i++) {
        const struct variant *variant = &variants[i % count];
        const struct paper_row *row = &rows[i / count];
        uint64_t wanted = variant->settings.rows;

        if (wanted == 0 ? !row->is_extra
                        : (wanted & BIT(first_bit + i / count)) != 0) {
            fork_row(load, row, variant);
        }
    }
    load_end(load);
}

static void prepare_flash(struct load *load,
                          const struct load_workload *workload,
                          uint64_t percent)
{
    start_drive(load, false);
    load_run(
        load, workload,
        (uint32_t)(load->span_bytes * percent / 100 / workload->len_bytes));
    load_flush(load);
    load_end(load);
}

/* Overwrite the flash while everything takes time, and print how that goes. */
static void watch_overwrites(struct load *load, const struct variant *variant)
{
    static struct nand_profile part;
    const struct ftl_counters *counters;
    uint64_t each;

    start_drive(load, true);
    native_world_pass(&load->world, SETTLE_NS);
    apply_settings(load, &part, &variant->settings);
    each = load->span_bytes * variant->settings.overwrites_percent / 100 /
           overwrite.len_bytes / BINS;
    counters = ftl_counters(load->drive->drive.nand.ftl);
    printf("{\"row\": \"precondition\", \"variant\": \"%s\", "
           "\"points\": [",
           variant->name);
    for (unsigned int i = 0; i < BINS; i++) {
        const struct ftl_counters before = *counters;
        uint64_t begin_ns = load->world.now_ns;
        double programmed, written;

        load_run(load, &overwrite, (uint32_t)each);
        programmed = (double)(counters->units - before.units);
        written =
            programmed - (double)(counters->moved_units - before.moved_units);
        printf("%s[%.2f, %.3f, %.4f]", i == 0 ? "" : ", ",
               (double)variant->settings.overwrites_percent * (i + 1) / BINS,
               (double)each * 1e9 / (double)(load->world.now_ns - begin_ns),
               written == 0 ? 0 : programmed / written);
    }
    printf("]}\n");
    load_flush(load);
    load_end(load);
}

/* Write a part of the medium, many times perhaps. */
static void prepare_medium(struct load *load,
                           const struct load_workload *workload,
                           uint64_t percent,
                           const struct paper_settings *settings)
{
    const struct direct_writes writes = {
        .capacity_bytes = load->capacity_bytes,
        .percent = (uint32_t)percent,
        .is_random = workload->order == LOAD_RANDOM,
        .seed = settings->seed,
    };

    if (settings->is_direct != 0) {
        direct_write(load->nand, &writes);
    } else {
        prepare_flash(load, workload, percent);
    }
}

static uint64_t capacity_of(const struct paper_settings *settings)
{
    const struct nand_profile *part = nand_profile_find("tlc2021");
    const struct nand_geometry geometry = {
        .channels = (uint8_t)settings->channels,
        .dies = (uint8_t)settings->dies,
        .planes = part->planes,
        .units = part->units,
        .pages = part->native.pages,
        .blocks = (uint16_t)settings->blocks,
        .wordlines = (uint16_t)settings->wordlines,
    };

    if (!nand_geometry_is_valid(&geometry)) {
        return 0;
    }
    return nand_space_bytes(&geometry, part, settings->seed,
                            (unsigned int)settings->spare_percent);
}

static int show_usage(const char *word)
{
    fprintf(stderr,
            "native_paper: %s is no setting; usage: native_paper "
            "SETTING=NUMBER... [/ VARIANT SETTING=NUMBER...]...\n",
            word);
    return 2;
}

/* @return the number of variants, or 0 after a message */
static unsigned int read_words(char **words, struct variant *variants)
{
    unsigned int count = 1;

    variants[0].name = "base";
    for (; *words != NULL; words++) {
        if (strcmp(*words, "/") == 0 && words[1] != NULL &&
            count < VARIANTS_MAX) {
            variants[count].settings = variants[0].settings;
            variants[count++].name = *++words;
        } else if (!paper_set(&variants[count - 1].settings, *words)) {
            (void)show_usage(*words);
            return 0;
        }
    }
    return count;
}

static bool are_valid(const struct variant *variants, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        const struct paper_settings *settings = &variants[i].settings;

        if (settings->hosts - 1 >= LOAD_HOSTS) {
            fprintf(stderr, "native_paper: hosts: use 1 to %u\n", LOAD_HOSTS);
            return false;
        }
        if (settings->harts - 1 >= STAGE_HARTS) {
            fprintf(stderr, "native_paper: harts: use 1 to %u\n", STAGE_HARTS);
            return false;
        }
        if (settings->ports - 1 >= SOC_PORTS ||
            settings->ports != variants[0].settings.ports) {
            fprintf(stderr, "native_paper: ports: use 1 or %u, everywhere\n",
                    SOC_PORTS);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct variant variants[VARIANTS_MAX];
    const struct paper_settings *settings = &variants[0].settings;
    struct load *load = calloc(1, sizeof(*load));
    unsigned int count = argc > 1 ? read_words(argv + 1, variants) : 0;
    struct nand_ram nand;
    struct nand_storage_config config;

    ASSERT(load != NULL);
    if (count == 0) {
        return 2;
    }
    load->seed = settings->seed;
    load->mtu_bytes = (uint16_t)settings->mtu_bytes;
    load->has_stages = true;
    load->ports = (uint32_t)settings->ports;
    load->capacity_bytes = capacity_of(settings);
    if (!are_valid(variants, count)) {
        return 2;
    }
    if (load->capacity_bytes == 0) {
        fprintf(stderr, "native_paper: there is no such array\n");
        return 2;
    }
    config = (struct nand_storage_config){
        .profile = "tlc2021",
        .channels = (uint8_t)settings->channels,
        .dies = (uint8_t)settings->dies,
        .blocks = (uint16_t)settings->blocks,
        .wordlines = (uint16_t)settings->wordlines,
        .seed = settings->seed,
        .is_sparse = true,
    };
    nand_storage_init(&nand, &config);
    nand.queues_programs = settings->queues_programs != 0;
    load->nand = &nand;
    prepare_medium(load, &fill, 200, settings);
    measure_rows(load, sequential, ARRAY_LEN(sequential), 0, variants, count);
    if (settings->overwrites_take_time != 0) {
        watch_overwrites(load, &variants[0]);
    } else {
        prepare_medium(load, &overwrite, settings->overwrites_percent,
                       settings);
    }
    measure_rows(load, at_random, ARRAY_LEN(at_random), ARRAY_LEN(sequential),
                 variants, count);
    nand_storage_end(&nand);
    free(load);
    return 0;
}
