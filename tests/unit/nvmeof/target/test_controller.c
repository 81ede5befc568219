/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

enum { SHN_NORMAL = 1 << CC_SHN_SHIFT, SHN_ABRUPT = 2 << CC_SHN_SHIFT };

static uint32_t read_csts(struct fake *fake, uint16_t admin)
{
    return (uint32_t)fake_property_get(fake, admin, PROPERTY_CSTS, 4);
}

static uint16_t connected_admin(struct fake *fake)
{
    uint16_t admin = fake_open(fake, 0, 31);

    fake_connect(fake, admin, 0, 31, 0xffff, 0, FAKE_SUBNQN);
    return admin;
}

static void test_properties_have_the_expected_values(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connected_admin(fake);
    uint64_t cap = fake_property_get(fake, admin, PROPERTY_CAP, 8);

    assert_int_equal(cap & 0xffff, 63);         /* MQES */
    assert_int_equal(cap >> 16 & 1, 1);         /* CQR */
    assert_in_range(cap >> 24 & 0xff, 10, 255); /* TO */
    assert_int_equal(cap >> 37 & 0xff, 1);      /* CSS */
    assert_int_equal(cap >> 48 & 0xff, 0);      /* MPSMIN, MPSMAX: 4 KiB */
    assert_int_equal(cap >> 56, 8);             /* CRMS: ready with media */
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_VS, 4), 0x20000);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CC, 4), 0);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CSTS, 4), 0);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_NSSR, 4), 0);
}

static void test_reserved_properties_read_as_zero(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connected_admin(fake);
    static const uint32_t offsets[] = {0x0c, 0x10,   0x18,       0x24, 0x38,
                                       0x6c, 0x1000, 0xfffffffc, 0x2f};

    for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
        assert_int_equal(fake_property_get(fake, admin, offsets[i], 4), 0);
        assert_int_equal(fake_property_get(fake, admin, offsets[i], 8), 0);
    }
}

static void test_invalid_property_commands_are_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    static const struct {
        uint8_t fctype;
        uint32_t attrib, offset;
        uint16_t status;
    } rows[] = {
        {FABRICS_PROPERTY_GET, 0, 0x00, 0x002}, /* CAP is 8 bytes */
        {FABRICS_PROPERTY_GET, 1, 0x14, 0x002},
        {FABRICS_PROPERTY_GET, 1, 0x07, 0x002}, /* inside CAP */
        {FABRICS_PROPERTY_GET, 0, 0x04, 0x002},
        {FABRICS_PROPERTY_GET, 0, 0x15, 0x002},
        {FABRICS_PROPERTY_GET, 2, 0x14, 0x002}, /* reserved size */
        {FABRICS_PROPERTY_GET, 7, 0x14, 0x002},
        {FABRICS_PROPERTY_SET, 1, 0x00, 0x182}, /* read-only */
        {FABRICS_PROPERTY_SET, 0, 0x08, 0x182},
        {FABRICS_PROPERTY_SET, 0, 0x1c, 0x182},
        {FABRICS_PROPERTY_SET, 0, 0x40, 0x182},
        {FABRICS_PROPERTY_SET, 1, 0x14, 0x002},
        {FABRICS_PROPERTY_SET, 0, 0x17, 0x002},
        {FABRICS_AUTH_SEND, 0, 0, 0x001},
        {FABRICS_AUTH_RECEIVE, 0, 0, 0x001},
        {FABRICS_DISCONNECT, 0, 0, 0x001},
        {0x02, 0, 0, 0x001},
        {0xc0, 0, 0, 0x001},
    };
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        sqe.fctype = rows[i].fctype;
        sqe.cdw10 = rows[i].attrib;
        sqe.cdw11 = rows[i].offset;
        assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status,
                         rows[i].status | DNR);
    }
    /* Only the admin queue takes property commands. */
    sqe = (struct nvme_sqe){.opcode = NVME_FABRICS,
                            .fctype = FABRICS_PROPERTY_GET,
                            .cdw11 = PROPERTY_CSTS};
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status,
                     NVME_SC_INVALID_OPCODE | DNR);
}

