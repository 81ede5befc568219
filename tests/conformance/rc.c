/* SPDX-License-Identifier: BSD-2-Clause */
#include "rc.h"

#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "lib/bytes.h"
#include "net/wire/bth.h"
#include "rc_iwarp.h"
#include "rc_tcp.h"

enum {
    PSN_MASK = 0xffffff,
    QUEUE_ENTRIES = 32,
    READS = 16,
    ACK_TIMEOUT = 16,
    CM_TIMEOUT = 20, /* About 4 s. */
    RETRIES = 7,
    SRC_PORT = 40000,
    CA_GUID_TOP = 0x02,
    MEMORY_KEY = 0x5eed0000,
    QPN_AGAIN = 0x800000, /* rc_reopen() uses QPNs from here on. */
};
#define MEMORY_VA UINT64_C(0x7f0000100000)

/* ---- Responding to the target's requests. */

static void send_response(struct rc *rc, const struct packet_roce *roce)
{
    struct packet_roce packet = *roce;
    uint8_t frame[FRAME_LEN_MAX];

    packet.bth.dest_qp = rc->target_qpn;
    conf_send_frame(rc->conf, rc->config.port, frame,
                    packet_roce(frame, &rc->path, &packet), 0);
}

static struct aeth ack_of(const struct rc *rc)
{
    return (struct aeth){AETH_ACK, rc->ack_credits, rc->msn};
}

static void send_ack(struct rc *rc, uint32_t psn)
{
    send_response(rc, &(struct packet_roce){
                          .bth = {.opcode = RC_ACKNOWLEDGE, .psn = psn},
                          .aeth = ack_of(rc),
                      });
}

static void send_nak(struct rc *rc, enum aeth_nak nak, uint32_t psn)
{
    send_response(rc, &(struct packet_roce){
                          .bth = {.opcode = RC_ACKNOWLEDGE, .psn = psn},
                          .aeth = {AETH_NAK, (uint8_t)nak, rc->msn},
                      });
}

/* @return NULL unless all of it is inside our memory */
static uint8_t *memory_at(struct rc *rc, uint64_t va, uint32_t rkey,
                          uint64_t len)
{
    if (rkey != rc->rkey || va < rc->va || len > RC_MEMORY ||
        va - rc->va > RC_MEMORY - len) {
        return NULL;
    }
    return rc->mem + (va - rc->va);
}

static uint8_t response_opcode(bool is_first, bool is_last)
{
    if (is_first) {
        return is_last ? RC_READ_RESPONSE_ONLY : RC_READ_RESPONSE_FIRST;
    }
    return is_last ? RC_READ_RESPONSE_LAST : RC_READ_RESPONSE_MIDDLE;
}

/* A duplicate is served again, but is no new request: requests after it stay
 * received. */
static void serve_read(struct rc *rc, const struct packet *packet,
                       bool is_duplicate)
{
    const struct reth *reth = &packet->reth;
    uint8_t *from = memory_at(rc, reth->va, reth->rkey, reth->dma_len_bytes);
    uint32_t left = reth->dma_len_bytes, psn = packet->bth.psn;
    bool is_first = true;

    if (from == NULL) {
        send_nak(rc, AETH_NAK_REMOTE_ACCESS, psn);
        return;
    }
    rc->reads++;
    if (!is_duplicate) {
        rc->msn = (rc->msn + 1) & PSN_MASK;
    }
    do {
        uint32_t len = MIN(left, rc->mtu_bytes);

        send_response(
            rc, &(struct packet_roce){
                    .bth = {.opcode = response_opcode(is_first, len == left),
                            .psn = psn},
                    .aeth = ack_of(rc),
                    .data = from,
                    .data_len = len,
                });
        from += len;
        left -= len;
        psn = (psn + 1) & PSN_MASK;
        is_first = false;
    } while (left != 0);
    if (!is_duplicate) {
        rc->epsn = psn;
    }
}

