/* SPDX-License-Identifier: BSD-2-Clause */
/* net/cm behind the seam of net/verbs/rdma_cm.h. */
#include "cm_test.h"

#include "net/cm/cm_rdma.h"
#include "tests/test_fixture.h"

enum {
    MSG = 24, /* length of a MAD's header */
    QPN = 0x42,
    PORT = 4420, /* service port of linux_req */
};

/* A user of the seam, which logs its events. */
struct user {
    struct side *side;
    struct rdma_cm cm;
    struct rdma_cm_conn *conn;
    struct rdma_cm_request request;
    uint8_t private_data[RDMA_CM_PRIVATE_MAX];
    unsigned int requests, establishments, ends;
};

/* The log of start_qp()'s calls of verbs. */
static struct {
    unsigned int count;
    enum verbs_qp_state states[4];
    struct verbs_qp_attr attr;
    enum verbs_qp_state refuse; /* state that is refused; RESET for none */
} modified;

bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    (void)verbs;
    assert_int_equal(qpn, QPN);
    assert_in_range(modified.count, 0, ARRAY_LEN(modified.states) - 1);
    modified.states[modified.count++] = next;
    modified.attr = *attr;
    return next != modified.refuse;
}

static void on_request(void *ctx, struct rdma_cm_conn *conn,
                       const struct rdma_cm_request *request)
{
    struct user *user = ctx;

    user->requests++;
    user->conn = conn;
    user->request = *request;
    assert_int_equal(request->private_len, sizeof(user->private_data));
    memcpy(user->private_data, request->private_data, request->private_len);
}

static void on_established(void *ctx, struct rdma_cm_conn *conn)
{
    struct user *user = ctx;

    assert_ptr_equal(conn, user->conn);
    user->establishments++;
}

static void on_disconnected(void *ctx, struct rdma_cm_conn *conn)
{
    struct user *user = ctx;

    assert_ptr_equal(conn, user->conn);
    user->ends++;
}

static const struct rdma_cm_events events = {
    .request = on_request,
    .established = on_established,
    .disconnected = on_disconnected,
};

static int setup(void **state)
{
    struct user *user = calloc(1, sizeof(*user));

    memset(&modified, 0, sizeof(modified));
    user->side = side_new(2, 7);
    user->side->cm.listeners[0] = (struct cm_listener){0}; /* side_new()'s */
    user->cm = cm_rdma(&user->side->cm);
    assert_true(user->cm.ops->listen(user->cm.cm, PORT, &events, user));
    *state = user;
    return 0;
}

static int teardown(void **state)
{
    struct user *user = *state;

    side_free(user->side);
    free(user);
    return 0;
}

static void send_req(struct user *user)
{
    side_input(user->side, 1, linux_req, MAD_LEN);
    assert_int_equal(user->requests, 1);
}

static void accept_req(struct user *user)
{
    send_req(user);
    assert_true(user->conn->ops->start_qp(user->conn, QPN, 0, 0));
    user->conn->ops->accept(user->conn, QPN, "yes", 3);
    side_sent(user->side, CM_REP);
}

static void test_a_request_has_the_fields_that_the_user_needs(void **state)
{
    struct user *user = *state;
    const struct ip_addr host = ip_addr_from_v4(0x0a000001);

    send_req(user);
    assert_memory_equal(user->request.peer.bytes, host.bytes, 16);
    assert_int_equal(user->request.laddr, 3);
    assert_int_equal(user->request.max_rd_atomic, 128);
    assert_int_equal(user->request.max_dest_rd_atomic, 0);
    assert_memory_equal(user->private_data, "\0\0\x01\0\x40\0\x3f\0\x01\0\0\0",
                        12);
    /* Without an answer before, this refuses the request. */
    user->conn->ops->disconnect(user->conn);
    side_sent(user->side, CM_REJ);
}

