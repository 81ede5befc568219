/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/load.h"

#include <string.h>

#include "lib/random.h"
#include "nvmeof/wire/opcode.h"

#define CACHE_BYTES (16 * 1024 * 1024)
#define TIMEOUT_NS  UINT64_C(600000000000)
/* The step of LOAD_STRIDED: prime, and larger than a stripe of any array. */
#define STRIDE 7919

enum {
    FORMAT_EXTENDED = 1 << 4, /* of dword 10 of Format NVM */
    FORMAT_TYPE_1 = 1 << 5,
    PRINFO = 0xd << 26, /* of dword 12: PRACT; guard and reference tag checks */
};

static void io_done(void *ctx, const struct host_result *result)
{
    struct load_slot *slot = ctx;

    ASSERT(!result->is_lost && result->cqe.status == 0);
    slot->is_busy = false;
    slot->load->done++;
    if (slot->load->ended != NULL) {
        slot->load->ended(slot->load->ctx, slot->opcode,
                          slot->load->world.now_ns - slot->start_ns);
    }
}

static uint32_t block_bytes(const struct load *load)
{
    return load->pi_format == 3 ? 4096 : LOAD_BLOCK;
}

static uint64_t next_lba(struct load *load)
{
    const struct load_workload *workload = load->workload;
    uint64_t places = load->span_bytes / workload->len_bytes, place = 0;

    switch (workload->order) {
    case LOAD_STRIDED:
        place = (uint64_t)load->started * STRIDE;
        break;
    case LOAD_SEQUENTIAL:
        place = load->started;
        break;
    case LOAD_RANDOM:
        place = random_next(&load->random);
        break;
    }
    return place % places * (workload->len_bytes / block_bytes(load));
}

/* What the commands of a slot do: the last slots are for the writes. */
static uint8_t opcode_of(const struct load *load, const struct load_slot *slot)
{
    const struct load_workload *workload = load->workload;

    return (size_t)(slot - load->slots) >= workload->depth - load->writes
               ? NVM_WRITE
               : workload->opcode;
}

/* @return false: a queue of 64 entries holds 63 commands */
static bool start_io(struct load *load, struct load_slot *slot)
{
    const struct load_workload *workload = load->workload;
    struct host_io io = {
        .qid = 1,
        .opcode = opcode_of(load, slot),
        .kind = HOST_DATA_KEYED,
        .nsid = 1,
        .lba = next_lba(load),
        .blocks = workload->len_bytes / block_bytes(load),
        .offset =
            (uint32_t)(slot - load->slots) % LOAD_PLACES * workload->len_bytes,
        .len_bytes = workload->len_bytes,
        .done = io_done,
        .ctx = slot,
    };

    if (load->pi_format != 0) {
        io.flags = PRINFO;
        io.ref_tag = (uint32_t)io.lba;
    }
    if (!host_io_submit(slot->host, &io)) {
        return false;
    }
    slot->is_busy = true;
    slot->opcode = io.opcode;
    slot->start_ns = load->world.now_ns;
    load->started++;
    return true;
}

/* Keep as many commands outstanding as the workload wants. */
static bool load_is_done(void *ctx)
{
    struct load *load = ctx;
    bool has_posted = false;

    if (load->stop_ns != 0 && load->world.now_ns >= load->stop_ns) {
        load->wanted = load->started;
    }
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
        .node = {.number = 1,
                 .ipv4 = {0x0a000001, load->ports > 1 ? 0x0a000101 : 0},
                 .mtu_bytes = load->mtu_bytes},
        .medium = &load->medium,
        .cache_bytes = CACHE_BYTES,
        .nand_flash = load->nand,
        .capacity_bytes = load->capacity_bytes,
        .flash_is_realtime = load->flash_is_realtime,
        .has_stages = load->has_stages,
        .has_aoe = load->has_aoe,
        .flash_is_batched = true, /* like the block medium */
    };
    struct native_node_config host = {
        .number = 2,
        .ipv4 = {0x0a000002, load->ports > 1 ? 0x0a000102 : 0},
        .mtu_bytes = load->mtu_bytes};

    native_world_init(&load->world);
    medium_init(&load->medium, LOAD_MEDIUM_BYTES);
    cable_init(&load->cable);
    load->drive = native_drive_create(&load->world, &drive);
    load->host = native_host_create(&load->world, &host);
    native_connect(&load->world, &load->cable, &load->drive->machine, 0,
                   &load->host->machine, 0);
    if (load->ports > 1) {
        cable_init(&load->second);
        native_connect(&load->world, &load->second, &load->drive->machine, 1,
                       &load->host->machine, 1);
    }
}

