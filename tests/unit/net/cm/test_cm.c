/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchanges with a stock host: golden messages, refusals, stale connections. */
#include "tests/unit/net/cm/cm_test.h"

#include "lib/bytes.h"
#include "net/cm/cm_internal.h"
#include "net/wire/ib_time.h"

enum {
    MSG = MAD_HEADER_LEN,
    TIMEOUT_US = 4294968,
    SHORT_TIMEOUT = 16,
    SHORT_TIMEOUT_US = 268436,
    LIMIT_US = 10000000,   /* for an answer of the peer */
    ACK_WAIT_US = 1073742, /* 4.096 us << 18: length of TIMEWAIT */
};

static void expect_rej(struct side *side, uint16_t reason,
                       enum cm_answered answered)
{
    const uint8_t *mad = side_sent(side, CM_REJ);

    assert_int_equal(get_be64(mad + MAD_TRANSACTION_ID), 0x111223344);
    assert_int_equal(get_be32(mad + MSG + CM_REJ_REMOTE_COMM_ID), 0xc0ffee01);
    assert_int_equal(get_be16(mad + MSG + CM_REJ_REASON), reason);
    assert_int_equal(mad[MSG + CM_REJ_MESSAGE] >> 6, answered);
}

static void send_req(struct side *side)
{
    side_input(side, 1, linux_req, MAD_LEN);
}

/* Send the REQ with `len` of its bytes replaced. */
static void send_changed(struct side *side, size_t offset, const void *bytes,
                         size_t len)
{
    uint8_t mad[MAD_LEN];

    memcpy(mad, linux_req, MAD_LEN);
    memcpy(mad + offset, bytes, len);
    side_input(side, 1, mad, MAD_LEN);
}

/* Send the REQ of a peer that answers sooner: 16 times the time-out are less
 * than the drive's limit. */
static void send_quick_req(struct side *side)
{
    send_changed(side, MSG + CM_REQ_LOCAL_TIMEOUT,
                 &(uint8_t){SHORT_TIMEOUT << 3 | 7}, 1);
}

static void send_simple(struct side *side, enum cm_attribute attribute,
                        uint32_t from_id, uint32_t to_id, uint32_t qpn)
{
    uint8_t mad[MAD_LEN] = {1, 7, 2, 3, [17] = (uint8_t)attribute};

    mad[15] = 0x5a; /* transaction */
    put_be32(mad + MSG, from_id);
    put_be32(mad + MSG + 4, to_id);
    put_be24(mad + MSG + 8, qpn);
    side_input(side, 1, mad, MAD_LEN);
}

static struct side *established_side(void)
{
    struct side *side = side_new(2, 7);

    send_req(side);
    side_sent(side, CM_REP);
    send_simple(side, CM_RTU, 0xc0ffee01, side->conn->local_comm_id, 0);
    assert_int_equal(side->establishments, 1);
    return side;
}

/* ---- Golden messages */

static void test_ops_request_has_the_fields_of_the_req(void **state)
{
    struct side *side = side_new(2, 7);
    struct verbs_qp_attr attr;

    (void)state;
    side->answer = ANSWER_LATER;
    send_req(side);
    side_sent_nothing(side);
    assert_int_equal(side->requests, 1);
    assert_int_equal(ip_addr_to_v4(&side->request.peer_ip), 0x0a000001);
    assert_int_equal(ip_addr_to_v4(&side->request.local_ip), 0x0a000002);
    assert_int_equal(side->request.peer_port, 0xd431);
    assert_int_equal(side->request.laddr, 3);
    assert_int_equal(side->request.path_mtu, IB_MTU_4096);
    assert_int_equal(side->request.responder_resources, 128);
    assert_int_equal(side->request.initiator_depth, 0);
    assert_int_equal(side->request.peer_ca_guid, 0x505400fffe123456);
    assert_memory_equal(side->private_data, "\0\0\x01\0\x40\0\x3f\0\x01\0\0\0",
                        12);

    cm_qp_attr(side->conn, &attr);
    assert_int_equal(attr.laddr, 3);
    assert_int_equal(attr.neigh, 1);
    assert_int_equal(attr.path_mtu, 5);
    assert_int_equal(attr.dest_qpn, 0x11);
    /* The REQ has our first PSN (IBTA Vol 1 section 12.7.36).  Linux agrees: it
     * sends its first packet with the PSN of our REP. */
    assert_int_equal(attr.sq_psn, 0xabcdef);
    assert_int_equal(attr.rq_psn, side->conn->local_psn);
    assert_int_equal(attr.ack_timeout, 17);
    assert_int_equal(attr.retries, 7);
    assert_int_equal(attr.rnr_retries, 7);
    assert_int_equal(attr.max_rd_atomic, 16); /* our limit; the host's is 128 */
    assert_int_equal(attr.max_dest_rd_atomic, 0); /* the host issues no READs */
    assert_int_equal(attr.access, 0);
    assert_int_equal(attr.dscp, 26);
    assert_in_range(attr.udp_sport, 0xc000, 0xffff);
    side_free(side);
}

/* One service may serve READs while others serve none. */
static void test_a_user_may_allow_the_peers_reads(void **state)
{
    struct side *side = side_new(2, 7);
    struct verbs_qp_attr attr;
    struct cm_rep rep;

    (void)state;
    side->answer = ANSWER_LATER;
    send_req(side);
    cm_serve_reads(side->conn, 5);
    cm_qp_attr(side->conn, &attr);
    assert_int_equal(attr.max_dest_rd_atomic, 5);
    cm_accept(side->conn, 0x42, NULL, 0);
    assert_true(
        cm_rep_parse(&rep, side_sent(side, CM_REP) + MSG, MAD_DATA_LEN));
    assert_int_equal(rep.responder_resources, 5);
    side_free(side);
}