static void test_a_qp_is_started_with_the_path_to_the_peer(void **state)
{
    struct user *user = *state;
    struct cm_rep rep;

    send_req(user);
    assert_true(user->conn->ops->start_qp(user->conn, QPN,
                                          VERBS_ACCESS_REMOTE_READ, 5));
    assert_int_equal(modified.count, 2);
    assert_int_equal(modified.states[0], VERBS_QPS_RTR);
    assert_int_equal(modified.states[1], VERBS_QPS_RTS);
    assert_int_equal(modified.attr.laddr, 3);
    assert_int_equal(modified.attr.neigh, 1);
    assert_int_equal(modified.attr.dest_qpn, 0x11);
    assert_int_equal(modified.attr.access, VERBS_ACCESS_REMOTE_READ);
    assert_int_equal(modified.attr.max_dest_rd_atomic, 5);
    assert_int_equal(modified.attr.max_rd_atomic, 16);
    user->conn->ops->accept(user->conn, QPN, "yes", 3);
    assert_true(
        cm_rep_parse(&rep, side_sent(user->side, CM_REP) + MSG, MAD_DATA_LEN));
    assert_int_equal(rep.local_qpn, QPN);
    assert_int_equal(rep.responder_resources, 5);
    assert_memory_equal(rep.private_data, "yes", 3);
}

static void test_a_qp_that_does_not_start_is_reported(void **state)
{
    static const enum verbs_qp_state states[] = {VERBS_QPS_RTR, VERBS_QPS_RTS};
    struct user *user = *state;

    send_req(user);
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        modified.count = 0;
        modified.refuse = states[i];
        assert_false(user->conn->ops->start_qp(user->conn, QPN, 0, 0));
        assert_int_equal(modified.count, i + 1);
    }
    user->conn->ops->reject(user->conn, RDMA_CM_REJECT_NO_RESOURCES, NULL, 0);
    side_sent(user->side, CM_REJ);
}

static void test_each_refusal_has_its_reason(void **state)
{
    static const struct {
        enum rdma_cm_reject reject;
        uint16_t reason;
    } rows[] = {
        {RDMA_CM_REJECT_USER, 28},
        {RDMA_CM_REJECT_NO_SERVICE, 8},
        {RDMA_CM_REJECT_NO_RESOURCES, 3},
    };
    struct user *user = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const uint8_t *mad;

        user->requests = 0;
        send_req(user);
        user->conn->ops->reject(user->conn, rows[i].reject, "no", 2);
        mad = side_sent(user->side, CM_REJ);
        assert_int_equal(get_be16(mad + MSG + CM_REJ_REASON), rows[i].reason);
    }
}

static void test_data_confirms_the_connection(void **state)
{
    struct user *user = *state;

    accept_req(user);
    assert_int_equal(user->establishments, 0);
    user->conn->ops->data_received(user->conn);
    user->conn->ops->data_received(user->conn);
    assert_int_equal(user->establishments, 1);
    user->conn->ops->disconnect(user->conn);
    side_sent(user->side, CM_DREQ);
    assert_int_equal(user->ends, 0); /* no event follows disconnect() */
}

static void test_an_acknowledgement_proves_the_path_to_the_peer(void **state)
{
    struct user *user = *state;
    struct cm *cm = &user->side->cm;

    accept_req(user);
    user->conn->ops->data_received(user->conn);
    assert_true(cm_is_reached(cm, 1));
    cm_poll(cm, cm->now_us + CM_REACHED_US);
    assert_false(cm_is_reached(cm, 1));
    user->conn->ops->data_acknowledged(user->conn);
    assert_true(cm_is_reached(cm, 1));
    user->conn->ops->disconnect(user->conn);
    side_sent(user->side, CM_DREQ);
}

static void test_a_silent_peer_is_reported_as_disconnected(void **state)
{
    struct user *user = *state;
    uint64_t now_us = 0;

    accept_req(user);
    while (user->ends == 0 && now_us < UINT64_C(600000000)) {
        now_us += 1000000;
        cm_poll(&user->side->cm, now_us);
    }
    assert_int_equal(user->ends, 1);
    user->conn->ops->disconnect(user->conn);
}

static void test_a_port_has_at_most_one_listener(void **state)
{
    struct user *user = *state;
    const struct rdma_cm *cm = &user->cm;

    assert_false(cm->ops->listen(cm->cm, PORT, &events, user));
    for (uint16_t i = 1; i < CM_LISTENERS; i++) {
        assert_true(
            cm->ops->listen(cm->cm, (uint16_t)(PORT + i), &events, user));
    }
    assert_false(cm->ops->listen(cm->cm, 7000, &events, user));
}

TEST_FIXTURE(setup, teardown)
