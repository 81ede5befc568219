/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/sequence/peer.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/wire/arp.h"
#include "net/wire/cm_msg.h"
#include "net/wire/eth.h"
#include "net/wire/icrc.h"
#include "net/wire/psn.h"
#include "net/wire/rdma_ip_cm.h"
#include "net/wire/roce_opcode.h"
#include "nvmeof/wire/rdma_private.h"

enum { FIRST_COMM_ID = 0x51000000, UDP_SOURCE_PORT = 0xc123 };

/* ---- Sending frames. */

/* The offsets of a frame's layers; 0: the frame has no such layer. */
struct layout {
    size_t at[PEER_LAYERS];
    size_t len;
    bool is_v6;
};

static void remember_frame(struct peer *peer, const uint8_t *data, size_t len)
{
    struct peer_frame *frame = &peer->sent[peer->sent_count++ % PEER_SENT];

    frame->len_bytes = (uint16_t)len;
    memcpy(frame->data, data, len);
}

static void put_on_wire(struct peer *peer, const uint8_t *data, size_t len)
{
    const struct frame_rx frame = {
        .data = data,
        .len_bytes = (uint32_t)len,
        .flags = len < 60 ? FRAME_RUNT : 0,
    };

    if (witness_is_fatal(data, len)) {
        return;
    }
    witness_from_peer(peer->witness, data, len);
    hw_port_rx(&peer->drive->machine.ports[PEER_PORT], &frame, 1);
}

static void bend_bytes(uint8_t *at, const struct peer_bend *bend)
{
    switch (bend->width) {
    case 0:
        at[0] ^= (uint8_t)bend->value;
        break;
    case 1:
        at[0] = (uint8_t)bend->value;
        break;
    case 2:
        put_be16(at, (uint16_t)bend->value);
        break;
    default:
        put_be32(at, bend->value);
        break;
    }
}

static void apply_bend(uint8_t *buf, struct layout *layout,
                       const struct peer_bend *bend)
{
    size_t at = layout->at[bend->layer] + bend->offset;

    if (bend->layer == PEER_LAYER_LENGTH) {
        int64_t len = (int64_t)layout->len + (int16_t)bend->value;

        layout->len = (size_t)MAX(14, MIN(len, PEER_FRAME_MAX));
    } else if (at + MAX(1, bend->width) <= layout->len) {
        bend_bytes(buf + at, bend);
    }
}

static void apply_bends(struct peer *peer, uint8_t *buf, struct layout *layout,
                        bool is_late)
{
    for (unsigned int i = 0; i < peer->bend_count; i++) {
        if (peer->bends[i].is_late == is_late) {
            apply_bend(buf, layout, &peer->bends[i]);
        }
    }
}

