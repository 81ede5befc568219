/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of TLS that hosts generate when they authenticate: who may ask for one,
 * whom it admits, how many there are and how long they last.
 */
#include "tests/auth_secrets.h"
#include "tests/test_fixture.h"
#include "fake.h"

#include <stdio.h>
#include <string.h>

#include "lib/random.h"
#include "nvmeof/target/connect/connect.h"
#include "tests/auth_host.h"

enum {
    MESSAGE_LEN = 4096,
    ATR = 0x20000,
    WAIT_S = 120,
    WAITING_OF_HOST = 4,
    WAITING_MAX = 16,
};

/* What the target asks of. */
static struct {
    struct crypto crypto;
    uint64_t random;
    bool is_allowed;
    struct auth_key host_key, ctrl_key;
    struct nvmf_channel channel[NVMF_MAX_QPAIRS]; /* by queue pair */
    unsigned int derived;
    uint8_t psk[AUTH_PSK_MAX]; /* that was derived from last */
    bool had_key;              /* the last authentication */
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
    return world.is_allowed;
}

/* The key of TLS is the generated one turned around; its name is its number. */
static void derive_key(void *ctx, struct nvmf_generated_key *key)
{
    (void)ctx;
    memcpy(world.psk, key->psk, sizeof(world.psk));
    for (unsigned int i = 0; i < sizeof(key->psk); i++) {
        key->psk[i] = (uint8_t)~key->psk[i];
    }
    snprintf(key->digest, sizeof(key->digest), "%u", ++world.derived);
}

static struct nvmf_channel channel_of(void *ctx, uint16_t qpair)
{
    (void)ctx;
    return world.channel[qpair];
}

static void note_end(void *ctx, const struct nvmf_auth_end *end)
{
    (void)ctx;
    world.had_key = end->has_key;
}

static int setup_hosts(void **state)
{
    const struct nvmf_key_maker maker = {NULL, derive_key};
    struct fake *fake = fake_new();

    memset(&world, 0, sizeof(world));
    world.is_allowed = true;
    crypto_init(&world.crypto, fill_random, NULL);
    assert_true(auth_key_parse(&world.host_key, SECRET));
    fake->config.hosts.find = find_host;
    fake->config.crypto = crypto_ops(&world.crypto);
    fake->config.auth_ended = note_end;
    fake->transport.channel = channel_of;
    fake_start(fake);
    nvmf_target_set_key_maker(fake->target, &maker);
    *state = fake;
    return 0;
}

TEST_FIXTURE(setup_hosts, fake_teardown)

/* A connection.  @param key  0: none, for the other kinds */
static uint16_t open_queue(struct fake *fake, uint16_t qid,
                           enum nvmf_channel_kind kind, uint32_t key)
{
    uint16_t qpair = fake_open(fake, qid, 31);

    world.channel[qpair] = (struct nvmf_channel){(uint8_t)kind, key};
    return qpair;
}

static struct nvme_cqe connect_queue(struct fake *fake, uint16_t qpair,
                                     uint16_t qid, uint16_t cntlid)
{
    struct connect_command command = {
        .qid = qid, .sqsize = 31, .has_sq_flow_control = true};
    struct connect_data data;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    if (fake->hostnqn[0] != '\0') {
        memset(data.hostnqn, 0, sizeof(data.hostnqn));
        memcpy(data.hostnqn, fake->hostnqn, strlen(fake->hostnqn));
    }
    return fake_connect_with(fake, qpair, &command, &data);
}

static uint16_t run_auth(struct fake *fake, uint16_t qpair, uint8_t fctype,
                         size_t len)
{
    const struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                                 .fctype = fctype,
                                 .cdw10 = 0xe9010100,
                                 .cdw11 = (uint32_t)len};
    struct fake_request *request =
        fake_send(fake, qpair, &sqe, world.message, (uint32_t)len);

    fake_run(fake);
    while (nvmf_target_auth_step(fake->target, fake->now_us)) {
    }
    fake_run(fake);
    assert_true(request->is_answered);
    return request->cqe.status;
}

/* Begin to authenticate a queue.
 * @param challenge  MESSAGE_LEN bytes: receives the drive's answer */
