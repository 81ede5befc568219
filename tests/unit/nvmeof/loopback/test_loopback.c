/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopback transport and its host, with the real target.  Media and buffers
 * are the fakes of the target's own tests.
 */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/loopback/loopback_host.h"
#include "nvmeof/wire/discovery.h"
#include "tests/test_fixture.h"

enum {
    QUEUES = 12,
    BLOCK = 512,
    SEEDS = 60,
    STEPS = 1500,
    RANDOM_HOSTS = 2,
    RANDOM_QUEUES = 2,
};

struct fixture {
    struct fake *fake;
    struct loopback loopback;
    struct loopback_queue *queues;
    void *requests;
    struct loopback_host host;
    uint64_t random;
};

/* Let the target, the transport and the media run once. */
static bool step_loop(struct fixture *f)
{
    bool is_busy;

    nvmf_target_timer(f->fake->target, f->fake->now_us);
    is_busy = loopback_step(&f->loopback, f->fake->now_us);
    if (f->fake->media_count != 0 && !f->fake->hold_media) {
        fake_run(f->fake);
        is_busy = true;
    }
    return is_busy;
}

static void run_until_idle(struct fixture *f)
{
    while (step_loop(f)) {
    }
}

static bool run_until(void *ctx, bool (*is_done)(void *done_ctx),
                      void *done_ctx, uint64_t timeout_us)
{
    struct fixture *f = ctx;
    bool is_done_now;

    (void)
        timeout_us; /* the loop has come to rest, so nothing more will happen */
    do {
        is_done_now = is_done(done_ctx);
    } while (!is_done_now && step_loop(f));
    return is_done_now || is_done(done_ctx);
}

static struct loopback_host_config host_config(struct fixture *f)
{
    return (struct loopback_host_config){
        .loopback = &f->loopback,
        .subnqn = FAKE_SUBNQN,
        .hostnqn = FAKE_HOSTNQN,
        .hostid = {7},
        .run = run_until,
        .run_ctx = f,
    };
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct loopback_config config = {.portid = 9, .queue_count = QUEUES};
    struct loopback_host_config host = host_config(f);

    f->fake = fake_new();
    fake_start(f->fake);
    f->queues = malloc(QUEUES * sizeof(*f->queues));
    memset(f->queues, 0xa5, QUEUES * sizeof(*f->queues));
    config.target = f->fake->target;
    config.queues = f->queues;
    f->requests = malloc(loopback_request_bytes(QUEUES));
    memset(f->requests, 0xa5, loopback_request_bytes(QUEUES));
    config.requests = f->requests;
    loopback_init(&f->loopback, &config);
    loopback_host_init(&f->host, &host);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    uint16_t controllers, qpairs;

    loopback_host_disconnect(&f->host);
    run_until_idle(f);
    assert_int_equal(loopback_queues_used(&f->loopback), 0);
    nvmf_target_stats(f->fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
    assert_int_equal(qpairs, 0);
    assert_int_equal(f->fake->target->depth_used, 0);
    free(f->queues);
    free(f->requests);
    fake_free(f->fake);
    free(f);
    return 0;
}

static struct nvme_sqe make_rw(uint8_t opcode, uint64_t lba, uint32_t blocks,
                               uint16_t cid)
{
    struct nvme_sqe sqe = fake_rw(opcode, lba, blocks);

    sqe.cid = cid;
    return sqe;
}

static void test_a_host_writes_and_reads_back(void **state)
{
    static uint8_t out[64 * BLOCK], in[64 * BLOCK];
    struct fixture *f = *state;
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 100, 64, 1);

    assert_int_equal(loopback_host_connect(&f->host, 2, 32), 0);
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = (uint8_t)(i * 7 + i / 256);
    }
    assert_int_equal(loopback_host_command(&f->host, 1, &sqe, out, sizeof(out)),
                     0);
    sqe = make_rw(NVM_READ, 100, 64, 2);
    assert_int_equal(loopback_host_command(&f->host, 2, &sqe, in, sizeof(in)),
                     0);
    assert_memory_equal(in, out, sizeof(in));
    sqe = make_rw(NVM_FLUSH, 0, 1, 3);
    assert_int_equal(loopback_host_command(&f->host, 1, &sqe, NULL, 0), 0);
}

