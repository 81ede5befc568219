/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/seat.h"

#include "lib/bytes.h"
#include "net/wire/arp.h"
#include "net/wire/checksum.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"
#include "net/wire/lacp.h"
#include "net/wire/lldp.h"
#include "net/wire/nd.h"
#include "net/wire/udp.h"

enum {
    RECORD_HEADER = 3,
    VLAN = 9,
    /* The minutes that may pass in one input, because agents are busy all the
     * time. */
    MINUTES_MAX = 3,
};

static const struct mac_addr own_mac[NET_PORTS] = {{{2, 0, 0, 0, 0, 0x10}},
                                                   {{2, 0, 0, 0, 0, 0x11}}};

/* ---- What the drive has sent. */

#define MUST(true)                                                             \
    do {                                                                       \
        if (!(true)) {                                                         \
            abort();                                                           \
        }                                                                      \
    } while (0)

static uint16_t sum_of(const struct ip_addr *src, const struct ip_addr *dst,
                       uint8_t protocol, const uint8_t *buf, size_t len)
{
    uint32_t sum = checksum_pseudo(src, dst, protocol, len);

    return checksum_finish(checksum_add(sum, buf, len));
}

static void check_udp(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len)
{
    struct udp udp;

    MUST(udp_parse(&udp, buf, len));
    MUST(udp.length_bytes == len);
    MUST(udp.checksum == 0 || sum_of(src, dst, IP_PROTOCOL_UDP, buf, len) == 0);
}

static void check_source(const struct seat *seat, uint8_t port, uint16_t vlan,
                         const struct ip_addr *src, bool may_be_nobody)
{
    MUST(net_stack_local(&seat->w->stack, port, vlan, src) >= 0 ||
         (may_be_nobody && ip_addr_is_unspecified(src)));
}

static void check_ipv4(const struct seat *seat, uint8_t port, uint16_t vlan,
                       const uint8_t *buf, size_t len)
{
    const uint8_t *payload;
    struct ipv4 ip;
    size_t payload_len;

    MUST(ipv4_parse(&ip, buf, len) && ip.total_len_bytes == len);
    payload = buf + ip.header_len_bytes;
    payload_len = len - ip.header_len_bytes;
    check_source(seat, port, vlan, &ip.src, ip.protocol == IP_PROTOCOL_UDP);
    if (ip.more_fragments || ip.fragment_offset_bytes != 0) {
        return;
    }
    if (ip.protocol == IP_PROTOCOL_ICMP) {
        MUST(payload_len >= ICMP_LEN);
        MUST(checksum_finish(checksum_add(0, payload, payload_len)) == 0);
    } else if (ip.protocol == IP_PROTOCOL_UDP) {
        check_udp(&ip.src, &ip.dst, payload, payload_len);
    } else {
        abort();
    }
}

static void check_ipv6(const struct seat *seat, uint8_t port, uint16_t vlan,
                       const uint8_t *buf, size_t len)
{
    struct ipv6 ip;
    size_t at = IPV6_LEN;
    uint8_t next;

    MUST(ipv6_parse(&ip, buf, len));
    MUST(ip.payload_len_bytes == len - IPV6_LEN);
    check_source(seat, port, vlan, &ip.src, true);
    next = ip.next_header;
    /* The extension header of listener reports. */
    if (next == IPV6_EXT_HOP_BY_HOP) {
        size_t ext_len = ipv6_ext_len(buf + at, len - at);

        MUST(ext_len != 0);
        next = buf[at];
        at += ext_len;
    }
    if (next == IPV6_EXT_FRAGMENT) {
        struct ipv6_fragment fragment;

        MUST(ipv6_fragment_parse(&fragment, buf + at, len - at));
    } else if (next == IP_PROTOCOL_ICMPV6) {
        MUST(sum_of(&ip.src, &ip.dst, next, buf + at, len - at) == 0);
    } else if (next == IP_PROTOCOL_UDP) {
        check_udp(&ip.src, &ip.dst, buf + at, len - at);
    } else {
        abort();
    }
}

