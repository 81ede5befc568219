/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of writes to the same blocks. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/io/io.h"
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

/* All hosts that make_host() makes are one host with several controllers. */
static struct host make_other_host(struct fake *fake)
{
    struct host host;

    fake->hostid = 0x77;
    host = make_host(fake);
    fake->hostid = 0;
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
    assert_int_equal(fake->target->arrivals.count, 2);
    fake_close(fake, b.io);
    assert_int_equal(fake->target->arrivals.count, 1);
    assert_int_equal(fake->target->order.count, 1);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->target->order.count, 0);
}

static void test_another_hosts_write_waits_with_its_data(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_other_host(fake);

    fake->hold_media = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_true(is_waiting(send_write(fake, b.io, 7, 1, fake->data)));
    assert_int_equal(fake->target->order.count, 2);
    assert_int_equal(fake->target->arrivals.count, 0);
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

/* ---- Two paths of one host. */

static void pass_seconds(struct fake *fake, unsigned int seconds)
{
    for (unsigned int i = 0; i < 4 * seconds; i++) {
        fake->now_us += 250000;
        (void)nvmf_target_timer(fake->target, fake->now_us);
        fake_run(fake);
    }
}

static unsigned int times_disconnected(const struct fake *fake, uint16_t qpair)
{
    unsigned int times = 0;

    for (unsigned int i = 0; i < fake->disconnect_count; i++) {
        times += fake->disconnected[i] == qpair;
    }
    return times;
}

/* The queue pair of the oldest fetch has ended, as its transport says. */
static void fail_fetch_of(struct fake *fake, uint16_t qpair)
{
    assert_false(nvmf_qpair_closed(fake->target, qpair));
    assert_int_equal(fake->fetch[0]->qpair, qpair);
    fake->fail_fetch = true;
    fake_run_fetch(fake);
    fake->fail_fetch = false;
}

/*
 * The data of a write are held up in the network.  Its host has ended the queue
 * pair, which the drive does not know, and writes newer data through its other
 * path.
 */
static void test_a_write_waits_for_the_data_of_an_earlier_one(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct fake_request *newer;
    uint8_t old[512], new[512];

    memset(old, 1, sizeof(old));
    memset(new, 2, sizeof(new));
    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, old);
    newer = send_write(fake, b.io, 7, 1, new);
    assert_true(is_waiting(newer));
    assert_int_equal(fake->fetch_count, 1);
    pass_seconds(fake, 8);
    fake_run_fetch(fake); /* the old data come at last */
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(newer->cqe.status, 0);
    assert_int_equal(fake->blocks[0][7 * 512], 2);
    assert_int_equal(fake->target->arrivals.count, 0);
    assert_int_equal(fake->disconnect_count, 0);
}

/* The data never come: the queue pair ends after the drive's limit. */
static void expect_end_after_limit(struct fake *fake, struct host a,
                                   const struct fake_request *waiting)
{
    assert_true(is_waiting(waiting));
    pass_seconds(fake, NVMF_PATIENCE_S - 2);
    assert_int_equal(fake->disconnect_count, 0);
    pass_seconds(fake, 3);
    assert_true(times_disconnected(fake, a.io) >= 2); /* without its peer */
    assert_int_equal(times_disconnected(fake, a.io), fake->disconnect_count);
    fail_fetch_of(fake, a.io);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_true(waiting->is_answered);
    assert_int_equal(waiting->cqe.status, 0);
    assert_int_equal(fake->target->arrivals.count, 0);
    assert_int_equal(fake->target->order.count, 0);
}

static void test_a_queue_pair_whose_data_never_come_ends(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    expect_end_after_limit(fake, a, send_write(fake, b.io, 7, 1, fake->data));
}

/*
 * Two writes wait too long: one for a path whose data come slowly, the other
 * one for a path that is silent.  Only the silent path ends.
 */
