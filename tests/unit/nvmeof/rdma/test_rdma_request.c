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
    struct nvmf_transfer *capsule[LOG];
    struct nvmf_data data[LOG];
    uint8_t opcode[LOG];
    unsigned int capsules;
    struct nvmf_transfer *fetched[LOG];
    bool fetched_ok[LOG];
    unsigned int fetches;
    struct nvmf_transfer *sent[LOG];
    bool sent_ok[LOG];
    unsigned int sends;
    struct nvmf_transfer *done[LOG];
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

/* The target's state of a command, which no transport sees. */
struct nvmf_request {
    struct nvmf_transfer transfer;
    uint8_t state[200];
};

size_t nvmf_request_bytes(void)
{
    return sizeof(struct nvmf_request);
}

struct nvmf_transfer *nvmf_request_init(void *memory, uint32_t number,
                                        void *owner)
{
    struct nvmf_request *req = memory;

    *req = (struct nvmf_request){{.owner = owner, .number = number}, {0}};
    return &req->transfer;
}

void nvmf_capsule(struct nvmf_target *target, uint16_t qpair,
                  struct nvmf_transfer *req, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us)
{
    assert_int_equal(qpair, 7);
    assert_int_equal(now_us, 1234);
    target->capsule[target->capsules] = req;
    target->data[target->capsules] = *data;
    target->opcode[target->capsules++] = sqe[SQE_OPCODE];
}

void nvmf_request_fetched(struct nvmf_target *target, struct nvmf_transfer *req,
                          bool is_ok)
{
    target->fetched[target->fetches] = req;
    target->fetched_ok[target->fetches++] = is_ok;
}

void nvmf_request_sent(struct nvmf_target *target, struct nvmf_transfer *req,
                       bool is_ok)
{
    target->sent[target->sends] = req;
    target->sent_ok[target->sends++] = is_ok;
}

void nvmf_request_done(struct nvmf_target *target, struct nvmf_transfer *req)
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
                                            ignore_event, NULL};
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
    f->rdma.config.requests =
        calloc(RDMA_REQUESTS, sizeof(struct nvmf_request));
    f->rdma.transport.in_capsule_len = NVMF_IN_CAPSULE_LEN;
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
    free(f->rdma.config.requests);
    free(f);
    return 0;
}

/* Receive a capsule with a keyed descriptor.  @return the target's request */
static struct nvmf_transfer *receive_command(struct fixture *f,
                                             enum sgl_kind kind,
                                             uint32_t len_bytes)
{
    uint8_t capsule[NVME_SQE_LEN] = {[SQE_OPCODE] = 0x5a};
    struct sgl sgl = {kind, 0x1122334455667788, len_bytes, 0xfeedbeef};

    sgl_emit(capsule + SQE_SGL1, &sgl);
    assert_true(fake_receive(&f->verbs, f->qp->qpn, capsule, sizeof(capsule)));
    return f->target.capsule[f->target.capsules - 1];
}

