/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/sequence/witness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/bth.h"
#include "net/wire/cm_msg.h"
#include "net/wire/eth.h"
#include "net/wire/icrc.h"
#include "net/wire/psn.h"
#include "net/wire/roce_ext.h"
#include "net/wire/roce_opcode.h"
#include "nvmeof/wire/opcode.h"

/* A RoCE packet, parsed without any checks. */
struct packet {
    const uint8_t *eth, *ip;
    bool is_v6;
    const uint8_t *at; /* The BTH. */
    size_t len;        /* From the BTH on, without the ICRC. */
    struct bth bth;
};

void witness_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fprintf(stderr, "sequence: ");
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    abort();
}

void witness_init(struct witness *witness, const struct native_drive *drive)
{
    witness->drive = drive;
    witness->conn_count = 0;
}

static bool packet_parse(struct packet *packet, const uint8_t *data, size_t len)
{
    const uint8_t *end = data + len;
    const uint8_t *at = data + ETH_LEN;
    uint16_t type;

    if (len < ETH_LEN + IPV4_LEN + UDP_LEN + BTH_LEN + ICRC_LEN) {
        return false;
    }
    type = get_be16(data + ETH_TYPE);
    if (type == ETHERTYPE_VLAN) {
        type = get_be16(data + ETH_TAGGED_TYPE);
        at = data + ETH_TAGGED_LEN;
    }
    packet->eth = data;
    packet->ip = at;
    packet->is_v6 = type == ETHERTYPE_IPV6;
    if (packet->is_v6) {
        at += IPV6_LEN;
    } else if (type == ETHERTYPE_IPV4) {
        at += (size_t)(at[0] & 0xf) * 4;
    } else {
        return false;
    }
    if (end - at < UDP_LEN + BTH_LEN + ICRC_LEN ||
        get_be16(at + UDP_DST_PORT) != UDP_PORT_ROCE) {
        return false;
    }
    /* The length in the headers, when it is less than that of the frame. */
    len = MIN((size_t)(end - at), (size_t)MAX(get_be16(at + UDP_LENGTH),
                                              UDP_LEN + BTH_LEN + ICRC_LEN));
    packet->at = at + UDP_LEN;
    packet->len = len - UDP_LEN - ICRC_LEN;
    return bth_parse(&packet->bth, packet->at, packet->len);
}

const struct roce_qp *witness_qp(const struct witness *witness,
                                 const struct witness_conn *conn)
{
    const struct rnic_state *rnic = &witness->drive->machine.rnic.state;
    int slot = rdma_qp_find(&rnic->objects, conn->drive_qpn);

    return slot < 0 ? NULL : &rnic->roce.qps[slot];
}

static size_t ip_len(bool is_v6)
{
    return is_v6 ? sizeof(struct ip_addr) : 4;
}

static bool goes_to(const struct witness_conn *conn,
                    const struct packet *packet)
{
    return conn->qpn == packet->bth.dest_qp && conn->is_v6 == packet->is_v6 &&
           memcmp(conn->ip, packet->ip + (packet->is_v6 ? IPV6_DST : IPV4_DST),
                  ip_len(packet->is_v6)) == 0;
}

/* The latest connection that fits and whose queue pair still exists. */
static struct witness_conn *find_connection(struct witness *witness,
                                            const struct packet *packet,
                                            uint32_t drive_qpn)
{
    for (uint32_t i = witness->conn_count; i-- > 0;) {
        struct witness_conn *conn = &witness->conns[i % WITNESS_CONNS];

        if (witness->conn_count - i > WITNESS_CONNS) {
            break;
        }
        if ((drive_qpn != 0 ? conn->drive_qpn == drive_qpn
                            : goes_to(conn, packet)) &&
            witness_qp(witness, conn) != NULL) {
            return conn;
        }
    }
    return NULL;
}

/* ---- What the drive sends. */