static void negotiate_queue(struct fake *fake, uint16_t qpair,
                            struct auth_host *host, uint8_t concat,
                            uint8_t *challenge)
{
    const char *name = fake->hostnqn[0] != '\0' ? fake->hostnqn : FAKE_HOSTNQN;
    size_t len;

    auth_host_init(host, name, FAKE_SUBNQN, SECRET, "");
    host->concat = concat;
    len = auth_host_negotiate(host, BIT(AUTH_SHA256), BIT(AUTH_FFDHE2048),
                              world.message);
    assert_int_equal(run_auth(fake, qpair, FABRICS_AUTH_SEND, len), 0);
    assert_int_equal(run_auth(fake, qpair, FABRICS_AUTH_RECEIVE, MESSAGE_LEN),
                     0);
    memcpy(challenge, world.message, MESSAGE_LEN);
}

/* Authenticate a queue, up to Success1 or AUTH_Failure1.
 * @return the explanation of a failure; 0: it has succeeded */
static uint8_t authenticate_queue(struct fake *fake, uint16_t qpair,
                                  struct auth_host *host, uint8_t concat)
{
    uint8_t challenge[MESSAGE_LEN];
    size_t len;

    negotiate_queue(fake, qpair, host, concat, challenge);
    len = auth_host_reply(host, challenge, MESSAGE_LEN, world.message);
    if (len == 0) {
        assert_int_equal(challenge[AUTH_ID], AUTH_ID_FAILURE1);
        return challenge[AUTH_HEADER_LEN + 1];
    }
    assert_int_equal(run_auth(fake, qpair, FABRICS_AUTH_SEND, len), 0);
    assert_int_equal(run_auth(fake, qpair, FABRICS_AUTH_RECEIVE, MESSAGE_LEN),
                     0);
    assert_true(auth_host_accepts(host, world.message, MESSAGE_LEN));
    return 0;
}

/* Connect an admin queue without TLS, and authenticate it.  @return its queue
 * pair */
static uint16_t connect_plain(struct fake *fake, uint8_t concat)
{
    uint16_t qpair = open_queue(fake, 0, NVMF_CHANNEL_PLAIN, 0);
    struct auth_host host;
    struct nvme_cqe cqe = connect_queue(fake, qpair, 0, 0xffff);

    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 & ~0xffffu, ATR);
    assert_int_equal(authenticate_queue(fake, qpair, &host, concat), 0);
    return qpair;
}

/* The number of the key with this name; 0: there is none. */
static uint32_t key_named(const struct fake *fake, unsigned int name)
{
    const char *hostnqn =
        fake->hostnqn[0] != '\0' ? fake->hostnqn : FAKE_HOSTNQN;
    const struct nvmf_generated_key *key;
    char digest[16];

    snprintf(digest, sizeof(digest), "%u", name);
    key = nvmf_target_generated_key(fake->target, hostnqn, digest);
    return key != NULL ? key->number : 0;
}

/* A host that has generated a key, and has ended its first connection. */
static uint32_t generate_key(struct fake *fake)
{
    fake_close(fake, connect_plain(fake, AUTH_CONCAT_NEW));
    return key_named(fake, world.derived);
}

static uint16_t cntlid_of(const struct fake *fake, uint16_t qpair)
{
    return fake->target->ctrl[fake->target->qpair[qpair].ctrl].cntlid;
}

/* Whether any byte of a key is left. */
static bool is_wiped(const struct fake *fake)
{
    const uint8_t *bytes = (const uint8_t *)fake->target->generated.place;

    for (size_t i = 0; i < sizeof(fake->target->generated.place); i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return fake->target->generated.in_use == 0;
}

static void pass_seconds(struct fake *fake, unsigned int seconds)
{
    for (unsigned int i = 0; i < seconds; i++) {
        fake->now_us += 1000000;
        (void)nvmf_target_timer(fake->target, fake->now_us);
    }
}

static void test_a_host_connects_again_with_the_key(void **state)
{
    struct fake *fake = *state;
    uint16_t plain = connect_plain(fake, AUTH_CONCAT_NEW);
    uint32_t key = key_named(fake, 1);
    struct nvme_cqe cqe;
    uint16_t admin, io;

    assert_true(world.had_key);
    assert_int_not_equal(key, 0);
    fake_close(fake, plain);
    assert_int_equal(key_named(fake, 1), key);
    admin = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);
    cqe = connect_queue(fake, admin, 0, 0xffff);
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 & ~0xffffu, 0); /* proven by the key */
    assert_int_equal(fake->target->qpair[admin].state, QPAIR_LIVE);
    assert_int_equal(
        fake->target->ctrl[fake->target->qpair[admin].ctrl].host_number,
        host_proven_number(fake->target, FAKE_HOSTNQN));
    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_GENERATED, key);
    cqe = connect_queue(fake, io, 1, cntlid_of(fake, admin));
    assert_int_equal(cqe.status, 0);
    assert_int_equal(cqe.dw0 & ~0xffffu, 0);
    assert_int_equal(fake->target->qpair[io].state, QPAIR_LIVE);
    pass_seconds(fake, WAIT_S + 1); /* it waits no longer: it is in use */
    assert_int_equal(key_named(fake, 1), key);
}

