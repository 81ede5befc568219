/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path of the binding, with one QP.  Verbs and target are fakes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_verbs.h"
#include "nvmeof/rdma/rdma_state.h"
#include "nvmeof/wire/sgl.h"
#include "tests/test_fixture.h"

enum { DEPTH = 4, LOG = 64 };

/* The fake target, which logs the calls that it gets. */
struct nvmf_target {
    struct nvmf_request *capsule[LOG];
    struct nvmf_data data[LOG];
    uint8_t opcode[LOG];
    unsigned int capsules;
    struct nvmf_request *fetched[LOG];
    bool fetched_ok[LOG];
    unsigned int fetches;
    struct nvmf_request *sent[LOG];
    bool sent_ok[LOG];
    unsigned int sends;
    struct nvmf_request *done[LOG];
    unsigned int dones;
};

struct fixture {
    struct verbs verbs;
    struct nvmf_target target;
    struct rdma_transport rdma;
    struct rdma_queue *qp;
    struct fake_qp *fake;
    unsigned int steps_asked;
};

static unsigned int times_heard;

void nvmf_capsule(struct nvmf_target *target, uint16_t qpair,
                  struct nvmf_request *req, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us)
{
    assert_int_equal(qpair, 7);
    assert_int_equal(now_us, 1234);
    target->capsule[target->capsules] = req;
    target->data[target->capsules] = *data;
    target->opcode[target->capsules++] = sqe[SQE_OPCODE];
}

void nvmf_request_fetched(struct nvmf_target *target, struct nvmf_request *req,
                          bool is_ok)
{
    target->fetched[target->fetches] = req;
    target->fetched_ok[target->fetches++] = is_ok;
}

void nvmf_request_sent(struct nvmf_target *target, struct nvmf_request *req,
                       bool is_ok)
{
    target->sent[target->sends] = req;
    target->sent_ok[target->sends++] = is_ok;
}

void nvmf_request_done(struct nvmf_target *target, struct nvmf_request *req)
{
    target->done[target->dones++] = req;
}

void rdma_queue_needs_step(struct rdma_queue *qp)
{
    qp->needs_step = true;
}

void rdma_queue_heard(struct rdma_queue *qp)
{
    qp->is_heard = true;
    times_heard++;
}

void rdma_queue_fail(struct rdma_queue *qp)
{
    qp->state = RDMA_QUEUE_FAILED;
    qp->needs_step = true;
}

static void ignore_event(void *ctx, const struct verbs_event *e)
{
    (void)ctx;
    (void)e;
}