static void test_identify_says_what_the_transport_can_do(void **state)
{
    struct fixture *f = *state;
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    uint8_t *id = f->fake->data;

    assert_int_equal(loopback_host_connect(&f->host, 0, 0), 0);
    assert_int_equal(
        loopback_host_command(&f->host, 0, &sqe, id, NVME_IDENTIFY_LEN), 0);
    /* A capsule has only the SQE, 4 * 16 bytes. */
    assert_int_equal(get_le32(id + ID_CTRL_IOCCSZ), 4);
    assert_int_equal(get_le32(id + ID_CTRL_SGLS) & 0x100005, 1);
}

static void test_one_command_at_a_time_before_connect(void **state)
{
    struct fixture *f = *state;
    uint8_t sqe[NVME_SQE_LEN] = {NVME_FABRICS};
    uint16_t queue;

    assert_true(loopback_open(&f->loopback, &queue));
    assert_true(loopback_send(&f->loopback, queue, sqe, NULL, 0));
    assert_false(loopback_send(&f->loopback, queue, sqe, NULL, 0));
    run_until_idle(f);
    /* The queue stays full until the completion has been received. */
    assert_false(loopback_send(&f->loopback, queue, sqe, NULL, 0));
    assert_true(loopback_receive(&f->loopback, queue, sqe));
    assert_false(loopback_receive(&f->loopback, queue, sqe));
    loopback_close(&f->loopback, queue);
}

static void test_a_queue_takes_as_many_commands_as_it_has_entries(void **state)
{
    struct fixture *f = *state;
    struct nvme_cqe cqe;

    assert_int_equal(loopback_host_connect(&f->host, 1, 8), 0);
    f->fake->hold_media = true;
    for (uint16_t cid = 0; cid < 8; cid++) {
        struct nvme_sqe sqe = make_rw(NVM_READ, cid, 1, cid);

        assert_true(loopback_host_submit(&f->host, 1, &sqe,
                                         f->fake->data + cid * BLOCK, BLOCK));
    }
    {
        struct nvme_sqe sqe = make_rw(NVM_READ, 9, 1, 9);

        assert_false(
            loopback_host_submit(&f->host, 1, &sqe, f->fake->data, BLOCK));
        run_until_idle(f);
        f->fake->hold_media = false;
        run_until_idle(f);
        for (uint16_t cid = 0; cid < 8; cid++) {
            assert_true(loopback_host_poll(&f->host, 1, &cqe));
            assert_int_equal(cqe.cid, cid); /* in the order of the responses */
            assert_int_equal(cqe.status, 0);
        }
        assert_false(loopback_host_poll(&f->host, 1, &cqe));
        assert_true(
            loopback_host_submit(&f->host, 1, &sqe, f->fake->data, BLOCK));
        run_until_idle(f);
        assert_true(loopback_host_poll(&f->host, 1, &cqe));
    }
}

static void test_data_of_the_wrong_length_is_refused(void **state)
{
    struct fixture *f = *state;
    struct nvme_sqe sqe = make_rw(NVM_WRITE, 0, 2, 1);

    assert_int_equal(loopback_host_connect(&f->host, 1, 8), 0);
    assert_int_equal(
        loopback_host_command(&f->host, 1, &sqe, f->fake->data, BLOCK) & 0x7ff,
        NVME_SC_SGL_INVALID_LENGTH);
    assert_int_equal(f->fake->media_count, 0);
}

static void test_connect_refuses_an_invalid_qid_and_size(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(loopback_host_connect_queue(&f->host, 0, 33),
                     NVME_SC_CONNECT_INVALID | DNR);
    assert_false(loopback_host_is_live(&f->host, 0));
    strcpy(f->host.config.subnqn, "nqn.2014-08.org.example:another");
    assert_int_equal(loopback_host_connect_queue(&f->host, 0, 32),
                     NVME_SC_CONNECT_INVALID | DNR);
    strcpy(f->host.config.subnqn, FAKE_SUBNQN);
    assert_int_equal(loopback_host_connect(&f->host, 1, 64), 0);
    assert_int_equal(loopback_host_connect_queue(&f->host, 17, 64),
                     NVME_SC_CONNECT_INVALID | DNR);
    assert_int_equal(loopback_host_connect_queue(&f->host, 16, 64), 0);
}

