/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive, used from a Linux host by librdmacm and libibverbs alone: the
 * kernel's connection manager and rdma_rxe on one side, the drive on the other,
 * and no nvme_rdma in between.  Runs in the host guest.
 *
 *   DRIVE_ADDR   address of a port (required)
 *   DRIVE_PORT   service, 4420 when not set
 *   DRIVE_NQN    subsystem to connect to (required)
 *
 * Spec: NVMe over Fabrics 1.1 sections 3.3 (Connect), 3.4-3.5 (Property Get and
 * Set), 7.3 (RDMA).  Offsets are written out here on purpose: nothing of the
 * drive's own headers is used, so the two cannot agree on the same mistake.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum {
    TIMEOUT_MS = 20000,
    ADMIN_DEPTH = 32,
    CONNECT_DATA_LEN = 1024,
    SQE_LEN = 64,
    CQE_LEN = 16,
    KEYED_SGL = 0x40,
    REJ_INVALID_SERVICE_ID = 8,
    REJ_CONSUMER = 28,
};

/* NVMe/RDMA REQ private data, figure "RDMA_CM_REQUEST Private Data". */
struct request {
    uint16_t recfmt, qid, hrqsize, hsqsize, cntlid;
    uint8_t len;
};

struct connection {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_mr *data_mr;
    int status; /* The status of a REJECTED event. */
    uint8_t private_data[256];
    uint8_t private_len;
    uint16_t cid;
    uint8_t sqe[SQE_LEN];
    uint8_t cqe[CQE_LEN];
    uint8_t data[4096];
};

static const struct request admin_request = {
    .hrqsize = ADMIN_DEPTH, .hsqsize = ADMIN_DEPTH - 1, .len = 32};

static const char *wanted_env(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL) {
        fail_msg("%s is not set", name);
    }
    return value;
}

static const char *drive_port(void)
{
    const char *port = getenv("DRIVE_PORT");

    return port != NULL ? port : "4420";
}

static void put_le16(uint8_t *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof(v));
}

static void put_le32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}

static void put_le64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}

static uint16_t get_le16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return le16toh(v);
}

static uint64_t get_le64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* Wait for one CM event, and keep in `c` what tests need of it. */
static enum rdma_cm_event_type next_event(struct connection *c)
{
    struct pollfd fd = {.fd = c->channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    enum rdma_cm_event_type type;

    if (poll(&fd, 1, TIMEOUT_MS) != 1) {
        fail_msg("no CM event within %d ms", TIMEOUT_MS);
    }
    assert_int_equal(rdma_get_cm_event(c->channel, &event), 0);
    type = event->event;
    c->status = event->status;
    c->private_len = event->param.conn.private_data_len;
    if (event->param.conn.private_data != NULL) {
        memcpy(c->private_data, event->param.conn.private_data, c->private_len);
    }
    rdma_ack_cm_event(event);
    return type;
}

static void resolve_drive(struct connection *c, const char *port)
{
    struct addrinfo *to;
    const char *addr = wanted_env("DRIVE_ADDR");

    c->channel = rdma_create_event_channel();
    assert_non_null(c->channel);
    assert_int_equal(rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(getaddrinfo(addr, port, NULL, &to), 0);
    assert_int_equal(rdma_resolve_addr(c->id, NULL, to->ai_addr, 5000), 0);
    freeaddrinfo(to);
    assert_int_equal(next_event(c), RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(c->id, 5000), 0);
    assert_int_equal(next_event(c), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void post_receive(struct connection *c)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)c->cqe, .length = CQE_LEN, .lkey = c->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    assert_int_equal(ibv_post_recv(c->id->qp, &wr, &bad), 0);
}

static void make_qp(struct connection *c)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 8,
                .max_recv_wr = 8,
                .max_send_sge = 1,
                .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };

    c->pd = ibv_alloc_pd(c->id->verbs);
    assert_non_null(c->pd);
    c->cq = ibv_create_cq(c->id->verbs, 32, NULL, NULL, 0);
    assert_non_null(c->cq);
    attr.send_cq = c->cq;
    attr.recv_cq = c->cq;
    assert_int_equal(rdma_create_qp(c->id, c->pd, &attr), 0);
    c->mr = ibv_reg_mr(c->pd, c, sizeof(*c), IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(c->mr);
    c->data_mr = ibv_reg_mr(c->pd, c->data, sizeof(c->data),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(c->data_mr);
}

/* Send a REQ and return the event that answers it. */
static enum rdma_cm_event_type send_req(struct connection *c,
                                        const struct request *request)
{
    uint8_t data[32] = {0};
    struct rdma_conn_param param = {
        .private_data = data,
        .private_data_len = request->len,
        .responder_resources = 16,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .flow_control = 1,
    };

    put_le16(data + 0, request->recfmt);
    put_le16(data + 2, request->qid);
    put_le16(data + 4, request->hrqsize);
    put_le16(data + 6, request->hsqsize);
    put_le16(data + 8, request->cntlid);
    assert_int_equal(rdma_connect(c->id, &param), 0);
    return next_event(c);
}

static void open_connection(struct connection *c)
{
    resolve_drive(c, drive_port());
    make_qp(c);
    post_receive(c);
    assert_int_equal(send_req(c, &admin_request), RDMA_CM_EVENT_ESTABLISHED);
}

static void close_connection(struct connection *c)
{
    if (c->mr != NULL) {
        ibv_dereg_mr(c->mr);
    }
    if (c->data_mr != NULL) {
        ibv_dereg_mr(c->data_mr);
    }
    if (c->id->qp != NULL) {
        rdma_destroy_qp(c->id);
    }
    if (c->cq != NULL) {
        ibv_destroy_cq(c->cq);
    }
    if (c->pd != NULL) {
        ibv_dealloc_pd(c->pd);
    }
    rdma_destroy_id(c->id);
    rdma_destroy_event_channel(c->channel);
    free(c);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct connection));
    return *state == NULL;
}