static bool take_write(struct rc *rc, const struct packet *packet)
{
    uint8_t *to;

    if (roce_opcode_is(packet->bth.opcode, ROCE_RETH)) {
        rc->write_va = packet->reth.va;
        if (memory_at(rc, packet->reth.va, packet->reth.rkey,
                      packet->reth.dma_len_bytes) == NULL) {
            return false;
        }
    }
    to = memory_at(rc, rc->write_va, rc->rkey, packet->data_len);
    if (to == NULL) {
        return false;
    }
    memcpy(to, packet->data, packet->data_len);
    rc->write_va += packet->data_len;
    return true;
}

static bool take_send(struct rc *rc, const struct packet *packet)
{
    struct rc_message *message = &rc->partial;
    uint8_t opcode = packet->bth.opcode;

    if (roce_opcode_is(opcode, ROCE_FIRST | ROCE_ONLY)) {
        message->len_bytes = 0;
    }
    if (message->len_bytes + packet->data_len > RC_MESSAGE_MAX) {
        return false;
    }
    memcpy(message->data + message->len_bytes, packet->data, packet->data_len);
    message->len_bytes += packet->data_len;
    if (roce_opcode_is(opcode, ROCE_LAST | ROCE_ONLY)) {
        message->has_invalidate = roce_opcode_is(opcode, ROCE_IETH);
        message->has_immediate = roce_opcode_is(opcode, ROCE_IMMDT);
        message->invalidate_rkey = packet->ieth_rkey;
        message->immediate = packet->immediate;
        rc->messages[rc->put++ % RC_MESSAGES] = *message;
    }
    return true;
}

static bool take_request(struct rc *rc, const struct packet *packet)
{
    uint8_t opcode = packet->bth.opcode;
    bool is_last = roce_opcode_is(opcode, ROCE_LAST | ROCE_ONLY);

    if (roce_opcode_is(opcode, ROCE_WRITE)) {
        rc->writes += is_last;
        return take_write(rc, packet);
    }
    return take_send(rc, packet);
}

static bool is_request(uint8_t opcode)
{
    return roce_opcode_is(opcode, ROCE_SEND | ROCE_WRITE | ROCE_READ_REQUEST);
}

/* Count the messages that end the connection; all but the REQ have the
 * receiver's id second. */
static void count_end(struct rc *rc, const struct packet *packet)
{
    if (packet->has_mad && packet->mad.mgmt_class == MAD_CLASS_CM &&
        packet->port == rc->config.port &&
        get_be32(packet->cm + 4) == rc->comm_id) {
        rc->dreqs += packet->mad.attribute_id == CM_DREQ;
        rc->dreps += packet->mad.attribute_id == CM_DREP;
    }
}

/* Called for every packet that comes. */
static void on_packet(void *ctx, const struct packet *packet)
{
    struct rc *rc = ctx;
    uint32_t psn = packet->bth.psn;
    uint32_t ahead = (psn - rc->epsn) & PSN_MASK;

    count_end(rc, packet);
    if (!rc->answers || !packet->has_bth || packet->damage != NULL ||
        packet->bth.dest_qp != rc->qpn || !is_request(packet->bth.opcode)) {
        return;
    }
    if (packet->bth.opcode == RC_READ_REQUEST &&
        (ahead == 0 || ahead > PSN_MASK / 2)) {
        serve_read(rc, packet, ahead != 0);
        return;
    }
    if (ahead > PSN_MASK / 2) {
        send_ack(rc, (rc->epsn - 1) & PSN_MASK);
        return;
    }
    if (ahead != 0) {
        send_nak(rc, AETH_NAK_PSN_SEQUENCE, rc->epsn);
        return;
    }
    if (!take_request(rc, packet)) {
        send_nak(rc, AETH_NAK_REMOTE_ACCESS, psn);
        return;
    }
    rc->epsn = (psn + 1) & PSN_MASK;
    if (roce_opcode_is(packet->bth.opcode, ROCE_LAST | ROCE_ONLY)) {
        rc->msn = (rc->msn + 1) & PSN_MASK;
    }
    if (packet->bth.ack_requested) {
        send_ack(rc, psn);
    }
}

