/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

#include "nvmeof/target/make_room.h"

static enum nvmf_reserve_status reserve_with(
    struct fake *fake, const struct nvmf_qpair_hints *hints, uint16_t *qpair)
{
    const struct nvmf_qpair_params params = {
        .transport = &fake->transport, .portid = 1, .hints = hints};

    return nvmf_qpair_reserve(fake->target, &params, qpair);
}

static enum nvmf_reserve_status reserve_qpair(struct fake *fake, uint16_t qid,
                                              uint16_t depth, uint16_t cntlid,
                                              uint16_t *qpair)
{
    const struct nvmf_qpair_hints hints = {
        .qid = qid, .sqsize = (uint16_t)(depth - 1), .cntlid = cntlid};

    return reserve_with(fake, &hints, qpair);
}

static void test_reserve_refuses_each_invalid_hint(void **state)
{
    struct fake *fake = *state;
    static const struct {
        struct nvmf_qpair_hints hints;
        enum nvmf_reserve_status status;
    } rows[] = {
        {{.qid = 17, .sqsize = 63}, NVMF_RESERVE_INVALID_QID},
        {{.qid = 0xffff, .sqsize = 63}, NVMF_RESERVE_INVALID_QID},
        {{.qid = 0, .sqsize = 32}, NVMF_RESERVE_INVALID_SQSIZE},
        {{.qid = 0, .sqsize = 0}, NVMF_RESERVE_INVALID_SQSIZE},
        {{.qid = 1, .sqsize = 64}, NVMF_RESERVE_INVALID_SQSIZE},
        {{.qid = 1, .sqsize = 0xffff}, NVMF_RESERVE_INVALID_SQSIZE},
        {{.qid = 1, .sqsize = 63, .cntlid = 1}, NVMF_RESERVE_INVALID_CNTLID},
        {{.qid = 1, .sqsize = 63, .cntlid = 0xffff},
         NVMF_RESERVE_INVALID_CNTLID},
        {{.qid = 1, .sqsize = 63, .cntlid = 0x0100},
         NVMF_RESERVE_INVALID_CNTLID},
        {{.qid = 16, .sqsize = 63}, NVMF_RESERVE_OK},
        {{.qid = 0, .sqsize = 31}, NVMF_RESERVE_OK},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint16_t qpair;

        assert_int_equal(reserve_with(fake, &rows[i].hints, &qpair),
                         rows[i].status);
    }
}

static void test_the_sum_of_depths_stays_below_8192(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair[128], extra;

    for (unsigned int i = 0; i < 127; i++) {
        assert_int_equal(reserve_qpair(fake, 1, 64, 0, &qpair[i]),
                         NVMF_RESERVE_OK);
    }
    assert_int_equal(reserve_qpair(fake, 1, 64, 0, &extra),
                     NVMF_RESERVE_NO_RESOURCES);
    assert_int_equal(reserve_qpair(fake, 1, 63, 0, &qpair[127]),
                     NVMF_RESERVE_OK);
    assert_int_equal(fake->target->depth_used, 8191);
    assert_int_equal(reserve_qpair(fake, 1, 2, 0, &extra),
                     NVMF_RESERVE_NO_RESOURCES);
    /* A queue pair that was freed can be reserved again. */
    assert_true(nvmf_qpair_closed(fake->target, qpair[127]));
    assert_int_equal(reserve_qpair(fake, 0, 32, 0, &extra), NVMF_RESERVE_OK);
    assert_int_equal(reserve_qpair(fake, 0, 32, 0, &extra),
                     NVMF_RESERVE_NO_RESOURCES);
}

static void test_exactly_255_admin_queues_fit(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair, controllers, qpairs;

    for (unsigned int i = 0; i < 255; i++) {
        /* It is charged the full depth, though it is small. */
        qpair = fake_open(fake, 0, 1);
        fake_connect(fake, qpair, 0, 1, 0xffff, 0, FAKE_SUBNQN);
    }
    assert_int_equal(reserve_qpair(fake, 0, 2, 0, &qpair),
                     NVMF_RESERVE_NO_RESOURCES);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 255);
    assert_int_equal(qpairs, 255);
    assert_int_equal(reserve_qpair(fake, 1, 31, 0, &qpair), NVMF_RESERVE_OK);
    assert_int_equal(reserve_qpair(fake, 1, 2, 0, &qpair),
                     NVMF_RESERVE_NO_RESOURCES);
}

