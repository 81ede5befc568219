/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of writes to the same blocks. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/internal.h"
#include "tests/test_fixture.h"

struct host {
    uint16_t admin, io;
};

static struct host make_host(struct fake *fake)
{
    struct host host = {.admin = fake_host(fake, 0)};

    host.io = fake_io_queue(fake, host.admin, 1);
    return host;
}

static struct fake_request *send_write(struct fake *fake, uint16_t io,
                                       uint64_t lba, uint32_t blocks,
                                       uint8_t *data)
{
    struct nvme_sqe sqe = fake_rw(NVM_WRITE, lba, blocks);
    struct fake_request *request =
        fake_send(fake, io, &sqe, data, blocks * 512);

    fake_run(fake);
    return request;
}

static bool is_waiting(const struct fake_request *request)
{
    return request->req.state == NVMF_REQUEST_WAIT_TURN;
}

/* Complete the newest media operation first, as a medium may. */
static void run_newest_media(struct fake *fake)
{
    struct media_io newest = fake->media[--fake->media_count];

    memmove(fake->media + 1, fake->media,
            fake->media_count * sizeof(fake->media[0]));
    fake->media[0] = newest;
    fake->media_count++;
    fake_run_media(fake);
}

/*
 * A write of host A is stalled in the medium.  A's host fails over to another
 * association, writes the block again and goes on with newer data.
 */
static void expect_no_old_write_wins(struct fake *fake, bool is_known)
{
    struct host a = make_host(fake), b = make_host(fake);
    struct fake_request *again, *newer;
    uint8_t old[512], new[512];

    memset(old, 1, sizeof(old));
    memset(new, 2, sizeof(new));
    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, old);
    if (is_known) {
        assert_false(nvmf_qpair_closed(fake->target, a.io));
        fake_close(fake, a.admin);
    }
    again = send_write(fake, b.io, 7, 1, old);
    newer = send_write(fake, b.io, 7, 1, new);
    assert_true(is_waiting(again));
    assert_true(is_waiting(newer));
    run_newest_media(fake);
    assert_false(is_waiting(again));
    /* These two come from one controller; their host waits for the first. */
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(again->cqe.status, 0);
    assert_int_equal(newer->cqe.status, 0);
    assert_int_equal(fake->blocks[0][7 * 512], 2);
    assert_int_equal(fake->target->order.count, 0);
}

static void test_an_old_write_does_not_overwrite_a_newer_one(void **state)
{
    expect_no_old_write_wins(*state, true);
}

static void test_that_holds_before_the_drive_knows_of_the_loss(void **state)
{
    expect_no_old_write_wins(*state, false);
}

static void test_other_blocks_and_other_namespaces_do_not_wait(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct nvme_sqe other = fake_rw(NVM_WRITE, 7, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 7, 1);

    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_false(is_waiting(send_write(fake, b.io, 6, 1, fake->data)));
    assert_false(is_waiting(send_write(fake, b.io, 8, 1, fake->data)));
    assert_false(is_waiting(send_write(fake, a.io, 7, 1, fake->data)));
    other.nsid = 2;
    assert_false(is_waiting(fake_send(fake, b.io, &other, fake->data, 512)));
    fake_run(fake);
    assert_int_equal(fake->media_count, 5);
    assert_false(is_waiting(fake_send(fake, b.io, &read, fake->data, 512)));
    assert_true(is_waiting(send_write(fake, b.io, 6, 2, fake->data)));
    fake->hold_media = false;
    fake_run(fake);
}