static void test_an_open_is_refused_when_no_queue_is_free(void **state)
{
    struct fixture *f = *state;
    uint16_t queue[QUEUES], extra;

    for (unsigned int i = 0; i < QUEUES; i++) {
        assert_true(loopback_open(&f->loopback, &queue[i]));
    }
    assert_false(loopback_open(&f->loopback, &extra));
    loopback_close(&f->loopback, queue[3]); /* it was never connected */
    assert_false(loopback_open(&f->loopback, &extra));
    run_until_idle(f);
    assert_true(loopback_open(&f->loopback, &extra));
    assert_int_equal(extra, queue[3]);
    for (unsigned int i = 0; i < QUEUES; i++) {
        loopback_close(&f->loopback, queue[i]);
    }
}

static void test_a_closed_queue_accesses_no_data_of_the_host(void **state)
{
    struct fixture *f = *state;
    struct nvme_sqe read = make_rw(NVM_READ, 0, 8, 1);
    struct nvme_sqe write = make_rw(NVM_WRITE, 8, 8, 2);
    uint8_t *in = malloc(8 * BLOCK), *out = malloc(8 * BLOCK);

    assert_int_equal(loopback_host_connect(&f->host, 1, 8), 0);
    f->fake->hold_media = true;
    assert_true(loopback_host_submit(&f->host, 1, &read, in, 8 * BLOCK));
    (void)step_loop(f);
    assert_int_equal(f->fake->media_count, 1);
    assert_true(loopback_host_submit(&f->host, 1, &write, out, 8 * BLOCK));
    loopback_close(&f->loopback, f->host.queue[1]);
    f->host.queue[1] = LOOPBACK_NO_QUEUE;
    free(in); /* ASan reports any later access of the transport */
    free(out);
    run_until_idle(f);
    /* The queue is not free before the medium is done with its command. */
    assert_int_equal(loopback_queues_used(&f->loopback), 2);
    f->fake->hold_media = false;
    run_until_idle(f);
    assert_int_equal(loopback_queues_used(&f->loopback), 1);
    assert_int_equal(f->fake->buffers_out, 0);
}

static void test_an_association_ends_without_keep_alive(void **state)
{
    struct fixture *f = *state;
    struct nvme_sqe sqe = make_rw(NVM_READ, 0, 1, 1);
    struct nvme_cqe cqe;

    f->host.config.kato_ms = 5000;
    assert_int_equal(loopback_host_connect(&f->host, 1, 8), 0);
    assert_true(loopback_host_submit(&f->host, 1, &sqe, f->fake->data, BLOCK));
    run_until_idle(f);
    f->fake->now_us += 6000000;
    run_until_idle(f);
    assert_false(loopback_host_is_live(&f->host, 0));
    assert_false(loopback_host_is_live(&f->host, 1));
    assert_false(loopback_host_submit(&f->host, 1, &sqe, f->fake->data, BLOCK));
    /* Completions from before the end can still be received. */
    assert_true(loopback_host_poll(&f->host, 1, &cqe));
    assert_int_equal(cqe.status, 0);
    assert_int_equal(f->fake->target->depth_used, 0);
}

static void test_a_reset_ends_the_io_queues_only(void **state)
{
    struct fixture *f = *state;
    struct nvme_sqe sqe = make_rw(NVM_READ, 0, 1, 1);

    assert_int_equal(loopback_host_connect(&f->host, 2, 8), 0);
    f->fake->hold_media = true;
    assert_true(loopback_host_submit(&f->host, 1, &sqe, f->fake->data, BLOCK));
    run_until_idle(f);
    assert_int_equal(loopback_host_enable(&f->host, false), 0);
    run_until_idle(f);
    assert_false(loopback_host_is_live(&f->host, 1));
    assert_false(loopback_host_is_live(&f->host, 2));
    assert_true(loopback_host_is_live(&f->host, 0));
    f->fake->hold_media = false;
    run_until_idle(f);
    for (uint16_t qid = 1; qid <= 2; qid++) {
        loopback_close(&f->loopback, f->host.queue[qid]);
        f->host.queue[qid] = LOOPBACK_NO_QUEUE;
    }
    run_until_idle(f);
    assert_int_equal(loopback_host_enable(&f->host, true), 0);
    assert_int_equal(loopback_host_connect_queue(&f->host, 1, 8), 0);
    assert_int_equal(
        loopback_host_command(&f->host, 1, &sqe, f->fake->data, BLOCK), 0);
}