static void rep_seen(struct witness *witness, const struct packet *packet,
                     const struct cm_rep *rep)
{
    struct witness_conn *conn =
        find_connection(witness, packet, rep->local_qpn);
    const struct roce_qp *qp;

    if (conn != NULL && conn->drive_comm_id == rep->local_comm_id) {
        return; /* The REP was repeated. */
    }
    conn = &witness->conns[witness->conn_count++ % WITNESS_CONNS];
    memset(conn, 0, sizeof(*conn));
    conn->comm_id = rep->remote_comm_id;
    conn->drive_comm_id = rep->local_comm_id;
    conn->drive_qpn = rep->local_qpn;
    memcpy(conn->mac, packet->eth + ETH_DST, sizeof(conn->mac));
    conn->is_v6 = packet->is_v6;
    memcpy(conn->ip, packet->ip + (conn->is_v6 ? IPV6_DST : IPV4_DST),
           ip_len(conn->is_v6));
    qp = witness_qp(witness, conn);
    if (qp != NULL) {
        conn->qpn = qp->path.dest_qpn;
    }
}

static void mad_seen(struct witness *witness, const struct packet *packet)
{
    const uint8_t *at = packet->at + BTH_LEN + DETH_LEN;
    struct cm_rep rep;
    struct mad mad;

    if (packet->len < BTH_LEN + DETH_LEN + MAD_LEN ||
        !mad_parse(&mad, at, MAD_LEN)) {
        witness_fail("the drive has sent a malformed MAD");
    }
    if (mad.attribute_id == CM_REP &&
        cm_rep_parse(&rep, at + MAD_HEADER_LEN, MAD_DATA_LEN)) {
        rep_seen(witness, packet, &rep);
    }
}

static uint32_t hash_bytes(const uint8_t *data, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++) {
        h = (h ^ data[i]) * 16777619u;
    }
    return h;
}

/* The answer may have been sent before: nobody has seen what was sent while the
 * link was down. */
static void answer_seen(struct witness_conn *conn, const struct packet *packet)
{
    struct witness_answer *answer =
        &conn->answers[packet->bth.psn % WITNESS_PSNS];
    size_t header_len = roce_opcodes[packet->bth.opcode].header_len_bytes;
    const uint8_t *cqe = packet->at + header_len;
    uint32_t h;
    uint8_t cid;

    if (packet->len != header_len + NVME_CQE_LEN) {
        witness_fail("an answer has %zu bytes", packet->len - header_len);
    }
    h = hash_bytes(packet->at + BTH_LEN, packet->len - BTH_LEN);
    if (answer->is_seen && answer->psn == packet->bth.psn) {
        if (answer->hash != h) {
            witness_fail("QP %x: answer %x was sent again with other contents",
                         (unsigned int)conn->drive_qpn,
                         (unsigned int)packet->bth.psn);
        }
        return;
    }
    *answer = (struct witness_answer){true, packet->bth.psn, h};
    conn->responses++;
    cid = cqe[CQE_CID];
    if (conn->cids[cid]-- == 0) {
        witness_fail(
            "QP %x: an answer with status %x belongs to no command: CID %x",
            (unsigned int)conn->drive_qpn,
            (unsigned int)get_le16(cqe + CQE_STATUS) >> 1,
            (unsigned int)get_le16(cqe + CQE_CID));
    }
}

/* Each WRITE or READ of the drive must be inside the memory that some command
 * named. */
