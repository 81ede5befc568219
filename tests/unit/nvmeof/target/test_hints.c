/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs whose transport does not know QID and size before Connect, and a
 * target that several transports use at the same time.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/log.h"
#include "tests/test_fixture.h"

enum {
    IN_DATA = 0x10000, /* IATTR: the field is in Connect's data */
    CONNECT_INVALID = 0x182 | DNR,
    CONNECT_BUSY = 0x181,
};

static uint16_t open_by(struct fake *fake,
                        const struct nvmf_transport *transport)
{
    const struct nvmf_qpair_params params = {.transport = transport,
                                             .portid = 1};
    uint16_t qpair;

    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpair),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    return qpair;
}

static uint16_t open_unknown(struct fake *fake)
{
    return open_by(fake, &fake->transport);
}

static struct nvme_cqe connect_as(struct fake *fake, uint16_t qpair,
                                  uint16_t qid, uint16_t sqsize,
                                  uint16_t cntlid)
{
    const struct connect_command command = {
        .qid = qid, .sqsize = sqsize, .has_sq_flow_control = true};
    struct connect_data data;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    return fake_connect_with(fake, qpair, &command, &data);
}

static void enable_ctrl(struct fake *fake, uint16_t admin)
{
    assert_int_equal(
        fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE).status, 0);
}

/* Reserve queue pairs with hints until only `left` of the budget is left. */
static uint16_t leave_budget(struct fake *fake, uint16_t left)
{
    uint16_t last = NO_QPAIR;

    while (fake->target->depth_used + left < NVMF_TOTAL_DEPTH - 1) {
        uint32_t rest = NVMF_TOTAL_DEPTH - 1 - left - fake->target->depth_used;
        const struct nvmf_qpair_hints hints = {
            .qid = 1,
            .sqsize = (uint16_t)(MIN(rest, (uint32_t)NVMF_MAX_DEPTH) - 1)};
        const struct nvmf_qpair_params params = {
            .transport = &fake->transport, .portid = 1, .hints = &hints};

        assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &last),
                         NVMF_RESERVE_OK);
    }
    return last;
}

static void test_connect_sets_qid_and_size_of_a_queue_without_hints(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = open_unknown(fake), io = open_unknown(fake), cntlid;
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct nvme_cqe cqe;

    assert_int_equal(nvmf_qpair_depth(fake->target, admin), 1);
    assert_int_equal(fake->target->depth_used, 0);
    cqe = connect_as(fake, admin, 0, 15, 0xffff);
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.sqhd, 1);
    cntlid = (uint16_t)cqe.dw0;
    assert_int_equal(nvmf_qpair_depth(fake->target, admin), 16);
    /* An admin queue is charged its full depth. */
    assert_int_equal(fake->target->depth_used, NVMF_ADMIN_DEPTH);
    enable_ctrl(fake, admin);

    assert_int_equal(connect_as(fake, io, 3, 23, cntlid).status, 0);
    assert_int_equal(nvmf_qpair_depth(fake->target, io), 24);
    assert_int_equal(fake->target->depth_used, NVMF_ADMIN_DEPTH + 24);
    assert_int_equal(fake_exec(fake, io, &read, fake->data, 4096).status, 0);
    fake_close(fake, io);
    assert_int_equal(fake->target->depth_used, NVMF_ADMIN_DEPTH);
    fake_close(fake, admin);
    assert_int_equal(fake->target->depth_used, 0);
}

static void test_connect_refuses_invalid_qid_and_size_without_hints(
    void **state)
{
    static const struct {
        uint16_t qid, sqsize;
        uint32_t field;
    } rows[] = {{17, 31, CONNECT_QID},   {0xffff, 31, CONNECT_QID},
                {0, 0, CONNECT_SQSIZE},  {0, 32, CONNECT_SQSIZE},
                {1, 0, CONNECT_SQSIZE},  {1, 64, CONNECT_SQSIZE},
                {16, 64, CONNECT_SQSIZE}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
    uint16_t qpair = open_unknown(fake);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_cqe cqe =
            connect_as(fake, qpair, rows[i].qid, rows[i].sqsize,
                       rows[i].qid == 0 ? 0xffff : cntlid);

        assert_int_equal(cqe.status, CONNECT_INVALID);
        assert_int_equal(cqe.dw0, rows[i].field);
        assert_int_equal(cqe.sqhd, i + 1);
    }
    assert_int_equal(fake->target->depth_used, NVMF_ADMIN_DEPTH);
    assert_int_equal(connect_as(fake, qpair, 16, 63, cntlid).status, 0);
    assert_int_equal(fake->target->depth_used, NVMF_ADMIN_DEPTH + 64);
}

