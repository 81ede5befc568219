/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The diagnostic echo service, with a client that does what rping does, and
 * what a conformance suite does with the memory that the REP offers.
 */
#include "bed.h"

#include <stdlib.h>
#include <string.h>

#include "firmware/app/echo.h"
#include "net/wire/rdma_ip_cm.h"

enum {
    CLIENT_BYTES = 2 * ECHO_PING_MAX + 4096, /* source, sink, messages */
    MESSAGES = 8,
    MESSAGE_STRIDE = 64,
    PATIENCE_S = 300,
    RNR_FOR_EVER = 7,
};

enum client_state { CONNECTING, LIVE, REFUSED, ENDED };

struct client {
    struct native_host *host;
    struct cm_conn *cm;
    uint32_t qpn;
    uint32_t rkey; /* of source and sink */
    enum client_state state;
    struct cm_end end;
    struct echo_rep rep;
    unsigned int received, sent; /* completions */
    enum verbs_wc_status status; /* of the last send */
    uint8_t *source, *sink, *messages;
};

static struct bed bed;
static uint8_t *client_memory[ECHO_CONNS + 1];

/* ---- A client. */

static uint8_t *message(const struct client *c, unsigned int i)
{
    return c->messages + (size_t)i * MESSAGE_STRIDE;
}

static void post_message(struct client *c, unsigned int i)
{
    struct verbs *verbs = &c->host->net.verbs;
    const struct verbs_sge sge = {message(c, i), PING_INFO_LEN,
                                  verbs_local_key(verbs)};

    assert_true(verbs_post_recv(verbs, c->qpn, i, &sge));
}

static void completion(void *ctx, const struct verbs_wc *wc)
{
    struct client *c = ctx;

    if (wc->opcode != VERBS_WC_RECV) {
        c->sent++;
        c->status = wc->status;
    } else if (wc->status == VERBS_WC_SUCCESS) {
        assert_int_equal(wc->len_bytes, PING_INFO_LEN);
        c->received++;
        post_message(c, (unsigned int)wc->cookie);
    }
}

static const struct verbs_qp_ops qp_ops = {.completion = completion};

static void replied(void *ctx, struct cm_conn *cm, const uint8_t *private_data,
                    size_t private_len)
{
    struct client *c = ctx;
    struct verbs *verbs = &c->host->net.verbs;
    struct verbs_qp_attr attr;

    assert_true(echo_rep_parse(&c->rep, private_data, private_len));
    cm_qp_attr(cm, &attr);
    attr.access = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE;
    assert_true(verbs_modify_qp(verbs, c->qpn, VERBS_QPS_RTR, &attr));
    assert_true(verbs_modify_qp(verbs, c->qpn, VERBS_QPS_RTS, &attr));
    cm_confirm(cm);
    c->state = LIVE;
}

static void disconnected(void *ctx, struct cm_conn *cm,
                         const struct cm_end *end)
{
    struct client *c = ctx;

    (void)cm;
    c->state = c->state == CONNECTING ? REFUSED : ENDED;
    c->end = *end;
}

static const struct cm_ops cm_ops = {
    .replied = replied,
    .disconnected = disconnected,
};

/* @return whether it came true */
static bool client_run(struct client *c, bool (*is_done)(void *ctx),
                       uint64_t ns)
{
    verbs_flush(&c->host->net.verbs);
    c->host->sleep.is_asleep = false;
    return native_world_run(&bed.world, is_done, c, ns);
}

#define NS(seconds) ((uint64_t)(seconds) * UINT64_C(1000000000))

static bool is_decided(void *ctx)
{
    return ((struct client *)ctx)->state != CONNECTING;
}

static bool is_ended(void *ctx)
{
    return ((struct client *)ctx)->state == ENDED;
}

static bool drive_is_idle(void *ctx)
{
    (void)ctx;
    return echo_conns_used(&bed.drive->drive.echo) == 0;
}

static struct echo_counters counters(void)
{
    return bed.drive->drive.echo.counters;
}

