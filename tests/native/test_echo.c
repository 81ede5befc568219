/* SPDX-License-Identifier: BSD-2-Clause */
/* The diagnostic echo service: docs/echo.md. */
#include "tests/test_fixture.h"
#include "echo_client.h"

#include <stdlib.h>
#include <string.h>

static struct bed bed;
static uint8_t *memory[ECHO_CONNS + 1]; /* One memory for each client. */

#define NS(seconds) ((uint64_t)(seconds) * UINT64_C(1000000000))

static struct echo_counters echo_counters_now(void)
{
    return bed.drive->drive.echo.counters;
}

static void client_open(struct echo_client *c, unsigned int which,
                        uint8_t local)
{
    echo_client_open(c, &bed, memory[which], local);
}

/* Close the client, and wait until the drive has released its connection. */
static void client_close(struct echo_client *c)
{
    echo_client_close(c);
    assert_true(echo_client_wait_idle(c));
}

static void expect_refused(unsigned int which, uint16_t reason)
{
    struct echo_client c;

    client_open(&c, which, 0);
    assert_int_equal(c.state, ECHO_CLIENT_REFUSED);
    assert_int_equal(c.end.reason, CM_END_REJ);
    assert_int_equal(c.end.rej_reason, reason);
    echo_client_vanish(&c);
}

static void expect_no_leak(void)
{
    const struct verbs *verbs = &bed.drive->drive.net.verbs;

    bed_expect_idle(&bed);
    /* All except the one for the whole DRAM. */
    assert_int_equal(verbs->mr_put - verbs->mr_get, RNIC_MR_SLOTS - 1);
}

static int setup_with(bool has_echo)
{
    bed_init_echo(&bed, 1500, has_echo);
    for (unsigned int i = 0; i < ARRAY_LEN(memory); i++) {
        memory[i] = echo_client_memory(&bed);
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(true);
}

static int setup_off(void **state)
{
    (void)state;
    return setup_with(false);
}

static int teardown(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

/* ---- What rping does. */

static void test_pings_of_many_sizes_come_back(void **state)
{
    static const uint32_t sizes[] = {1,    63,   64,    1024,  1025,
                                     4095, 4096, 65535, 65536, 64};
    uint32_t bytes = 0;

    (void)state;
    /* IPv4 and IPv6, on both ports. */
    for (uint8_t local = 0; local < 4; local++) {
        struct echo_client c;

        client_open(&c, 0, local);
        assert_int_equal(c.state, ECHO_CLIENT_LIVE);
        for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
            echo_client_ping(&c, sizes[i], i + local);
            bytes += sizes[i];
        }
        client_close(&c);
    }
    assert_int_equal(echo_counters_now().connections, 4);
    assert_int_equal(echo_counters_now().pings, 4 * ARRAY_LEN(sizes));
    assert_int_equal(echo_counters_now().ping_bytes, bytes);
    assert_int_equal(echo_counters_now().messages, 8 * ARRAY_LEN(sizes));
    assert_int_equal(echo_counters_now().bad + echo_counters_now().failed +
                         echo_counters_now().timeouts,
                     0);
    assert_int_equal(bed.drive->drive.net.verbs.counters.commands_refused, 0);
    expect_no_leak();
}

WITH_FIXTURE(setup_off, teardown)
static void test_the_service_is_off_by_default_and_refuses_connections(
    void **state)
{
    struct echo_client c;

    (void)state;
    expect_refused(0, CM_REJ_INVALID_SERVICE_ID);
    assert_true(echo_switch(&bed.drive->drive.echo, true));
    client_open(&c, 0, 0);
    assert_int_equal(c.state, ECHO_CLIENT_LIVE);
    echo_client_ping(&c, 64, 1);

    assert_true(echo_switch(&bed.drive->drive.echo, false));
    native_drive_wake(bed.drive); /* As the console does. */
    assert_true(echo_client_wait_end(&c));
    assert_int_equal(c.end.reason, CM_END_DREQ);
    client_close(&c);
    expect_refused(0, CM_REJ_INVALID_SERVICE_ID);
    assert_true(echo_switch(&bed.drive->drive.echo, true));
    client_open(&c, 0, 0);
    echo_client_ping(&c, 64, 2);
    client_close(&c);
    expect_no_leak();
}

static void test_the_fifth_connection_is_refused(void **state)
{
    struct echo_client c[ECHO_CONNS];

    (void)state;
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        client_open(&c[i], i, 0);
        assert_int_equal(c[i].state, ECHO_CLIENT_LIVE);
    }
    expect_refused(ECHO_CONNS, CM_REJ_NO_RESOURCES);
    assert_int_equal(echo_counters_now().refused, 1);
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        echo_client_ping(&c[i], 4096, i);
    }
    cm_disconnect(c[1].cm);
    assert_true(echo_client_wait_end(&c[1]));
    echo_client_vanish(&c[1]);
    client_open(&c[1], 1, 0);
    assert_int_equal(c[1].state, ECHO_CLIENT_LIVE);
    expect_refused(ECHO_CONNS, CM_REJ_NO_RESOURCES);
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        echo_client_ping(&c[i], 4096, i);
        cm_disconnect(c[i].cm);
        assert_true(echo_client_wait_end(&c[i]));
        echo_client_vanish(&c[i]);
    }
    expect_no_leak();
}

