/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs whose hosts have proven no identity: they make room for others,
 * by the shares of their addresses.
 */
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/make_room.h"

enum {
    DEEP = 63, /* 127 such I/O queues and an admin queue fill the drive */
    DEEP_FIT = 127,
    YOUNG_US = 1000000,
    A = 1,
    B = 2,
    C = 3,
};

static void set_params(const struct fake *fake,
                       struct nvmf_qpair_params *params, uint16_t number,
                       const struct nvmf_qpair_hints *hints)
{
    *params = (struct nvmf_qpair_params){.transport = &fake->transport,
                                         .hints = hints};
    params->host[14] = (uint8_t)(number >> 8);
    params->host[15] = (uint8_t)number;
}

/* What the RDMA transport does with a request. */
static bool try_params(struct fake *fake,
                       const struct nvmf_qpair_params *params, uint16_t *qpair)
{
    uint8_t address[sizeof(params->host)] = {0};
    uint16_t other;

    while (nvmf_qpair_displace_address(fake->target, params, address, &other)) {
        fake_close(fake, other);
    }
    while (nvmf_qpair_reserve(fake->target, params, qpair) != NVMF_RESERVE_OK) {
        if (nvmf_qpair_displace(fake->target, params, fake->now_us, &other) ==
            NVMF_ROOM_NONE) {
            return false;
        }
        fake_close(fake, other);
    }
    nvmf_qpair_open(fake->target, *qpair, fake->now_us);
    nvmf_qpair_confirm(fake->target, *qpair);
    return true;
}

static bool try_open(struct fake *fake, uint16_t from, uint16_t qid,
                     uint16_t sqsize, uint16_t *qpair)
{
    const struct nvmf_qpair_hints hints = {.qid = qid, .sqsize = sqsize};
    struct nvmf_qpair_params params;

    set_params(fake, &params, from, &hints);
    return try_params(fake, &params, qpair);
}

/* An I/O queue of iWARP. */
static uint16_t open_stream(struct fake *fake, uint16_t from)
{
    const struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = 1};
    struct nvmf_qpair_params params;
    uint16_t qpair = NO_QPAIR;

    set_params(fake, &params, from, &hints);
    params.is_stream = true;
    assert_true(try_params(fake, &params, &qpair));
    return qpair;
}

static uint16_t open_from(struct fake *fake, uint16_t from, uint16_t qid,
                          uint16_t sqsize)
{
    uint16_t qpair = NO_QPAIR;

    assert_true(try_open(fake, from, qid, sqsize, &qpair));
    return qpair;
}

/* An admin queue, connected; with a subsystem of its choice. */
static uint16_t connect_from(struct fake *fake, uint16_t from,
                             const char *subnqn)
{
    uint16_t qpair = open_from(fake, from, 0, 31);

    fake_connect(fake, qpair, 0, 31, 0xffff, 0, subnqn);
    return qpair;
}

static uint8_t state_of(const struct fake *fake, uint16_t qpair)
{
    return fake->target->qpair[qpair].state;
}

static bool is_from(const struct fake *fake, uint16_t qpair, uint16_t from)
{
    return fake->target->qpair[qpair].host[15] == (uint8_t)from &&
           fake->target->qpair[qpair].host[14] == (uint8_t)(from >> 8);
}

/* Compare the counts that are kept with the list. */
static void check_list(const struct fake *fake)
{
    const struct nvmf_target *target = fake->target;
    unsigned int listed = 0, addresses = 0, walked = 0;

    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        const struct nvmf_qpair *qpair = &target->qpair[i];
        unsigned int same = 0, before = 0;

        if (qpair->state == QPAIR_FREE || !qpair->is_listed) {
            continue;
        }
        listed++;
        for (unsigned int k = 0; k < NVMF_MAX_QPAIRS; k++) {
            const struct nvmf_qpair *other = &target->qpair[k];
            bool is_same =
                other->state != QPAIR_FREE && other->is_listed &&
                memcmp(other->host, qpair->host, sizeof(qpair->host)) == 0;

            same += is_same;
            before += is_same && k < i;
        }
        assert_int_equal(qpair->of_address, same);
        addresses += before == 0;
    }
    for (uint16_t i = target->shares.first; i != NO_QPAIR;
         i = target->qpair[i].next_listed) {
        walked++;
    }
    assert_int_equal(walked, listed);
    assert_int_equal(target->shares.addresses, addresses);
}