/* Connect through local address `local` with this private data. */
static void client_open_with(struct client *c, unsigned int memory,
                             uint8_t local, const void *private_data,
                             size_t private_len)
{
    struct verbs *verbs = &bed.host->net.verbs;
    const struct verbs_qp_config config = {
        .type = VERBS_QP_RC,
        .sq_depth = 16,
        .rq_depth = MESSAGES,
        .ops = &qp_ops,
        .ctx = c,
    };
    const struct verbs_qp_attr attr = {
        .access = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE,
    };
    struct cm_connect_param param = {
        .service_id = rdma_ip_cm_service_id(ECHO_SERVICE_PORT),
        .local_port = 0xc000,
        .ack_timeout = 14, /* 67 ms */
        .retry_count = 7,
        .rnr_retry_count = RNR_FOR_EVER,
        .private_data = private_data,
        .private_len = private_len,
        .ops = &cm_ops,
        .ctx = c,
    };
    struct host_target target;

    *c = (struct client){
        .host = bed.host,
        .source = client_memory[memory],
        .sink = client_memory[memory] + ECHO_PING_MAX,
        .messages = client_memory[memory] + 2 * (size_t)ECHO_PING_MAX,
    };
    assert_true(native_target(bed.host, bed.drive, local, &target));
    c->rkey = verbs_reg_mr(verbs, c->source, 2 * (uint64_t)ECHO_PING_MAX,
                           VERBS_ACCESS_LOCAL_WRITE | VERBS_ACCESS_REMOTE_READ |
                               VERBS_ACCESS_REMOTE_WRITE);
    assert_int_not_equal(c->rkey, VERBS_NO_MR);
    assert_true(verbs_create_qp(verbs, &config, &c->qpn));
    assert_true(verbs_modify_qp(verbs, c->qpn, VERBS_QPS_INIT, &attr));
    for (unsigned int i = 0; i < MESSAGES; i++) {
        post_message(c, i);
    }
    param.local_ip = target.local_ip;
    param.peer_ip = target.peer_ip;
    param.path = target.path;
    param.qpn = c->qpn;
    c->cm = cm_connect(&bed.host->net.cm, &param);
    assert_non_null(c->cm);
    assert_true(client_run(c, is_decided, NS(PATIENCE_S)));
}

static void client_open(struct client *c, unsigned int memory, uint8_t local)
{
    client_open_with(c, memory, local, NULL, 0);
}

static void vanish(struct client *c)
{
    struct verbs *verbs = &bed.host->net.verbs;

    verbs_destroy_qp(verbs, c->qpn);
    verbs_dereg_mr(verbs, c->rkey);
    cm_release(c->cm);
}

static void client_close(struct client *c)
{
    if (c->state == LIVE) {
        cm_disconnect(c->cm);
        assert_true(client_run(c, is_ended, NS(PATIENCE_S)));
    }
    vanish(c);
    assert_true(client_run(c, drive_is_idle, NS(PATIENCE_S)));
}

static void expect_refused(unsigned int memory, uint16_t reason)
{
    struct client c;

    client_open(&c, memory, 0);
    assert_int_equal(c.state, REFUSED);
    assert_int_equal(c.end.reason, CM_END_REJ);
    assert_int_equal(c.end.rej_reason, reason);
    vanish(&c);
}

static struct client *waiting_client;
static unsigned int waiting_for;

static bool has_received(void *ctx)
{
    (void)ctx;
    return waiting_client->received >= waiting_for ||
           waiting_client->state != LIVE;
}

static bool has_sent(void *ctx)
{
    (void)ctx;
    return waiting_client->sent >= waiting_for;
}

static enum verbs_wc_status do_wr(struct client *c, struct verbs_send_wr *wr)
{
    wr->signaled = true;
    waiting_client = c;
    waiting_for = c->sent + 1;
    assert_true(verbs_post_send(&c->host->net.verbs, c->qpn, wr));
    assert_true(client_run(c, has_sent, NS(PATIENCE_S)));
    return c->status;
}

