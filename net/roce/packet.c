/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers and ICRC of sent packets.
 * Spec: IBTA annex A17.3 (RoCEv2 packet format), A17.4.5 (addresses); A16.3
 * (RoCE packet format).
 */
#include "net/roce/internal.h"

#include "net/wire/grh.h"
#include "net/wire/icrc.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

enum { HOP_LIMIT_DEFAULT = 64, SPORT_DEFAULT = 0xc000 };

_Static_assert(ETH_TAGGED_LEN + IPV6_LEN + UDP_LEN + BTH_LEN + RETH_LEN +
                       AETH_LEN + IETH_LEN <=
                   FRAME_HEAD_MAX,
               "every header fits");

static size_t emit_eth(const struct rdma_laddr *from,
                       const struct rdma_neigh *to, uint8_t priority,
                       uint16_t type, uint8_t *buf)
{
    struct eth eth = {
        .dst = to->mac,
        .src = from->mac,
        .type = type,
        .tagged = to->vlan != RDMA_NO_VLAN,
        .priority = priority,
        .vlan = to->vlan & 0xfff,
    };

    eth_emit(&eth, buf);
    return eth_header_len(&eth);
}

static uint8_t hop_limit_of(const struct roce_route *route)
{
    return route->hop_limit != 0 ? route->hop_limit
                                 : (uint8_t)HOP_LIMIT_DEFAULT;
}

static void emit_ipv4(const struct rdma_laddr *from,
                      const struct rdma_neigh *to,
                      const struct roce_route *route, size_t udp_len,
                      uint8_t *buf)
{
    struct ipv4 ip = {
        .src = from->ip,
        .dst = to->ip,
        .total_len_bytes = (uint16_t)(IPV4_LEN + udp_len),
        .tos = (uint8_t)(route->dscp << 2 | route->ecn),
        .ttl = hop_limit_of(route),
        .protocol = IP_PROTOCOL_UDP,
        .dont_fragment = true,
    };

    ipv4_emit(&ip, buf);
}

static void emit_ipv6(const struct rdma_laddr *from,
                      const struct rdma_neigh *to,
                      const struct roce_route *route, size_t udp_len,
                      uint8_t *buf)
{
    struct ipv6 ip = {
        .src = from->ip,
        .dst = to->ip,
        .flow_label = route->flow_label,
        .payload_len_bytes = (uint16_t)udp_len,
        .traffic_class = (uint8_t)(route->dscp << 2 | route->ecn),
        .next_header = IP_PROTOCOL_UDP,
        .hop_limit = hop_limit_of(route),
    };

    ipv6_emit(&ip, buf);
}

/* Write Ethernet header and GRH. @return where the BTH goes; `len` counts from
 * the BTH to the ICRC */
static uint8_t *emit_v1(const struct rdma_laddr *from,
                        const struct rdma_neigh *to,
                        const struct roce_route *route, size_t len,
                        uint8_t *head)
{
    uint8_t *at =
        head + emit_eth(from, to, route->priority, ETHERTYPE_ROCE_V1, head);

    grh_emit(&(struct grh){.sgid = from->ip,
                           .dgid = to->ip,
                           .flow_label = route->flow_label,
                           .payload_len_bytes = (uint16_t)len,
                           .traffic_class = (uint8_t)(route->dscp << 2),
                           .hop_limit = hop_limit_of(route)},
             at);
    return at + GRH_LEN;
}

static uint8_t *emit_v2(const struct rdma_laddr *from,
                        const struct rdma_neigh *to,
                        const struct roce_route *route, size_t len,
                        uint8_t *head)
{
    bool v4 = ip_addr_is_v4(&to->ip);
    size_t udp_len = UDP_LEN + len;
    uint8_t *at = head + emit_eth(from, to, route->priority,
                                  v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6, head);

    if (v4) {
        emit_ipv4(from, to, route, udp_len, at);
        at += IPV4_LEN;
    } else {
        emit_ipv6(from, to, route, udp_len, at);
        at += IPV6_LEN;
    }
    udp_emit(&(struct udp){.src_port = route->udp_sport != 0 ? route->udp_sport
                                                             : SPORT_DEFAULT,
                           .dst_port = UDP_PORT_ROCE,
                           .length_bytes = (uint16_t)udp_len},
             at);
    return at + UDP_LEN;
}

void roce_route_of(const struct roce_qp *qp, struct roce_route *route)
{
    *route = (struct roce_route){
        .laddr = qp->path.laddr,
        .is_v1 = qp->path.is_v1,
        .neigh = qp->path.neigh,
        .priority = qp->path.priority,
        .dscp = qp->path.dscp,
        .hop_limit = qp->path.hop_limit,
        .ecn = qp->path.ecn,
        .udp_sport = qp->path.udp_sport,
        .flow_label = qp->path.flow_label,
    };
}

uint8_t *roce_packet_begin(const struct rdma_objects *objects,
                           const struct roce_route *route, struct bth *bth,
                           uint32_t payload_len, struct frame_tx *tx)
{
    const struct rdma_laddr *from = &objects->laddrs[route->laddr];
    const struct rdma_neigh *to = &objects->neighs[route->neigh];
    size_t headers_len = roce_opcodes[bth->opcode].header_len_bytes;
    uint8_t *at;
    size_t len;

    if (!from->exists || !to->exists ||
        ip_addr_is_v4(&to->ip) != ip_addr_is_v4(&from->ip)) {
        return NULL;
    }
    bth->pad_bytes = -payload_len & 3;
    len = headers_len + payload_len + bth->pad_bytes + ICRC_LEN;
    at = (route->is_v1 ? emit_v1 : emit_v2)(from, to, route, len, tx->head);
    bth_emit(bth, at);
    tx->departure_ns = 0;
    tx->priority = route->priority;
    tx->flags = 0;
    tx->num_pieces = 0;
    tx->head_len = (uint16_t)(at + headers_len - tx->head);
    return at + BTH_LEN;
}

/* The ICRC of everything up to the BTH. */
static uint32_t begin_icrc(const uint8_t *head)
{
    bool tagged = get_be16(head + ETH_TYPE) == ETHERTYPE_VLAN;
    const uint8_t *ip = head + (tagged ? ETH_TAGGED_LEN : ETH_LEN);

    switch (get_be16(ip - 2)) {
    case ETHERTYPE_ROCE_V1:
        return icrc_begin_grh(ip);
    case ETHERTYPE_IPV4:
        return icrc_begin_ipv4(ip);
    default:
        return icrc_begin_ipv6(ip);
    }
}

void roce_packet_end(const struct bth *bth, struct frame_tx *tx)
{
    size_t ext_len = roce_opcodes[bth->opcode].header_len_bytes - BTH_LEN;
    const uint8_t *ext = tx->head + tx->head_len - ext_len;
    uint32_t icrc = begin_icrc(tx->head);

    icrc = icrc_add(icrc, ext, ext_len);
    for (unsigned int i = 0; i < tx->num_pieces; i++) {
        icrc = icrc_add(icrc, tx->pieces[i].data, tx->pieces[i].len_bytes);
    }
    for (unsigned int i = 0; i < bth->pad_bytes; i++) {
        tx->tail[i] = 0;
    }
    icrc = icrc_add(icrc, tx->tail, bth->pad_bytes);
    icrc_emit(icrc, tx->tail + bth->pad_bytes);
    tx->tail_len = (uint8_t)(bth->pad_bytes + ICRC_LEN);
}
