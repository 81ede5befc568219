/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects, writes, reads back and disconnects, once for each frame of the
 * exchange, with one fault at that frame: it is lost, doubled, delivered after
 * the next one ("later"), or corrupted.  Each run must have the same
 * result as a run without faults, in bounded time.
 *
 * A second part ("hail") applies all four faults at random.  There a connection
 * may break, but data must not be wrong, nothing may hang, and no resource may
 * stay in use.
 *
 * A failed run prints its parameters and writes sweep-<what>-<k>.pcap.
 */
#include "tests/native/echo_client.h"
#include "tests/test_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault { FAULT_NONE, FAULT_LOSE, FAULT_DOUBLE, FAULT_LATER, FAULT_CORRUPT };

static const char *const fault_name[] = {"none", "lose", "double", "later",
                                         "corrupt"};

enum {
    HAIL_SEEDS = 24,
    HAIL_PER_1000 = 20, /* faults per 1000 frames */
    IP_OFFSET = 14,
};
#define SCRIPT_LIMIT_NS UINT64_C(200000000000)
#define SETTLE_NS       UINT64_C(150000000000)

struct run {
    struct bed bed;
    enum fault fault;
    uint64_t k; /* number of the frame, or seed */
    bool is_hail;
    bool is_done;
    uint64_t random;
};

static struct run run;
static bool has_echo; /* the script uses the echo service */

static uint64_t next_random(void)
{
    run.random ^= run.random << 13;
    run.random ^= run.random >> 7;
    run.random ^= run.random << 17;
    return run.random;
}

static bool is_roce(const uint8_t *data, uint32_t len)
{
    bool is_v4 = len > 42 && data[12] == 0x08 && data[13] == 0x00;
    bool is_v6 = len > 62 && data[12] == 0x86 && data[13] == 0xdd;
    uint32_t udp = is_v4 ? 34 : 54;

    return (is_v4 || is_v6) && data[udp + 2] == 0x12 && data[udp + 3] == 0xb7;
}

/*
 * Flip one bit without changing the FCS.  Only RoCE frames are changed, which
 * have a checksum of their own; a frame without one, such as ARP, would be
 * dropped on a real link.
 */
static void flip_one_bit(uint8_t *data, uint32_t len)
{
    uint32_t at = (uint32_t)(next_random() % (len - IP_OFFSET)) + IP_OFFSET;

    if (is_roce(data, len)) {
        data[at] ^= (uint8_t)(1u << next_random() % 8);
    }
}

static enum cable_verdict apply_fault(enum fault fault, uint8_t *data,
                                      uint32_t len)
{
    switch (fault) {
    case FAULT_LOSE:
        return CABLE_DROP;
    case FAULT_DOUBLE:
        return CABLE_TWICE;
    case FAULT_LATER:
        return CABLE_LATER;
    case FAULT_CORRUPT:
        flip_one_bit(data, len);
        return CABLE_PASS;
    case FAULT_NONE:
        break;
    }
    return CABLE_PASS;
}

static enum cable_verdict filter_frame(void *ctx, unsigned int from,
                                       uint64_t number, uint8_t *data,
                                       uint32_t *len_bytes)
{
    (void)ctx;
    (void)from;
    if (run.is_hail) {
        if (next_random() % 1000 >= HAIL_PER_1000) {
            return CABLE_PASS;
        }
        return apply_fault((enum fault)(1 + next_random() % 4), data,
                           *len_bytes);
    }
    return number == run.k ? apply_fault(run.fault, data, *len_bytes)
                           : CABLE_PASS;
}

static void begin_run(enum fault fault, uint64_t k)
{
    struct cable *cable = &run.bed.cables[0];

    bed_init_echo(&run.bed, 1500, has_echo);
    if (fault != FAULT_NONE || run.is_hail) {
        bed_provokes(&run.bed, BED_FLIPS);
    }
    run.fault = fault;
    run.k = k;
    run.is_done = false;
    run.random = UINT64_C(0x2545f4914f6cdd1d) * (k + 1) + (uint64_t)fault;
    cable->is_capturing = true;
    cable->filter = filter_frame;
    cable->frames = 0;
}

static void end_run(void)
{
    run.is_done = true;
    bed_end(&run.bed);
}

/* After a failed run, print and save what is needed to find the cause. */
static int report_failed_run(void **state)
{
    char path[64];

    (void)state;
    if (run.is_done) {
        return 0;
    }
    snprintf(path, sizeof(path), "sweep-%s-%lu.pcap",
             run.is_hail ? "hail" : fault_name[run.fault],
             (unsigned long)run.k);
    print_message("failed: %s, %s %lu of %lu frames, at %lu ns\n",
                  run.is_hail ? "hail" : fault_name[run.fault],
                  run.is_hail ? "seed" : "frame", (unsigned long)run.k,
                  (unsigned long)run.bed.cables[0].frames,
                  (unsigned long)run.bed.world.now_ns);
    print_message("%s", machine_console(&run.bed.drive->machine));
    if (cable_write_pcap(&run.bed.cables[0], path)) {
        print_message("capture: %s\n", path);
    }
    bed_end(&run.bed);
    run.is_done = true;
    return 0;
}

/* ---- One fault: no layer above the transport may notice it. */

