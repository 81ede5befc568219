/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects that wait until others have made room for them: their order, what is
 * kept for them, and how they end.
 */
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

#include "nvmeof/target/make_room.h"

enum {
    A = 1, /* a host with promised queues */
    B = 2, /* has filled the drive */
    C = 3,
    D = 4,
    SMALL = 16, /* depth of each queue of B */
    OTHERS = NVMF_TOTAL_DEPTH / SMALL,
    CONNECT_BUSY = 0x181,
    SECOND_US = 1000000,
};

struct bed {
    struct fake *fake;
    uint16_t others[OTHERS]; /* of B, oldest first */
    unsigned int count;
};

static bool reserve_from(struct fake *fake, uint8_t from,
                         const struct nvmf_qpair_hints *hints, uint16_t *qpair)
{
    const struct nvmf_qpair_params params = {.transport = &fake->transport,
                                             .portid = 1,
                                             .host = {[15] = from},
                                             .hints = hints};

    if (nvmf_qpair_reserve(fake->target, &params, qpair) != NVMF_RESERVE_OK) {
        return false;
    }
    nvmf_qpair_open(fake->target, *qpair, fake->now_us);
    nvmf_qpair_confirm(fake->target, *qpair);
    return true;
}

/* An I/O queue that names no controller. */
static bool reserve_unnamed(struct fake *fake, uint8_t from, uint16_t depth)
{
    const struct nvmf_qpair_hints hints = {.qid = 1,
                                           .sqsize = (uint16_t)(depth - 1)};
    uint16_t qpair;

    return reserve_from(fake, from, &hints, &qpair);
}

/* B fills the drive, and is so old that its queue pairs have to go. */
static void fill_drive(struct bed *bed)
{
    const struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = SMALL - 1};

    while (reserve_from(bed->fake, B, &hints, &bed->others[bed->count])) {
        bed->count++;
    }
    bed->fake->now_us += 2 * SECOND_US;
    nvmf_target_timer(bed->fake->target, bed->fake->now_us);
}

/* Send Connect on a new connection, which is *qpair. */
static struct fake_request *send_connect(struct fake *fake, uint8_t from,
                                         uint16_t qid, uint16_t depth,
                                         uint16_t cntlid, uint16_t *qpair)
{
    const struct connect_command command = {.qid = qid,
                                            .sqsize = (uint16_t)(depth - 1),
                                            .has_sq_flow_control = true};
    uint8_t bytes[CONNECT_DATA_LEN];
    struct fake_request *request;
    struct connect_data data;
    struct nvme_sqe sqe = {0};

    assert_true(reserve_from(fake, from, NULL, qpair));
    connect_command_build(&sqe, &command);
    sqe.psdt = 0; /* the fake inverts the bit */
    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    request = fake_send_in_capsule(fake, *qpair, &sqe, bytes, sizeof(bytes));
    fake_run(fake);
    return request;
}

static struct fake_request *send_admin(struct fake *fake, uint8_t from,
                                       uint16_t *qpair)
{
    return send_connect(fake, from, 0, NVMF_ADMIN_DEPTH, 0xffff, qpair);
}

/* The oldest queue pairs of B end, which had to go for a Connect. */
static void end_others(struct bed *bed, unsigned int first, unsigned int count)
{
    for (unsigned int i = first; i < first + count; i++) {
        fake_close(bed->fake, bed->others[i]);
    }
    fake_run(bed->fake);
}

static uint16_t cntlid_of(const struct fake *fake, uint16_t admin)
{
    return fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
}

static void promise_one(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_NUMBER_OF_QUEUES, 0);

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    assert_int_equal(fake->target->queues_promised, 1);
}

/* ---- Who gets the room. */

/* Whoever forges the address of a host with promised queues gets these, but
 * nothing of what a Connect waits for. */
static void test_forged_addresses_take_no_room_that_is_waited_for(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct fake_request *request;
    uint16_t qpair, admin;
    unsigned int ended = 0;

    fake->peer = A;
    admin = fake_host(fake, 0);
    promise_one(fake, admin);
    fill_drive(bed);
    request = send_admin(fake, C, &qpair);
    assert_int_equal(fake->disconnect_count, 2 * 2); /* each without waiting */
    end_others(bed, ended++, 1);
    assert_false(reserve_unnamed(fake, D, SMALL));
    assert_true(reserve_unnamed(fake, A, NVMF_MAX_DEPTH));
    while (!request->is_answered && ended < 10) {
        assert_false(reserve_unnamed(fake, A, SMALL));
        assert_false(reserve_unnamed(fake, D, SMALL));
        end_others(bed, ended++, 1);
    }
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, 0);
}

/* A queue that was promised does not wait for a stranger. */
static void test_a_promised_queue_comes_in_while_others_wait(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = NVMF_MAX_DEPTH - 1};
    uint16_t qpair, admin, io;

    fake->peer = A;
    admin = fake_host(fake, 0);
    promise_one(fake, admin);
    fill_drive(bed);
    (void)send_admin(fake, C, &qpair);
    end_others(bed, 0, 1);
    hints.cntlid = cntlid_of(fake, admin);
    assert_true(reserve_from(fake, A, &hints, &io));
    fake_close(fake, io);
    assert_true(reserve_unnamed(fake, A, NVMF_MAX_DEPTH));
}

