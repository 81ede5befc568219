/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hosts may connect, and authentication of their queues. */
#include "tests/auth_secrets.h"
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

#include "lib/random.h"
#include "nvmeof/target/base/base.h"
#include "tests/auth_host.h"

enum {
    MESSAGE_LEN = 4096,
    ATR = 0x20000,
    AUTHENTICATING_MS = 120000,
};

/* What the target asks of, and what it has reported. */
static struct {
    struct crypto crypto;
    uint64_t random;
    bool is_allowed;
    struct auth_key host_key, ctrl_key;
    uint8_t least_hash, least_dh;
    struct nvmf_auth_end end[128];
    unsigned int ends;
    uint8_t message[MESSAGE_LEN];
} world;

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    while (len-- > 0) {
        *buf++ = (uint8_t)random_next(&world.random);
    }
}

static bool find_host(void *ctx, const char *hostnqn, struct nvmf_host *host)
{
    (void)ctx;
    (void)hostnqn;
    host->host_key = &world.host_key;
    host->ctrl_key = &world.ctrl_key;
    host->least_hash = world.least_hash;
    host->least_dh = world.least_dh;
    return world.is_allowed;
}

static void note_end(void *ctx, const struct nvmf_auth_end *end)
{
    (void)ctx;
    world.end[world.ends++ % ARRAY_LEN(world.end)] = *end;
}

static int setup_hosts(void **state)
{
    struct fake *fake = fake_new();

    memset(&world, 0, sizeof(world));
    world.is_allowed = true;
    crypto_init(&world.crypto, fill_random, NULL);
    assert_true(auth_key_parse(&world.host_key, SECRET));
    assert_true(auth_key_parse(&world.ctrl_key, DRIVE_SECRET));
    fake->config.hosts.find = find_host;
    fake->config.crypto = crypto_ops(&world.crypto);
    fake->config.auth_ended = note_end;
    fake_start(fake);
    *state = fake;
    return 0;
}

TEST_FIXTURE(setup_hosts, fake_teardown)

static struct nvme_cqe connect_queue(struct fake *fake, uint16_t qid,
                                     uint16_t cntlid, uint32_t kato_ms,
                                     uint16_t *qpair)
{
    struct connect_command command = {.qid = qid,
                                      .sqsize = 31,
                                      .has_sq_flow_control = true,
                                      .kato_ms = kato_ms};
    struct connect_data data;

    *qpair = fake_open(fake, qid, 31);
    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    return fake_connect_with(fake, *qpair, &command, &data);
}

static struct nvme_sqe auth_sqe(uint8_t fctype, uint32_t len)
{
    return (struct nvme_sqe){.opcode = NVME_FABRICS,
                             .fctype = fctype,
                             .cdw10 = 0xe9010100,
                             .cdw11 = len};
}

static uint16_t send_message(struct fake *fake, uint16_t qpair, size_t len)
{
    struct nvme_sqe sqe = auth_sqe(FABRICS_AUTH_SEND, (uint32_t)len);

    return fake_exec(fake, qpair, &sqe, world.message, (uint32_t)len).status;
}

static struct fake_request *start_receive(struct fake *fake, uint16_t qpair)
{
    struct nvme_sqe sqe = auth_sqe(FABRICS_AUTH_RECEIVE, MESSAGE_LEN);
    struct fake_request *request;

    memset(world.message, 0xa5, MESSAGE_LEN);
    request = fake_send(fake, qpair, &sqe, world.message, MESSAGE_LEN);
    fake_run(fake);
    return request;
}

static uint16_t receive_message(struct fake *fake, uint16_t qpair)
{
    struct fake_request *request = start_receive(fake, qpair);

    while (nvmf_target_auth_step(fake->target, fake->now_us)) {
    }
    fake_run(fake);
    assert_true(request->is_answered);
    return request->cqe.status;
}

static void new_host(struct auth_host *host, const char *secret,
                     const char *ctrl_secret)
{
    auth_host_init(host, FAKE_HOSTNQN, FAKE_SUBNQN, secret, ctrl_secret);
}

/* Run a transaction up to Success1 or AUTH_Failure1. */
static void authenticate_queue(struct fake *fake, uint16_t qpair,
                               struct auth_host *host, uint8_t dhs)
{
    uint8_t challenge[MESSAGE_LEN];
    size_t len = auth_host_negotiate(host, 0x0e, dhs, world.message);

    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(receive_message(fake, qpair), 0);
    memcpy(challenge, world.message, sizeof(challenge));
    len = auth_host_reply(host, challenge, MESSAGE_LEN, world.message);
    assert_int_not_equal(len, 0);
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(receive_message(fake, qpair), 0);
}

static uint8_t qpair_state(const struct fake *fake, uint16_t qpair)
{
    return fake->target->qpair[qpair].state;
}

static void assert_failure(enum auth_failure explanation)
{
    struct auth_failure_message failure;

    assert_int_equal(world.message[AUTH_TYPE], AUTH_TYPE_COMMON);
    assert_int_equal(world.message[AUTH_ID], AUTH_ID_FAILURE1);
    assert_true(auth_failure_parse(&failure, world.message, AUTH_FAILURE_LEN));
    assert_int_equal(failure.explanation, explanation);
}

static void test_a_host_without_key_needs_no_authentication(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe sqe = auth_sqe(FABRICS_AUTH_SEND, 72);
    uint16_t qpair;
    struct nvme_cqe cqe;

    memset(&world.host_key, 0, sizeof(world.host_key));
    cqe = connect_queue(fake, 0, 0xffff, 0, &qpair);
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 & ATR, 0);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_LIVE);
    cqe = fake_exec(fake, qpair, &sqe, world.message, 72);
    assert_int_equal(cqe.status, NVME_SC_INVALID_OPCODE | DNR);
}