static void test_established_connections_of_one_address_keep_nobody_out(
    void **state)
{
    struct fake *fake = *state;
    uint16_t greedy[DEEP_FIT], modest, refused;

    modest = open_from(fake, B, 0, 31);
    for (unsigned int i = 0; i < DEEP_FIT; i++) {
        greedy[i] = open_from(fake, A, 1, DEEP);
    }
    assert_false(try_open(fake, A, 1, DEEP, &refused));
    fake->now_us += 10 * YOUNG_US;
    assert_false(try_open(fake, A, 1, DEEP, &refused)); /* it has its share */
    (void)open_from(fake, C, 0, 31);
    (void)open_from(fake, C, 0, 31);
    (void)open_from(fake, B, 1, DEEP);
    assert_int_equal(state_of(fake, modest), QPAIR_CONNECTING);
    assert_true(is_from(fake, modest, B));
    assert_false(is_from(fake, greedy[0], A)); /* the oldest one has gone */
    assert_true(is_from(fake, greedy[DEEP_FIT - 1], A));
    assert_int_equal(state_of(fake, greedy[DEEP_FIT - 1]), QPAIR_CONNECTING);
    assert_true(nvmf_target_displaced(fake->target) >= 2);
    check_list(fake);
}

static void test_discovery_controllers_of_one_address_keep_nobody_out(
    void **state)
{
    struct fake *fake = *state;
    uint16_t first, last = NO_QPAIR, refused, admin;

    first = connect_from(fake, A, NVME_DISCOVERY_NQN);
    for (unsigned int i = 1; i < NVMF_MAX_HOSTS; i++) {
        last = connect_from(fake, A, NVME_DISCOVERY_NQN);
    }
    assert_int_equal(fake->target->ctrl_count, NVMF_MAX_HOSTS);
    assert_false(try_open(fake, A, 0, 31, &refused));
    admin = connect_from(fake, B, FAKE_SUBNQN);
    assert_int_equal(admin, first); /* the place of the oldest */
    assert_true(is_from(fake, admin, B));
    assert_int_equal(state_of(fake, admin), QPAIR_LIVE);
    assert_int_equal(state_of(fake, last), QPAIR_LIVE);
    (void)connect_from(fake, C, NVME_DISCOVERY_NQN);
    assert_int_equal(fake->target->ctrl_count, NVMF_MAX_HOSTS);
    check_list(fake);
}

/* One address may well be many hosts. */
static void test_proven_hosts_have_no_shares(void **state)
{
    struct fake *fake = *state;
    uint16_t refused;

    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        (void)connect_from(fake, A, FAKE_SUBNQN);
    }
    fake->now_us += 10 * YOUNG_US;
    assert_false(try_open(fake, B, 0, 31, &refused));
    assert_int_equal(nvmf_target_displaced(fake->target), 0);
    assert_int_equal(fake->target->ctrl_count, NVMF_MAX_HOSTS);
    assert_int_equal(fake->target->shares.first, NO_QPAIR);
}

/* A host that is connecting right now keeps its place in a full drive. */
static void test_few_connections_of_the_last_second_stay(void **state)
{
    struct fake *fake = *state;
    uint16_t young, refused;

    for (unsigned int i = 0; i < NVMF_MAX_HOSTS - 1; i++) {
        (void)connect_from(fake, A, FAKE_SUBNQN);
    }
    young = open_from(fake, B, 0, 31);
    fake->now_us += YOUNG_US - 1;
    assert_false(try_open(fake, C, 0, 31, &refused));
    fake->now_us += 1;
    (void)open_from(fake, C, 0, 31);
    assert_true(is_from(fake, young, C));
}

/* Of addresses that have as many, the oldest queue pair goes. */
static void test_the_oldest_of_equals_goes(void **state)
{
    struct fake *fake = *state;
    uint16_t first = open_from(fake, 1000, 0, 31), second;

    second = open_from(fake, 1001, 0, 31);
    for (uint16_t i = 2; i < NVMF_MAX_HOSTS; i++) {
        (void)open_from(fake, (uint16_t)(1000 + i), 0, 31);
    }
    fake->now_us += YOUNG_US;
    (void)open_from(fake, A, 0, 31);
    assert_true(is_from(fake, first, A));
    assert_true(is_from(fake, second, 1001));
    /* An address that has more than all others displaces none of them. */
    (void)open_from(fake, A, 0, 31);
    assert_false(try_open(fake, A, 0, 31, &first));
}