static void put_ip_checksum(uint8_t *ip)
{
    uint32_t sum = 0;

    put_be16(ip + IPV4_CHECKSUM, 0);
    for (unsigned int i = 0; i < IPV4_LEN; i += 2) {
        sum += get_be16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    put_be16(ip + IPV4_CHECKSUM, (uint16_t) ~(sum + (sum >> 16)));
}

static void put_icrc(uint8_t *buf, const struct layout *layout)
{
    const uint8_t *ip = buf + layout->at[PEER_LAYER_IP];
    const uint8_t *after = buf + layout->at[PEER_LAYER_EXT];
    uint8_t *at = buf + layout->len - ICRC_LEN;
    uint32_t icrc = layout->is_v6 ? icrc_begin_ipv6(ip) : icrc_begin_ipv4(ip);

    if (at >= after) {
        icrc_emit(icrc_add(icrc, after, (size_t)(at - after)), at);
    }
}

/* Apply the bends, complete the checksums, and send the frame. */
static void finish_frame(struct peer *peer, uint8_t *buf, struct layout *layout,
                         bool is_habit)
{
    bool is_roce = layout->at[PEER_LAYER_BTH] != 0;

    if (!is_habit) {
        apply_bends(peer, buf, layout, false);
    }
    if (is_roce && layout->len >= layout->at[PEER_LAYER_EXT] + ICRC_LEN) {
        if (!layout->is_v6) {
            put_ip_checksum(buf + ETH_LEN);
        }
        put_icrc(buf, layout);
    }
    if (!is_habit) {
        apply_bends(peer, buf, layout, true);
        peer->bend_count = 0;
        remember_frame(peer, buf, layout->len);
    }
    put_on_wire(peer, buf, layout->len);
}

void peer_send_raw(struct peer *peer, const uint8_t *data, size_t len)
{
    struct layout layout = {.len = MIN(len, (size_t)PEER_FRAME_MAX)};
    uint8_t buf[PEER_FRAME_MAX] = {0};

    memcpy(buf, data, layout.len);
    finish_frame(peer, buf, &layout, false);
}

void peer_send_again(struct peer *peer, uint8_t age)
{
    if (peer->sent_count > age % PEER_SENT) {
        const struct peer_frame *frame =
            &peer->sent[(peer->sent_count - 1 - age % PEER_SENT) % PEER_SENT];

        put_on_wire(peer, frame->data, frame->len_bytes);
    }
}

/* The addresses and ports of a frame. */
struct route {
    const uint8_t *mac;
    bool is_v6;
    struct ip_addr src;
};

static void begin_headers(const struct peer *peer, const struct route *route,
                          uint8_t *buf, struct layout *layout, size_t udp_len)
{
    struct eth eth = {
        .type = route->is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4,
    };
    struct udp udp = {
        .src_port = UDP_SOURCE_PORT,
        .dst_port = UDP_PORT_ROCE,
        .length_bytes = (uint16_t)udp_len,
    };
    size_t ip_len = route->is_v6 ? IPV6_LEN : IPV4_LEN;

    memcpy(eth.dst.bytes, peer->drive->identity.mac[PEER_PORT], 6);
    memcpy(eth.src.bytes, route->mac, 6);
    eth_emit(&eth, buf);
    if (route->is_v6) {
        ipv6_emit(&(struct ipv6){.src = route->src,
                                 .dst = peer->drive_ip[1],
                                 .payload_len_bytes = (uint16_t)udp_len,
                                 .next_header = IP_PROTOCOL_UDP,
                                 .hop_limit = 64},
                  buf + ETH_LEN);
    } else {
        ipv4_emit(
            &(struct ipv4){.src = route->src,
                           .dst = peer->drive_ip[0],
                           .total_len_bytes = (uint16_t)(IPV4_LEN + udp_len),
                           .ttl = 64,
                           .protocol = IP_PROTOCOL_UDP,
                           .dont_fragment = true},
            buf + ETH_LEN);
    }
    udp_emit(&udp, buf + ETH_LEN + ip_len);
    layout->is_v6 = route->is_v6;
    layout->at[PEER_LAYER_IP] = ETH_LEN;
    layout->at[PEER_LAYER_UDP] = ETH_LEN + ip_len;
    layout->at[PEER_LAYER_BTH] = ETH_LEN + ip_len + UDP_LEN;
    layout->at[PEER_LAYER_EXT] = layout->at[PEER_LAYER_BTH] + BTH_LEN;
    layout->len = layout->at[PEER_LAYER_UDP] + udp_len;
}

static void send_roce(struct peer *peer, const struct route *route,
                      const struct bth *bth, const uint8_t *ext, size_t ext_len,
                      const uint8_t *payload, size_t len, bool is_habit)
{
    struct layout layout = {0};
    uint8_t buf[PEER_FRAME_MAX] = {0};
    size_t pad = -len & 3;
    struct bth padded = *bth;

    ASSERT(ETH_LEN + IPV6_LEN + UDP_LEN + BTH_LEN + ext_len + len + pad +
               ICRC_LEN <=
           sizeof(buf));
    begin_headers(peer, route, buf, &layout,
                  UDP_LEN + BTH_LEN + ext_len + len + pad + ICRC_LEN);
    padded.pad_bytes = (uint8_t)pad;
    bth_emit(&padded, buf + layout.at[PEER_LAYER_BTH]);
    if (ext_len != 0) {
        memcpy(buf + layout.at[PEER_LAYER_EXT], ext, ext_len);
    }
    layout.at[PEER_LAYER_PAYLOAD] = layout.at[PEER_LAYER_EXT] + ext_len;
    layout.at[PEER_LAYER_MAD] = layout.at[PEER_LAYER_PAYLOAD] + MAD_HEADER_LEN;
    if (len != 0) {
        memcpy(buf + layout.at[PEER_LAYER_PAYLOAD], payload, len);
    }
    finish_frame(peer, buf, &layout, is_habit);
}

static struct route own_route(const struct peer *peer)
{
    return (struct route){peer->mac, peer->is_v6, peer->ip[peer->is_v6]};
}

void peer_send_packet(struct peer *peer, const struct bth *bth,
                      const uint8_t *ext, size_t ext_len,
                      const uint8_t *payload, size_t len)
{
    struct route route = own_route(peer);

    send_roce(peer, &route, bth, ext, ext_len, payload, len, false);
}

/* ---- CM messages. */

static void send_mad(struct peer *peer, const struct route *route,
                     uint16_t attribute, uint64_t tid, const uint8_t *msg,
                     bool is_habit)
{
    struct bth bth = {
        .opcode = UD_SEND_ONLY,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = GSI_QPN,
    };
    struct mad mad = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = attribute,
        .transaction_id = tid,
    };
    uint8_t deth[DETH_LEN], buf[MAD_LEN];

    deth_emit(&(struct deth){.qkey = GSI_QKEY, .src_qp = GSI_QPN}, deth);
    mad_emit(&mad, buf);
    memcpy(buf + MAD_HEADER_LEN, msg, MAD_DATA_LEN);
    send_roce(peer, route, &bth, deth, sizeof(deth), buf, sizeof(buf),
              is_habit);
}