static void test_commands_are_refused_until_the_controller_is_enabled(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connected_admin(fake);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

    assert_int_equal(fake_exec(fake, admin, &identify, fake->data, 4096).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR);
    assert_int_equal(fake_exec(fake, admin, &keep_alive, NULL, 0).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR | MORE);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(read_csts(fake, admin), 1);
    assert_int_equal(fake_exec(fake, admin, &identify, fake->data, 4096).status,
                     0);
}

static void test_an_unsupported_configuration_sets_cfs(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connected_admin(fake);
    static const uint32_t bad[] = {
        CC_EN, /* entry sizes of 0 */
        CC_EN | 6u << CC_IOSQES_SHIFT,
        CC_EN | 4u << CC_IOCQES_SHIFT,
        CC_ENABLE | 1u << CC_CSS_SHIFT,
        CC_ENABLE | 6u << CC_CSS_SHIFT,
        CC_ENABLE | 1u << CC_MPS_SHIFT,
        CC_ENABLE | 1u << CC_AMS_SHIFT,
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fake_property_set(fake, admin, PROPERTY_CC, bad[i]);
        assert_int_equal(read_csts(fake, admin), CSTS_CFS);
        fake_property_set(fake, admin, PROPERTY_CC, 0);
        assert_int_equal(read_csts(fake, admin), 0);
    }
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
}

static void test_a_reset_completes_after_its_io_queues_have_ended(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *request = fake_send(fake, admin, &aer, NULL, 0);

    fake_property_set(fake, admin, PROPERTY_CC, 0);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], io);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    fake_close(fake, io);
    assert_int_equal(read_csts(fake, admin), 0);
    /* The controller can be enabled again. */
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = fake_io_queue(fake, admin, 1);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
}

/* Otherwise a write from before the reset could overtake a later one. */
static void test_a_reset_waits_for_the_medium(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io[] = {fake_io_queue(fake, admin, 1),
                     fake_io_queue(fake, admin, 2)};
    struct nvme_sqe write = fake_rw(NVM_WRITE, 5, 1);

    for (size_t i = 0; i < ARRAY_LEN(io); i++) {
        fake_send(fake, io[i], &write, fake->data, 512);
    }
    fake->hold_media = true;
    fake_run(fake);
    assert_int_equal(fake->media_count, 2);
    /* As Linux does, end the I/O queues first and then reset. */
    assert_false(nvmf_qpair_closed(fake->target, io[0]));
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    assert_false(nvmf_qpair_closed(fake->target, io[1]));
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->drained_count, 2);
    assert_int_equal(read_csts(fake, admin), 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    fake_io_queue(fake, admin, 1);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
}

static void close_if_disconnected(struct fake *fake, uint16_t qpair)
{
    if (qpair != NO_QPAIR &&
        fake->target->qpair[qpair].state == QPAIR_CLOSING) {
        fake_close(fake, qpair);
    }
}

/*
 * Every value of CC in every state of a controller; then the I/O queues finish
 * draining if they have not before.
 */
enum { AT_DISABLED, AT_READY, AT_RESETTING, AT_REENABLING, AT_FAILED, ATS };