static int setup(void **state)
{
    static const struct verbs_qp_ops ops = {rdma_request_completion,
                                            ignore_event};
    struct fixture *f = calloc(1, sizeof(*f));
    struct verbs_qp_config config = {
        .sq_depth = 4 * DEPTH,
        .rq_depth = DEPTH,
        .ops = &ops,
    };

    fake_verbs_init(&f->verbs);
    f->rdma.config.verbs = &f->verbs;
    f->rdma.config.target = &f->target;
    f->rdma.config.capsules = calloc(DEPTH, RDMA_CAPSULE_STRIDE);
    f->rdma.lkey = FAKE_LKEY;
    f->rdma.now_us = 1234;
    rdma_request_init(&f->rdma);
    f->qp = &f->rdma.qps[7];
    config.ctx = f->qp;
    *f->qp = (struct rdma_queue){
        .rdma = &f->rdma,
        .number = 7,
        .qid = 1,
        .depth = DEPTH,
        .state = RDMA_QUEUE_OPEN,
    };
    assert_true(verbs_create_qp(&f->verbs, &config, &f->qp->qpn));
    f->fake = fake_qp(&f->verbs, f->qp->qpn);
    for (uint16_t i = 0; i < DEPTH; i++) {
        rdma_request_post_capsule(f->qp, i);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    free(f->rdma.config.capsules);
    free(f);
    return 0;
}

/* Receive a capsule with a keyed descriptor.  @return the target's request */
static struct nvmf_request *receive_command(struct fixture *f,
                                            enum sgl_kind kind,
                                            uint32_t len_bytes)
{
    uint8_t capsule[NVME_SQE_LEN] = {[SQE_OPCODE] = 0x5a};
    struct sgl sgl = {kind, 0x1122334455667788, len_bytes, 0xfeedbeef};

    sgl_emit(capsule + SQE_SGL1, &sgl);
    assert_true(fake_receive(&f->verbs, f->qp->qpn, capsule, sizeof(capsule)));
    return f->target.capsule[f->target.capsules - 1];
}

static void set_pieces(struct nvmf_request *req, uint8_t count, uint32_t len,
                       uint8_t *memory)
{
    req->piece_count = count;
    for (uint8_t i = 0; i < count; i++) {
        req->pieces[i] = (struct nvmf_piece){memory + i * len, len, FAKE_LKEY};
    }
}

static const struct verbs_send_wr *last_send(const struct fixture *f,
                                             uint32_t back)
{
    return &f->fake->send[(f->fake->send_put - 1 - back) % FAKE_LOG];
}

static void test_the_first_capsule_confirms_the_connection(void **state)
{
    struct fixture *f = *state;

    times_heard = 0;
    receive_command(f, SGL_KEYED, 4096);
    assert_int_equal(times_heard, 1);
    receive_command(f, SGL_KEYED, 4096);
    assert_int_equal(times_heard, 1);
}

static void test_a_read_is_a_linked_write_and_send_with_one_completion(
    void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *req = receive_command(f, SGL_KEYED, 4096);
    uint8_t data[4096];

    assert_int_equal(f->target.opcode[0], 0x5a);
    assert_int_equal(f->target.data[0].len_bytes, 4096);
    set_pieces(req, 1, sizeof(data), data);
    req->send_len = sizeof(data);
    memset(req->cqe, 0x77, NVME_CQE_LEN);
    rdma_request_respond(&f->rdma, req);

    assert_int_equal(f->fake->send_put, 2);
    assert_int_equal(last_send(f, 1)->opcode, VERBS_WR_WRITE);
    assert_false(last_send(f, 1)->signaled);
    assert_int_equal(last_send(f, 1)->remote_addr, 0x1122334455667788);
    assert_int_equal(last_send(f, 1)->rkey, 0xfeedbeef);
    assert_int_equal(last_send(f, 1)->num_sge, 1);
    assert_ptr_equal(last_send(f, 1)->sge[0].addr, data);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_SEND);
    assert_true(last_send(f, 0)->signaled);
    assert_true(last_send(f, 0)->linked);
    assert_true(last_send(f, 0)->inline_data);
    assert_int_equal(f->fake->inline_data[1][15], 0x77);

    assert_int_equal(f->target.dones, 0);
    fake_complete(&f->verbs, f->qp->qpn, 1, VERBS_WC_SUCCESS);
    assert_int_equal(f->target.dones, 1);
    assert_ptr_equal(f->target.done[0], req);
    assert_int_equal(f->qp->in_use, 0);
    assert_int_equal(f->rdma.requests_in_use, 0);
}

/* Long data moves in two windows; the second goes with the response. */
static void test_a_window_is_a_write_with_a_completion(void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *req = receive_command(f, SGL_KEYED_INVALIDATE, 8192);
    uint8_t data[4096];

    set_pieces(req, 1, sizeof(data), data);
    req->send_len = sizeof(data);
    rdma_request_send(&f->rdma, req);
    assert_int_equal(f->fake->send_put, 1);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_WRITE);
    assert_true(last_send(f, 0)->signaled);
    assert_int_equal(last_send(f, 0)->remote_addr, 0x1122334455667788);
    assert_int_equal(f->target.sends, 0);
    assert_int_equal(f->rdma.sending, 1);
    fake_complete(&f->verbs, f->qp->qpn, 0, VERBS_WC_SUCCESS);
    assert_int_equal(f->target.sends, 1);
    assert_true(f->target.sent_ok[0]);
    assert_int_equal(f->rdma.sending, 0);

    req->data_offset = 4096;
    rdma_request_respond(&f->rdma, req);
    assert_int_equal(f->fake->send_put, 3);
    assert_int_equal(last_send(f, 1)->remote_addr, 0x1122334455667788 + 4096);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_SEND_INV);
}