static void check_frame(const struct seat *seat, const struct sent *sent)
{
    struct eth eth;
    struct arp arp;
    struct lacp lacp;
    struct lldp lldp;
    struct marker marker;
    const uint8_t *payload;
    uint16_t vlan;
    size_t len;

    MUST(eth_parse(&eth, sent->data, sent->len));
    MUST(mac_addr_equal(&eth.src, &own_mac[sent->port]));
    vlan = eth.vlan != 0 ? eth.vlan : NET_VLAN_UNTAGGED;
    payload = sent->data + eth_header_len(&eth);
    len = sent->len - eth_header_len(&eth);
    MUST(len <= seat->w->stack.config.ports[sent->port].mtu_bytes);
    switch (eth.type) {
    case ETHERTYPE_ARP:
        MUST(len == ARP_LEN && arp_parse(&arp, payload, len));
        check_source(seat, sent->port, vlan, &arp.sender_ip, true);
        break;
    case ETHERTYPE_IPV4:
        check_ipv4(seat, sent->port, vlan, payload, len);
        break;
    case ETHERTYPE_IPV6:
        check_ipv6(seat, sent->port, vlan, payload, len);
        break;
    case ETHERTYPE_LLDP:
        MUST(lldp_parse(&lldp, payload, len) && lldp.len_bytes == len);
        break;
    case ETHERTYPE_SLOW:
        MUST(len == SLOW_LEN && (lacp_parse(&lacp, payload, len) ||
                                 marker_parse(&marker, payload, len)));
        break;
    default:
        abort();
    }
}

static void check_sent(struct seat *seat)
{
    const struct world *w = seat->w;

    if (w->sent_count - seat->checked > SENT_MAX) {
        seat->checked = w->sent_count - SENT_MAX;
    }
    for (; seat->checked != w->sent_count; seat->checked++) {
        check_frame(seat, &w->sent[seat->checked % SENT_MAX]);
    }
}

/* ---- A world for each input. */

struct ip_addr seat_own4(uint8_t flags)
{
    return ip_addr_from_v4(flags & SEAT_PORT_1 ? 0x0a010002
                           : flags & SEAT_VLAN ? 0x0a090002
                                               : 0x0a000002);
}

/* Copy everything except the payloads of fragments that belong to no packet. */
static void copy_stack(struct net_stack *to, const struct net_stack *from)
{
    enum { AT = offsetof(struct net_stack, reassemblies) };
    const uint8_t *src = (const uint8_t *)from;
    uint8_t *dst = (uint8_t *)to;
    size_t behind = AT + sizeof(from->reassemblies);

    memcpy(dst, src, AT);
    for (size_t i = 0; i < NET_REASSEMBLIES; i++) {
        memcpy(&to->reassemblies[i], &from->reassemblies[i],
               offsetof(struct net_reassembly, payload));
    }
    memcpy(dst + behind, src + behind, sizeof(*from) - behind);
}

/* A world with all addresses READY; the first one is kept, and copied for each
 * input. */
static struct world *renew_world(void)
{
    static struct world *ready, *used;

    if (ready == NULL) {
        ready = world_ready();
        used = world_ready();
    }
    copy_stack(&used->stack, &ready->stack);
    used->stack.config.ctx = used;
    used->now_us = ready->now_us;
    used->sent_count = 0;
    used->no_room = false;
    return used;
}

/* If the drive's last frame was an ARP request for the host, answer it. */
static void answer_arp(struct seat *seat)
{
    struct world *w = seat->w;
    const struct sent *last = &w->sent[(w->sent_count - 1) % SENT_MAX];
    const struct ip_addr us = seat_own4(0);
    uint8_t frame[ETH_LEN + ARP_LEN];
    struct arp arp;
    struct eth eth;

    if (w->sent_count != 0 && eth_parse(&eth, last->data, last->len) &&
        eth.type == ETHERTYPE_ARP && eth.vlan == 0 && last->port == 0 &&
        arp_parse(&arp, last->data + ETH_LEN, last->len - ETH_LEN) &&
        arp.operation == ARP_REQUEST && ip_addr_equal(&arp.target_ip, &host4)) {
        size_t len = make_arp(frame, ARP_REPLY, &host_mac, &host4, &us);

        MUST(world_input(w, 0, frame, len));
    }
}

static void pass_time(struct seat *seat, const struct seat_format *format,
                      uint64_t us)
{
    struct world *w = seat->w;
    uint64_t until_us = w->now_us + us;

    for (;;) {
        unsigned int before = w->sent_count;
        uint64_t next_us = net_stack_timer(&w->stack, w->now_us);

        if (format->timer != NULL) {
            uint64_t agent_us = format->timer(seat, w->now_us);
            /* The agent may have given the stack something to do. */
            uint64_t stack_us = net_stack_timer(&w->stack, w->now_us);

            next_us = MIN(next_us, agent_us);
            next_us = MIN(next_us, stack_us);
        }
        check_sent(seat);
        if (format->timer != NULL && w->sent_count != before) {
            answer_arp(seat);
        }
        MUST(next_us > w->now_us);
        if (next_us > until_us) {
            break;
        }
        w->now_us = next_us;
    }
    w->now_us = until_us;
}