WITH_FIXTURE(NULL, NULL)
static void test_every_controller_state_follows_every_cc(void **state)
{
    enum { BAD = CC_ENABLE | 1u << CC_CSS_SHIFT };
    static const uint32_t ccs[] = {0, CC_ENABLE, BAD};
    static const struct {
        uint32_t csts;    /* after the Property Set */
        uint32_t drained; /* after the I/O queues have drained, too */
    } rows[ATS][ARRAY_LEN(ccs)] = {
        [AT_DISABLED] = {{0, 0}, {CSTS_RDY, CSTS_RDY}, {CSTS_CFS, CSTS_CFS}},
        [AT_READY] = {{CSTS_RDY, 0},
                      {CSTS_RDY, CSTS_RDY},
                      {CSTS_RDY, CSTS_RDY}},
        [AT_RESETTING] = {{CSTS_RDY, 0}, {0, CSTS_RDY}, {0, CSTS_CFS}},
        [AT_REENABLING] = {{CSTS_RDY, 0}, {0, CSTS_RDY}, {0, CSTS_CFS}},
        [AT_FAILED] = {{0, 0}, {CSTS_CFS, CSTS_CFS}, {CSTS_CFS, CSTS_CFS}},
    };

    (void)state;
    for (size_t at = 0; at < ATS; at++) {
        for (size_t i = 0; i < ARRAY_LEN(ccs); i++) {
            struct fake *fake = fake_new();
            uint16_t admin, io = NO_QPAIR;

            fake_start(fake);
            admin = connected_admin(fake);
            if (at == AT_FAILED) {
                fake_property_set(fake, admin, PROPERTY_CC, BAD);
            } else if (at != AT_DISABLED) {
                fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
                io = fake_io_queue(fake, admin, 1);
            }
            if (at == AT_RESETTING || at == AT_REENABLING) {
                fake_property_set(fake, admin, PROPERTY_CC, 0);
            }
            if (at == AT_REENABLING) {
                fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
            }
            fake_property_set(fake, admin, PROPERTY_CC, ccs[i]);
            assert_int_equal(read_csts(fake, admin), rows[at][i].csts);
            close_if_disconnected(fake, io);
            assert_int_equal(read_csts(fake, admin), rows[at][i].drained);
            /* In every case the controller can be disabled and enabled
             * again. */
            fake_property_set(fake, admin, PROPERTY_CC, 0);
            close_if_disconnected(fake, io);
            assert_int_equal(read_csts(fake, admin), 0);
            fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
            assert_int_equal(read_csts(fake, admin), CSTS_RDY);
            fake_io_queue(fake, admin, 2);
            fake_free(fake);
        }
    }
}

/* This sequence once crashed the drive: it ignored CC.EN = 1, and the CC.EN = 0
 * after it failed an assertion. */
static void test_cc_en_written_0_1_0_before_io_queues_drain(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    fake_close(fake, io);
    assert_int_equal(read_csts(fake, admin), 0);
}

static void test_no_io_queue_joins_a_controller_that_is_resetting(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t late = fake_open(fake, 2, 63);
    struct connect_command command = {.qid = 2, .sqsize = 63};
    struct connect_data data;

    fake_connect_data(
        &data, fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid,
        FAKE_SUBNQN);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(fake_connect_with(fake, late, &command, &data).status,
                     NVME_SC_CONNECT_INVALID | DNR);
    fake_close(fake, io);
    assert_int_equal(fake_connect_with(fake, late, &command, &data).status, 0);
}

static void test_shutdown_reports_completion_after_its_flush(void **state)
{
    struct fake *fake = *state;
    uint32_t kinds[] = {SHN_NORMAL, SHN_ABRUPT};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        uint16_t admin = fake_host(fake, 0);
        struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
        struct nvme_sqe set = {.opcode = NVME_FABRICS,
                               .fctype = FABRICS_PROPERTY_SET,
                               .cdw11 = PROPERTY_CC,
                               .cdw12 = CC_ENABLE | kinds[i]};
        struct fake_request *request;

        fake->hold_media = true;
        fake->history_count = 0;
        request = fake_send(fake, admin, &set, NULL, 0);
        fake_run(fake);
        assert_false(request->is_answered);
        assert_int_equal(read_csts(fake, admin),
                         CSTS_RDY | 1 << CSTS_SHST_SHIFT);
        fake->hold_media = false;
        fake_run(fake);
        assert_int_equal(fake->history_count, 1);
        assert_int_equal(fake->history[0].op, MEDIA_FLUSH);
        assert_int_equal(fake->history[0].ns, MEDIA_NS_ALL);
        assert_true(request->is_answered);
        assert_int_equal(read_csts(fake, admin),
                         CSTS_RDY | 2 << CSTS_SHST_SHIFT);
        /* Only fabrics commands are accepted until it is enabled again. */
        assert_int_equal(fake_exec(fake, admin, &keep_alive, NULL, 0).status,
                         NVME_SC_COMMAND_SEQUENCE | DNR | MORE);
        fake_property_set(fake, admin, PROPERTY_CC, 0);
        assert_int_equal(read_csts(fake, admin), 0);
        fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
        assert_int_equal(read_csts(fake, admin), CSTS_RDY);
        fake_close(fake, admin);
    }
}