static void test_the_key_is_that_of_both_sides(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = open_queue(fake, 0, NVMF_CHANNEL_PLAIN, 0);
    const struct nvmf_generated_key *key;
    struct auth_host host;

    (void)connect_queue(fake, qpair, 0, 0xffff);
    assert_int_equal(authenticate_queue(fake, qpair, &host, AUTH_CONCAT_NEW),
                     0);
    assert_memory_equal(world.psk, host.psk, 32);
    key = nvmf_target_generated_key(fake->target, FAKE_HOSTNQN, "1");
    assert_non_null(key);
    assert_int_equal(key->hash, AUTH_SHA256);
    for (unsigned int i = 0; i < 32; i++) {
        assert_int_equal(key->psk[i], (uint8_t)~host.psk[i]);
    }
    assert_null(nvmf_target_generated_key(fake->target, "nqn.other", "1"));
    assert_null(nvmf_target_generated_key(fake->target, FAKE_HOSTNQN, "2"));
}

static void test_without_concatenation_there_is_no_key(void **state)
{
    struct fake *fake = *state;

    (void)connect_plain(fake, AUTH_CONCAT_NONE);
    assert_false(world.had_key);
    assert_int_equal(world.derived, 0);
    assert_true(is_wiped(fake));
}

static void test_who_may_ask_for_what(void **state)
{
    static const struct {
        enum nvmf_channel_kind kind;
        uint8_t concat;
        uint8_t explanation;
    } rows[] = {
        {NVMF_CHANNEL_NO_TLS, AUTH_CONCAT_NEW, AUTH_FAILED_CONCAT},
        {NVMF_CHANNEL_NO_TLS, AUTH_CONCAT_REPLACE, AUTH_FAILED_CONCAT},
        {NVMF_CHANNEL_PLAIN, AUTH_CONCAT_NEW, 0},
        {NVMF_CHANNEL_PLAIN, AUTH_CONCAT_REPLACE, AUTH_FAILED_CONCAT},
        {NVMF_CHANNEL_RETAINED, AUTH_CONCAT_NEW, AUTH_FAILED_CONCAT},
        {NVMF_CHANNEL_RETAINED, AUTH_CONCAT_REPLACE, AUTH_FAILED_CONCAT},
    };
    struct fake *fake = *state;

    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        uint16_t qpair = open_queue(fake, 0, rows[row].kind, 0);
        struct auth_host host;

        assert_int_equal(connect_queue(fake, qpair, 0, 0xffff).status, 0);
        assert_int_equal(
            authenticate_queue(fake, qpair, &host, rows[row].concat),
            rows[row].explanation);
    }
}

static void test_a_transport_without_tls_generates_no_keys(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair;

    fake->transport.channel = NULL;
    qpair = open_queue(fake, 0, NVMF_CHANNEL_PLAIN, 0);
    assert_int_equal(connect_queue(fake, qpair, 0, 0xffff).status, 0);
    assert_int_equal(authenticate_queue(fake, qpair, &host, AUTH_CONCAT_NEW),
                     AUTH_FAILED_CONCAT);
}

static void test_a_drive_without_tls_generates_no_keys(void **state)
{
    struct fake *fake = *state;
    struct auth_host host;
    uint16_t qpair = open_queue(fake, 0, NVMF_CHANNEL_PLAIN, 0);

    fake->target->generated.maker.derive = NULL;
    assert_int_equal(connect_queue(fake, qpair, 0, 0xffff).status, 0);
    assert_int_equal(authenticate_queue(fake, qpair, &host, AUTH_CONCAT_NEW),
                     AUTH_FAILED_CONCAT);
}

static void test_io_queues_generate_no_keys(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connect_plain(fake, AUTH_CONCAT_NONE);
    struct auth_host host;
    uint16_t io;

    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_PLAIN, 0);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     0);
    assert_int_equal(authenticate_queue(fake, io, &host, AUTH_CONCAT_NEW),
                     AUTH_FAILED_CONCAT);
}

