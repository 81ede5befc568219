/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6: decide whether a packet is for us, walk its extension headers, and pass
 * its payload on.
 * Spec: RFC 8200 section 4, RFC 5095 (no source routing), RFC 6946 (a packet in
 * one fragment), RFC 6980 (no neighbour discovery in fragments).
 *
 * Left out: authentication and ESP, which count as an unknown next header; the
 * meaning of single options.
 */
#include "net/stack/internal.h"

#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"

enum { HEADERS_MAX = 8 }; /* extension headers; no honest packet has more */

/* The position of a walk from one header to the next. */
struct walk {
    size_t at;           /* offset of this header in the packet */
    uint16_t named_at;   /* offset of the field that gives its type */
    uint8_t next_header; /* its type */
};

/*
 * ICMPv6 may come from the unspecified address (duplicate detection), and from
 * an own address when another host uses it.
 */
static bool is_bad_source(const struct net_stack *stack,
                          const struct net_rx *rx, bool is_icmp)
{
    return ip_addr_is_multicast(&rx->src) || ip_addr_is_loopback(&rx->src) ||
           (!is_icmp &&
            (ip_addr_is_unspecified(&rx->src) || net_ip_is_from_us(stack, rx)));
}

static void refuse_packet(struct net_stack *stack, struct net_rx *rx,
                          enum net_counter counter, enum net_icmp_error error,
                          size_t pointer)
{
    net_count(stack, rx->port, counter);
    rx->pointer = (uint16_t)pointer;
    net_icmp_error(stack, rx, error);
}

/* @return false when the packet is dropped */
static bool check_options(struct net_stack *stack, struct net_rx *rx, size_t at,
                          size_t len)
{
    size_t offset = 0;

    switch (ipv6_options_check(rx->l3 + at, len, &offset)) {
    case IPV6_OPTIONS_SKIP:
        return true;
    case IPV6_OPTIONS_MALFORMED:
        refuse_packet(stack, rx, NET_DROP_IPV6_EXTENSION, NET_HEADER_PROBLEM,
                      at + offset);
        return false;
    case IPV6_OPTIONS_REPORT:
        refuse_packet(stack, rx, NET_DROP_IPV6_OPTION, NET_OPTION_PROBLEM,
                      at + offset);
        return false;
    case IPV6_OPTIONS_REPORT_UNICAST:
        refuse_packet(stack, rx, NET_DROP_IPV6_OPTION,
                      NET_OPTION_PROBLEM_UNICAST, at + offset);
        return false;
    default:
        net_count(stack, rx->port, NET_DROP_IPV6_OPTION);
        return false;
    }
}

/* No routing type is known, so no segments may be left: RFC 8200 4.4. */
static bool check_routing(struct net_stack *stack, struct net_rx *rx, size_t at)
{
    if (rx->l3[at + IPV6_ROUTING_SEGMENTS_LEFT] == 0) {
        return true;
    }
    refuse_packet(stack, rx, NET_DROP_IPV6_EXTENSION, NET_HEADER_PROBLEM,
                  at + IPV6_ROUTING_TYPE);
    return false;
}

/*
 * Check one header other than a fragment header, and advance to the next.
 *
 * @return false when the packet is dropped
 */
static bool skip_header(struct net_stack *stack, struct net_rx *rx,
                        struct walk *walk)
{
    size_t len = ipv6_ext_len(rx->l3 + walk->at, rx->l3_len - walk->at);
    bool ok;

    if (len == 0) {
        net_count(stack, rx->port, NET_DROP_IPV6_EXTENSION);
        return false;
    }
    ok = walk->next_header == IPV6_EXT_ROUTING
             ? check_routing(stack, rx, walk->at)
             : check_options(stack, rx, walk->at, len);
    walk->named_at = (uint16_t)(walk->at + IPV6_EXT_NEXT_HEADER);
    walk->next_header = rx->l3[walk->named_at];
    walk->at += len;
    return ok;
}

/* @return true when the whole packet is there */
static bool take_fragment(struct net_stack *stack, struct net_rx *rx,
                          struct walk *walk)
{
    size_t at = walk->at + IPV6_FRAGMENT_LEN;
    struct ipv6_fragment header;
    struct net_fragment f;
    size_t len;