static void test_a_reset_during_shutdown_leaves_a_usable_controller(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_PROPERTY_SET,
                           .cdw11 = PROPERTY_CC,
                           .cdw12 = CC_ENABLE | SHN_NORMAL};

    fake->hold_media = true;
    fake_send(fake, admin, &set, NULL, 0);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
}

static struct fake_request *send_cc(struct fake *fake, uint16_t admin,
                                    uint32_t cc)
{
    struct nvme_sqe set = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_PROPERTY_SET,
                           .cdw11 = PROPERTY_CC,
                           .cdw12 = cc};
    struct fake_request *request = fake_send(fake, admin, &set, NULL, 0);

    fake_run(fake);
    return request;
}

/* The flush of the first shutdown does not cover the writes between the two. */
static void test_a_shutdown_completes_with_its_own_flush(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fake->hold_media = true;
    fake->media_room = 1;
    send_cc(fake, admin, CC_ENABLE | SHN_NORMAL);
    send_cc(fake, admin, 0);
    send_cc(fake, admin, CC_ENABLE);
    send_cc(fake, admin, CC_ENABLE | SHN_NORMAL);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 1 << CSTS_SHST_SHIFT);
    /* The flush of the cancelled shutdown, then that of the second one. */
    for (unsigned int i = 1; i <= 2; i++) {
        fake_run_media(fake);
        assert_int_equal(fake->history_count, 2);
        assert_int_equal(read_csts(fake, admin),
                         CSTS_RDY | i << CSTS_SHST_SHIFT);
    }
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 2);
}

static void test_a_repeated_shutdown_flushes_once(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *first, *second;

    fake->hold_media = true;
    first = send_cc(fake, admin, CC_ENABLE | SHN_NORMAL);
    second = send_cc(fake, admin, CC_ENABLE | SHN_ABRUPT);
    assert_true(second->is_answered);
    assert_false(first->is_answered);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(first->is_answered);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
}

static void test_a_shutdown_can_be_repeated_after_its_flush_has_failed(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};

    fake->media_status = MEDIA_WRITE_ERROR;
    assert_int_equal(
        fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL)
            .status,
        NVME_SC_WRITE_FAULT);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    assert_int_equal(fake_exec(fake, admin, &keep_alive, NULL, 0).status, 0);
    fake->media_status = MEDIA_OK;
    assert_int_equal(
        fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL)
            .status,
        0);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
}

/* CC.SHN still has the value of an earlier shutdown, so it requests another. */
static void test_shn_left_from_an_earlier_shutdown_requests_another(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL);
    fake_property_set(fake, admin, PROPERTY_CC, SHN_NORMAL);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
}

/* One write enables and requests a shutdown while a reset is in progress. */
static void test_a_shutdown_requested_during_a_reset_is_executed(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL);
    assert_int_equal(read_csts(fake, admin), 2 << CSTS_SHST_SHIFT);
    fake_close(fake, io);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
}

static void test_shutdown_survives_a_lost_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0), controllers, qpairs;
    struct nvme_sqe set = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_PROPERTY_SET,
                           .cdw11 = PROPERTY_CC,
                           .cdw12 = CC_ENABLE | SHN_NORMAL};

    fake->hold_media = true;
    fake_send(fake, admin, &set, NULL, 0);
    assert_false(nvmf_qpair_closed(fake->target, admin));
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->drained_count, 1);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 0);
}