/* What is open would stay without TLS. */
static void test_an_association_with_io_queues_generates_no_key(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connect_plain(fake, AUTH_CONCAT_NONE);
    struct auth_host host;
    uint16_t io;

    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_PLAIN, 0);
    (void)connect_queue(fake, io, 1, cntlid_of(fake, admin));
    assert_int_equal(authenticate_queue(fake, io, &host, AUTH_CONCAT_NONE), 0);
    assert_int_equal(authenticate_queue(fake, admin, &host, AUTH_CONCAT_NEW),
                     AUTH_FAILED_CONCAT);
}

static void test_an_association_with_a_key_gets_no_io_queues(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connect_plain(fake, AUTH_CONCAT_NEW);
    uint16_t io;

    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_PLAIN, 0);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     NVME_SC_CONNECT_INVALID | DNR);
    /* The next association of the same place gets them. */
    fake_close(fake, admin);
    admin = connect_plain(fake, AUTH_CONCAT_NONE);
    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     0);
}

/* An I/O queue that was claimed before, and that proves itself later. */
static void test_a_claimed_io_queue_ends_when_there_is_a_key(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connect_plain(fake, AUTH_CONCAT_NONE);
    struct auth_host host;
    uint16_t io;

    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_PLAIN, 0);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     0);
    assert_int_equal(authenticate_queue(fake, admin, &host, AUTH_CONCAT_NEW),
                     0);
    assert_int_equal(authenticate_queue(fake, io, &host, AUTH_CONCAT_NONE), 0);
    assert_int_equal(fake->target->qpair[io].state, QPAIR_CLOSING);
}

/* An I/O queue joins while the admin queue proves its identity. */
static void test_an_io_queue_that_joins_meanwhile_prevents_a_key(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = connect_plain(fake, AUTH_CONCAT_NONE);
    uint8_t challenge[MESSAGE_LEN];
    struct auth_host host, of_io;
    uint16_t io;
    size_t len;

    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    negotiate_queue(fake, admin, &host, AUTH_CONCAT_NEW, challenge);
    assert_int_equal(challenge[AUTH_ID], AUTH_ID_CHALLENGE);
    io = open_queue(fake, 1, NVMF_CHANNEL_PLAIN, 0);
    (void)connect_queue(fake, io, 1, cntlid_of(fake, admin));
    assert_int_equal(authenticate_queue(fake, io, &of_io, AUTH_CONCAT_NONE), 0);
    len = auth_host_reply(&host, challenge, MESSAGE_LEN, world.message);
    assert_true(len > 0);
    (void)run_auth(fake, admin, FABRICS_AUTH_SEND, len);
    assert_int_equal(fake->target->qpair[admin].state, QPAIR_CLOSING);
    assert_int_equal(key_named(fake, 1), 0);
    assert_false(
        fake->target->ctrl[fake->target->qpair[io].ctrl].moves_behind_tls);
}

static void test_a_key_is_for_one_association(void **state)
{
    struct fake *fake = *state;
    uint32_t key = generate_key(fake);
    uint32_t other = generate_key(fake);
    uint16_t admin = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);
    uint16_t second = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);
    uint16_t io;

    assert_int_equal(connect_queue(fake, admin, 0, 0xffff).status, 0);
    assert_int_equal(connect_queue(fake, second, 0, 0xffff).status,
                     NVME_SC_CONNECT_INVALID_HOST | DNR);
    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    io = open_queue(fake, 1, NVMF_CHANNEL_GENERATED, other);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     NVME_SC_CONNECT_INVALID_HOST | DNR);
}

static void test_a_key_ends_with_its_association(void **state)
{
    struct fake *fake = *state;
    uint32_t key = generate_key(fake);
    uint16_t admin = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);
    uint16_t again = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);

    assert_int_equal(connect_queue(fake, admin, 0, 0xffff).status, 0);
    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    (void)fake_property_set(fake, admin, PROPERTY_CC, 0); /* a reset only */
    assert_int_equal(key_named(fake, 1), key);
    fake_close(fake, admin);
    assert_int_equal(key_named(fake, 1), 0);
    assert_true(is_wiped(fake));
    world.channel[again].key = 0; /* nobody has it any more */
    assert_int_equal(connect_queue(fake, again, 0, 0xffff).status,
                     NVME_SC_CONNECT_INVALID_HOST | DNR);
}