/* Every command that changes blocks takes part. */
static void test_all_writing_commands_wait_for_each_other(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    static const uint8_t opcodes[] = {NVM_WRITE, NVM_WRITE_ZEROES,
                                      NVM_DATASET_MANAGEMENT, NVM_COPY};
    uint8_t data[2][ARRAY_LEN(opcodes)][512];

    memset(data, 0, sizeof(data));
    for (size_t i = 0; i < ARRAY_LEN(opcodes) * ARRAY_LEN(opcodes); i++) {
        struct fake_request *request[2];

        fake->hold_media = true;
        for (unsigned int k = 0; k < 2; k++) {
            uint8_t opcode = opcodes[k == 0 ? i / ARRAY_LEN(opcodes)
                                            : i % ARRAY_LEN(opcodes)];
            struct nvme_sqe sqe = fake_rw(opcode, 600, 1);
            uint32_t len = 512;

            if (opcode == NVM_DATASET_MANAGEMENT) {
                sqe.cdw10 = 1;
                sqe.cdw11 = 4;
                put_le32(data[k][2] + 4, 1);
                put_le64(data[k][2] + 8, 700);
                put_le32(data[k][2] + 20, 1);
                put_le64(data[k][2] + 24, 600);
            } else if (opcode == NVM_COPY) {
                len = 32;
                put_le64(data[k][3] + 8, 100);
            } else if (opcode == NVM_WRITE_ZEROES) {
                len = 0;
            }
            request[k] = fake_send(fake, k == 0 ? a.io : b.io, &sqe,
                                   data[k][opcode == NVM_DATASET_MANAGEMENT ? 2
                                           : opcode == NVM_COPY             ? 3
                                                                : 0],
                                   len);
            fake_run(fake);
        }
        assert_int_equal(fake->media_count, 1);
        assert_true(is_waiting(request[1]));
        fake->hold_media = false;
        fake_run(fake);
        assert_int_equal(request[0]->cqe.status, 0);
        assert_int_equal(request[1]->cqe.status, 0);
        assert_int_equal(fake->target->order.count, 0);
    }
}

static void test_a_waiting_write_is_dropped_with_its_queue(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_true(is_waiting(send_write(fake, b.io, 7, 1, fake->data)));
    assert_int_equal(fake->target->order.count, 2);
    fake_close(fake, b.io);
    assert_int_equal(fake->target->order.count, 1);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->target->order.count, 0);
}

static void test_abort_ends_a_waiting_write(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct fake_request *waiting;
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT};
    struct nvme_cqe cqe;

    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    waiting = send_write(fake, b.io, 7, 1, fake->data);
    abort.cdw10 = (uint32_t)waiting->req.sqe.cid << 16 | 1;
    cqe = fake_exec(fake, b.admin, &abort, NULL, 0);
    assert_int_equal(cqe.dw0, 0);
    assert_int_equal(waiting->cqe.status, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(fake->target->order.count, 1);
}

/* A queue of the same controller that is connected again. */
static void test_a_new_queue_waits_for_the_old_one(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake);
    uint16_t again;

    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_false(nvmf_qpair_closed(fake->target, a.io));
    again = fake_io_queue(fake, a.admin, 2);
    assert_true(is_waiting(send_write(fake, again, 7, 1, fake->data)));
    fake->hold_media = false;
    fake_run(fake);
}

/*
 * Random writes of several hosts, with a medium that completes in any order:
 * two writes to a block that came from different hosts reach it in the order
 * in which they came.
 */
static void test_random_writes_keep_their_order(void **state)
{
    struct fake *fake = *state;
    struct host host[4];
    static uint8_t last_owner[FAKE_BLOCKS];
    static uint32_t last[FAKE_BLOCKS];
    static uint8_t data[64][40 * 512];
    unsigned int waits = 0;

    for (size_t i = 0; i < ARRAY_LEN(host); i++) {
        host[i] = make_host(fake);
    }
    srand(11);
    for (uint32_t round = 1; round <= 12; round++) {
        memset(last, 0, sizeof(last));
        fake->hold_media = true;
        for (uint32_t i = 1; i < 64; i++) {
            uint8_t owner = (uint8_t)(rand() % 4);
            uint32_t blocks = 1 + (uint32_t)rand() % 40;
            uint32_t lba = (uint32_t)rand() % 200;
            struct fake_request *request;

            memset(data[i], (int)i, blocks * 512);
            request = send_write(fake, host[owner].io, lba, blocks, data[i]);
            waits += is_waiting(request);
            for (uint32_t b = lba; b < lba + blocks; b++) {
                /* Writes of one host have no order: either may win. */
                if (last[b] != 0 && last_owner[b] == owner) {
                    last[b] = UINT32_MAX;
                } else if (last[b] != UINT32_MAX || last_owner[b] != owner) {
                    last[b] = i;
                }
                last_owner[b] = owner;
            }
        }
        while (fake->media_count > 0) {
            if (rand() % 2 == 0) {
                run_newest_media(fake);
            } else {
                fake_run_media(fake);
            }
        }
        fake->hold_media = false;
        fake_run(fake);
        for (uint32_t b = 0; b < FAKE_BLOCKS; b++) {
            if (last[b] != 0 && last[b] != UINT32_MAX) {
                assert_int_equal(fake->blocks[0][b * 512], last[b]);
            }
        }
        assert_int_equal(fake->target->order.count, 0);
    }
    assert_true(waits > 100);
}