static void test_a_fetch_begins_at_its_window(void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *req = receive_command(f, SGL_KEYED, 8192);
    uint8_t data[4096];

    set_pieces(req, 1, sizeof(data), data);
    req->data_offset = 4096;
    req->fetch_len = sizeof(data);
    rdma_request_fetch(&f->rdma, req);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_READ);
    assert_true(last_send(f, 0)->signaled);
    assert_int_equal(last_send(f, 0)->remote_addr, 0x1122334455667788 + 4096);
}

static void test_the_key_is_invalidated_only_if_the_host_asks(void **state)
{
    struct fixture *f = *state;

    rdma_request_respond(&f->rdma, receive_command(f, SGL_KEYED, 0));
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_SEND);
    assert_false(last_send(f, 0)->linked);
    rdma_request_respond(&f->rdma, receive_command(f, SGL_KEYED_INVALIDATE, 8));
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_SEND_INV);
    assert_int_equal(last_send(f, 0)->inv_rkey, 0xfeedbeef);
}

static void test_a_fetch_of_many_pieces_is_signaled_once(void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *req = receive_command(f, SGL_KEYED, 8 * 512);
    uint8_t data[8 * 512];

    set_pieces(req, 8, 512, data);
    req->fetch_len = 7 * 512 + 100;
    rdma_request_fetch(&f->rdma, req);
    assert_int_equal(f->fake->send_put, 2);
    assert_int_equal(last_send(f, 1)->opcode, VERBS_WR_READ);
    assert_int_equal(last_send(f, 1)->num_sge, 4);
    assert_false(last_send(f, 1)->signaled);
    assert_int_equal(last_send(f, 0)->remote_addr, 0x1122334455667788 + 2048);
    assert_int_equal(last_send(f, 0)->num_sge, 4);
    assert_int_equal(last_send(f, 0)->sge[3].len_bytes, 100);
    assert_true(last_send(f, 0)->signaled);
    fake_complete(&f->verbs, f->qp->qpn, 1, VERBS_WC_SUCCESS);
    assert_int_equal(f->target.fetches, 1);
    assert_true(f->target.fetched_ok[0]);
}

static void test_a_receive_buffer_is_posted_before_the_response(void **state)
{
    struct fixture *f = *state;

    for (unsigned int i = 0; i < DEPTH; i++) {
        receive_command(f, SGL_KEYED, 0);
    }
    assert_int_equal(f->qp->posted, 0);
    for (unsigned int i = 0; i < DEPTH; i++) {
        rdma_request_respond(&f->rdma, f->target.capsule[i]);
        assert_int_equal(f->qp->posted, i + 1);
    }
    /* All responses are unacknowledged when the next commands arrive. */
    for (unsigned int i = 0; i < DEPTH; i++) {
        receive_command(f, SGL_KEYED, 0);
    }
    assert_int_equal(f->qp->in_use, 2 * DEPTH);
    /* No request is free for a command that arrives in these buffers, so they
     * are not posted yet. */
    rdma_request_respond(&f->rdma, f->target.capsule[DEPTH]);
    assert_int_equal(f->qp->posted, 0);
    fake_complete(&f->verbs, f->qp->qpn, 0, VERBS_WC_SUCCESS);
    assert_int_equal(f->qp->in_use + f->qp->posted, 2 * DEPTH - 1);
    fake_complete(&f->verbs, f->qp->qpn, DEPTH, VERBS_WC_SUCCESS);
    assert_int_equal(f->qp->posted, 1);
}