static void test_the_rep_has_the_golden_bytes(void **state)
{
    struct side *side = side_new(2, 7);
    const struct fake_mad *sent;
    uint8_t expected[MAD_LEN] = {
        /* clang-format off */
        0x01, 0x07, 0x02, 0x03, 0, 0, 0, 0,
        0x00, 0x00, 0x00, 0x01, 0x11, 0x22, 0x33, 0x44, /* the REQ's */
        0x00, 0x13, 0, 0, 0, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, /* 0: ours, below */
        0xc0, 0xff, 0xee, 0x01, /* 4: the host's */
        0, 0, 0, 0,             /* 8: Q_Key */
        0x02, 0xa0, 0x02, 0,    /* 12: QPN */
        0, 0, 0, 0,             /* 16: EECN */
        0xff, 0xff, 0xff, 0,    /* 20: starting PSN, below */
        0, 16,                  /* 24: responder resources, initiator depth */
        0x7b,                   /* 26: ACK delay 15, no failover, flow control */
        0xe0,                   /* 27: RNR retry 7, no SRQ */
        0, 0, 0, 0, 0, 0, 0x10, 0x02, /* 28: CA GUID */
        'R', 'E', 'P', ' ', 'd', 'a', 't', 'a',
        /* clang-format on */
    };

    (void)state;
    send_req(side);
    sent = fake_take(&side->verbs);
    assert_non_null(sent);
    put_be32(expected + MSG, side->conn->local_comm_id);
    put_be24(expected + MSG + 20, side->conn->local_psn);
    assert_memory_equal(sent->bytes, expected, MAD_LEN);
    assert_int_equal(sent->neigh, 1);
    assert_int_equal(sent->laddr, 3);
    side_free(side);
}

static void test_our_req_has_the_fields_that_linux_reads(void **state)
{
    struct side *side = side_new(2, 7);
    struct cm_connect_param param = side_param(side, 2, 1);
    struct rdma_ip_cm ip_cm;
    const uint8_t *mad;
    struct cm_req req;

    (void)state;
    assert_non_null(cm_connect(&side->cm, &param));
    mad = side_sent(side, CM_REQ);
    assert_int_equal(get_be64(mad + MAD_TRANSACTION_ID), 0x700000001);
    assert_true(cm_req_parse(&req, mad + MSG, MAD_DATA_LEN));
    assert_int_equal(req.service_id, 0x1061144);
    assert_int_equal(req.local_ca_guid, 0x1002);
    assert_int_equal(req.local_qpn, 0x2a002);
    assert_int_equal(req.transport_service_type, CM_TRANSPORT_RC);
    assert_int_equal(req.path_mtu, IB_MTU_1024);
    assert_int_equal(req.local_ack_timeout, 17);
    assert_int_equal(req.retry_count, 7);
    assert_int_equal(req.rnr_retry_count, 7);
    assert_int_equal(req.initiator_depth, 16);
    assert_int_equal(req.responder_resources, 4);
    assert_int_equal(req.pkey, 0xffff);
    assert_int_equal(ip_addr_to_v4(&req.local_gid), 0x0a000002);
    assert_int_equal(ip_addr_to_v4(&req.remote_gid), 0x0a000001);
    assert_true(rdma_ip_cm_parse(&ip_cm, req.private_data, req.private_len));
    assert_int_equal(ip_addr_to_v4(&ip_cm.dst), 0x0a000001);
    assert_int_equal(ip_cm.src_port, 0xd431);
    assert_memory_equal(req.private_data + 36, "REQ data", 8);
    side_free(side);
}

static void expect_marked(struct side *side, enum cm_attribute attribute,
                          uint8_t priority, uint8_t dscp)
{
    const struct fake_mad *sent = fake_take(&side->verbs);

    assert_non_null(sent);
    assert_int_equal(get_be16(sent->bytes + MAD_ATTRIBUTE_ID), attribute);
    assert_int_equal(sent->priority, priority);
    assert_int_equal(sent->dscp, dscp);
}

/* A connection's messages have the same priority and DSCP as its data. */
static void test_messages_have_the_priority_and_dscp_of_the_data(void **state)
{
    struct side *side = side_new(2, 7);
    struct cm_connect_param param = side_param(side, 2, 1);
    struct verbs_qp_attr attr;
    struct cm_req req;

    (void)state;
    side->paths.priority = 5;
    send_req(side); /* its traffic class is 68h */
    expect_marked(side, CM_REP, 5, 26);
    cm_qp_attr(side->conn, &attr);
    assert_int_equal(attr.priority, 5);
    assert_int_equal(attr.dscp, 26);
    send_simple(side, CM_DREQ, 0xc0ffee01, side->conn->local_comm_id,
                side->conn->local_qpn);
    expect_marked(side, CM_DREP, 5, 26);
    send_simple(side, CM_DREQ, 1, 2, 3);
    expect_marked(side, CM_DREP, 5, 0); /* no connection, so no traffic class */
    send_changed(side, MSG + 15, "\x99", 1);
    expect_marked(side, CM_REJ, 5, 26);

    param.path.priority = 3;
    param.path.dscp = 46;
    assert_non_null(cm_connect(&side->cm, &param));
    assert_true(cm_req_parse(
        &req, side->verbs.sent[side->verbs.sent_get % FAKE_SENT].bytes + MSG,
        MAD_DATA_LEN));
    assert_int_equal(req.traffic_class, 46 << 2);
    assert_int_equal(req.sl, 3);
    expect_marked(side, CM_REQ, 3, 46);
    side_free(side);
}

/* ---- Refusals */

static void test_each_invalid_field_of_a_req_has_its_reject_reason(void **state)
{
    static const struct {
        size_t at;
        uint8_t byte;
        uint16_t reason;
    } wrong[] = {
        {MSG + 8, 1, CM_REJ_INVALID_SERVICE_ID},
        {MSG + 15, 0x45, CM_REJ_INVALID_SERVICE_ID},
        {MSG + 43, 0xa3, CM_REJ_INVALID_TRANSPORT_TYPE}, /* UC */
        {MSG + 71, 7, CM_REJ_INVALID_GID},
        {MSG + 87, 7, CM_REJ_INVALID_GID},
        {MSG + 50, 0x07, CM_REJ_INVALID_MTU},
        {MSG + 50, 0x67, CM_REJ_INVALID_MTU},
        {MSG + 50, 0xf7, CM_REJ_INVALID_MTU},
        {MSG + 34, 1, CM_REJ_UNSUPPORTED_REQUEST},     /* QPN 1 */
        {MSG + 34, 0, CM_REJ_UNSUPPORTED_REQUEST},     /* QPN 0 */
        {MSG + 49, 0xfe, CM_REJ_UNSUPPORTED_REQUEST},  /* P_Key */
        {MSG + 140, 0x10, CM_REJ_UNSUPPORTED_REQUEST}, /* IP CM version */
        {MSG + 141, 0x50, CM_REJ_UNSUPPORTED_REQUEST}, /* IP version 5 */
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(wrong); i++) {
        struct side *side = side_new(2, 7);

        send_changed(side, wrong[i].at, &wrong[i].byte, 1);
        expect_rej(side, wrong[i].reason, CM_ANSWERS_REQ);
        side_sent_nothing(side);
        assert_int_equal(side->requests, 0);
        assert_int_equal(side_pins(side), 0);
        side_free(side);
    }
}

