/* SPDX-License-Identifier: BSD-2-Clause */
#include "echo_client.h"

#include <string.h>

#include "net/wire/rdma_ip_cm.h"

enum {
    LOCAL_PORT = 0xc000,
    ACK_TIMEOUT = 14, /* 67 ms. */
    RETRIES = 7,
    RNR_FOR_EVER = 7,
    READ_WRITE = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE,
};
#define PATIENCE_NS UINT64_C(300000000000)

static struct verbs *verbs_of(const struct echo_client *c)
{
    return &c->bed->host->net.verbs;
}

static void post_message(struct echo_client *c, unsigned int i)
{
    const struct verbs_sge sge = {
        .addr = c->messages + (size_t)i * ECHO_CLIENT_STRIDE,
        .len_bytes = PING_INFO_LEN,
        .lkey = verbs_local_key(verbs_of(c)),
    };

    assert_true(verbs_post_recv(verbs_of(c), c->qpn, i, &sge));
}

static void handle_completion(void *ctx, const struct verbs_wc *wc)
{
    struct echo_client *c = ctx;

    if (wc->opcode != VERBS_WC_RECV) {
        c->sent++;
        c->status = wc->status;
    } else if (wc->status == VERBS_WC_SUCCESS) {
        assert_int_equal(wc->len_bytes, PING_INFO_LEN);
        c->received++;
        post_message(c, (unsigned int)wc->wr_id);
    }
}

static const struct verbs_qp_ops qp_ops = {.completion = handle_completion};

static void handle_reply(void *ctx, struct cm_conn *cm,
                         const uint8_t *private_data, size_t private_len)
{
    struct echo_client *c = ctx;
    struct verbs_qp_attr attr;

    assert_true(echo_rep_parse(&c->rep, private_data, private_len));
    cm_qp_attr(cm, &attr);
    attr.access = READ_WRITE;
    assert_true(verbs_modify_qp(verbs_of(c), c->qpn, VERBS_QPS_RTR, &attr));
    assert_true(verbs_modify_qp(verbs_of(c), c->qpn, VERBS_QPS_RTS, &attr));
    cm_confirm(cm);
    c->state = ECHO_CLIENT_LIVE;
}

static void handle_disconnect(void *ctx, struct cm_conn *cm,
                              const struct cm_end *end)
{
    struct echo_client *c = ctx;

    (void)cm;
    c->state = c->state == ECHO_CLIENT_CONNECTING ? ECHO_CLIENT_REFUSED
                                                  : ECHO_CLIENT_ENDED;
    c->end = *end;
}

static const struct cm_ops cm_ops = {
    .replied = handle_reply,
    .disconnected = handle_disconnect,
};

static bool run_until(struct echo_client *c, bool (*is_done)(void *ctx))
{
    verbs_flush(verbs_of(c));
    c->bed->host->sleep.is_asleep = false;
    return native_world_run(&c->bed->world, is_done, c, PATIENCE_NS);
}

uint8_t *echo_client_memory(struct bed *bed)
{
    uint8_t *memory =
        dram_reserve(&bed->host->machine.dram, ECHO_CLIENT_BYTES, 4096);

    assert_non_null(memory);
    return memory;
}

static void make_qp(struct echo_client *c)
{
    const struct verbs_qp_config config = {
        .type = VERBS_QP_RC,
        .sq_depth = 16,
        .rq_depth = ECHO_CLIENT_MESSAGES,
        .ops = &qp_ops,
        .ctx = c,
    };
    const struct verbs_qp_attr attr = {.access = READ_WRITE};

    c->rkey = verbs_reg_mr(verbs_of(c), c->source, 2 * (uint64_t)ECHO_PING_MAX,
                           VERBS_ACCESS_LOCAL_WRITE | (unsigned int)READ_WRITE);
    assert_int_not_equal(c->rkey, VERBS_NO_MR);
    assert_true(verbs_create_qp(verbs_of(c), &config, &c->qpn));
    assert_true(verbs_modify_qp(verbs_of(c), c->qpn, VERBS_QPS_INIT, &attr));
    for (unsigned int i = 0; i < ECHO_CLIENT_MESSAGES; i++) {
        post_message(c, i);
    }
}

static bool is_decided(void *ctx)
{
    const struct echo_client *c = ctx;

    return c->state != ECHO_CLIENT_CONNECTING;
}