/* The first one is served first, whoever's room comes first. */
static void test_connects_wait_in_their_order(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct fake_request *first, *second;
    uint16_t qpairs[2];

    fill_drive(bed);
    first = send_admin(fake, C, &qpairs[0]);
    second = send_admin(fake, D, &qpairs[1]);
    assert_int_equal(fake->disconnect_count, 2 * 4);
    end_others(bed, 2, 1);
    assert_false(first->is_answered || second->is_answered);
    end_others(bed, 3, 1); /* what has ended for the second one */
    assert_true(first->is_answered);
    assert_int_equal(first->cqe.status, 0);
    assert_false(second->is_answered);
    end_others(bed, 0, 2);
    assert_true(second->is_answered);
    assert_int_equal(second->cqe.status, 0);
}

/* ---- How they end. */

/* Its connection ends: the one behind it gets what is left, and the other room
 * is for all. */
static void test_the_connection_of_a_connect_that_waits_ends(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct fake_request *second;
    uint16_t qpairs[2];

    fill_drive(bed);
    (void)send_admin(fake, C, &qpairs[0]);
    second = send_admin(fake, D, &qpairs[1]);
    fake_close(fake, qpairs[0]);
    end_others(bed, 0, 2);
    assert_true(second->is_answered);
    assert_int_equal(second->cqe.status, 0);
    end_others(bed, 2, 1);
    assert_true(reserve_unnamed(fake, C, SMALL));
    end_others(bed, 3, 1);
    assert_true(reserve_unnamed(fake, C, SMALL));
}

/* The controller of an I/O queue ends while its Connect waits. */
static void test_the_controller_of_a_connect_that_waits_ends(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct fake_request *request;
    uint16_t qpair, admin;

    fake->peer = C;
    admin = fake_host(fake, 0);
    fill_drive(bed);
    request =
        send_connect(fake, C, 1, 2 * SMALL, cntlid_of(fake, admin), &qpair);
    end_others(bed, 0, 1);
    assert_false(request->is_answered);
    fake_close(fake, admin);
    end_others(bed, 1, 1);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, 0x182 | DNR);
    assert_int_equal(request->cqe.dw0, 0x10000 | CONNECT_DATA_CNTLID);
    assert_true(reserve_unnamed(fake, D, SMALL)); /* nobody waits any more */
}

/* What has ended was too little, since a promised queue came in meanwhile, and
 * nothing more can make room. */
static void test_a_connect_that_nobody_makes_room_for_is_busy(void **state)
{
    const struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = SMALL - 1};
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    const struct nvmf_qpair_params staying = {
        .transport = &fake->transport, .portid = 1, .hints = &hints};
    struct fake_request *request;
    uint16_t qpair, admin;

    fake->peer = A;
    admin = fake_host(fake, 0);
    promise_one(fake, admin);
    while (fake->target->depth_used + NVMF_MAX_DEPTH + 3 * SMALL <
           NVMF_TOTAL_DEPTH) { /* not confirmed: these do not make room */
        assert_int_equal(nvmf_qpair_reserve(fake->target, &staying, &qpair),
                         NVMF_RESERVE_OK);
    }
    fill_drive(bed);
    assert_int_equal(bed->count, 2);
    request = send_admin(fake, C, &qpair);
    end_others(bed, 0, 1);
    assert_true(reserve_unnamed(fake, A, NVMF_MAX_DEPTH));
    assert_false(request->is_answered);
    end_others(bed, 1, 1);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, CONNECT_BUSY);
    assert_true(reserve_unnamed(fake, A, SMALL)); /* nobody waits any more */
}

/* All controllers are in use: one that ends for a Connect is for it. */
static void test_a_connect_waits_for_a_controller(void **state)
{
    struct bed *bed = *state;
    struct fake *fake = bed->fake;
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct fake_request *request;
    uint16_t discovery, qpair, admin, io;
    struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = 1};

    fake->peer = B;
    discovery = fake_discovery_host(fake);
    fake->peer = A;
    for (unsigned int i = 0; i < NVMF_MAX_HOSTS - 2; i++) {
        (void)fake_host(fake, 0);
    }
    admin = fake_host(fake, 0);
    hints.cntlid = cntlid_of(fake, admin);
    assert_true(reserve_from(fake, A, &hints, &io));
    fake_connect(fake, io, 1, 1, hints.cntlid, 0, FAKE_SUBNQN);
    fake->hold_media = true;
    (void)fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    fake_close(fake, admin);
    assert_false(nvmf_qpair_closed(fake->target, io)); /* it keeps a CNTLID */
    fake->now_us += 2 * SECOND_US;
    nvmf_target_timer(fake->target, fake->now_us);

    request = send_admin(fake, C, &qpair);
    assert_false(request->is_answered);
    assert_int_equal(fake->target->depth_used,
                     (NVMF_MAX_HOSTS - 1) * NVMF_ADMIN_DEPTH + 2);
    fake_close(fake, discovery);
    fake_run(fake);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, 0);
    fake->hold_media = false;
    fake_run(fake);
}

static int setup(void **state)
{
    static struct bed bed;
    void *fake;

    memset(&bed, 0, sizeof(bed));
    if (fake_setup(&fake) != 0) {
        return -1;
    }
    bed.fake = fake;
    *state = &bed;
    return 0;
}

static int teardown(void **state)
{
    void *fake = ((struct bed *)*state)->fake;

    return fake_teardown(&fake);
}

TEST_FIXTURE(setup, teardown)