static void test_exactly_1024_queue_pairs_fit(void **state)
{
    struct fake *fake = *state;
    static bool seen[NVMF_MAX_QPAIRS];
    uint16_t qpair;

    memset(seen, 0, sizeof(seen));
    for (unsigned int i = 0; i < 1024; i++) {
        assert_int_equal(reserve_qpair(fake, 1, 2, 0, &qpair), NVMF_RESERVE_OK);
        assert_true(qpair < NVMF_MAX_QPAIRS && !seen[qpair]);
        seen[qpair] = true;
    }
    assert_int_equal(reserve_qpair(fake, 1, 2, 0, &qpair),
                     NVMF_RESERVE_NO_RESOURCES);
    assert_true(nvmf_qpair_closed(fake->target, 500));
    assert_int_equal(reserve_qpair(fake, 1, 2, 0, &qpair), NVMF_RESERVE_OK);
    assert_int_equal(qpair, 500);
}

static uint16_t number_of_queues(struct fake *fake, uint16_t admin,
                                 uint16_t wanted)
{
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_NUMBER_OF_QUEUES,
                   (wanted - 1u) << 16 | (wanted - 1u));
    struct nvme_cqe cqe = fake_exec(fake, admin, &set, NULL, 0);

    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 >> 16, cqe.dw0 & 0xffff);
    return (uint16_t)((cqe.dw0 & 0xffff) + 1);
}

static void test_granted_queues_are_reserved_for_the_host(void **state)
{
    struct fake *fake = *state;
    uint16_t admin[16], other, cntlid, qpair;

    /* 15 hosts with 8 queues each take 15 * (32 + 512) = 8160 entries. */
    for (unsigned int i = 0; i < 15; i++) {
        admin[i] = fake_host(fake, 0);
        assert_int_equal(number_of_queues(fake, admin[i], 8), 8);
    }
    assert_int_equal(reserve_qpair(fake, 0, 32, 0, &other),
                     NVMF_RESERVE_NO_RESOURCES);
    for (unsigned int i = 0; i < 15; i++) {
        cntlid = fake->target->ctrl[fake->target->qpair[admin[i]].ctrl].cntlid;
        for (uint16_t qid = 1; qid <= 8; qid++) {
            assert_int_equal(reserve_qpair(fake, qid, 64, cntlid, &qpair),
                             NVMF_RESERVE_OK);
        }
        assert_int_equal(reserve_qpair(fake, 1, 64, cntlid, &qpair),
                         NVMF_RESERVE_NO_RESOURCES);
    }
    assert_int_equal(fake->target->depth_used, 8160);
    assert_int_equal(fake->target->queues_promised, 0);
}

/* Another host may name any CNTLID, or none, as older hosts do. */
static void test_promised_queues_are_not_given_to_other_hosts(void **state)
{
    struct fake *fake = *state;
    struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = 63};
    const struct nvmf_qpair_params foreign = {
        .transport = &fake->transport,
        .portid = 1,
        .host = {[15] = 9},
        .hints = &hints,
    };
    uint16_t admin[15], cntlid, qpair;

    for (unsigned int i = 0; i < 15; i++) {
        admin[i] = fake_host(fake, 0);
        assert_int_equal(number_of_queues(fake, admin[i], 8), 8);
    }
    cntlid = fake->target->ctrl[fake->target->qpair[admin[0]].ctrl].cntlid;
    hints.cntlid = cntlid;
    assert_int_equal(nvmf_qpair_reserve(fake->target, &foreign, &qpair),
                     NVMF_RESERVE_NO_RESOURCES);
    hints.cntlid = 0;
    assert_int_equal(nvmf_qpair_reserve(fake->target, &foreign, &qpair),
                     NVMF_RESERVE_NO_RESOURCES);
    assert_int_equal(fake->target->queues_promised, 15 * 8);
    assert_int_equal(reserve_qpair(fake, 1, 64, cntlid, &qpair),
                     NVMF_RESERVE_OK);
    assert_int_equal(fake->target->queues_promised, 15 * 8 - 1);
    assert_int_equal(reserve_qpair(fake, 2, 64, 0, &qpair), NVMF_RESERVE_OK);
}

/* The budget is full but for what is promised to the host of admin[0], which
 * has CNTLID *cntlid. */
