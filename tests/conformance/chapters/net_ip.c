/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv4 headers, options and addresses; fragments of IPv4 and IPv6.
 *
 * Spec: RFC 791, RFC 1122 section 3.2.1, RFC 7126, RFC 8200 section 4.5, RFC
 * 5722, RFC 6946.
 */
#include <string.h>

#include "lib/bytes.h"
#include "net_lib.h"

enum {
    OPTION_NOP = 1,
    OPTION_RECORD_ROUTE = 7,
    OPTION_TIMESTAMP = 68,
    OPTION_LSRR = 131,
    OPTION_SSRR = 137,
    OPTION_ROUTER_ALERT = 148,
    OPTION_UNKNOWN = 30,
    DATA = 16,
    DATA_LEN = 400,
    /* 60 to 120 s by RFC 1122 3.3.2; 60 s by RFC 8200. */
    TIMEOUT_MIN_US = 60000000,
    TIMEOUT_MAX_US = 125000000,
    HOLES = 40,
};

/* ---- IPv4 headers. Each test sends an echo request with an unusual header. */

struct usual {
    struct packet_path path;
    uint32_t rest;
    size_t len_bytes;
    uint8_t frame[512];
};

static struct usual *new_usual_echo(struct conf *conf)
{
    struct usual *it = conf_alloc(conf, sizeof(*it));

    it->path = net_path0(conf, false);
    it->rest = net_rest(conf);
    it->len_bytes =
        net_echo(it->frame, &it->path, it->rest, "0123456789abcdef", DATA);
    return it;
}

static void expect_taken(struct conf *conf, struct usual *it)
{
    net_mend_ipv4(it->frame);
    net_send(conf, it->frame, it->len_bytes);
    net_take_reply(conf, &it->path, it->rest, "0123456789abcdef", DATA);
}

static void expect_dropped(struct conf *conf, struct usual *it)
{
    net_mend_ipv4(it->frame);
    net_send(conf, it->frame, it->len_bytes);
    net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
}

static void put_options(struct usual *it, const uint8_t *options, size_t len)
{
    uint8_t *ip = net_ip(it->frame);

    memmove(ip + IPV4_LEN + len, ip + IPV4_LEN, ICMP_LEN + DATA);
    memcpy(ip + IPV4_LEN, options, len);
    ip[IPV4_VERSION_IHL] = (uint8_t)(0x40 | (IPV4_LEN + len) / 4);
    put_be16(ip + IPV4_TOTAL_LEN, (uint16_t)(IPV4_LEN + len + ICMP_LEN + DATA));
    it->len_bytes += len;
}

static void with_options(struct conf *conf, const uint8_t *options, size_t len,
                         bool is_taken)
{
    struct usual *it = new_usual_echo(conf);

    put_options(it, options, len);
    if (is_taken) {
        expect_taken(conf, it);
    } else {
        expect_dropped(conf, it);
    }
}

static void options_known(struct conf *conf)
{
    static const uint8_t nops[4] = {1, 1, 1, 0};
    static const uint8_t end[4] = {0, 0xff, 0xff, 0xff};
    static const uint8_t alert[4] = {OPTION_ROUTER_ALERT, 4, 0, 0};
    static const uint8_t record[8] = {OPTION_RECORD_ROUTE, 7, 4};
    static const uint8_t stamp[12] = {OPTION_TIMESTAMP, 12, 5};

    with_options(conf, nops, sizeof(nops), true);
    with_options(conf, end, sizeof(end), true);
    with_options(conf, alert, sizeof(alert), true);
    with_options(conf, record, sizeof(record), true);
    with_options(conf, stamp, sizeof(stamp), true);
}

static void options_unknown(struct conf *conf)
{
    static const uint8_t unknown[8] = {OPTION_UNKNOWN, 6, 1, 2, 3, 4};
    uint8_t full[40];

    with_options(conf, unknown, sizeof(unknown), true);
    memset(full, OPTION_NOP, sizeof(full));
    with_options(conf, full, sizeof(full), true);
}

static void source_route(struct conf *conf)
{
    static const uint8_t loose[8] = {OPTION_LSRR, 7, 4, 10, 0, 0, 99};
    static const uint8_t strict[8] = {OPTION_SSRR, 7, 4, 10, 0, 0, 99};

    with_options(conf, loose, sizeof(loose), false);
    with_options(conf, strict, sizeof(strict), false);
}

