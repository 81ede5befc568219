/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe-oF connections over IPv4 and IPv6 in which scapy made every packet of
 * the tester (see literal.h): CM REQ, RTU and DREQ, capsules by SEND, a READ
 * response, acknowledgements. The drive's packets are read at literal offsets.
 *
 * Some fields cannot be literal, and the test overwrites them at the offsets
 * below: addresses, the drive's QPN, PSN and communication id, and our own QPN
 * and communication id, which a drive in real time remembers from earlier runs.
 */
#include <string.h>

#include "literal.h"
#include "literal_frames.h"
#include "nvmf_lib.h"

enum { /* Byte offsets in the frames. */
       REQ_QPN = LITERAL_CM + 32,
       REQ_LOCAL_GID = LITERAL_CM + 56,
       REQ_REMOTE_GID = LITERAL_CM + 72,
       /* The source address in the RDMA IP CM header. */
       REQ_PRIVATE_SRC = LITERAL_CM + 140 + 4,
       REQ_PRIVATE_DST = LITERAL_CM + 140 + 20,
       CM_OTHER_ID = LITERAL_CM + 4, /* The communication id of the receiver. */
       REP_QPN = LITERAL_CM + 12,
       REP_PSN = LITERAL_CM + 20,
       REP_PRIVATE = LITERAL_CM + 36,
       DREQ_QPN = LITERAL_CM + 8,
       CAPSULE = LITERAL_EXT,
       SQE_SGL = CAPSULE + 24, /* Address, length (3 bytes), key. */
       RESPONSE_SQHD = LITERAL_EXT + 8,
       RESPONSE_CID = LITERAL_EXT + 12,
       RESPONSE_STATUS = LITERAL_EXT + 14,
       WRITE_DATA = LITERAL_EXT + 16, /* The data follows the RETH. */
       IDENTIFY_SUBNQN = 768,
       IDENTIFY_BYTES = 4096,
       PATH_MTU = 1024,
       TRIES = 200,
       PAUSE_US = 10000,
       PSN_BITS = 0xffffff,
};

/* The literal frames of a connection, over IPv4 or IPv6. */
enum frame_kind {
    FRAME_CM_REQ,
    FRAME_CM_RTU,
    FRAME_CM_DREQ,
    FRAME_CONNECT,
    FRAME_CONNECT_DATA,
    FRAME_ACK,
    FRAME_GET_VS,
    FRAME_GET_CSTS,
    FRAME_SET_CC,
    FRAME_IDENTIFY,
    FRAME_KINDS
};

struct frame {
    const uint8_t *bytes;
    size_t len_bytes;
};

#define FRAME(name) {name, sizeof(name)}

/* Each of them over IPv4, then over IPv6. */
static const struct frame frames[FRAME_KINDS][2] = {
    [FRAME_CM_REQ] = {FRAME(scapy_cm_req), FRAME(scapy_cm_req6)},
    [FRAME_CM_RTU] = {FRAME(scapy_cm_rtu), FRAME(scapy_cm_rtu6)},
    [FRAME_CM_DREQ] = {FRAME(scapy_cm_dreq), FRAME(scapy_cm_dreq6)},
    [FRAME_CONNECT] = {FRAME(scapy_connect), FRAME(scapy_connect6)},
    [FRAME_ACK] = {FRAME(scapy_ack), FRAME(scapy_ack6)},
    [FRAME_CONNECT_DATA] = {FRAME(scapy_connect_data),
                            FRAME(scapy_connect_data6)},
    [FRAME_GET_VS] = {FRAME(scapy_get_vs), FRAME(scapy_get_vs6)},
    [FRAME_GET_CSTS] = {FRAME(scapy_get_csts), FRAME(scapy_get_csts6)},
    [FRAME_SET_CC] = {FRAME(scapy_set_cc), FRAME(scapy_set_cc6)},
    [FRAME_IDENTIFY] = {FRAME(scapy_identify), FRAME(scapy_identify6)},
};