static void set_pieces(struct nvmf_transfer *req, uint8_t count, uint32_t len,
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
    struct nvmf_transfer *req = receive_command(f, SGL_KEYED, 4096);
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
    struct nvmf_transfer *req = receive_command(f, SGL_KEYED_INVALIDATE, 8192);
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
    struct nvmf_transfer *req = receive_command(f, SGL_KEYED, 8192);
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
    struct nvmf_transfer *req = receive_command(f, SGL_KEYED, 8 * 512);
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

/* Receive buffers that are posted and not used. */
static uint32_t buffers_posted(const struct fixture *f)
{
    return f->fake->recv_put - f->fake->recv_get;
}

/* Fill the queue with commands, and respond to all of them; the host
 * acknowledges none of these responses. */
static void respond_without_acknowledgement(struct fixture *f)
{
    for (unsigned int i = 0; i < DEPTH; i++) {
        receive_command(f, SGL_KEYED, 0);
    }
    assert_int_equal(buffers_posted(f), 0);
    for (unsigned int i = 0; i < DEPTH; i++) {
        rdma_request_respond(&f->rdma, f->target.capsule[i]);
        assert_int_equal(buffers_posted(f), i + 1);
    }
    assert_int_equal(f->fake->send_put, DEPTH);
}

/* No request is left for a command that arrives in the buffer of a fifth
 * response.  If that were sent, the host's next command would find no buffer.
 */
static void test_a_response_waits_until_its_buffer_can_be_posted(void **state)
{
    struct fixture *f = *state;

    respond_without_acknowledgement(f);
    for (unsigned int i = 0; i < DEPTH; i++) {
        receive_command(f, SGL_KEYED, 0);
    }
    assert_int_equal(f->qp->in_use, 2 * DEPTH);
    assert_false(f->rdma.waiting != 0);
    for (unsigned int i = 0; i < DEPTH; i++) {
        rdma_request_respond(&f->rdma, f->target.capsule[DEPTH + i]);
        assert_int_equal(f->rdma.waiting, i + 1);
    }
    assert_int_equal(f->fake->send_put, DEPTH);
    assert_int_equal(buffers_posted(f), 0);
    assert_int_equal(f->rdma.responding, 2 * DEPTH);
    /* Each acknowledgement lets one go, in the order of the calls. */
    for (unsigned int i = 0; i < DEPTH; i++) {
        const struct rdma_request *req = f->target.capsule[DEPTH + i]->owner;

        fake_complete(&f->verbs, f->qp->qpn, i, VERBS_WC_SUCCESS);
        assert_int_equal(f->fake->send_put, DEPTH + i + 1);
        assert_int_equal((uint32_t)last_send(f, 0)->wr_id,
                         (uint32_t)(req - f->rdma.requests));
        assert_int_equal(buffers_posted(f), i + 1);
        assert_int_equal(f->rdma.waiting, DEPTH - 1 - i);
    }
    for (unsigned int i = 0; i < DEPTH; i++) {
        fake_complete(&f->verbs, f->qp->qpn, DEPTH + i, VERBS_WC_SUCCESS);
    }
    assert_int_equal(f->qp->in_use, 0);
    assert_int_equal(f->qp->unacked, 0);
    assert_int_equal(buffers_posted(f), DEPTH);
}

static void test_a_response_that_waits_delays_neither_data_nor_fetches(
    void **state)
{
    struct fixture *f = *state;
    struct nvmf_transfer *req;
    uint8_t data[512];

    respond_without_acknowledgement(f);
    rdma_request_respond(&f->rdma, receive_command(f, SGL_KEYED, 0));
    assert_int_equal(f->rdma.waiting, 1);
    req = receive_command(f, SGL_KEYED, sizeof(data));
    set_pieces(req, 1, sizeof(data), data);
    req->fetch_len = sizeof(data);
    rdma_request_fetch(&f->rdma, req);
    assert_int_equal(f->fake->send_put, DEPTH + 1);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_READ);
    req = receive_command(f, SGL_KEYED, 2 * sizeof(data));
    set_pieces(req, 1, sizeof(data), data);
    req->send_len = sizeof(data);
    rdma_request_send(&f->rdma, req);
    assert_int_equal(f->fake->send_put, DEPTH + 2);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_WRITE);
    assert_int_equal(f->rdma.waiting, 1);
}

/* A host that sends a command whenever it has received a response, and
 * acknowledges that response at any later time. */
static void test_a_host_within_its_depth_always_finds_a_buffer(void **state)
{
    struct fixture *f = *state;
    uint32_t random = 1, seen = 0, acknowledged = 0;
    unsigned int outstanding = 0, held = 0;
    struct nvmf_transfer *running[DEPTH];
    unsigned int count = 0;

    for (unsigned int i = 0; i < 20000; i++) {
        random = random * 1664525 + 1013904223;
        switch (random >> 29) {
        case 0:
        case 1:
        case 2: /* The host sends a command. */
            if (outstanding < DEPTH) {
                f->target.capsules = 0;
                running[count++] = receive_command(f, SGL_KEYED, 0);
                outstanding++;
            }
            break;
        case 3:
        case 4:
        case 5: /* The target responds to the newest command. */
            if (count > 0) {
                rdma_request_respond(&f->rdma, running[--count]);
                held += f->qp->held != NULL;
            }
            break;
        case 6: /* The host receives all responses. */
            for (; seen < f->fake->send_put; seen++) {
                outstanding--;
            }
            break;
        default: /* It acknowledges one of them. */
            if (acknowledged < seen) {
                f->target.dones = 0;
                fake_retire(&f->verbs, f->qp->qpn, 1);
                fake_complete(&f->verbs, f->qp->qpn, acknowledged++,
                              VERBS_WC_SUCCESS);
            }
            break;
        }
        assert_true(buffers_posted(f) >= DEPTH - outstanding);
    }
    assert_true(held > 100 && acknowledged > 1000);
}

