/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fair shares of buffers: hosts that fall silent with as many commands
 * outstanding as possible do not slow down another one. Virtual time.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define MS_NS UINT64_C(1000000)

enum {
    SILENT = 40,
    DEPTH = 64,
    LARGE_BLOCKS = 256, /* 128 KiB. */
    SAMPLES = 4000,
    ACK_TIMEOUT = 18, /* 1.07 s: the drive's retries take 8 s. */
    KATO_MS = 8000,
};

/* The commands of one host, how many are outstanding at once, and how long each
 * took. */
struct load {
    struct nvme_host *host;
    uint32_t blocks;
    unsigned int depth;
    unsigned int started, done, failed, wanted;
    struct load_slot {
        struct load *load;
        uint64_t start_ns;
        bool is_busy;
    } slot[DEPTH];
    uint64_t took_ns[SAMPLES];
};

static void load_done(void *ctx, const struct host_result *result)
{
    struct load_slot *slot = ctx;
    struct load *load = slot->load;

    slot->is_busy = false;
    load->failed += result->is_lost || result->cqe.status != 0;
    load->took_ns[load->done++] = bed.world.now_ns - slot->start_ns;
}

static bool start_read(struct nvme_host *host, uint64_t lba, uint32_t blocks,
                       uint32_t offset,
                       void (*done)(void *ctx, const struct host_result *),
                       void *ctx)
{
    return host_io_submit(host, &(struct host_io){
                                    .qid = 1,
                                    .opcode = NVM_READ,
                                    .kind = HOST_DATA_KEYED,
                                    .nsid = BED_NSID,
                                    .lba = lba,
                                    .blocks = blocks,
                                    .offset = offset,
                                    .len_bytes = blocks * BED_BLOCK,
                                    .done = done,
                                    .ctx = ctx,
                                });
}

/* Called in each step of the world until all commands are done. */
static bool load_is_done(void *ctx)
{
    struct load *load = ctx;

    for (unsigned int i = 0; i < load->depth; i++) {
        struct load_slot *slot = &load->slot[i];

        if (slot->is_busy || load->started == load->wanted) {
            continue;
        }
        slot->load = load;
        slot->is_busy = true;
        slot->start_ns = bed.world.now_ns;
        assert_true(start_read(load->host, load->started % 1024 * 8,
                               load->blocks, i * load->blocks * BED_BLOCK,
                               load_done, slot));
        load->started++;
        verbs_flush(&bed.host->net.verbs);
        bed.host->sleep.is_asleep = false;
    }
    return load->done == load->wanted;
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* @return the 99th percentile in ns; *max is the slowest */
static uint64_t run_load(struct nvme_host *host, uint32_t blocks,
                         unsigned int depth, unsigned int wanted, uint64_t *max)
{
    struct load *load = calloc(1, sizeof(*load));
    uint64_t p99;

    *load = (struct load){
        .host = host, .blocks = blocks, .depth = depth, .wanted = wanted};
    assert_in_range(wanted, 100, SAMPLES);
    assert_false(load_is_done(load)); /* Starts the first commands, at once. */
    assert_true(
        native_world_run(&bed.world, load_is_done, load, 60000 * MS_NS));
    assert_int_equal(load->failed, 0);
    qsort(load->took_ns, wanted, sizeof(load->took_ns[0]), compare_times);
    p99 = load->took_ns[wanted * 99 / 100];
    *max = load->took_ns[wanted - 1];
    free(load);
    return p99;
}

static const struct kind {
    const char *what;
    uint32_t blocks;
    unsigned int depth, count;
} kinds[] = {
    {"4 KiB reads, one at a time", 8, 1, 1000},
    {"4 KiB reads, eight at a time", 8, 8, 2000},
    {"4 KiB reads, 32 at a time", 8, 32, 2000},
    {"128 KiB reads, one at a time", LARGE_BLOCKS, 1, 100},
    {"128 KiB reads, eight at a time", LARGE_BLOCKS, 8, 200},
};

/* In virtual time computing takes no time; only waiting does. */
enum { QUIET_FACTOR = 4, GRACE_NS = 1000000 };

static void measure_loads(struct nvme_host *host, uint64_t *p99, uint64_t *max)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        p99[i] = run_load(host, kinds[i].blocks, kinds[i].depth, kinds[i].count,
                          &max[i]);
    }
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

static struct nvme_host *join_greedy(void)
{
    struct nvme_host *host = calloc(1, sizeof(*host));
    struct host_target target;

    native_host_add(bed.host, host, 1);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.ack_timeout = ACK_TIMEOUT;
    target.kato_ms = KATO_MS;
    assert_int_equal(host_connect(host, &target), 0);
    return host;
}

static void take_all(struct nvme_host *host)
{
    for (unsigned int i = 0; i < DEPTH - 1; i++) {
        assert_true(start_read(host, i, LARGE_BLOCKS, 0, ignore_result, NULL));
    }
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, MS_NS);
}

static uint32_t used_bytes(void)
{
    return buf_pool_used_bytes(bed.drive->drive.bufs);
}

static void test_silent_hosts_do_not_slow_down_another_one(void **state)
{
    struct nvme_host *silent[SILENT];
    uint64_t quiet[ARRAY_LEN(kinds)], quiet_max[ARRAY_LEN(kinds)];
    uint64_t beside[ARRAY_LEN(kinds)], beside_max[ARRAY_LEN(kinds)];
    uint32_t held;

    (void)state;
    bed_provokes(&bed, BED_GONE);
    bed_connect(&bed, 1, 1, DEPTH); /* Through the other port. */
    measure_loads(&bed.host->host, quiet, quiet_max);
    for (unsigned int i = 0; i < SILENT; i++) {
        silent[i] = join_greedy();
    }
    /* No command is answered before the hosts fall silent. */
    bed.medium.is_held = true;
    for (unsigned int i = 0; i < SILENT; i++) {
        take_all(silent[i]);
    }
    for (unsigned int i = 0; i < SILENT; i++) {
        host_fall_silent(silent[i]);
    }
    medium_release(&bed.medium);
    native_world_pass(&bed.world, MS_NS);
    held = used_bytes();
    measure_loads(&bed.host->host, beside, beside_max);
    print_message("held by silent hosts: %u KiB before, %u KiB after\n",
                  held / 1024, used_bytes() / 1024);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        print_message("%s: p99 %llu us, slowest %llu us; beside silent hosts "
                      "%llu us, %llu us\n",
                      kinds[i].what, (unsigned long long)quiet[i] / 1000,
                      (unsigned long long)quiet_max[i] / 1000,
                      (unsigned long long)beside[i] / 1000,
                      (unsigned long long)beside_max[i] / 1000);
    }
    /* The silent hosts hold all buffers except those reserved for small
     * commands. */
    assert_true(used_bytes() >= 39u * 1024 * 1024);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_true(beside[i] <= QUIET_FACTOR * quiet[i] + GRACE_NS);
        assert_true(beside_max[i] <= QUIET_FACTOR * quiet_max[i] + GRACE_NS);
    }
    native_world_pass(&bed.world, 30000 * MS_NS);
    for (unsigned int i = 0; i < SILENT; i++) {
        host_vanish(silent[i]);
        free(silent[i]);
    }
    host_disconnect(&bed.host->host);
    native_world_pass(&bed.world, 1000 * MS_NS);
    bed_expect_idle(&bed);
}

TEST_FIXTURE(setup, teardown)
