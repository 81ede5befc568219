/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slow medium: hosts that disconnect, reset or fall silent while it has their
 * commands, and more commands than it and the buffers have room for.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "nvmeof/target/state.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

#define MS_NS UINT64_C(1000000)

enum {
    QUEUES = 10,
    MOST = 4096 / BED_BLOCK, /* Blocks of one command in a flood. */
    READS = BED_MEDIUM_BYTES / (MOST * BED_BLOCK),
};

struct tally {
    unsigned int done, lost, failed;
};

static void count_result(void *ctx, const struct host_result *result)
{
    struct tally *tally = ctx;

    tally->done++;
    tally->lost += result->is_lost;
    tally->failed += !result->is_lost && result->cqe.status != 0;
}

/* Start one command, whose data is at its own place in the host's area. */
static bool start_command(struct nvme_host *host, struct tally *tally,
                          uint16_t qid, uint8_t opcode, uint64_t lba,
                          uint32_t blocks)
{
    struct host_io io = {
        .qid = qid,
        .opcode = opcode,
        .fua = true, /* The command is not complete before the medium is. */
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = lba,
        .blocks = blocks,
        .offset = (uint32_t)lba * BED_BLOCK,
        .len_bytes = blocks * BED_BLOCK,
        .done = count_result,
        .ctx = tally,
    };
    bool is_started = host_io_submit(host, &io);

    verbs_flush(&bed.host->net.verbs);
    return is_started;
}

static void let_pass(uint64_t ns)
{
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, ns);
}

static struct rdma_usage transport_usage(void)
{
    struct rdma_usage usage;

    rdma_transport_usage(bed.drive->drive.rdma, &usage);
    return usage;
}

static void expect_on_medium(uint64_t lba, uint32_t blocks, uint32_t version)
{
    static uint8_t expected[64 * BED_BLOCK];

    assert_in_range(blocks, 1, 64);

    bed_fill(expected, lba, blocks, version);
    assert_memory_equal(bed.medium.durable + lba * BED_BLOCK, expected,
                        (size_t)blocks * BED_BLOCK);
}

/* Until the medium is done, nobody else gets the memory of its commands. */
static void test_a_host_disconnects_while_the_medium_has_its_commands(
    void **state)
{
    struct nvme_host *other = calloc(1, sizeof(*other));
    struct tally gone = {0}, there = {0};
    uint8_t *data = bed.host->data;

    (void)state;
    bed_connect(&bed, 0, 2, 64);
    bed_connect_more(&bed, other, 0, 1, 0);
    bed.medium.is_held = true;
    for (uint64_t i = 0; i < 20; i++) {
        bed_fill(data + (1000 + 8 * i) * BED_BLOCK, 1000 + 8 * i, 8, 1);
        assert_true(
            start_command(&bed.host->host, &gone, 1, NVM_READ, 40 * i, 40));
        assert_true(start_command(&bed.host->host, &gone, 2, NVM_WRITE,
                                  1000 + 8 * i, 8));
    }
    let_pass(MS_NS);
    assert_int_equal(gone.done, 0);
    assert_int_equal(transport_usage().requests, 40);
    host_disconnect(&bed.host->host);
    assert_int_equal(gone.lost, 40);
    assert_int_equal(transport_usage().requests, 40);
    assert_true(buf_pool_used_bytes(bed.drive->drive.bufs) >=
                20 * (40 + 8) * BED_BLOCK);

    for (uint64_t i = 0; i < 20; i++) {
        bed_fill(data + (4000 + 40 * i) * BED_BLOCK, 4000 + 40 * i, 40, 2);
        assert_true(
            start_command(other, &there, 1, NVM_WRITE, 4000 + 40 * i, 40));
    }
    let_pass(MS_NS);
    assert_int_equal(there.done, 0);
    medium_release(&bed.medium);
    let_pass(MS_NS);
    assert_int_equal(there.done, 20);
    assert_int_equal(there.failed + there.lost, 0);
    for (uint64_t i = 0; i < 20; i++) {
        expect_on_medium(4000 + 40 * i, 40, 2);
        /* The medium had these writes already. */
        expect_on_medium(1000 + 8 * i, 8, 1);
    }
    host_disconnect(other);
    bed_expect_idle(&bed);
    free(other);
}

static bool is_ready(void)
{
    uint64_t value;

    assert_int_equal(
        host_property_get(&bed.host->host, PROPERTY_CSTS, 4, &value), 0);
    return value & CSTS_RDY;
}