void peer_send_mad(struct peer *peer, uint16_t attribute, const uint8_t *msg)
{
    struct route route = own_route(peer);

    send_mad(peer, &route, attribute, ++peer->tid, msg, false);
}

void peer_send_req(struct peer *peer, struct peer_queue *queue,
                   const struct peer_req *req)
{
    struct rdma_ip_cm ip_cm = {
        .src = peer->ip[peer->is_v6],
        .dst = peer->drive_ip[peer->is_v6],
        .src_port = (uint16_t)(40000 + queue->index),
    };
    struct nvme_rdma_req private = {
        .qid = req->qid,
        .hrqsize = req->hrqsize,
        .hsqsize = req->hsqsize,
        .cntlid = req->cntlid,
    };
    uint8_t private_data[RDMA_IP_CM_LEN + NVME_RDMA_REQ_LEN];
    uint8_t msg[MAD_DATA_LEN];
    struct cm_req cm = {
        .service_id = rdma_ip_cm_service_id(DRIVE_SERVICE_PORT),
        .local_ca_guid = UINT64_C(0x0200000000000000) | PEER_NUMBER,
        .pkey = BTH_PKEY_DEFAULT,
        .local_lid = 0xffff,
        .remote_lid = 0xffff,
        .local_gid = peer->ip[peer->is_v6],
        .remote_gid = peer->drive_ip[peer->is_v6],
        .responder_resources = 4,
        .initiator_depth = 4,
        .remote_cm_timeout = 16,
        .local_cm_timeout = 16,
        .retry_count = req->retries,
        .rnr_retry_count = 7,
        .max_cm_retries = 3,
        .path_mtu = IB_MTU_1024,
        .hop_limit = 64,
        .local_ack_timeout = req->ack_timeout,
        .private_data = private_data,
        .private_len = sizeof(private_data),
    };

    if (!req->keeps_qpn || queue->qpn == 0) {
        /* A queue pair number that no other queue of the peer has. */
        queue->qpn = PEER_FIRST_QPN + queue->index +
                     PEER_QUEUES * (peer->comm_ids % 0x1000);
    }
    if (!req->keeps_comm_id || queue->comm_id == 0) {
        queue->comm_id = FIRST_COMM_ID + peer->comm_ids++;
    }
    queue->state = PEER_QUEUE_ASKED;
    queue->qid = req->qid;
    queue->depth = (uint16_t)(req->hsqsize + 1);
    queue->start_psn = psn_add(0xfffff0, 3 * peer->comm_ids);
    queue->responses = 0;
    queue->reads = 0;
    queue->msn = 0;
    cm.local_comm_id = queue->comm_id;
    cm.local_qpn = queue->qpn;
    cm.starting_psn = queue->start_psn;
    rdma_ip_cm_emit(&ip_cm, private_data);
    nvme_rdma_req_emit(private_data + RDMA_IP_CM_LEN, &private);
    cm_req_emit(&cm, msg);
    peer_send_mad(peer, CM_REQ, msg);
}

static void send_dreq(struct peer *peer, const struct route *route,
                      const struct cm_dreq *dreq)
{
    uint8_t msg[MAD_DATA_LEN];

    cm_dreq_emit(dreq, msg);
    send_mad(peer, route, CM_DREQ, ++peer->tid, msg, true);
}