    if (rx->is_fragmented || rx->local < 0 ||
        !ipv6_fragment_parse(&header, rx->l3 + walk->at,
                             rx->l3_len - walk->at)) {
        net_count(stack, rx->port, NET_DROP_FRAGMENT_MALFORMED);
        return false;
    }
    rx->is_fragmented = true;
    walk->named_at = (uint16_t)(walk->at + IPV6_EXT_NEXT_HEADER);
    walk->next_header = header.next_header;
    walk->at = at;
    if (header.offset_bytes == 0 && !header.more_fragments) {
        return true; /* an atomic fragment is a whole packet: RFC 6946 */
    }
    len = rx->l3_len - at;
    if (len == 0) {
        net_count(stack, rx->port, NET_DROP_FRAGMENT_MALFORMED);
        return false;
    }
    if (header.more_fragments && len % 8 != 0) {
        refuse_packet(stack, rx, NET_DROP_FRAGMENT_MALFORMED,
                      NET_HEADER_PROBLEM, IPV6_PAYLOAD_LEN);
        return false;
    }
    if (header.offset_bytes + len > NET_PAYLOAD_MAX) {
        refuse_packet(stack, rx, NET_DROP_FRAGMENT_MALFORMED,
                      NET_HEADER_PROBLEM,
                      at - IPV6_FRAGMENT_LEN + IPV6_FRAGMENT_OFFSET);
        return false;
    }
    f = (struct net_fragment){
        .id = header.id,
        .offset_bytes = header.offset_bytes,
        .more_fragments = header.more_fragments,
        .protocol = header.next_header,
        .payload = rx->l3 + at,
    };
    if (!net_fragment_input(stack, rx, &f, len)) {
        return false;
    }
    *walk = (struct walk){
        .at = IPV6_LEN,
        .named_at = IPV6_NEXT_HEADER,
        .next_header = rx->reassembly->protocol,
    };
    return true;
}

/* @return true when walk->next_header is the payload's protocol */
static bool find_payload(struct net_stack *stack, struct net_rx *rx,
                         struct walk *walk)
{
    for (unsigned count = 0; count <= HEADERS_MAX; count++) {
        switch (walk->next_header) {
        case IPV6_EXT_HOP_BY_HOP:
            if (count != 0 || rx->is_fragmented) {
                refuse_packet(stack, rx, NET_DROP_IPV6_EXTENSION,
                              NET_PROTOCOL_UNREACHABLE, walk->named_at);
                return false;
            }
            if (!skip_header(stack, rx, walk)) {
                return false;
            }
            break;
        case IPV6_EXT_ROUTING:
        case IPV6_EXT_DESTINATION:
            if (!skip_header(stack, rx, walk)) {
                return false;
            }
            break;
        case IPV6_EXT_FRAGMENT:
            if (!take_fragment(stack, rx, walk)) {
                return false;
            }
            break;
        default:
            return true;
        }
    }
    net_count(stack, rx->port, NET_DROP_IPV6_EXTENSION);
    return false;
}

static void ipv6_dispatch(struct net_stack *stack, struct net_rx *rx,
                          const struct walk *walk)
{
    rx->l4 = rx->l3 + walk->at;
    rx->l4_len = rx->l3_len - walk->at;
    if (is_bad_source(stack, rx, walk->next_header == IP_PROTOCOL_ICMPV6)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (walk->next_header == IP_PROTOCOL_ICMPV6) {
        net_icmpv6_input(stack, rx);
    } else if (walk->next_header == IP_PROTOCOL_UDP) {
        net_udp_input(stack, rx);
    } else if (walk->next_header == IPV6_EXT_NONE ||
               (walk->next_header == IP_PROTOCOL_TCP && stack->has_tcp)) {
        net_count(stack, rx->port, NET_DROP_PROTOCOL);
    } else {
        refuse_packet(stack, rx, NET_DROP_PROTOCOL, NET_PROTOCOL_UNREACHABLE,
                      walk->named_at);
    }
}

void net_ipv6_input(struct net_stack *stack, struct net_rx *rx)
{
    struct walk walk = {.at = IPV6_LEN, .named_at = IPV6_NEXT_HEADER};
    struct ipv6 ip;

    if (!ipv6_parse(&ip, rx->l3, rx->l3_len)) {
        net_count(stack, rx->port, NET_DROP_IPV6_HEADER);
        return;
    }
    rx->src = ip.src;
    rx->dst = ip.dst;
    rx->tos = ip.traffic_class;
    rx->hop_limit = ip.hop_limit;
    rx->l3_len = IPV6_LEN + ip.payload_len_bytes;
    walk.next_header = ip.next_header;
    if (is_bad_source(stack, rx, true)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (!net_ip_is_for_us(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_NOT_OURS);
    } else if (find_payload(stack, rx, &walk)) {
        ipv6_dispatch(stack, rx, &walk);
    }
    if (rx->reassembly != NULL) {
        net_fragment_done(stack, rx);
    }
}
