/* SPDX-License-Identifier: BSD-2-Clause */
#include "packet.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/cm_msg.h"
#include "net/wire/icrc.h"

enum {
    DEFAULT_TTL = 64,
    DEFAULT_SRC_PORT = 0xc000,
    IPV6_HOP_BY_HOP = 0,
    IPV6_ROUTING = 43,
    IPV6_FRAGMENT = 44,
    IPV6_DESTINATION = 60,
    EXT_UNIT = 8,
    ICMPV6_LEN_MAX = 65535,
};

/* ---- Parsing. */

static void parse_roce(struct packet *packet)
{
    const uint8_t *p = packet->udp_payload;
    size_t len = packet->udp_payload_len, at;
    const struct roce_opcode_info *info;
    uint32_t icrc;

    if (len < BTH_LEN + ICRC_LEN || !bth_parse(&packet->bth, p, len)) {
        packet->damage = "BTH";
        return;
    }
    icrc = packet->is_v6 ? icrc_begin_ipv6(packet->ip_header)
                         : icrc_begin_ipv4(packet->ip_header);
    icrc = icrc_add(icrc, p + BTH_LEN, len - BTH_LEN - ICRC_LEN);
    if (!icrc_matches(icrc, p + len - ICRC_LEN)) {
        packet->damage = "ICRC";
        return;
    }
    info = &roce_opcodes[packet->bth.opcode];
    if (info->flags == 0 || len < (size_t)info->header_len_bytes +
                                      packet->bth.pad_bytes + ICRC_LEN) {
        packet->damage = "RoCE length or opcode";
        return;
    }
    packet->has_bth = true;
    packet->ext = p + BTH_LEN;
    at = BTH_LEN;
    if (info->flags & ROCE_DETH) {
        at += deth_parse(&packet->deth, p + at, len - at) ? DETH_LEN : 0u;
    }
    if (info->flags & ROCE_RETH) {
        at += reth_parse(&packet->reth, p + at, len - at) ? RETH_LEN : 0u;
    }
    if ((info->flags & ROCE_AETH) &&
        !aeth_parse(&packet->aeth, p + at, len - at)) {
        packet->damage = "AETH";
    }
    if (info->flags & ROCE_IMMDT) {
        packet->immediate = get_be32(p + at);
    }
    if (info->flags & ROCE_IETH) {
        packet->ieth_rkey = get_be32(p + at);
    }
    packet->data = p + info->header_len_bytes;
    packet->data_len =
        len - info->header_len_bytes - packet->bth.pad_bytes - ICRC_LEN;
    if (roce_opcode_transport(packet->bth.opcode) == ROCE_UD &&
        packet->data_len == MAD_LEN &&
        mad_parse(&packet->mad, packet->data, packet->data_len)) {
        packet->has_mad = true;
        packet->cm = packet->data + MAD_HEADER_LEN;
    }
}

static void parse_udp(struct packet *packet)
{
    const uint8_t *p = packet->l4;

    if (!udp_parse(&packet->udp, p, packet->l4_len)) {
        packet->damage = "UDP header";
        return;
    }
    if (packet->udp.checksum != 0 &&
        checksum_finish(checksum_add(checksum_pseudo(&packet->src, &packet->dst,
                                                     IP_PROTOCOL_UDP,
                                                     packet->udp.length_bytes),
                                     p, packet->udp.length_bytes)) != 0) {
        packet->damage = "UDP checksum";
        return;
    }
    packet->has_udp = true;
    packet->udp_payload = p + UDP_LEN;
    packet->udp_payload_len = (size_t)packet->udp.length_bytes - UDP_LEN;
    if (packet->udp.dst_port == UDP_PORT_ROCE) {
        parse_roce(packet);
    }
}

static void parse_l4(struct packet *packet)
{
    if (packet->is_fragment) {
        return;
    }
    switch (packet->protocol) {
    case IP_PROTOCOL_UDP:
        parse_udp(packet);
        break;
    case IP_PROTOCOL_ICMP:
        packet->has_icmp =
            icmp_parse(&packet->icmp, packet->l4, packet->l4_len);
        packet->damage = packet->has_icmp ? NULL : "ICMP checksum";
        break;
    case IP_PROTOCOL_ICMPV6:
        packet->has_icmp =
            icmpv6_parse(&packet->icmp, &packet->src, &packet->dst, packet->l4,
                         packet->l4_len);
        packet->damage = packet->has_icmp ? NULL : "ICMPv6 checksum";
        break;
    default:
        break;
    }
}