static void options_overrun(struct conf *conf)
{
    static const uint8_t zero[4] = {OPTION_UNKNOWN, 0, 0, 0};
    static const uint8_t one[4] = {OPTION_UNKNOWN, 1, 0, 0};
    static const uint8_t beyond[4] = {OPTION_UNKNOWN, 5, 0, 0};
    static const uint8_t cut[4] = {1, 1, 1, OPTION_UNKNOWN};

    with_options(conf, zero, sizeof(zero), false);
    with_options(conf, one, sizeof(one), false);
    with_options(conf, beyond, sizeof(beyond), false);
    with_options(conf, cut, sizeof(cut), false);
}

static void header_checksum(struct conf *conf)
{
    struct usual *it = new_usual_echo(conf);

    net_ip(it->frame)[IPV4_CHECKSUM] ^= 1;
    net_send(conf, it->frame, it->len_bytes);
    net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
}

static void ipv4_ttl(struct conf *conf)
{
    static const uint8_t ttls[] = {1, 2, 255};

    for (size_t i = 0; i < ARRAY_LEN(ttls); i++) {
        struct usual *it = new_usual_echo(conf);

        net_ip(it->frame)[IPV4_TTL] = ttls[i];
        expect_taken(conf, it);
    }
}

static void ipv4_version(struct conf *conf)
{
    static const uint8_t versions[] = {0, 5, 6, 15};

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct usual *it = new_usual_echo(conf);

        net_ip(it->frame)[IPV4_VERSION_IHL] = (uint8_t)(versions[i] << 4 | 5);
        expect_dropped(conf, it);
    }
}

static void header_length(struct conf *conf)
{
    static const uint8_t lengths[] = {0, 1, 4, 15};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct usual *it = new_usual_echo(conf);

        net_ip(it->frame)[IPV4_VERSION_IHL] = 0x40 | lengths[i];
        expect_dropped(conf, it);
    }
}

static void total_length(struct conf *conf)
{
    static const int lengths[] = {0, 19, 20, 27, 60, 1501, 65535};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct usual *it = new_usual_echo(conf);

        put_be16(net_ip(it->frame) + IPV4_TOTAL_LEN, (uint16_t)lengths[i]);
        expect_dropped(conf, it);
    }
}

static void ipv4_trailer(struct conf *conf)
{
    struct usual *it = new_usual_echo(conf);

    memset(it->frame + it->len_bytes, 0xee, 100);
    it->len_bytes += 100;
    expect_taken(conf, it);
}

static void reserved_flag(struct conf *conf)
{
    struct usual *it = new_usual_echo(conf);
    uint8_t *at = net_ip(it->frame) + IPV4_FRAGMENT;

    /* The DF flag makes no difference to a whole packet. */
    put_be16(at, get_be16(at) & 0x3fff);
    expect_taken(conf, it);
}

static void expect_source_dropped(struct conf *conf, const struct ip_addr *src)
{
    struct usual *it = new_usual_echo(conf);

    put_be32(net_ip(it->frame) + IPV4_SRC, ip_addr_to_v4(src));
    expect_dropped(conf, it);
}

static void from_v4(struct conf *conf, uint32_t src)
{
    struct ip_addr ip = ip_addr_from_v4(src);

    expect_source_dropped(conf, &ip);
}

static void source_group(struct conf *conf)
{
    from_v4(conf, 0xe0000001);
    from_v4(conf, 0xefffffff);
}

static void source_all(struct conf *conf)
{
    from_v4(conf, 0xffffffff);
}

static void source_directed(struct conf *conf)
{
    struct ip_addr ip = net_path0(conf, false).dst;

    ip.bytes[15] = 0xff;
    expect_source_dropped(conf, &ip);
}

static void source_loopback(struct conf *conf)
{
    from_v4(conf, 0x7f000001);
    from_v4(conf, 0x7ffffffe);
}

static void source_nobody(struct conf *conf)
{
    from_v4(conf, 0);
}

static void source_own(struct conf *conf)
{
    struct ip_addr ip = net_path0(conf, false).dst;

    expect_source_dropped(conf, &ip);
}

