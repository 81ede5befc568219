/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nvmeof/host/host_queue.h"
#include "tests/test_fixture.h"
#include "tests/unit/nvmeof/rdma/fake_verbs.h"

enum { DEPTH = 4 };

struct fixture {
    struct verbs verbs;
    struct host_queue queue;
    struct fake_qp *fake;
    uint8_t *dram;
    unsigned int answers;
    struct host_result last;
};

static void command_done(void *ctx, const struct host_result *result)
{
    struct fixture *f = ctx;

    f->answers++;
    f->last = *result;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    fake_verbs_init(&f->verbs);
    f->dram = aligned_alloc(64, HOST_QUEUE_BYTES);
    assert_true(host_queue_init(&f->queue, &f->verbs, 1, DEPTH, f->dram));
    f->fake = fake_qp(&f->verbs, f->queue.qpn);
    host_queue_post_responses(&f->queue);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    free(f->dram);
    free(f);
    return 0;
}

static bool submit_command(struct fixture *f)
{
    struct host_command command = {
        .sqe = {.opcode = 2},
        .sgl = {.kind = SGL_KEYED},
        .done = command_done,
        .ctx = f,
    };

    return host_queue_submit(&f->queue, &command);
}

static void send_answer(struct fixture *f, uint16_t cid, uint16_t sqhd,
                        uint16_t status)
{
    struct nvme_cqe cqe = {.sqhd = sqhd, .cid = cid, .status = status};
    uint8_t buf[NVME_CQE_LEN];

    nvme_cqe_emit(buf, &cqe);
    assert_true(fake_receive(&f->verbs, f->queue.qpn, buf, sizeof(buf)));
}

static void test_one_entry_of_the_queue_stays_empty(void **state)
{
    struct fixture *f = *state;

    for (unsigned int i = 0; i < DEPTH - 1; i++) {
        assert_true(submit_command(f));
    }
    assert_false(submit_command(f));
    send_answer(f, 0, 1, 0);
    assert_true(submit_command(f));
    assert_false(submit_command(f));
}

static void test_a_free_slot_does_not_suffice_when_sqhd_has_not_moved(
    void **state)
{
    struct fixture *f = *state;

    for (unsigned int i = 0; i < DEPTH - 1; i++) {
        assert_true(submit_command(f));
    }
    /* A response has arrived, but SQHD has not moved. */
    send_answer(f, 0, 0, 0);
    assert_false(submit_command(f));
    send_answer(f, 1, 2, 0);
    assert_true(submit_command(f));
}

static void test_responses_in_any_order_complete_their_commands(void **state)
{
    struct fixture *f = *state;

    assert_true(submit_command(f));
    assert_true(submit_command(f));
    send_answer(f, 1, 2, NVME_SC_LBA_RANGE);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->last.cqe.status, NVME_SC_LBA_RANGE);
    send_answer(f, 0, 2, 0);
    assert_int_equal(f->answers, 2);
    assert_int_equal(f->queue.outstanding, 0);
    assert_int_equal(f->queue.bad_responses, 0);
}

static void test_a_response_to_no_command_is_counted(void **state)
{
    struct fixture *f = *state;

    send_answer(f, 0, 0, 0);     /* no command is outstanding */
    send_answer(f, DEPTH, 0, 0); /* invalid CID */
    assert_true(submit_command(f));
    send_answer(f, 0, DEPTH, 0); /* invalid SQHD */
    assert_int_equal(f->queue.bad_responses, 3);
    assert_int_equal(f->answers, 0);
}

static void test_a_capsule_without_data_is_inline(void **state)
{
    struct fixture *f = *state;

    assert_true(submit_command(f));
    assert_true(f->fake->send[0].inline_data);
    assert_int_equal(f->fake->send[0].sge[0].len_bytes, NVME_SQE_LEN);
    assert_int_equal(f->fake->inline_data[0][SQE_OPCODE], 2);
    assert_int_equal(f->fake->inline_data[0][SQE_FLAGS], 0x40);
}

static void test_data_in_the_capsule_follows_the_command(void **state)
{
    struct fixture *f = *state;
    uint8_t data[512];
    struct host_command command = {
        .sgl = {.kind = SGL_IN_CAPSULE, .len_bytes = sizeof(data)},
        .in_capsule = data,
        .done = command_done,
        .ctx = f,
    };
    const uint8_t *sent;

    memset(data, 0x3c, sizeof(data));
    assert_true(host_queue_submit(&f->queue, &command));
    assert_false(f->fake->send[0].inline_data);
    assert_int_equal(f->fake->send[0].sge[0].len_bytes, 64 + 512);
    sent = f->fake->send[0].sge[0].addr;
    assert_memory_equal(sent + 64, data, sizeof(data));
}

static void test_outstanding_commands_are_lost_when_the_queue_closes(
    void **state)
{
    struct fixture *f = *state;

    assert_true(submit_command(f));
    assert_true(submit_command(f));
    fake_complete(&f->verbs, f->queue.qpn, 0, VERBS_WC_RETRY_EXCEEDED);
    assert_true(f->queue.is_failed);
    assert_false(submit_command(f));
    assert_int_equal(f->answers, 0);
    host_queue_close(&f->queue);
    assert_int_equal(f->answers, 2);
    assert_true(f->last.is_lost);
    host_queue_close(&f->queue);
    assert_int_equal(f->answers, 2);
}

TEST_FIXTURE(setup, teardown)