static void fill_budget(struct fake *fake, uint16_t *admin, uint16_t *cntlid)
{
    for (unsigned int i = 0; i < 15; i++) {
        admin[i] = fake_host(fake, 0);
        assert_int_equal(number_of_queues(fake, admin[i], 8), 8);
    }
    *cntlid = fake->target->ctrl[fake->target->qpair[admin[0]].ctrl].cntlid;
}

/* Open an I/O queue that names its controller before Connect. */
static uint16_t connect_named(struct fake *fake, uint16_t qid, uint16_t depth,
                              uint16_t cntlid)
{
    const struct connect_command command = {.qid = qid,
                                            .sqsize = (uint16_t)(depth - 1)};
    struct connect_data data;
    uint16_t qpair;

    assert_int_equal(reserve_qpair(fake, qid, depth, cntlid, &qpair),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).status, 0);
    return qpair;
}

/* Whoever can forge a host's address can name its controller, too. */
static void test_a_promised_queue_comes_back_from_who_does_not_connect(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin[15], cntlid, other, qpair[8];
    uint32_t before;

    fill_budget(fake, admin, &cntlid);
    before = fake->target->depth_used;
    for (unsigned int round = 0; round < 3; round++) {
        for (uint16_t qid = 1; qid <= 8; qid++) {
            assert_int_equal(
                reserve_qpair(fake, qid, 2, cntlid, &qpair[qid - 1]),
                NVMF_RESERVE_OK);
        }
        assert_int_equal(reserve_qpair(fake, 1, 64, cntlid, &other),
                         NVMF_RESERVE_NO_RESOURCES);
        for (unsigned int i = 0; i < 8; i++) {
            assert_true(nvmf_qpair_closed(fake->target, qpair[i]));
        }
        assert_int_equal(fake->target->queues_promised, 15 * 8);
        assert_int_equal(fake->target->depth_used, before);
    }
    /* The host has all of them. */
    for (uint16_t qid = 1; qid <= 8; qid++) {
        (void)connect_named(fake, qid, 64, cntlid);
    }
    assert_int_equal(fake->target->queues_promised, 14 * 8);
}

/* A queue that was joined has used the promise up, with its own depth. */
static void test_a_queue_that_connects_keeps_what_was_promised(void **state)
{
    struct fake *fake = *state;
    uint16_t admin[15], cntlid, qpair;
    uint32_t before;

    fill_budget(fake, admin, &cntlid);
    before = fake->target->depth_used;
    qpair = connect_named(fake, 1, 20, cntlid);
    assert_int_equal(fake->target->queues_promised, 15 * 8 - 1);
    assert_int_equal(fake->target->depth_used, before + 20);
    fake_close(fake, qpair);
    assert_int_equal(fake->target->queues_promised, 15 * 8 - 1);
    assert_int_equal(fake->target->depth_used, before);
}

/* What was borrowed before a new grant does not come on top of it. */
static void test_a_new_grant_ends_what_was_borrowed(void **state)
{
    struct fake *fake = *state;
    uint16_t admin[15], cntlid, qpair;

    fill_budget(fake, admin, &cntlid);
    assert_int_equal(reserve_qpair(fake, 1, 64, cntlid, &qpair),
                     NVMF_RESERVE_OK);
    assert_int_equal(number_of_queues(fake, admin[0], 8), 7);
    assert_true(nvmf_qpair_closed(fake->target, qpair));
    assert_int_equal(fake->target->queues_promised, 15 * 8 - 1);
    fake_close(fake, admin[0]);
    assert_int_equal(fake->target->queues_promised, 14 * 8);
}

/* One of the host's controllers does not pay for another one. */
static void test_a_queue_connects_to_the_controller_that_it_has_named(
    void **state)
{
    const struct connect_command command = {.qid = 1, .sqsize = 63};
    struct fake *fake = *state;
    uint16_t admin[15], cntlid, qpair;
    struct connect_data data;
    struct nvme_cqe cqe;

    fill_budget(fake, admin, &cntlid);
    assert_int_equal(reserve_qpair(fake, 1, 64, cntlid, &qpair),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    fake_connect_data(
        &data, fake->target->ctrl[fake->target->qpair[admin[1]].ctrl].cntlid,
        FAKE_SUBNQN);
    cqe = fake_connect_with(fake, qpair, &command, &data);
    assert_int_equal(cqe.status, 0x182 | DNR);
    assert_int_equal(cqe.dw0, 0x10000 | CONNECT_DATA_CNTLID);
    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).status, 0);
}