static void ipv4_destination(struct conf *conf)
{
    uint32_t own = ip_addr_to_v4(&conf_target(conf)->ports[0].ip4);
    uint32_t others[] = {own + 0x60, 0x7f000001, 0, 0x08080808, 0xf0000001};

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct usual *it = new_usual_echo(conf);

        put_be32(net_ip(it->frame) + IPV4_DST, others[i]);
        expect_dropped(conf, it);
    }
}

static void unicast_in_broadcast(struct conf *conf)
{
    struct usual *it = new_usual_echo(conf);

    memset(it->frame, 0xff, 6);
    expect_dropped(conf, it);
}

/* ---- Fragments. */

static const unsigned int pieces = 4;

/* Send fragment `i`: a fifth of the message; the last one has the rest. */
static void send_fragment(struct conf *conf, const struct net_whole *whole,
                          unsigned int i)
{
    size_t len = (whole->len_bytes / (pieces + 1)) & ~(size_t)7;
    bool more = i + 1 < pieces;

    net_send_piece(conf, whole, i * len,
                   more ? len : whole->len_bytes - i * len, more);
}

static void in_this_order(struct conf *conf, const uint8_t *order, size_t n)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct net_whole *whole = net_whole_echo(conf, v6 != 0, DATA_LEN);

        for (size_t i = 0; i < n; i++) {
            send_fragment(conf, whole, order[i]);
        }
        net_take_whole(conf, whole);
    }
}

static void fragment_in_order(struct conf *conf)
{
    static const uint8_t order[] = {0, 1, 2, 3};

    in_this_order(conf, order, sizeof(order));
}

static void fragment_reversed(struct conf *conf)
{
    static const uint8_t order[] = {3, 2, 1, 0};

    in_this_order(conf, order, sizeof(order));
}

static void fragment_shuffled(struct conf *conf)
{
    static const uint8_t order[] = {2, 0, 3, 1};

    in_this_order(conf, order, sizeof(order));
}

/* A second copy of the same bytes is no overlap: RFC 8200 allows the receiver
 * to ignore it, and IPv4 networks do duplicate packets. */
static void duplicate_v4(struct conf *conf)
{
    static const uint8_t order[] = {0, 1, 1, 0, 2, 2, 3};
    struct net_whole *whole = net_whole_echo(conf, false, DATA_LEN);

    for (size_t i = 0; i < sizeof(order); i++) {
        send_fragment(conf, whole, order[i]);
    }
    net_take_whole(conf, whole);
}

/* Over IPv4 another target may accept this, because RFC 791 3.2 has no rule
 * against it. */
static void expect_refused(struct conf *conf, const struct net_whole *whole,
                           const char *what)
{
    if (!conf_target(conf)->is_ours &&
        conf_take_within(conf, net_is_reply, &whole->rest, CONF_SILENCE_US) !=
            NULL) {
        conf_not_applicable(conf, "the target reassembles IPv4 fragments: %s",
                            what);
    }
    net_expect_no_whole(conf, whole);
}

/* Send all fragments and, with other contents, the `len` bytes from `at` on. */
static void send_overlap(struct conf *conf, bool is_v6, size_t at, size_t len)
{
    struct net_whole *whole = net_whole_echo(conf, is_v6, DATA_LEN);

    send_fragment(conf, whole, 0);
    send_fragment(conf, whole, 1);
    whole->message[at] ^= 0xff; /* This copy of the bytes has other contents. */
    net_send_piece(conf, whole, at, len, true);
    whole->message[at] ^= 0xff;
    send_fragment(conf, whole, 2);
    send_fragment(conf, whole, 3);
    if (is_v6) {
        net_expect_no_whole(conf, whole);
    } else {
        expect_refused(conf, whole, "fragments that overlap");
    }
}

static void overlap_inside(struct conf *conf)
{
    send_overlap(conf, true, 40, 16);
}

static void overlap_ahead(struct conf *conf)
{
    send_overlap(conf, true, 152, 24);
}

static void overlap_header(struct conf *conf)
{
    send_overlap(conf, true, 0, 8);
}

static void overlap_v4(struct conf *conf)
{
    send_overlap(conf, false, 0, 8);
    send_overlap(conf, false, 40, 16);
}