static void test_a_host_that_is_not_on_the_list_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    world.is_allowed = false;
    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status,
                     NVME_SC_CONNECT_INVALID_HOST | DNR);
    assert_int_equal(nvmf_target_auth_counters(fake->target)->disallowed, 1);
}

static void test_every_host_may_use_the_discovery_controller(void **state)
{
    struct fake *fake = *state;

    world.is_allowed = false;
    assert_int_equal(qpair_state(fake, fake_discovery_host(fake)), QPAIR_LIVE);
}

static void test_commands_before_authentication_are_refused(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe property = {.opcode = NVME_FABRICS,
                                .fctype = FABRICS_PROPERTY_GET,
                                .cdw11 = PROPERTY_CSTS};
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, 1, 0);
    struct nvme_sqe unknown = fake_admin(0xff, 0, 0, 0);
    uint16_t qpair;
    struct nvme_cqe cqe = connect_queue(fake, 0, 0xffff, 0, &qpair);
    uint64_t logged = fake->target->counters.error_log_entries;

    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 >> 16, ATR >> 16); /* ASCR is 0 */
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    cqe = fake_exec(fake, qpair, &property, NULL, 0);
    assert_int_equal(cqe.status, NVME_SC_AUTH_REQUIRED | DNR);
    cqe = fake_exec(fake, qpair, &identify, world.message, 4096);
    assert_int_equal(cqe.status & ~MORE, NVME_SC_AUTH_REQUIRED | DNR);
    cqe = fake_exec(fake, qpair, &unknown, NULL, 0);
    assert_int_equal(cqe.status & ~MORE, NVME_SC_AUTH_REQUIRED | DNR);
    /* A host that has proven nothing leaves no entry; all are counted. */
    assert_int_equal(fake->target->counters.error_log_entries, logged);
    assert_int_equal(world.ends, 1);
    assert_int_equal(world.end[0].result, NVMF_AUTH_SKIPPED);
    assert_string_equal(world.end[0].hostnqn, FAKE_HOSTNQN);
    assert_int_equal(
        nvmf_target_auth_counters(fake->target)->ended[NVMF_AUTH_SKIPPED], 3);
}

static void test_a_second_connect_during_authentication_is_refused(void **state)
{
    struct fake *fake = *state;
    struct connect_command command = {.sqsize = 31};
    struct connect_data data;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR);
}

static void test_a_queue_becomes_live_after_success1(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    for (uint8_t dh = AUTH_DH_NULL; dh <= AUTH_FFDHE2048; dh++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
        new_host(&host, SECRET, "");
        authenticate_queue(fake, qpair, &host, (uint8_t)BIT(dh));
        assert_true(auth_host_accepts(&host, world.message, MESSAGE_LEN));
        assert_int_equal(world.message[AUTH_SUCCESS1_LEN], 0); /* zero-filled */
        assert_int_equal(world.message[MESSAGE_LEN - 1], 0);
        assert_int_equal(qpair_state(fake, qpair), QPAIR_LIVE);
        assert_int_equal(fake->target->auths.count, 0);
        (void)fake_property_get(fake, qpair, PROPERTY_CSTS, 4);
        assert_int_equal(world.end[dh].result, NVMF_AUTH_PROVEN);
        assert_int_equal(world.end[dh].dh, dh);
    }
}

static void test_a_queue_becomes_live_after_success2_if_both_sides_prove(
    void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, DRIVE_SECRET);
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    assert_true(auth_host_accepts(&host, world.message, MESSAGE_LEN));
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    auth_success2_emit(world.message, host.t_id);
    assert_int_equal(send_message(fake, qpair, AUTH_SUCCESS2_LEN), 0);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_LIVE);
}

static void test_a_wrong_key_ends_the_connection(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, OTHER_SECRET, "");
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    assert_failure(AUTH_FAILED_PROOF);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(world.end[0].result, NVMF_AUTH_REFUSED);
    assert_int_equal(world.end[0].failure, AUTH_FAILED_PROOF);
    assert_int_equal(fake->target->auths.count, 0);
}

static void test_a_message_out_of_order_ends_the_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    auth_success2_emit(world.message, 7);
    assert_int_equal(send_message(fake, qpair, AUTH_SUCCESS2_LEN), 0);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    assert_int_equal(receive_message(fake, qpair), 0);
    assert_failure(AUTH_FAILED_MESSAGE);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
}

static void test_a_receive_without_a_message_is_a_sequence_error(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    assert_int_equal(receive_message(fake, qpair),
                     NVME_SC_COMMAND_SEQUENCE | DNR);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
}

static void test_invalid_fields_are_refused_with_their_position(void **state)
{
    static const struct {
        uint32_t cdw10, cdw11;
        uint16_t byte;
    } rows[] = {
        {0xea010100, 72, 43}, {0xe9010200, 72, 41},   {0xe9020100, 72, 42},
        {0xe9010100, 0, 44},  {0xe9010100, 4097, 44},
    };
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    /* On a live queue, because others leave no entries in the error log. */
    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    authenticate_queue(fake, qpair, &host, (uint8_t)BIT(AUTH_DH_NULL));
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        for (uint8_t fctype = FABRICS_AUTH_SEND; fctype <= FABRICS_AUTH_RECEIVE;
             fctype++) {
            struct nvme_sqe sqe = auth_sqe(fctype, rows[row].cdw11);
            struct log_error error;
            struct nvme_cqe cqe;

            sqe.cdw10 = rows[row].cdw10;
            cqe = fake_exec(fake, qpair, &sqe, fake->data, rows[row].cdw11);
            assert_int_equal(cqe.status, NVME_SC_INVALID_FIELD | DNR);
            assert_true(nvmf_target_error(
                fake->target, fake->target->counters.error_log_entries,
                &error));
            assert_int_equal(error.location, rows[row].byte);
        }
    }
}