static void test_each_write_that_waits_too_long_is_looked_at(void **state)
{
    struct fake *fake = *state;
    struct host slow = make_host(fake), silent = make_host(fake),
                b = make_host(fake);
    uint8_t data[32 * 512] = {0};

    fake->window_max = 8192;
    fake->hold_fetch = true;
    (void)send_write(fake, slow.io, 100, 32, data);
    (void)send_write(fake, silent.io, 7, 1, data);
    assert_true(is_waiting(send_write(fake, b.io, 120, 1, data)));
    assert_true(is_waiting(send_write(fake, b.io, 7, 1, data)));
    pass_seconds(fake, NVMF_PATIENCE_S - 2);
    assert_int_equal(fake->fetch[0]->qpair, slow.io);
    fake_run_fetch(fake); /* its first window */
    assert_int_equal(fake->disconnect_count, 0);
    pass_seconds(fake, 3);
    assert_true(times_disconnected(fake, silent.io) >= 2);
    assert_int_equal(times_disconnected(fake, silent.io),
                     fake->disconnect_count);
    fail_fetch_of(fake, silent.io);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(fake->target->arrivals.count, 0);
}

/* The first path is lost before the second one exists. */
static void test_a_new_path_waits_for_data_of_before(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b;

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_int_equal(fake->target->arrivals.count, 0);
    fake->fetch_count = 0; /* those of Connect can be fetched */
    fake->hold_fetch = false;
    b = make_host(fake);
    assert_int_equal(fake->target->arrivals.count, 1);
    assert_true(is_waiting(send_write(fake, b.io, 7, 1, fake->data)));
}

/* A pause of the drive counts as one check, however long it was. */
static void test_a_pause_of_the_drive_ends_no_queue_pair(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    (void)send_write(fake, b.io, 7, 1, fake->data);
    pass_seconds(fake, 1);
    fake->now_us += 60000000;
    pass_seconds(fake, 1);
    assert_int_equal(fake->disconnect_count, 0);
    fake->hold_fetch = false;
    fake_run(fake);
}

/* When the drive ends a queue pair, the data that it lacks cannot reach the
 * medium any more. */
static void test_nobody_waits_for_data_of_a_queue_pair_that_ends(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct fake_request *newer;
    uint8_t old[512], new[512];

    memset(old, 1, sizeof(old));
    memset(new, 2, sizeof(new));
    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, old);
    newer = send_write(fake, b.io, 7, 1, new);
    qpair_disconnect(fake->target, a.io);
    (void)nvmf_target_timer(fake->target, fake->now_us);
    assert_false(is_waiting(newer));
    assert_int_equal(fake->fetch_count, 2);
    fake->hold_fetch = false;
    fake_run(fake); /* the data of the old write come first */
    assert_int_equal(newer->cqe.status, 0);
    assert_int_equal(fake->blocks[0][7 * 512], 2);
}

static void test_hosts_do_not_wait_for_each_others_data(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_other_host(fake);

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    assert_false(is_waiting(send_write(fake, b.io, 7, 1, fake->data)));
    assert_int_equal(fake->fetch_count, 2);
    fake->hold_fetch = false;
    fake_run(fake);
}

/* The later windows of a write count from the arrival of its command, too. */
static void test_a_write_waits_for_all_windows_of_an_earlier_one(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct fake_request *newer;
    uint8_t old[32 * 512], new[512];

    memset(old, 1, sizeof(old));
    memset(new, 2, sizeof(new));
    fake->window_max = 8192;
    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 100, 32, old);
    fake_run_fetch(fake);
    fake_run(fake); /* the first window is at the medium, the other is not */
    newer = send_write(fake, b.io, 120, 1, new);
    assert_true(is_waiting(newer));
    assert_true(is_waiting(send_write(fake, b.io, 100, 1, new)));
    assert_false(is_waiting(send_write(fake, b.io, 132, 1, new)));
    fake->hold_fetch = false;
    fake_run(fake);
    assert_true(newer->is_answered);
    assert_int_equal(fake->blocks[0][120 * 512], 2);
    assert_int_equal(fake->blocks[0][121 * 512], 1);
    assert_int_equal(fake->target->arrivals.count, 0);
}

/* A command of each kind that changes blocks, at block 600. */
enum { KINDS = 5, FUSED_KIND = 4 };