/* Each address takes a neighbour, also when the drive is not full. */
static void test_addresses_without_proof_are_limited(void **state)
{
    struct fake *fake = *state;
    uint16_t proven = connect_from(fake, B, FAKE_SUBNQN);
    uint16_t old[3];

    for (unsigned int i = 0; i < 3; i++) {
        old[i] = open_from(fake, 1000, 1, 1);
    }
    for (uint16_t i = 1; i < NVMF_UNPROVEN_ADDRESSES; i++) {
        (void)open_from(fake, (uint16_t)(1000 + i), 1, 1);
    }
    assert_int_equal(fake->target->shares.addresses, NVMF_UNPROVEN_ADDRESSES);
    (void)open_from(fake, 1001, 1, 1); /* no further address */
    for (unsigned int i = 0; i < 3; i++) {
        assert_true(is_from(fake, old[i], 1000));
        assert_int_equal(state_of(fake, old[i]), QPAIR_CONNECTING);
    }
    (void)open_from(fake, A, 1, 1);
    for (unsigned int i = 0; i < 3; i++) {
        assert_true(state_of(fake, old[i]) == QPAIR_FREE ||
                    is_from(fake, old[i], A));
    }
    assert_int_equal(fake->target->shares.addresses, NVMF_UNPROVEN_ADDRESSES);
    assert_int_equal(state_of(fake, proven), QPAIR_LIVE);
    check_list(fake);
}

/* All numbers are in use, and the oldest queue pair of the address that has
 * most is one of TCP, whose number is free only later: another one of this
 * address has to go. */
static void test_a_number_that_is_free_at_once_is_taken_first(void **state)
{
    struct fake *fake = *state;
    struct nvmf_transport tcp = fake->transport;
    struct nvmf_qpair_params params;
    uint16_t oldest, second, newcomer;

    tcp.trtype = TRTYPE_TCP;
    set_params(fake, &params, A, NULL);
    params.transport = &tcp;
    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &oldest),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, oldest, fake->now_us);
    nvmf_qpair_confirm(fake->target, oldest);
    second = open_from(fake, A, 1, 1);
    while (fake->target->qpair_count != NVMF_MAX_QPAIRS) {
        (void)open_from(fake, A, 1, 1);
    }
    fake->now_us += 10 * YOUNG_US;
    newcomer = open_from(fake, C, 1, 1);
    assert_int_equal(newcomer, second);
    assert_true(is_from(fake, newcomer, C));
    assert_int_equal(state_of(fake, oldest), QPAIR_CONNECTING);
    assert_int_equal(nvmf_target_displaced(fake->target), 1);
    fake_close(fake, oldest);
}

/* The peers of NVMe/TCP take no neighbours, so their addresses do not count. */
static void test_addresses_of_tcp_do_not_count(void **state)
{
    struct fake *fake = *state;
    struct nvmf_transport tcp = fake->transport;
    uint16_t first, qpairs[200];

    tcp.trtype = TRTYPE_TCP;
    for (uint16_t i = 0; i < ARRAY_LEN(qpairs); i++) {
        struct nvmf_qpair_params params;

        set_params(fake, &params, (uint16_t)(5000 + i), NULL);
        params.transport = &tcp;
        assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpairs[i]),
                         NVMF_RESERVE_OK);
        nvmf_qpair_open(fake->target, qpairs[i], fake->now_us);
        nvmf_qpair_confirm(fake->target, qpairs[i]);
    }
    assert_int_equal(fake->target->shares.addresses, 0);
    first = open_from(fake, 1000, 1, 1);
    for (uint16_t i = 1; i < NVMF_UNPROVEN_ADDRESSES; i++) {
        (void)open_from(fake, (uint16_t)(1000 + i), 1, 1);
    }
    assert_int_equal(nvmf_target_displaced(fake->target), 0);
    (void)open_from(fake, 5000, 1, 1); /* an address that TCP has already */
    assert_true(is_from(fake, first, 5000));
    assert_int_equal(nvmf_target_displaced(fake->target), 1);
    assert_int_equal(fake->target->shares.addresses, NVMF_UNPROVEN_ADDRESSES);
    for (uint16_t i = 0; i < ARRAY_LEN(qpairs); i++) {
        assert_int_equal(state_of(fake, qpairs[i]), QPAIR_CONNECTING);
        fake_close(fake, qpairs[i]);
    }
}

/* Neither do those of iWARP, which is RDMA like RoCE. */
static void test_addresses_of_iwarp_do_not_count(void **state)
{
    struct fake *fake = *state;
    struct nvmf_qpair_params params;
    uint8_t address[NVMF_ADDRESS_LEN] = {0};
    uint16_t qpair, other;

    set_params(fake, &params, 5000, NULL);
    params.is_stream = true;
    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpair),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    nvmf_qpair_confirm(fake->target, qpair);
    assert_int_equal(fake->target->shares.addresses, 0);
    for (uint16_t i = 0; i < NVMF_UNPROVEN_ADDRESSES; i++) {
        (void)open_from(fake, (uint16_t)(1000 + i), 1, 1);
    }
    params.host[0] ^= 1; /* a further address, which takes none, either */
    assert_false(
        nvmf_qpair_displace_address(fake->target, &params, address, &other));
    assert_int_equal(nvmf_target_displaced(fake->target), 0);
    fake_close(fake, qpair);
}