static void test_a_receive_that_is_too_short_can_be_repeated(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe sqe = auth_sqe(FABRICS_AUTH_RECEIVE, 47);
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(fake_exec(fake, qpair, &sqe, world.message, 47).status,
                     NVME_SC_INVALID_FIELD | DNR);
    assert_int_equal(receive_message(fake, qpair), 0);
}

static void test_io_queues_authenticate_one_by_one(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
    struct auth_host host;
    uint16_t admin, io, cntlid;
    struct nvme_cqe cqe = connect_queue(fake, 0, 0xffff, 0, &admin);

    cntlid = (uint16_t)cqe.dw0;
    new_host(&host, SECRET, "");
    authenticate_queue(fake, admin, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(
        fake_property_set(fake, admin, PROPERTY_CC, 0x00460001).status, 0);
    cqe = connect_queue(fake, 1, cntlid, 0, &io);
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0, cntlid | ATR);
    cqe = fake_exec(fake, io, &read, fake->data, 512);
    assert_int_equal(cqe.status & ~MORE, NVME_SC_AUTH_REQUIRED | DNR);
    authenticate_queue(fake, io, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(fake_exec(fake, io, &read, fake->data, 512).status, 0);
}

static void test_a_receive_waits_for_the_arithmetic(void **state)
{
    struct fake *fake = *state;
    struct fake_request *waiting;
    struct auth_host host;
    uint16_t qpair;
    unsigned int steps = 0;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    waiting = start_receive(fake, qpair);
    assert_false(waiting->is_answered);
    /* Only one command can wait. */
    assert_int_equal(
        fake_exec(fake, qpair,
                  &(struct nvme_sqe){.opcode = NVME_FABRICS,
                                     .fctype = FABRICS_AUTH_RECEIVE,
                                     .cdw10 = 0xe9010100,
                                     .cdw11 = MESSAGE_LEN},
                  fake->data, MESSAGE_LEN)
            .status,
        NVME_SC_COMMAND_SEQUENCE | DNR);
    while (nvmf_target_auth_step(fake->target, fake->now_us)) {
        steps++;
    }
    assert_true(steps > 100); /* in bounded parts */
    fake_run(fake);
    assert_true(waiting->is_answered);
    assert_int_equal(waiting->cqe.status, 0);
    assert_int_equal(world.message[AUTH_ID], AUTH_ID_CHALLENGE);
}

static void test_a_connection_may_end_during_the_arithmetic(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    for (unsigned int steps = 0; steps < 3; steps++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
        new_host(&host, SECRET, "");
        len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                                  world.message);
        assert_int_equal(send_message(fake, qpair, len), 0);
        assert_false(start_receive(fake, qpair)->is_answered);
        for (unsigned int i = 0; i < steps; i++) {
            assert_true(nvmf_target_auth_step(fake->target, fake->now_us));
        }
        fake_close(fake, qpair);
        assert_int_equal(fake->target->auths.count, 0);
        assert_false(nvmf_target_auth_step(fake->target, fake->now_us));
    }
}

static void test_a_message_during_the_arithmetic_fails(void **state)
{
    struct fake *fake = *state;
    struct fake_request *waiting;
    struct auth_host host;
    uint8_t message[128];
    struct nvme_sqe sqe;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                              world.message);
    memcpy(message, world.message, len);
    assert_int_equal(send_message(fake, qpair, len), 0);
    waiting = start_receive(fake, qpair);
    sqe = auth_sqe(FABRICS_AUTH_SEND, (uint32_t)len);
    (void)fake_send(fake, qpair, &sqe, message, (uint32_t)len);
    fake_run(fake);
    assert_true(waiting->is_answered);
    assert_failure(AUTH_FAILED_MESSAGE);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_false(nvmf_target_auth_step(fake->target, fake->now_us));
}

/* The drive computes for a session that ends meanwhile, and nobody waits. */
static void test_a_message_during_the_arithmetic_stops_it(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint8_t message[128];
    uint16_t qpair;
    size_t len;

    for (unsigned int steps = 0; steps < 3; steps++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
        new_host(&host, SECRET, "");
        len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                                  world.message);
        memcpy(message, world.message, len);
        assert_int_equal(send_message(fake, qpair, len), 0);
        for (unsigned int i = 0; i < steps; i++) {
            assert_true(nvmf_target_auth_step(fake->target, fake->now_us));
        }
        memcpy(world.message, message, len);
        assert_int_equal(send_message(fake, qpair, len), 0);
        assert_false(nvmf_target_auth_step(fake->target, fake->now_us));
        assert_int_equal(receive_message(fake, qpair), 0);
        assert_failure(AUTH_FAILED_MESSAGE);
        assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
        fake_close(fake, qpair);
    }
}

static void pass_time(struct fake *fake, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 1000) {
        fake->now_us += 1000000;
        (void)nvmf_target_timer(fake->target, fake->now_us);
    }
}

