/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive and its hosts on one cable in one process and in virtual time: the
 * same workload takes the same instructions in every run, however busy the
 * machine is.  For callgrind, which counts them:
 *
 *   native_cost WORKLOAD COUNT
 *
 * A workload whose name begins with "nand-" is for a drive with NAND flash,
 * which has been filled before; without the prefix, for one with a block
 * medium.
 *
 * tools/count_instructions.py runs it (docs/performance.md).
 *
 * The difference of two runs with different counts is free of what connecting
 * and disconnecting costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/native/nand_storage.h"
#include "firmware/native/native.h"

enum {
    MEDIUM_BYTES = 64 * 1024 * 1024,
    CACHE_BYTES = 16 * 1024 * 1024,
    BLOCK = 512,
    DEPTH_MAX = 64,
    COST_HOSTS = 4,
    FILL_BYTES = 131072, /* of each write with which the flash is filled */
};
#define NAND_PREFIX "nand-"
#define TIMEOUT_NS  UINT64_C(600000000000)

struct workload {
    const char *name;
    uint8_t opcode;
    uint32_t len_bytes;
    uint32_t depth; /* of all hosts together */
    uint32_t hosts; /* each has a controller of its own */
    bool is_sequential;
};

/* It has several times the blocks of a plane that the commands fill, so that
 * there is no garbage to collect. */
static const struct nand_storage_config nand_storage = {
    .profile = "tlc2021",
    .channels = 4,
    .dies = 2,
    .blocks = 240,
    .wordlines = 4,
};

static const struct workload workloads[] = {
    {"4k-read-qd1", NVM_READ, 4096, 1, 1, false},
    {"4k-read-qd64", NVM_READ, 4096, 64, 1, false},
    {"4k-write-qd1", NVM_WRITE, 4096, 1, 1, false},
    {"4k-write-qd64", NVM_WRITE, 4096, 64, 1, false},
    {"4k-read-qd64-4hosts", NVM_READ, 4096, 64, 4, false},
    {"4k-write-qd64-4hosts", NVM_WRITE, 4096, 64, 4, false},
    {"128k-read-qd1", NVM_READ, 131072, 1, 1, false},
    {"128k-write-qd1", NVM_WRITE, 131072, 1, 1, false},
    {"1m-read-qd1", NVM_READ, 1048576, 1, 1, false},
    {"1m-write-qd1", NVM_WRITE, 1048576, 1, 1, false},
    {"4k-seqread-qd1", NVM_READ, 4096, 1, 1, true},
    {"4k-seqread-qd64", NVM_READ, 4096, 64, 1, true},
    {"4k-seqwrite-qd1", NVM_WRITE, 4096, 1, 1, true},
    {"4k-seqwrite-qd64", NVM_WRITE, 4096, 64, 1, true},
    {"128k-read-qd64", NVM_READ, 131072, 64, 1, false},
    {"128k-write-qd64", NVM_WRITE, 131072, 64, 1, false},
};

static const struct workload fill_workload = {"fill", NVM_WRITE, FILL_BYTES,
                                              8,      1,         true};

struct slot {
    struct load *load;
    struct nvme_host *host;
    bool is_busy;
};

struct load {
    const struct workload *workload;
    struct native_world world;
    struct medium medium;
    bool has_nand; /* Its medium is this array instead. */
    struct nand_ram nand;
    struct cable cable;
    struct native_drive *drive;
    struct native_host *host;
    struct nvme_host more[COST_HOSTS - 1];
    uint32_t wanted, started, done;
    struct slot slots[DEPTH_MAX];
};

static void io_done(void *ctx, const struct host_result *result)
{
    struct slot *slot = ctx;

    ASSERT(!result->is_lost && result->cqe.status == 0);
    slot->is_busy = false;
    slot->load->done++;
}

/* @return false: a queue of 64 entries holds 63 commands */
static bool start_io(struct load *load, struct slot *slot)
{
    const struct workload *workload = load->workload;
    uint32_t blocks = workload->len_bytes / BLOCK;
    struct host_io io = {
        .qid = 1,
        .opcode = workload->opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = 1,
        .lba = (uint64_t)load->started * (workload->is_sequential ? 1 : 7919) %
               (MEDIUM_BYTES / workload->len_bytes) * blocks,
        .blocks = blocks,
        .offset = (uint32_t)(slot - load->slots) * workload->len_bytes,
        .len_bytes = workload->len_bytes,
        .done = io_done,
        .ctx = slot,
    };

    if (!host_io_submit(slot->host, &io)) {
        return false;
    }
    slot->is_busy = true;
    load->started++;
    return true;
}