static void test_a_key_waits_for_two_minutes(void **state)
{
    struct fake *fake = *state;

    assert_int_not_equal(generate_key(fake), 0);
    pass_seconds(fake, WAIT_S / 2);
    assert_int_not_equal(generate_key(fake), 0);
    pass_seconds(fake, WAIT_S / 2 - 1);
    assert_int_not_equal(key_named(fake, 1), 0);
    pass_seconds(fake, 2);
    assert_int_equal(key_named(fake, 1), 0);
    assert_int_not_equal(key_named(fake, 2), 0);
    pass_seconds(fake, WAIT_S / 2);
    assert_true(is_wiped(fake));
}

static void test_a_subsystem_reset_deletes_all_keys(void **state)
{
    struct fake *fake = *state;
    uint32_t key = generate_key(fake);
    uint16_t admin = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);

    assert_int_equal(connect_queue(fake, admin, 0, 0xffff).status, 0);
    assert_int_not_equal(generate_key(fake), 0);
    (void)fake_property_set(fake, admin, PROPERTY_NSSR, 0x4e564d65);
    assert_true(is_wiped(fake));
}

static void test_a_changed_entry_voids_the_key(void **state)
{
    struct fake *fake = *state;

    assert_int_not_equal(generate_key(fake), 0);
    world.is_allowed = false;
    assert_int_equal(key_named(fake, 1), 0);
    world.is_allowed = true;
    assert_int_not_equal(key_named(fake, 1), 0);
    assert_true(auth_key_parse(&world.host_key, OTHER_SECRET));
    assert_int_equal(key_named(fake, 1), 0);
    world.host_key.len = 0;
    assert_int_equal(key_named(fake, 1), 0);
}

/* Behind TLS a host replaces its key. */
static void test_a_replaced_key_is_gone(void **state)
{
    struct fake *fake = *state;
    uint32_t key = generate_key(fake);
    uint16_t admin = open_queue(fake, 0, NVMF_CHANNEL_GENERATED, key);
    struct auth_host host;
    uint32_t next;
    uint16_t io;

    assert_int_equal(connect_queue(fake, admin, 0, 0xffff).status, 0);
    (void)fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(
        authenticate_queue(fake, admin, &host, AUTH_CONCAT_REPLACE), 0);
    assert_int_equal(key_named(fake, 1), 0);
    next = key_named(fake, 2);
    assert_int_not_equal(next, 0);
    pass_seconds(fake, WAIT_S + 1);
    assert_int_equal(key_named(fake, 2), next); /* it does not wait */
    io = open_queue(fake, 1, NVMF_CHANNEL_GENERATED, next);
    assert_int_equal(connect_queue(fake, io, 1, cntlid_of(fake, admin)).status,
                     0);
    fake_close(fake, io);
    fake_close(fake, admin);
    assert_true(is_wiped(fake));
}

static void test_a_host_has_four_keys_that_wait(void **state)
{
    struct fake *fake = *state;

    for (unsigned int i = 0; i < WAITING_OF_HOST + 2; i++) {
        assert_int_not_equal(generate_key(fake), 0);
    }
    assert_int_equal(key_named(fake, 1), 0);
    assert_int_equal(key_named(fake, 2), 0);
    assert_int_not_equal(key_named(fake, 3), 0);
    assert_int_equal(fake->target->generated.in_use, WAITING_OF_HOST);
}

static void name_host(struct fake *fake, unsigned int number)
{
    snprintf(fake->hostnqn, sizeof(fake->hostnqn), "nqn.2014-08.org:%u",
             number);
}

/* The host with most keys makes room, not the one whose key is the oldest. */
static void test_keys_that_wait_have_sixteen_places(void **state)
{
    struct fake *fake = *state;

    name_host(fake, 99);
    assert_int_not_equal(generate_key(fake), 0);
    name_host(fake, 0);
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_not_equal(generate_key(fake), 0);
    }
    for (unsigned int i = 1; i <= WAITING_MAX - 3; i++) {
        name_host(fake, i);
        assert_int_not_equal(generate_key(fake), 0);
    }
    assert_int_equal(fake->target->generated.in_use, WAITING_MAX);
    name_host(fake, 100);
    assert_int_not_equal(generate_key(fake), 0);
    assert_int_equal(fake->target->generated.in_use, WAITING_MAX);
    name_host(fake, 0);
    assert_int_equal(key_named(fake, 2), 0);
    assert_int_not_equal(key_named(fake, 3), 0);
    name_host(fake, 99);
    assert_int_not_equal(key_named(fake, 1), 0);
}