static void access_seen(const struct witness_conn *conn,
                        const struct packet *packet)
{
    uint32_t count = MIN(conn->sgl_count, (uint32_t)WITNESS_SGLS);
    struct reth reth;

    if (!reth_parse(&reth, packet->at + BTH_LEN, packet->len - BTH_LEN)) {
        witness_fail("the drive has sent a truncated RETH");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct witness_sgl *sgl = &conn->sgls[i];

        if (sgl->key == reth.rkey && reth.va - sgl->addr <= sgl->len_bytes &&
            reth.dma_len_bytes <= sgl->len_bytes - (reth.va - sgl->addr)) {
            return;
        }
    }
    if (conn->sgl_count <= WITNESS_SGLS) {
        witness_fail(
            "QP %x: no command asked for opcode %02x, %u bytes at %lx, key %x",
            (unsigned int)conn->drive_qpn, packet->bth.opcode,
            (unsigned int)reth.dma_len_bytes, (unsigned long)reth.va,
            (unsigned int)reth.rkey);
    }
}

void witness_from_drive(struct witness *witness, const uint8_t *data,
                        size_t len)
{
    struct witness_conn *conn;
    struct packet packet;

    if (!packet_parse(&packet, data, len)) {
        return;
    }
    if (packet.bth.dest_qp == GSI_QPN) {
        mad_seen(witness, &packet);
        return;
    }
    conn = find_connection(witness, &packet, 0);
    if (conn == NULL || !roce_opcode_is(packet.bth.opcode, ROCE_REQUEST)) {
        return;
    }
    packet.len -= packet.bth.pad_bytes;
    if (roce_opcode_is(packet.bth.opcode, ROCE_RETH)) {
        access_seen(conn, &packet);
    }
    if (roce_opcode_is(packet.bth.opcode, ROCE_SEND)) {
        answer_seen(conn, &packet);
    }
}

/* ---- What the peer sends. */

static void command_seen(struct witness_conn *conn, const uint8_t *sqe)
{
    struct witness_sgl sgl = {
        .addr = get_le64(sqe + SQE_SGL1 + SGL_ADDRESS),
        .len_bytes = get_le24(sqe + SQE_SGL1 + SGL_KEYED_LENGTH),
        .key = get_le32(sqe + SQE_SGL1 + SGL_KEYED_KEY),
    };

    conn->cids[sqe[SQE_CID]]++;
    if (conn->sgl_count < WITNESS_SGLS) {
        conn->sgls[conn->sgl_count] = sgl;
    }
    conn->sgl_count++;
}

bool witness_is_fatal(const uint8_t *data, size_t len)
{
    struct packet packet;
    struct nvme_sqe sqe;
    size_t header_len;

    if (!packet_parse(&packet, data, len)) {
        return false;
    }
    header_len = roce_opcodes[packet.bth.opcode].header_len_bytes;
    if (!roce_opcode_is(packet.bth.opcode, ROCE_SEND) ||
        packet.len < header_len + NVME_SQE_LEN) {
        return false;
    }
    nvme_sqe_parse(&sqe, packet.at + header_len);
    return (sqe.opcode == NVME_FABRICS && sqe.fctype == FABRICS_PROPERTY_SET &&
            sqe.cdw11 == PROPERTY_NSSR) ||
           (sqe.opcode == ADMIN_SET_FEATURES &&
            (sqe.cdw10 & 0xff) >= FEATURE_VENDOR_FIRST);
}

void witness_from_peer(struct witness *witness, const uint8_t *data, size_t len)
{
    struct witness_conn *conn;
    struct packet packet;
    size_t header_len;

    if (!packet_parse(&packet, data, len)) {
        return;
    }
    conn = find_connection(witness, &packet, packet.bth.dest_qp);
    if (conn == NULL) {
        return;
    }
    header_len = roce_opcodes[packet.bth.opcode].header_len_bytes;
    if (roce_opcode_is(packet.bth.opcode,
                       ROCE_WRITE | ROCE_READ_REQUEST | ROCE_ATOMIC)) {
        conn->is_mixed = true;
    } else if (roce_opcode_is(packet.bth.opcode, ROCE_SEND) &&
               roce_opcode_is(packet.bth.opcode, ROCE_STARTS) &&
               packet.len >= header_len + NVME_SQE_LEN) {
        command_seen(conn, packet.at + header_len);
    }
}