/* Keep as many commands outstanding as the workload wants. */
static bool load_is_done(void *ctx)
{
    struct load *load = ctx;
    bool has_posted = false;

    for (uint32_t i = 0; i < load->workload->depth; i++) {
        if (!load->slots[i].is_busy && load->started < load->wanted) {
            has_posted |= start_io(load, &load->slots[i]);
        }
    }
    if (has_posted) {
        verbs_flush(&load->host->net.verbs);
        load->host->sleep.is_asleep = false;
    }
    return load->done == load->wanted;
}

static void create_nodes(struct load *load)
{
    struct native_drive_config drive = {
        .node = {.number = 1, .ipv4 = {0x0a000001}},
        .medium = &load->medium,
        .cache_bytes = CACHE_BYTES,
        .nand_flash = load->has_nand ? &load->nand : NULL,
        .flash_is_batched = true, /* as the block medium is */
    };
    struct native_node_config host = {.number = 2, .ipv4 = {0x0a000002}};

    native_world_init(&load->world);
    medium_init(&load->medium, MEDIUM_BYTES);
    if (load->has_nand) {
        nand_storage_init(&load->nand, &nand_storage);
    }
    cable_init(&load->cable);
    load->drive = native_drive_create(&load->world, &drive);
    load->host = native_host_create(&load->world, &host);
    native_connect(&load->world, &load->cable, &load->drive->machine, 0,
                   &load->host->machine, 0);
}

static void destroy_nodes(struct load *load)
{
    native_drive_destroy(load->drive);
    native_host_destroy(load->host);
    cable_end(&load->cable);
    medium_end(&load->medium);
    if (load->has_nand) {
        nand_storage_end(&load->nand);
    }
    native_world_end(&load->world);
}

static struct nvme_host *host_of(struct load *load, uint32_t i)
{
    return i == 0 ? &load->host->host : &load->more[i - 1];
}

static void connect_hosts(struct load *load)
{
    struct host_target target;

    ASSERT(native_target(load->host, load->drive, 0, &target));
    target.io_queues = 1;
    target.depth = NVMF_MAX_DEPTH;
    for (uint32_t i = 0; i < load->workload->hosts; i++) {
        if (i != 0) {
            native_host_add(load->host, &load->more[i - 1], 1);
        }
        ASSERT(host_connect(host_of(load, i), &target) == 0);
    }
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        load->slots[i] = (struct slot){
            .load = load,
            .host = host_of(load, i % load->workload->hosts),
        };
    }
}

static void run_commands(struct load *load, const struct workload *workload,
                         uint32_t wanted)
{
    load->workload = workload;
    load->wanted = wanted;
    load->started = 0;
    load->done = 0;
    ASSERT(load_is_done(load) ||
           native_world_run(&load->world, load_is_done, load, TIMEOUT_NS));
}

/* Write all blocks, and wait until they have left the write buffer. */
static void fill_flash(struct load *load)
{
    const struct host_io flush = {.qid = 1, .opcode = NVM_FLUSH, .nsid = 1};

    run_commands(load, &fill_workload, MEDIUM_BYTES / FILL_BYTES);
    ASSERT(host_io(&load->host->host, &flush) == 0);
}

static void run_load(struct load *load, uint32_t count)
{
    const struct workload *workload = load->workload;

    create_nodes(load);
    connect_hosts(load);
    if (load->has_nand) {
        fill_flash(load);
    }
    run_commands(load, workload, count);
    printf("%s: %u commands in %.3f ms of virtual time\n", load->workload->name,
           load->done, (double)load->world.now_ns / 1e6);
    for (uint32_t i = 0; i < load->workload->hosts; i++) {
        host_disconnect(host_of(load, i));
    }
    destroy_nodes(load);
}

int main(int argc, char **argv)
{
    struct load *load = calloc(1, sizeof(*load));
    const char *name = argc == 3 ? argv[1] : "";

    ASSERT(load != NULL);
    load->has_nand = strncmp(name, NAND_PREFIX, strlen(NAND_PREFIX)) == 0;
    name += load->has_nand ? strlen(NAND_PREFIX) : 0;
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        if (strcmp(name, workloads[i].name) == 0) {
            load->workload = &workloads[i];
        }
    }
    if (load->workload == NULL) {
        fprintf(stderr, "usage: native_cost [nand-]WORKLOAD COUNT\n");
        for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
            fprintf(stderr, "  %s\n", workloads[i].name);
        }
        return 2;
    }
    run_load(load, (uint32_t)strtoul(argv[2], NULL, 10));
    free(load);
    return 0;
}