static void test_a_host_that_says_nothing_is_disconnected(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    pass_time(fake, AUTHENTICATING_MS - 2000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    pass_time(fake, 4000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(world.end[0].result, NVMF_AUTH_EXPIRED);
}

/* The keep-alive timer waits for the authentication, whose limit is longer. */
static void test_keep_alive_does_not_end_an_authentication(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 5000, &qpair).status, 0);
    pass_time(fake, AUTHENTICATING_MS - 2000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    pass_time(fake, 4000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(world.end[0].result, NVMF_AUTH_EXPIRED);
}

static void test_a_live_queue_stays_live_while_it_authenticates_again(
    void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    (void)fake_property_get(fake, qpair, PROPERTY_CSTS, 4);
    fake->target->auths.auth[0].session.state =
        AUTH_NEGOTIATE; /* begin once more */
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(qpair_state(fake, qpair), QPAIR_LIVE);
    assert_int_equal(world.ends, 2);
    assert_true(world.end[1].is_again);
}

static void test_a_live_queue_that_fails_to_authenticate_again_ends(
    void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    new_host(&host, OTHER_SECRET, "");
    authenticate_queue(fake, qpair, &host, BIT(AUTH_DH_NULL));
    assert_failure(AUTH_FAILED_PROOF);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
}

static void test_a_host_whose_key_is_removed_meanwhile_fails(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    memset(&world.host_key, 0, sizeof(world.host_key));
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(world.end[0].result, NVMF_AUTH_REFUSED);
}

/* A queue that was never proven makes room for a newer one. */
static void test_the_oldest_unproven_authentication_makes_room(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair[NVMF_MAX_AUTHS + 1];

    for (unsigned int i = 0; i <= NVMF_MAX_AUTHS; i++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair[i]).status,
                         0);
    }
    assert_int_equal(qpair_state(fake, qpair[0]), QPAIR_CLOSING);
    assert_int_equal(qpair_state(fake, qpair[1]), QPAIR_AUTHENTICATING);
    assert_int_equal(qpair_state(fake, qpair[NVMF_MAX_AUTHS]),
                     QPAIR_AUTHENTICATING);
    assert_int_equal(world.end[0].result, NVMF_AUTH_DISPLACED);
    assert_int_equal(fake->target->auths.count, NVMF_MAX_AUTHS);
}

/* A source that connects without end cannot keep others from finishing. */
static void test_a_source_with_many_authentications_displaces_its_own(
    void **state)
{
    struct fake *fake = *state;
    uint16_t modest, greedy;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &modest).status, 0);
    fake->target->qpair[modest].host[15] = 1;
    for (unsigned int i = 0; i < 2 * NVMF_MAX_AUTHS; i++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &greedy).status, 0);
    }
    assert_int_equal(qpair_state(fake, modest), QPAIR_AUTHENTICATING);
    assert_int_equal(fake->target->auths.count, NVMF_MAX_AUTHS);
}

/* Live queues that authenticate again, and never finish, keep nobody out. */
static void test_a_live_queue_gives_its_authentication_up_for_a_new_host(
    void **state)
{
    struct fake *fake = *state;
    uint16_t qpair[NVMF_MAX_AUTHS], fresh;
    struct fake_request *waiting = NULL;
    struct auth_host host;
    size_t len;

    for (unsigned int i = 0; i < NVMF_MAX_AUTHS; i++) {
        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair[i]).status,
                         0);
        new_host(&host, SECRET, "");
        authenticate_queue(fake, qpair[i], &host, BIT(AUTH_DH_NULL));
    }
    for (unsigned int i = 0; i < NVMF_MAX_AUTHS; i++) {
        len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                                  world.message);
        assert_int_equal(send_message(fake, qpair[i], len), 0);
        waiting = i == 0 ? start_receive(fake, qpair[i]) : waiting;
    }
    assert_int_equal(fake->target->auths.count, NVMF_MAX_AUTHS);
    assert_true(nvmf_target_auth_step(fake->target, fake->now_us));
    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &fresh).status, 0);
    fake_run(fake);
    assert_true(waiting->is_answered);
    assert_int_equal(qpair_state(fake, qpair[0]), QPAIR_LIVE);
    assert_int_equal(qpair_state(fake, fresh), QPAIR_AUTHENTICATING);
    authenticate_queue(fake, fresh, &host, BIT(AUTH_FFDHE2048));
    assert_int_equal(qpair_state(fake, fresh), QPAIR_LIVE);
}

/* ---- What counts before the proof: stage.c. */

/* Everybody but FAKE_HOSTNQN needs no proof. */
static bool find_only_host(void *ctx, const char *hostnqn,
                           struct nvmf_host *host)
{
    return strcmp(hostnqn, FAKE_HOSTNQN) != 0 || find_host(ctx, hostnqn, host);
}

/* The controllers in the list of CNS 13h, as another host sees it. */
static uint16_t count_controllers(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLERS, 0);

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 4096).status, 0);
    return (uint16_t)(fake->data[0] | fake->data[1] << 8);
}

static void fake_capacity(void *ctx, struct nvmf_volume_capacity *capacity)
{
    (void)ctx;
    *capacity = (struct nvmf_volume_capacity){8 << 20, 6 << 20, 1 << 20, false};
}

static bool describe_private(void *ctx, uint32_t nsid,
                             struct nvmf_volume_ns *ns)
{
    (void)ctx;
    *ns = (struct nvmf_volume_ns){.media_ns = 69 + nsid,
                                  .owned_bytes = 1 << 20,
                                  .is_private = true,
                                  .anagrpid = 1};
    return nsid == 1;
}

static bool is_attached_to_all(void *ctx, uint32_t nsid, const char *hostnqn,
                               uint16_t portid)
{
    (void)ctx;
    (void)nsid;
    (void)hostnqn;
    (void)portid;
    return true;
}