static void test_an_admin_queue_beyond_the_budget_is_busy(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = open_unknown(fake);
    uint16_t other = leave_budget(fake, NVMF_ADMIN_DEPTH - 1);
    uint16_t controllers, qpairs;

    assert_int_equal(connect_as(fake, qpair, 0, 31, 0xffff).status,
                     CONNECT_BUSY);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
    assert_int_equal(fake->target->depth_used,
                     NVMF_TOTAL_DEPTH - NVMF_ADMIN_DEPTH);
    /* The same connection may try again after another queue has ended. */
    fake_close(fake, other);
    assert_int_equal(connect_as(fake, qpair, 0, 31, 0xffff).status, 0);
    fake_close(fake, qpair);
}

static void test_an_io_queue_beyond_the_budget_is_busy(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
    uint16_t qpair = open_unknown(fake);

    (void)leave_budget(fake, 20);
    assert_int_equal(connect_as(fake, qpair, 1, 20, cntlid).status,
                     CONNECT_BUSY);
    assert_int_equal(fake->target->depth_used, NVMF_TOTAL_DEPTH - 1 - 20);
    assert_int_equal(connect_as(fake, qpair, 1, 19, cntlid).status, 0);
    assert_int_equal(fake->target->depth_used, NVMF_TOTAL_DEPTH - 1);
    fake_close(fake, qpair);
    assert_int_equal(fake->target->depth_used, NVMF_TOTAL_DEPTH - 1 - 20);
}

/* Queues that Set Features promised to one controller are not given to
 * others. */
static void test_promised_queues_are_kept_for_their_controller(void **state)
{
    struct fake *fake = *state;
    uint16_t one = fake_host(fake, 0), two = fake_host(fake, 0);
    uint16_t one_cntlid =
        fake->target->ctrl[fake->target->qpair[one].ctrl].cntlid;
    uint16_t two_cntlid =
        fake->target->ctrl[fake->target->qpair[two].ctrl].cntlid;
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_NUMBER_OF_QUEUES, 0);
    uint16_t qpair[2] = {open_unknown(fake), open_unknown(fake)};

    (void)leave_budget(fake, NVMF_MAX_DEPTH);
    assert_int_equal(fake_exec(fake, one, &set, NULL, 0).status, 0);
    assert_int_equal(fake->target->queues_promised, 1);
    assert_int_equal(connect_as(fake, qpair[1], 1, 1, two_cntlid).status,
                     CONNECT_BUSY);
    assert_int_equal(connect_as(fake, qpair[0], 1, 63, one_cntlid).status, 0);
    assert_int_equal(fake->target->queues_promised, 0);
    assert_int_equal(fake->target->depth_used, NVMF_TOTAL_DEPTH - 1);
}

static void test_a_queue_without_hints_ends_without_connect(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = open_unknown(fake);

    fake->now_us += 30200000;
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], qpair);
    fake_close(fake, qpair);
    assert_int_equal(fake->target->depth_used, 0);
}

/* ---- More than one transport. */

struct other {
    struct nvmf_transport transport;
    unsigned int disconnects;
};

static void other_disconnect(void *ctx, uint16_t qpair)
{
    struct other *other = ctx;

    (void)qpair;
    other->disconnects++;
}

/* A second transport, which fetches and responds as the first one does. */
static void other_init(struct fake *fake, struct other *other)
{
    *other = (struct other){.transport = fake->transport};
    other->transport.trtype = TRTYPE_INTRA_HOST;
    other->transport.sgls = SGLS_SUPPORTED;
    other->transport.in_capsule_len = 0;
}