static void test_an_mtu_that_is_too_large_is_rejected_with_ours(void **state)
{
    struct side *side = side_new(2, 7);
    const uint8_t *mad;

    (void)state;
    side->paths.mtu = IB_MTU_1024;
    send_req(side);
    mad = side_sent(side, CM_REJ);
    assert_int_equal(get_be16(mad + MSG + CM_REJ_REASON), CM_REJ_INVALID_MTU);
    assert_int_equal(mad[MSG + CM_REJ_INFO_LEN] >> 1, 1);
    assert_int_equal(mad[MSG + CM_REJ_ARI], IB_MTU_1024);
    send_changed(side, MSG + 50, "\x37", 1); /* 1024, the smaller MTU */
    side_sent(side, CM_REP);
    assert_int_equal(side->request.path_mtu, IB_MTU_1024);
    side_free(side);
}

static void test_a_rej_carries_the_users_private_data(void **state)
{
    struct side *side = side_new(2, 7);
    const uint8_t *mad;

    (void)state;
    side->answer = ANSWER_REJECT;
    for (unsigned int i = 0; i < 3000; i++) { /* more than the pool has */
        send_req(side);
        mad = side_sent(side, CM_REJ);
        assert_int_equal(get_be16(mad + MSG + CM_REJ_REASON), CM_REJ_CONSUMER);
        assert_memory_equal(mad + MSG + CM_REJ_PRIVATE, "\0\0\6\0", 4);
        side_sent_nothing(side);
    }
    assert_int_equal(side_pins(side), 0);
    side_free(side);
}

static void test_every_truncated_message_is_dropped(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    for (uint32_t len = 0; len < MAD_LEN; len++) {
        side_input(side, 1, linux_req, len);
        side_sent_nothing(side);
    }
    assert_int_equal(side->requests, 0);
    assert_int_equal(side->cm.counters.bad_mad, MAD_LEN);
    send_req(side);
    side_sent(side, CM_REP);
    side_free(side);
}

static void test_other_classes_and_attributes_are_dropped(void **state)
{
    static const struct {
        uint8_t at, byte;
    } wrong[] = {{1, 3},  {2, 1},     {2, 3},     {3, 1},     {3, 0x83}, {0, 2},
                 {16, 1}, {17, 0x0f}, {17, 0x17}, {17, 0x19}, {17, 0xff}};
    struct side *side = side_new(2, 7);
    const struct cm_counters *c = &side->cm.counters;

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(wrong); i++) {
        send_changed(side, wrong[i].at, &wrong[i].byte, 1);
        side_sent_nothing(side);
    }
    assert_int_equal(c->bad_class, 5);
    assert_int_equal(c->bad_mad, 1);
    assert_int_equal(c->bad_attribute, 5);
    assert_int_equal(side->requests, 0);
    side_free(side);
}

static void test_random_messages_do_no_harm(void **state)
{
    struct side *side = side_new(2, 7);
    uint64_t random = 1;

    (void)state;
    for (unsigned int n = 0; n < 60000; n++) {
        uint8_t mad[MAD_LEN];

        memcpy(mad, linux_req, MAD_LEN);
        for (unsigned int i = 0; i < 4; i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            mad[random >> 40 & 0xff] = (uint8_t)(random >> 33);
        }
        memcpy(mad, linux_req, 16);
        mad[17] = (uint8_t)(CM_REQ + (random >> 50) % 7);
        put_be32(mad + MSG + 4 * (random >> 60 & 1),
                 side->cm.conns[random >> 53 & 0x7ff].local_comm_id);
        side_input(side, 1, mad, MAD_LEN);
        fake_complete(&side->verbs);
        cm_poll(&side->cm, side->cm.now_us + 5000);
    }
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        struct cm_conn *conn = &side->cm.conns[i];

        if (conn->state != CM_CONN_FREE && !conn->is_released) {
            cm_release(conn);
        }
    }
    for (unsigned int i = 0; i < 100; i++) {
        cm_poll(&side->cm, side->cm.now_us + 80000000);
        fake_complete(&side->verbs);
    }
    assert_int_equal(side_pins(side), 0);
    assert_int_equal(side->cm.heap_len, 0);
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        assert_int_equal(side->cm.conns[i].state, CM_CONN_FREE);
        assert_int_equal(side->cm.by_id[i], 0xffff);
        assert_int_equal(side->cm.by_qpn[i], 0xffff);
    }
    side_free(side);
}

/* ---- Duplicates and retransmission */

static void test_a_repeated_req_gets_the_same_rep(void **state)
{
    struct side *side = side_new(2, 7);
    uint8_t first[MAD_LEN];

    (void)state;
    send_req(side);
    memcpy(first, side_sent(side, CM_REP), MAD_LEN);
    for (unsigned int i = 0; i < 5; i++) {
        send_req(side);
        assert_memory_equal(side_sent(side, CM_REP), first, MAD_LEN);
    }
    assert_int_equal(side->requests, 1);
    side_free(side);
}

static void test_a_repeated_req_gets_an_mra_before_the_user_decides(
    void **state)
{
    struct side *side = side_new(2, 7);
    const uint8_t *mad;

    (void)state;
    side->answer = ANSWER_LATER;
    send_req(side);
    send_req(side);
    mad = side_sent(side, CM_MRA);
    assert_int_equal(mad[MSG + CM_MRA_MESSAGE], 0);
    assert_int_equal(mad[MSG + CM_MRA_TIMEOUT] >> 3, 20);
    cm_accept(side->conn, 5, NULL, 0);
    side_sent(side, CM_REP);
    assert_int_equal(side->requests, 1);
    side_free(side);
}