/* ---- Making a connection. */

static void set_path(struct rc *rc)
{
    struct conf *conf = rc->conf;
    struct conf_peer *peer = conf_peer(conf, rc->config.peer, rc->config.port);
    bool is_v6 = rc->config.is_v6;

    conf_needs_ip(conf, rc->config.port, is_v6);
    rc->path = (struct packet_path){
        .src_mac = peer->mac,
        .dst_mac = conf->target.ports[rc->config.port].mac,
        .src = is_v6 ? peer->ip6 : peer->ip4,
        .dst = *conf_target_ip(conf, rc->config.port, is_v6),
        .vlan = peer->vlan,
        .priority = peer->priority,
    };
}

struct rc *rc_new(struct conf *conf, const struct rc_config *config)
{
    struct rc *rc = conf_alloc(conf, sizeof(*rc));
    unsigned int number = conf->num_rcs++;

    rc->conf = conf;
    rc->config = *config;
    rc->config.service =
        config->service != 0 ? config->service : (uint16_t)RC_SERVICE_NVME;
    set_path(rc);
    /* Different in every test, because a target in real time remembers QPNs. */
    rc->qpn = (0x100 + conf->generation * 64 + number) & PSN_MASK;
    rc->comm_id = (uint32_t)(conf_random(conf) & 0x7fff0000) + number + 1;
    rc->tid = conf_random(conf);
    rc->epsn = config->has_psn ? config->starting_psn
                               : (uint32_t)conf_random(conf) & PSN_MASK;
    rc->config.path_mtu =
        config->path_mtu != 0 ? config->path_mtu : conf->target.path_mtu;
    rc->mtu_bytes = ib_mtu_bytes(rc->config.path_mtu);
    rc->answers = !config->is_mute;
    rc->ack_credits = AETH_CREDIT_UNLIMITED;
    rc->va = MEMORY_VA + (uint64_t)number * RC_MEMORY;
    rc->rkey = MEMORY_KEY + number;
    rc->mem = conf_alloc(conf, RC_MEMORY);
    rc->cid = 1;
    conf_listen(conf, on_packet, rc);
    return rc;
}

static uint8_t or_default(uint8_t value, uint8_t fallback)
{
    return value != 0 ? value : fallback;
}

void rc_make_nvme_private(const struct rc *rc, uint8_t *data)
{
    const struct rc_config *config = &rc->config;
    const struct nvme_rdma_req nvme = {
        .qid = config->qid,
        .hrqsize =
            config->hrqsize != 0 ? config->hrqsize : (uint16_t)QUEUE_ENTRIES,
        .hsqsize = config->hsqsize != 0 ? config->hsqsize
                                        : (uint16_t)(QUEUE_ENTRIES - 1),
        .cntlid = config->qid != 0 ? config->cntlid : (uint16_t)0,
    };

    nvme_rdma_req_emit(data, &nvme);
}

static size_t make_private(const struct rc *rc, uint8_t *data)
{
    struct rdma_ip_cm ip_cm = {
        .src = rc->path.src,
        .dst = rc->path.dst,
        .src_port = (uint16_t)(SRC_PORT + (rc->qpn & 0xfff)),
    };

    memset(data, 0, CM_REQ_PRIVATE_LEN);
    rdma_ip_cm_emit(&ip_cm, data);
    if (rc->config.service != RC_SERVICE_NVME) {
        return RDMA_IP_CM_LEN;
    }
    rc_make_nvme_private(rc, data + RDMA_IP_CM_LEN);
    return RDMA_IP_CM_LEN + NVME_RDMA_REQ_LEN;
}