static struct fake_request *send_kind(struct fake *fake, uint16_t io,
                                      unsigned int kind, bool in_capsule)
{
    static const uint8_t opcodes[KINDS] = {NVM_WRITE, NVM_WRITE_ZEROES,
                                           NVM_DATASET_MANAGEMENT, NVM_COPY,
                                           NVM_WRITE};
    static uint8_t data[KINDS][512];
    struct nvme_sqe sqe = fake_rw(opcodes[kind], 600, 1);
    uint32_t len = 512;

    memset(data[kind], 0, sizeof(data[kind]));
    if (opcodes[kind] == NVM_DATASET_MANAGEMENT) {
        sqe.cdw10 = 0;
        sqe.cdw11 = 4;
        put_le32(data[kind] + 4, 1);
        put_le64(data[kind] + 8, 600);
        len = 16;
    } else if (opcodes[kind] == NVM_COPY) {
        len = 32;
        put_le64(data[kind] + 8, 100);
    } else if (opcodes[kind] == NVM_WRITE_ZEROES) {
        return fake_send(fake, io, &sqe, NULL, 0);
    } else if (kind == FUSED_KIND) {
        struct nvme_sqe first = fake_rw(NVM_COMPARE, 600, 1);

        first.fuse = 1;
        sqe.fuse = 2;
        (void)fake_send(fake, io, &first, fake->blocks[0] + 600 * 512, 512);
    }
    return in_capsule ? fake_send_in_capsule(fake, io, &sqe, data[kind], len)
                      : fake_send(fake, io, &sqe, data[kind], len);
}

static int setup_spare(void **state)
{
    struct fake *fake = fake_new();

    fake->has_spare = true;
    fake_start(fake);
    *state = fake;
    return 0;
}

/* Every kind waits for the data of every kind that has some. */
WITH_FIXTURE(setup_spare, fake_teardown)
static void test_all_kinds_wait_for_each_others_data(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    for (unsigned int old = 0; old < KINDS; old++) {
        for (unsigned int new = 0; new < KINDS &&old != 1; new ++) {
            for (unsigned int in_capsule = 0; in_capsule < 2; in_capsule++) {
                struct fake_request *request[2];

                fake->hold_fetch = true;
                request[0] = send_kind(fake, a.io, old, false);
                fake_run(fake);
                request[1] = send_kind(fake, b.io, new, in_capsule == 1);
                fake_run(fake);
                assert_true(is_waiting(request[1]));
                assert_int_equal(fake->fetch_count, 1);
                assert_int_equal(fake->media_count, 0);
                fake->hold_fetch = false;
                fake_run(fake);
                assert_int_equal(request[0]->cqe.status, 0);
                assert_int_equal(request[1]->cqe.status, 0);
                assert_int_equal(fake->target->arrivals.count, 0);
                assert_int_equal(fake->target->order.count, 0);
            }
        }
    }
}

/* What a Dataset Management or a Copy does not touch need not wait once its
 * ranges are known. */
static void test_ranges_narrow_what_waits_for_them(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    for (unsigned int kind = 2; kind < 4; kind++) {
        struct fake_request *far, *near;

        fake->hold_fetch = fake->hold_media = true;
        (void)send_kind(fake, a.io, kind, false);
        far = send_write(fake, b.io, 1000, 1, fake->data);
        near = send_write(fake, b.io, 600, 1, fake->data);
        assert_true(is_waiting(far) && is_waiting(near));
        fake_run_fetch(fake);
        assert_false(is_waiting(far));
        assert_true(is_waiting(near));
        fake->hold_fetch = fake->hold_media = false;
        fake_run(fake);
        assert_true(far->is_answered && near->is_answered);
    }
    assert_int_equal(fake->target->arrivals.count, 0);
}

/* A command that waits for the other path can be aborted, and ends with its
 * queue pair. */
static void test_a_command_that_waits_on_arrival_can_end(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    struct nvme_sqe abort = {.opcode = ADMIN_ABORT};
    struct fake_request *waiting;

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    waiting = send_write(fake, b.io, 7, 1, fake->data);
    (void)send_write(fake, b.io, 7, 1, fake->data);
    abort.cdw10 = (uint32_t)waiting->req.sqe.cid << 16 | 1;
    assert_int_equal(fake_exec(fake, b.admin, &abort, NULL, 0).dw0, 0);
    assert_int_equal(waiting->cqe.status, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(fake->target->arrivals.count, 2);
    fake_close(fake, b.io);
    assert_int_equal(fake->target->arrivals.count, 1);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 1);
}

/* The end of a write does not make those look again that wait for another one.
 * The test changes a state behind the target's back, which they would see. */