/* After an overlap the whole packet is given up. */
static void overlap_then_right(struct conf *conf)
{
    struct net_whole *whole = net_whole_echo(conf, true, DATA_LEN);

    send_fragment(conf, whole, 0);
    whole->message[16] ^= 0xff;
    net_send_piece(conf, whole, 16, 16, true);
    whole->message[16] ^= 0xff;
    for (unsigned int i = 0; i < pieces; i++) {
        send_fragment(conf, whole, i);
    }
    net_expect_no_whole(conf, whole);
}

static void two_ends(struct conf *conf)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct net_whole *whole = net_whole_echo(conf, v6 != 0, DATA_LEN);

        send_fragment(conf, whole, 3);
        net_send_piece(conf, whole, whole->len_bytes - 16 - 4, 16, false);
        send_fragment(conf, whole, 0);
        send_fragment(conf, whole, 1);
        send_fragment(conf, whole, 2);
        net_expect_no_whole(conf, whole);
    }
}

static void fragment_hole(struct conf *conf)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct net_whole *whole = net_whole_echo(conf, v6 != 0, DATA_LEN);

        send_fragment(conf, whole, 0);
        send_fragment(conf, whole, 2);
        send_fragment(conf, whole, 3);
        net_expect_no_whole(conf, whole);
        /* The packet still waits for its other fragments. */
        send_fragment(conf, whole, 1);
        net_take_whole(conf, whole);
    }
}

static void first_small(struct conf *conf)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct net_whole *whole = net_whole_echo(conf, v6 != 0, DATA_LEN);

        for (size_t at = 0; at < whole->len_bytes; at += 8) {
            size_t len = MIN((size_t)8, whole->len_bytes - at);

            net_send_piece(conf, whole, at, len, at + len < whole->len_bytes);
        }
        net_take_whole(conf, whole);
    }
}

static void odd_length(struct conf *conf)
{
    struct net_whole *whole = net_whole_echo(conf, false, DATA_LEN);

    net_send_piece(conf, whole, 0, 100, true);
    net_send_piece(conf, whole, 96, whole->len_bytes - 96, false);
    expect_refused(conf, whole, "a fragment that is not a multiple of 8 bytes");
}

static void odd_length_v6(struct conf *conf)
{
    struct net_whole *whole = net_whole_echo(conf, true, DATA_LEN);
    const struct packet *error;

    conf_pass(conf, NET_ERROR_REST_US);
    net_send_piece(conf, whole, 0, 100, true);
    error =
        conf_take(conf, "a parameter problem", net_is_error, &whole->path.src);
    conf_equal(conf, "type", error->icmp.type, ICMPV6_PARAMETER_PROBLEM);
    conf_equal(conf, "code", error->icmp.code, 0);
    conf_equal(conf, "pointer", error->icmp.rest, IPV6_PAYLOAD_LEN);
}

static void fragment_beyond(struct conf *conf)
{
    struct net_whole *whole = net_whole_echo(conf, false, DATA_LEN);
    uint8_t frame[256];
    size_t len;

    net_send_piece(conf, whole, 0, 400, true);
    len = packet_ip(frame, &whole->path, IP_PROTOCOL_ICMP, whole->message, 64);
    put_be16(net_ip(frame) + IPV4_ID, (uint16_t)whole->id);
    /* The last possible offset, 65528. */
    put_be16(net_ip(frame) + IPV4_FRAGMENT, 0x1fff);
    net_mend_ipv4(frame);
    net_send(conf, frame, len);
    net_expect_no_whole(conf, whole);
    net_ping(conf, &whole->path, "alive", 5);
}

static void beyond_v6(struct conf *conf)
{
    struct net_whole *whole = net_whole_echo(conf, true, DATA_LEN);
    struct ipv6_fragment header = {
        .id = whole->id,
        .offset_bytes = 0xfff8,
        .next_header = IP_PROTOCOL_UDP,
    };
    uint8_t frame[256], body[IPV6_FRAGMENT_LEN + 64] = {0};
    const struct packet *error;

    conf_pass(conf, NET_ERROR_REST_US);
    ipv6_fragment_emit(&header, body);
    net_send(
        conf, frame,
        packet_ip(frame, &whole->path, IPV6_EXT_FRAGMENT, body, sizeof(body)));
    error =
        conf_take(conf, "a parameter problem", net_is_error, &whole->path.src);
    conf_equal(conf, "type", error->icmp.type, ICMPV6_PARAMETER_PROBLEM);
    conf_equal(conf, "code", error->icmp.code, 0);
    conf_equal(conf, "pointer", error->icmp.rest,
               IPV6_LEN + IPV6_FRAGMENT_OFFSET);
}