static void test_200_connections_leave_nothing_allocated(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 200; i++) {
        struct echo_client c;

        client_open(&c, 0, i % 4);
        assert_int_equal(c.state, ECHO_CLIENT_LIVE);
        echo_client_ping(&c, 64, i);
        client_close(&c);
    }
    expect_no_leak();
}

/* ---- What rping does not do. */

static void test_a_ping_that_cannot_be_served_ends_the_connection(void **state)
{
    static const struct {
        /* The message about the sink is sent only if sink_size is not 0. */
        uint32_t source_size, sink_size;
    } bad[] = {{0, 0}, {65537, 0}, {UINT32_MAX, 0}, {4096, 4095}};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        struct echo_client c;

        client_open(&c, 0, 0);
        if (bad[i].sink_size != 0) {
            assert_true(
                echo_client_say(&c, c.source, c.rkey, bad[i].source_size));
            assert_false(echo_client_say(&c, c.sink, c.rkey, bad[i].sink_size));
        } else {
            assert_false(
                echo_client_say(&c, c.source, c.rkey, bad[i].source_size));
        }
        assert_int_equal(c.state, ECHO_CLIENT_ENDED);
        assert_int_equal(c.end.reason, CM_END_DREQ);
        assert_int_equal(echo_counters_now().bad, i + 1);
        client_close(&c);
    }
    expect_no_leak();
}

static void test_a_wrong_key_ends_the_connection(void **state)
{
    struct echo_client c;

    (void)state;
    bed_provokes(&bed, BED_REFUSAL);
    client_open(&c, 0, 0);
    assert_false(echo_client_say(&c, c.source, c.rkey + 1, 64));
    assert_int_equal(c.state, ECHO_CLIENT_ENDED);
    client_close(&c);
    client_open(&c, 0, 0);
    assert_true(echo_client_say(&c, c.source, c.rkey, 64));
    assert_false(echo_client_say(&c, c.sink, c.rkey + 1, 64));
    assert_int_equal(c.state, ECHO_CLIENT_ENDED);
    client_close(&c);
    assert_int_equal(echo_counters_now().failed, 2);
    expect_no_leak();
}

static void test_the_connection_of_a_peer_that_vanishes_ends(void **state)
{
    struct echo_client c;

    (void)state;
    client_open(&c, 0, 0);
    echo_client_ping(&c, 64, 1);
    /* The peer's power is off: it sends no DREQ, and does not answer ours. */
    native_disconnect(&bed.drive->machine, 0, &bed.host->machine, 0);
    native_world_pass(&bed.world, ECHO_IDLE_US * 1000 - NS(1));
    assert_int_equal(echo_conns_used(&bed.drive->drive.echo), 1);
    assert_true(echo_client_wait_idle(&c));
    assert_int_equal(echo_counters_now().timeouts, 1);
    echo_client_vanish(&c);
    expect_no_leak();
}

/* A DREP can take minutes to come, and there are only four connections. */
static void test_a_missing_drep_keeps_no_resources(void **state)
{
    struct echo_client c;

    (void)state;
    client_open(&c, 0, 0);
    native_world_pass(&bed.world, NS(1)); /* The peer's RTU. */
    bed.cables[0].is_cut = true;
    native_world_pass(&bed.world, ECHO_IDLE_US * 1000 + NS(1));
    assert_int_equal(echo_counters_now().timeouts, 1);
    assert_int_equal(echo_conns_used(&bed.drive->drive.echo), 0);
    bed.cables[0].is_cut = false;
    native_world_pass(&bed.world, NS(100));
    echo_client_vanish(&c);
    expect_no_leak();
}

/* ---- The memory that the REP offers. */