static uint16_t enable_authenticated(struct fake *fake, uint32_t kato_ms,
                                     uint16_t *admin)
{
    struct auth_host host;
    struct nvme_cqe cqe = connect_queue(fake, 0, 0xffff, kato_ms, admin);

    assert_int_equal(cqe.status, 0);
    new_host(&host, SECRET, "");
    authenticate_queue(fake, *admin, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(qpair_state(fake, *admin), QPAIR_LIVE);
    assert_int_equal(
        fake_property_set(fake, *admin, PROPERTY_CC, CC_ENABLE).status, 0);
    return (uint16_t)cqe.dw0;
}

static void test_an_unproven_controller_counts_for_nobody(void **state)
{
    struct fake *fake = fake_new();
    struct auth_host host;
    struct nvmf_ctrl *ctrl;
    uint16_t admin, claimed;

    fake_free(*state);
    *state = fake;
    fake->config.hosts.find = find_host;
    fake->config.crypto = crypto_ops(&world.crypto);
    fake->config.namespace_count = 0;
    fake->config.volume = (struct nvmf_volume){
        .capacity = fake_capacity,
        .describe = describe_private,
        .is_attached = is_attached_to_all,
    };
    fake_start(fake);
    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &claimed).status, 0);
    ctrl = &fake->target->ctrl[fake->target->qpair[claimed].ctrl];
    assert_int_equal(ctrl->state, CTRL_UNPROVEN);
    assert_false(ctrl_is(ctrl, CTRL_IS_MEMBER));
    (void)enable_authenticated(fake, 0, &admin);
    assert_int_equal(count_controllers(fake, admin), 1);
    /* The private namespace is with the host that has shown who it is. */
    assert_int_equal(ctrl->active_ns[0], 0);
    assert_int_equal(
        fake->target->ctrl[fake->target->qpair[admin].ctrl].active_ns[0], 1);
    nvmf_target_ns_loaded(fake->target, 1);
    assert_int_equal(ctrl->active_ns[0], 0);
    assert_false(fake->target->order.is_kept);
    /* It stays there; but the other controller counts from its proof on. */
    new_host(&host, SECRET, "");
    authenticate_queue(fake, claimed, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(ctrl->state, CTRL_DISABLED);
    assert_int_equal(count_controllers(fake, admin), 2);
    assert_int_equal(ctrl->active_ns[0], 0);
    assert_true(fake->target->order.is_kept);
    fake_close(fake, admin);
    assert_int_equal(ctrl->active_ns[0], 1);
}

/* The first proof decides, whichever of the two has connected first. */
static void test_an_unproven_io_queue_yields(void **state)
{
    for (unsigned int first = 0; first < 2; first++) {
        struct fake *fake = *state;
        struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);
        struct auth_host host;
        uint16_t admin, queue[2], late;
        uint16_t cntlid = enable_authenticated(fake, 0, &admin);

        new_host(&host, SECRET, "");
        for (unsigned int i = 0; i < 2; i++) {
            assert_int_equal(
                connect_queue(fake, 1, cntlid, 0, &queue[i]).status, 0);
        }
        authenticate_queue(fake, queue[first], &host, BIT(AUTH_DH_NULL));
        assert_int_equal(qpair_state(fake, queue[first]), QPAIR_LIVE);
        assert_int_equal(qpair_state(fake, queue[1 - first]), QPAIR_CLOSING);
        assert_int_equal(
            fake_exec(fake, queue[first], &read, fake->data, 512).status, 0);
        /* The QID belongs to the host that has proven its identity. */
        assert_int_equal(connect_queue(fake, 1, cntlid, 0, &late).status,
                         NVME_SC_COMMAND_SEQUENCE | DNR);
        fake_close(fake, queue[1 - first]);
        assert_int_equal(
            fake_exec(fake, queue[first], &read, fake->data, 512).status, 0);
        fake_close(fake, late);
        fake_close(fake, queue[first]);
        /* Both have given their places back. */
        assert_int_equal(connect_queue(fake, 1, cntlid, 0, &late).status, 0);
        fake_close(fake, late);
        fake_close(fake, admin);
        assert_int_equal(fake->target->ctrl_count, 0);
        assert_int_equal(fake->target->qpair_count, 0);
    }
}

/* A reset waits for the host's own queues only, and ends the others. */
static void test_an_unproven_io_queue_does_not_hold_a_reset(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t admin, claim;
    uint16_t cntlid = enable_authenticated(fake, 0, &admin);

    assert_int_equal(connect_queue(fake, 1, cntlid, 0, &claim).status, 0);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CSTS, 4), 0);
    assert_int_equal(qpair_state(fake, claim), QPAIR_CLOSING);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(fake_property_get(fake, admin, PROPERTY_CSTS, 4), 1);
    /* A host may have fewer queues when it has proven its identity than when it
     * connected. */
    assert_int_equal(connect_queue(fake, 16, cntlid, 0, &claim).status, 0);
    assert_int_equal(fake_exec(fake, admin,
                               &(struct nvme_sqe){.opcode = ADMIN_SET_FEATURES,
                                                  .cdw10 = 7,
                                                  .cdw11 = 0},
                               NULL, 0)
                         .status,
                     0);
    new_host(&host, SECRET, "");
    authenticate_queue(fake, claim, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(qpair_state(fake, claim), QPAIR_CLOSING);
    assert_int_equal(connect_queue(fake, 1, cntlid, 0, &claim).status, 0);
    assert_false(nvmf_qpair_closed(fake->target, admin) &&
                 fake->target->ctrl_count == 0);
    assert_int_equal(qpair_state(fake, claim), QPAIR_CLOSING);
}

/* Who claims to be a host cannot keep that host's controller alive, but the
 * host's own authentication does. */
