/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet must be before a queue pair receives it, and which fields must
 * not matter.
 *
 * Spec: IBTA Vol 1 9.6 (packet transport header validation), 9.9.3; annexes A16
 * and A17 (RoCE).
 */
#include <string.h>

#include "lib/bytes.h"
#include "roce_lib.h"

/* A correct SEND, which tests change. */
static struct packet_roce valid_send(const struct rc *rc)
{
    return (struct packet_roce){
        .bth = {.opcode = RC_SEND_ONLY, .psn = rc->psn, .ack_requested = true},
        .data = "a message for the drive",
        .data_len = 24,
    };
}

static struct echo_rc *open_v(struct conf *conf, bool is_v6)
{
    return roce_echo(conf, &(struct rc_config){.is_v6 = is_v6}, 0, 0);
}

/*
 * The packet was dropped without an answer, and without harm to the connection.
 */
static void expect_dropped(struct echo_rc *echo)
{
    struct rc *rc = echo->rc;

    rc_expect_silence(rc, ROCE_QUIET_US);
    rc_send_message(rc, "still there", 11);
    rc_expect_ack(rc, rc->psn - 1);
    roce_expect_placed(echo, 0, "still there", 11);
    rc_close(rc);
}

static void expect_taken(struct echo_rc *echo)
{
    struct rc *rc = echo->rc;

    rc_expect_ack(rc, rc->psn);
    rc->psn = (rc->psn + 1) & ROCE_PSN_MASK;
    roce_expect_placed(echo, 0, "a message for the drive", 24);
    rc_close(rc);
}

#define DROPPED(name, is_v6, change)                                           \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct echo_rc *echo = open_v(conf, is_v6);                            \
        struct packet_roce packet = valid_send(echo->rc);                      \
                                                                               \
        change;                                                                \
        rc_send_packet(echo->rc, &packet);                                     \
        expect_dropped(echo);                                                  \
    }

#define TAKEN(name, is_v6, change)                                             \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct echo_rc *echo = open_v(conf, is_v6);                            \
        struct packet_roce packet = valid_send(echo->rc);                      \
                                                                               \
        change;                                                                \
        rc_send_packet(echo->rc, &packet);                                     \
        expect_taken(echo);                                                    \
    }

DROPPED(icrc_one_bit, false, packet.icrc_xor = 1)
DROPPED(icrc_inverted, false, packet.icrc_xor = 0xffffffff)
DROPPED(icrc_v6, true, packet.icrc_xor = 0x00800000)
DROPPED(qpn_unknown, false, packet.bth.dest_qp = echo->rc->target_qpn ^ 0x3)
DROPPED(qpn_zero, false, packet.bth.dest_qp = 0xfffffe)
DROPPED(pkey_other, false, packet.bth.pkey = 0x8001)
DROPPED(pkey_zero, false, packet.is_pkey_zero = true)
DROPPED(version, false, packet.transport_version = 1)
DROPPED(pad_without_data, false, (packet.data_len = 0, packet.pad_xor = 3))
DROPPED(udp_short, false, packet.udp_len_delta = -8)
DROPPED(udp_long, false, packet.udp_len_delta = 8)
DROPPED(ip_short, false, packet.ip_len_delta = -4)
DROPPED(cut, false, packet.cut_bytes = 4)
DROPPED(cut_in_bth, false, packet.cut_bytes = 24 + 4 + 6)
DROPPED(uc_opcode, false, packet.bth.opcode = UC_SEND_ONLY)
DROPPED(ud_opcode, false, packet.bth.opcode = UD_SEND_ONLY)

TAKEN(source_port, false, packet.udp_src_port = 1)
TAKEN(dscp, false, echo->rc->path.tos = 0x68)
TAKEN(ttl, false, echo->rc->path.ttl = 1)
TAKEN(fecn, false, packet.bth.fecn = true)
TAKEN(migrated, false, packet.bth.migrated = true)
TAKEN(solicited, false, packet.bth.solicited = true)
TAKEN(pkey_limited, false, packet.bth.pkey = 0x7fff)
TAKEN(v6, true, (void)0)
TAKEN(traffic_class_v6, true, echo->rc->path.tos = 0x68)
TAKEN(may_fragment, false, echo->rc->path.may_fragment = true)

/* Only one packet has the changed path, because the test needs the correct one
 * afterwards. */
static void from_a_stranger(struct conf *conf, bool is_v6)
{
    struct echo_rc *echo = open_v(conf, is_v6);
    struct packet_roce packet = valid_send(echo->rc);

    echo->rc->path.src.bytes[15] ^= 0x40;
    rc_send_packet(echo->rc, &packet);
    echo->rc->path.src.bytes[15] ^= 0x40;
    expect_dropped(echo);
}