static int teardown(void **state)
{
    close_connection(*state);
    return 0;
}

/* Poll until `wanted` work completions arrived, each of them a success. */
static void wait_completions(struct connection *c, int wanted)
{
    struct ibv_wc wc;
    uint64_t polls = 0;

    while (wanted > 0) {
        int n = ibv_poll_cq(c->cq, 1, &wc);

        assert_true(n >= 0);
        if (n == 0) {
            if (++polls > 20000) {
                fail_msg("no work completion arrived");
            }
            poll(NULL, 0, 1);
            continue;
        }
        if (wc.status != IBV_WC_SUCCESS) {
            fail_msg("work completion failed: %s",
                     ibv_wc_status_str(wc.status));
        }
        wanted--;
    }
}

/* Send the SQE in c->sqe; return the status field of its CQE, phase removed. */
static uint16_t run_command(struct connection *c)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)c->sqe, .length = SQE_LEN, .lkey = c->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    put_le16(c->sqe + 2, ++c->cid);
    assert_int_equal(ibv_post_send(c->id->qp, &wr, &bad), 0);
    wait_completions(c, 2);
    assert_int_equal(get_le16(c->cqe + 12), c->cid);
    post_receive(c);
    return get_le16(c->cqe + 14) >> 1;
}

static void fabrics_command(struct connection *c, uint8_t fctype)
{
    memset(c->sqe, 0, SQE_LEN);
    c->sqe[0] = 0x7f;
    c->sqe[1] = 0x40;
    c->sqe[4] = fctype;
}

static void keyed_sgl(struct connection *c, uint32_t len, uint8_t type)
{
    put_le64(c->sqe + 24, (uintptr_t)c->data);
    put_le32(c->sqe + 32, len);
    put_le32(c->sqe + 35, c->data_mr->rkey);
    c->sqe[39] = type;
}

static uint16_t connect_admin(struct connection *c, const char *nqn)
{
    fabrics_command(c, 1);
    keyed_sgl(c, CONNECT_DATA_LEN, KEYED_SGL);
    put_le16(c->sqe + 44, ADMIN_DEPTH - 1);
    memset(c->data, 0, sizeof(c->data));
    memset(c->data, 0x5a, 16);      /* HOSTID */
    put_le16(c->data + 16, 0xffff); /* CNTLID: any */
    snprintf((char *)c->data + 256, 256, "%s", nqn);
    snprintf((char *)c->data + 512, 256,
             "nqn.2014-08.org.nvmexpress:uuid:"
             "5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a");
    return run_command(c);
}

static uint16_t property_get(struct connection *c, uint32_t offset, bool eight)
{
    fabrics_command(c, 4);
    c->sqe[40] = eight;
    put_le32(c->sqe + 44, offset);
    return run_command(c);
}

static uint16_t property_set(struct connection *c, uint32_t offset,
                             uint32_t value)
{
    fabrics_command(c, 0);
    put_le32(c->sqe + 44, offset);
    put_le64(c->sqe + 48, value);
    return run_command(c);
}

static void test_accept_carries_the_drives_queue_size(void **state)
{
    struct connection *c = *state;

    open_connection(c);
    assert_true(c->private_len >= 32);
    assert_int_equal(get_le16(c->private_data), 0);
    assert_true(get_le16(c->private_data + 2) >= ADMIN_DEPTH);
}

static void test_an_unknown_service_is_rejected_at_once(void **state)
{
    struct connection *c = *state;

    resolve_drive(c, "4421");
    make_qp(c);
    assert_int_equal(send_req(c, &admin_request), RDMA_CM_EVENT_REJECTED);
    assert_int_equal(c->status, REJ_INVALID_SERVICE_ID);
}

static void expect_reject(struct connection *c, struct request request,
                          uint16_t sts)
{
    resolve_drive(c, drive_port());
    make_qp(c);
    assert_int_equal(send_req(c, &request), RDMA_CM_EVENT_REJECTED);
    assert_int_equal(c->status, REJ_CONSUMER);
    assert_true(c->private_len >= 4);
    assert_int_equal(get_le16(c->private_data + 0), 0);
    assert_int_equal(get_le16(c->private_data + 2), sts);
}