static void parse_ipv4(struct packet *packet, const uint8_t *p, size_t len)
{
    struct ipv4 ip;

    if (!ipv4_parse(&ip, p, len)) {
        packet->damage = "IPv4 header";
        return;
    }
    packet->has_ip = true;
    packet->ip_header = p;
    packet->src = ip.src;
    packet->dst = ip.dst;
    packet->protocol = ip.protocol;
    packet->ttl = ip.ttl;
    packet->tos = ip.tos;
    packet->ip_id = ip.id;
    packet->dont_fragment = ip.dont_fragment;
    packet->more_fragments = ip.more_fragments;
    packet->fragment_offset_bytes = ip.fragment_offset_bytes;
    packet->is_fragment = ip.more_fragments || ip.fragment_offset_bytes != 0;
    packet->l4 = p + ip.header_len_bytes;
    packet->l4_len = (size_t)ip.total_len_bytes - ip.header_len_bytes;
    parse_l4(packet);
}

static bool is_extension(uint8_t header)
{
    return header == IPV6_HOP_BY_HOP || header == IPV6_ROUTING ||
           header == IPV6_DESTINATION || header == IPV6_FRAGMENT;
}

static void parse_ipv6(struct packet *packet, const uint8_t *p, size_t len)
{
    struct ipv6 ip;
    const uint8_t *at = p + IPV6_LEN;
    size_t left;

    if (!ipv6_parse(&ip, p, len)) {
        packet->damage = "IPv6 header";
        return;
    }
    packet->has_ip = true;
    packet->is_v6 = true;
    packet->ip_header = p;
    packet->src = ip.src;
    packet->dst = ip.dst;
    packet->protocol = ip.next_header;
    packet->ttl = ip.hop_limit;
    packet->tos = ip.traffic_class;
    left = ip.payload_len_bytes;
    while (is_extension(packet->protocol) && left >= EXT_UNIT) {
        size_t ext_len = packet->protocol == IPV6_FRAGMENT
                             ? EXT_UNIT
                             : ((size_t)at[1] + 1) * EXT_UNIT;

        if (packet->protocol == IPV6_FRAGMENT) {
            packet->fragment_offset_bytes = get_be16(at + 2) & 0xfff8u;
            packet->more_fragments = at[3] & 1;
            packet->is_fragment =
                packet->fragment_offset_bytes != 0 || packet->more_fragments;
        }
        if (ext_len > left) {
            packet->damage = "IPv6 extension header";
            return;
        }
        packet->protocol = at[0];
        at += ext_len;
        left -= ext_len;
    }
    packet->l4 = at;
    packet->l4_len = left;
    parse_l4(packet);
}

bool packet_parse(struct packet *packet, const uint8_t *frame, size_t len_bytes)
{
    const uint8_t *p;
    size_t head;

    *packet = (struct packet){.frame = frame, .len_bytes = len_bytes};
    if (!eth_parse(&packet->eth, frame, len_bytes)) {
        return false;
    }
    head = eth_header_len(&packet->eth);
    p = frame + head;
    switch (packet->eth.type) {
    case ETHERTYPE_ARP:
        packet->has_arp = arp_parse(&packet->arp, p, len_bytes - head);
        packet->damage = packet->has_arp ? NULL : "ARP";
        break;
    case ETHERTYPE_IPV4:
        parse_ipv4(packet, p, len_bytes - head);
        break;
    case ETHERTYPE_IPV6:
        parse_ipv6(packet, p, len_bytes - head);
        break;
    default:
        break;
    }
    return true;
}

/* ---- Describing in words. */

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text,
                                                      const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text->at, text->left, format, args);
    va_end(args);
    if (n > 0) {
        size_t used = MIN((size_t)n, text->left - 1);

        text->at += used;
        text->left -= used;
    }
}