static void test_shutdown_of_a_discovery_controller_is_immediate(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_discovery_host(fake);

    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE | SHN_NORMAL);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY | 2 << CSTS_SHST_SHIFT);
    assert_int_equal(fake->history_count, 0);
}

static struct fake_request *send_nssr(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe set = {.opcode = NVME_FABRICS,
                           .fctype = FABRICS_PROPERTY_SET,
                           .cdw11 = PROPERTY_NSSR,
                           .cdw12 = NSSR_RESET};

    return fake_send(fake, admin, &set, NULL, 0);
}

static void test_subsystem_reset_ends_every_association(void **state)
{
    struct fake *fake = *state;
    uint16_t first = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, first, 1);
    uint16_t second = fake_host(fake, 0);
    uint16_t second_io = fake_io_queue(fake, second, 1);
    struct fake_request *request;

    assert_int_equal(
        fake_property_set(fake, second, PROPERTY_NSSR, 0x4e564d66).status, 0);
    assert_int_equal(fake->disconnect_count, 0);
    request = send_nssr(fake, second);
    assert_int_equal(fake->respond_count, 1); /* before anything ends */
    fake_run(fake);
    assert_true(request->is_answered);
    assert_int_equal(request->cqe.status, 0);
    assert_int_equal(fake->disconnect_count, 3);
    assert_int_equal(fake->subsystem_resets, 1);
    assert_int_equal(fake->target->qpair[second].state, QPAIR_LIVE);
    fake_close(fake, first);
    fake_close(fake, io);
    fake_close(fake, second_io);
    assert_int_equal(fake->target->ctrl_count, 1);
    fake_close(fake, second);
    assert_int_equal(fake->target->ctrl_count, 0);
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     NVMF_NO_DEADLINE);
}

/* As Linux does: write CC.EN = 0, read RDY = 0, and end the connection. */
static void test_the_host_that_reset_the_subsystem_may_disable_its_controller(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
    const struct nvmf_qpair_hints hints = {
        .qid = 2, .sqsize = 31, .cntlid = cntlid};
    const struct nvmf_qpair_params late = {
        .transport = &fake->transport, .portid = 1, .hints = &hints};
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct nvmf_ctrl_info info;
    uint16_t number;

    send_nssr(fake, admin);
    fake_run(fake);
    assert_true(nvmf_target_ctrl_info(fake->target,
                                      fake->target->qpair[admin].ctrl, &info));
    assert_string_equal(info.state, "parting");
    assert_int_equal(info.csts, CSTS_NSSRO);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CC, 4), 0);
    assert_int_equal(read_csts(fake, admin), CSTS_NSSRO);
    assert_int_equal(fake_property_set(fake, admin, PROPERTY_CC, 0).status, 0);
    /* The host can only continue with a new association. */
    assert_int_equal(
        fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE).status,
        NVME_SC_COMMAND_SEQUENCE | DNR);
    assert_int_equal(read_csts(fake, admin), CSTS_NSSRO);
    assert_int_equal(fake_exec(fake, admin, &keep_alive, NULL, 0).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR | MORE);
    assert_int_equal(nvmf_qpair_reserve(fake->target, &late, &number),
                     NVMF_RESERVE_INVALID_CNTLID);
    fake_close(fake, io);
    fake_close(fake, admin);
    assert_int_equal(fake->target->ctrl_count, 0);
}