static void run_script(void)
{
    struct bed *bed = &run.bed;
    uint64_t start_ns = bed->world.now_ns;

    bed_connect(bed, 0, 1, 16);
    assert_int_equal(bed_write(bed, 1, 8, 8, HOST_DATA_IN_CAPSULE, false, 1),
                     0);
    assert_int_equal(bed_write(bed, 1, 100, 33, HOST_DATA_KEYED, true, 2), 0);
    assert_int_equal(bed_write(bed, 1, 200, 1, HOST_DATA_INVALIDATE, false, 3),
                     0);
    assert_int_equal(bed_flush(bed, 1), 0);
    bed_expect(bed, 1, 8, 8, HOST_DATA_KEYED, 1);
    bed_expect(bed, 1, 100, 33, HOST_DATA_INVALIDATE, 2);
    bed_expect(bed, 1, 200, 1, HOST_DATA_KEYED, 3);
    host_disconnect(&bed->host->host);
    native_world_pass(&bed->world, SETTLE_NS);
    bed_expect_idle(bed);
    assert_true(bed->world.now_ns - start_ns < SCRIPT_LIMIT_NS + SETTLE_NS);
}

/* READs from both sides, in several packets each. */
static void echo_script(void)
{
    struct bed *bed = &run.bed;
    uint64_t start_ns = bed->world.now_ns;
    struct echo_client c;

    echo_client_open(&c, bed, echo_client_memory(bed), 0);
    assert_int_equal(c.state, ECHO_CLIENT_LIVE);
    echo_client_ping(&c, 5000, 1);
    echo_client_ping(&c, 64, 2);
    assert_int_equal(echo_client_transfer(&c, VERBS_WR_WRITE, c.rep.write_rkey,
                                          c.rep.addr + 7, 5000),
                     VERBS_WC_SUCCESS);
    memset(c.sink, 0xa5, 5000);
    assert_int_equal(echo_client_transfer(&c, VERBS_WR_READ, c.rep.read_rkey,
                                          c.rep.addr + 7, 5000),
                     VERBS_WC_SUCCESS);
    assert_memory_equal(c.source, c.sink, 5000);
    echo_client_ping(&c, 1025, 3);
    echo_client_close(&c);
    native_world_pass(&bed->world, SETTLE_NS);
    bed_expect_idle(bed);
    assert_int_equal(bed->drive->drive.echo.counters.failed, 0);
    assert_true(bed->world.now_ns - start_ns < SCRIPT_LIMIT_NS + SETTLE_NS);
}

static uint64_t count_frames(void)
{
    uint64_t frames;

    begin_run(FAULT_NONE, 0);
    has_echo ? echo_script() : run_script();
    frames = run.bed.cables[0].frames;
    end_run();
    return frames;
}

static void sweep_fault(enum fault fault)
{
    uint64_t frames;

    run.is_hail = false;
    frames = count_frames();
    assert_true(frames > 50);
    for (uint64_t k = 0; k < frames; k++) {
        begin_run(fault, k);
        has_echo ? echo_script() : run_script();
        end_run();
    }
    print_message("%lu runs, each with another frame: %s\n",
                  (unsigned long)frames, fault_name[fault]);
}

static void test_hosts_recover_if_any_frame_is_lost(void **state)
{
    (void)state;
    sweep_fault(FAULT_LOSE);
}

static void test_hosts_recover_if_any_frame_is_doubled(void **state)
{
    (void)state;
    sweep_fault(FAULT_DOUBLE);
}

static void test_hosts_recover_if_any_frame_is_delivered_after_the_next(
    void **state)
{
    (void)state;
    sweep_fault(FAULT_LATER);
}

static void test_hosts_recover_if_any_frame_is_corrupted(void **state)
{
    (void)state;
    sweep_fault(FAULT_CORRUPT);
}

static void test_echo_recovers_if_any_frame_is_lost_doubled_late_or_corrupted(
    void **state)
{
    (void)state;
    has_echo = true;
    sweep_fault(FAULT_LOSE);
    sweep_fault(FAULT_DOUBLE);
    sweep_fault(FAULT_LATER);
    sweep_fault(FAULT_CORRUPT);
    has_echo = false;
}

/* ---- Many faults: connections may break, but data must not be wrong. */

static bool try_connect(struct bed *bed)
{
    struct host_target target;

    if (!native_target(bed->host, bed->drive, 0, &target)) {
        return false;
    }
    target.depth = 16;
    return host_connect(&bed->host->host, &target) == 0;
}

/* @return false when the connection has ended */
static bool write_and_check(struct bed *bed, uint32_t round)
{
    static uint8_t expected[64 * BED_BLOCK];
    uint32_t blocks = 1 + (uint32_t)(next_random() % 64);
    uint64_t lba = next_random() % 4096;
    uint16_t status =
        bed_write(bed, 1, lba, blocks, HOST_DATA_KEYED, false, round);

    if (status == HOST_LOST) {
        return false;
    }
    assert_int_equal(status, 0);
    status = bed_read(bed, 1, lba, blocks, HOST_DATA_INVALIDATE);
    if (status == HOST_LOST) {
        return false;
    }
    assert_int_equal(status, 0);
    bed_fill(expected, lba, blocks, round);
    assert_memory_equal(bed->host->data, expected, (size_t)blocks * BED_BLOCK);
    return true;
}

static void test_many_faults_lose_no_data(void **state)
{
    unsigned int rounds = 0, breaks = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= HAIL_SEEDS; seed++) {
        struct bed *bed = &run.bed;

        run.is_hail = true;
        begin_run(FAULT_NONE, seed);
        if (try_connect(bed)) {
            for (uint32_t round = 1; round <= 20; round++) {
                if (!write_and_check(bed, round)) {
                    breaks++;
                    break;
                }
                rounds++;
            }
        } else {
            breaks++;
        }
        host_disconnect(&bed->host->host);
        native_world_pass(&bed->world, SETTLE_NS);
        bed_expect_idle(bed);
        end_run();
    }
    print_message("%u rounds, %u connections broken\n", rounds, breaks);
    assert_true(rounds > 100);
}

TEST_FIXTURE(NULL, report_failed_run)