static struct verbs_sge sge_of(struct client *c, void *addr, uint32_t len)
{
    return (struct verbs_sge){addr, len, verbs_local_key(&c->host->net.verbs)};
}

static enum verbs_wc_status client_send(struct client *c, void *data,
                                        uint32_t len)
{
    struct verbs_send_wr wr = {
        .opcode = VERBS_WR_SEND,
        .num_sge = 1,
        .sge = {sge_of(c, data, len)},
    };

    return do_wr(c, &wr);
}

static enum verbs_wc_status transfer(struct client *c,
                                     enum verbs_wr_opcode opcode, uint32_t rkey,
                                     uint64_t addr, uint32_t len)
{
    struct verbs_send_wr wr = {
        .opcode = opcode,
        .num_sge = 1,
        .sge = {sge_of(c, opcode == VERBS_WR_READ ? c->sink : c->source, len)},
        .remote_addr = addr,
        .rkey = rkey,
    };

    return do_wr(c, &wr);
}

/* @return whether the drive answered with a go-ahead */
static bool say(struct client *c, const void *where, uint32_t rkey,
                uint32_t size)
{
    const struct ping_info info = {
        .addr = hal_dma_addr(where),
        .rkey = rkey,
        .size_bytes = size,
    };
    uint8_t *buf = c->messages + (size_t)MESSAGES * MESSAGE_STRIDE;
    unsigned int answers = c->received + 1;

    ping_info_emit(&info, buf);
    assert_int_equal(client_send(c, buf, PING_INFO_LEN), VERBS_WC_SUCCESS);
    waiting_client = c;
    waiting_for = answers;
    return client_run(c, has_received, NS(1)) && c->received == answers;
}

/* A round of rping's, its data compared. */
static void ping(struct client *c, uint32_t size, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (uint32_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        c->source[i] = (uint8_t)(x >> 24);
    }
    memset(c->sink, 0xa5, ECHO_PING_MAX);
    assert_true(say(c, c->source, c->rkey, size));
    assert_true(say(c, c->sink, c->rkey, size));
    assert_memory_equal(c->source, c->sink, size);
    if (size < ECHO_PING_MAX) {
        assert_int_equal(c->sink[size], 0xa5);
    }
}

static void expect_no_leak(void)
{
    const struct verbs *verbs = &bed.drive->drive.net.verbs;

    bed_expect_idle(&bed);
    /* All but the one of DRAM as a whole. */
    assert_int_equal(verbs->mr_put - verbs->mr_get, RNIC_MR_SLOTS - 1);
}

static int setup_with(bool has_echo)
{
    bed_init_echo(&bed, 1500, has_echo);
    for (unsigned int i = 0; i < ARRAY_LEN(client_memory); i++) {
        client_memory[i] =
            dram_reserve(&bed.host->machine.dram, CLIENT_BYTES, 4096);
        assert_non_null(client_memory[i]);
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
    for (uint8_t local = 0; local < 4; local++) { /* IPv4, IPv6, both ports */
        struct client c;

        client_open(&c, 0, local);
        assert_int_equal(c.state, LIVE);
        for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
            ping(&c, sizes[i], i + local);
            bytes += sizes[i];
        }
        client_close(&c);
    }
    assert_int_equal(counters().connections, 4);
    assert_int_equal(counters().pings, 4 * ARRAY_LEN(sizes));
    assert_int_equal(counters().ping_bytes, bytes);
    assert_int_equal(counters().messages, 8 * ARRAY_LEN(sizes));
    assert_int_equal(counters().bad + counters().failed + counters().timeouts,
                     0);
    assert_int_equal(bed.drive->drive.net.verbs.counters.commands_refused, 0);
    expect_no_leak();
}

