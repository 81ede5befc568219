/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An NVMe-oF connection in which scapy made every packet of the tester (see
 * literal.h): CM REQ, RTU and DREQ, capsules by SEND, a READ response,
 * acknowledgements. The drive's packets are read at literal offsets.
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

struct connection {
    struct conf *conf;
    uint8_t qpn[3], drive_qpn[3];
    uint8_t id[4], drive_id[4], tid[8];
    uint32_t psn, msn;
    uint8_t sqhd;
};

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
    memcpy(message->bytes + LITERAL_MAD_TID, c->tid, sizeof(c->tid));
    memcpy(message->bytes + LITERAL_CM, c->id, sizeof(c->id));
    literal_send(c->conf, message);
}

/* Take the drive's CM message with that attribute and our communication id. */
static const uint8_t *take_cm(struct connection *c, const char *what,
                              uint8_t attribute)
{
    const uint8_t attribute_id[2] = {0, attribute};
    const uint8_t *got;

    do {
        got = literal_take(c->conf, what, LITERAL_MAD_ATTRIBUTE, attribute_id,
                           sizeof(attribute_id));
    } while (memcmp(got + CM_OTHER_ID, c->id, sizeof(c->id)) != 0);
    conf_same(c->conf,
              "MAD header (base version, class CM, class version, method Send)",
              got + LITERAL_MAD, (uint8_t[]){1, 7, 2, 3}, 4);
    conf_equal(c->conf, "opcode (64h: UD SEND Only)", got[LITERAL_OPCODE],
               0x64);
    return got;
}

static struct connection *literal_open(struct conf *conf)
{
    struct connection *c = conf_alloc(conf, sizeof(*c));
    const struct conf_peer *peer = conf_peer(conf, 0, 0);
    const struct ip_addr *drive = conf_target_ip(conf, 0, false);
    struct literal *req = LITERAL(conf, scapy_cm_req);
    struct literal *rtu = LITERAL(conf, scapy_cm_rtu);
    uint64_t random = conf_random(conf);
    const uint8_t *rep;

    conf_needs_ip(conf, 0, false);
    c->conf = conf;
    put_3(c->qpn, 0x7f0000 | (random & 0xffff));
    memcpy(c->tid, &random, sizeof(c->tid));
    memcpy(c->id, (uint8_t *)&random + 2, sizeof(c->id));
    memcpy(req->bytes + REQ_QPN, c->qpn, 3);
    memcpy(req->bytes + REQ_LOCAL_GID + 12, peer->ip4.bytes + 12, 4);
    memcpy(req->bytes + REQ_REMOTE_GID + 12, drive->bytes + 12, 4);
    memcpy(req->bytes + REQ_PRIVATE_SRC + 12, peer->ip4.bytes + 12, 4);
    memcpy(req->bytes + REQ_PRIVATE_DST + 12, drive->bytes + 12, 4);
    send_cm(c, req);
    rep = take_cm(c, "a CM REP to the literal REQ", 0x13);
    memcpy(c->drive_id, rep + LITERAL_CM, 4);
    memcpy(c->drive_qpn, rep + REP_QPN, 3);
    c->psn = get_3(rep + REP_PSN);
    conf_same(conf, "RECFMT of the REP's private data", rep + REP_PRIVATE,
              (uint8_t[]){0, 0}, 2);
    memcpy(rtu->bytes + CM_OTHER_ID, c->drive_id, 4);
    send_cm(c, rtu);
    return c;
}

static void literal_close(struct connection *c)
{
    struct literal *dreq = LITERAL(c->conf, scapy_cm_dreq);

    memcpy(dreq->bytes + CM_OTHER_ID, c->drive_id, 4);
    memcpy(dreq->bytes + DREQ_QPN, c->drive_qpn, 3);
    send_cm(c, dreq);
    take_cm(c, "a CM DREP to the literal DREQ", 0x16);
}

/* ---- The queue pair. */

static void send_roce(struct connection *c, struct literal *packet,
                      uint32_t psn)
{
    literal_to_drive(c->conf, packet);
    memcpy(packet->bytes + LITERAL_DEST_QP, c->drive_qpn, 3);
    put_3(packet->bytes + LITERAL_PSN, psn);
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
        got = literal_take(c->conf, what, LITERAL_OPCODE, &opcode, 1);
    } while (memcmp(got + LITERAL_DEST_QP, c->qpn, 3) != 0);
    return got;
}

static void acknowledge_packet(struct connection *c, const uint8_t *packet)
{
    struct literal *ack = LITERAL(c->conf, scapy_ack);

    c->msn++;
    put_3(ack->bytes + LITERAL_MSN, c->msn);
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
                       const struct literal *capsule)
{
    const uint8_t *sgl = capsule->bytes + SQE_SGL;
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
    struct literal *capsule = LITERAL(c->conf, scapy_connect);
    struct literal *data = LITERAL(c->conf, scapy_connect_data);
    const uint8_t *got;

    send_capsule(c, capsule);
    got = take_roce(c, "an RDMA READ of the Connect data", 0x0c);
    check_reth(c, got, capsule);
    c->msn++;
    put_3(data->bytes + LITERAL_MSN, c->msn);
    send_roce(c, data, get_3(got + LITERAL_PSN));
    got = take_response(c, "a response to the literal Connect", 1);
    conf_check(c->conf, got[LITERAL_EXT] != 0 || got[LITERAL_EXT + 1] != 0,
               "CNTLID is 0");
}

static void run_properties(struct connection *c)
{
    const uint8_t *got;

    send_capsule(c, LITERAL(c->conf, scapy_get_vs));
    got = take_response(c, "a response to the literal Property Get VS", 2);
    conf_equal(c->conf, "major version of VS", got[LITERAL_EXT + 2], 1);
    send_capsule(c, LITERAL(c->conf, scapy_set_cc));
    take_response(c, "a response to the literal Property Set CC", 4);
    for (unsigned int i = 0; i < TRIES; i++) {
        send_capsule(c, LITERAL(c->conf, scapy_get_csts));
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
    static const char nqn[] = "nqn.2014-08.org.nvmexpress.discovery";
    struct literal *capsule = LITERAL(c->conf, scapy_identify);
    const uint8_t *got;

    send_capsule(c, capsule);
    for (unsigned int i = 0; i < IDENTIFY_BYTES / PATH_MTU; i++) {
        got = take_roce(c, "a packet of the RDMA WRITE", opcodes[i]);
        if (i == 0) {
            check_reth(c, got, capsule);
            conf_same(c->conf, "SUBNQN", got + WRITE_DATA + IDENTIFY_SUBNQN,
                      nqn, sizeof(nqn));
        }
    }
    c->msn++;
    take_response(c, "a response to the literal Identify", 5);
}

static void literal_connection(struct conf *conf)
{
    struct connection *c = literal_open(conf);

    run_connect(c);
    run_properties(c);
    run_identify(c);
    literal_close(c);
}

static const struct conf_test tests[] = {
    CONF_TEST(
        "literal.connection", "IBTA Vol 1 9.2, 12.6; NVMe-oF 1.1 3, 7.3",
        "a connection of literal packets connects, identifies and disconnects",
        literal_connection),
};
CONF_TESTS(conf_tests_nvmf_literal, "nvmf", tests);
