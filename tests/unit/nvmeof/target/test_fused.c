/* SPDX-License-Identifier: BSD-2-Clause */
/* Fused Compare and Write, and command identifiers in use. */
#include "fake.h"

#include <string.h>

#include "tests/test_fixture.h"

enum { LBA = 40 };

struct pair {
    uint8_t old[512], new[512];
    struct fake_request *first, *second;
};

static struct nvme_sqe half_sqe(uint8_t opcode, uint8_t fuse)
{
    struct nvme_sqe sqe = fake_rw(opcode, LBA, 1);

    sqe.fuse = fuse;
    return sqe;
}

static int setup(void **state)
{
    struct fake *fake = fake_new();

    fake->has_spare = true;
    fake_start(fake);
    *state = fake;
    return 0;
}

static void send_pair(struct fake *fake, uint16_t io, struct pair *pair,
                      uint8_t from, uint8_t to)
{
    struct nvme_sqe first = half_sqe(NVM_COMPARE, 1),
                    second = half_sqe(NVM_WRITE, 2);

    memset(pair->old, from, sizeof(pair->old));
    memset(pair->new, to, sizeof(pair->new));
    pair->first = fake_send(fake, io, &first, pair->old, sizeof(pair->old));
    pair->second = fake_send(fake, io, &second, pair->new, sizeof(pair->new));
}

static void expect_pair(const struct pair *pair, uint16_t first,
                        uint16_t second)
{
    assert_true(pair->first->is_answered);
    assert_true(pair->second->is_answered);
    assert_int_equal(pair->first->cqe.status, first);
    assert_int_equal(pair->second->cqe.status, second);
}

static void expect_idle(const struct fake *fake)
{
    assert_int_equal(fake->target->order.count, 0);
    assert_int_equal(fake->target->scratch.used, 0);
    assert_int_equal(fake->buffers_out, 0);
}

static void test_a_pair_writes_only_if_the_block_is_equal(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct pair pair;

    send_pair(fake, io, &pair, 0, 1);
    fake_run(fake);
    expect_pair(&pair, 0, 0);
    assert_int_equal(fake->blocks[0][LBA * 512 + 511], 1);
    assert_int_equal(fake->blocks[0][LBA * 512 + 512], 0);
    send_pair(fake, io, &pair, 0, 2);
    fake_run(fake);
    expect_pair(&pair, NVME_SC_COMPARE_FAILED | DNR, NVME_SC_FUSED_FAILED);
    assert_int_equal(fake->blocks[0][LBA * 512], 1);
    expect_idle(fake);
    assert_int_equal(nvmf_target_counters(fake->target)->host_writes, 1);
}

static void test_a_pair_may_have_its_data_in_the_capsules(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe first = half_sqe(NVM_COMPARE, 1),
                    second = half_sqe(NVM_WRITE, 2);
    struct fake_request *a, *b;
    uint8_t old[512] = {0}, new[512] = {7};

    a = fake_send_in_capsule(fake, io, &first, old, sizeof(old));
    b = fake_send_in_capsule(fake, io, &second, new, sizeof(new));
    fake_run(fake);
    assert_int_equal(a->cqe.status, 0);
    assert_int_equal(b->cqe.status, 0);
    assert_int_equal(fake->blocks[0][LBA * 512], 7);
    expect_idle(fake);
}

static void test_the_first_command_waits_for_the_second(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe first = half_sqe(NVM_COMPARE, 1),
                    read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *a, *b;
    struct pair pair;

    a = fake_send(fake, io, &first, fake->data, 512);
    fake_run(fake);
    assert_false(a->is_answered);
    /* Another command comes instead. */
    b = fake_send(fake, io, &read, fake->data, 512);
    fake_run(fake);
    assert_int_equal(a->cqe.status, NVME_SC_FUSED_MISSING | MORE);
    assert_int_equal(b->cqe.status, 0);
    /* Another first command comes instead; it begins a pair of its own. */
    a = fake_send(fake, io, &first, fake->data, 512);
    send_pair(fake, io, &pair, 0, 1);
    fake_run(fake);
    assert_int_equal(a->cqe.status, NVME_SC_FUSED_MISSING | MORE);
    expect_pair(&pair, 0, 0);
    expect_idle(fake);
}

static void test_a_second_command_alone_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe second = half_sqe(NVM_WRITE, 2);
    struct pair pair;

    assert_int_equal(fake_exec(fake, io, &second, fake->data, 512).status,
                     NVME_SC_FUSED_MISSING | MORE);
    send_pair(fake, io, &pair, 0, 1);
    fake_run(fake);
    assert_int_equal(fake_exec(fake, io, &second, fake->data, 512).status,
                     NVME_SC_FUSED_MISSING | MORE);
    expect_idle(fake);
}