void rc_make_req(const struct rc *rc, struct cm_req *req, uint8_t *private_data)
{
    const struct rc_config *config = &rc->config;

    *req = (struct cm_req){
        .service_id = rdma_ip_cm_service_id(config->service),
        .local_ca_guid = (uint64_t)CA_GUID_TOP << 56 | rc->qpn,
        .local_comm_id = rc->comm_id,
        .local_qpn = rc->qpn,
        .starting_psn = rc->epsn,
        .pkey = BTH_PKEY_DEFAULT,
        .local_lid = 0xffff,
        .remote_lid = 0xffff,
        .local_gid = rc->path.src,
        .remote_gid = rc->path.dst,
        .responder_resources = or_default(config->responder_resources, READS),
        .initiator_depth = or_default(config->initiator_depth, READS),
        .remote_cm_timeout = CM_TIMEOUT,
        .local_cm_timeout = CM_TIMEOUT,
        .retry_count = or_default(config->retry_count, RETRIES),
        .rnr_retry_count = or_default(config->rnr_retry, RETRIES),
        .max_cm_retries = 15,
        .path_mtu = config->path_mtu,
        .packet_rate = 17,
        .hop_limit = 64,
        .subnet_local = true,
        .local_ack_timeout = or_default(config->ack_timeout, ACK_TIMEOUT),
        .private_data = private_data,
    };
    make_private(rc, private_data);
    req->private_len = CM_REQ_PRIVATE_LEN;
}

/* ---- CM messages. */

void rc_send_mad(struct rc *rc, enum cm_attribute attribute,
                 const uint8_t *body)
{
    struct mad mad = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = (uint16_t)attribute,
        .transaction_id = rc->tid,
    };
    uint8_t frame[FRAME_LEN_MAX], payload[MAD_LEN];
    struct packet_roce roce = {
        .bth = {.opcode = UD_SEND_ONLY, .dest_qp = GSI_QPN},
        .deth = {.qkey = GSI_QKEY, .src_qp = GSI_QPN},
        .data = payload,
        .data_len = MAD_LEN,
    };

    mad_emit(&mad, payload);
    memcpy(payload + MAD_HEADER_LEN, body, MAD_DATA_LEN);
    conf_send_frame(rc->conf, rc->config.port, frame,
                    packet_roce(frame, &rc->path, &roce), 0);
}

void rc_send_req(struct rc *rc, const struct cm_req *req)
{
    uint8_t body[MAD_DATA_LEN];

    cm_req_emit(req, body);
    rc_send_mad(rc, CM_REQ, body);
}