/* TCP has connections for NVMe/TCP, too, however many addresses open those of
 * iWARP. */
static void test_queue_pairs_of_iwarp_are_limited(void **state)
{
    struct fake *fake = *state;
    uint16_t roce = open_from(fake, A, 1, 1);
    uint16_t host = open_stream(fake, C);
    unsigned int streams = 0;

    for (uint16_t i = 1; i < NVMF_UNPROVEN_STREAMS; i++) {
        (void)open_stream(fake, i % 2 == 0 ? A : B);
    }
    assert_int_equal(nvmf_target_displaced(fake->target), 0);
    (void)open_stream(fake, B); /* B has more than A */
    assert_int_equal(nvmf_target_displaced(fake->target), 1);
    for (uint16_t i = 0; i < NVMF_UNPROVEN_STREAMS; i++) {
        (void)open_stream(fake, i % 2 == 0 ? A : B);
    }
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        streams += state_of(fake, i) == QPAIR_CONNECTING &&
                   fake->target->qpair[i].is_stream;
    }
    assert_int_equal(streams, NVMF_UNPROVEN_STREAMS);
    assert_int_equal(state_of(fake, roce), QPAIR_CONNECTING);
    assert_false(fake->target->qpair[roce].is_stream);
    assert_true(is_from(fake, host, C));
}

/* A request whose source may be forged counts for no address. */
static void test_an_unconfirmed_connection_has_no_share(void **state)
{
    struct fake *fake = *state;
    struct nvmf_qpair_params params;
    uint16_t qpair;

    set_params(fake, &params, A, NULL);
    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpair),
                     NVMF_RESERVE_OK);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    assert_int_equal(share_count(fake->target, params.host), 0);
    nvmf_qpair_confirm(fake->target, qpair);
    nvmf_qpair_confirm(fake->target, qpair);
    assert_int_equal(share_count(fake->target, params.host), 1);
    fake_close(fake, qpair);
    assert_int_equal(share_count(fake->target, params.host), 0);
}

/* Get Log Page is answered in windows, so that it needs no shared buffers. */
static void test_a_host_without_proof_gets_no_shared_buffers(void **state)
{
    enum { LEN = 16384, COMMANDS = NVMF_UNPROVEN_BUFS + 4 };
    struct fake *fake = *state;
    struct nvme_sqe read_log = fake_admin(ADMIN_GET_LOG_PAGE, 0, 0, 0);
    uint16_t admin = fake_host(fake, 0);
    uint16_t discovery = fake_discovery_host(fake);
    struct fake_request *request[COMMANDS];
    int32_t free_before = fake->buffers_free;
    uint8_t expected[LEN];

    read_log.cdw10 = (LEN / 4 - 1) << 16 | LOG_DISCOVERY;
    assert_int_equal(
        fake_exec(fake, discovery, &read_log, fake->data, LEN).status, 0);
    memcpy(expected, fake->data, LEN);
    assert_memory_not_equal(expected, expected + 1024, 1024);
    fake->hold_send = true;
    fake->hold_done = true;
    for (unsigned int i = 0; i < COMMANDS; i++) {
        request[i] = fake_send(fake, discovery, &read_log, fake->data, LEN);
    }
    fake_run(fake);
    assert_int_equal(free_before - fake->buffers_free,
                     NVMF_UNPROVEN_BUFS * NVMF_SHORT_LEN);
    read_log.cdw10 = (LEN / 4 - 1) << 16 | LOG_ERROR;
    (void)fake_send(fake, admin, &read_log, fake->data + LEN, LEN);
    assert_int_equal(free_before - fake->buffers_free,
                     NVMF_UNPROVEN_BUFS * NVMF_SHORT_LEN + LEN);
    memset(fake->data, 0xa5, LEN);
    fake->hold_send = false;
    fake->hold_done = false;
    fake_run(fake);
    for (unsigned int i = 0; i < COMMANDS; i++) {
        assert_true(request[i]->is_answered);
        assert_int_equal(request[i]->cqe.status, 0);
    }
    assert_memory_equal(fake->data, expected, LEN);
    assert_int_equal(fake->buffers_free, free_before);
}

TEST_FIXTURE(fake_setup, fake_teardown)