static void test_the_region_can_be_read_and_written(void **state)
{
    static const uint32_t sizes[] = {1, 3, 4, 1023, 1024, 1025, 4096, 65536};
    struct echo_client c;

    (void)state;
    client_open(&c, 0, 0);
    assert_int_equal(c.rep.size_bytes, ECHO_REGION_LEN);
    assert_int_equal(c.rep.read_size_bytes,
                     ECHO_REGION_LEN + ECHO_BUFFERS * ECHO_BUFFER_LEN);
    assert_true(c.rep.read_addr == c.rep.addr);
    /* Fill the sink, so that stale data of others would show. */
    memset(c.sink, 0xa5, ECHO_PING_MAX);
    assert_int_equal(echo_client_transfer(&c, VERBS_WR_READ, c.rep.rkey,
                                          c.rep.addr, ECHO_REGION_LEN),
                     VERBS_WC_SUCCESS);
    for (unsigned int i = 0; i < ECHO_REGION_LEN; i++) {
        assert_int_equal(c.sink[i], 0);
    }
    for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
        uint64_t addr = c.rep.addr + (ECHO_REGION_LEN - sizes[i]);
        uint32_t write_key = i % 2 == 0 ? c.rep.rkey : c.rep.write_rkey;
        uint32_t read_key = i % 4 < 2 ? c.rep.rkey : c.rep.read_rkey;

        memset(c.source, (int)(0x40 + i), sizes[i]);
        memset(c.sink, 0xa5, sizes[i]);
        assert_int_equal(
            echo_client_transfer(&c, VERBS_WR_WRITE, write_key, addr, sizes[i]),
            VERBS_WC_SUCCESS);
        assert_int_equal(
            echo_client_transfer(&c, VERBS_WR_READ, read_key, addr, sizes[i]),
            VERBS_WC_SUCCESS);
        assert_memory_equal(c.source, c.sink, sizes[i]);
    }
    echo_client_ping(&c, 4096, 1); /* The client uses separate memory. */
    client_close(&c);
    expect_no_leak();
}

static void test_each_key_has_its_rights_and_bounds(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_REFUSAL);
    for (unsigned int i = 0; i < 6; i++) {
        struct echo_client c;
        enum verbs_wc_status status = VERBS_WC_SUCCESS;

        client_open(&c, 0, 0);
        switch (i) {
        case 0:
            status = echo_client_transfer(&c, VERBS_WR_WRITE, c.rep.read_rkey,
                                          c.rep.addr, 64);
            break;
        case 1:
            status = echo_client_transfer(&c, VERBS_WR_READ, c.rep.write_rkey,
                                          c.rep.addr, 64);
            break;
        case 2:
            status =
                echo_client_transfer(&c, VERBS_WR_READ, c.rep.rkey,
                                     c.rep.addr + ECHO_REGION_LEN - 63, 64);
            break;
        case 3:
            status =
                echo_client_transfer(&c, VERBS_WR_WRITE, c.rep.write_rkey,
                                     c.rep.addr + ECHO_REGION_LEN - 63, 64);
            break;
        case 4:
            status = echo_client_transfer(
                &c, VERBS_WR_READ, c.rep.read_rkey,
                c.rep.addr + c.rep.read_size_bytes - 63, 64);
            break;
        case 5:
            status = echo_client_transfer(&c, VERBS_WR_READ, c.rep.rkey,
                                          c.rep.addr - 1, 2);
            break;
        }
        assert_int_equal(status, VERBS_WC_REMOTE_ACCESS);
        assert_true(echo_client_wait_end(&c));
        client_close(&c);
    }
    assert_int_equal(echo_counters_now().failed, 6);
    expect_no_leak();
}

/* Take keys until only `left` are free, as other users would. */
static unsigned int take_keys(uint32_t *keys, unsigned int left)
{
    struct verbs *verbs = &bed.drive->drive.net.verbs;
    unsigned int n = 0;

    while ((keys[n] = verbs_reg_mr(verbs, memory[0], 64, 0)) != VERBS_NO_MR) {
        n++;
    }
    assert_int_equal(n, RNIC_MR_SLOTS - 1); /* One key is for all of DRAM. */
    for (; left > 0; left--) {
        verbs_dereg_mr(verbs, keys[--n]);
    }
    return n;
}

/* The service needs three keys; with fewer it refuses, and keeps none. */
static void test_the_service_refuses_connections_without_free_keys(void **state)
{
    struct verbs *verbs = &bed.drive->drive.net.verbs;
    uint32_t *keys = calloc(RNIC_MR_SLOTS, sizeof(*keys));

    (void)state;
    for (unsigned int left = 0; left <= 3; left++) {
        unsigned int n = take_keys(keys, left);
        struct echo_client c;

        if (left < 3) {
            expect_refused(0, CM_REJ_NO_RESOURCES);
        } else {
            client_open(&c, 0, 0);
            echo_client_ping(&c, 64, 1);
            client_close(&c);
        }
        while (n > 0) {
            verbs_dereg_mr(verbs, keys[--n]);
        }
        expect_no_leak();
    }
    free(keys);
}