static void stranger_v4(struct conf *conf)
{
    from_a_stranger(conf, false);
}

static void stranger_v6(struct conf *conf)
{
    from_a_stranger(conf, true);
}

/* A packet for another address of the drive than the connection's. */
static void other_destination(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    struct ip_addr right = echo->rc->path.dst;

    echo->rc->path.dst.bytes[15] ^= 0x20;
    rc_send_packet(echo->rc, &packet);
    echo->rc->path.dst = right;
    expect_dropped(echo);
}

static void to_group(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    struct ip_addr right = echo->rc->path.dst;

    echo->rc->path.dst = ip_addr_from_v4(0xe0000001);
    rc_send_packet(echo->rc, &packet);
    echo->rc->path.dst = right;
    expect_dropped(echo);
}

/* A frame longer than its IP packet, as Ethernet's padding can make it. */
static void header_trailer(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    uint8_t frame[FRAME_LEN_MAX];
    size_t len;

    packet.bth.dest_qp = echo->rc->target_qpn;
    len = packet_roce(frame, &echo->rc->path, &packet);
    memset(frame + len, 0xa5, 20);
    conf_send_frame(conf, 0, frame, len + 20, 0);
    expect_taken(echo);
}

/* The ICRC covers neither TTL nor TOS nor checksums, which routers change. */
static void router_changes(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    uint8_t frame[FRAME_LEN_MAX];
    size_t len;
    uint32_t sum = 0;

    packet.bth.dest_qp = echo->rc->target_qpn;
    len = packet_roce(frame, &echo->rc->path, &packet);
    frame[ETH_LEN + IPV4_TTL] = 3;
    frame[ETH_LEN + IPV4_TOS] = 0x08;
    put_be16(frame + ETH_LEN + IPV4_CHECKSUM, 0);
    for (unsigned int i = 0; i < IPV4_LEN; i += 2) {
        sum += get_be16(frame + ETH_LEN + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(frame + ETH_LEN + IPV4_CHECKSUM,
             (uint16_t) ~((sum & 0xffff) + (sum >> 16)));
    conf_send_frame(conf, 0, frame, len, 0);
    expect_taken(echo);
}

static void ip_checksum(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    uint8_t frame[FRAME_LEN_MAX];
    size_t len;

    packet.bth.dest_qp = echo->rc->target_qpn;
    len = packet_roce(frame, &echo->rc->path, &packet);
    frame[ETH_LEN + IPV4_CHECKSUM] ^= 1;
    conf_send_frame(conf, 0, frame, len, 0);
    expect_dropped(echo);
}

/* ---- Opcodes that the requester of a reliable connection does not send. */

static void send_ext(struct rc *rc, uint8_t opcode, size_t len)
{
    static const uint8_t ext[64];

    rc_send_packet(
        rc,
        &(struct packet_roce){
            .bth = {.opcode = opcode, .psn = rc->psn, .ack_requested = true},
            .ext = ext,
            .ext_len = len,
        });
}

/* An answer that only a responder with atomic operations sends: the result, or
 * an error about the key. No earlier message tells whether it has them. */
static bool has_atomics(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.dest_qp == rc->qpn &&
           (packet->bth.opcode == RC_ATOMIC_ACKNOWLEDGE ||
            (packet->bth.opcode == RC_ACKNOWLEDGE &&
             packet->aeth.kind == AETH_NAK &&
             packet->aeth.value == AETH_NAK_REMOTE_ACCESS));
}

/* Another target than ours may have atomic operations. */
static void expect_no_atomics(struct conf *conf, uint8_t opcode)
{
    struct echo_rc *echo = open_v(conf, false);
    struct rc *rc = echo->rc;

    send_ext(rc, opcode, ATOMICETH_LEN);
    if (!conf_target(conf)->is_ours &&
        conf_take_within(conf, has_atomics, rc, CONF_ANSWER_US) != NULL) {
        conf_not_applicable(conf, "the target has atomic operations");
    }
    rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST, rc->psn);
    roce_expect_dead(echo);
}

static void compare_swap(struct conf *conf)
{
    expect_no_atomics(conf, RC_COMPARE_SWAP);
}

static void fetch_add(struct conf *conf)
{
    expect_no_atomics(conf, RC_FETCH_ADD);
}

static void unasked_response(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct rc *rc = echo->rc;

    rc_send_packet(
        rc, &(struct packet_roce){
                .bth = {.opcode = RC_READ_RESPONSE_ONLY, .psn = rc->epsn},
                .aeth = {AETH_ACK, 31, 0},
                .data_len = 16,
            });
    expect_dropped(echo);
}

static void unasked_ack(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct rc *rc = echo->rc;

    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_ACKNOWLEDGE,
                                   .psn = (rc->epsn + 1000) & ROCE_PSN_MASK},
                           .aeth = {AETH_ACK, 31, 0},
                       });
    expect_dropped(echo);
}

