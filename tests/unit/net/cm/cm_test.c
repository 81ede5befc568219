/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/cm/cm_test.h"

#include "lib/bytes.h"

/*
 * The REQ of an I/O queue as nvme_rdma sends it over rdma_rxe (Linux 6.12,
 * netdev MTU 4200), written by hand after IBTA Vol 1 table 99 and annex A11.
 */
const uint8_t linux_req[MAD_LEN] = {
    /* clang-format off */
    /* MAD header: transaction 00000001 11223344, modifier 5 (ECE: ignored) */
    0x01, 0x07, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0x11, 0x22, 0x33, 0x44,
    0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x05,
    /* 0: communication id, reserved */
    0xc0, 0xff, 0xee, 0x01, 0x00, 0x00, 0x00, 0x00,
    /* 8: service id, port 4420 */
    0x00, 0x00, 0x00, 0x00, 0x01, 0x06, 0x11, 0x44,
    /* 16: CA GUID, reserved, Q_Key */
    0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 0x56,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    /* 32: QPN 17, responder resources 128; EECN, initiator depth 0 */
    0x00, 0x00, 0x11, 0x80, 0x00, 0x00, 0x00, 0x00,
    /* 40: EECN, timeout 20 RC flow control; PSN ab_cdef, timeout 20 retry 7 */
    0x00, 0x00, 0x00, 0xa1, 0xab, 0xcd, 0xef, 0xa7,
    /* 48: P_Key, MTU 4096 RNR 7, retries 15; LIDs permissive */
    0xff, 0xff, 0x57, 0xf0, 0xff, 0xff, 0xff, 0xff,
    /* 56: GIDs */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2,
    /* 88: flow label, rate; traffic class 68h, hop limit, SL, ACK timeout 17 */
    0x00, 0x00, 0x00, 0x0f, 0x68, 0x40, 0x00, 0x88,
    /* 96: alternate path: none */
    [24 + 96 ... 24 + 139] = 0,
    /* 140: IP header */
    0x00, 0x40, 0xd4, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    /* 176: NVMe: format 0, queue 1, HRQSIZE 64, HSQSIZE 63, CNTLID 1 */
    0x00, 0x00, 0x01, 0x00, 0x40, 0x00, 0x3f, 0x00, 0x01, 0x00,
    /* clang-format on */
};

static void on_request(void *ctx, struct cm_conn *conn,
                       const struct cm_request *request)
{
    struct side *side = ctx;
    struct verbs_qp_attr attr;

    side->requests++;
    side->conn = conn;
    side->request = *request;
    assert_int_equal(request->private_len, 56);
    memcpy(side->private_data, request->private_data, request->private_len);
    if (side->answer == ANSWER_ACCEPT) {
        cm_qp_attr(conn, &attr);
        cm_accept(conn, side->next_qpn++, "REP data", 8);
    } else if (side->answer == ANSWER_REJECT) {
        cm_reject(conn, CM_REJ_CONSUMER, "\0\0\6\0", 4);
        side->conn = NULL;
    }
}

static void on_replied(void *ctx, struct cm_conn *conn, const uint8_t *data,
                       size_t len)
{
    struct side *side = ctx;
    struct verbs_qp_attr attr;

    side->replies++;
    side->conn = conn;
    memcpy(side->private_data, data, len);
    cm_qp_attr(conn, &attr);
    if (!side->confirm_later) {
        cm_confirm(conn);
    }
}

static void on_established(void *ctx, struct cm_conn *conn)
{
    struct side *side = ctx;

    side->establishments++;
    side->conn = conn;
}

static void on_disconnected(void *ctx, struct cm_conn *conn,
                            const struct cm_end *end)
{
    struct side *side = ctx;

    side->ends++;
    side->end = *end;
    if (end->private_data != NULL) {
        memcpy(side->private_data, end->private_data, end->private_len);
    }
    if (!side->keep_after_end) {
        cm_release(conn);
        if (side->conn == conn) {
            side->conn = NULL;
        }
    }
}

static const struct cm_ops ops = {
    on_request,
    on_replied,
    on_established,
    on_disconnected,
};

struct side *side_new(uint8_t number, uint32_t generation)
{
    struct side *side = calloc(1, sizeof(*side));
    struct cm_config config = {
        .path_ops = &fake_path_ops,
        .ca_guid = 0x1000u + number,
        .generation = generation,
        .random_seed = 42,
        .initiator_depth = 16,
        .responder_resources = 4,
        .max_retries = 3,
    };

    assert_non_null(side);
    side->memory = aligned_alloc(64, (CM_MEMORY_LEN + 63) / 64 * 64);
    assert_non_null(side->memory);
    side->paths.mtu = IB_MTU_4096;
    side->next_qpn = 0x28402 + (generation << 10);
    side->answer = ANSWER_ACCEPT;
    config.verbs = &side->verbs;
    config.path_ctx = &side->paths;
    config.memory = side->memory;
    assert_true(cm_init(&side->cm, &config));
    assert_true(cm_listen(&side->cm, rdma_ip_cm_service_id(4420), &ops, side));
    cm_poll(&side->cm, 1000000);
    return side;
}

void side_free(struct side *side)
{
    free(side->memory);
    free(side);
}

const uint8_t *side_sent(struct side *side, enum cm_attribute expected)
{
    const struct fake_mad *sent = fake_take(&side->verbs);

    assert_non_null(sent);
    assert_int_equal(get_be16(sent->bytes + MAD_ATTRIBUTE_ID), expected);
    return sent->bytes;
}

void side_sent_nothing(struct side *side)
{
    const struct fake_mad *sent = fake_take(&side->verbs);

    assert_null(sent);
}

struct verbs_ud_info side_from(uint8_t number, uint8_t to)
{
    struct verbs_ud_info from = {
        .src_ip = {{[10] = 0xff, 0xff, 10, 0, 0, number}},
        .dst_ip = {{[10] = 0xff, 0xff, 10, 0, 0, to}},
        .src_mac = {2, 0, 0, 0, 0, number},
        .laddr = 3,
        .src_qpn = 1,
        .vlan = 0xffff,
    };

    return from;
}

void side_input(struct side *to, uint8_t number, const uint8_t *mad,
                uint32_t len)
{
    struct verbs_ud_info from =
        side_from(number, (uint8_t)(to->cm.config.ca_guid - 0x1000));

    assert_true(fake_deliver(&to->verbs, &from, mad, len));
}

int side_pins(const struct side *side)
{
    int sum = 0;

    for (unsigned int i = 0; i < FAKE_NEIGHS; i++) {
        sum += side->paths.pins[i];
    }
    return sum;
}

struct cm_connect_param side_param(struct side *side, uint8_t number,
                                   uint8_t peer)
{
    return (struct cm_connect_param){
        .service_id = rdma_ip_cm_service_id(4420),
        .local_ip = ip_addr_from_v4(0x0a000000u + number),
        .peer_ip = ip_addr_from_v4(0x0a000000u + peer),
        .local_port = 0xd431,
        .path = {.neigh = peer, .laddr = 3, .mtu = IB_MTU_1024},
        .qpn = side->next_qpn++,
        .ack_timeout = 17,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .private_data = "REQ data",
        .private_len = 8,
        .ops = &ops,
        .ctx = side,
    };
}