static void input_frame(struct seat *seat, uint8_t flags, const uint8_t *frame,
                        size_t len)
{
    struct world *w = seat->w;
    uint8_t port = (flags & SEAT_PORT_1) != 0;
    unsigned int before = w->sent_count;

    if (flags & SEAT_NO_ROOM) {
        w->no_room = true;
        MUST(!world_input(w, port, frame, len));
        w->no_room = false;
    }
    MUST(world_input(w, port, frame, len));
    MUST(w->sent_count - before <= 1);
    check_sent(seat);
}

int seat_run(const struct seat_format *format, const uint8_t *data, size_t len)
{
    struct seat seat = {.w = renew_world()};
    unsigned int minutes = MINUTES_MAX;

    if (format->start != NULL) {
        format->start(&seat);
        pass_time(&seat, format, 0);
    }
    while (len >= RECORD_HEADER) {
        uint8_t flags = data[0];
        size_t record_len = get_le16(data + 1);
        uint8_t copy[SEAT_DATA_MAX];
        uint8_t frame[SEAT_ROOM];

        data += RECORD_HEADER;
        len -= RECORD_HEADER;
        record_len = MIN(MIN(record_len, len), SEAT_DATA_MAX);
        memcpy(copy, data, record_len);
        data += record_len;
        len -= record_len;
        input_frame(&seat, flags, frame,
                    format->wrap(&seat, flags, copy, record_len, frame));
        if ((flags & SEAT_MINUTE) != 0 && minutes != 0) {
            minutes--;
            pass_time(&seat, format, 61 * SECOND);
        } else {
            pass_time(&seat, format, flags & SEAT_SECOND ? SECOND : 0);
        }
    }
    check_neigh(seat.w);
    return 0;
}

/* ---- Outer headers. */

size_t seat_eth(uint8_t flags, const struct mac_addr *group, uint16_t type,
                uint8_t *frame)
{
    const struct eth eth = {
        .dst =
            flags & SEAT_GROUP ? *group : own_mac[(flags & SEAT_PORT_1) != 0],
        .src = host_mac,
        .type = type,
        .tagged = flags & SEAT_VLAN,
        .vlan = flags & SEAT_VLAN ? VLAN : 0,
    };

    eth_emit(&eth, frame);
    return eth_header_len(&eth);
}

size_t seat_ipv4(uint8_t flags, uint8_t protocol, size_t payload_len,
                 uint8_t *frame)
{
    static const struct mac_addr all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    const struct ipv4 ip = {
        .src = flags & SEAT_PORT_1 ? ip_addr_from_v4(0x0a010001)
               : flags & SEAT_VLAN ? ip_addr_from_v4(0x0a090001)
                                   : host4,
        .dst =
            flags & SEAT_GROUP ? ip_addr_from_v4(0xffffffff) : seat_own4(flags),
        .total_len_bytes = (uint16_t)(IPV4_LEN + payload_len),
        .ttl = 64,
        .protocol = protocol,
    };
    size_t at = seat_eth(flags, &all, ETHERTYPE_IPV4, frame);

    ipv4_emit(&ip, frame + at);
    return at + IPV4_LEN;
}

size_t seat_ipv6(uint8_t flags, const struct ip_addr *src,
                 const struct ip_addr *dst, uint8_t next_header,
                 size_t payload_len, uint8_t *frame)
{
    const struct ipv6 ip = {
        .src = *src,
        .dst = *dst,
        .payload_len_bytes = (uint16_t)payload_len,
        .next_header = next_header,
        .hop_limit = ND_HOP_LIMIT,
    };
    struct mac_addr group = nd_multicast_mac(dst);
    size_t at = seat_eth(flags, &group, ETHERTYPE_IPV6, frame);

    ipv6_emit(&ip, frame + at);
    return at + IPV6_LEN;
}

size_t seat_join(uint8_t *frame, size_t at, const uint8_t *data, size_t len)
{
    if (len != 0) {
        memcpy(frame + at, data, len);
    }
    return at + len;
}
