/* SPDX-License-Identifier: BSD-2-Clause */
/* MADs, CM messages, and the RDMA IP CM header. */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/cm_msg.h"
#include "net/wire/rdma_ip_cm.h"

static void check_private(const uint8_t *data, size_t len, const uint8_t *msg,
                          size_t offset, size_t field_len)
{
    assert_ptr_equal(data, msg + offset);
    assert_int_equal(len, field_len);
    /* golden.py fills private data with the bytes 7, 8, 9, and so on. */
    assert_int_equal(data[0], 7);
    assert_int_equal(data[len - 1], (uint8_t)(len + 6));
}

static void test_mad_header_is_parsed_and_emitted(void **state)
{
    uint8_t buf[MAD_LEN] = {0};
    DIRTY(out, MAD_HEADER_LEN);
    struct mad mad;

    (void)state;
    memcpy(buf, mad_header, MAD_HEADER_LEN);
    assert_true(mad_parse(&mad, buf, sizeof(buf)));
    assert_int_equal(mad.mgmt_class, MAD_CLASS_CM);
    assert_int_equal(mad.class_version, MAD_CLASS_VERSION_CM);
    assert_int_equal(mad.method, MAD_METHOD_SEND);
    assert_int_equal(mad.status, 0x1234);
    assert_int_equal(mad.class_specific, 0x5678);
    assert_int_equal(mad.attribute_id, CM_REQ);
    assert_int_equal(mad.attribute_modifier, 0x9abcdef0);
    assert_true(mad.transaction_id == 0x1122334455667788);
    mad_emit(&mad, out);
    assert_memory_equal(out, mad_header, MAD_HEADER_LEN);
    ASSERT_TRUNCATIONS_REFUSED(mad_parse, &mad, buf, MAD_LEN);
    buf[MAD_BASE_VERSION] = 2;
    assert_false(mad_parse(&mad, buf, sizeof(buf)));
}

static void test_cm_req_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_req req;

    (void)state;
    assert_true(cm_req_parse(&req, cm_req, sizeof(cm_req)));
    assert_int_equal(req.local_comm_id, 0x11223344);
    assert_true(req.service_id == rdma_ip_cm_service_id(4420));
    assert_true(req.local_ca_guid == 0x0102030405060708);
    assert_int_equal(req.local_qkey, 0x80010000);
    assert_int_equal(req.local_qpn, 0xabcdef);
    assert_int_equal(req.responder_resources, 128);
    assert_int_equal(req.initiator_depth, 16);
    assert_int_equal(req.remote_cm_timeout, 20);
    assert_int_equal(req.transport_service_type, CM_TRANSPORT_RC);
    assert_true(req.end_to_end_flow_control);
    assert_int_equal(req.starting_psn, 0x123456);
    assert_int_equal(req.local_cm_timeout, 19);
    assert_int_equal(req.retry_count, 7);
    assert_int_equal(req.pkey, 0xffff);
    assert_int_equal(req.path_mtu, IB_MTU_1024);
    assert_false(req.rdc_exists);
    assert_int_equal(req.rnr_retry_count, 6);
    assert_int_equal(req.max_cm_retries, 15);
    assert_true(req.srq);
    assert_int_equal(req.extended_transport_type, 0);
    assert_int_equal(req.local_lid, 0xffff);
    assert_int_equal(req.remote_lid, 0xfffe);
    assert_int_equal(ip_addr_to_v4(&req.local_gid), 0x0a000001);
    assert_true(ip_addr_is_v4(&req.remote_gid));
    assert_int_equal(ip_addr_to_v4(&req.remote_gid), 0x0a000002);
    assert_int_equal(req.flow_label, 0xabcde);
    assert_int_equal(req.packet_rate, 2);
    assert_int_equal(req.traffic_class, 0x68);
    assert_int_equal(req.hop_limit, 64);
    assert_int_equal(req.sl, 5);
    assert_true(req.subnet_local);
    assert_int_equal(req.local_ack_timeout, 17);
    assert_false(req.has_alternate_path);
    check_private(req.private_data, req.private_len, cm_req, 140, 92);
    cm_req_emit(&req, out);
    assert_memory_equal(out, cm_req, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_req_parse, &req, cm_req, sizeof(cm_req));
}