static void test_only_the_host_itself_holds_its_keep_alive_timer(void **state)
{
    for (unsigned int is_own = 0; is_own < 2; is_own++) {
        struct fake *fake = *state;
        uint16_t admin, claim;
        uint16_t cntlid = enable_authenticated(fake, 5000, &admin);

        fake->peer = is_own ? 0 : 9;
        assert_int_equal(connect_queue(fake, 1, cntlid, 0, &claim).status, 0);
        for (unsigned int i = 0; i < 10; i++) {
            pass_time(fake, 1000);
            if (qpair_state(fake, claim) == QPAIR_AUTHENTICATING) {
                (void)receive_message(fake, claim);
            }
        }
        assert_int_equal(qpair_state(fake, admin),
                         is_own ? QPAIR_LIVE : QPAIR_CLOSING);
        fake->peer = 0;
        (void)!nvmf_qpair_closed(fake->target, claim);
        (void)!nvmf_qpair_closed(fake->target, admin);
        fake_run(fake);
        assert_int_equal(fake->target->ctrl_count, 0);
    }
}

/* The host chooses KATO, but not how long it may stay without a proof. */
static void test_an_unproven_host_has_120_s_whatever_its_keep_alive(
    void **state)
{
    struct fake *fake = *state;
    uint16_t qpair;

    assert_int_equal(connect_queue(fake, 0, 0xffff, UINT32_MAX, &qpair).status,
                     0);
    pass_time(fake, AUTHENTICATING_MS - 2000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    pass_time(fake, 4000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
}

/* Messages that lead nowhere do not extend the time for ever. */
static void test_an_unproven_host_has_300_s_whatever_it_sends(void **state)
{
    struct fake *fake = *state;
    struct nvme_sqe receive = auth_sqe(FABRICS_AUTH_RECEIVE, 47);
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    for (unsigned int s = 0; s < 298; s++) {
        pass_time(fake, 1000);
        assert_int_equal(
            fake_exec(fake, qpair, &receive, world.message, 47).status,
            NVME_SC_INVALID_FIELD | DNR);
    }
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    pass_time(fake, 4000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(world.end[0].result, NVMF_AUTH_EXPIRED);
}

/* Hosts that wait for the drive's arithmetic are not to blame. */
static void test_the_time_of_the_arithmetic_does_not_count(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    pass_time(fake, 400000);
    assert_int_equal(receive_message(fake, qpair), 0);
    assert_int_equal(world.message[AUTH_ID], AUTH_ID_CHALLENGE);
    pass_time(fake, AUTHENTICATING_MS - 2000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_AUTHENTICATING);
    pass_time(fake, 4000);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
}

/* Who only claims to be the host of a controller takes no session from others;
 * the host itself, at its address, comes before them. */
static void test_claims_of_io_queues_make_room(void **state)
{
    struct fake *fake = *state;
    uint16_t admin, own, claim[NVMF_MAX_AUTHS], fresh;
    uint16_t cntlid = enable_authenticated(fake, 0, &admin);

    assert_int_equal(connect_queue(fake, 1, cntlid, 0, &own).status, 0);
    fake->peer = 9;
    for (unsigned int i = 0; i < NVMF_MAX_AUTHS; i++) {
        uint16_t qid = (uint16_t)(1 + i % 16);

        assert_int_equal(connect_queue(fake, qid, cntlid, 0, &claim[i]).status,
                         0);
    }
    assert_int_equal(qpair_state(fake, own), QPAIR_AUTHENTICATING);
    assert_int_equal(qpair_state(fake, claim[0]), QPAIR_CLOSING);
    fake->peer = 8;
    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &fresh).status, 0);
    assert_int_equal(qpair_state(fake, fresh), QPAIR_AUTHENTICATING);
    assert_int_equal(qpair_state(fake, own), QPAIR_AUTHENTICATING);
    assert_int_equal(qpair_state(fake, claim[1]), QPAIR_CLOSING);
}

/* A host without a secret is proven when it connects. */
static void test_a_host_without_a_secret_counts_at_once(void **state)
{
    struct fake *fake = *state;
    struct nvmf_ctrl *ctrl;
    uint16_t admin;

    fake->target->config.hosts.find = find_only_host;
    strcpy(fake->hostnqn, "nqn.2014-08.org.example:unlisted");
    admin = fake_host(fake, 0);
    ctrl = &fake->target->ctrl[fake->target->qpair[admin].ctrl];
    assert_true(ctrl_is(ctrl, CTRL_IS_MEMBER));
    assert_false(fake->target->qpair[admin].is_listed);
}

/* ---- What an authentication depends on does not change under way. */

static void raise_least_hash(void)
{
    world.least_hash = AUTH_SHA512;
}

static void raise_least_dh(void)
{
    world.least_dh = AUTH_FFDHE2048;
}

static void replace_ctrl_key(void)
{
    assert_true(auth_key_parse(&world.ctrl_key, SECRET));
}

static void replace_host_key(void)
{
    assert_true(auth_key_parse(&world.host_key, OTHER_SECRET));
}

/* The drive's owner changes one value of the entry between the host's first
 * message and its reply. */
static void change_entry_between(struct fake *fake, void (*change)(void))
{
    struct auth_host host;
    uint8_t challenge[MESSAGE_LEN];
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(receive_message(fake, qpair), 0);
    memcpy(challenge, world.message, sizeof(challenge));
    len = auth_host_reply(&host, challenge, MESSAGE_LEN, world.message);
    change();
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
    assert_int_equal(world.end[world.ends - 1].result, NVMF_AUTH_REFUSED);
}

static void test_a_change_of_the_least_hash_ends_an_authentication(void **state)
{
    change_entry_between(*state, raise_least_hash);
}

static void test_a_change_of_the_least_group_ends_an_authentication(
    void **state)
{
    change_entry_between(*state, raise_least_dh);
}

static void test_a_change_of_the_drives_secret_ends_an_authentication(
    void **state)
{
    change_entry_between(*state, replace_ctrl_key);
}

static void test_a_change_of_the_hosts_secret_ends_an_authentication(
    void **state)
{
    change_entry_between(*state, replace_host_key);
}

/* The last moment: between the proof and Success1. */
static void test_a_change_before_success1_voids_the_proof(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint8_t challenge[MESSAGE_LEN];
    uint16_t qpair;
    size_t len;

    assert_int_equal(connect_queue(fake, 0, 0xffff, 0, &qpair).status, 0);
    new_host(&host, SECRET, "");
    len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_DH_NULL),
                              world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    assert_int_equal(receive_message(fake, qpair), 0);
    memcpy(challenge, world.message, sizeof(challenge));
    len = auth_host_reply(&host, challenge, MESSAGE_LEN, world.message);
    assert_int_equal(send_message(fake, qpair, len), 0);
    raise_least_dh();
    assert_int_equal(receive_message(fake, qpair), 0);
    assert_failure(AUTH_FAILED_PROOF);
    assert_int_equal(qpair_state(fake, qpair), QPAIR_CLOSING);
}