static void test_a_wrong_record_format_is_rejected(void **state)
{
    struct request request = admin_request;

    request.recfmt = 1;
    expect_reject(*state, request, 2);
}

static void test_an_admin_queue_that_is_too_deep_is_rejected(void **state)
{
    struct request request = admin_request;

    request.hsqsize = 4095;
    expect_reject(*state, request, 4);
}

static void test_an_io_queue_that_is_too_deep_is_rejected(void **state)
{
    struct request request = admin_request;

    request.qid = 1;
    request.hsqsize = 64; /* A 0's based value: 65 entries. */
    request.hrqsize = 65;
    expect_reject(*state, request, 4);
}

static void test_connect_then_enable_then_identify(void **state)
{
    struct connection *c = *state;
    uint16_t cntlid;

    open_connection(c);
    assert_int_equal(connect_admin(c, wanted_env("DRIVE_NQN")), 0);
    cntlid = get_le16(c->cqe);
    assert_in_range(cntlid, 1, 0xffef);

    assert_int_equal(property_get(c, 0x00, true), 0);
    assert_int_equal(get_le64(c->cqe) & 0xffff, 63);        /* MQES */
    assert_int_equal(property_set(c, 0x14, 0x00460001), 0); /* CC.EN */
    assert_int_equal(property_get(c, 0x1c, false), 0);
    assert_int_equal(c->cqe[0] & 1, 1); /* CSTS.RDY */

    memset(c->sqe, 0, SQE_LEN);
    c->sqe[0] = 0x06;
    c->sqe[1] = 0x40;
    keyed_sgl(c, 4096, KEYED_SGL);
    put_le32(c->sqe + 40, 1); /* CNS 01h */
    memset(c->data, 0xee, sizeof(c->data));
    assert_int_equal(run_command(c), 0);
    assert_int_equal(get_le16(c->data + 78), cntlid);
    assert_string_equal((char *)c->data + 768, wanted_env("DRIVE_NQN"));

    assert_int_equal(rdma_disconnect(c->id), 0);
    assert_int_equal(next_event(c), RDMA_CM_EVENT_DISCONNECTED);
}

static void test_connect_to_another_nqn_returns_the_offset_of_the_mistake(
    void **state)
{
    struct connection *c = *state;

    open_connection(c);
    assert_int_equal(
        connect_admin(c, "nqn.2014-08.org.example:nothing") & 0x7ff, 0x182);
    assert_int_equal(get_le16(c->cqe), 256); /* IPO: SUBNQN */
    assert_int_equal(c->cqe[2] & 1, 1);      /* in the data */
}

static void test_identify_before_connect_is_a_sequence_error(void **state)
{
    struct connection *c = *state;

    open_connection(c);
    memset(c->sqe, 0, SQE_LEN);
    c->sqe[0] = 0x06;
    c->sqe[1] = 0x40;
    keyed_sgl(c, 4096, KEYED_SGL);
    put_le32(c->sqe + 40, 1);
    assert_int_equal(run_command(c) & 0x7ff, 0x00c);
}

/*
 * An Identify into a region that does not exist: rxe refuses the drive's WRITE,
 * and the drive must give the connection up rather than go on or hang.
 */
static void test_a_key_without_a_region_ends_the_connection(void **state)
{
    struct connection *c = *state;
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND},
                       *bad;

    open_connection(c);
    assert_int_equal(connect_admin(c, wanted_env("DRIVE_NQN")), 0);
    assert_int_equal(property_set(c, 0x14, 0x00460001), 0);
    memset(c->sqe, 0, SQE_LEN);
    c->sqe[0] = 0x06;
    c->sqe[1] = 0x40;
    keyed_sgl(c, 4096, KEYED_SGL);
    put_le32(c->sqe + 35, c->data_mr->rkey ^ 0x00ffff00);
    put_le32(c->sqe + 40, 1);
    memset(c->data, 0xee, sizeof(c->data));
    sge = (struct ibv_sge){
        .addr = (uintptr_t)c->sqe, .length = SQE_LEN, .lkey = c->mr->lkey};
    assert_int_equal(ibv_post_send(c->id->qp, &wr, &bad), 0);
    assert_int_equal(next_event(c), RDMA_CM_EVENT_DISCONNECTED);
    for (size_t i = 0; i < sizeof(c->data); i++) {
        assert_int_equal(c->data[i], 0xee);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_accept_carries_the_drives_queue_size),
        TEST(test_an_unknown_service_is_rejected_at_once),
        TEST(test_a_wrong_record_format_is_rejected),
        TEST(test_an_admin_queue_that_is_too_deep_is_rejected),
        TEST(test_an_io_queue_that_is_too_deep_is_rejected),
        TEST(test_connect_then_enable_then_identify),
        TEST(test_connect_to_another_nqn_returns_the_offset_of_the_mistake),
        TEST(test_identify_before_connect_is_a_sequence_error),
        TEST(test_a_key_without_a_region_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