static void mixed_ids(struct conf *conf)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct net_whole *one = net_whole_echo(conf, v6 != 0, DATA_LEN);
        struct net_whole *two = net_whole_echo(conf, v6 != 0, DATA_LEN - 1);

        for (unsigned int i = 0; i < pieces; i++) {
            send_fragment(conf, one, i);
            send_fragment(conf, two, pieces - 1 - i);
        }
        net_take_whole(conf, one);
        net_take_whole(conf, two);
    }
}

/* Two hosts use the same identification. */
static void mixed_sources(struct conf *conf)
{
    struct net_whole *one = net_whole_echo(conf, false, DATA_LEN);
    struct net_whole *two = net_whole_echo(conf, false, DATA_LEN - 1);

    two->path = net_path(conf, conf_peer(conf, 1, 0), false);
    two->path.may_fragment = true;
    two->id = one->id;
    for (unsigned int i = 0; i < pieces; i++) {
        send_fragment(conf, one, i);
        send_fragment(conf, two, i);
    }
    net_take_whole(conf, one);
    net_take_whole(conf, two);
}

/* A whole packet in one fragment, sent after other fragments with the same
 * identification. */
static void fragment_atomic(struct conf *conf)
{
    struct net_whole *begun = net_whole_echo(conf, true, DATA_LEN);
    struct net_whole *whole = net_whole_echo(conf, true, 64);

    whole->id = begun->id;
    send_fragment(conf, begun, 0);
    net_send_piece(conf, whole, 0, whole->len_bytes, false);
    net_take_whole(conf, whole);
    send_fragment(conf, begun, 1);
    send_fragment(conf, begun, 2);
    send_fragment(conf, begun, 3);
    net_take_whole(conf, begun);
}

/* Many incomplete packets do not keep others out. */
static void many_holes(struct conf *conf)
{
    struct net_whole *whole;

    for (unsigned int i = 0; i < HOLES; i++) {
        whole = net_whole_echo(conf, false, DATA_LEN);
        send_fragment(conf, whole, 1);
    }
    whole = net_whole_echo(conf, false, DATA_LEN);
    whole->path = net_path(conf, conf_peer(conf, 1, 0), false);
    whole->path.may_fragment = true;
    for (unsigned int i = 0; i < pieces; i++) {
        send_fragment(conf, whole, i);
    }
    net_take_whole(conf, whole);
}

/* An error that quotes this packet's fragments. Packets of earlier tests may
 * time out at the same time. */
static bool is_error_about(const struct packet *packet, const void *ctx)
{
    const struct net_whole *whole = ctx;
    const uint8_t *quoted = packet->l4 + ICMP_LEN;

    if (!net_is_error(packet, &whole->path.src)) {
        return false;
    }
    if (!packet->is_v6) {
        return packet->l4_len >= ICMP_LEN + IPV4_LEN &&
               get_be16(quoted + IPV4_ID) == (uint16_t)whole->id;
    }
    return packet->l4_len >= ICMP_LEN + IPV6_LEN + IPV6_FRAGMENT_LEN &&
           get_be32(quoted + IPV6_LEN + IPV6_FRAGMENT_ID) == whole->id;
}

static void time_out(struct conf *conf, bool is_v6, bool has_first)
{
    struct net_whole *whole = net_whole_echo(conf, is_v6, DATA_LEN);
    const struct packet *error;
    uint64_t since_us = conf_now_us(conf);

    send_fragment(conf, whole, has_first ? 0 : 1);
    send_fragment(conf, whole, 2);
    error = conf_take_within(conf, is_error_about, whole, TIMEOUT_MAX_US);
    if (!has_first) {
        conf_check(
            conf, error == NULL,
            "an error came about a packet whose first fragment is missing");
        send_fragment(conf, whole, 0);
        send_fragment(conf, whole, 3);
        net_expect_no_whole(conf, whole);
        return;
    }
    conf_check(conf, error != NULL, "expected time exceeded: nothing came");
    conf_equal(conf, "type", error->icmp.type,
               is_v6 ? ICMPV6_TIME_EXCEEDED : ICMP_TIME_EXCEEDED);
    conf_equal(conf, "code", error->icmp.code, 1);
    conf_check(conf, error->time_us - since_us >= TIMEOUT_MIN_US,
               "the packet was given up after %llu us, not after 60 s",
               (unsigned long long)(error->time_us - since_us));
    send_fragment(conf, whole, 1);
    send_fragment(conf, whole, 3);
    net_expect_no_whole(conf, whole);
}