/* Hosts that name no controller before Connect take no more of the budget than
 * what was promised to them. */
static void test_all_of_them_get_what_was_promised_if_they_name_no_controller(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin[15];

    for (uint8_t i = 0; i < 15; i++) {
        fake->peer = (uint8_t)(i + 1);
        admin[i] = fake_host(fake, 0);
        assert_int_equal(number_of_queues(fake, admin[i], 8), 8);
    }
    for (uint8_t i = 0; i < 15; i++) {
        fake->peer = (uint8_t)(i + 1);
        for (uint16_t qid = 1; qid <= 8; qid++) {
            (void)fake_io_queue(fake, admin[i], qid);
            assert_int_equal(fake->target->queues_promised, (15 - i) * 8 - qid);
        }
    }
    assert_int_equal(fake->target->depth_used, 15 * (32 + 8 * 64));
}

/* What is borrowed goes back to the controller, so a host that needs room gets
 * nothing from its end. */
static void test_nobody_is_displaced_for_what_is_borrowed(void **state)
{
    const struct nvmf_qpair_hints hints = {.sqsize = 31};
    struct fake *fake = *state;
    const struct nvmf_qpair_params stranger = {
        .transport = &fake->transport,
        .portid = 1,
        .host = {[15] = 9},
        .hints = &hints,
    };
    uint16_t admin[15], cntlid, qpair, other;

    fill_budget(fake, admin, &cntlid);
    for (uint16_t qid = 1; qid <= 8; qid++) {
        assert_int_equal(reserve_qpair(fake, qid, 64, cntlid, &qpair),
                         NVMF_RESERVE_OK);
        nvmf_qpair_open(fake->target, qpair, fake->now_us);
        nvmf_qpair_confirm(fake->target, qpair);
    }
    assert_int_equal(nvmf_qpair_reserve(fake->target, &stranger, &other),
                     NVMF_RESERVE_NO_RESOURCES);
    assert_int_equal(
        nvmf_qpair_displace(fake->target, &stranger, fake->now_us, &other),
        NVMF_ROOM_NONE);
    assert_int_equal(nvmf_target_displaced(fake->target), 0);
    /* After a reset, what they have is no longer promised to anybody. */
    fake_property_set(fake, admin[0], PROPERTY_CC, 0);
    assert_int_equal(
        nvmf_qpair_displace(fake->target, &stranger, fake->now_us, &other),
        NVMF_ROOM_OWN);
}

/* A transport that has fewer connections than the drive has queue pairs. */
static void test_what_is_borrowed_is_not_granted_to_others(void **state)
{
    struct fake *fake = *state;
    uint16_t first = fake_host(fake, 0), second = fake_host(fake, 0);
    uint16_t cntlid, qpair;

    cntlid = fake->target->ctrl[fake->target->qpair[first].ctrl].cntlid;
    fake->transport.max_qpairs = 2 + 8 + 5;
    assert_int_equal(number_of_queues(fake, first, 8), 8);
    for (uint16_t qid = 1; qid <= 8; qid++) {
        assert_int_equal(reserve_qpair(fake, qid, 64, cntlid, &qpair),
                         NVMF_RESERVE_OK);
        nvmf_qpair_open(fake->target, qpair, fake->now_us);
        nvmf_qpair_confirm(fake->target, qpair);
    }
    assert_int_equal(number_of_queues(fake, second, 16), 5);
}

/* A part of a transport has a limit of its own, and counts in that of the
 * whole. */
static void test_a_part_of_a_transport_has_its_own_limit(void **state)
{
    struct fake *fake = *state;
    struct nvmf_transport part;
    uint16_t inside, outside;

    fake->transport.max_qpairs = 3 + 8 + 3;
    part = fake->transport;
    part.within = &fake->transport;
    part.max_qpairs = 2 + 8;
    outside = fake_host(fake, 0);
    inside = fake_host(fake, 0);
    fake->target->qpair[inside].transport = &part;
    fake->target->ctrl[fake->target->qpair[inside].ctrl].transport = &part;
    assert_int_equal(number_of_queues(fake, inside, 16), 9);
    assert_int_equal(number_of_queues(fake, outside, 16), 3);
    assert_int_equal(number_of_queues(fake, inside, 16), 9);
    fake->transport.max_qpairs = 2 + 3 + 4;
    assert_int_equal(number_of_queues(fake, inside, 16), 4);
}

