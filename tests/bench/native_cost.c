/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A drive and its hosts on one cable in one process and in virtual time: the
 * same workload takes the same instructions in every run, however busy the
 * machine is.  For callgrind, which counts them:
 *
 *   native_cost WORKLOAD COUNT
 *
 * tools/count_instructions.py runs it (docs/performance.md).
 *
 * The difference of two runs with different counts is free of what connecting
 * and disconnecting costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/native/native.h"

enum {
    MEDIUM_BYTES = 64 * 1024 * 1024,
    CACHE_BYTES = 16 * 1024 * 1024,
    BLOCK = 512,
    DEPTH_MAX = 64,
    COST_HOSTS = 4,
};
#define TIMEOUT_NS UINT64_C(600000000000)

struct workload {
    const char *name;
    uint8_t opcode;
    uint32_t len_bytes;
    uint32_t depth; /* of all hosts together */
    uint32_t hosts; /* each has a controller of its own */
};

static const struct workload workloads[] = {
    {"4k-read-qd1", NVM_READ, 4096, 1, 1},
    {"4k-read-qd64", NVM_READ, 4096, 64, 1},
    {"4k-write-qd1", NVM_WRITE, 4096, 1, 1},
    {"4k-write-qd64", NVM_WRITE, 4096, 64, 1},
    {"4k-read-qd64-4hosts", NVM_READ, 4096, 64, 4},
    {"4k-write-qd64-4hosts", NVM_WRITE, 4096, 64, 4},
    {"128k-read-qd1", NVM_READ, 131072, 1, 1},
    {"128k-write-qd1", NVM_WRITE, 131072, 1, 1},
    {"1m-read-qd1", NVM_READ, 1048576, 1, 1},
    {"1m-write-qd1", NVM_WRITE, 1048576, 1, 1},
};

struct slot {
    struct load *load;
    struct nvme_host *host;
    bool is_busy;
};

struct load {
    const struct workload *workload;
    struct native_world world;
    struct medium medium;
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
        .lba = (uint64_t)load->started * 7919 %
               (load->medium.capacity_bytes / workload->len_bytes) * blocks,
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
    };
    struct native_node_config host = {.number = 2, .ipv4 = {0x0a000002}};

    native_world_init(&load->world);
    medium_init(&load->medium, MEDIUM_BYTES);
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

static void run_load(struct load *load)
{
    create_nodes(load);
    connect_hosts(load);
    ASSERT(load_is_done(load) ||
           native_world_run(&load->world, load_is_done, load, TIMEOUT_NS));
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

    ASSERT(load != NULL);
    for (size_t i = 0; argc == 3 && i < ARRAY_LEN(workloads); i++) {
        if (strcmp(argv[1], workloads[i].name) == 0) {
            load->workload = &workloads[i];
        }
    }
    if (load->workload == NULL) {
        fprintf(stderr, "usage: native_cost WORKLOAD COUNT\n");
        for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
            fprintf(stderr, "  %s\n", workloads[i].name);
        }
        return 2;
    }
    load->wanted = (uint32_t)strtoul(argv[2], NULL, 10);
    run_load(load);
    free(load);
    return 0;
}