static struct nvme_host *host_of(struct load *load, uint32_t i)
{
    return i == 0 ? &load->host->host : &load->more[i - 1];
}

static void format_with_pi(struct load *load)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_FORMAT_NVM,
        .nsid = 1,
        .cdw10 = load->pi_format | FORMAT_EXTENDED | FORMAT_TYPE_1,
    };

    ASSERT(host_command(&load->host->host, 0, &sqe, NULL, 0) == 0);
}

/* The target of one of the controllers: each has a host of its own, unless they
 * are the paths of one host. */
static struct host_target target_of(const struct load *load,
                                    const struct host_target *first,
                                    uint32_t number)
{
    struct host_target target = *first;
    size_t len = strlen(target.hostnqn);

    if (number != 0 && !load->has_paths) {
        ASSERT(number < 10 && len + 2 <= sizeof(target.hostnqn));
        target.hostnqn[len] = (char)('0' + number);
        target.hostnqn[len + 1] = '\0';
        target.hostid[0] = (uint8_t)(target.hostid[0] + number);
    }
    return target;
}

void load_start(struct load *load, const struct load_workload *workload)
{
    load->workload = workload;
    load->random = load->seed != 0 ? load->seed : 1;
    load->hosts = 0;
    create_nodes(load);
    load_connect(load, workload->hosts);
    if (load->pi_format != 0) {
        format_with_pi(load);
    }
}

void load_connect(struct load *load, uint32_t hosts)
{
    struct host_target target, other;

    for (; load->hosts < hosts; load->hosts++) {
        ASSERT(native_target(load->host, load->drive,
                             (uint8_t)(load->hosts % MAX(load->ports, 1u)),
                             &target));
        target.io_queues = 1;
        target.depth = NVMF_MAX_DEPTH;
        if (load->hosts != 0) {
            native_host_add(load->host, &load->more[load->hosts - 1], 1);
        }
        other = target_of(load, &target, load->hosts);
        ASSERT(host_connect(host_of(load, load->hosts), &other) == 0);
    }
    for (uint32_t i = 0; i < LOAD_DEPTH_MAX; i++) {
        load->slots[i] = (struct load_slot){
            .load = load,
            .host = host_of(load, i % hosts),
        };
    }
}

void load_run(struct load *load, const struct load_workload *workload,
              uint32_t commands)
{
    load->workload = workload;
    load->wanted = commands;
    load->started = 0;
    load->done = 0;
    ASSERT(load_is_done(load) ||
           native_world_run(&load->world, load_is_done, load, TIMEOUT_NS));
}

void load_flush(struct load *load)
{
    const struct host_io flush = {.qid = 1, .opcode = NVM_FLUSH, .nsid = 1};

    ASSERT(host_io(&load->host->host, &flush) == 0);
}

void load_end(struct load *load)
{
    for (uint32_t i = 0; i < load->hosts; i++) {
        host_disconnect(host_of(load, i));
    }
    drive_stop(&load->drive->drive);
    native_drive_destroy(load->drive);
    native_host_destroy(load->host);
    cable_end(&load->cable);
    if (load->ports > 1) {
        cable_end(&load->second);
    }
    medium_end(&load->medium);
    native_world_end(&load->world);
}