/* A long write is found by short ones, and short ones by a long one. */
static void test_writes_of_any_length_find_each_other(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct nvmf_target *target = fake->target;
    static const struct {
        uint64_t first, count;
    } ranges[] = {
        {0, 1},         {2047, 1},           {2047, 2},      {2048, 2048},
        {4095, 1},      {4095, 2048},        {0, 65536},     {6144, 100000},
        {131071, 1},    {131072, 1},         {65535, 65536}, {0, 1u << 30},
        {126976, 2048}, {(1u << 30) - 1, 1}, {1u << 30, 1},  {131072, 2048},
    };
    struct nvmf_request old = {.qpair = a.io, .sqe.nsid = 1},
                        new = {.qpair = b.io, .sqe.nsid = 1};

    old.owner = target->qpair[a.io].ctrl;
    new.owner = target->qpair[b.io].ctrl;
    for (size_t i = 0; i < ARRAY_LEN(ranges) * ARRAY_LEN(ranges); i++) {
        size_t o = i / ARRAY_LEN(ranges), n = i % ARRAY_LEN(ranges);
        bool overlaps = ranges[o].first < ranges[n].first + ranges[n].count &&
                        ranges[n].first < ranges[o].first + ranges[o].count;

        old.state = new.state = NVMF_REQUEST_EXECUTING;
        assert_true(
            order_enter_list(target, &old, ranges[o].first, ranges[o].count));
        if (order_enter_list(target, &new, ranges[n].first, ranges[n].count) ==
            overlaps) {
            fail_msg("ranges %zu and %zu", o, n);
        }
        if (overlaps) {
            target->order.waiting = (struct nvmf_queue){0};
        }
        order_leave(target, &new);
        order_leave(target, &old);
        assert_int_equal(target->order.count, 0);
    }
}

/* Writes that are at the medium before the second controller exists. */
static void test_a_second_controller_waits_for_writes_of_before(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b;
    struct nvme_sqe zeroes = fake_rw(NVM_WRITE_ZEROES, 20, 4);
    struct nvme_sqe read = fake_rw(NVM_READ, 40, 1);

    fake->media_room = 2;
    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    (void)fake_send(fake, a.io, &zeroes, NULL, 0);
    (void)fake_send(fake, a.io, &read, fake->data, 512);
    (void)send_write(fake, a.io, 30, 2, fake->data); /* waits for the medium */
    assert_int_equal(fake->target->order.count, 0);
    fake->media_room = FAKE_OPS;
    b = make_host(fake);
    assert_int_equal(fake->target->order.count, 3);
    assert_true(is_waiting(send_write(fake, b.io, 7, 1, fake->data)));
    assert_true(is_waiting(send_write(fake, b.io, 23, 1, fake->data)));
    assert_true(is_waiting(send_write(fake, b.io, 31, 1, fake->data)));
    assert_false(is_waiting(send_write(fake, b.io, 24, 1, fake->data)));
    assert_false(is_waiting(send_write(fake, b.io, 40, 1, fake->data)));
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->target->order.count, 0);
    assert_true(fake->target->order.is_kept);
    fake_close(fake, b.io);
    fake_close(fake, b.admin);
    assert_false(fake->target->order.is_kept);
}

TEST_FIXTURE(fake_setup, fake_teardown)