static void test_grants_shrink_with_the_budget(void **state)
{
    struct fake *fake = *state;
    uint16_t admin, qpair;

    assert_int_equal(number_of_queues(fake, fake_host(fake, 0), 100), 16);
    admin = fake_host(fake, 0);
    for (unsigned int i = 0; i < 108; i++) {
        assert_int_equal(reserve_qpair(fake, 1, 64, 0, &qpair),
                         NVMF_RESERVE_OK);
    }
    /* 8191 - 2 * 32 - 16 * 64 - 108 * 64 = 191 */
    assert_int_equal(number_of_queues(fake, admin, 16), 2);
    assert_int_equal(number_of_queues(fake, admin, 1), 1);
    /* Connect also refuses more queues than were granted. */
    qpair = fake_open(fake, 2, 1);
    {
        struct connect_command command = {.qid = 2, .sqsize = 1};
        struct connect_data data;
        struct nvme_cqe cqe;

        fake_connect_data(
            &data, fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid,
            FAKE_SUBNQN);
        cqe = fake_connect_with(fake, qpair, &command, &data);
        assert_int_equal(cqe.status, 0x182 | DNR);
        assert_int_equal(cqe.dw0, 42);
    }
    /* The end of the association frees its promised queues. */
    fake_close(fake, admin);
    assert_int_equal(fake->target->queues_promised, 16);
}

static void test_closing_waits_for_the_media(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);

    fake->hold_media = true;
    fake_send(fake, io, &read, fake->data, 4096);
    fake_send(fake, io, &read, fake->data, 4096);
    assert_false(nvmf_qpair_closed(fake->target, io));
    assert_int_equal(fake->drained_count, 0);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->drained_count, 1);
    assert_int_equal(fake->drained[0], io);
    assert_int_equal(fake->respond_count, 0);
    assert_int_equal(fake->buffers_out, 0);
}

static void test_closing_drops_waiting_commands(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct fake_request *waiting;

    fake->hold_done = true;
    fake->buffers_free = 4096;
    fake_send(fake, io, &read, fake->data, 4096);
    fake_run(fake);
    waiting = fake_send(fake, io, &read, fake->data, 4096);
    assert_int_equal(waiting->req.state, NVMF_REQUEST_WAIT_BUFFER);
    /* One response is unacknowledged. */
    assert_false(nvmf_qpair_closed(fake->target, io));
    assert_int_equal(waiting->req.state, NVMF_REQUEST_FREE);
    fake->hold_done = false;
    fake_run(fake);
    assert_int_equal(fake->drained_count, 1);
    assert_int_equal(fake->buffers_out, 0);
}

static void test_closing_frees_buffers_that_others_wait_for(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t one = fake_io_queue(fake, admin, 1);
    uint16_t two = fake_io_queue(fake, admin, 2);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct fake_request *other;

    fake->buffers_free = 4096;
    fake->media_room = 0;
    fake_send(fake, one, &read, fake->data, 4096); /* waits for the media */
    fake_send(fake, one, &read, fake->data, 4096); /* waits for a buffer */
    other = fake_send(fake, two, &read, fake->data, 4096);
    fake->media_room = 10;
    assert_true(nvmf_qpair_closed(fake->target, one));
    fake_run(fake);
    assert_true(other->is_answered);
    assert_int_equal(other->cqe.status, 0);
    assert_null(fake->target->wait_media.head);
}

static void test_the_end_of_the_admin_queue_ends_the_association(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *request = fake_send(fake, admin, &aer, NULL, 0);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    uint16_t controllers, qpairs;

    assert_true(nvmf_qpair_closed(fake->target, admin));
    assert_int_equal(request->req.state, NVMF_REQUEST_FREE);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], io);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 1);

    /* Commands that arrive after the end are dropped. */
    request = fake_send(fake, io, &read, fake->data, 4096);
    assert_int_equal(request->req.state, NVMF_REQUEST_FREE);
    fake_run(fake);
    assert_false(request->is_answered);
    fake_close(fake, io);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
    assert_int_equal(qpairs, 0);
    assert_int_equal(fake->target->depth_used, 0);
}

static void test_the_end_of_an_io_queue_ends_no_other_queue(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

    fake_close(fake, io);
    assert_int_equal(fake->disconnect_count, 0);
    assert_int_equal(fake_exec(fake, admin, &keep_alive, NULL, 0).status, 0);
    io = fake_io_queue(fake, admin, 1);
}