static void test_the_rep_is_sent_16_times_then_given_up(void **state)
{
    struct side *side = side_new(2, 7);
    uint8_t first[MAD_LEN];
    uint64_t now = side->cm.now_us;
    const uint8_t *mad;

    (void)state;
    send_quick_req(side);
    memcpy(first, side_sent(side, CM_REP), MAD_LEN);
    for (unsigned int i = 1; i < 16; i++) {
        cm_poll(&side->cm, now + i * (uint64_t)SHORT_TIMEOUT_US - 1);
        side_sent_nothing(side);
        assert_int_equal(
            cm_poll(&side->cm, now + i * (uint64_t)SHORT_TIMEOUT_US),
            now + (i + 1) * (uint64_t)SHORT_TIMEOUT_US);
        assert_memory_equal(side_sent(side, CM_REP), first, MAD_LEN);
    }
    assert_int_equal(side->ends, 0);
    cm_poll(&side->cm, now + 16 * (uint64_t)SHORT_TIMEOUT_US);
    mad = side_sent(side, CM_REJ);
    assert_int_equal(get_be16(mad + MSG + CM_REJ_REASON), CM_REJ_TIMEOUT);
    assert_int_equal(mad[MSG + CM_REJ_MESSAGE] >> 6, CM_ANSWERS_REP);
    assert_int_equal(get_be64(mad + MSG + CM_REJ_ARI), 0x1002);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_TIMEOUT);
    assert_int_equal(side->cm.counters.retransmits, 15);
    side_free(side);
}

/* Whatever time-outs and retries the peer asks for, the REP is given up after
 * the drive's own limit. */
static void test_the_rep_is_given_up_at_the_drives_own_limit(void **state)
{
    (void)state;
    for (uint8_t code = 18; code < 32; code++) {
        struct side *side = side_new(2, 7);
        uint64_t now = side->cm.now_us;
        uint64_t next = now;

        send_changed(side, MSG + CM_REQ_LOCAL_TIMEOUT,
                     &(uint8_t){(uint8_t)(code << 3 | 7)}, 1);
        while (side->ends == 0) {
            side_sent(side, CM_REP);
            next = side->conn->deadline_us;
            assert_true(next <= now + LIMIT_US);
            cm_poll(&side->cm, next);
        }
        assert_int_equal(next, now + LIMIT_US);
        side_sent(side, CM_REJ);
        assert_int_equal(side->end.reason, CM_END_TIMEOUT);
        side_free(side);
    }
}

/* A peer that asks for microseconds does not make the drive send 16 REPs at
 * once, to an address that may be forged. */
static void test_the_rep_is_not_repeated_at_once(void **state)
{
    (void)state;
    for (uint8_t code = 0; code <= 12; code++) {
        struct side *side = side_new(2, 7);
        uint64_t now = side->cm.now_us;

        send_changed(side, MSG + CM_REQ_LOCAL_TIMEOUT,
                     &(uint8_t){(uint8_t)(code << 3 | 7)}, 1);
        side_sent(side, CM_REP);
        assert_int_equal(side->conn->deadline_us, now + 16778);
        side_free(side);
    }
}

static void send_mra(struct side *side, uint8_t service_timeout)
{
    uint8_t mra[MAD_LEN] = {1, 7, 2, 3, [17] = CM_MRA};

    put_be32(mra + MSG, 0xc0ffee01);
    put_be32(mra + MSG + 4, side->conn->local_comm_id);
    mra[MSG + 8] = 1 << 6;
    mra[MSG + 9] = (uint8_t)(service_timeout << 3);
    side_input(side, 1, mra, MAD_LEN);
}

static void test_an_mra_extends_the_timeout(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    send_quick_req(side);
    side_sent(side, CM_REP);
    send_mra(side, 20);
    cm_poll(&side->cm, side->cm.now_us + TIMEOUT_US + SHORT_TIMEOUT_US - 10);
    side_sent_nothing(side);
    cm_poll(&side->cm, side->cm.now_us + 10);
    side_sent(side, CM_REP);
    side_free(side);
}

/* MRAs that ask for hours, again and again, do not move the drive's limit. */
static void test_mras_do_not_extend_the_drives_own_limit(void **state)
{
    struct side *side = side_new(2, 7);
    uint64_t now = side->cm.now_us;

    (void)state;
    send_req(side);
    side_sent(side, CM_REP);
    for (unsigned int i = 0; i < 9; i++) {
        send_mra(side, 31);
        cm_poll(&side->cm, side->cm.now_us + 1000000);
        side_sent_nothing(side);
    }
    send_mra(side, 31);
    assert_int_equal(side->ends, 0);
    cm_poll(&side->cm, now + LIMIT_US);
    side_sent(side, CM_REJ);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_TIMEOUT);
    side_free(side);
}

/* The RNIC repeats what a peer does not acknowledge for 8.6 s at most: seven
 * retries after a time-out of 1.07 s each.  0 asks for no time-out. */
static void test_the_peers_ack_timeout_has_a_limit(void **state)
{
    (void)state;
    for (uint8_t code = 0; code < 32; code++) {
        struct side *side = side_new(2, 7);
        struct verbs_qp_attr attr;

        send_changed(side, MSG + CM_REQ_ACK_TIMEOUT,
                     &(uint8_t){(uint8_t)(code << 3)}, 1);
        side_sent(side, CM_REP);
        cm_qp_attr(side->conn, &attr);
        assert_int_equal(attr.ack_timeout, code == 0 || code > 18 ? 18 : code);
        assert_true((attr.retries + 1) * ib_time_us(attr.ack_timeout) <=
                    LIMIT_US);
        side_free(side);
    }
}

static void test_data_takes_the_place_of_the_rtu(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    send_req(side);
    side_sent(side, CM_REP);
    cm_data_received(side->conn);
    assert_int_equal(side->establishments, 1);
    send_simple(side, CM_RTU, 0xc0ffee01, side->conn->local_comm_id, 0);
    cm_data_received(side->conn);
    assert_int_equal(side->establishments, 1);
    assert_int_equal(cm_poll(&side->cm, side->cm.now_us + 100000000),
                     CM_NO_DEADLINE);
    side_sent_nothing(side);
    side_free(side);
}

/* ---- Disconnecting */

static void test_an_unknown_dreq_gets_its_drep(void **state)
{
    struct side *side = side_new(2, 7);
    const uint8_t *mad;

    (void)state;
    send_simple(side, CM_DREQ, 0xabcd, 0x1234, 0x777);
    mad = side_sent(side, CM_DREP);
    assert_int_equal(get_be32(mad + MSG), 0x1234);
    assert_int_equal(get_be32(mad + MSG + 4), 0xabcd);
    assert_int_equal(mad[15], 0x5a);
    side_free(side);
}