static void test_cm_req_notices_an_alternate_path(void **state)
{
    uint8_t msg[MAD_DATA_LEN];
    struct cm_req req;

    (void)state;
    for (size_t i = 0; i < 32; i++) {
        memcpy(msg, cm_req, sizeof(msg));
        msg[CM_REQ_ALTERNATE_GID + i] = 1;
        assert_true(cm_req_parse(&req, msg, sizeof(msg)));
        assert_true(req.has_alternate_path);
    }
}

static void test_cm_mra_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_mra mra;

    (void)state;
    assert_true(cm_mra_parse(&mra, cm_mra, sizeof(cm_mra)));
    assert_int_equal(mra.local_comm_id, 0x11223344);
    assert_int_equal(mra.remote_comm_id, 0x55667788);
    assert_int_equal(mra.message, CM_ANSWERS_REP);
    assert_int_equal(mra.service_timeout, 24);
    check_private(mra.private_data, mra.private_len, cm_mra, 10, 222);
    cm_mra_emit(&mra, out);
    assert_memory_equal(out, cm_mra, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_mra_parse, &mra, cm_mra, sizeof(cm_mra));
}

static void test_cm_rej_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_rej rej;

    (void)state;
    assert_true(cm_rej_parse(&rej, cm_rej, sizeof(cm_rej)));
    assert_int_equal(rej.local_comm_id, 0x11223344);
    assert_int_equal(rej.remote_comm_id, 0x55667788);
    assert_int_equal(rej.message, CM_ANSWERS_REP);
    assert_int_equal(rej.reason, CM_REJ_INVALID_MTU);
    assert_int_equal(rej.ari_len, 1);
    assert_int_equal(rej.ari[0], IB_MTU_4096);
    check_private(rej.private_data, rej.private_len, cm_rej, 84, 148);
    cm_rej_emit(&rej, out);
    assert_memory_equal(out, cm_rej, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_rej_parse, &rej, cm_rej, sizeof(cm_rej));
}

static void test_cm_rej_parse_refuses_an_ari_that_exceeds_its_field(
    void **state)
{
    uint8_t msg[MAD_DATA_LEN];
    struct cm_rej rej;

    (void)state;
    memcpy(msg, cm_rej, sizeof(msg));
    for (uint8_t len = 0; len < 128; len++) {
        msg[CM_REJ_INFO_LEN] = (uint8_t)(len << 1);
        assert_int_equal(cm_rej_parse(&rej, msg, sizeof(msg)),
                         len <= CM_REJ_ARI_LEN);
    }
}

static void test_cm_rep_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_rep rep;

    (void)state;
    assert_true(cm_rep_parse(&rep, cm_rep, sizeof(cm_rep)));
    assert_int_equal(rep.local_comm_id, 0x11223344);
    assert_int_equal(rep.remote_comm_id, 0x55667788);
    assert_int_equal(rep.local_qkey, 0x80010000);
    assert_int_equal(rep.local_qpn, 0xabcdef);
    assert_int_equal(rep.starting_psn, 0x654321);
    assert_int_equal(rep.responder_resources, 3);
    assert_int_equal(rep.initiator_depth, 16);
    assert_int_equal(rep.target_ack_delay, 15);
    assert_int_equal(rep.failover_accepted, 2);
    assert_true(rep.end_to_end_flow_control);
    assert_int_equal(rep.rnr_retry_count, 7);
    assert_true(rep.srq);
    assert_true(rep.local_ca_guid == 0x0102030405060708);
    check_private(rep.private_data, rep.private_len, cm_rep, 36, 196);
    cm_rep_emit(&rep, out);
    assert_memory_equal(out, cm_rep, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_rep_parse, &rep, cm_rep, sizeof(cm_rep));
}

static void test_cm_rtu_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_rtu rtu;

    (void)state;
    assert_true(cm_rtu_parse(&rtu, cm_rtu, sizeof(cm_rtu)));
    assert_int_equal(rtu.local_comm_id, 0x11223344);
    assert_int_equal(rtu.remote_comm_id, 0x55667788);
    check_private(rtu.private_data, rtu.private_len, cm_rtu, 8, 224);
    cm_rtu_emit(&rtu, out);
    assert_memory_equal(out, cm_rtu, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_rtu_parse, &rtu, cm_rtu, sizeof(cm_rtu));
}