static void test_messages_are_placed_where_the_rep_says(void **state)
{
    struct echo_client c;

    (void)state;
    bed_provokes(&bed, BED_REFUSAL);
    client_open(&c, 0, 0);
    for (uint32_t k = 0; k < 2 * ECHO_BUFFERS + 3; k++) {
        uint32_t len = k == 5 ? ECHO_BUFFER_LEN : 1 + 700 * k;
        uint64_t addr = c.rep.addr + c.rep.size_bytes +
                        k % c.rep.buffers * (uint64_t)c.rep.buffer_size_bytes;

        memset(c.source, (int)(k + 1), len);
        assert_int_equal(echo_client_send(&c, c.source, len), VERBS_WC_SUCCESS);
        assert_int_equal(
            echo_client_transfer(&c, VERBS_WR_READ, c.rep.read_rkey, addr, len),
            VERBS_WC_SUCCESS);
        assert_memory_equal(c.source, c.sink, len);
    }
    assert_int_equal(c.received, 0);
    /* The earlier messages were not part of a ping. */
    echo_client_ping(&c, 64, 1);
    assert_int_equal(echo_client_send(&c, c.source, ECHO_BUFFER_LEN + 1),
                     VERBS_WC_REMOTE_INVALID);
    assert_true(echo_client_wait_end(&c));
    client_close(&c);
    expect_no_leak();
}

static void test_a_peer_may_invalidate_its_keys(void **state)
{
    struct echo_client c;
    struct verbs_send_wr wr = {.opcode = VERBS_WR_SEND_INV, .num_sge = 1};

    (void)state;
    bed_provokes(&bed, BED_REFUSAL);
    client_open(&c, 0, 0);
    wr.sge[0] =
        (struct verbs_sge){c.source, 1, verbs_local_key(&bed.host->net.verbs)};
    wr.inv_rkey = c.rep.read_rkey;
    assert_int_equal(echo_client_do(&c, &wr), VERBS_WC_SUCCESS);
    assert_int_equal(
        echo_client_transfer(&c, VERBS_WR_READ, c.rep.rkey, c.rep.addr, 64),
        VERBS_WC_SUCCESS);
    assert_int_equal(echo_client_transfer(&c, VERBS_WR_READ, c.rep.read_rkey,
                                          c.rep.addr, 64),
                     VERBS_WC_REMOTE_ACCESS);
    client_close(&c);
    expect_no_leak();
}

/*
 * There are two buffers, each held for 500 ms: the third message gets RNR NAKs.
 */
static void test_buffers_are_held_on_request(void **state)
{
    const struct echo_req req = {.buffers = 2, .hold_ms = 500};
    uint8_t private_data[ECHO_REQ_LEN];
    struct echo_client c;
    uint64_t start;

    (void)state;
    bed_provokes(&bed, BED_RNR);
    echo_req_emit(&req, private_data);
    echo_client_open_with(&c, &bed, memory[0], 0, private_data,
                          sizeof(private_data));
    assert_int_equal(c.state, ECHO_CLIENT_LIVE);
    assert_int_equal(c.rep.buffers, 2);
    start = bed.world.now_ns;
    assert_int_equal(echo_client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_int_equal(echo_client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_true(bed.world.now_ns - start < NS(1) / 4);
    assert_int_equal(echo_client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_true(bed.world.now_ns - start >= NS(1) / 2);
    assert_true(bed.world.now_ns - start < NS(1));
    client_close(&c);
    expect_no_leak();
}

static void test_a_request_for_too_many_buffers_is_refused(void **state)
{
    const struct echo_req req = {.buffers = ECHO_BUFFERS + 1};
    uint8_t private_data[ECHO_REQ_LEN];
    struct echo_client c;

    (void)state;
    echo_req_emit(&req, private_data);
    echo_client_open_with(&c, &bed, memory[0], 0, private_data,
                          sizeof(private_data));
    assert_int_equal(c.state, ECHO_CLIENT_REFUSED);
    assert_int_equal(c.end.rej_reason, CM_REJ_CONSUMER);
    echo_client_vanish(&c);
    expect_no_leak();
}

/* NVMe works beside an echo connection, and an idle connection does not wake
 * the drive. */
static void test_an_idle_connection_affects_neither_nvme_nor_sleep(void **state)
{
    struct echo_client c;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    client_open(&c, 0, 0);
    echo_client_ping(&c, 65536, 1);
    assert_int_equal(bed_write(&bed, 1, 0, 256, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 0, 256, HOST_DATA_KEYED, 1);
    echo_client_ping(&c, 65536, 2);
    native_world_pass(&bed.world, NS(1));
    assert_true(bed.drive->sleep.is_asleep);
    client_close(&c);
    bed_expect(&bed, 1, 0, 256, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    expect_no_leak();
}

TEST_FIXTURE(setup, teardown)