/* ---- Management datagrams. */

static void send_to_gsi(struct conf *conf, uint32_t qkey, uint32_t dest_qp)
{
    struct rc *rc = rc_new(conf, &(struct rc_config){0});
    uint8_t private_data[CM_REQ_PRIVATE_LEN], payload[MAD_LEN];
    struct cm_req req;
    struct mad mad = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = CM_REQ,
        .transaction_id = rc->tid,
    };

    rc_make_req(rc, &req, private_data);
    mad_emit(&mad, payload);
    cm_req_emit(&req, payload + MAD_HEADER_LEN);
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = UD_SEND_ONLY, .dest_qp = dest_qp},
                           .deth = {.qkey = qkey, .src_qp = GSI_QPN},
                           .data = payload,
                           .data_len = MAD_LEN,
                       });
    rc_expect_no_cm(rc, CM_REP, ROCE_QUIET_US);
    rc_expect_no_cm(rc, CM_REJ, ROCE_QUIET_US);
    /* Without that fault the same REQ is answered. */
    rc_send_req(rc, &req);
    rc_take_rep(rc);
    rc_send_rej(rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
}

static void qkey_wrong(struct conf *conf)
{
    send_to_gsi(conf, GSI_QKEY + 1, GSI_QPN);
}

static void gsi_smi(struct conf *conf)
{
    send_to_gsi(conf, GSI_QKEY, 0xfffffd);
}

/* ---- Congestion. */

static bool is_cnp(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.opcode == CNP_NOTIFY &&
           packet->bth.dest_qp == rc->qpn;
}

static void ecn_marked(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);
    const struct packet *cnp;

    echo->rc->path.tos = 0x03; /* Congestion experienced. */
    rc_send_packet(echo->rc, &packet);
    echo->rc->path.tos = 0;
    cnp = conf_take_within(conf, is_cnp, echo->rc, ROCE_QUIET_US * 5);
    if (cnp == NULL && !conf_target(conf)->is_ours) {
        conf_not_applicable(
            conf, "the target sends no CNP, which annex A17 leaves to it");
    }
    conf_check(conf, cnp != NULL, "no CNP came for a marked packet");
    conf_check(conf, cnp->bth.becn, "BECN is not set in the CNP");
    conf_equal(conf, "length after the BTH", cnp->data_len, 16);
    expect_taken(echo);
}

static void ecn_capable(struct conf *conf)
{
    struct echo_rc *echo = open_v(conf, false);
    struct packet_roce packet = valid_send(echo->rc);

    echo->rc->path.tos = 0x02; /* ECN-capable, but not marked. */
    rc_send_packet(echo->rc, &packet);
    echo->rc->path.tos = 0;
    conf_expect_none(conf, "CNP", is_cnp, echo->rc, ROCE_QUIET_US);
    expect_taken(echo);
}

static void cnp_received(struct conf *conf)
{
    static const uint8_t reserved[16];
    struct echo_rc *echo = open_v(conf, false);
    struct rc *rc = echo->rc;

    for (unsigned int i = 0; i < 10; i++) {
        rc_send_packet(rc, &(struct packet_roce){
                               .bth = {.opcode = CNP_NOTIFY, .becn = true},
                               .data = reserved,
                               .data_len = sizeof(reserved),
                           });
    }
    rc_expect_silence(rc, ROCE_QUIET_US);
    rc_send_message(rc, "slower", 6);
    rc_expect_ack(rc, rc->psn - 1);
    roce_expect_placed(echo, 0, "slower", 6);
    rc_close(rc);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, clause, purpose, __VA_ARGS__, .needs = CONF_NEEDS_ECHO)
#define BAD(id, clause, purpose, ...)                                          \
    CONF_TEST(id, clause, purpose, __VA_ARGS__, .needs = CONF_NEEDS_ECHO,      \
              .is_malformed = true)