static void test_it_is_off_by_default_and_says_nobody_listens(void **state)
{
    struct client c;

    (void)state;
    expect_refused(0, CM_REJ_INVALID_SERVICE_ID);
    assert_true(echo_switch(&bed.drive->drive.echo, true));
    client_open(&c, 0, 0);
    assert_int_equal(c.state, LIVE);
    ping(&c, 64, 1);

    assert_true(echo_switch(&bed.drive->drive.echo, false));
    bed.drive->sleep.is_asleep = false; /* as the console would */
    assert_true(client_run(&c, is_ended, NS(PATIENCE_S)));
    assert_int_equal(c.end.reason, CM_END_DREQ);
    client_close(&c);
    expect_refused(0, CM_REJ_INVALID_SERVICE_ID);
    assert_true(echo_switch(&bed.drive->drive.echo, true));
    client_open(&c, 0, 0);
    ping(&c, 64, 2);
    client_close(&c);
    expect_no_leak();
}

static void test_the_fifth_connection_is_refused(void **state)
{
    struct client c[ECHO_CONNS];

    (void)state;
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        client_open(&c[i], i, 0);
        assert_int_equal(c[i].state, LIVE);
    }
    expect_refused(ECHO_CONNS, CM_REJ_NO_RESOURCES);
    assert_int_equal(counters().refused, 1);
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        ping(&c[i], 4096, i);
    }
    cm_disconnect(c[1].cm);
    assert_true(client_run(&c[1], is_ended, NS(PATIENCE_S)));
    vanish(&c[1]);
    client_open(&c[1], 1, 0);
    assert_int_equal(c[1].state, LIVE);
    expect_refused(ECHO_CONNS, CM_REJ_NO_RESOURCES);
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        ping(&c[i], 4096, i);
        cm_disconnect(c[i].cm);
        assert_true(client_run(&c[i], is_ended, NS(PATIENCE_S)));
        vanish(&c[i]);
    }
    expect_no_leak();
}

static void test_200_connections_leave_nothing_behind(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 200; i++) {
        struct client c;

        client_open(&c, 0, i % 4);
        assert_int_equal(c.state, LIVE);
        ping(&c, 64, i);
        client_close(&c);
    }
    expect_no_leak();
}

/* ---- What rping does not do. */

static void test_a_ping_that_cannot_be_served_ends_the_connection(void **state)
{
    static const struct {
        uint32_t source_size, sink_size; /* 0 as the second: not said */
    } bad[] = {{0, 0}, {65537, 0}, {UINT32_MAX, 0}, {4096, 4095}};

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(bad); i++) {
        struct client c;

        client_open(&c, 0, 0);
        if (bad[i].sink_size != 0) {
            assert_true(say(&c, c.source, c.rkey, bad[i].source_size));
            assert_false(say(&c, c.sink, c.rkey, bad[i].sink_size));
        } else {
            assert_false(say(&c, c.source, c.rkey, bad[i].source_size));
        }
        assert_int_equal(c.state, ENDED);
        assert_int_equal(c.end.reason, CM_END_DREQ);
        assert_int_equal(counters().bad, i + 1);
        client_close(&c);
    }
    expect_no_leak();
}

static void test_a_wrong_key_ends_the_connection(void **state)
{
    struct client c;

    (void)state;
    client_open(&c, 0, 0);
    assert_false(say(&c, c.source, c.rkey + 1, 64));
    assert_int_equal(c.state, ENDED);
    client_close(&c);
    client_open(&c, 0, 0);
    assert_true(say(&c, c.source, c.rkey, 64));
    assert_false(say(&c, c.sink, c.rkey + 1, 64));
    assert_int_equal(c.state, ENDED);
    client_close(&c);
    assert_int_equal(counters().failed, 2);
    expect_no_leak();
}

static void test_a_peer_that_vanishes_is_given_up(void **state)
{
    struct client c;

    (void)state;
    client_open(&c, 0, 0);
    ping(&c, 64, 1);
    /* Its power is gone: no DREQ, and nobody answers ours. */
    native_disconnect(&bed.drive->machine, 0, &bed.host->machine, 0);
    native_world_pass(&bed.world, ECHO_IDLE_US * 1000 - NS(1));
    assert_int_equal(echo_conns_used(&bed.drive->drive.echo), 1);
    assert_true(client_run(&c, drive_is_idle, NS(PATIENCE_S)));
    assert_int_equal(counters().timeouts, 1);
    vanish(&c);
    expect_no_leak();
}

