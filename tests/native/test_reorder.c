/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link that swaps a quarter of the host's frames with the next frame, and 4
 * KiB writes in capsules of five packets. The drive requests dropped packets at
 * once, so that the host seldom waits for its ACK timer.
 */
#include "bed_fixture.h"

#include "hw-model/regs/rnic.h"
#include "tests/test_fixture.h"

enum {
    MAX_DEPTH = 8,
    WRITES = 2000,
    BLOCKS = 4096 / BED_BLOCK,
};

static struct {
    uint32_t random;
    unsigned int depth; /* Writes outstanding. */
    unsigned int swapped, done, failed;
} seen;

/* End 0 is the drive's: only the host's frames are reordered. */
static enum cable_verdict swap_frames(void *ctx, unsigned int from,
                                      uint64_t number, uint8_t *data,
                                      uint32_t *len_bytes)
{
    (void)ctx;
    (void)number;
    (void)data;
    (void)len_bytes;
    seen.random = seen.random * 1664525 + 1013904223;
    if (from != 1 || seen.random >> 30 != 0) {
        return CABLE_PASS;
    }
    seen.swapped++;
    return CABLE_LATER;
}

static void count_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    seen.done++;
    seen.failed += result->is_lost || result->cqe.status != 0;
}

static void start_write(unsigned int number)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_WRITE,
        .kind = HOST_DATA_IN_CAPSULE,
        .nsid = BED_NSID,
        .lba = number % 512 * BLOCKS,
        .blocks = BLOCKS,
        .offset = number % MAX_DEPTH * 4096,
        .len_bytes = 4096,
        .done = count_result,
    };

    assert_true(host_io_submit(&bed.host->host, &io));
    verbs_flush(&bed.host->net.verbs);
}

static bool may_start(void *ctx)
{
    const unsigned int *started = ctx;

    return *started - seen.done < seen.depth;
}

static uint64_t host_count(enum rnic_counter counter)
{
    return rnic_counter_read(&bed.host->net.verbs, counter);
}

static void write_reordered(unsigned int depth, unsigned int max_timeouts)
{
    unsigned int started = 0;

    bed_connect(&bed, 0, 1, 64);
    seen.depth = depth;
    seen.random = 1;
    seen.swapped = seen.done = seen.failed = 0;
    bed.cables[0].filter = swap_frames;
    while (started < WRITES) {
        bed.host->sleep.is_asleep = false;
        assert_true(native_world_run(&bed.world, may_start, &started,
                                     UINT64_C(10000000000)));
        start_write(started++);
    }
    bed.host->sleep.is_asleep = false;
    native_world_pass(&bed.world, UINT64_C(1000000000));
    assert_int_equal(seen.done, WRITES);
    assert_int_equal(seen.failed, 0);
    assert_true(seen.swapped > WRITES / 2);
    assert_true(host_count(RNIC_COUNT_RX_NAK) > 100);
    assert_true(host_count(RNIC_COUNT_TIMEOUTS) <= max_timeouts);
    bed.cables[0].filter = NULL;
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/*
 * No packet follows a write that would reveal a gap among its last packets. The
 * remaining time-outs are of packets that were repeated and swapped again: a
 * responder sends only one NAK for a gap.
 */
static void test_one_write_at_a_time_seldom_waits_for_the_timer(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    write_reordered(1, WRITES / 10);
}

static void test_eight_writes_at_a_time_wait_for_no_timer(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    write_reordered(MAX_DEPTH, 0);
}

TEST_FIXTURE(setup, teardown)