static void test_only_those_look_again_that_waited_for_a_write(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);
    uint16_t second = fake_io_queue(fake, a.admin, 2);
    struct fake_request *waiting;

    fake->hold_fetch = true;
    (void)send_write(fake, a.io, 7, 1, fake->data);
    (void)send_write(fake, second, 7, 1, fake->data);
    waiting = send_write(fake, b.io, 7, 1, fake->data);
    fake->target->qpair[second].state = QPAIR_CLOSING;
    fake_run_fetch(fake);
    fake_run(fake);
    assert_int_equal(fake->target->arrivals.count, 2);
    assert_true(is_waiting(waiting));
    fake->target->qpair[second].state = QPAIR_LIVE;
    fake->hold_fetch = false;
    fake_run(fake);
    assert_true(waiting->is_answered);
    assert_int_equal(fake->target->arrivals.count, 0);
}

/* The data of the Compare never come: the queue pair ends, as for those of a
 * Write. */
WITH_FIXTURE(setup_spare, fake_teardown)
static void test_a_queue_pair_whose_compare_gets_no_data_ends(void **state)
{
    struct fake *fake = *state;
    struct host a = make_host(fake), b = make_host(fake);

    fake->hold_fetch = true;
    (void)send_kind(fake, a.io, FUSED_KIND, false);
    expect_end_after_limit(fake, a, send_write(fake, b.io, 600, 1, fake->data));
}

/*
 * A path is lost while its command waits on arrival.  Its host repeats the
 * command through the other path, and goes on with newer data.
 */
static void test_a_command_does_not_begin_when_its_queue_pair_ends(void **state)
{
    struct fake *fake = *state;
    struct host b = make_host(fake);
    uint8_t new[512];

    memset(new, 2, sizeof(new));
    for (unsigned int kind = 0; kind < FUSED_KIND; kind++) {
        struct host a = make_host(fake);
        struct fake_request *waiting, *newer;

        fake->hold_fetch = true;
        (void)send_write(fake, b.io, 600, 1, fake->data);
        waiting = send_kind(fake, a.io, kind, true);
        assert_true(is_waiting(waiting));
        qpair_disconnect(fake->target, a.io);
        newer = send_write(fake, b.io, 600, 1, new);
        assert_false(is_waiting(newer));
        fake->history_count = 0;
        fake->hold_fetch = false;
        fake_run(fake);
        assert_true(newer->is_answered);
        assert_int_equal(waiting->req.state, NVMF_REQUEST_FREE);
        assert_int_equal(fake->history_count, 2);
        assert_int_equal(fake->blocks[0][600 * 512], 2);
        assert_int_equal(fake->target->arrivals.count, 0);
        fake_close(fake, a.io);
        fake_close(fake, a.admin);
    }
}

/*
 * Two live paths write to the same blocks at random, with few buffers, in
 * windows, and in all kinds.  Each command ends, and no queue pair does.
 */
WITH_FIXTURE(setup_spare, fake_teardown)
static void test_two_live_paths_write_at_random(void **state)
{
    struct fake *fake = *state;
    struct host host[3] = {make_host(fake), make_host(fake), make_host(fake)};
    static uint8_t data[40 * 512];
    unsigned int waits = 0;

    fake->window_max = 8192;
    fake->reserve = 1;
    srand(5);
    for (unsigned int round = 0; round < 60; round++) {
        struct fake_request *sent[30];

        fake->history_count = 0;
        fake->buffers_free = 3 * 8192;
        fake->hold_fetch = fake->hold_media = true;
        for (unsigned int i = 0; i < ARRAY_LEN(sent); i++) {
            uint16_t io = host[rand() % 3].io;
            uint32_t blocks = 1 + (uint32_t)rand() % 40;

            sent[i] = rand() % 4 == 0
                          ? send_kind(fake, io, (unsigned int)rand() % 4, false)
                          : send_write(fake, io, 590 + (uint64_t)rand() % 20,
                                       blocks, data);
            waits += is_waiting(sent[i]);
        }
        while (fake->fetch_count + fake->media_count != 0) {
            if (fake->fetch_count != 0 && rand() % 2 == 0) {
                fake_run_fetch(fake);
            } else if (fake->media_count != 0) {
                run_newest_media(fake);
            }
            fake_run(fake);
        }
        for (unsigned int i = 0; i < ARRAY_LEN(sent); i++) {
            assert_true(sent[i]->is_answered);
            assert_int_equal(sent[i]->cqe.status, 0);
        }
        assert_int_equal(fake->target->arrivals.count, 0);
        assert_int_equal(fake->target->order.count, 0);
    }
    assert_int_equal(fake->disconnect_count, 0);
    assert_true(waits > 100);
}

TEST_FIXTURE(fake_setup, fake_teardown)