static void test_a_full_send_ring_is_waited_for_in_order(void **state)
{
    struct fixture *f = *state;
    uint8_t data[4096];
    unsigned int posted = 0;

    /* Fill the ring until it has no room for one request. */
    for (unsigned int i = 0; i < DEPTH; i++) {
        struct nvmf_request *req = receive_command(f, SGL_KEYED, sizeof(data));

        set_pieces(req, 8, 512, data);
        req->send_len = 4096;
        rdma_request_respond(&f->rdma, req);
    }
    posted = f->fake->send_put;
    assert_int_equal(posted, 3 * DEPTH);
    for (unsigned int i = 0; i < DEPTH; i++) {
        rdma_request_respond(&f->rdma, receive_command(f, SGL_KEYED, 0));
    }
    /* 16 - 12 = 4 slots are free: after two more SENDs less than 3 are. */
    assert_int_equal(f->fake->send_put, posted + 2);
    fake_retire(&f->verbs, f->qp->qpn, 3);
    fake_complete(&f->verbs, f->qp->qpn, 2, VERBS_WC_SUCCESS);
    assert_int_equal(f->fake->send_put, posted + DEPTH);
    assert_null(f->qp->waiting);
    /* The order is that of the calls. */
    for (unsigned int i = 0; i < DEPTH; i++) {
        const struct rdma_request *req = container_of(
            f->target.capsule[DEPTH + i], struct rdma_request, nvmf);

        assert_int_equal((uint32_t)last_send(f, DEPTH - 1 - i)->wr_id,
                         (uint32_t)(req - f->rdma.requests));
    }
}

static void test_a_failed_queue_completes_each_request_once(void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *fetching = receive_command(f, SGL_KEYED, 512);
    struct nvmf_request *responding = receive_command(f, SGL_KEYED, 0);
    struct nvmf_request *at_target = receive_command(f, SGL_KEYED, 0);
    struct nvmf_request *sending = receive_command(f, SGL_KEYED, 1024);
    uint8_t data[512];

    (void)at_target;
    set_pieces(sending, 1, sizeof(data), data);
    sending->send_len = sizeof(data);
    set_pieces(fetching, 1, sizeof(data), data);
    fetching->fetch_len = sizeof(data);
    rdma_request_fetch(&f->rdma, fetching);
    rdma_request_respond(&f->rdma, responding);
    rdma_request_send(&f->rdma, sending);
    fake_complete(&f->verbs, f->qp->qpn, 0, VERBS_WC_RETRY_EXCEEDED);
    assert_true(f->qp->needs_step);
    assert_int_equal(f->target.fetches, 0);
    fake_complete(&f->verbs, f->qp->qpn, 1, VERBS_WC_FLUSHED);
    assert_int_equal(f->target.dones, 0);

    rdma_request_fail_all(f->qp);
    assert_int_equal(f->target.fetches, 1);
    assert_false(f->target.fetched_ok[0]);
    assert_int_equal(f->target.sends, 1);
    assert_false(f->target.sent_ok[0]);
    assert_int_equal(f->rdma.sending, 0);
    assert_int_equal(f->target.dones, 1);
    assert_ptr_equal(f->target.done[0], responding);
    rdma_request_fail_all(f->qp);
    assert_int_equal(f->target.fetches, 1);
    assert_int_equal(f->target.dones, 1);
    rdma_request_release_all(f->qp);
    assert_int_equal(f->rdma.requests_in_use, 0);
    assert_int_equal(f->qp->in_use, 0);
}

static void test_a_short_capsule_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    uint8_t capsule[NVME_SQE_LEN] = {0};

    assert_true(fake_receive(&f->verbs, f->qp->qpn, capsule, 63));
    assert_int_equal(f->target.capsules, 0);
    assert_int_equal(f->qp->state, RDMA_QUEUE_FAILED);
}

static void test_a_response_given_after_the_end_completes_in_the_next_step(
    void **state)
{
    struct fixture *f = *state;
    struct nvmf_request *req = receive_command(f, SGL_KEYED, 0);

    f->qp->state = RDMA_QUEUE_DRAINING;
    f->qp->needs_step = false;
    rdma_request_respond(&f->rdma, req);
    assert_int_equal(f->fake->send_put, 0);
    assert_int_equal(f->target.dones, 0);
    assert_true(f->qp->needs_step);
    rdma_request_fail_all(f->qp);
    assert_int_equal(f->target.dones, 1);
}

TEST_FIXTURE(setup, teardown)