/* Every host may use a discovery controller. */
static void test_a_discovery_controller_cannot_reset_the_subsystem(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t discovery = fake_discovery_host(fake);

    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CAP, 8) >> 36 & 1,
                     1);
    assert_int_equal(
        fake_property_get(fake, discovery, PROPERTY_CAP, 8) >> 36 & 1, 0);
    assert_int_equal(fake_property_get(fake, discovery, PROPERTY_NSSR, 4), 0);
    assert_int_equal(
        fake_property_set(fake, discovery, PROPERTY_NSSR, NSSR_RESET).status,
        NVME_SC_CONNECT_INVALID | DNR);
    fake_run(fake);
    assert_int_equal(fake->disconnect_count, 0);
    assert_int_equal(fake->subsystem_resets, 0);
    assert_int_equal(read_csts(fake, admin), CSTS_RDY);
    assert_int_equal(read_csts(fake, discovery), CSTS_RDY);
}

static uint16_t clear_nssro(struct fake *fake, uint16_t admin, uint32_t value)
{
    return fake_property_set(fake, admin, PROPERTY_CSTS, value).status;
}

/* Each controller that begins after the reset shows it until its own host has
 * cleared it. */
static void test_nssro_is_set_after_a_subsystem_reset(void **state)
{
    struct fake *fake = *state;
    uint16_t first = fake_host(fake, 0), second, discovery;

    assert_int_equal(read_csts(fake, first), CSTS_RDY);
    send_nssr(fake, first);
    fake_run(fake);
    assert_int_equal(read_csts(fake, first), CSTS_NSSRO);
    fake_close(fake, first);
    first = fake_host(fake, 0);
    second = fake_host(fake, 0);
    discovery = fake_discovery_host(fake);
    assert_int_equal(read_csts(fake, first), CSTS_RDY | CSTS_NSSRO);
    assert_int_equal(read_csts(fake, discovery), CSTS_RDY);
    assert_int_equal(clear_nssro(fake, first, ~(uint32_t)CSTS_NSSRO),
                     NVME_SC_CONNECT_INVALID | DNR);
    assert_int_equal(clear_nssro(fake, discovery, CSTS_NSSRO),
                     NVME_SC_CONNECT_INVALID | DNR);
    assert_int_equal(read_csts(fake, first), CSTS_RDY | CSTS_NSSRO);
    assert_int_equal(clear_nssro(fake, first, CSTS_NSSRO), 0);
    assert_int_equal(read_csts(fake, first), CSTS_RDY);
    /* A controller reset is none of the subsystem. */
    fake_property_set(fake, first, PROPERTY_CC, 0);
    assert_int_equal(read_csts(fake, first), 0);
    fake_property_set(fake, second, PROPERTY_CC, 0);
    assert_int_equal(read_csts(fake, second), CSTS_NSSRO);
}

/* Advance the time in steps.  @return the time of the first disconnect */
static uint64_t time_to_disconnect_ms(struct fake *fake, uint64_t limit_ms)
{
    uint64_t start_us = fake->now_us;

    while (fake->disconnect_count == 0 &&
           fake->now_us < start_us + limit_ms * 1000) {
        fake->now_us += 50000;
        nvmf_target_timer(fake->target, fake->now_us);
    }
    return (fake->now_us - start_us) / 1000;
}

static void test_the_host_that_reset_the_subsystem_has_five_seconds(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 1000); /* KATO does not matter */

    send_nssr(fake, admin);
    fake_run(fake);
    time_to_disconnect_ms(fake, 3000);
    send_nssr(fake, admin); /* a second reset does not extend the time */
    fake_run(fake);
    assert_in_range(time_to_disconnect_ms(fake, 60000), 1900, 2300);
    assert_int_equal(fake->target->counters.error_log_entries, 0);
    fake_close(fake, admin);
    assert_int_equal(fake->target->ctrl_count, 0);
}