static void test_a_dreq_for_another_qpn_ends_nothing(void **state)
{
    struct side *side = established_side();
    uint32_t id = side->conn->local_comm_id;

    (void)state;
    send_simple(side, CM_DREQ, 0xc0ffee01, id, 0x2a003);
    side_sent_nothing(side);
    assert_int_equal(side->ends, 0);
    send_simple(side, CM_DREQ, 0xc0ffee02, id, 0x2a002); /* unknown id */
    side_sent(side, CM_DREP);
    assert_int_equal(side->ends, 0);
    send_simple(side, CM_DREQ, 0xc0ffee01, id, 0x2a002);
    side_sent(side, CM_DREP);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_DREQ);
    /* The DREQ is repeated, as if our DREP was lost. */
    send_simple(side, CM_DREQ, 0xc0ffee01, id, 0x2a002);
    side_sent(side, CM_DREP);
    cm_poll(&side->cm, side->cm.now_us + ACK_WAIT_US);
    send_simple(side, CM_DREQ, 0xc0ffee01, id, 0x2a002);
    side_sent(side, CM_DREP);
    assert_int_equal(side_pins(side), 0);
    side_free(side);
}

/* Deliver a message with the peer's address as its source, on another link and
 * to another own address. */
static void give_from_elsewhere(struct side *side, const uint8_t *mad)
{
    struct verbs_ud_info from = side_from(1, 2);

    from.laddr = 4;
    from.vlan = 9;
    from.src_mac[5] = 9;
    assert_true(fake_deliver(&side->verbs, &from, mad, MAD_LEN));
    (void)fake_take(&side->verbs); /* it may be answered */
}

static void test_messages_from_the_peers_address_on_another_link_are_ignored(
    void **state)
{
    struct side *side = established_side();
    uint8_t mad[MAD_LEN] = {1, 7, 2, 3};
    static const uint8_t attributes[] = {CM_REJ, CM_DREQ, CM_DREQ, CM_REJ};

    (void)state;
    put_be32(mad + MSG, 0xc0ffee01);
    put_be32(mad + MSG + 4, side->conn->local_comm_id);
    put_be24(mad + MSG + 8, side->conn->local_qpn);
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        mad[MAD_ATTRIBUTE_ID + 1] = attributes[i];
        if (i == 3) { /* a REJ for a time-out, matched by GUID */
            put_be32(mad + MSG + 4, 0);
            memset(mad + MSG + 8, 0, 8);
            mad[MSG + CM_REJ_INFO_LEN] = 8 << 1;
            mad[MSG + CM_REJ_REASON + 1] = CM_REJ_TIMEOUT;
            memcpy(mad + MSG + CM_REJ_ARI, linux_req + MSG + 16, 8);
        }
        give_from_elsewhere(side, mad);
        assert_int_equal(side->ends, 0);
    }
    memcpy(mad, linux_req, MAD_LEN); /* the same queue pair */
    put_be32(mad + MSG, 0xdeadbeef);
    give_from_elsewhere(side, mad);
    memcpy(mad, linux_req, MAD_LEN); /* the same communication id */
    put_be24(mad + MSG + 32, 0x12);
    give_from_elsewhere(side, mad);
    assert_int_equal(side->ends, 0);
    assert_int_equal(side->requests, 3);
    side_free(side);
}

/* An established connection of a peer that answers soon. */
static struct side *quick_side(void)
{
    struct side *side = side_new(2, 7);

    send_quick_req(side);
    side_sent(side, CM_REP);
    cm_data_received(side->conn);
    return side;
}

static void test_our_dreq_is_repeated_up_to_16_times(void **state)
{
    struct side *side = quick_side();
    const uint8_t *mad;

    (void)state;
    cm_disconnect(side->conn);
    cm_disconnect(side->conn);
    mad = side_sent(side, CM_DREQ);
    assert_int_equal(get_be32(mad + MSG), side->conn->local_comm_id);
    assert_int_equal(get_be32(mad + MSG + 4), 0xc0ffee01);
    assert_int_equal(get_be24(mad + MSG + 8), 0x11);
    assert_int_equal(get_be64(mad + MAD_TRANSACTION_ID), 0x700000001);
    side_sent_nothing(side);
    for (unsigned int i = 1; i < 16; i++) {
        cm_poll(&side->cm, side->cm.now_us + SHORT_TIMEOUT_US);
        side_sent(side, CM_DREQ);
        assert_int_equal(side->ends, 0);
    }
    cm_poll(&side->cm, side->cm.now_us + SHORT_TIMEOUT_US);
    side_sent_nothing(side);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_TIMEOUT);
    side_free(side);
}

static void test_our_dreq_is_given_up_at_the_drives_own_limit(void **state)
{
    struct side *side = established_side();
    uint64_t now = side->cm.now_us;

    (void)state;
    cm_disconnect(side->conn);
    for (unsigned int i = 0; i < 3; i++) {
        side_sent(side, CM_DREQ);
        assert_int_equal(side->ends, 0);
        cm_poll(&side->cm, side->conn->deadline_us);
    }
    side_sent_nothing(side);
    assert_int_equal(side->cm.now_us, now + LIMIT_US);
    assert_int_equal(side->end.reason, CM_END_TIMEOUT);
    side_free(side);
}

/* ---- Stale connections */

static void test_a_req_with_a_live_qpn_tears_the_old_one_down(void **state)
{
    struct side *side = established_side();

    (void)state;
    /* After a reboot the host uses another communication id and the same
     * QPN. */
    send_changed(side, MSG, "\xde\xad\xbe\xef", 4);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_STALE);
    assert_int_equal(side->requests, 2);
    side_sent(side, CM_REP);
    side_sent_nothing(side);
    assert_int_equal(side->cm.counters.stale, 1);
    side_free(side);
}

static void test_a_req_with_a_live_comm_id_tears_the_old_one_down(void **state)
{
    struct side *side = established_side();

    (void)state;
    send_changed(side, MSG + 34, "\x22", 1); /* another QPN */
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->requests, 2);
    side_sent(side, CM_REP);
    /* Repeat it while our own DREQ is unanswered. */
    cm_data_received(side->conn);
    cm_disconnect(side->conn);
    side_sent(side, CM_DREQ);
    send_changed(side, MSG, "\xde\xad\xbe\xef", 4);
    send_changed(side, MSG + 34, "\x33", 1);
    assert_int_equal(side->requests, 4);
    assert_int_equal(side->ends, 2);
    side_free(side);
}

static void test_a_qpn_may_be_reused_during_timewait(void **state)
{
    struct side *side = established_side();
    uint32_t id = side->conn->local_comm_id;

    (void)state;
    send_simple(side, CM_DREQ, 0xc0ffee01, id, 0x2a002);
    side_sent(side, CM_DREP);
    send_changed(side, MSG, "\xde\xad\xbe\xef", 4);
    side_sent(side, CM_REP);
    assert_int_equal(side->cm.counters.stale, 0);
    assert_int_equal(side->ends, 1);
    assert_int_not_equal(side->conn->local_comm_id, id);
    side_free(side);
}