static void test_identify_describes_the_transport_of_the_controller(
    void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    uint16_t first = fake_host(fake, 0), second;
    struct other other;

    assert_int_equal(fake_exec(fake, first, &identify, fake->data, 4096).status,
                     0);
    assert_int_equal(get_le32(fake->data + ID_CTRL_IOCCSZ), (64 + 4096) / 16);
    assert_int_equal(get_le32(fake->data + ID_CTRL_SGLS) & 0x100005, 0x100005);

    other_init(fake, &other);
    second = open_by(fake, &other.transport);
    assert_int_equal(connect_as(fake, second, 0, 31, 0xffff).status, 0);
    enable_ctrl(fake, second);
    assert_int_equal(
        fake_exec(fake, second, &identify, fake->data, 4096).status, 0);
    assert_int_equal(get_le32(fake->data + ID_CTRL_IOCCSZ), 64 / 16);
    assert_int_equal(get_le32(fake->data + ID_CTRL_SGLS) & 0x100005, 1);
}

static void test_an_io_queue_stays_on_its_transport(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0), io;
    struct nvme_cqe cqe;
    struct other other;

    other_init(fake, &other);
    io = open_by(fake, &other.transport);
    cqe =
        connect_as(fake, io, 1, 63,
                   fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid);
    assert_int_equal(cqe.status, CONNECT_INVALID);
    assert_int_equal(cqe.dw0, IN_DATA | CONNECT_DATA_CNTLID);
}

static void test_disconnect_is_called_on_the_transport_of_the_queue(
    void **state)
{
    struct fake *fake = *state;
    struct other other;
    uint16_t first = fake_host(fake, 10000), second;

    other_init(fake, &other);
    other.transport.ctx = &other;
    other.transport.disconnect = other_disconnect;
    second = open_by(fake, &other.transport);
    fake->now_us += 30200000; /* both keep-alive and Connect are overdue */
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], first);
    assert_int_equal(other.disconnects, 1);
    fake_close(fake, first);
    fake_close(fake, second);
}

static void test_the_error_log_names_the_transport(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe bad = fake_admin(0x7f, 0, 0, 0);
    struct log_error error;
    struct other other;
    uint16_t admin = fake_host(fake, 0);

    fake_exec(fake, admin, &bad, NULL, 0);
    assert_true(nvmf_target_error(
        fake->target, fake->target->counters.error_log_entries, &error));
    assert_int_equal(error.trtype, TRTYPE_RDMA);

    other_init(fake, &other);
    admin = open_by(fake, &other.transport);
    assert_int_equal(connect_as(fake, admin, 0, 31, 0xffff).status, 0);
    fake_exec(fake, admin, &bad, NULL, 0);
    assert_true(nvmf_target_error(
        fake->target, fake->target->counters.error_log_entries, &error));
    assert_int_equal(error.trtype, TRTYPE_INTRA_HOST);
}

static void test_discovery_names_the_transport_of_each_address(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);
    struct nvme_sqe get = fake_admin(
        ADMIN_GET_LOG_PAGE, 0, (3 * 1024 / 4 - 1) << 16 | LOG_DISCOVERY, 0);
    const uint8_t *entry = fake->data + DISCOVERY_HEADER_LEN;

    fake->address[1].trtype = TRTYPE_INTRA_HOST;
    fake->address[1].adrfam = 254;
    nvmf_target_set_addresses(fake->target, fake->address, 2);
    assert_int_equal(fake_exec(fake, admin, &get, fake->data, 3 * 1024).status,
                     0);
    assert_int_equal(entry[DISCOVERY_TRTYPE], TRTYPE_RDMA);
    assert_int_equal(entry[DISCOVERY_RDMA_QPTYPE], RDMA_QPTYPE_RC);
    entry += DISCOVERY_ENTRY_LEN;
    assert_int_equal(entry[DISCOVERY_TRTYPE], TRTYPE_INTRA_HOST);
    assert_int_equal(entry[DISCOVERY_ADRFAM], 254);
    for (unsigned int i = DISCOVERY_TSAS; i < DISCOVERY_ENTRY_LEN; i++) {
        assert_int_equal(entry[i], 0);
    }
}

TEST_FIXTURE(fake_setup, fake_teardown)
