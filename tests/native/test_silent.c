/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that fall silent while the drive fetches their data, as others see it:
 * the other path of the same host, and other hosts.  Virtual time.
 */
#include "bed_fixture.h"

#include "lib/bytes.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/rdma/rdma_transport.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/opcode.h"
#include "nvmeof/wire/reservation.h"
#include "tests/test_fixture.h"

#define MS_NS    UINT64_C(1000000)
#define LIMIT_NS (NVMF_PATIENCE_S * 1000 * MS_NS)

enum {
    LONG_BLOCKS = 64,
    WRITES = 40, /* commands that a host leaves behind */
    KEY_A = 0xa,
    KEY_B = 0xb,
};

static struct nvme_host other; /* through port 0; the bed's is on port 1 */

/* @param is_same  whether both are paths of one host */
static void connect_both(bool is_same, uint8_t ack_timeout)
{
    struct host_target target;

    bed_connect(&bed, 1, 1, 64);
    native_host_add(bed.host, &other, 1);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.ack_timeout = ack_timeout;
    target.hostid[0] ^= is_same ? 0 : 1;
    assert_int_equal(host_connect(&other, &target), 0);
}

static void ignore_result(void *ctx, const struct host_result *result)
{
    (void)ctx;
    (void)result;
}

static void submit_write(uint64_t lba, uint32_t blocks, uint32_t offset)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = NVM_WRITE,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = lba,
        .blocks = blocks,
        .offset = offset,
        .len_bytes = blocks * BED_BLOCK,
        .done = ignore_result,
    };

    assert_true(host_io_submit(&other, &io));
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
}

static unsigned int count_fetching(void)
{
    const struct drive *drive = &bed.drive->drive;
    struct nvmf_request_info info;
    unsigned int count = 0;

    for (uint32_t i = 0; i < RDMA_REQUESTS; i++) {
        count += nvmf_target_request_info(
                     drive->target, rdma_transport_request(drive->rdma, i),
                     bed.world.now_ns / 1000, &info) &&
                 strcmp(info.state, "fetching") == 0;
    }
    return count;
}

/* The drive has asked for the data, which nobody has sent yet. */
static void run_until_fetching(void)
{
    for (unsigned int i = 0; i < 100000 && count_fetching() == 0; i++) {
        if (!native_world_step(&bed.world)) {
            native_world_pass(&bed.world, 100);
        }
    }
    assert_true(count_fetching() != 0);
}

static uint32_t used_bytes(void)
{
    return buf_pool_used_bytes(bed.drive->drive.bufs);
}

/*
 * The READ response for a write is held up in the network.  Its host has ended
 * the queue pair, repeats the write through the other path, writes newer data,
 * and both are acknowledged.  Then the response arrives.
 */
static void test_a_late_read_response_overwrites_nothing(void **state)
{
    struct cable_lane *lane = &bed.cables[0].lane[1];
    uint64_t start_ns;

    (void)state;
    connect_both(true, 18);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 1), 0);
    bed_fill(bed.host->data, 0, 8, 2);
    submit_write(0, 8, 0);
    run_until_fetching();
    lane->is_held = true;
    native_world_pass(&bed.world, MS_NS);
    assert_true(lane->put != lane->get); /* the response is under way */
    bed_provokes(&bed, BED_GONE);
    host_fall_silent(&other);
    start_ns = bed.world.now_ns;
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 3), 0);
    assert_true(bed.world.now_ns - start_ns <= LIMIT_NS);
    print_message("the newer write took %llu ms\n",
                  (unsigned long long)((bed.world.now_ns - start_ns) / MS_NS));
    lane->is_held = false;
    native_world_pass(&bed.world, 100 * MS_NS);
    bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 3);
    host_vanish(&other);
}

/* The response is only slow: nothing ends, and the order is that of the
 * commands. */