static void test_a_late_copy_of_the_req_is_stale(void **state)
{
    struct side *side = established_side();

    (void)state;
    send_simple(side, CM_DREQ, 0xc0ffee01, side->conn->local_comm_id, 0x2a002);
    side_sent(side, CM_DREP);
    send_req(side);
    expect_rej(side, CM_REJ_STALE_CONNECTION, CM_ANSWERS_REQ);
    assert_int_equal(side->requests, 1);
    cm_poll(&side->cm, side->cm.now_us + ACK_WAIT_US);
    send_req(side);
    side_sent(side, CM_REP);
    side_free(side);
}

static void test_a_stale_rej_ends_the_attempt(void **state)
{
    struct side *side = side_new(2, 7);
    uint8_t rej[MAD_LEN] = {1, 7, 2, 3, [17] = CM_REJ};

    (void)state;
    send_req(side);
    side_sent(side, CM_REP);
    put_be32(rej + MSG, 0xc0ffee01);
    put_be32(rej + MSG + 4, side->conn->local_comm_id);
    rej[MSG + 8] = 1 << 6;
    rej[MSG + 11] = 10;
    side_input(side, 1, rej, MAD_LEN);
    assert_int_equal(side->ends, 1);
    assert_int_equal(side->end.reason, CM_END_REJ);
    assert_int_equal(side->end.rej_reason, 10);
    cm_poll(&side->cm, side->cm.now_us + 100000000);
    side_sent_nothing(side);
    side_free(side);
}

static void test_a_timeout_rej_is_found_by_guid(void **state)
{
    struct side *side = side_new(2, 7);
    uint8_t rej[MAD_LEN] = {1, 7, 2, 3, [17] = CM_REJ};

    (void)state;
    side->answer = ANSWER_LATER;
    send_req(side);
    put_be32(rej + MSG, 0xc0ffee01); /* it never learnt our id */
    rej[MSG + 9] = 8 << 1;
    rej[MSG + 11] = CM_REJ_TIMEOUT;
    put_be64(rej + MSG + CM_REJ_ARI, 0x505400fffe123457);
    side_input(side, 1, rej, MAD_LEN);
    assert_int_equal(side->ends, 0);
    put_be64(rej + MSG + CM_REJ_ARI, 0x505400fffe123456);
    side_input(side, 1, rej, MAD_LEN);
    assert_int_equal(side->ends, 1);
    side_free(side);
}

static void test_communication_ids_of_two_boots_differ(void **state)
{
    uint32_t ids[8], psns[8];

    (void)state;
    for (uint32_t boot = 0; boot < 8; boot++) {
        struct side *side = side_new(2, boot);

        send_req(side);
        ids[boot] = side->conn->local_comm_id;
        psns[boot] = side->conn->local_psn;
        for (uint32_t i = 0; i < boot; i++) {
            assert_int_not_equal(ids[boot], ids[i]);
            assert_int_not_equal(psns[boot], psns[i]);
        }
        side_free(side);
    }
}

/* A random source whose bytes a test chooses. */
static void fill_chosen(void *ctx, uint8_t *buf, size_t len)
{
    const uint64_t *bits = ctx;

    assert_int_equal(len, 8);
    put_le64(buf, *bits);
}

static void test_communication_id_and_psn_are_from_the_random_source(
    void **state)
{
    static const struct {
        uint64_t bits;
        uint32_t id, psn; /* the id without the index of the entry */
    } cases[] = {
        {UINT64_C(0x1234567890abcdef), 0x90abcdef & ~0x7ffu, 0x345678},
        {UINT64_C(0xffffffffffffffff), 0xfffff800, 0xffffff},
        {UINT64_C(0x0000000100000fff), 0x800, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct side *side = side_new(2, 7);
        uint64_t bits = cases[i].bits;

        side->cm.config.random = fill_chosen;
        side->cm.config.random_ctx = &bits;
        send_req(side);
        assert_int_equal(side->conn->local_comm_id & ~0x7ffu, cases[i].id);
        assert_int_equal(side->conn->local_psn, cases[i].psn);
        side_free(side);
    }
}

/* Whatever the source returns, an id is not 0 and not that of the entry's last
 * connection. */
static void test_communication_ids_of_successive_connections_differ(
    void **state)
{
    struct side *side = side_new(2, 7);
    uint64_t bits = 0;
    uint32_t last[CM_CONNS] = {0};

    (void)state;
    side->answer = ANSWER_REJECT;
    side->cm.config.random = fill_chosen;
    side->cm.config.random_ctx = &bits;
    for (uint32_t i = 0; i < 3 * CM_CONNS; i++) {
        uint8_t mad[MAD_LEN];
        uint32_t id;

        memcpy(mad, linux_req, MAD_LEN);
        put_be32(mad + MSG, 100 + i);
        put_be24(mad + MSG + 32, 100 + i);
        side_input(side, 1, mad, MAD_LEN);
        id = get_be32(side_sent(side, CM_REJ) + MSG);
        assert_int_not_equal(id, 0);
        assert_int_not_equal(id, last[id % CM_CONNS]);
        last[id % CM_CONNS] = id;
    }
    side_free(side);
}

/* ---- Pools */

static void fill_one_slot(struct side *side, uint32_t number)
{
    uint8_t mad[MAD_LEN];

    memcpy(mad, linux_req, MAD_LEN);
    put_be32(mad + MSG, number);
    put_be24(mad + MSG + 32, number);
    side_input(side, 1, mad, MAD_LEN);
}

static void test_a_full_pool_is_refused_and_recovers(void **state)
{
    struct side *side = side_new(2, 7);
    uint32_t n = 100;

    (void)state;
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        fill_one_slot(side, n++);
        side_sent(side, CM_REP);
    }
    fill_one_slot(side, n);
    assert_int_equal(get_be16(side_sent(side, CM_REJ) + MSG + CM_REJ_REASON),
                     CM_REJ_NO_RESOURCES);
    assert_int_equal(side->cm.counters.no_conn, 1);
    /* A connection in TIMEWAIT makes room at once. */
    send_simple(side, CM_DREQ, 150, side->cm.conns[50].local_comm_id,
                side->cm.conns[50].local_qpn);
    side_sent(side, CM_DREP);
    assert_int_equal(side->cm.conns[50].state, CM_CONN_TIMEWAIT);
    fill_one_slot(side, n);
    side_sent(side, CM_REP);
    assert_int_equal(side_pins(side), CM_CONNS);
    side_free(side);
}