/* Data written before a reset must not replace data written after it. */
static void test_a_reset_waits_for_the_medium(void **state)
{
    struct tally tally = {0};
    struct host_target target;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    target = bed.host->host.target;
    bed.medium.is_held = true;
    bed_fill(bed.host->data + 10 * BED_BLOCK, 10, 8, 1);
    assert_true(start_command(&bed.host->host, &tally, 1, NVM_WRITE, 10, 8));
    let_pass(MS_NS);
    assert_int_equal(host_property_set(&bed.host->host, PROPERTY_CC, 4, 0), 0);
    for (unsigned int i = 0; i < 10; i++) {
        let_pass(100 * MS_NS);
        assert_true(is_ready());
    }
    medium_release(&bed.medium);
    let_pass(MS_NS);
    assert_false(is_ready());
    expect_on_medium(10, 8, 1);
    host_disconnect(&bed.host->host);
    assert_int_equal(tally.lost, 1);
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    assert_int_equal(bed_write(&bed, 1, 10, 8, HOST_DATA_KEYED, true, 2), 0);
    expect_on_medium(10, 8, 2);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* Start as many reads as the queues hold; the medium begins none. */
static unsigned int flood_reads(struct nvme_host *host, struct tally *tally)
{
    unsigned int started = 0;

    for (uint16_t qid = 1; qid <= QUEUES; qid++) {
        while (start_command(host, tally, qid, NVM_READ, started % READS * MOST,
                             MOST)) {
            started++;
        }
    }
    return started;
}

/* The medium takes 512 commands, and the two hosts' shares of buffers are 848:
 * the rest waits in two queues. */
static void test_commands_wait_when_there_is_no_room(void **state)
{
    struct nvme_host *other = calloc(1, sizeof(*other));
    struct tally a = {0}, b = {0};
    unsigned int started;

    (void)state;
    for (uint32_t i = 0; i < READS; i++) {
        bed_fill(bed.medium.data + (size_t)i * MOST * BED_BLOCK, i * MOST, MOST,
                 7);
    }
    bed_connect(&bed, 0, QUEUES, 64);
    bed_connect_more(&bed, other, 0, QUEUES, 0);
    bed.medium.is_held = true;
    memset(bed.host->data, 0, BED_MEDIUM_BYTES);
    started = flood_reads(&bed.host->host, &a);
    assert_int_equal(started, flood_reads(other, &b));
    let_pass(10 * MS_NS);
    assert_int_equal(a.done + b.done, 0);
    assert_int_equal(transport_usage().requests, 2 * started);
    assert_int_equal(bed.medium.held_count, 512);
    assert_non_null(bed.drive->drive.target->wait_media.head);
    assert_true(nvmf_target_is_short(bed.drive->drive.target));
    medium_release(&bed.medium);
    let_pass(5000 * MS_NS);
    assert_int_equal(a.done, started);
    assert_int_equal(b.done, started);
    assert_int_equal(a.failed + a.lost + b.failed + b.lost, 0);
    assert_memory_equal(bed.host->data, bed.medium.data,
                        (size_t)started * MOST * BED_BLOCK);
    host_disconnect(&bed.host->host);
    host_disconnect(other);
    bed_expect_idle(&bed);
    free(other);
}

/* One host disconnects; the other falls silent, and its time-outs end it. */
static void test_hosts_end_while_their_commands_wait(void **state)
{
    struct nvme_host *other = calloc(1, sizeof(*other));
    struct tally a = {0}, b = {0};
    unsigned int started;

    (void)state;
    bed_provokes(&bed, BED_GONE);
    bed_connect(&bed, 0, QUEUES, 64);
    bed_connect_more(&bed, other, 0, QUEUES, 0);
    bed.medium.is_held = true;
    started = flood_reads(&bed.host->host, &a);
    flood_reads(other, &b);
    let_pass(10 * MS_NS);
    assert_int_equal(transport_usage().requests, 2 * started);
    assert_non_null(bed.drive->drive.target->wait_media.head);
    assert_true(nvmf_target_is_short(bed.drive->drive.target));
    host_disconnect(&bed.host->host);
    host_fall_silent(other);
    let_pass(10 * MS_NS);
    medium_release(&bed.medium);
    /* The silent host's admin queue ends with KATO. */
    let_pass(20000 * MS_NS);
    host_vanish(other);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 3, 9, HOST_DATA_KEYED, true, 5), 0);
    bed_expect(&bed, 1, 3, 9, HOST_DATA_KEYED, 5);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    free(other);
}

TEST_FIXTURE(setup, teardown)