/* ---- The memory that the REP offers. */

static void test_the_region_is_read_and_written(void **state)
{
    static const uint32_t sizes[] = {1, 3, 4, 1023, 1024, 1025, 4096, 65536};
    struct client c;

    (void)state;
    client_open(&c, 0, 0);
    assert_int_equal(c.rep.size_bytes, ECHO_REGION_LEN);
    assert_int_equal(c.rep.read_size_bytes,
                     ECHO_REGION_LEN + ECHO_BUFFERS * ECHO_BUFFER_LEN);
    assert_true(c.rep.read_addr == c.rep.addr);
    /* Nothing of anybody else's is in it. */
    memset(c.sink, 0xa5, ECHO_PING_MAX);
    assert_int_equal(
        transfer(&c, VERBS_WR_READ, c.rep.rkey, c.rep.addr, ECHO_REGION_LEN),
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
            transfer(&c, VERBS_WR_WRITE, write_key, addr, sizes[i]),
            VERBS_WC_SUCCESS);
        assert_int_equal(transfer(&c, VERBS_WR_READ, read_key, addr, sizes[i]),
                         VERBS_WC_SUCCESS);
        assert_memory_equal(c.source, c.sink, sizes[i]);
    }
    ping(&c, 4096, 1); /* a memory apart */
    client_close(&c);
    expect_no_leak();
}

static void test_each_key_has_its_rights_and_bounds(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 6; i++) {
        struct client c;
        enum verbs_wc_status status = VERBS_WC_SUCCESS;

        client_open(&c, 0, 0);
        switch (i) {
        case 0:
            status =
                transfer(&c, VERBS_WR_WRITE, c.rep.read_rkey, c.rep.addr, 64);
            break;
        case 1:
            status =
                transfer(&c, VERBS_WR_READ, c.rep.write_rkey, c.rep.addr, 64);
            break;
        case 2:
            status = transfer(&c, VERBS_WR_READ, c.rep.rkey,
                              c.rep.addr + ECHO_REGION_LEN - 63, 64);
            break;
        case 3:
            status = transfer(&c, VERBS_WR_WRITE, c.rep.write_rkey,
                              c.rep.addr + ECHO_REGION_LEN - 63, 64);
            break;
        case 4:
            status = transfer(&c, VERBS_WR_READ, c.rep.read_rkey,
                              c.rep.addr + c.rep.read_size_bytes - 63, 64);
            break;
        case 5:
            status = transfer(&c, VERBS_WR_READ, c.rep.rkey, c.rep.addr - 1, 2);
            break;
        }
        assert_int_equal(status, VERBS_WC_REMOTE_ACCESS);
        assert_true(client_run(&c, is_ended, NS(PATIENCE_S)));
        client_close(&c);
    }
    assert_int_equal(counters().failed, 6);
    expect_no_leak();
}

static void test_messages_lie_where_the_rep_says(void **state)
{
    struct client c;

    (void)state;
    client_open(&c, 0, 0);
    for (uint32_t k = 0; k < 2 * ECHO_BUFFERS + 3; k++) {
        uint32_t len = k == 5 ? ECHO_BUFFER_LEN : 1 + 700 * k;
        uint64_t addr = c.rep.addr + c.rep.size_bytes +
                        k % c.rep.buffers * (uint64_t)c.rep.buffer_size_bytes;

        memset(c.source, (int)(k + 1), len);
        assert_int_equal(client_send(&c, c.source, len), VERBS_WC_SUCCESS);
        assert_int_equal(
            transfer(&c, VERBS_WR_READ, c.rep.read_rkey, addr, len),
            VERBS_WC_SUCCESS);
        assert_memory_equal(c.source, c.sink, len);
    }
    assert_int_equal(c.received, 0);
    ping(&c, 64, 1); /* those were no part of it */
    assert_int_equal(client_send(&c, c.source, ECHO_BUFFER_LEN + 1),
                     VERBS_WC_REMOTE_INVALID);
    assert_true(client_run(&c, is_ended, NS(PATIENCE_S)));
    client_close(&c);
    expect_no_leak();
}