static void test_a_slow_path_keeps_its_connection(void **state)
{
    struct cable_lane *lane = &bed.cables[0].lane[1];

    (void)state;
    connect_both(true, 18);
    for (uint32_t i = 0; i < 5; i++) {
        const struct host_io newer = {
            .qid = 1,
            .opcode = NVM_WRITE,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = 0,
            .blocks = 8,
            .offset = 8 * BED_BLOCK,
            .len_bytes = 8 * BED_BLOCK,
            .done = ignore_result,
        };

        bed_fill(bed.host->data, 0, 8, 10 + i);
        bed_fill((uint8_t *)bed.host->data + 8 * BED_BLOCK, 0, 8, 20 + i);
        submit_write(0, 8, 0);
        run_until_fetching();
        lane->is_held = true;
        assert_true(host_io_submit(&bed.host->host, &newer));
        native_world_pass(&bed.world, 500 * MS_NS);
        lane->is_held = false;
        native_world_pass(&bed.world, 500 * MS_NS);
        bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 20 + i);
    }
    assert_false(host_is_broken(&other));
    assert_false(host_is_broken(&bed.host->host));
    host_disconnect(&other);
}

static void reserve_ns(struct nvme_host *host, uint64_t key, uint8_t opcode,
                       uint32_t cdw10, uint64_t key2)
{
    uint8_t data[RESERVATION_KEYS_LEN];
    const struct nvme_sqe sqe = {
        .opcode = opcode, .nsid = BED_NSID, .cdw10 = cdw10};

    put_le64(data, key);
    put_le64(data + 8, key2);
    assert_int_equal(host_command(host, 1, &sqe, data, sizeof(data)), 0);
}

/* The ACK time-outs that the silent host has asked for: 67 ms, 1.07 s, 2.4
 * hours. */
static const uint8_t ack_timeouts[] = {14, 18, 31};

/* It leaves writes behind whose data the drive fetches, and has no keep-alive
 * time-out. */
static void fall_silent(void)
{
    for (uint32_t i = 0; i < WRITES; i++) {
        submit_write((uint64_t)i * LONG_BLOCKS, LONG_BLOCKS, 0);
    }
    run_until_fetching();
    bed_provokes(&bed, BED_GONE);
    host_fall_silent(&other);
}

static void expect_all_came_back(uint64_t start_ns)
{
    uint64_t took_ns = bed.world.now_ns - start_ns;

    print_message("answered after %llu ms\n",
                  (unsigned long long)(took_ns / MS_NS));
    assert_true(took_ns <= LIMIT_NS + 100 * MS_NS);
    native_world_pass(&bed.world, 100 * MS_NS);
    assert_int_equal(used_bytes(), 0);
    assert_int_equal(
        bed_write(&bed, 1, 0, LONG_BLOCKS, HOST_DATA_KEYED, false, 7), 0);
    bed_expect(&bed, 1, 0, LONG_BLOCKS, HOST_DATA_KEYED, 7);
    host_vanish(&other);
}

static void test_preempt_and_abort_is_answered_beside_a_silent_host(
    void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ack_timeouts); i++) {
        uint64_t start_ns;

        connect_both(false, ack_timeouts[i]);
        reserve_ns(&other, 0, NVM_RESERVATION_REGISTER, 0, KEY_A);
        reserve_ns(&bed.host->host, 0, NVM_RESERVATION_REGISTER, 0, KEY_B);
        reserve_ns(&other, KEY_A, NVM_RESERVATION_ACQUIRE,
                   RTYPE_WRITE_EXCLUSIVE << RESERVATION_RTYPE_SHIFT, 0);
        fall_silent();
        assert_true(used_bytes() != 0);
        start_ns = bed.world.now_ns;
        reserve_ns(&bed.host->host, KEY_B, NVM_RESERVATION_ACQUIRE,
                   RTYPE_WRITE_EXCLUSIVE << RESERVATION_RTYPE_SHIFT |
                       RACQA_PREEMPT_AND_ABORT,
                   KEY_A);
        expect_all_came_back(start_ns);
        bed_end(&bed);
        bed_init(&bed, 1500);
    }
}

static void test_a_format_is_not_held_up_by_a_silent_host(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ack_timeouts); i++) {
        const struct nvme_sqe sqe = {.opcode = ADMIN_FORMAT_NVM,
                                     .nsid = BED_NSID};
        uint64_t start_ns;

        connect_both(false, ack_timeouts[i]);
        fall_silent();
        start_ns = bed.world.now_ns;
        assert_int_equal(host_command(&bed.host->host, 0, &sqe, NULL, 0), 0);
        expect_all_came_back(start_ns);
        bed_end(&bed);
        bed_init(&bed, 1500);
    }
}

TEST_FIXTURE(setup, teardown)