void peer_send_dreq_as(struct peer *peer, const struct witness_conn *conn)
{
    const struct cm_dreq dreq = {
        .local_comm_id = conn->comm_id,
        .remote_comm_id = conn->drive_comm_id,
        .remote_qpn = conn->drive_qpn,
    };
    struct route route = {
        .mac = conn->mac,
        .is_v6 = conn->is_v6,
        .src = conn->is_v6 ? ip_addr_from_bytes(conn->ip)
                           : ip_addr_from_v4(get_be32(conn->ip)),
    };

    send_dreq(peer, &route, &dreq);
}

/* ---- Packets of a connection. */

static struct bth bth_of(const struct peer_queue *queue, uint8_t opcode,
                         uint32_t psn)
{
    return (struct bth){
        .opcode = opcode,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = queue->drive_qpn,
        .psn = psn,
    };
}

void peer_send_capsule(struct peer *peer, struct peer_queue *queue,
                       const uint8_t *capsule, size_t len)
{
    for (size_t at = 0; at < len; at += PEER_PATH_MTU) {
        size_t part = MIN(len - at, (size_t)PEER_PATH_MTU);
        bool is_first = at == 0, is_last = at + part == len;
        uint8_t opcode = is_first ? (is_last ? RC_SEND_ONLY : RC_SEND_FIRST)
                                  : (is_last ? RC_SEND_LAST : RC_SEND_MIDDLE);
        struct bth bth = bth_of(queue, opcode, queue->send_psn);

        bth.ack_requested = is_last;
        queue->send_psn = psn_add(queue->send_psn, 1);
        peer_send_packet(peer, &bth, NULL, 0, capsule + at, part);
    }
}

static void send_aeth(struct peer *peer, const struct peer_queue *queue,
                      uint32_t psn, const struct aeth *aeth, bool is_habit)
{
    struct bth bth = bth_of(queue, RC_ACKNOWLEDGE, psn);
    struct route route = own_route(peer);
    uint8_t ext[AETH_LEN];

    aeth_emit(aeth, ext);
    send_roce(peer, &route, &bth, ext, sizeof(ext), NULL, 0, is_habit);
}

void peer_send_aeth(struct peer *peer, struct peer_queue *queue, uint32_t psn,
                    const struct aeth *aeth)
{
    send_aeth(peer, queue, psn, aeth, false);
}

static void send_read_part(struct peer *peer, struct peer_queue *queue,
                           const struct peer_read *read, uint32_t index,
                           bool is_habit)
{
    uint32_t count =
        MAX(1, (read->len_bytes + PEER_PATH_MTU - 1) / PEER_PATH_MTU);
    uint32_t at = index * PEER_PATH_MTU;
    uint32_t len = MIN(read->len_bytes - MIN(at, read->len_bytes),
                       (uint32_t)PEER_PATH_MTU);
    bool is_first = index == 0, is_last = index + 1 == count;
    uint8_t opcode =
        is_first ? (is_last ? RC_READ_RESPONSE_ONLY : RC_READ_RESPONSE_FIRST)
                 : (is_last ? RC_READ_RESPONSE_LAST : RC_READ_RESPONSE_MIDDLE);
    struct bth bth = bth_of(queue, opcode, psn_add(read->psn, index));
    struct aeth aeth = {.value = AETH_CREDIT_UNLIMITED, .msn = queue->msn};
    struct route route = own_route(peer);
    uint8_t ext[AETH_LEN], data[PEER_PATH_MTU];

    for (uint32_t i = 0; i < len; i++) {
        data[i] = queue->memory[(read->va + at + i) % PEER_MEMORY];
    }
    aeth_emit(&aeth, ext);
    send_roce(peer, &route, &bth, ext,
              roce_opcode_is(opcode, ROCE_AETH) ? sizeof(ext) : 0, data, len,
              is_habit);
}

static uint32_t read_packets(const struct peer_read *read)
{
    return MAX(1, (read->len_bytes + PEER_PATH_MTU - 1) / PEER_PATH_MTU);
}

void peer_serve(struct peer *peer, struct peer_queue *queue,
                const struct peer_read *read, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        send_read_part(peer, queue, read, first + i, false);
    }
}

/* ---- Receiving frames: what the peer does by itself. */

static struct peer_queue *queue_of_comm_id(struct peer *peer, uint32_t comm_id)
{
    for (unsigned int i = 0; i < PEER_QUEUES; i++) {
        if (peer->queues[i].comm_id == comm_id && comm_id != 0) {
            return &peer->queues[i];
        }
    }
    return NULL;
}

