/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Received frames: checks the headers in the order of docs/hardware/rnic.md,
 * section 5, where the first failure decides.
 * Spec: IBTA Vol 1 section 9.6 (packet validation), annex A17.4.
 */
#include "net/roce/internal.h"

#include "net/wire/grh.h"
#include "net/wire/icrc.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

enum { IP_ECN_MASK = 3, IP_ECN_CE = 3 }; /* RFC 3168 */

enum rx_verdict {
    RX_ACCEPT,
    RX_MALFORMED,
    RX_BAD_ICRC,
    RX_NO_QP,
    RX_KEY,
    RX_ADDRESS,
    RX_DROPPED,
    RX_CNP,
};

static const uint8_t verdict_counter[] = {
    [RX_MALFORMED] = ROCE_RX_MALFORMED,
    [RX_BAD_ICRC] = ROCE_RX_BAD_ICRC,
    [RX_NO_QP] = ROCE_RX_NO_QP,
    [RX_KEY] = ROCE_RX_KEY,
    [RX_ADDRESS] = ROCE_RX_ADDRESS,
    [RX_DROPPED] = ROCE_RX_DROPPED,
    [RX_CNP] = ROCE_RX_CNP,
};

/* The payload of an IP packet that can carry RoCE, else NULL. */
static const uint8_t *parse_ip(struct roce_rx *rx, const uint8_t *buf,
                               size_t len, size_t *udp_len)
{
    if (rx->eth.type == ETHERTYPE_IPV4) {
        struct ipv4 ip;

        if (!ipv4_parse(&ip, buf, len) || ip.header_len_bytes != IPV4_LEN ||
            ip.more_fragments || ip.fragment_offset_bytes != 0 ||
            ip.protocol != IP_PROTOCOL_UDP) {
            return NULL;
        }
        rx->src = ip.src;
        rx->dst = ip.dst;
        rx->is_ce = (ip.tos & IP_ECN_MASK) == IP_ECN_CE;
        *udp_len = ip.total_len_bytes - (size_t)IPV4_LEN;
        return buf + IPV4_LEN;
    }
    if (rx->eth.type == ETHERTYPE_IPV6) {
        struct ipv6 ip;

        if (!ipv6_parse(&ip, buf, len) || ip.next_header != IP_PROTOCOL_UDP ||
            ip.payload_len_bytes > len - IPV6_LEN) {
            return NULL;
        }
        rx->src = ip.src;
        rx->dst = ip.dst;
        rx->is_ce = (ip.traffic_class & IP_ECN_MASK) == IP_ECN_CE;
        *udp_len = ip.payload_len_bytes;
        return buf + IPV6_LEN;
    }
    return NULL;
}

/* Parse BTH, extended headers, payload and padding; `len` excludes the ICRC. */
static enum rx_verdict parse_transport(struct roce_rx *rx, const uint8_t *buf,
                                       size_t len)
{
    const struct roce_opcode_info *info;
    size_t body;

    if (!bth_parse(&rx->bth, buf, len)) {
        return RX_MALFORMED;
    }
    info = &roce_opcodes[rx->bth.opcode];
    if (info->flags == 0 || len < info->header_len_bytes) {
        return RX_MALFORMED;
    }
    body = len - info->header_len_bytes;
    if (body % 4 != 0 || body < rx->bth.pad_bytes ||
        ((info->flags & ROCE_NOTIFY) && body != ROCE_CNP_RESERVED)) {
        return RX_MALFORMED;
    }
    rx->flags = info->flags;
    rx->ext = buf + BTH_LEN;
    rx->payload = buf + info->header_len_bytes;
    rx->payload_len = (uint32_t)(body - rx->bth.pad_bytes);
    return RX_ACCEPT;
}

/* Parse `len` bytes from BTH to ICRC; the CRC of the earlier headers is given.
 */
static enum rx_verdict parse_packet(struct roce_rx *rx, const uint8_t *bth,
                                    size_t len, uint32_t icrc)
{
    icrc = icrc_add(icrc, bth + BTH_LEN, len - BTH_LEN - ICRC_LEN);
    if (!icrc_matches(icrc, bth + len - ICRC_LEN)) {
        return RX_BAD_ICRC;
    }
    return parse_transport(rx, bth, len - ICRC_LEN);
}

static enum rx_verdict parse_v1(struct roce_rx *rx, const uint8_t *buf,
                                size_t len)
{
    struct grh grh;

    if (!grh_parse(&grh, buf, len) ||
        grh.payload_len_bytes < BTH_LEN + ICRC_LEN) {
        return RX_MALFORMED;
    }
    rx->is_v1 = true;
    rx->src = grh.sgid;
    rx->dst = grh.dgid;
    return parse_packet(rx, buf + GRH_LEN, grh.payload_len_bytes,
                        icrc_begin_grh(buf));
}

static enum rx_verdict parse_v2(struct roce_rx *rx, const uint8_t *buf,
                                size_t len)
{
    const uint8_t *udp_header;
    size_t udp_len;
    struct udp udp;

    udp_header = parse_ip(rx, buf, len, &udp_len);
    if (udp_header == NULL || !udp_parse(&udp, udp_header, udp_len) ||
        udp.length_bytes != udp_len || udp.dst_port != UDP_PORT_ROCE ||
        udp_len < UDP_LEN + BTH_LEN + ICRC_LEN) {
        return RX_MALFORMED;
    }
    return parse_packet(rx, udp_header + UDP_LEN, udp_len - UDP_LEN,
                        rx->eth.type == ETHERTYPE_IPV4 ? icrc_begin_ipv4(buf)
                                                       : icrc_begin_ipv6(buf));
}