static void test_a_pair_on_two_queues_is_no_pair(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t a = fake_io_queue(fake, admin, 1),
             b = fake_io_queue(fake, admin, 2);
    struct nvme_sqe first = half_sqe(NVM_COMPARE, 1),
                    second = half_sqe(NVM_WRITE, 2);
    struct fake_request *compare = fake_send(fake, a, &first, fake->data, 512);

    assert_int_equal(fake_exec(fake, b, &second, fake->data, 512).status,
                     NVME_SC_FUSED_MISSING | MORE);
    assert_false(compare->is_answered);
}

/* One half of the pair is refused: nothing is read, and nothing written. */
static void test_a_refused_half_aborts_the_other(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    static const struct {
        const char *what;
        struct nvme_sqe first, second;
        uint32_t len;
        uint16_t first_status, second_status;
    } rows[] = {
        {"first beyond the end",
         {.opcode = 5, .nsid = 1, .fuse = 1, .cdw10 = 2048},
         {.opcode = 1, .nsid = 1, .fuse = 2},
         512,
         NVME_SC_LBA_RANGE | DNR | MORE,
         NVME_SC_FUSED_FAILED | MORE},
        {"first is a Read",
         {.opcode = 2, .nsid = 1, .fuse = 1},
         {.opcode = 1, .nsid = 1, .fuse = 2},
         512,
         NVME_SC_INVALID_FIELD | DNR | MORE,
         NVME_SC_FUSED_FAILED | MORE},
        {"second is a Read",
         {.opcode = 5, .nsid = 1, .fuse = 1},
         {.opcode = 2, .nsid = 1, .fuse = 2},
         512,
         NVME_SC_FUSED_FAILED | MORE,
         NVME_SC_INVALID_FIELD | DNR | MORE},
        {"second has a directive",
         {.opcode = 5, .nsid = 1, .fuse = 1},
         {.opcode = 1, .nsid = 1, .fuse = 2, .cdw12 = 1 << 20},
         512,
         NVME_SC_FUSED_FAILED | MORE,
         NVME_SC_INVALID_FIELD | DNR | MORE},
        {"other blocks",
         {.opcode = 5, .nsid = 1, .fuse = 1, .cdw10 = 1},
         {.opcode = 1, .nsid = 1, .fuse = 2},
         512,
         NVME_SC_INVALID_FIELD | DNR | MORE,
         NVME_SC_INVALID_FIELD | DNR | MORE},
        {"other namespace",
         {.opcode = 5, .nsid = 2, .fuse = 1},
         {.opcode = 1, .nsid = 1, .fuse = 2},
         512,
         NVME_SC_INVALID_FIELD | DNR | MORE,
         NVME_SC_INVALID_FIELD | DNR | MORE},
        {"two blocks",
         {.opcode = 5, .nsid = 1, .fuse = 1, .cdw12 = 1},
         {.opcode = 1, .nsid = 1, .fuse = 2, .cdw12 = 1},
         1024,
         NVME_SC_INVALID_FIELD | DNR | MORE,
         NVME_SC_FUSED_FAILED | MORE},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake_request *a =
            fake_send(fake, io, &rows[i].first, fake->data, rows[i].len);
        struct fake_request *b;

        b = fake_send(fake, io, &rows[i].second, fake->data, rows[i].len);
        fake_run(fake);
        if (!a->is_answered || a->cqe.status != rows[i].first_status ||
            !b->is_answered || b->cqe.status != rows[i].second_status) {
            fail_msg("%s: %x, %x", rows[i].what, a->cqe.status, b->cqe.status);
        }
    }
    assert_int_equal(fake->history_count, 0);
    expect_idle(fake);
}

/* Two pairs and a plain write to the same block: each sees what the one before
 * it has written. */
static void test_nothing_is_written_between_compare_and_write(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t a = fake_io_queue(fake, admin, 1),
             b = fake_io_queue(fake, admin, 2);
    struct nvme_sqe plain = fake_rw(NVM_WRITE, LBA - 1, 3);
    struct fake_request *write;
    struct pair one, two, three;
    uint8_t data[3 * 512];

    memset(data, 9, sizeof(data));
    fake->hold_media = true;
    send_pair(fake, a, &one, 0, 1);
    fake_run(fake);
    assert_int_equal(fake->media_count, 1); /* it reads */
    send_pair(fake, b, &two, 0, 2);
    fake_run(fake);
    write = fake_send(fake, b, &plain, data, sizeof(data));
    fake_run(fake);
    send_pair(fake, a, &three, 9, 3);
    fake_run(fake);
    assert_int_equal(fake->media_count, 1);
    assert_int_equal(write->req.state, NVMF_REQUEST_WAIT_TURN);
    fake->hold_media = false;
    fake_run(fake);
    expect_pair(&one, 0, 0);
    expect_pair(&two, NVME_SC_COMPARE_FAILED | DNR, NVME_SC_FUSED_FAILED);
    assert_int_equal(write->cqe.status, 0);
    expect_pair(&three, 0, 0);
    assert_int_equal(fake->blocks[0][(LBA - 1) * 512], 9);
    assert_int_equal(fake->blocks[0][LBA * 512], 3);
    expect_idle(fake);
}