static struct peer_queue *queue_of_qpn(struct peer *peer, uint32_t qpn)
{
    for (unsigned int i = 0; i < PEER_QUEUES; i++) {
        if (peer->queues[i].qpn == qpn && qpn != 0) {
            return &peer->queues[i];
        }
    }
    return NULL;
}

static void send_ack(struct peer *peer, const struct peer_queue *queue)
{
    const struct aeth aeth = {
        .value = AETH_CREDIT_UNLIMITED,
        .msn = queue->msn,
    };

    if (peer->habits & PEER_ACKS) {
        send_aeth(peer, queue, psn_add(queue->epsn, PSN_MASK), &aeth, true);
    }
}

static void read_arrived(struct peer *peer, struct peer_queue *queue,
                         const struct bth *bth, const uint8_t *ext, size_t len)
{
    bool is_new = bth->psn == queue->epsn;
    struct peer_read read = {.psn = bth->psn};
    struct reth reth;

    if (!reth_parse(&reth, ext, len)) {
        return;
    }
    read.va = reth.va;
    read.len_bytes = reth.dma_len_bytes;
    if (is_new) {
        queue->epsn = psn_add(queue->epsn, read_packets(&read));
        queue->msn = psn_add(queue->msn, 1);
    }
    if (peer->habits & PEER_SERVES) {
        for (uint32_t i = 0; i < read_packets(&read); i++) {
            send_read_part(peer, queue, &read, i, true);
        }
    } else if (is_new && queue->reads < PEER_READS) {
        queue->read[queue->reads++] = read;
    }
}

static void answer_arrived(struct peer *peer, struct peer_queue *queue,
                           const uint8_t *cqe)
{
    queue->responses++;
    queue->last_status = (uint16_t)(get_le16(cqe + CQE_STATUS) >> 1);
    if (queue->last_status == 0 && queue->qid == 0 && queue->responses == 1) {
        /* Most likely the response to a Connect. */
        peer->cntlid = get_le16(cqe + CQE_DW0);
    }
}

static void request_arrived(struct peer *peer, struct peer_queue *queue,
                            const struct bth *bth, const uint8_t *at,
                            size_t len)
{
    size_t header_len = roce_opcodes[bth->opcode].header_len_bytes;

    if (len < header_len || psn_diff(bth->psn, queue->epsn) > 0) {
        return; /* The drive repeats packets that were lost. */
    }
    if (bth->opcode == RC_READ_REQUEST) {
        read_arrived(peer, queue, bth, at + BTH_LEN, len - BTH_LEN);
        return;
    }
    if (bth->psn == queue->epsn) {
        queue->epsn = psn_add(queue->epsn, 1);
        if (roce_opcode_is(bth->opcode, ROCE_ENDS)) {
            queue->msn = psn_add(queue->msn, 1);
        }
        if (roce_opcode_is(bth->opcode, ROCE_SEND) &&
            len >= header_len + NVME_CQE_LEN) {
            answer_arrived(peer, queue, at + header_len);
        }
    }
    if (roce_opcode_is(bth->opcode, ROCE_ENDS)) {
        send_ack(peer, queue);
    }
}

static void rep_arrived(struct peer *peer, const uint8_t *msg)
{
    struct peer_queue *queue;
    struct cm_rep rep;

    if (!cm_rep_parse(&rep, msg, MAD_DATA_LEN)) {
        return;
    }
    queue = queue_of_comm_id(peer, rep.remote_comm_id);
    if (queue == NULL || queue->state != PEER_QUEUE_ASKED) {
        return;
    }
    queue->state = PEER_QUEUE_GRANTED;
    queue->drive_comm_id = rep.local_comm_id;
    queue->drive_qpn = rep.local_qpn;
    queue->send_psn = rep.starting_psn;
    queue->epsn = queue->start_psn;
}