struct connection {
    struct conf *conf;
    bool is_v6;
    uint8_t qpn[3], drive_qpn[3];
    uint8_t id[4], drive_id[4], tid[8];
    uint32_t psn, msn;
    uint8_t sqhd;
};

static struct literal *frame_new(struct connection *c, enum frame_kind kind)
{
    const struct frame *frame = &frames[kind][c->is_v6];

    return literal_new(c->conf, frame->bytes, frame->len_bytes);
}

/* What is added to the offsets of LITERAL_L4 and beyond. */
static size_t shift_of(const struct connection *c)
{
    return c->is_v6 ? LITERAL_V6_SHIFT : 0;
}

/* The bytes of a frame, for those offsets. */
static uint8_t *bytes_of(const struct connection *c, struct literal *literal)
{
    return literal->bytes + shift_of(c);
}

/*
 * Take the drive's next frame with these bytes at that offset.  @return the
 * frame, for the offsets of LITERAL_L4 and beyond
 */
static const uint8_t *frame_take(struct connection *c, const char *what,
                                 size_t at, const void *bytes, size_t len)
{
    return literal_take(c->conf, what, at + shift_of(c), bytes, len) +
           shift_of(c);
}

static uint32_t get_3(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static void put_3(uint8_t *p, uint32_t value)
{
    p[0] = (uint8_t)(value >> 16);
    p[1] = (uint8_t)(value >> 8);
    p[2] = (uint8_t)value;
}

/* ---- The communication manager. */

static void send_cm(struct connection *c, struct literal *message)
{
    literal_to_drive(c->conf, message);
    memcpy(bytes_of(c, message) + LITERAL_MAD_TID, c->tid, sizeof(c->tid));
    memcpy(bytes_of(c, message) + LITERAL_CM, c->id, sizeof(c->id));
    literal_send(c->conf, message);
}

/* Take the drive's CM message with that attribute and our communication id. */
static const uint8_t *take_cm(struct connection *c, const char *what,
                              uint8_t attribute)
{
    const uint8_t attribute_id[2] = {0, attribute};
    const uint8_t *got;

    do {
        got = frame_take(c, what, LITERAL_MAD_ATTRIBUTE, attribute_id,
                         sizeof(attribute_id));
    } while (memcmp(got + CM_OTHER_ID, c->id, sizeof(c->id)) != 0);
    conf_same(c->conf,
              "MAD header (base version, class CM, class version, method Send)",
              got + LITERAL_MAD, (uint8_t[]){1, 7, 2, 3}, 4);
    conf_equal(c->conf, "opcode (64h: UD SEND Only)", got[LITERAL_OPCODE],
               0x64);
    return got;
}

/* Write both addresses where the REQ and its private data have them. */
static void put_ends(struct connection *c, uint8_t *req)
{
    const struct conf_peer *peer = conf_peer(c->conf, 0, 0);
    const struct ip_addr *from = c->is_v6 ? &peer->ip6 : &peer->ip4;
    const struct ip_addr *to = conf_target_ip(c->conf, 0, c->is_v6);
    size_t skip = c->is_v6 ? 0 : 12; /* Only the IPv4 address itself. */

    memcpy(req + REQ_LOCAL_GID + skip, from->bytes + skip, 16 - skip);
    memcpy(req + REQ_REMOTE_GID + skip, to->bytes + skip, 16 - skip);
    memcpy(req + REQ_PRIVATE_SRC + skip, from->bytes + skip, 16 - skip);
    memcpy(req + REQ_PRIVATE_DST + skip, to->bytes + skip, 16 - skip);
}

static struct connection *literal_open(struct conf *conf, bool is_v6)
{
    struct connection *c = conf_alloc(conf, sizeof(*c));
    struct literal *req, *rtu;
    uint64_t random = conf_random(conf);
    const uint8_t *rep;

    conf_needs_ip(conf, 0, is_v6);
    c->conf = conf;
    c->is_v6 = is_v6;
    req = frame_new(c, FRAME_CM_REQ);
    rtu = frame_new(c, FRAME_CM_RTU);
    put_3(c->qpn, 0x7f0000 | (random & 0xffff));
    memcpy(c->tid, &random, sizeof(c->tid));
    memcpy(c->id, (uint8_t *)&random + 2, sizeof(c->id));
    memcpy(bytes_of(c, req) + REQ_QPN, c->qpn, 3);
    put_ends(c, bytes_of(c, req));
    send_cm(c, req);
    rep = take_cm(c, "a CM REP to the literal REQ", 0x13);
    memcpy(c->drive_id, rep + LITERAL_CM, 4);
    memcpy(c->drive_qpn, rep + REP_QPN, 3);
    c->psn = get_3(rep + REP_PSN);
    conf_same(conf, "RECFMT of the REP's private data", rep + REP_PRIVATE,
              (uint8_t[]){0, 0}, 2);
    memcpy(bytes_of(c, rtu) + CM_OTHER_ID, c->drive_id, 4);
    send_cm(c, rtu);
    return c;
}

static void literal_close(struct connection *c)
{
    struct literal *dreq = frame_new(c, FRAME_CM_DREQ);

    memcpy(bytes_of(c, dreq) + CM_OTHER_ID, c->drive_id, 4);
    memcpy(bytes_of(c, dreq) + DREQ_QPN, c->drive_qpn, 3);
    send_cm(c, dreq);
    take_cm(c, "a CM DREP to the literal DREQ", 0x16);
}

/* ---- The queue pair. */

static void send_roce(struct connection *c, struct literal *packet,
                      uint32_t psn)
{
    literal_to_drive(c->conf, packet);
    memcpy(bytes_of(c, packet) + LITERAL_DEST_QP, c->drive_qpn, 3);
    put_3(bytes_of(c, packet) + LITERAL_PSN, psn);
    literal_send(c->conf, packet);
}

static void send_capsule(struct connection *c, struct literal *capsule)
{
    send_roce(c, capsule, c->psn);
    c->psn = (c->psn + 1) & PSN_BITS;
}

/* Take the drive's next packet with that opcode to our QP. */
static const uint8_t *take_roce(struct connection *c, const char *what,
                                uint8_t opcode)
{
    const uint8_t *got;

    do {
        got = frame_take(c, what, LITERAL_OPCODE, &opcode, 1);
    } while (memcmp(got + LITERAL_DEST_QP, c->qpn, 3) != 0);
    return got;
}

static void acknowledge_packet(struct connection *c, const uint8_t *packet)
{
    struct literal *ack = frame_new(c, FRAME_ACK);

    c->msn++;
    put_3(bytes_of(c, ack) + LITERAL_MSN, c->msn);
    send_roce(c, ack, get_3(packet + LITERAL_PSN));
}

/*
 * Take the response capsule to the command with that CID, which must succeed.
 */
static const uint8_t *take_response(struct connection *c, const char *what,
                                    uint8_t cid)
{
    const uint8_t *got = take_roce(c, what, 0x04);

    acknowledge_packet(c, got);
    c->sqhd++;
    conf_same(c->conf, "SQHD", got + RESPONSE_SQHD,
              (uint8_t[]){c->sqhd % 32, 0}, 2);
    conf_same(c->conf, "CID", got + RESPONSE_CID, (uint8_t[]){cid, 0}, 2);
    conf_same(c->conf, "status", got + RESPONSE_STATUS, (uint8_t[]){0, 0}, 2);
    return got;
}

/* The RETH must have the address, key and length of the SGL. */
static void check_reth(struct connection *c, const uint8_t *packet,
                       struct literal *capsule)
{
    const uint8_t *sgl = bytes_of(c, capsule) + SQE_SGL;
    uint8_t reth[16] = {[13] = sgl[10], [14] = sgl[9], [15] = sgl[8]};

    for (unsigned int i = 0; i < 8; i++) {
        reth[i] = sgl[7 - i];
    }
    for (unsigned int i = 0; i < 4; i++) {
        reth[8 + i] = sgl[14 - i];
    }
    conf_same(c->conf, "RETH with the descriptor's address, key and length",
              packet + LITERAL_EXT, reth, sizeof(reth));
}

static void run_connect(struct connection *c)
{
    struct literal *capsule = frame_new(c, FRAME_CONNECT);
    struct literal *data = frame_new(c, FRAME_CONNECT_DATA);
    const uint8_t *got;

    send_capsule(c, capsule);
    got = take_roce(c, "an RDMA READ of the Connect data", 0x0c);
    check_reth(c, got, capsule);
    c->msn++;
    put_3(bytes_of(c, data) + LITERAL_MSN, c->msn);
    send_roce(c, data, get_3(got + LITERAL_PSN));
    got = take_response(c, "a response to the literal Connect", 1);
    conf_check(c->conf, got[LITERAL_EXT] != 0 || got[LITERAL_EXT + 1] != 0,
               "CNTLID is 0");
}

static void run_properties(struct connection *c)
{
    const uint8_t *got;

    send_capsule(c, frame_new(c, FRAME_GET_VS));
    got = take_response(c, "a response to the literal Property Get VS", 2);
    conf_check(c->conf, got[LITERAL_EXT + 2] >= 1, "VS is below 1.0");
    send_capsule(c, frame_new(c, FRAME_SET_CC));
    take_response(c, "a response to the literal Property Set CC", 4);
    for (unsigned int i = 0; i < TRIES; i++) {
        send_capsule(c, frame_new(c, FRAME_GET_CSTS));
        got = take_response(c, "a response to Property Get CSTS", 3);
        if (got[LITERAL_EXT] & 1) {
            return;
        }
        conf_pass(c->conf, PAUSE_US);
    }
    conf_fail(c->conf, "CSTS.RDY does not become 1");
}

/* 4096 bytes by RDMA WRITE: First, two Middle and Last at a path MTU
 * of 1024. */
static void run_identify(struct connection *c)
{
    static const uint8_t opcodes[] = {0x06, 0x07, 0x07, 0x08};
    struct literal *capsule = frame_new(c, FRAME_IDENTIFY);
    const uint8_t *got;

    send_capsule(c, capsule);
    for (unsigned int i = 0; i < IDENTIFY_BYTES / PATH_MTU; i++) {
        got = take_roce(c, "a packet of the RDMA WRITE", opcodes[i]);
        if (i == 0) {
            check_reth(c, got, capsule);
            /* It may be the well-known name or a unique one. */
            conf_same(c->conf, "SUBNQN", got + WRITE_DATA + IDENTIFY_SUBNQN,
                      "nqn.20", 6);
        }
    }
    c->msn++;
    take_response(c, "a response to the literal Identify", 5);
}

static void run_connection(struct conf *conf, bool is_v6)
{
    struct connection *c = literal_open(conf, is_v6);

    run_connect(c);
    run_properties(c);
    run_identify(c);
    literal_close(c);
}

static void literal_connection(struct conf *conf)
{
    run_connection(conf, false);
}

static void literal_connection_v6(struct conf *conf)
{
    run_connection(conf, true);
}

static const struct conf_test tests[] = {
    CONF_TEST(
        "literal.connection", "IBTA Vol 1 9.2, 12.6; NVMe-oF 1.1 3, 7.3",
        "a connection of literal packets connects, identifies and disconnects",
        literal_connection),
    CONF_TEST("literal.connection-v6", "IBTA Vol 1 A17.3; RFC 8200 3",
              "a connection of literal packets over IPv6 does the same",
              literal_connection_v6),
};
CONF_TESTS(conf_tests_nvmf_literal, "nvmf", tests);