static void put_ip(struct text *text, const struct ip_addr *ip)
{
    char name[INET6_ADDRSTRLEN];

    if (ip_addr_is_v4(ip)) {
        inet_ntop(AF_INET, ip->bytes + 12, name, sizeof(name));
    } else {
        inet_ntop(AF_INET6, ip->bytes, name, sizeof(name));
    }
    put(text, "%s", name);
}

static void put_mac(struct text *text, const struct mac_addr *mac)
{
    const uint8_t *b = mac->bytes;

    put(text, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
        b[5]);
}

static const char *opcode_name(uint8_t opcode)
{
    static const char *const rc[] = {
        [RC_SEND_FIRST] = "RC SEND First",
        [RC_SEND_MIDDLE] = "RC SEND Middle",
        [RC_SEND_LAST] = "RC SEND Last",
        [RC_SEND_LAST_IMM] = "RC SEND Last with Immediate",
        [RC_SEND_ONLY] = "RC SEND Only",
        [RC_SEND_ONLY_IMM] = "RC SEND Only with Immediate",
        [RC_WRITE_FIRST] = "RC WRITE First",
        [RC_WRITE_MIDDLE] = "RC WRITE Middle",
        [RC_WRITE_LAST] = "RC WRITE Last",
        [RC_WRITE_LAST_IMM] = "RC WRITE Last with Immediate",
        [RC_WRITE_ONLY] = "RC WRITE Only",
        [RC_WRITE_ONLY_IMM] = "RC WRITE Only with Immediate",
        [RC_READ_REQUEST] = "RC READ Request",
        [RC_READ_RESPONSE_FIRST] = "RC READ Response First",
        [RC_READ_RESPONSE_MIDDLE] = "RC READ Response Middle",
        [RC_READ_RESPONSE_LAST] = "RC READ Response Last",
        [RC_READ_RESPONSE_ONLY] = "RC READ Response Only",
        [RC_ACKNOWLEDGE] = "RC Acknowledge",
        [RC_ATOMIC_ACKNOWLEDGE] = "RC Atomic Acknowledge",
        [RC_COMPARE_SWAP] = "RC Compare and Swap",
        [RC_FETCH_ADD] = "RC Fetch and Add",
        [RC_SEND_LAST_INVALIDATE] = "RC SEND Last with Invalidate",
        [RC_SEND_ONLY_INVALIDATE] = "RC SEND Only with Invalidate",
    };

    if (opcode < ARRAY_LEN(rc) && rc[opcode] != NULL) {
        return rc[opcode];
    }
    switch (opcode) {
    case UD_SEND_ONLY:
        return "UD SEND Only";
    case UD_SEND_ONLY_IMM:
        return "UD SEND Only with Immediate";
    case CNP_NOTIFY:
        return "CNP";
    default:
        return NULL;
    }
}

static void put_aeth(struct text *text, const struct aeth *aeth)
{
    static const char *const naks[] = {
        [AETH_NAK_PSN_SEQUENCE] = "NAK PSN sequence error",
        [AETH_NAK_INVALID_REQUEST] = "NAK invalid request",
        [AETH_NAK_REMOTE_ACCESS] = "NAK remote access error",
        [AETH_NAK_REMOTE_OPERATION] = "NAK remote operational error",
        [AETH_NAK_INVALID_RD_REQUEST] = "NAK invalid RD request",
    };

    switch (aeth->kind) {
    case AETH_ACK:
        put(text, ", ACK credits %u", aeth->value);
        break;
    case AETH_RNR_NAK:
        put(text, ", RNR NAK timer %u", aeth->value);
        break;
    case AETH_NAK:
        put(text, ", %s",
            aeth->value < ARRAY_LEN(naks) ? naks[aeth->value] : "NAK ?");
        break;
    case AETH_RESERVED:
        put(text, ", AETH of a reserved type");
        break;
    }
    put(text, " msn %u", aeth->msn);
}