void echo_client_open_with(struct echo_client *c, struct bed *bed,
                           uint8_t *memory, uint8_t local,
                           const void *private_data, size_t private_len)
{
    struct cm_connect_param param = {
        .service_id = rdma_ip_cm_service_id(ECHO_SERVICE_PORT),
        .local_port = LOCAL_PORT,
        .ack_timeout = ACK_TIMEOUT,
        .retry_count = RETRIES,
        .rnr_retry_count = RNR_FOR_EVER,
        .private_data = private_data,
        .private_len = private_len,
        .ops = &cm_ops,
        .ctx = c,
    };
    struct host_target target;

    *c = (struct echo_client){
        .bed = bed,
        .source = memory,
        .sink = memory + ECHO_PING_MAX,
        .messages = memory + 2 * (size_t)ECHO_PING_MAX,
    };
    assert_true(native_target(bed->host, bed->drive, local, &target));
    make_qp(c);
    param.local_ip = target.local_ip;
    param.peer_ip = target.peer_ip;
    param.path = target.path;
    param.qpn = c->qpn;
    c->cm = cm_connect(&bed->host->net.cm, &param);
    assert_non_null(c->cm);
    assert_true(run_until(c, is_decided));
}

void echo_client_open(struct echo_client *c, struct bed *bed, uint8_t *memory,
                      uint8_t local)
{
    echo_client_open_with(c, bed, memory, local, NULL, 0);
}

static bool is_ended(void *ctx)
{
    const struct echo_client *c = ctx;

    return c->state == ECHO_CLIENT_ENDED;
}

bool echo_client_wait_end(struct echo_client *c)
{
    return run_until(c, is_ended);
}

static bool drive_is_idle(void *ctx)
{
    const struct echo_client *c = ctx;

    return echo_conns_used(&c->bed->drive->drive.echo) == 0;
}

bool echo_client_wait_idle(struct echo_client *c)
{
    return run_until(c, drive_is_idle);
}

void echo_client_vanish(struct echo_client *c)
{
    verbs_destroy_qp(verbs_of(c), c->qpn);
    verbs_dereg_mr(verbs_of(c), c->rkey);
    cm_release(c->cm);
}

void echo_client_close(struct echo_client *c)
{
    if (c->state == ECHO_CLIENT_LIVE) {
        cm_disconnect(c->cm);
        assert_true(echo_client_wait_end(c));
    }
    echo_client_vanish(c);
}

static bool has_sent(void *ctx)
{
    const struct echo_client *c = ctx;

    return c->sent >= c->waits_for;
}

enum verbs_wc_status echo_client_do(struct echo_client *c,
                                    struct verbs_send_wr *wr)
{
    wr->signaled = true;
    c->waits_for = c->sent + 1;
    assert_true(verbs_post_send(verbs_of(c), c->qpn, wr));
    assert_true(run_until(c, has_sent));
    return c->status;
}

enum verbs_wc_status echo_client_send(struct echo_client *c, void *data,
                                      uint32_t len_bytes)
{
    struct verbs_send_wr wr = {
        .opcode = VERBS_WR_SEND,
        .num_sge = 1,
        .sge = {{data, len_bytes, verbs_local_key(verbs_of(c))}},
    };

    return echo_client_do(c, &wr);
}

enum verbs_wc_status echo_client_transfer(struct echo_client *c,
                                          enum verbs_wr_opcode opcode,
                                          uint32_t rkey, uint64_t addr,
                                          uint32_t len_bytes)
{
    struct verbs_send_wr wr = {
        .opcode = opcode,
        .num_sge = 1,
        .sge = {{opcode == VERBS_WR_READ ? c->sink : c->source, len_bytes,
                 verbs_local_key(verbs_of(c))}},
        .remote_addr = addr,
        .rkey = rkey,
    };

    return echo_client_do(c, &wr);
}

static bool has_received(void *ctx)
{
    const struct echo_client *c = ctx;

    return c->received >= c->waits_for || c->state != ECHO_CLIENT_LIVE;
}

bool echo_client_say(struct echo_client *c, const void *where, uint32_t rkey,
                     uint32_t size_bytes)
{
    const struct ping_info info = {
        .addr = hal_dma_addr(where),
        .rkey = rkey,
        .size_bytes = size_bytes,
    };
    uint8_t *message =
        c->messages + (size_t)ECHO_CLIENT_MESSAGES * ECHO_CLIENT_STRIDE;
    unsigned int answers = c->received + 1;

    ping_info_emit(&info, message);
    assert_int_equal(echo_client_send(c, message, PING_INFO_LEN),
                     VERBS_WC_SUCCESS);
    c->waits_for = answers;
    assert_true(run_until(c, has_received));
    return c->received == answers;
}

void echo_client_ping(struct echo_client *c, uint32_t size_bytes, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (uint32_t i = 0; i < size_bytes; i++) {
        x = x * 1664525 + 1013904223;
        c->source[i] = (uint8_t)(x >> 24);
    }
    memset(c->sink, 0xa5, ECHO_PING_MAX);
    assert_true(echo_client_say(c, c->source, c->rkey, size_bytes));
    assert_true(echo_client_say(c, c->sink, c->rkey, size_bytes));
    assert_memory_equal(c->source, c->sink, size_bytes);
    if (size_bytes < ECHO_PING_MAX) {
        assert_int_equal(c->sink[size_bytes], 0xa5);
    }
}