/* Every peer may name the same identifiers as all others. */
static void test_equal_ids_of_many_peers_do_not_collide(void **state)
{
    struct side *side = side_new(2, 7);
    struct cm *cm = &side->cm;

    (void)state;
    for (uint16_t i = 0; i < CM_CONNS; i++) {
        struct cm_conn *conn = cm_pool_take(cm);

        conn->neigh = i;
        conn->remote_ca_guid = 0x0011223344556677;
        conn->remote_comm_id = 1;
        conn->remote_qpn = 2;
        cm_index_remote(conn);
        assert_ptr_equal(cm_by_remote_id(cm, conn->remote_ca_guid, i, 1), conn);
    }
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        unsigned int by_id = 0, by_qpn = 0;

        for (uint16_t at = cm->by_id[i]; at != CM_NONE;
             at = cm->conns[at].next_by_id) {
            by_id++;
        }
        for (uint16_t at = cm->by_qpn[i]; at != CM_NONE;
             at = cm->conns[at].next_by_qpn) {
            by_qpn++;
        }
        assert_in_range(by_id, 0, 15);
        assert_in_range(by_qpn, 0, 15);
    }
    side_free(side);
}

/* Connections to peers that are gone do not fill the pool, even if their REQs
 * named long time-outs. */
static void test_a_pool_full_of_unanswered_dreqs_has_room(void **state)
{
    struct side *side = side_new(2, 7);
    uint32_t n = 100;

    (void)state;
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        fill_one_slot(side, n++);
        side_sent(side, CM_REP);
        cm_release(side->conn);
        side_sent(side, CM_DREQ);
    }
    assert_int_equal(side->cm.free.head, 0xffff);
    for (unsigned int i = 0; i < 3; i++) {
        fill_one_slot(side, n++);
        side_sent(side, CM_REP);
        assert_ptr_equal(side->conn, &side->cm.conns[i]);
    }
    assert_int_equal(side->cm.counters.no_conn, 0);
    assert_int_equal(side_pins(side), CM_CONNS);
    /* A DREP removes one from the middle of the list. */
    send_simple(side, CM_DREP, 150, side->cm.conns[50].local_comm_id, 0);
    assert_int_equal(side->cm.conns[50].state, CM_CONN_TIMEWAIT);
    fill_one_slot(side, n++);
    side_sent(side, CM_REP);
    assert_ptr_equal(side->conn, &side->cm.conns[50]);
    side_free(side);
}

static void test_timewait_depends_on_the_ack_timeout(void **state)
{
    struct side *side = side_new(2, 7);
    unsigned int free_count = 0;

    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        uint8_t mad[MAD_LEN];

        memcpy(mad, linux_req, MAD_LEN);
        put_be32(mad + MSG, 100 + i);
        put_be24(mad + MSG + 32, 100 + i);
        mad[MSG + 95] = (uint8_t)(i * 7 % 19 << 3); /* ACK timeout */
        side_input(side, 1, mad, MAD_LEN);
        side_sent(side, CM_REP);
        send_simple(side, CM_DREQ, 100 + i, side->conn->local_comm_id,
                    side->conn->local_qpn);
        side_sent(side, CM_DREP);
        cm_poll(&side->cm, side->cm.now_us + 100);
    }
    assert_int_equal(side->ends, 3000);
    assert_int_equal(side->cm.counters.no_conn, 0);
    assert_int_equal(cm_poll(&side->cm, side->cm.now_us + 10000000),
                     CM_NO_DEADLINE);
    assert_int_equal(side->cm.resting.head, 0xffff);
    for (uint16_t i = side->cm.free.head; i != 0xffff;
         i = side->cm.conns[i].next) {
        free_count++;
    }
    assert_int_equal(free_count, CM_CONNS);
    assert_int_equal(side_pins(side), 0);
    side_free(side);
}

static void test_an_entry_of_the_pool_is_reused_as_late_as_possible(
    void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    side->answer = ANSWER_REJECT;
    for (uint32_t i = 0; i < 3 * CM_CONNS; i++) {
        uint32_t id;

        fill_one_slot(side, 100 + i);
        id = get_be32(side_sent(side, CM_REJ) + MSG);
        assert_int_equal(id % CM_CONNS, i % CM_CONNS);
    }
    side_free(side);
}

static void test_without_a_buffer_requests_wait_and_answers_are_dropped(
    void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    side->verbs.hold_completions = true;
    for (unsigned int i = 0; i < CM_SEND_BUFFERS; i++) {
        send_simple(side, CM_DREQ, 1, 2, 3);
        side_sent(side, CM_DREP);
    }
    send_simple(side, CM_DREQ, 1, 2, 3);
    send_req(side);
    side_sent_nothing(side);
    assert_int_equal(side->requests, 1);
    cm_poll(&side->cm, side->cm.now_us + 1000);
    side_sent_nothing(side);
    fake_complete(&side->verbs);
    cm_poll(&side->cm, side->cm.now_us + 1000);
    side_sent(side, CM_REP);
    /* This REP counts as the first transmission, not as a retry. */
    assert_int_equal(side->conn->retries_left, 15);
    side_free(side);
}

static void test_a_message_without_a_path_gets_no_answer(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    side->paths.has_no_room = true;
    send_req(side);
    send_simple(side, CM_DREQ, 1, 2, 3);
    side_sent_nothing(side);
    assert_int_equal(side->cm.counters.no_path, 2);
    assert_int_equal(side->requests, 0);
    side_free(side);
}

/* When the neighbour table is full, connections in TIMEWAIT free entries. */
static void test_connections_in_timewait_make_room_for_a_path(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        fill_one_slot(side, 100 + i);
        side_sent(side, CM_REP);
        if (i < 2) {
            send_simple(side, CM_DREQ, 100 + i, side->conn->local_comm_id,
                        side->conn->local_qpn);
            side_sent(side, CM_DREP);
        }
    }
    assert_int_equal(side_pins(side), 3);
    side->paths.unpins_to_room = 2;
    fill_one_slot(side, 200);
    side_sent(side, CM_REP);
    assert_int_equal(side_pins(side), 2);
    assert_int_equal(side->cm.conns[0].state, CM_CONN_FREE);
    assert_int_equal(side->cm.conns[2].state, CM_CONN_REP_SENT);
    assert_int_equal(side->cm.counters.no_path, 0);
    /* Established connections do not. */
    side->paths.unpins_to_room = 1;
    fill_one_slot(side, 201);
    side_sent_nothing(side);
    assert_int_equal(side->cm.counters.no_path, 1);
    assert_int_equal(side_pins(side), 2);
    side_free(side);
}