static void test_a_peer_may_take_its_keys_away(void **state)
{
    struct client c;
    struct verbs_send_wr wr = {.opcode = VERBS_WR_SEND_INV, .num_sge = 1};

    (void)state;
    client_open(&c, 0, 0);
    wr.sge[0] = sge_of(&c, c.source, 1);
    wr.inv_rkey = c.rep.read_rkey;
    assert_int_equal(do_wr(&c, &wr), VERBS_WC_SUCCESS);
    assert_int_equal(transfer(&c, VERBS_WR_READ, c.rep.rkey, c.rep.addr, 64),
                     VERBS_WC_SUCCESS);
    assert_int_equal(
        transfer(&c, VERBS_WR_READ, c.rep.read_rkey, c.rep.addr, 64),
        VERBS_WC_REMOTE_ACCESS);
    client_close(&c);
    expect_no_leak();
}

/* Two buffers, each kept for 500 ms: the third message meets RNR NAKs. */
static void test_buffers_are_held_on_request(void **state)
{
    const struct echo_req req = {.buffers = 2, .hold_ms = 500};
    uint8_t private_data[ECHO_REQ_LEN];
    struct client c;
    uint64_t start;

    (void)state;
    echo_req_emit(&req, private_data);
    client_open_with(&c, 0, 0, private_data, sizeof(private_data));
    assert_int_equal(c.state, LIVE);
    assert_int_equal(c.rep.buffers, 2);
    start = bed.world.now_ns;
    assert_int_equal(client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_int_equal(client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_true(bed.world.now_ns - start < NS(1) / 4);
    assert_int_equal(client_send(&c, c.source, 1), VERBS_WC_SUCCESS);
    assert_true(bed.world.now_ns - start >= NS(1) / 2);
    assert_true(bed.world.now_ns - start < NS(1));
    client_close(&c);
    expect_no_leak();
}

static void test_more_buffers_than_there_are_is_refused(void **state)
{
    const struct echo_req req = {.buffers = ECHO_BUFFERS + 1};
    uint8_t private_data[ECHO_REQ_LEN];
    struct client c;

    (void)state;
    echo_req_emit(&req, private_data);
    client_open_with(&c, 0, 0, private_data, sizeof(private_data));
    assert_int_equal(c.state, REFUSED);
    assert_int_equal(c.end.rej_reason, CM_REJ_CONSUMER);
    vanish(&c);
    expect_no_leak();
}

/* NVMe goes on beside it, and a connection that is quiet wakes nobody. */
static void test_nvme_and_sleep_are_left_alone(void **state)
{
    struct client c;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    client_open(&c, 0, 0);
    ping(&c, 65536, 1);
    assert_int_equal(bed_write(&bed, 1, 0, 256, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 0, 256, HOST_DATA_KEYED, 1);
    ping(&c, 65536, 2);
    native_world_pass(&bed.world, NS(1));
    assert_true(bed.drive->sleep.is_asleep);
    client_close(&c);
    bed_expect(&bed, 1, 0, 256, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    expect_no_leak();
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_pings_of_many_sizes_come_back),
        cmocka_unit_test_setup_teardown(
            test_it_is_off_by_default_and_says_nobody_listens, setup_off,
            teardown),
        T(test_the_fifth_connection_is_refused),
        T(test_200_connections_leave_nothing_behind),
        T(test_a_ping_that_cannot_be_served_ends_the_connection),
        T(test_a_wrong_key_ends_the_connection),
        T(test_a_peer_that_vanishes_is_given_up),
        T(test_the_region_is_read_and_written),
        T(test_each_key_has_its_rights_and_bounds),
        T(test_messages_lie_where_the_rep_says),
        T(test_a_peer_may_take_its_keys_away),
        T(test_buffers_are_held_on_request),
        T(test_more_buffers_than_there_are_is_refused),
        T(test_nvme_and_sleep_are_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