WITH_FIXTURE(NULL, NULL)
static void test_keep_alive_expires_after_its_timeout(void **state)
{
    static const struct {
        uint32_t kato_ms, least_ms;
    } rows[] = {
        {1, 1000},      {1000, 1000},   {1001, 2000},     {5000, 5000},
        {15000, 15000}, {33000, 33000}, {120000, 120000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake *fake = fake_new();
        uint16_t admin, io;
        uint64_t took_ms;

        fake_start(fake);
        admin = fake_host(fake, rows[i].kato_ms);
        io = fake_io_queue(fake, admin, 1);
        took_ms = time_to_disconnect_ms(fake, 300000);
        assert_in_range(took_ms, rows[i].least_ms, rows[i].least_ms + 300);
        assert_int_equal(fake->disconnect_count, 2);
        assert_int_equal(fake->target->error_log.entry[0].status,
                         NVME_SC_KEEP_ALIVE_EXPIRED);
        fake_close(fake, admin);
        fake_close(fake, io);
        assert_int_equal(fake->target->ctrl_count, 0);
        fake_free(fake);
    }
}

static void test_any_command_keeps_an_association_alive(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 5000);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = 1};

    for (unsigned int i = 0; i < 20; i++) {
        time_to_disconnect_ms(fake, 4500);
        assert_int_equal(fake->disconnect_count, 0);
        assert_int_equal(fake_exec(fake, i % 2 ? io : admin,
                                   i % 2 ? &flush : &keep_alive, NULL, 0)
                             .status,
                         0);
    }
    assert_in_range(time_to_disconnect_ms(fake, 60000), 5000, 5300);
}

/* The target has heard nothing of the time for a while. */
static void test_an_operator_gives_the_peers_5_s_to_go(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    fake->now_us += 20000000;
    assert_int_equal(nvmf_target_end_ctrls(fake->target, NULL, fake->now_us),
                     1);
    assert_int_equal(fake->disconnect_count, 1);
    (void)nvmf_target_timer(fake->target, fake->now_us + 4900000);
    assert_int_equal(fake->disconnect_count, 1);
    (void)nvmf_target_timer(fake->target, fake->now_us + 5100000);
    assert_int_equal(fake->disconnect_count, 2); /* without its peer */
    assert_int_equal(fake->disconnected[1], admin);
}

static void test_kato_0_means_no_timeout_except_for_discovery(void **state)
{
    struct fake *fake = *state;

    fake_host(fake, 0);
    assert_int_equal(time_to_disconnect_ms(fake, 600000), 600000);
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     NVMF_NO_DEADLINE);
    fake_discovery_host(fake);
    assert_in_range(time_to_disconnect_ms(fake, 600000), 120000, 120300);
}

static void test_keep_alive_can_be_changed(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 5000);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_KEEP_ALIVE_TIMER, 60001);
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 0, FEATURE_KEEP_ALIVE_TIMER, 0);

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    assert_int_equal(fake_exec(fake, admin, &get, NULL, 0).dw0, 61000);
    assert_int_equal(time_to_disconnect_ms(fake, 60000), 60000);
    set.cdw11 = 0;
    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    assert_int_equal(time_to_disconnect_ms(fake, 100000), 100000);
    set.cdw11 = UINT32_MAX;
    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    assert_int_equal(fake_exec(fake, admin, &get, NULL, 0).dw0, UINT32_MAX);
}

/* 255 hosts with different time-outs, and a clock that jumps. */
static void test_255_timers_expire_in_time_when_the_clock_jumps(void **state)
{
    struct fake *fake = *state;
    uint64_t next_us;

    for (unsigned int i = 0; i < 255; i++) {
        fake_host(fake, 1000 * (i + 1));
    }
    next_us = nvmf_target_timer(fake->target, fake->now_us);
    assert_in_range(next_us, fake->now_us + 1000000, fake->now_us + 1300000);
    fake->now_us += 100500000;
    nvmf_target_timer(fake->target, fake->now_us);
    assert_int_equal(fake->disconnect_count, 100);
    fake->now_us += 1000000000;
    nvmf_target_timer(fake->target, fake->now_us);
    /* disconnect() is called again for those that have not ended. */
    assert_int_equal(fake->disconnect_count, 255 + 100);
}

TEST_FIXTURE(fake_setup, fake_teardown)