/* Released connections whose peer does not answer the DREQ free entries too. */
static void test_unanswered_dreqs_make_room_for_a_path(void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        fill_one_slot(side, 100 + i);
        side_sent(side, CM_REP);
        cm_release(side->conn);
        side_sent(side, CM_DREQ);
    }
    side->paths.unpins_to_room = 1;
    fill_one_slot(side, 200);
    side_sent(side, CM_REP);
    assert_int_equal(side->cm.counters.no_path, 0);
    assert_int_equal(side->cm.conns[0].state, CM_CONN_FREE); /* the older one */
    assert_int_equal(side->cm.conns[1].state, CM_CONN_DREQ_SENT);
    side_free(side);
}

/* Answering an unknown DREQ must not end the TIMEWAIT of a connection. */
static void test_an_unknown_dreq_frees_no_connection(void **state)
{
    struct side *side = established_side();

    (void)state;
    send_simple(side, CM_DREQ, 0xc0ffee01, side->conn->local_comm_id,
                side->conn->local_qpn);
    side_sent(side, CM_DREP);
    side->paths.unpins_to_room = 1;
    send_simple(side, CM_DREQ, 1, 2, 3);
    side_sent_nothing(side);
    assert_int_equal(side->cm.counters.no_path, 1);
    assert_int_equal(side->cm.conns[0].state, CM_CONN_TIMEWAIT);
    side_free(side);
}

/* Room does not help to answer a message without a path: nothing is freed. */
static void test_a_message_that_cannot_be_answered_frees_no_connection(
    void **state)
{
    struct side *side = side_new(2, 7);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        fill_one_slot(side, 100 + i);
        side_sent(side, CM_REP);
        send_simple(side, CM_DREQ, 100 + i, side->conn->local_comm_id,
                    side->conn->local_qpn);
        side_sent(side, CM_DREP);
    }
    side->paths.is_no_host = true;
    fill_one_slot(side, 200);
    send_simple(side, CM_DREQ, 1, 2, 3);
    side_sent_nothing(side);
    assert_int_equal(side->cm.counters.no_path, 2);
    assert_int_equal(side_pins(side), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(side->cm.conns[i].state, CM_CONN_TIMEWAIT);
    }
    side_free(side);
}

static void test_a_failed_qp_1_is_created_again(void **state)
{
    struct side *side = side_new(2, 7);
    struct verbs_ud_info from = side_from(1, 2);

    (void)state;
    side->verbs.hold_completions = true;
    send_req(side);
    side_sent(side, CM_REP);
    fake_break(&side->verbs);
    send_req(side); /* delivered, but cannot be answered */
    side_sent_nothing(side);
    side->verbs.refuse_create = true;
    assert_int_equal(cm_poll(&side->cm, 1000001), 1000001 + 1000);
    assert_false(fake_deliver(&side->verbs, &from, linux_req, MAD_LEN));
    /* The connection pins it; no send does. */
    assert_int_equal(side_pins(side), 1);
    side->verbs.refuse_create = false;
    cm_poll(&side->cm, side->cm.now_us + 1);
    assert_int_equal(side->cm.counters.restarts, 1);
    for (unsigned int i = 0; i < 2 * CM_RECV_BUFFERS; i++) {
        send_req(side);
        fake_complete(&side->verbs);
        side_sent(side, CM_REP);
    }
    side_free(side);
}

static void test_listeners_are_limited_and_unique(void **state)
{
    struct side *side = side_new(2, 7);
    const struct cm_ops *ops = side->cm.listeners[0].ops;

    (void)state;
    assert_false(cm_listen(&side->cm, rdma_ip_cm_service_id(4420), ops, side));
    for (uint16_t i = 1; i < CM_LISTENERS; i++) {
        assert_true(cm_listen(
            &side->cm, rdma_ip_cm_service_id((uint16_t)(4420 + i)), ops, side));
    }
    assert_false(cm_listen(&side->cm, 99, ops, side));
    side_free(side);
}

static void test_timers_fire_in_order(void **state)
{
    struct side *side = side_new(2, 7);
    uint64_t now = side->cm.now_us;
    unsigned int sent = 0;

    (void)state;
    /* REPs at 1500 different times, some of which are answered. */
    for (uint32_t i = 0; i < 1500; i++) {
        cm_poll(&side->cm, now + i * 100);
        fill_one_slot(side, 100 + i * 7919 % 1500);
        side_sent(side, CM_REP);
    }
    for (uint32_t i = 0; i < 1500; i += 3) {
        cm_data_received(&side->cm.conns[i * 7 % 1500]);
    }
    for (uint32_t i = 0; i < 1500; i++) {
        uint64_t next = cm_poll(&side->cm, now + i * 100 + TIMEOUT_US);
        const struct fake_mad *mad = fake_take(&side->verbs);

        assert_true(next > side->cm.now_us);
        if (mad != NULL) {
            assert_int_equal(get_be32(mad->bytes + MSG) & 0x7ff, i);
            sent++;
        }
        assert_null(fake_take(&side->verbs));
    }
    assert_int_equal(sent, 1000);
    side_free(side);
}

/* net/stack calls cm_is_reached() before it changes a peer's next hop. */
static void test_an_established_connection_proves_its_path_for_a_while(
    void **state)
{
    struct side *side = side_new(2, 7);
    uint16_t neigh;

    (void)state;
    send_req(side);
    side_sent(side, CM_REP);
    neigh = side->conn->neigh;
    assert_false(cm_is_reached(&side->cm, neigh));
    send_simple(side, CM_RTU, 0xc0ffee01, side->conn->local_comm_id, 0);
    assert_true(cm_is_reached(&side->cm, neigh));
    assert_false(cm_is_reached(&side->cm, (uint16_t)(neigh + 1)));
    side->cm.now_us += CM_REACHED_US - 1;
    assert_true(cm_is_reached(&side->cm, neigh));
    side->cm.now_us++;
    assert_false(cm_is_reached(&side->cm, neigh));
    cm_data_acknowledged(side->conn);
    assert_true(cm_is_reached(&side->cm, neigh));
    send_simple(side, CM_DREQ, 0xc0ffee01, side->conn->local_comm_id,
                side->conn->local_qpn);
    side_sent(side, CM_DREP);
    assert_false(cm_is_reached(&side->cm, neigh));
    side_free(side);
}