static void test_a_queue_without_connect_ends_after_a_timeout(void **state)
{
    struct fixture *f = *state;
    uint16_t queue;

    assert_true(loopback_open(&f->loopback, &queue));
    run_until_idle(f);
    f->fake->now_us += 30200000;
    run_until_idle(f);
    assert_false(loopback_is_open(&f->loopback, queue));
    loopback_close(&f->loopback, queue);
}

/* ---- Random operations. */

static uint32_t random_below(struct fixture *f, uint32_t below)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 33) % below;
}

static void random_step(struct fixture *f, struct loopback_host *host)
{
    uint16_t qid = (uint16_t)random_below(f, RANDOM_QUEUES + 1);
    struct nvme_sqe sqe = make_rw(
        random_below(f, 2) ? NVM_READ : NVM_WRITE, random_below(f, 1024),
        1 + random_below(f, 16), (uint16_t)random_below(f, 0xffff));
    struct nvme_cqe cqe;

    switch (random_below(f, 10)) {
    case 0:
        f->fake->hold_media = random_below(f, 2);
        break;
    case 1:
        f->fake->now_us += random_below(f, 2000000);
        break;
    case 2:
        if (random_below(f, 8) == 0) {
            loopback_host_disconnect(host);
        }
        break;
    case 3:
        if (host->queue[0] == LOOPBACK_NO_QUEUE) {
            /* This closes the remaining I/O queues. */
            loopback_host_disconnect(host);
            (void)!loopback_host_connect(host, RANDOM_QUEUES, 16);
        } else if (random_below(f, 4) == 0 &&
                   host->queue[qid] == LOOPBACK_NO_QUEUE) {
            (void)!loopback_host_connect_queue(host, qid, 16);
        }
        break;
    case 4:
        if (random_below(f, 8) == 0 && host->queue[qid] != LOOPBACK_NO_QUEUE) {
            loopback_close(&f->loopback, host->queue[qid]);
            host->queue[qid] = LOOPBACK_NO_QUEUE;
        }
        break;
    case 5:
        while (loopback_host_poll(host, qid, &cqe)) {
        }
        break;
    case 6:
        (void)step_loop(f);
        break;
    default:
        if (qid == 0) {
            sqe = fake_admin(random_below(f, 2) ? ADMIN_KEEP_ALIVE
                                                : ADMIN_ASYNC_EVENT_REQUEST,
                             0, 0, 0);
            (void)!loopback_host_submit(host, 0, &sqe, NULL, 0);
        } else {
            (void)!loopback_host_submit(host, qid, &sqe, f->fake->data,
                                        (sqe.cdw12 + 1) * BLOCK);
        }
        break;
    }
}

static void random_run(struct fixture *f)
{
    struct loopback_host hosts[RANDOM_HOSTS];
    struct loopback_host_config config = host_config(f);

    config.kato_ms = 10000;
    for (unsigned int i = 0; i < RANDOM_HOSTS; i++) {
        loopback_host_init(&hosts[i], &config);
    }
    for (unsigned int i = 0; i < STEPS; i++) {
        random_step(f, &hosts[random_below(f, RANDOM_HOSTS)]);
        f->fake->history_count = 0;
    }
    for (unsigned int i = 0; i < RANDOM_HOSTS; i++) {
        loopback_host_disconnect(&hosts[i]);
    }
    f->fake->hold_media = false;
    run_until_idle(f);
    assert_int_equal(loopback_queues_used(&f->loopback), 0);
    assert_int_equal(f->fake->target->depth_used, 0);
    assert_int_equal(f->fake->buffers_out, 0);
}

static void test_random_operations_leak_no_resources(void **state)
{
    struct fixture *f = *state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        f->random = seed;
        random_run(f);
    }
}

TEST_FIXTURE(setup, teardown)