void rc_send_rtu(struct rc *rc)
{
    struct cm_rtu rtu = {
        .local_comm_id = rc->comm_id,
        .remote_comm_id = rc->target_comm_id,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_rtu_emit(&rtu, body);
    rc_send_mad(rc, CM_RTU, body);
}

void rc_send_dreq(struct rc *rc)
{
    struct cm_dreq dreq = {
        .local_comm_id = rc->comm_id,
        .remote_comm_id = rc->target_comm_id,
        .remote_qpn = rc->target_qpn,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_dreq_emit(&dreq, body);
    rc_send_mad(rc, CM_DREQ, body);
}

void rc_send_drep(struct rc *rc)
{
    struct cm_drep drep = {
        .local_comm_id = rc->comm_id,
        .remote_comm_id = rc->target_comm_id,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_drep_emit(&drep, body);
    rc_send_mad(rc, CM_DREP, body);
}

void rc_send_rej(struct rc *rc, enum cm_answered message, uint16_t reason)
{
    struct cm_rej rej = {
        .local_comm_id = rc->comm_id,
        .remote_comm_id = rc->target_comm_id,
        .reason = reason,
        .message = (uint8_t)message,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_rej_emit(&rej, body);
    rc_send_mad(rc, CM_REJ, body);
}

struct cm_wanted {
    const struct rc *rc;
    uint16_t attribute;
};

/* All but the REQ have the receiver's id second. */
static bool is_cm(const struct packet *packet, const void *ctx)
{
    const struct cm_wanted *wanted = ctx;

    return packet->has_mad && packet->mad.mgmt_class == MAD_CLASS_CM &&
           packet->mad.attribute_id == wanted->attribute &&
           packet->port == wanted->rc->config.port &&
           get_be32(packet->cm + 4) == wanted->rc->comm_id;
}

const struct packet *rc_take_cm_within(struct rc *rc,
                                       enum cm_attribute attribute,
                                       uint64_t timeout_us)
{
    struct cm_wanted wanted = {rc, (uint16_t)attribute};

    return conf_take_within(rc->conf, is_cm, &wanted, timeout_us);
}

const struct packet *rc_take_cm(struct rc *rc, enum cm_attribute attribute)
{
    static const char *const names[] = {"a CM REQ", "a CM MRA", "a CM REJ",
                                        "a CM REP", "a CM RTU", "a CM DREQ",
                                        "a CM DREP"};
    struct cm_wanted wanted = {rc, (uint16_t)attribute};

    return conf_take(rc->conf, names[attribute - CM_REQ], is_cm, &wanted);
}

void rc_expect_no_cm(struct rc *rc, enum cm_attribute attribute,
                     uint64_t for_us)
{
    struct cm_wanted wanted = {rc, (uint16_t)attribute};

    conf_expect_none(rc->conf, "CM message of that kind", is_cm, &wanted,
                     for_us);
}

static void take_rep(struct rc *rc, const struct packet *packet)
{
    conf_check(rc->conf, cm_rep_parse(&rc->rep, packet->cm, MAD_DATA_LEN),
               "the REP cannot be parsed");
    rc->target_comm_id = rc->rep.local_comm_id;
    rc->target_qpn = rc->rep.local_qpn;
    rc->psn = rc->rep.starting_psn;
    memcpy(rc->rep_private, rc->rep.private_data, CM_REP_PRIVATE_LEN);
    rc->rep.private_data = rc->rep_private;
}

void rc_take_rep(struct rc *rc)
{
    take_rep(rc, rc_take_cm(rc, CM_REP));
}

static void take_rej(const struct rc *rc, const struct packet *packet,
                     struct cm_rej *rej)
{
    conf_check(rc->conf, cm_rej_parse(rej, packet->cm, MAD_DATA_LEN),
               "the REJ cannot be parsed");
}

void rc_take_rej(struct rc *rc, struct cm_rej *rej)
{
    take_rej(rc, rc_take_cm(rc, CM_REJ), rej);
}

static bool is_answer(const struct packet *packet, const void *ctx)
{
    struct cm_wanted wanted = {ctx, CM_REP};

    if (is_cm(packet, &wanted)) {
        return true;
    }
    wanted.attribute = CM_REJ;
    return is_cm(packet, &wanted);
}

bool rc_take_answer(struct rc *rc, struct cm_rej *rej)
{
    const struct packet *packet =
        conf_take(rc->conf, "a CM REP or REJ", is_answer, rc);

    if (packet->mad.attribute_id == CM_REJ) {
        take_rej(rc, packet, rej);
        return false;
    }
    take_rep(rc, packet);
    return true;
}

struct rc *rc_open(struct conf *conf, const struct rc_config *config)
{
    struct rc *rc = rc_new(conf, config);
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;

    if (rc_is_tcp(conf)) {
        rc_tcp_open(rc);
        return rc;
    }
    if (rc_is_iwarp(conf)) {
        rc_iwarp_open(rc);
        return rc;
    }
    rc_make_req(rc, &req, private_data);
    rc_send_req(rc, &req);
    rc_take_rep(rc);
    rc_send_rtu(rc);
    return rc;
}

bool rc_reopen(struct rc *rc)
{
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_rej rej;
    struct cm_req req;

    rc->qpn = QPN_AGAIN | ((uint32_t)conf_random(rc->conf) & (QPN_AGAIN - 1));
    rc->comm_id = (uint32_t)conf_random(rc->conf) & 0x7fffffff;
    rc->tid = conf_random(rc->conf);
    rc->epsn = (uint32_t)conf_random(rc->conf) & PSN_MASK;
    rc->msn = 0;
    rc->reads = rc->writes = 0;
    rc->dreqs = rc->dreps = 0;
    rc->put = rc->get = 0;
    rc_make_req(rc, &req, private_data);
    rc_send_req(rc, &req);
    if (!rc_take_answer(rc, &rej)) {
        return false;
    }
    rc_send_rtu(rc);
    return true;
}

void rc_close(struct rc *rc)
{
    if (rc->over != NULL) {
        rc->over_ops->close(rc);
        return;
    }
    rc_send_dreq(rc);
    rc_take_cm(rc, CM_DREP);
}

/* ---- Packets. */

void rc_send_packet(struct rc *rc, const struct packet_roce *packet)
{
    struct packet_roce roce = *packet;
    uint8_t frame[FRAME_LEN_MAX];

    if (roce.bth.dest_qp == 0) {
        roce.bth.dest_qp = rc->target_qpn;
    }
    conf_send_frame(rc->conf, rc->config.port, frame,
                    packet_roce(frame, &rc->path, &roce), 0);
}

void rc_send(struct rc *rc, uint8_t opcode, const void *data, size_t len_bytes,
             bool ack_requested)
{
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = opcode,
                                   .psn = rc->psn,
                                   .ack_requested = ack_requested},
                           .data = data,
                           .data_len = len_bytes,
                       });
    rc->psn = (rc->psn + 1) & PSN_MASK;
}

static uint8_t send_opcode(bool is_first, bool is_last)
{
    if (is_first) {
        return is_last ? RC_SEND_ONLY : RC_SEND_FIRST;
    }
    return is_last ? RC_SEND_LAST : RC_SEND_MIDDLE;
}

void rc_send_message(struct rc *rc, const void *data, size_t len_bytes)
{
    const uint8_t *from = data;
    bool is_first = true;

    if (rc->over != NULL) {
        rc->over_ops->send(rc, data, len_bytes);
        return;
    }
    do {
        size_t len = MIN(len_bytes, (size_t)rc->mtu_bytes);

        rc_send(rc, send_opcode(is_first, len == len_bytes), from, len,
                len == len_bytes);
        from += len;
        len_bytes -= len;
        is_first = false;
    } while (len_bytes != 0);
}

static bool is_for_qp(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.dest_qp == rc->qpn &&
           packet->port == rc->config.port;
}

struct opcode_wanted {
    const struct rc *rc;
    uint8_t opcode;
};

static bool is_opcode(const struct packet *packet, const void *ctx)
{
    const struct opcode_wanted *wanted = ctx;

    return is_for_qp(packet, wanted->rc) &&
           packet->bth.opcode == wanted->opcode;
}

const struct packet *rc_take(struct rc *rc, const char *what)
{
    return conf_take(rc->conf, what, is_for_qp, rc);
}

const struct packet *rc_take_within(struct rc *rc, uint64_t timeout_us)
{
    return conf_take_within(rc->conf, is_for_qp, rc, timeout_us);
}

const struct packet *rc_take_opcode(struct rc *rc, uint8_t opcode)
{
    struct opcode_wanted wanted = {rc, opcode};
    char what[32];

    snprintf(what, sizeof(what), "a packet with opcode %02x", opcode);
    return conf_take(rc->conf, what, is_opcode, &wanted);
}

static void expect_aeth(struct rc *rc, enum aeth_kind kind, int value,
                        uint32_t psn)
{
    const struct packet *packet = rc_take_opcode(rc, RC_ACKNOWLEDGE);

    conf_equal(rc->conf, "AETH kind", packet->aeth.kind, kind);
    if (value >= 0) {
        conf_equal(rc->conf, "NAK code", packet->aeth.value, (uint64_t)value);
    }
    conf_equal(rc->conf, "PSN of the acknowledgement", packet->bth.psn, psn);
}

void rc_expect_ack(struct rc *rc, uint32_t psn)
{
    expect_aeth(rc, AETH_ACK, -1, psn & PSN_MASK);
}

void rc_expect_nak(struct rc *rc, enum aeth_nak nak, uint32_t psn)
{
    expect_aeth(rc, AETH_NAK, (int)nak, psn & PSN_MASK);
}

void rc_expect_rnr(struct rc *rc, uint32_t psn)
{
    expect_aeth(rc, AETH_RNR_NAK, -1, psn & PSN_MASK);
}

void rc_expect_silence(struct rc *rc, uint64_t for_us)
{
    conf_expect_none(rc->conf, "packet to our queue pair", is_for_qp, rc,
                     for_us);
}

static bool has_message(void *ctx)
{
    const struct rc *rc = ctx;

    return rc->get != rc->put;
}

const struct rc_message *rc_take_message_within(struct rc *rc,
                                                uint64_t timeout_us)
{
    if (rc->over != NULL ? !rc->over_ops->wait(rc, timeout_us)
                         : !conf_look(rc->conf, has_message, rc, timeout_us)) {
        return NULL;
    }
    return &rc->messages[rc->get++ % RC_MESSAGES];
}

const struct rc_message *rc_take_message(struct rc *rc, const char *what)
{
    uint64_t timeout_us = conf_answer_us(rc->conf);

    conf_check(rc->conf,
               rc->over != NULL
                   ? rc->over_ops->wait(rc, timeout_us)
                   : conf_wait(rc->conf, has_message, rc, timeout_us),
               "expected %s: no message came", what);
    return &rc->messages[rc->get++ % RC_MESSAGES];
}

/* ---- NVMe-oF. */

struct sgl rc_keyed(const struct rc *rc, uint32_t offset, uint32_t len_bytes)
{
    return (struct sgl){
        .kind = SGL_KEYED,
        .address = rc->va + offset,
        .len_bytes = len_bytes,
        .key = rc->rkey,
    };
}

uint16_t rc_send_capsule(struct rc *rc, const struct nvme_sqe *sqe,
                         const struct sgl *sgl, const void *data,
                         size_t len_bytes)
{
    /* Hosts send this: Linux nvmet checks the SGL of commands without data,
     * too. */
    static const struct sgl nothing = {.kind = SGL_KEYED};
    uint8_t capsule[NVME_SQE_LEN + 8192] = {0};
    struct nvme_sqe entry = *sqe;

    ASSERT(len_bytes <= sizeof(capsule) - NVME_SQE_LEN);
    if (entry.cid == 0) {
        entry.cid = rc->cid++;
    }
    if (entry.psdt == 0) {
        entry.psdt = SQE_PSDT_SGL;
    }
    nvme_sqe_emit(capsule, &entry);
    sgl_emit(capsule + SQE_SGL1, sgl != NULL ? sgl : &nothing);
    if (len_bytes != 0) {
        memcpy(capsule + NVME_SQE_LEN, data, len_bytes);
    }
    rc_send_message(rc, capsule, NVME_SQE_LEN + len_bytes);
    return entry.cid;
}

void rc_take_response(struct rc *rc, uint16_t cid, struct nvme_cqe *cqe)
{
    const struct rc_message *message =
        rc_take_message(rc, "a response capsule");

    conf_equal(rc->conf, "length of the response capsule", message->len_bytes,
               NVME_CQE_LEN);
    nvme_cqe_parse(cqe, message->data);
    conf_equal(rc->conf, "CID of the response", cqe->cid, cid);
    conf_note(rc->conf, "response: cid %u status %03xh%s dw0 %08x sqhd %u",
              cqe->cid, cqe->status & NVME_SC_MASK,
              cqe->status & NVME_STATUS_DNR ? " DNR" : "", cqe->dw0, cqe->sqhd);
}

uint16_t rc_command(struct rc *rc, const struct nvme_sqe *sqe,
                    const struct sgl *sgl, const void *data, size_t len_bytes,
                    struct nvme_cqe *cqe)
{
    struct nvme_cqe own;
    struct nvme_cqe *to = cqe != NULL ? cqe : &own;

    rc_take_response(rc, rc_send_capsule(rc, sqe, sgl, data, len_bytes), to);
    return to->status;
}

void rc_make_connect(const struct rc *rc, struct connect_command *command,
                     struct connect_data *data)
{
    const struct rc_config *config = &rc->config;

    *command = (struct connect_command){
        .qid = config->qid,
        .sqsize = config->hsqsize != 0 ? config->hsqsize
                                       : (uint16_t)(QUEUE_ENTRIES - 1),
        .has_sq_flow_control = true,
    };
    *data = (struct connect_data){
        .hostid = {[0] = 0xcf, [15] = config->host},
        .cntlid =
            config->qid != 0 ? config->cntlid : (uint16_t)NVME_CNTLID_DYNAMIC,
        .hostnqn = "nqn.2026-01.net.example:conform-rc",
    };
    if (config->host != 0) {
        snprintf(data->hostnqn, sizeof(data->hostnqn),
                 "nqn.2026-01.net.example:conform-rc-%u", config->host);
    }
    memcpy(data->subnqn, conf_target(rc->conf)->nqn, sizeof(data->subnqn));
}

uint16_t rc_send_connect(struct rc *rc)
{
    struct sgl sgl = rc_keyed(rc, 0, CONNECT_DATA_LEN);
    struct connect_command command;
    struct connect_data data;
    struct nvme_sqe sqe = {0};

    rc_make_connect(rc, &command, &data);
    connect_data_emit(rc->mem, &data);
    connect_command_build(&sqe, &command);
    return rc_send_capsule(rc, &sqe, &sgl, NULL, 0);
}

void rc_connect(struct rc *rc)
{
    struct nvme_cqe cqe;

    rc_take_response(rc, rc_send_connect(rc), &cqe);
    conf_status(rc->conf, "Connect", cqe.status, NVME_SC_SUCCESS);
    rc->config.cntlid = (uint16_t)cqe.dw0;
}

struct rc *rc_open_nvme(struct conf *conf, const struct rc_config *config)
{
    struct rc *rc = rc_open(conf, config);

    rc_connect(rc);
    return rc;
}

static uint32_t get_csts(struct rc *rc)
{
    struct property_command get = {.size_bytes = 4, .offset = PROPERTY_CSTS};
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_GET};
    struct nvme_cqe cqe;

    property_command_build(&sqe, &get);
    conf_status(rc->conf, "Property Get CSTS",
                rc_command(rc, &sqe, NULL, NULL, 0, &cqe), NVME_SC_SUCCESS);
    return cqe.dw0;
}

struct rc *rc_open_controller(struct conf *conf, const struct rc_config *config)
{
    struct rc *rc = rc_open_nvme(conf, config);
    struct property_command set = {
        .size_bytes = 4,
        .offset = PROPERTY_CC,
        .value = CC_EN | 6u << CC_IOSQES_SHIFT | 4u << CC_IOCQES_SHIFT,
    };
    struct nvme_sqe sqe = {.fctype = FABRICS_PROPERTY_SET};

    property_command_build(&sqe, &set);
    conf_status(conf, "Property Set CC",
                rc_command(rc, &sqe, NULL, NULL, 0, NULL), NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < 100; i++) {
        if (get_csts(rc) & CSTS_RDY) {
            return rc;
        }
        conf_pass(conf, 10000);
    }
    conf_fail(conf, "CSTS.RDY did not become 1 within a second");
}