static void dreq_arrived(struct peer *peer, uint64_t tid, const uint8_t *msg)
{
    struct route route = own_route(peer);
    struct peer_queue *queue;
    struct cm_dreq dreq;
    struct cm_drep drep;
    uint8_t answer[MAD_DATA_LEN];

    if (!cm_dreq_parse(&dreq, msg, MAD_DATA_LEN)) {
        return;
    }
    queue = queue_of_comm_id(peer, dreq.remote_comm_id);
    if (queue != NULL) {
        queue->state = PEER_QUEUE_ENDED;
    }
    if (peer->habits & PEER_AGREES) {
        drep = (struct cm_drep){
            .local_comm_id = dreq.remote_comm_id,
            .remote_comm_id = dreq.local_comm_id,
        };
        cm_drep_emit(&drep, answer);
        send_mad(peer, &route, CM_DREP, tid, answer, true);
    }
}

static void mad_arrived(struct peer *peer, const uint8_t *buf, size_t len)
{
    struct peer_queue *queue;
    struct cm_rej rej;
    struct mad mad;

    if (!mad_parse(&mad, buf, len)) {
        return;
    }
    buf += MAD_HEADER_LEN;
    switch (mad.attribute_id) {
    case CM_REP:
        rep_arrived(peer, buf);
        break;
    case CM_DREQ:
        dreq_arrived(peer, mad.transaction_id, buf);
        break;
    case CM_REJ:
        queue = cm_rej_parse(&rej, buf, MAD_DATA_LEN)
                    ? queue_of_comm_id(peer, rej.remote_comm_id)
                    : NULL;
        if (queue != NULL) {
            queue->state = PEER_QUEUE_ENDED;
        }
        break;
    default:
        break;
    }
}

static void roce_arrived(struct peer *peer, const uint8_t *at, size_t len)
{
    struct peer_queue *queue;
    struct bth bth;

    if (!bth_parse(&bth, at, len)) {
        return;
    }
    if (bth.dest_qp == GSI_QPN) {
        if (len >= BTH_LEN + DETH_LEN) {
            mad_arrived(peer, at + BTH_LEN + DETH_LEN,
                        len - BTH_LEN - DETH_LEN);
        }
        return;
    }
    queue = queue_of_qpn(peer, bth.dest_qp);
    if (queue != NULL && roce_opcode_is(bth.opcode, ROCE_REQUEST)) {
        request_arrived(peer, queue, &bth, at, len);
    }
}

static void send_arp(struct peer *peer, uint16_t operation, uint32_t sender_ip,
                     uint32_t target_ip, bool is_habit)
{
    struct layout layout = {.len = 60};
    uint8_t buf[PEER_FRAME_MAX] = {0};
    struct eth eth = {.type = ETHERTYPE_ARP};
    struct arp arp = {
        .operation = operation,
        .sender_ip = ip_addr_from_v4(sender_ip),
        .target_ip = ip_addr_from_v4(target_ip),
    };

    memcpy(eth.dst.bytes, peer->drive->identity.mac[PEER_PORT], 6);
    memcpy(eth.src.bytes, peer->mac, 6);
    memcpy(arp.sender_mac.bytes, peer->mac, 6);
    eth_emit(&eth, buf);
    arp_emit(&arp, buf + ETH_LEN);
    layout.at[PEER_LAYER_IP] = ETH_LEN;
    layout.at[PEER_LAYER_PAYLOAD] = ETH_LEN;
    finish_frame(peer, buf, &layout, is_habit);
}

void peer_send_arp(struct peer *peer, uint16_t operation, uint32_t sender_ip,
                   uint32_t target_ip)
{
    send_arp(peer, operation, sender_ip, target_ip, false);
}

static void arp_arrived(struct peer *peer, const uint8_t *buf, size_t len)
{
    uint32_t own = ip_addr_to_v4(&peer->ip[0]);
    struct arp arp;

    if ((peer->habits & PEER_RESOLVES) && arp_parse(&arp, buf, len) &&
        arp.operation == ARP_REQUEST && ip_addr_to_v4(&arp.target_ip) == own) {
        send_arp(peer, ARP_REPLY, own, ip_addr_to_v4(&arp.sender_ip), true);
    }
}

static void frame_arrived(struct peer *peer, const struct peer_frame *frame)
{
    uint16_t type = get_be16(frame->data + ETH_TYPE);
    size_t headers = type == ETHERTYPE_IPV6 ? ETH_LEN + IPV6_LEN + UDP_LEN
                                            : ETH_LEN + IPV4_LEN + UDP_LEN;

    if (type == ETHERTYPE_ARP) {
        arp_arrived(peer, frame->data + ETH_LEN, frame->len_bytes - ETH_LEN);
    } else if ((type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6) &&
               frame->len_bytes > headers + BTH_LEN &&
               get_be16(frame->data + headers - UDP_LEN + UDP_DST_PORT) ==
                   UDP_PORT_ROCE) {
        roce_arrived(peer, frame->data + headers,
                     frame->len_bytes - headers - ICRC_LEN);
    }
}