static void time_out_v4(struct conf *conf)
{
    time_out(conf, false, true);
}

static void time_out_v6(struct conf *conf)
{
    time_out(conf, true, true);
}

static void time_out_silent(struct conf *conf)
{
    time_out(conf, true, false);
}

static const struct conf_test tests[] = {
    CONF_TEST("ipv4.options-known", "RFC 1122 3.2.1.8",
              "a packet with known options is accepted", options_known),
    CONF_TEST(
        "ipv4.options-unknown", "RFC 1122 3.2.1.8",
        "a packet with unknown options is accepted, even with 40 bytes of them",
        options_unknown, .is_malformed = true),
    CONF_TEST("ipv4.source-route", "RFC 7126 4.3, 4.4",
              "source-routed packets are dropped", source_route),
    CONF_TEST("ipv4.options-overrun", "RFC 791 3.1",
              "a packet with a malformed option is dropped", options_overrun,
              .is_malformed = true),
    CONF_TEST("ipv4.checksum", "RFC 1122 3.2.1.2",
              "a packet with a wrong header checksum is dropped",
              header_checksum, .is_malformed = true),
    CONF_TEST("ipv4.ttl", "RFC 1122 3.2.1.7",
              "a packet with a TTL of 1 is accepted", ipv4_ttl),
    CONF_TEST("ipv4.version", "RFC 1122 3.2.1.1",
              "packets of versions other than 4 are silently discarded",
              ipv4_version, .is_malformed = true),
    CONF_TEST("ipv4.header-length", "RFC 791 3.1",
              "a packet is dropped when its header length is below 20 or "
              "beyond the packet",
              header_length, .is_malformed = true),
    CONF_TEST("ipv4.total-length", "RFC 791 3.1",
              "a packet with an impossible total length is dropped",
              total_length, .is_malformed = true),
    CONF_TEST("ipv4.trailer", "RFC 894",
              "bytes after the packet in its frame are ignored", ipv4_trailer),
    CONF_TEST("ipv4.may-fragment", "RFC 791 3.1",
              "a whole packet is accepted with DF set or clear", reserved_flag),
    CONF_TEST("ipv4.source-multicast", "RFC 1122 3.2.1.3",
              "packets from a group are dropped", source_group,
              .is_malformed = true),
    CONF_TEST("ipv4.source-broadcast", "RFC 1122 3.2.1.3",
              "packets from 255.255.255.255 are dropped", source_all,
              .is_malformed = true),
    CONF_TEST("ipv4.source-directed-broadcast", "RFC 1122 3.2.1.3",
              "packets from the subnet's broadcast address are dropped",
              source_directed, .is_malformed = true),
    CONF_TEST("ipv4.source-loopback", "RFC 1122 3.2.1.3 (g)",
              "packets from 127/8 are dropped", source_loopback,
              .is_malformed = true),
    CONF_TEST("ipv4.source-nobody", "RFC 1122 3.2.2",
              "a packet from 0.0.0.0 is not answered", source_nobody,
              .is_malformed = true),
    CONF_TEST("ipv4.source-own", "RFC 5227 2.4",
              "a packet from the drive's own address is not answered",
              source_own, .is_malformed = true),
    CONF_TEST("ipv4.destination", "RFC 1122 3.2.1.3",
              "packets to other addresses are silently discarded",
              ipv4_destination, .is_malformed = true),
    CONF_TEST("ipv4.unicast-in-broadcast", "RFC 1122 3.3.6",
              "a unicast packet in a broadcast frame is discarded",
              unicast_in_broadcast, .is_malformed = true),
    CONF_TEST("fragment.in-order", "RFC 791 3.2, RFC 8200 4.5",
              "four fragments make a packet", fragment_in_order),
    CONF_TEST("fragment.reversed", "RFC 791 3.2, RFC 8200 4.5",
              "four fragments in reverse order make a packet",
              fragment_reversed),
    CONF_TEST("fragment.shuffled", "RFC 791 3.2, RFC 8200 4.5",
              "four fragments in any order make a packet", fragment_shuffled),
    CONF_TEST("fragment.duplicate", "RFC 791 3.2",
              "fragments that come twice do no harm", duplicate_v4),
    CONF_TEST("fragment.overlap-inside", "RFC 5722 4, RFC 8200 4.5",
              "a fragment inside another causes the packet to be dropped",
              overlap_inside, .is_malformed = true),
    CONF_TEST("fragment.overlap-ahead", "RFC 5722 4, RFC 8200 4.5",
              "a fragment that overlaps another's end causes the packet to be "
              "dropped",
              overlap_ahead, .is_malformed = true),
    CONF_TEST("fragment.overlap-header", "RFC 5722 4, RFC 8200 4.5",
              "a second first fragment causes the packet to be dropped",
              overlap_header, .is_malformed = true),
    CONF_TEST("fragment.overlap-v4", "RFC 1858 4",
              "overlapping IPv4 fragments do not overwrite what was received",
              overlap_v4, .is_malformed = true),
    CONF_TEST("fragment.overlap-remembered", "RFC 5722 4",
              "after an overlap the correct fragments do not make that packet",
              overlap_then_right, .is_malformed = true),
    CONF_TEST("fragment.two-ends", "RFC 8200 4.5",
              "two last fragments that disagree cause the packet to be dropped",
              two_ends, .is_malformed = true),
    CONF_TEST(
        "fragment.hole", "RFC 791 3.2, RFC 8200 4.5",
        "a packet with a missing fragment is not delivered until that arrives",
        fragment_hole),
    CONF_TEST("fragment.smallest", "RFC 791 3.2",
              "51 fragments of 8 bytes make a packet", first_small),
    CONF_TEST("fragment.odd-length", "RFC 791 3.2",
              "a fragment that is not the last is dropped unless it has a "
              "multiple of 8 bytes",
              odd_length, .is_malformed = true),
    CONF_TEST("fragment.odd-length-v6", "RFC 8200 4.5",
              "an IPv6 fragment of another length gets a parameter problem "
              "with a pointer to its length",
              odd_length_v6, .is_malformed = true),
    CONF_TEST("fragment.beyond", "RFC 791 3.2",
              "fragments beyond 65535 bytes are dropped", fragment_beyond,
              .is_malformed = true),
    CONF_TEST("fragment.beyond-v6", "RFC 8200 4.5",
              "fragments beyond 65535 bytes get a parameter problem with a "
              "pointer to the offset",
              beyond_v6, .is_malformed = true),
    CONF_TEST("fragment.mixed-ids", "RFC 791 3.2, RFC 8200 4.5",
              "fragments of two packets are told apart by identification",
              mixed_ids),
    CONF_TEST("fragment.mixed-sources", "RFC 791 3.2",
              "fragments of two packets are told apart by source address",
              mixed_sources),
    CONF_TEST(
        "fragment.atomic", "RFC 6946 4",
        "a whole packet in one fragment is independent of other fragments",
        fragment_atomic),
    CONF_TEST("fragment.many-holes", "RFC 6274 3.8.1.1",
              "40 incomplete packets do not keep a complete one out",
              many_holes),
    CONF_TEST("fragment.time-out", "RFC 1122 3.3.2",
              "an incomplete packet with its first fragment gets time exceeded "
              "after 60 to 120 s",
              time_out_v4, .needs = CONF_LONG),
    CONF_TEST("fragment.time-out-v6", "RFC 8200 4.5",
              "an incomplete IPv6 packet with its first fragment gets time "
              "exceeded after 60 s",
              time_out_v6, .needs = CONF_LONG),
    CONF_TEST("fragment.time-out-silent", "RFC 8200 4.5",
              "no error is sent about an incomplete packet without its first "
              "fragment",
              time_out_silent, .needs = CONF_LONG),
};
CONF_TESTS(conf_tests_net_ip, "net", tests);