static void test_a_full_send_ring_is_waited_for_in_order(void **state)
{
    struct fixture *f = *state;
    struct nvmf_transfer *req[DEPTH];
    uint8_t data[4096];

    /* Two responses with data take 6 of 16 entries of the ring, three fetches
     * another 6, and one more response with data leaves 1. */
    for (unsigned int i = 0; i < 2; i++) {
        req[0] = receive_command(f, SGL_KEYED, sizeof(data));
        set_pieces(req[0], 8, 512, data);
        req[0]->send_len = 4096;
        rdma_request_respond(&f->rdma, req[0]);
    }
    for (unsigned int i = 0; i < DEPTH; i++) {
        req[i] = receive_command(f, SGL_KEYED, sizeof(data));
        set_pieces(req[i], 8, 512, data);
    }
    for (unsigned int i = 0; i < 3; i++) {
        req[i]->fetch_len = 4096;
        rdma_request_fetch(&f->rdma, req[i]);
    }
    req[3]->send_len = 4096;
    rdma_request_respond(&f->rdma, req[3]);
    assert_int_equal(f->fake->send_put, 15);
    /* A response waits for room, and a fetch behind it. */
    req[3] = receive_command(f, SGL_KEYED, 0);
    rdma_request_respond(&f->rdma, req[3]);
    req[0] = receive_command(f, SGL_KEYED, sizeof(data));
    set_pieces(req[0], 4, 512, data);
    req[0]->fetch_len = 2048;
    rdma_request_fetch(&f->rdma, req[0]);
    assert_int_equal(f->fake->send_put, 15);
    assert_int_equal(f->rdma.waiting, 2);
    fake_retire(&f->verbs, f->qp->qpn, 3);
    fake_complete(&f->verbs, f->qp->qpn, 2, VERBS_WC_SUCCESS);
    assert_int_equal(f->fake->send_put, 17);
    assert_null(f->qp->waiting);
    assert_int_equal(f->rdma.waiting, 0);
    /* The order is that of the calls. */
    assert_int_equal(last_send(f, 1)->opcode, VERBS_WR_SEND);
    assert_int_equal(last_send(f, 0)->opcode, VERBS_WR_READ);
}

static void test_a_failed_queue_completes_each_request_once(void **state)
{
    struct fixture *f = *state;
    struct nvmf_transfer *fetching = receive_command(f, SGL_KEYED, 512);
    struct nvmf_transfer *responding = receive_command(f, SGL_KEYED, 0);
    struct nvmf_transfer *at_target = receive_command(f, SGL_KEYED, 0);
    struct nvmf_transfer *sending = receive_command(f, SGL_KEYED, 1024);
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
    struct nvmf_transfer *req = receive_command(f, SGL_KEYED, 0);

    f->qp->state = RDMA_QUEUE_DRAINING;
    f->qp->needs_step = false;
    rdma_request_respond(&f->rdma, req);
    assert_int_equal(f->fake->send_put, 0);
    assert_int_equal(f->target.dones, 0);
    assert_true(f->qp->needs_step);
    rdma_request_fail_all(f->qp);
    assert_int_equal(f->target.dones, 1);
}

static void test_a_failed_queue_completes_responses_that_wait(void **state)
{
    struct fixture *f = *state;

    respond_without_acknowledgement(f);
    for (unsigned int i = 0; i < 2; i++) {
        rdma_request_respond(&f->rdma, receive_command(f, SGL_KEYED, 0));
    }
    f->qp->state = RDMA_QUEUE_DRAINING;
    rdma_request_fail_all(f->qp);
    assert_int_equal(f->target.dones, DEPTH + 2);
    assert_int_equal(f->rdma.waiting, 0);
    assert_int_equal(f->fake->send_put, DEPTH);
    rdma_request_release_all(f->qp);
    assert_int_equal(f->rdma.requests_in_use, 0);
}

/* How much data a capsule may carry is a property of the transport. */
static void test_receive_buffers_have_room_for_the_capsules_of_their_queue(
    void **state)
{
    struct fixture *f = *state;
    struct fake_qp *fake = fake_qp(&f->verbs, f->qp->qpn);
    const struct fake_recv *last;

    fake->recv_get += 3; /* make room for three buffers */
    f->qp->qid = 0;
    f->rdma.transport.in_capsule_len = 512;
    rdma_request_post_capsule(f->qp, 0);
    last = &fake->recv[(fake->recv_put - 1) % FAKE_LOG];
    assert_int_equal(last->sge.len_bytes, NVME_SQE_LEN);
    f->rdma.transport.admin_in_capsule_len = 1024;
    rdma_request_post_capsule(f->qp, 0);
    last = &fake->recv[(fake->recv_put - 1) % FAKE_LOG];
    assert_int_equal(last->sge.len_bytes, NVME_SQE_LEN + 1024);
    f->qp->qid = 1;
    rdma_request_post_capsule(f->qp, 0);
    last = &fake->recv[(fake->recv_put - 1) % FAKE_LOG];
    assert_int_equal(last->sge.len_bytes, NVME_SQE_LEN + 512);
}

TEST_FIXTURE(setup, teardown)