/* ---- The peer's link, and its place in the world. */

/* Called inside the port, so that the frames may only be stored. */
static unsigned int take_frames(void *ctx, const struct frame_tx *burst,
                                unsigned int count)
{
    struct peer *peer = ctx;

    if (peer->is_stalled) {
        peer->was_stalled = true;
        return 0;
    }
    for (unsigned int i = 0; i < count; i++) {
        struct peer_frame *frame = &peer->inbox[peer->in_put % PEER_INBOX];

        if (peer->in_put - peer->in_get == PEER_INBOX) {
            peer->was_stalled = true;
            return i;
        }
        ASSERT(frame_tx_len(&burst[i]) <= sizeof(frame->data));
        frame->len_bytes = (uint16_t)frame_tx_copy(frame->data, &burst[i]);
        witness_from_drive(peer->witness, frame->data, frame->len_bytes);
        if (peer->lose != 0) {
            peer->lose--;
        } else {
            peer->in_put++;
        }
    }
    return count;
}

static bool peer_step(void *ctx)
{
    struct peer *peer = ctx;
    bool is_busy = false;

    if (peer->was_stalled && !peer->is_stalled &&
        peer->in_put - peer->in_get < PEER_INBOX) {
        peer->was_stalled = false;
        hw_port_link_ready(&peer->drive->machine.ports[PEER_PORT]);
        is_busy = true;
    }
    for (; peer->in_get != peer->in_put; peer->in_get++) {
        frame_arrived(peer, &peer->inbox[peer->in_get % PEER_INBOX]);
        is_busy = true;
    }
    return is_busy;
}

static void ignore_room(void *ctx)
{
    (void)ctx;
}

static uint64_t deadline_ns(void *ctx)
{
    (void)ctx;
    return NATIVE_NO_DEADLINE;
}

static const struct native_node_ops node_ops = {
    .step = peer_step,
    .relax = ignore_room,
    .deadline_ns = deadline_ns,
};

void peer_plug(struct peer *peer, bool is_plugged)
{
    const struct frame_sink sink = {.ctx = peer, .send = take_frames};

    machine_link(&peer->drive->machine, PEER_PORT, is_plugged ? &sink : NULL);
}

void peer_behave(struct peer *peer)
{
    peer->habits = PEER_HABITS;
    peer->is_stalled = false;
    peer->is_v6 = false;
    peer->lose = 0;
    peer->bend_count = 0;
}

void peer_reset(struct peer *peer)
{
    peer_behave(peer);
    peer->cntlid = 0;
    peer->sent_count = 0;
    for (uint8_t i = 0; i < PEER_QUEUES; i++) {
        struct peer_queue *queue = &peer->queues[i];

        memset(queue, 0, offsetof(struct peer_queue, memory));
        queue->index = i;
    }
}

void peer_bend(struct peer *peer, const struct peer_bend *bend)
{
    if (peer->bend_count < PEER_BENDS) {
        peer->bends[peer->bend_count++] = *bend;
    }
}

void peer_init(struct peer *peer, struct native_world *world,
               struct native_drive *drive, struct witness *witness)
{
    static const uint8_t mac[6] = {0x02, 0xe5, 0x5d, 0, PEER_NUMBER, 0};
    static const uint8_t prefix[16] = {0xfd, [7] = PEER_PORT + 1};

    memset(peer, 0, sizeof(*peer));
    peer->drive = drive;
    peer->witness = witness;
    memcpy(peer->mac, mac, sizeof(mac));
    for (unsigned int i = 0; i < 2; i++) {
        peer->drive_ip[i] =
            drive->drive.net.stack.config.addresses[NET_PORTS * i + PEER_PORT]
                .ip;
    }
    peer->ip[0] = ip_addr_from_v4(0x0a000000 | PEER_NUMBER);
    peer->ip[1] = ip_addr_from_bytes(prefix);
    peer->ip[1].bytes[15] = PEER_NUMBER;
    peer_reset(peer);
    native_node_add(world, &peer->node, &node_ops, peer, 4096);
    peer_plug(peer, true);
}

void peer_end(struct peer *peer)
{
    peer_plug(peer, false);
    native_node_remove(&peer->node);
}