static void put_cm(struct text *text, const struct packet *packet)
{
    static const char *const names[] = {"REQ", "MRA",  "REJ", "REP",
                                        "RTU", "DREQ", "DREP"};
    uint16_t id = packet->mad.attribute_id;
    const uint8_t *m = packet->cm;

    if (id < CM_REQ || id > CM_DREP) {
        put(text, ", MAD attribute %04x", id);
        return;
    }
    put(text, ", CM %s local id %08x", names[id - CM_REQ], get_be32(m));
    if (id != CM_REQ) {
        put(text, " remote id %08x", get_be32(m + 4));
    }
    if (id == CM_REJ) {
        put(text, " reason %u", get_be16(m + CM_REJ_REASON));
    } else if (id == CM_REQ) {
        put(text, " service %010llx qpn %u psn %u",
            (unsigned long long)get_be64(m + CM_REQ_SERVICE_ID),
            get_be32(m + CM_REQ_LOCAL_QPN) >> 8,
            get_be32(m + CM_REQ_STARTING_PSN) >> 8);
    } else if (id == CM_REP) {
        put(text, " qpn %u psn %u", get_be32(m + CM_REP_LOCAL_QPN) >> 8,
            get_be32(m + CM_REP_STARTING_PSN) >> 8);
    }
}

static void put_roce(struct text *text, const struct packet *packet)
{
    const struct bth *bth = &packet->bth;
    uint32_t flags = roce_opcodes[bth->opcode].flags;
    const char *name = opcode_name(bth->opcode);

    if (name != NULL) {
        put(text, ", %s", name);
    } else {
        put(text, ", opcode %02x", bth->opcode);
    }
    put(text, " qp %u psn %u%s%s", bth->dest_qp, bth->psn,
        bth->ack_requested ? " ack-req" : "", bth->solicited ? " se" : "");
    if (flags & ROCE_DETH) {
        put(text, " from qp %u", packet->deth.src_qp);
    }
    if (flags & ROCE_RETH) {
        put(text, " va %llx rkey %08x len %u",
            (unsigned long long)packet->reth.va, packet->reth.rkey,
            packet->reth.dma_len_bytes);
    }
    if (flags & ROCE_AETH) {
        put_aeth(text, &packet->aeth);
    }
    if (flags & ROCE_IETH) {
        put(text, " invalidates %08x", packet->ieth_rkey);
    }
    if (packet->has_mad) {
        put_cm(text, packet);
    } else if (packet->data_len != 0) {
        put(text, ", %zu bytes", packet->data_len);
    }
}

static void put_ip_packet(struct text *text, const struct packet *packet)
{
    put_ip(text, &packet->src);
    put(text, " > ");
    put_ip(text, &packet->dst);
    if (packet->is_fragment) {
        put(text, ", fragment at %u%s", packet->fragment_offset_bytes,
            packet->more_fragments ? ", more follow" : ", the last");
    }
    if (packet->has_bth) {
        put_roce(text, packet);
    } else if (packet->has_udp) {
        put(text, ", UDP %u > %u, %zu bytes", packet->udp.src_port,
            packet->udp.dst_port, packet->udp_payload_len);
    } else if (packet->has_icmp) {
        put(text, ", ICMP%s type %u code %u, %zu bytes",
            packet->is_v6 ? "v6" : "", packet->icmp.type, packet->icmp.code,
            packet->l4_len);
    } else {
        put(text, ", protocol %u, %zu bytes", packet->protocol, packet->l4_len);
    }
}

static void put_arp(struct text *text, const struct arp *arp)
{
    put(text, "ARP %s, ", arp->operation == ARP_REQUEST ? "request" : "reply");
    put_ip(text, &arp->sender_ip);
    put(text, " is at ");
    put_mac(text, &arp->sender_mac);
    put(text, ", target ");
    put_ip(text, &arp->target_ip);
}

const char *packet_text(const struct packet *packet, char *text, size_t room)
{
    struct text out = {text, room};

    text[0] = '\0';
    if (packet->eth.tagged) {
        put(&out, "vlan %u prio %u, ", packet->eth.vlan, packet->eth.priority);
    }
    if (packet->has_arp) {
        put_arp(&out, &packet->arp);
    } else if (packet->has_ip) {
        put_ip_packet(&out, packet);
    } else {
        put_mac(&out, &packet->eth.src);
        put(&out, " > ");
        put_mac(&out, &packet->eth.dst);
        put(&out, ", EtherType %04x, %zu bytes", packet->eth.type,
            packet->len_bytes);
    }
    if (packet->damage != NULL) {
        put(&out, " (damaged: %s)", packet->damage);
    }
    return text;
}