/* ---- What a host counts as. */

static uint32_t number_of(const struct fake *fake, uint16_t admin)
{
    return fake->target->ctrl[fake->target->qpair[admin].ctrl].host_number;
}

/* Connect a host of that name from the address that ends with `peer`. */
static uint16_t connect_named(struct fake *fake, const char *name, uint8_t peer)
{
    struct connect_command command = {
        .qid = 0, .sqsize = 31, .has_sq_flow_control = true};
    struct connect_data data;
    uint16_t admin;

    fake->peer = peer;
    strcpy(fake->hostnqn, name);
    admin = fake_open(fake, 0, 31);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    strcpy(data.hostnqn, name);
    assert_int_equal(fake_connect_with(fake, admin, &command, &data).status, 0);
    return admin;
}

static void prove_named(struct fake *fake, uint16_t admin, const char *name)
{
    struct auth_host host;

    auth_host_init(&host, name, FAKE_SUBNQN, SECRET, "");
    authenticate_queue(fake, admin, &host, BIT(AUTH_DH_NULL));
    assert_int_equal(qpair_state(fake, admin), QPAIR_LIVE);
}

static void test_a_host_counts_by_its_name_after_its_proof(void **state)
{
    struct fake *fake = *state;
    uint16_t stranger, victim, elsewhere;

    stranger = connect_named(fake, FAKE_HOSTNQN "-other", 7);
    victim = connect_named(fake, FAKE_HOSTNQN, 7);
    assert_int_equal(number_of(fake, victim), number_of(fake, stranger));
    prove_named(fake, victim, FAKE_HOSTNQN);
    assert_int_not_equal(number_of(fake, victim), number_of(fake, stranger));
    elsewhere = connect_named(fake, FAKE_HOSTNQN, 8);
    assert_int_not_equal(number_of(fake, elsewhere), number_of(fake, victim));
    assert_int_not_equal(number_of(fake, elsewhere), number_of(fake, stranger));
    prove_named(fake, elsewhere, FAKE_HOSTNQN);
    assert_int_equal(number_of(fake, elsewhere), number_of(fake, victim));
}

/* A host is on the list, but has no secret: anybody may say its name. */
static void test_a_listed_name_without_a_secret_counts_by_its_address(
    void **state)
{
    struct fake *fake = *state;
    uint32_t number;

    memset(&world.host_key, 0, sizeof(world.host_key));
    number = number_of(fake, connect_named(fake, FAKE_HOSTNQN, 7));
    assert_int_equal(number_of(fake, connect_named(fake, FAKE_HOSTNQN "2", 7)),
                     number);
    assert_int_not_equal(number_of(fake, connect_named(fake, FAKE_HOSTNQN, 8)),
                         number);
}

/* CRC-32 of both names is a44a2d35h. */
static void test_names_with_the_same_crc_have_different_numbers(void **state)
{
    static const char *const name[] = {
        "nqn.2014-08.org.example:host-xs4ibwwl",
        "nqn.2014-08.org.example:host-adwoqc8j",
    };
    struct fake *fake = *state;
    uint16_t admin[2];

    for (uint8_t i = 0; i < 2; i++) {
        admin[i] = connect_named(fake, name[i], i);
        prove_named(fake, admin[i], name[i]);
    }
    assert_int_not_equal(number_of(fake, admin[0]), number_of(fake, admin[1]));
}

/* Another drive, or the same one with another secret, has other numbers. */
static void test_numbers_depend_on_the_drives_secret(void **state)
{
    struct fake *fake = *state;
    uint32_t number = number_of(fake, connect_named(fake, FAKE_HOSTNQN, 7));

    fake->target->config.number_key[3] ^= 1;
    assert_int_not_equal(number_of(fake, connect_named(fake, FAKE_HOSTNQN, 7)),
                         number);
}

/* ---- Hosts that send anything at any time, without the secret. */

enum { SEEDS = 60, STEPS = 250, STRANGERS = 6 };

struct stranger {
    bool is_connected;
    uint16_t qpair;
    struct auth_host host;
    uint8_t message[MESSAGE_LEN]; /* stays while its command is in flight */
    uint8_t answer[MESSAGE_LEN];
};

static uint32_t random_below(uint32_t below)
{
    return (uint32_t)(random_next(&world.random) % below);
}