static void test_cm_dreq_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_dreq dreq;

    (void)state;
    assert_true(cm_dreq_parse(&dreq, cm_dreq, sizeof(cm_dreq)));
    assert_int_equal(dreq.local_comm_id, 0x11223344);
    assert_int_equal(dreq.remote_comm_id, 0x55667788);
    assert_int_equal(dreq.remote_qpn, 0xabcdef);
    check_private(dreq.private_data, dreq.private_len, cm_dreq, 12, 220);
    cm_dreq_emit(&dreq, out);
    assert_memory_equal(out, cm_dreq, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_dreq_parse, &dreq, cm_dreq, sizeof(cm_dreq));
}

static void test_cm_drep_is_parsed_and_emitted(void **state)
{
    DIRTY(out, MAD_DATA_LEN);
    struct cm_drep drep;

    (void)state;
    assert_true(cm_drep_parse(&drep, cm_drep, sizeof(cm_drep)));
    assert_int_equal(drep.local_comm_id, 0x11223344);
    assert_int_equal(drep.remote_comm_id, 0x55667788);
    check_private(drep.private_data, drep.private_len, cm_drep, 8, 224);
    cm_drep_emit(&drep, out);
    assert_memory_equal(out, cm_drep, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(cm_drep_parse, &drep, cm_drep, sizeof(cm_drep));
}

static void test_cm_short_private_data_is_padded_with_zeros(void **state)
{
    static const uint8_t data[] = {1, 2, 3};
    const struct cm_rtu rtu = {.private_data = data, .private_len = 3};
    uint8_t expected[MAD_DATA_LEN] = {[8] = 1, [9] = 2, [10] = 3};
    DIRTY(out, MAD_DATA_LEN);

    (void)state;
    cm_rtu_emit(&rtu, out);
    assert_memory_equal(out, expected, sizeof(out));
}

static void test_ib_mtu_bytes_converts_every_code(void **state)
{
    static const uint32_t bytes[] = {0, 256, 512, 1024, 2048, 4096, 0, 0};

    (void)state;
    for (uint8_t code = 0; code < ARRAY_LEN(bytes); code++) {
        assert_int_equal(ib_mtu_bytes(code), bytes[code]);
    }
}

static void test_rdma_ip_cm_is_parsed_and_emitted(void **state)
{
    DIRTY(out, RDMA_IP_CM_LEN);
    struct rdma_ip_cm ip_cm;

    (void)state;
    assert_true(rdma_ip_cm_parse(&ip_cm, rdma_ip_cm_v4, sizeof(rdma_ip_cm_v4)));
    assert_true(ip_addr_is_v4(&ip_cm.src));
    assert_int_equal(ip_addr_to_v4(&ip_cm.src), 0x0a000001);
    assert_int_equal(ip_addr_to_v4(&ip_cm.dst), 0x0a000002);
    assert_int_equal(ip_cm.src_port, 0xabcd);
    rdma_ip_cm_emit(&ip_cm, out);
    assert_memory_equal(out, rdma_ip_cm_v4, sizeof(out));

    assert_true(rdma_ip_cm_parse(&ip_cm, rdma_ip_cm_v6, sizeof(rdma_ip_cm_v6)));
    assert_memory_equal(ip_cm.src.bytes, rdma_ip_cm_v6 + 4, 16);
    assert_memory_equal(ip_cm.dst.bytes, rdma_ip_cm_v6 + 20, 16);
    memset(out, 0xa5, sizeof(out));
    rdma_ip_cm_emit(&ip_cm, out);
    assert_memory_equal(out, rdma_ip_cm_v6, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(rdma_ip_cm_parse, &ip_cm, rdma_ip_cm_v6,
                               RDMA_IP_CM_LEN);
}

static void test_rdma_ip_cm_parse_refuses_other_versions(void **state)
{
    uint8_t buf[RDMA_IP_CM_LEN];
    struct rdma_ip_cm ip_cm;

    (void)state;
    for (unsigned version = 0; version < 16; version++) {
        memcpy(buf, rdma_ip_cm_v4, sizeof(buf));
        buf[RDMA_IP_CM_IP_VERSION] = (uint8_t)(version << 4);
        assert_int_equal(rdma_ip_cm_parse(&ip_cm, buf, sizeof(buf)),
                         version == 4 || version == 6);
    }
    memcpy(buf, rdma_ip_cm_v4, sizeof(buf));
    buf[RDMA_IP_CM_VERSION] = 0x10;
    assert_false(rdma_ip_cm_parse(&ip_cm, buf, sizeof(buf)));
}