static void test_a_pair_waits_for_an_earlier_write(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe plain = fake_rw(NVM_WRITE, LBA, 1);
    struct pair pair;
    uint8_t data[512] = {0};

    fake->hold_media = true;
    (void)fake_send(fake, io, &plain, data, sizeof(data));
    fake_run(fake);
    send_pair(fake, io, &pair, 0, 1);
    fake_run(fake);
    assert_int_equal(fake->media_count, 1);
    fake->hold_media = false;
    fake_run(fake);
    expect_pair(&pair, 0, 0);
}

/* The queue ends while the pair is in each of its states. */
static void test_the_end_of_a_queue_ends_its_pairs(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (unsigned int step = 0; step < 6; step++) {
        uint16_t io = fake_io_queue(fake, admin, 1);
        struct nvme_sqe first = half_sqe(NVM_COMPARE, 1);
        unsigned int reads = 0;
        struct pair pair;

        fake->drained_count = 0;
        fake->hold_fetch = step == 1 || step == 2;
        fake->hold_media = true;
        if (step == 0) {
            (void)fake_send(fake, io, &first, fake->data, 512);
        } else {
            send_pair(fake, io, &pair, fake->blocks[0][LBA * 512], 3);
        }
        fake_run(fake);
        if (step == 2) { /* the first is fetched, the second is not */
            nvmf_request_fetched(fake->target, &fake->fetch[0]->transfer, true);
            fake->fetch[0] = fake->fetch[--fake->fetch_count];
        }
        for (; step >= 4 && reads < step - 3; reads++) {
            fake_run_media(fake); /* 4: it writes; 5: it has written */
        }
        fake->fail_fetch = true;
        fake->hold_fetch = false;
        if (!nvmf_qpair_closed(fake->target, io)) {
            fake->hold_media = false;
            fake_run(fake);
            assert_int_equal(fake->drained_count, 1);
        }
        fake->fail_fetch = false;
        expect_idle(fake);
        assert_int_equal(fake->media_count, 0);
    }
}

static void test_fused_commands_are_refused_on_the_admin_queue(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = {.opcode = ADMIN_KEEP_ALIVE, .fuse = 1};

    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status,
                     NVME_SC_INVALID_FIELD | DNR | MORE);
    sqe.fuse = 2;
    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status,
                     NVME_SC_INVALID_FIELD | DNR | MORE);
}

/* ---- Command identifiers. */

static struct fake_request *send_with_cid(struct fake *fake, uint16_t qpair,
                                          const struct nvme_sqe *sqe,
                                          uint16_t cid)
{
    fake->next_cid = cid;
    return fake_send(fake, qpair, sqe, fake->data, 512);
}

static void test_an_identifier_in_use_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = fake_io_queue(fake, admin, 2);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *a, *b, *c;

    fake->hold_media = true;
    a = send_with_cid(fake, io, &read, 5);
    b = send_with_cid(fake, io, &read, 5);
    fake_run(fake);
    assert_int_equal(b->cqe.status, NVME_SC_COMMAND_ID_CONFLICT | DNR | MORE);
    assert_false(a->is_answered);
    /* Another queue, or another identifier, even with the same lowest bits. */
    (void)send_with_cid(fake, other, &read, 5);
    b = send_with_cid(fake, io, &read, 5 + CID_LISTS);
    c = send_with_cid(fake, io, &read, 5 + 2 * CID_LISTS);
    assert_int_equal(fake->media_count, 4);
    (void)send_with_cid(fake, io, &read, 5 + CID_LISTS);
    fake_run(fake);
    assert_int_equal(fake->media_count, 4);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(a->cqe.status, 0);
    assert_int_equal(b->cqe.status, 0);
    assert_int_equal(c->cqe.status, 0);
}

/* The host has the response before the drive knows that it arrived. */
static void test_an_identifier_is_free_when_its_response_is_sent(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct fake_request *a, *b;

    fake->hold_done = true;
    a = send_with_cid(fake, io, &read, 5);
    fake_run(fake);
    assert_int_equal(a->req.state, NVMF_REQUEST_RESPONDING);
    b = send_with_cid(fake, io, &read, 5);
    fake->hold_done = false;
    fake_run(fake);
    assert_int_equal(a->cqe.status, 0);
    assert_int_equal(b->cqe.status, 0);
}

TEST_FIXTURE(setup, fake_teardown)