/* Make some message.  @return its length */
static size_t make_message(struct stranger *stranger)
{
    uint8_t *message = stranger->message;
    size_t len;

    switch (random_below(5)) {
    case 0:
        len = auth_host_reply(&stranger->host, stranger->answer, MESSAGE_LEN,
                              message);
        break;
    case 1:
        auth_success2_emit(message, stranger->host.t_id);
        len = AUTH_SUCCESS2_LEN;
        break;
    case 2:
        len = 1 + random_below(MESSAGE_LEN);
        fill_random(NULL, message, len);
        break;
    default:
        len = auth_host_negotiate(&stranger->host, (uint8_t)random_below(16),
                                  random_below(2) == 0 ? BIT(AUTH_FFDHE2048)
                                                       : BIT(AUTH_DH_NULL),
                                  message);
        break;
    }
    if (len == 0 || random_below(8) == 0) {
        len = 1 + random_below(80); /* cut off, or with rests of others */
    }
    if (random_below(8) == 0) {
        message[random_below((uint32_t)len)] ^=
            (uint8_t)(1 + random_below(255));
    }
    return len;
}

static void close_stranger(struct fake *fake, struct stranger *stranger)
{
    stranger->is_connected = false;
    (void)!nvmf_qpair_closed(fake->target, stranger->qpair);
}

static void disturb_target(struct fake *fake, struct stranger *stranger)
{
    struct nvme_sqe send = auth_sqe(FABRICS_AUTH_SEND, 0),
                    receive = auth_sqe(FABRICS_AUTH_RECEIVE, MESSAGE_LEN);
    uint32_t steps = random_below(400);

    if (!stranger->is_connected) {
        stranger->is_connected =
            connect_queue(fake, 0, 0xffff, 0, &stranger->qpair).status == 0;
        if (!stranger->is_connected) { /* It is not on the list. */
            close_stranger(fake, stranger);
        }
        new_host(&stranger->host, OTHER_SECRET, DRIVE_SECRET);
        return;
    }
    switch (random_below(8)) {
    case 0:
    case 1:
    case 2:
        send.cdw11 = (uint32_t)make_message(stranger);
        (void)fake_send(fake, stranger->qpair, &send, stranger->message,
                        send.cdw11);
        break;
    case 3:
    case 4:
        (void)fake_send(fake, stranger->qpair, &receive, stranger->answer,
                        MESSAGE_LEN);
        break;
    case 5:
        while (steps-- > 0 &&
               nvmf_target_auth_step(fake->target, fake->now_us)) {
        }
        break;
    case 6:
        pass_time(fake, random_below(30000));
        break;
    default:
        if (random_below(4) == 0) {
            close_stranger(fake, stranger);
        }
        world.is_allowed = random_below(4) != 0;
        break;
    }
}

static void test_nobody_gets_in_without_the_secret(void **state)
{
    unsigned int ended = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct stranger strangers[STRANGERS];
        struct fake *fake;
        void *made;

        assert_int_equal(setup_hosts(&made), 0);
        fake = made;
        world.random = seed;
        memset(strangers, 0, sizeof(strangers));
        for (unsigned int step = 0; step < STEPS; step++) {
            struct stranger *stranger = &strangers[random_below(STRANGERS)];

            disturb_target(fake, stranger);
            fake->hold_done = random_below(2) == 0;
            fake->hold_fetch = random_below(3) == 0;
            fake_run(fake);
            fake->hold_done = fake->hold_fetch = false;
            for (unsigned int i = 0; i < STRANGERS; i++) {
                uint8_t now = qpair_state(fake, strangers[i].qpair);

                assert_int_not_equal(now, QPAIR_LIVE);
                if (strangers[i].is_connected && now == QPAIR_CLOSING) {
                    close_stranger(fake, &strangers[i]);
                    ended++;
                }
            }
        }
        for (unsigned int i = 0; i < STRANGERS; i++) {
            if (strangers[i].is_connected) {
                close_stranger(fake, &strangers[i]);
            }
        }
        fake_run(fake);
        assert_int_equal(fake->target->auths.count, 0);
        assert_int_equal(fake->target->qpair_count, 0);
        assert_false(nvmf_target_auth_step(fake->target, fake->now_us));
        fake_free(fake);
    }
    assert_true(ended > SEEDS); /* otherwise this tests little */
}

/* One source asks for many exponentiations, then another one for a single one,
 * which is the second to be done. */
static void test_sources_take_turns_at_the_arithmetic(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t greedy[5], modest = 0;

    new_host(&host, SECRET, "");
    for (unsigned int i = 0; i <= ARRAY_LEN(greedy); i++) {
        uint16_t *qpair = i < ARRAY_LEN(greedy) ? &greedy[i] : &modest;
        size_t len;

        assert_int_equal(connect_queue(fake, 0, 0xffff, 0, qpair).status, 0);
        if (qpair == &modest) {
            fake->target->qpair[modest].host[15] = 1;
        }
        len = auth_host_negotiate(&host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                                  world.message);
        assert_int_equal(send_message(fake, *qpair, len), 0);
        if (i == 0) { /* its exponentiation begins */
            assert_true(nvmf_target_auth_step(fake->target, fake->now_us));
        }
    }
    for (unsigned int done = 0; done < 2;) {
        uint8_t before = fake->target->auths.power;

        assert_true(nvmf_target_auth_step(fake->target, fake->now_us));
        done += before != NO_AUTH && fake->target->auths.power == NO_AUTH;
    }
    assert_int_equal(fake->target->auths.auth[fake->target->qpair[modest].auth]
                         .session.state,
                     AUTH_CHALLENGE);
    assert_int_equal(
        fake->target->auths.auth[fake->target->qpair[greedy[1]].auth]
            .session.state,
        AUTH_COMPUTE_PUBLIC);
}