/* Events in each state of a connection, with up to three commands in flight. */
WITH_FIXTURE(NULL, NULL)
static void test_every_order_of_events_of_a_connection_is_handled(void **state)
{
    (void)state;
    for (unsigned int in_flight = 0; in_flight < 4; in_flight++) {
        for (unsigned int depth = 0; depth < 4; depth++) {
            struct fake *fake = fake_new();
            struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
            uint16_t admin, io, controllers, qpairs;

            fake_start(fake);
            admin = fake_host(fake, 0);
            assert_int_equal(reserve_qpair(fake, 1, 64, 0, &io),
                             NVMF_RESERVE_OK);
            if (depth > 0) {
                nvmf_qpair_open(fake->target, io, fake->now_us);
            }
            if (depth > 1) {
                fake_connect(
                    fake, io, 1, 63,
                    fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid,
                    0, FAKE_SUBNQN);
            }
            fake->hold_media = fake->hold_done = fake->hold_fetch = true;
            for (unsigned int i = 0; i < in_flight && depth > 0; i++) {
                if (i == 1) {
                    read.opcode = NVM_WRITE;
                }
                if (i == 2) {
                    read.opcode = 0xff;
                }
                fake_send(fake, io, &read, fake->data, 4096);
            }
            if (depth > 2) {
                (void)!nvmf_qpair_closed(fake->target, admin);
                assert_int_equal(fake->disconnect_count, 1);
            }
            if (nvmf_qpair_closed(fake->target, io)) {
                fake->drained_count++;
            }
            assert_int_equal(fake->drained_count, in_flight == 0 || depth == 0);
            fake->hold_media = fake->hold_done = fake->hold_fetch = false;
            fake_run(fake);
            assert_int_equal(fake->drained_count, 1);
            assert_int_equal(fake->buffers_out, 0);
            nvmf_target_stats(fake->target, &controllers, &qpairs);
            assert_int_equal(controllers, depth > 2 ? 0 : 1);
            assert_int_equal(qpairs, depth > 2 ? 0 : 1);
            fake_free(fake);
        }
    }
}

static void test_a_connection_without_connect_ends_after_a_timeout(void **state)
{
    struct fake *fake = *state;
    uint16_t silent = fake_open(fake, 0, 31);
    uint16_t busy = fake_open(fake, 0, 31);
    uint64_t end_us = fake->now_us + 30000000;

    fake_connect(fake, busy, 0, 31, 0xffff, 0, FAKE_SUBNQN);
    while (fake->now_us < end_us) {
        fake->now_us += 100000;
        nvmf_target_timer(fake->target, fake->now_us);
        assert_int_equal(fake->disconnect_count,
                         fake->disconnect_count > 0 ? 1 : 0);
        assert_true(fake->disconnect_count == 0 || fake->now_us >= end_us);
    }
    nvmf_target_timer(fake->target, end_us + 200000);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], silent);
    fake_close(fake, silent);
    assert_int_equal(nvmf_target_timer(fake->target, end_us + 900000000),
                     NVMF_NO_DEADLINE);
}

/* A silent peer must not keep its share of the budget for long. */
static void test_disconnect_is_called_again_after_a_timeout(void **state)
{
    struct fake *fake = *state;
    uint16_t silent = fake_open(fake, 0, 31);

    fake->now_us += 30200000;
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 1);
    fake->now_us += 4900000;
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 1);
    fake->now_us += 400000;
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 2);
    assert_int_equal(fake->disconnected[1], silent);
    fake->now_us += 100000000;
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     NVMF_NO_DEADLINE);
    assert_int_equal(fake->disconnect_count, 2);
    fake_close(fake, silent);
    assert_int_equal(fake->target->depth_used, 0);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_connect_timeout_may_be_long(void **state)
{
    struct fake *fake = fake_new();

    (void)state;
    fake->config.connect_timeout_ms = 100000;
    fake_start(fake);
    fake_open(fake, 0, 31);
    for (unsigned int s = 0; s < 100; s++) {
        fake->now_us += 999999;
        nvmf_target_timer(fake->target, fake->now_us);
    }
    assert_int_equal(fake->disconnect_count, 0);
    nvmf_target_timer(fake->target, fake->now_us + 500000);
    assert_int_equal(fake->disconnect_count, 1);
    fake_free(fake);
}

TEST_FIXTURE(fake_setup, fake_teardown)