static const struct conf_test tests[] = {
    BAD("icrc.bit", "IBTA A17.3.3", "a packet with one wrong bit is dropped",
        icrc_one_bit),
    BAD("icrc.inverted", "IBTA A17.3.3",
        "a packet whose ICRC is not complemented is dropped", icrc_inverted),
    BAD("icrc.v6", "IBTA A17.3.3",
        "an IPv6 packet with one wrong bit is dropped", icrc_v6),
    TEST("icrc.router", "IBTA A17.3.3",
         "the ICRC does not cover TTL, TOS and checksum", router_changes),
    BAD("header.qpn", "IBTA 9.6.1.2",
        "a packet for another queue pair is dropped", qpn_unknown),
    BAD("header.qpn-reserved", "IBTA 9.6.1.2",
        "a packet for a queue pair that does not exist is dropped", qpn_zero),
    BAD("header.pkey", "IBTA 9.6.1.2.3",
        "a packet with the P_Key of another partition is dropped", pkey_other),
    BAD("header.pkey-zero", "IBTA 9.6.1.2.3",
        "a packet with P_Key 0 is dropped", pkey_zero),
    TEST("header.pkey-limited", "IBTA 9.6.1.2.3, 10.9.3",
         "a packet with a limited P_Key is accepted by a full member",
         pkey_limited),
    BAD("header.version", "IBTA 9.6.1.2.1",
        "a packet with transport version 1 is dropped", version),
    BAD("header.pad", "IBTA 9.2.4",
        "a packet with more pad than payload is dropped", pad_without_data),
    BAD("header.udp-short", "RFC 768",
        "a packet with too small a UDP length is dropped", udp_short),
    BAD("header.udp-long", "RFC 768",
        "a packet with too large a UDP length is dropped", udp_long),
    BAD("header.ip-short", "RFC 791",
        "a packet with too small an IP length is dropped", ip_short),
    BAD("header.cut", "RFC 791", "a packet without its last bytes is dropped",
        cut),
    BAD("header.cut-bth", "IBTA 9.6.1",
        "a packet that ends inside the BTH is dropped", cut_in_bth),
    BAD("header.ip-checksum", "RFC 791",
        "a packet with a wrong IP checksum is dropped", ip_checksum),
    TEST("header.trailer", "IBTA A17.3", "bytes after the packet are ignored",
         header_trailer),
    BAD("header.uc", "IBTA 9.6.1.2.2",
        "a UC opcode for an RC queue pair is dropped", uc_opcode),
    BAD("header.ud", "IBTA 9.6.1.2.2",
        "a UD opcode for an RC queue pair is dropped", ud_opcode),
    BAD("header.source", "IBTA A17.4.3",
        "a packet from another source address is dropped", stranger_v4),
    BAD("header.source-v6", "IBTA A17.4.3",
        "a packet from another IPv6 source address is dropped", stranger_v6),
    BAD("header.destination", "IBTA A17.4.3",
        "a packet for another address than the connection's is dropped",
        other_destination),
    BAD("header.group", "IBTA A17.4.3", "a packet for a group is dropped",
        to_group),
    TEST("header.source-port", "IBTA A17.3.1",
         "a packet with any UDP source port is accepted", source_port),
    TEST("header.dscp", "IBTA A17.3.1", "a packet with any DSCP is accepted",
         dscp),
    TEST("header.ttl", "IBTA A17.3.1", "a packet with any TTL is accepted",
         ttl),
    TEST("header.may-fragment", "IBTA A17.3.1",
         "a packet with DF set or clear is accepted", may_fragment),
    TEST("header.fecn", "IBTA 9.2.1", "FECN is ignored", fecn),
    TEST("header.migrated", "IBTA 9.2.4", "MigReq is ignored", migrated),
    TEST("header.solicited", "IBTA 9.2.3",
         "the solicited event bit is accepted", solicited),
    TEST("header.v6", "IBTA A17.3", "an IPv6 packet is accepted", v6),
    TEST("header.v6-class", "IBTA A17.3",
         "an IPv6 packet with any traffic class is accepted", traffic_class_v6),
    BAD("opcode.compare-swap", "IBTA 9.9.3.2",
        "Compare and Swap gets NAK invalid request", compare_swap),
    BAD("opcode.fetch-add", "IBTA 9.9.3.2",
        "Fetch and Add gets NAK invalid request", fetch_add),
    BAD("opcode.unasked-response", "IBTA 9.9.2.2",
        "a READ response without a request is dropped", unasked_response),
    BAD("opcode.unasked-ack", "IBTA 9.9.2.2", "an ACK for nothing is dropped",
        unasked_ack),
    CONF_TEST("gsi.qkey", "IBTA 10.2.5",
              "a packet for QP 1 with a wrong Q_Key is dropped", qkey_wrong,
              .is_malformed = true),
    CONF_TEST("gsi.qpn", "IBTA 9.6.1.2", "a MAD for QP 0 is dropped", gsi_smi,
              .is_malformed = true),
    TEST("cnp.marked", "IBTA A17.9.1", "a packet marked with CE causes a CNP",
         ecn_marked),
    TEST("cnp.unmarked", "IBTA A17.9.1",
         "a packet with ECT alone causes no CNP", ecn_capable),
    TEST("cnp.received", "IBTA A17.9.2", "a received CNP does no harm",
         cnp_received),
};
CONF_TESTS(conf_tests_roce_header, "roce", tests);