static enum rx_verdict parse_frame(struct roce_rx *rx,
                                   const struct frame_rx *frame)
{
    size_t eth_len;

    if ((frame->flags & FRAME_BAD_FCS) != 0 ||
        !eth_parse(&rx->eth, frame->data, frame->len_bytes)) {
        return RX_MALFORMED;
    }
    eth_len = eth_header_len(&rx->eth);
    return (rx->eth.type == ETHERTYPE_ROCE_V1 ? parse_v1 : parse_v2)(
        rx, frame->data + eth_len, frame->len_bytes - eth_len);
}

/* Compare P_Keys without the membership bit 15. */
static bool pkey_fits(uint16_t pkey)
{
    return (pkey & 0x7fff) == (BTH_PKEY_DEFAULT & 0x7fff);
}

/* Whether the destination is a local address of this port and VLAN. */
static bool is_ours(const struct rdma_objects *o, const struct roce_rx *rx)
{
    for (uint32_t i = 0; i < RDMA_LADDRS; i++) {
        if (roce_rx_is_to(rx, &o->laddrs[i])) {
            return true;
        }
    }
    return false;
}

static bool address_fits(const struct rdma_objects *o,
                         const struct roce_path *path, const struct roce_rx *rx)
{
    const struct rdma_laddr *laddr = &o->laddrs[path->laddr];
    const struct rdma_neigh *neigh = &o->neighs[path->neigh];

    return laddr->exists && neigh->exists && rx->is_v1 == path->is_v1 &&
           laddr->vlan == roce_rx_vlan(rx) &&
           ip_addr_equal(&laddr->ip, &rx->dst) &&
           ip_addr_equal(&neigh->ip, &rx->src) &&
           (rx->port == neigh->port || is_ours(o, rx));
}

static bool qkey_fits(const struct roce_qp *qp, const struct roce_rx *rx)
{
    struct deth deth;

    return deth_parse(&deth, rx->ext, DETH_LEN) && deth.qkey == qp->path.qkey;
}

/* Only the QP's peer may slow it down by a CNP. */
static enum rx_verdict judge_cnp(const struct rdma_objects *o,
                                 const struct rdma_qp *rqp,
                                 const struct roce_path *path,
                                 const struct roce_rx *rx)
{
    if (rqp->type == VERBS_QP_UD) {
        return RX_MALFORMED;
    }
    if (!pkey_fits(rx->bth.pkey)) {
        return RX_KEY;
    }
    return address_fits(o, path, rx) ? RX_CNP : RX_ADDRESS;
}

static enum rx_verdict judge_qp(struct roce *roce, int slot,
                                const struct roce_rx *rx)
{
    const struct rdma_objects *o = roce->objects;
    const struct rdma_qp *rqp;
    const struct roce_qp *qp;
    bool is_ud = roce_opcode_transport(rx->bth.opcode) == ROCE_UD;

    if (slot < 0 || !roce_has_qp(roce, (uint32_t)slot)) {
        return RX_NO_QP;
    }
    rqp = &o->qps[slot];
    qp = &roce->state->qps[slot];
    if (rqp->state == VERBS_QPS_RESET || rqp->state == VERBS_QPS_INIT) {
        return RX_NO_QP;
    }
    if (rx->flags & ROCE_NOTIFY) {
        return judge_cnp(o, rqp, &qp->path, rx);
    }
    if ((!is_ud && roce_opcode_transport(rx->bth.opcode) != ROCE_RC) ||
        is_ud != (rqp->type == VERBS_QP_UD)) {
        return RX_MALFORMED;
    }
    if (!pkey_fits(rx->bth.pkey) || (is_ud && !qkey_fits(qp, rx))) {
        return RX_KEY;
    }
    if (is_ud ? !is_ours(o, rx) : !address_fits(o, &qp->path, rx)) {
        return RX_ADDRESS;
    }
    return rqp->state == VERBS_QPS_ERROR ? RX_DROPPED : RX_ACCEPT;
}

static void rx_frame(struct roce *roce, unsigned int port,
                     const struct frame_rx *frame)
{
    struct roce_rx rx = {.port = (uint8_t)port};
    enum rx_verdict verdict = parse_frame(&rx, frame);
    int slot = -1;

    roce_count(roce, ROCE_RX_PACKETS);
    if (verdict == RX_ACCEPT) {
        slot = rdma_qp_find(roce->objects, rx.bth.dest_qp);
        verdict = judge_qp(roce, slot, &rx);
    }
    if (rx.is_ce && verdict == RX_ACCEPT) {
        roce_marked(roce, (uint32_t)slot, &rx);
    }
    if (verdict != RX_ACCEPT) {
        roce_count(roce, (enum roce_counter)verdict_counter[verdict]);
        if (verdict == RX_CNP) {
            roce_cnp_rx(roce, (uint32_t)slot);
        }
    } else if (rx.flags & ROCE_DETH) {
        roce_ud_rx(roce, (uint32_t)slot, &rx);
    } else if (rx.flags & ROCE_REQUEST) {
        roce_responder_rx(roce, (uint32_t)slot, &rx);
    } else {
        roce_completer_rx(roce, (uint32_t)slot, &rx);
    }
}

void roce_rx(struct roce *roce, unsigned int port,
             const struct frame_rx *frames, unsigned int count, uint64_t now_ns)
{
    roce->now_ns = now_ns;
    for (unsigned int i = 0; i < count; i++) {
        rx_frame(roce, port, &frames[i]);
    }
    roce_settle(roce);
}