/* ---- Building. */

static size_t put_eth(uint8_t *frame, const struct packet_path *path,
                      uint16_t type)
{
    struct eth eth = {
        .dst = path->dst_mac,
        .src = path->src_mac,
        .type = type,
        .tagged = path->tagged || path->vlan != 0,
        .priority = path->priority,
        .vlan = path->vlan,
    };

    eth_emit(&eth, frame);
    return eth_header_len(&eth);
}

/* Write the Ethernet and the IP header. @return where the payload goes */
static size_t put_headers(uint8_t *frame, const struct packet_path *path,
                          uint8_t protocol, size_t len_bytes)
{
    bool is_v6 = !ip_addr_is_v4(&path->dst);
    size_t at = put_eth(frame, path, is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
    uint8_t ttl = path->ttl != 0 ? path->ttl : (uint8_t)DEFAULT_TTL;

    if (is_v6) {
        struct ipv6 ip = {
            .src = path->src,
            .dst = path->dst,
            .payload_len_bytes = (uint16_t)len_bytes,
            .traffic_class = path->tos,
            .next_header = protocol,
            .hop_limit = ttl,
        };

        ipv6_emit(&ip, frame + at);
        return at + IPV6_LEN;
    }
    struct ipv4 ip = {
        .src = path->src,
        .dst = path->dst,
        .total_len_bytes = (uint16_t)(IPV4_LEN + len_bytes),
        .id = path->ip_id,
        .ttl = ttl,
        .tos = path->tos,
        .protocol = protocol,
        .dont_fragment = !path->may_fragment,
    };

    ipv4_emit(&ip, frame + at);
    return at + IPV4_LEN;
}

size_t packet_ip(uint8_t *frame, const struct packet_path *path,
                 uint8_t protocol, const void *payload, size_t len_bytes)
{
    size_t at = put_headers(frame, path, protocol, len_bytes);

    if (len_bytes != 0) {
        memcpy(frame + at, payload, len_bytes);
    }
    return at + len_bytes;
}

size_t packet_udp(uint8_t *frame, const struct packet_path *path,
                  uint16_t src_port, uint16_t dst_port, const void *payload,
                  size_t len_bytes)
{
    size_t at = put_headers(frame, path, IP_PROTOCOL_UDP, UDP_LEN + len_bytes);
    struct udp udp = {
        .src_port = src_port,
        .dst_port = dst_port,
        .length_bytes = (uint16_t)(UDP_LEN + len_bytes),
    };

    udp_emit(&udp, frame + at);
    if (len_bytes != 0) {
        memcpy(frame + at + UDP_LEN, payload, len_bytes);
    }
    put_be16(
        frame + at + UDP_CHECKSUM,
        udp_checksum(&path->src, &path->dst, frame + at, UDP_LEN + len_bytes));
    return at + UDP_LEN + len_bytes;
}

size_t packet_icmp(uint8_t *frame, const struct packet_path *path, uint8_t type,
                   uint8_t code, uint32_t rest, const void *data,
                   size_t len_bytes)
{
    bool is_v6 = !ip_addr_is_v4(&path->dst);
    size_t at =
        put_headers(frame, path, is_v6 ? IP_PROTOCOL_ICMPV6 : IP_PROTOCOL_ICMP,
                    ICMP_LEN + len_bytes);
    struct icmp icmp = {.type = type, .code = code, .rest = rest};

    if (len_bytes != 0) {
        memcpy(frame + at + ICMP_LEN, data, len_bytes);
    }
    if (is_v6) {
        icmpv6_emit(&icmp, &path->src, &path->dst, frame + at,
                    ICMP_LEN + len_bytes);
    } else {
        icmp_emit(&icmp, frame + at, ICMP_LEN + len_bytes);
    }
    return at + ICMP_LEN + len_bytes;
}

size_t packet_arp(uint8_t *frame, const struct mac_addr *dst,
                  const struct mac_addr *src, const struct arp *arp)
{
    struct eth eth = {.dst = *dst, .src = *src, .type = ETHERTYPE_ARP};

    if (mac_addr_is_zero(dst)) {
        memset(eth.dst.bytes, 0xff, sizeof(eth.dst.bytes));
    }
    eth_emit(&eth, frame);
    arp_emit(arp, frame + ETH_LEN);
    return ETH_LEN + ARP_LEN;
}

static size_t put_extensions(uint8_t *p, const struct packet_roce *roce)
{
    uint32_t flags = roce_opcodes[roce->bth.opcode].flags;
    size_t len = roce_opcodes[roce->bth.opcode].header_len_bytes, at = 0;

    if (roce->ext != NULL) {
        memcpy(p, roce->ext, roce->ext_len);
        return roce->ext_len;
    }
    len = len != 0 ? len - BTH_LEN : 0;
    memset(p, 0, len);
    if (flags & ROCE_DETH) {
        deth_emit(&roce->deth, p);
        at += DETH_LEN;
    }
    if (flags & ROCE_RETH) {
        reth_emit(&roce->reth, p + at);
        at += RETH_LEN;
    }
    if (flags & ROCE_AETH) {
        aeth_emit(&roce->aeth, p + at);
        at += AETH_LEN;
    }
    if (flags & ROCE_IMMDT) {
        put_be32(p + at, roce->immediate);
    }
    if (flags & ROCE_IETH) {
        put_be32(p + at, roce->ieth_rkey);
    }
    return len;
}

static void put_bth(uint8_t *p, const struct packet_roce *roce, size_t pad)
{
    struct bth bth = roce->bth;

    bth.pad_bytes = (uint8_t)(pad ^ roce->pad_xor) & 3;
    if (bth.pkey == 0 && !roce->is_pkey_zero) {
        bth.pkey = BTH_PKEY_DEFAULT;
    }
    bth_emit(&bth, p);
    p[BTH_FLAGS] |= roce->transport_version & 0x0f;
}

static size_t put_data(uint8_t *p, const struct packet_roce *roce)
{
    size_t pad = -roce->data_len & 3;

    if (roce->data != NULL) {
        memcpy(p, roce->data, roce->data_len);
    } else {
        memset(p, roce->fill, roce->data_len);
    }
    memset(p + roce->data_len, 0, pad);
    return roce->data_len + pad;
}

size_t packet_roce(uint8_t *frame, const struct packet_path *path,
                   const struct packet_roce *roce)
{
    static uint8_t body[FRAME_LEN_MAX];
    bool is_v6 = !ip_addr_is_v4(&path->dst);
    size_t ext = put_extensions(body + BTH_LEN, roce);
    size_t data = put_data(body + BTH_LEN + ext, roce);
    size_t udp_len = UDP_LEN + BTH_LEN + ext + data + ICRC_LEN;
    struct udp udp = {
        .src_port = roce->udp_src_port != 0 ? roce->udp_src_port
                                            : (uint16_t)DEFAULT_SRC_PORT,
        .dst_port = UDP_PORT_ROCE,
        .length_bytes = (uint16_t)((int)udp_len + roce->udp_len_delta),
        .checksum = roce->udp_checksum,
    };
    size_t at = put_headers(frame, path, IP_PROTOCOL_UDP,
                            (size_t)((int)udp_len + roce->ip_len_delta));
    uint8_t *ip = frame + at - (is_v6 ? IPV6_LEN : IPV4_LEN);
    uint32_t icrc;

    udp_emit(&udp, frame + at);
    put_bth(body, roce, -roce->data_len & 3);
    memcpy(frame + at + UDP_LEN, body, BTH_LEN + ext + data);
    icrc = is_v6 ? icrc_begin_ipv6(ip) : icrc_begin_ipv4(ip);
    icrc = icrc_add(icrc, body + BTH_LEN, ext + data);
    icrc_emit(icrc ^ roce->icrc_xor, frame + at + udp_len - ICRC_LEN);
    return at + udp_len - roce->cut_bytes;
}
