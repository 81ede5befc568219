/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP and ICMPv6: echo requests of all sizes; errors, and the packets about
 * which no error is sent; UDP, as far as a closed port shows it.
 *
 * Spec: RFC 792, RFC 1122 section 3.2.2, RFC 4443, RFC 768.
 */
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net_lib.h"

enum {
    SIZE_MAX_IN_FRAGMENTS = 65535 - IPV4_LEN - ICMP_LEN,
    FLOOD = 200,
    AT_ONCE = 20,
    BURST = 20,
    /* This peer reports that its path has a smaller MTU. No other test uses it,
     * because the target may remember the MTU. */
    ERROR_PEER = CONF_PEERS - 2,
    /* With more errors than this the target has no rate limit. */
    FLOOD_ANSWERS = 50,
    SRC_PORT = 40000,
};

/* ---- Echo. */

static void echo_sizes(struct conf *conf, bool is_v6)
{
    static const uint16_t some[] = {0, 1, 2, 7, 18, 55, 56, 57, 1399, 1400};
    struct packet_path path = net_path0(conf, is_v6);
    size_t most = (size_t)conf_target(conf)->mtu_bytes - ICMP_LEN -
                  (is_v6 ? (size_t)IPV6_LEN : (size_t)IPV4_LEN);
    uint8_t *data = conf_alloc(conf, FRAME_LEN_MAX);

    net_pattern(data, FRAME_LEN_MAX);
    for (size_t i = 0; i < ARRAY_LEN(some); i++) {
        if (some[i] <= most) {
            net_ping(conf, &path, data, some[i]);
        }
    }
    net_ping(conf, &path, data, most - 1);
    net_ping(conf, &path, data, most);
}

static void sizes_v4(struct conf *conf)
{
    echo_sizes(conf, false);
}

static void sizes_v6(struct conf *conf)
{
    echo_sizes(conf, true);
}

/* Request and reply are both fragmented. */
static void echo_large(struct conf *conf, bool is_v6, size_t data_len)
{
    struct net_whole *whole = net_whole_echo(conf, is_v6, data_len);
    size_t piece =
        ((size_t)conf_target(conf)->mtu_bytes - IPV6_LEN - IPV6_FRAGMENT_LEN) &
        ~(size_t)7;

    for (size_t at = 0; at < whole->len_bytes; at += piece) {
        size_t len = MIN(piece, whole->len_bytes - at);

        net_send_piece(conf, whole, at, len, at + len < whole->len_bytes);
    }
    net_take_whole(conf, whole);
}

static void large_v4(struct conf *conf)
{
    echo_large(conf, false, 4000);
    echo_large(conf, false, 20001);
}

static void large_v6(struct conf *conf)
{
    echo_large(conf, true, 4000);
    echo_large(conf, true, 20001);
}

static void icmp_echo_largest(struct conf *conf)
{
    echo_large(conf, false, SIZE_MAX_IN_FRAGMENTS);
}

static void icmp_identifiers(struct conf *conf)
{
    static const uint32_t rests[] = {0, 1, 0xffff, 0xffff0000, 0xffffffff};
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128];

    for (size_t i = 0; i < ARRAY_LEN(rests); i++) {
        net_send(conf, frame, net_echo(frame, &path, rests[i], "id", 2));
        net_take_reply(conf, &path, rests[i], "id", 2);
    }
}

static void in_order(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint32_t first = net_rest(conf) & ~0xffu;
    uint64_t last_us = 0;
    uint8_t frame[128];

    for (uint32_t i = 0; i < 32; i++) {
        net_send(conf, frame, net_echo(frame, &path, first + i, "order", 5));
    }
    for (uint32_t i = 0; i < 32; i++) {
        const struct packet *reply =
            net_take_reply(conf, &path, first + i, "order", 5);

        conf_check(conf, reply->time_us >= last_us,
                   "reply %u came before its predecessor", i);
        last_us = reply->time_us;
    }
}

static void icmp_dscp(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);

    path.tos = 0x2e << 2;
    conf_equal(conf, "type of service of the reply",
               net_ping(conf, &path, "dscp", 4)->tos, path.tos);
}

static void tagged_priority(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);

    path.tagged = true;
    path.priority = 6;
    conf_equal(conf, "VLAN of the reply",
               net_ping(conf, &path, "tag", 3)->eth.vlan, 0);
}

/* RFC 1122 allows an answer or silence, but no wrong answer. */
static void to_group(struct conf *conf)
{
    static const uint8_t all_systems_mac[6] = {0x01, 0, 0x5e, 0, 0, 1};
    struct packet_path path = net_path0(conf, false);
    struct ip_addr own = path.dst;
    const struct packet *reply;
    uint32_t rest = net_rest(conf);
    uint8_t frame[128];

    memset(path.dst_mac.bytes, 0xff, 6);
    path.dst.bytes[15] = 0xff;
    net_send(conf, frame, net_echo(frame, &path, rest, "all", 3));
    path.dst = ip_addr_from_v4(0xe0000001);
    memcpy(path.dst_mac.bytes, all_systems_mac, 6);
    net_send(conf, frame, net_echo(frame, &path, rest, "all", 3));
    net_settle(conf, 0);
    reply = conf_take_within(conf, net_is_reply, &rest, 5000);
    if (reply == NULL) {
        conf_note(
            conf,
            "broadcasts and multicasts are not answered, which is allowed");
        return;
    }
    conf_same(conf, "source of an answer to a group", reply->src.bytes,
              own.bytes, 16);
}

static void to_all_nodes(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint32_t rest = net_rest(conf);
    const struct packet *reply;
    uint8_t frame[128];

    path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    path.dst_mac = (struct mac_addr){{0x33, 0x33, 0, 0, 0, 1}};
    net_send(conf, frame, net_echo(frame, &path, rest, "all", 3));
    net_settle(conf, 0);
    reply = conf_take_within(conf, net_is_reply, &rest, 5000);
    if (reply == NULL) {
        conf_note(conf,
                  "the all-nodes group is not answered, which is allowed");
        return;
    }
    conf_check(conf, !ip_addr_is_multicast(&reply->src),
               "the answer's source is a group");
    conf_same(conf, "destination of the answer", reply->dst.bytes,
              path.src.bytes, 16);
}

static void wrong_checksum(struct conf *conf, bool is_v6)
{
    struct packet_path path = net_path0(conf, is_v6);
    uint32_t rest = net_rest(conf);
    uint8_t frame[128];
    size_t len = net_echo(frame, &path, rest, "damaged", 7);

    frame[len - 1] ^= 0x20;
    net_send(conf, frame, len);
    net_expect_none(conf, 0, "reply to a request with a wrong checksum",
                    net_is_reply, &rest);
}

static void checksum_v4(struct conf *conf)
{
    wrong_checksum(conf, false);
}

static void checksum_v6(struct conf *conf)
{
    wrong_checksum(conf, true);
}

/* An ICMPv6 message whose checksum lacks the pseudo-header, as in ICMP. */
static void no_pseudo_header(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    struct icmp icmp = {ICMPV6_ECHO_REQUEST, 0, net_rest(conf)};
    uint8_t frame[128], message[ICMP_LEN + 8] = {0};

    icmp_emit(&icmp, message, sizeof(message));
    net_send(
        conf, frame,
        packet_ip(frame, &path, IP_PROTOCOL_ICMPV6, message, sizeof(message)));
    net_expect_none(conf, 0, "reply", net_is_reply, &icmp.rest);
}

static bool is_any_to(const struct packet *packet, const void *ctx)
{
    return packet->has_ip && ip_addr_equal(&packet->dst, ctx);
}

static void icmp_cut(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128], message[ICMP_LEN] = {ICMP_ECHO_REQUEST};

    for (size_t len = 0; len < ICMP_LEN; len++) {
        put_be16(message + ICMP_CHECKSUM, 0);
        if (len >= 4) {
            put_be16(message + ICMP_CHECKSUM,
                     checksum_finish(checksum_add(0, message, len)));
        }
        net_send(conf, frame,
                 packet_ip(frame, &path, IP_PROTOCOL_ICMP, message, len));
    }
    net_expect_none(conf, 0, "answer to a truncated message", is_any_to,
                    &path.src);
}

static void unknown_types(struct conf *conf)
{
    static const uint8_t types[] = {1, 2, 7, 13 + 30, 100, 255};
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128];

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        net_send(
            conf, frame,
            packet_icmp(frame, &path, types[i], 0, net_rest(conf), "?", 1));
    }
    net_expect_none(conf, 0, "answer to an unknown type", is_any_to, &path.src);
}

static void unknown_types_v6(struct conf *conf)
{
    static const uint8_t types[] = {5, 100, 127, 150, 200, 255};
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128];

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        net_send(
            conf, frame,
            packet_icmp(frame, &path, types[i], 0, net_rest(conf), "?", 1));
    }
    net_expect_none(conf, 0, "error about an unknown type", net_is_error,
                    &path.src);
}

static void reply_unanswered(struct conf *conf)
{
    for (unsigned int v6 = 0; v6 < 2; v6++) {
        struct packet_path path = net_path0(conf, v6 != 0);
        uint8_t frame[128];

        net_send(conf, frame,
                 packet_icmp(frame, &path,
                             v6 ? ICMPV6_ECHO_REPLY : ICMP_ECHO_REPLY, 0,
                             net_rest(conf), "reply", 5));
        net_expect_none(conf, 0, "answer to an echo reply", is_any_to,
                        &path.src);
    }
}

/* ---- Errors. */

static void rest_errors(struct conf *conf)
{
    conf_pass(conf, NET_ERROR_REST_US);
}

static size_t make_datagram(uint8_t *frame, const struct packet_path *path,
                            size_t len_bytes)
{
    uint8_t data[1024];

    ASSERT(len_bytes <= sizeof(data));
    net_pattern(data, len_bytes);
    return packet_udp(frame, path, SRC_PORT, NET_CLOSED_PORT, data, len_bytes);
}

static void closed_port(struct conf *conf, bool is_v6)
{
    static const uint16_t sizes_bytes[] = {0, 1, 100, 1000};
    struct packet_path path = net_path0(conf, is_v6);
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);

    for (size_t i = 0; i < ARRAY_LEN(sizes_bytes); i++) {
        size_t len = make_datagram(frame, &path, sizes_bytes[i]);

        rest_errors(conf);
        net_send(conf, frame, len);
        net_take_error(
            conf, &path, is_v6 ? ICMPV6_UNREACHABLE : ICMP_UNREACHABLE,
            is_v6 ? ICMPV6_CODE_PORT_UNREACHABLE : ICMP_CODE_PORT_UNREACHABLE,
            frame, len);
    }
}

static void closed_port_v4(struct conf *conf)
{
    closed_port(conf, false);
}

static void closed_port_v6(struct conf *conf)
{
    closed_port(conf, true);
}

static void unknown_protocol(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128];
    size_t len = packet_ip(frame, &path, 253, "experiment", 10);

    rest_errors(conf);
    net_send(conf, frame, len);
    net_take_error(conf, &path, ICMP_UNREACHABLE,
                   ICMP_CODE_PROTOCOL_UNREACHABLE, frame, len);
}

static void unknown_next_header(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128];
    size_t len = packet_ip(frame, &path, 253, "experiment", 10);

    rest_errors(conf);
    net_send(conf, frame, len);
    conf_equal(
        conf, "pointer",
        net_take_error(conf, &path, ICMPV6_PARAMETER_PROBLEM, 1, frame, len)
            ->icmp.rest,
        IPV6_NEXT_HEADER);
}

/* Errors that are well-formed, but quote a packet that was never sent. */
static void about_errors(struct conf *conf)
{
    static const uint8_t v4[] = {ICMP_UNREACHABLE, ICMP_SOURCE_QUENCH,
                                 ICMP_REDIRECT, ICMP_TIME_EXCEEDED,
                                 ICMP_PARAMETER_PROBLEM};
    struct packet_path path =
        net_path(conf, conf_peer(conf, ERROR_PEER, 0), false);
    struct packet_path back = path;
    uint8_t frame[256], quoted[128];
    size_t len;

    rest_errors(conf);
    back.src = path.dst;
    back.dst = path.src;
    len = make_datagram(quoted, &back, 4);
    for (size_t i = 0; i < ARRAY_LEN(v4); i++) {
        for (uint8_t code = 0; code < 6; code++) {
            net_send(conf, frame,
                     packet_icmp(frame, &path, v4[i], code, 0, quoted + ETH_LEN,
                                 len - ETH_LEN));
        }
    }
    net_expect_none(conf, 0, "answer to an ICMP error", is_any_to, &path.src);
}

static void about_errors_v6(struct conf *conf)
{
    struct packet_path path =
        net_path(conf, conf_peer(conf, ERROR_PEER, 0), true);
    struct packet_path back = path;
    uint8_t frame[256], quoted[128];
    size_t len;

    rest_errors(conf);
    back.src = path.dst;
    back.dst = path.src;
    len = make_datagram(quoted, &back, 4);
    for (uint8_t type = 0; type < 6; type++) {
        for (uint8_t code = 0; code < 6; code++) {
            net_send(conf, frame,
                     packet_icmp(frame, &path, type, code,
                                 type == ICMPV6_TOO_BIG ? 1280 : 0,
                                 quoted + ETH_LEN, len - ETH_LEN));
        }
    }
    net_expect_none(conf, 0, "answer to an ICMPv6 error", is_any_to, &path.src);
}

/* Datagrams to the IP broadcast address, and unicast datagrams in Ethernet
 * broadcast frames. */
static void about_broadcasts(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    struct ip_addr own = path.dst;
    uint8_t frame[128];

    rest_errors(conf);
    memset(path.dst_mac.bytes, 0xff, 6);
    path.dst.bytes[15] = 0xff;
    net_send(conf, frame, make_datagram(frame, &path, 4));
    path.dst = ip_addr_from_v4(0xffffffff);
    net_send(conf, frame, make_datagram(frame, &path, 4));
    path.dst = own;
    net_send(conf, frame, make_datagram(frame, &path, 4));
    path.dst = ip_addr_from_v4(0xe0000001);
    path.dst_mac = (struct mac_addr){{0x01, 0, 0x5e, 0, 0, 1}};
    net_send(conf, frame, make_datagram(frame, &path, 4));
    net_expect_none(conf, 0, "error about a broadcast", net_is_error,
                    &path.src);
}

static void about_multicast_v6(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128];

    rest_errors(conf);
    path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    path.dst_mac = (struct mac_addr){{0x33, 0x33, 0, 0, 0, 1}};
    net_send(conf, frame, make_datagram(frame, &path, 4));
    net_expect_none(conf, 0, "error about a multicast", net_is_error,
                    &path.src);
}

static void about_fragments(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128];
    size_t len;

    rest_errors(conf);
    path.may_fragment = true;
    path.ip_id = (uint16_t)conf_random(conf);
    len = packet_ip(frame, &path, 253, "a fragment", 8);
    put_be16(net_ip(frame) + IPV4_FRAGMENT, 4);
    net_mend_ipv4(frame);
    net_send(conf, frame, len);
    net_expect_none(conf, 0, "error about a fragment that is not the first",
                    net_is_error, &path.src);
}

static void rate_limit(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128];
    unsigned int count;

    for (unsigned int i = 0; i < FLOOD; i++) {
        net_send(conf, frame, make_datagram(frame, &path, 4));
        if (i % BURST == BURST - 1) { /* A larger burst could be lost. */
            net_settle(conf, 0);
        }
    }
    count = conf_count(conf, net_is_error, &path.src);
    conf_note(conf, "%u errors came for %u datagrams", count, FLOOD);
    conf_check(conf, count != 0, "expected some errors, none came");
    conf_check(conf, count <= FLOOD_ANSWERS,
               "%u errors came at once: there is no limit", count);
    /* Let the limit recover, so that the next test gets errors. */
    conf_pass(conf, 5 * NET_ERROR_REST_US);
    conf_flush(conf);
    net_send(conf, frame, make_datagram(frame, &path, 4));
    conf_take(conf, "an error, a second later", net_is_error, &path.src);
}

/* ---- UDP. */

/* A datagram with a length field of `length`, and the answer that follows from
 * it. */
static void udp_case(struct conf *conf, bool is_v6, int length,
                     bool is_accepted)
{
    struct packet_path path = net_path0(conf, is_v6);
    uint8_t frame[128], *udp = NULL;
    size_t len = make_datagram(frame, &path, 16), ip_len = len - 16 - UDP_LEN;

    rest_errors(conf);
    udp = frame + ip_len;
    put_be16(udp + UDP_LENGTH, (uint16_t)length);
    put_be16(udp + UDP_CHECKSUM, 0);
    put_be16(udp + UDP_CHECKSUM,
             udp_checksum(&path.src, &path.dst, udp,
                          MIN((size_t)length, (size_t)(16 + UDP_LEN))));
    net_send(conf, frame, len);
    if (is_accepted) {
        net_take_error(
            conf, &path, is_v6 ? ICMPV6_UNREACHABLE : ICMP_UNREACHABLE,
            is_v6 ? ICMPV6_CODE_PORT_UNREACHABLE : ICMP_CODE_PORT_UNREACHABLE,
            frame, len);
    } else {
        net_expect_none(conf, 0, "answer to a malformed datagram", is_any_to,
                        &path.src);
    }
}

static void udp_shorter(struct conf *conf)
{
    udp_case(conf, false, UDP_LEN + 3, true);
}

static void udp_too_long(struct conf *conf)
{
    udp_case(conf, false, UDP_LEN + 17, false);
    udp_case(conf, false, 0xffff, false);
}

static void udp_too_short(struct conf *conf)
{
    udp_case(conf, false, UDP_LEN - 1, false);
    udp_case(conf, false, 1, false);
}

static void udp_zero_length(struct conf *conf)
{
    udp_case(conf, false, 0, false);
}

static void udp_lengths_v6(struct conf *conf)
{
    udp_case(conf, true, UDP_LEN + 17, false);
    udp_case(conf, true, UDP_LEN - 1, false);
    udp_case(conf, true, 0, false);
}

static void udp_cut(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    uint8_t frame[128], header[UDP_LEN] = {0x9c, 0x40, 0xbb, 0x28, 0, 8};

    rest_errors(conf);
    for (size_t len = 0; len < UDP_LEN; len++) {
        net_send(conf, frame,
                 packet_ip(frame, &path, IP_PROTOCOL_UDP, header, len));
    }
    net_expect_none(conf, 0, "answer to a truncated header", is_any_to,
                    &path.src);
}

static void udp_checksum_is(struct conf *conf, bool is_v6, uint16_t change,
                            bool is_none, bool is_accepted)
{
    struct packet_path path = net_path0(conf, is_v6);
    uint8_t frame[128];
    size_t len = make_datagram(frame, &path, 16);
    uint8_t *at = frame + len - 16 - UDP_LEN + UDP_CHECKSUM;

    rest_errors(conf);
    put_be16(at, is_none ? 0 : get_be16(at) ^ change);
    net_send(conf, frame, len);
    if (is_accepted) {
        net_take_error(conf, &path, ICMP_UNREACHABLE,
                       ICMP_CODE_PORT_UNREACHABLE, frame, len);
    } else {
        net_expect_none(conf, 0, "answer to a datagram with a wrong checksum",
                        is_any_to, &path.src);
    }
}

static void udp_no_checksum(struct conf *conf)
{
    udp_checksum_is(conf, false, 0, true, true);
}

static void udp_no_checksum_v6(struct conf *conf)
{
    udp_checksum_is(conf, true, 0, true, false);
}

static void udp_wrong_checksum(struct conf *conf)
{
    udp_checksum_is(conf, false, 0x0100, false, false);
}

static void udp_wrong_checksum_v6(struct conf *conf)
{
    udp_checksum_is(conf, true, 0x0001, false, false);
}

static const struct conf_test tests[] = {
    CONF_TEST(
        "icmp.echo-sizes", "RFC 1122 3.2.2.6",
        "echo requests of 0 bytes up to the MTU get a reply with the same data",
        sizes_v4),
    CONF_TEST("icmp.echo-sizes-v6", "RFC 4443 4.2",
              "IPv6 echo requests of 0 bytes up to the MTU get a reply with "
              "the same data",
              sizes_v6),
    CONF_TEST("icmp.echo-fragments", "RFC 1122 3.2.2.6, 3.3.2",
              "an echo request longer than the MTU gets a reply in fragments",
              large_v4),
    CONF_TEST(
        "icmp.echo-fragments-v6", "RFC 4443 4.2, RFC 8200 4.5",
        "an IPv6 echo request longer than the MTU gets a reply in fragments",
        large_v6),
    CONF_TEST("icmp.echo-largest", "RFC 792 Echo, RFC 791 3.1",
              "an echo request in a packet of 65535 bytes gets a reply",
              icmp_echo_largest),
    CONF_TEST("icmp.identifiers", "RFC 792 Echo",
              "the reply has the identifier and sequence number of the request",
              icmp_identifiers),
    CONF_TEST("icmp.in-order", "RFC 792 Echo",
              "32 requests at once get a reply each, in their order", in_order),
    CONF_TEST("icmp.dscp", "RFC 1122 3.2.2",
              "the reply has the request's type of service", icmp_dscp),
    CONF_TEST("icmp.priority-tag", "IEEE 802.1Q 6.9.1",
              "a priority-tagged request gets a reply without a VLAN",
              tagged_priority),
    CONF_TEST("icmp.echo-to-group", "RFC 1122 3.2.2.6",
              "a request to broadcast or multicast gets no answer, or one from "
              "the drive's own address",
              to_group),
    CONF_TEST("icmp.echo-to-all-nodes", "RFC 4443 4.2",
              "a request to all nodes gets no answer, or one from the drive's "
              "own address",
              to_all_nodes),
    CONF_TEST("icmp.checksum", "RFC 792 Echo",
              "a request with a wrong checksum is not answered", checksum_v4,
              .is_malformed = true),
    CONF_TEST("icmp.checksum-v6", "RFC 4443 2.3",
              "a request with a wrong ICMPv6 checksum is not answered",
              checksum_v6, .is_malformed = true),
    CONF_TEST("icmp.pseudo-header-v6", "RFC 4443 2.3",
              "a request whose ICMPv6 checksum lacks the pseudo-header is not "
              "answered",
              no_pseudo_header, .is_malformed = true),
    CONF_TEST("icmp.cut", "RFC 792 Echo",
              "messages of 0 to 7 bytes are not answered", icmp_cut,
              .is_malformed = true),
    CONF_TEST("icmp.unknown-types", "RFC 1122 3.2.2",
              "unknown types are silently discarded", unknown_types,
              .is_malformed = true),
    CONF_TEST("icmp.unknown-types-v6", "RFC 4443 2.4 (b)",
              "no error is sent about unknown ICMPv6 types", unknown_types_v6,
              .is_malformed = true),
    CONF_TEST("icmp.reply-unanswered", "RFC 1122 3.2.2",
              "echo replies without a request are not answered",
              reply_unanswered),
    CONF_TEST("icmp.port-unreachable", "RFC 1122 4.1.3.1",
              "a datagram to a closed port gets an error that quotes it",
              closed_port_v4),
    CONF_TEST("icmp.port-unreachable-v6", "RFC 4443 3.1",
              "an IPv6 datagram to a closed port gets an error that quotes as "
              "much as fits",
              closed_port_v6),
    CONF_TEST("icmp.protocol-unreachable", "RFC 1122 3.2.2.1",
              "an unknown protocol gets protocol unreachable",
              unknown_protocol),
    CONF_TEST(
        "icmp.next-header", "RFC 8200 4",
        "an unknown next header gets parameter problem 1 with a pointer to it",
        unknown_next_header),
    CONF_TEST("icmp.about-errors", "RFC 1122 3.2.2",
              "no ICMP error is answered", about_errors, .is_malformed = true),
    CONF_TEST("icmp.about-errors-v6", "RFC 4443 2.4 (e.1)",
              "no ICMPv6 error is answered", about_errors_v6,
              .is_malformed = true),
    CONF_TEST(
        "icmp.about-broadcasts", "RFC 1122 3.2.2",
        "no error is sent about a broadcast or multicast, of IP or of Ethernet",
        about_broadcasts, .is_malformed = true),
    CONF_TEST("icmp.about-multicast-v6", "RFC 4443 2.4 (e.3)",
              "no port unreachable is sent about a multicast",
              about_multicast_v6),
    CONF_TEST("icmp.about-fragments", "RFC 1122 3.2.2",
              "no error is sent about a fragment that is not the first",
              about_fragments),
    CONF_TEST("icmp.rate-limit", "RFC 4443 2.4 (f)",
              "errors are rate-limited, and come again later", rate_limit),
    CONF_TEST("udp.shorter", "RFC 768 Length",
              "a datagram shorter than its packet is accepted", udp_shorter),
    CONF_TEST("udp.too-long", "RFC 768 Length",
              "a datagram with a length beyond its packet is dropped",
              udp_too_long, .is_malformed = true),
    CONF_TEST("udp.too-short", "RFC 768 Length",
              "a datagram with a length below 8 is dropped", udp_too_short,
              .is_malformed = true),
    CONF_TEST("udp.zero-length", "RFC 768 Length",
              "a datagram with length 0 is dropped", udp_zero_length,
              .is_malformed = true),
    CONF_TEST("udp.lengths-v6", "RFC 2675 4",
              "datagrams with wrong lengths are dropped over IPv6",
              udp_lengths_v6, .is_malformed = true),
    CONF_TEST("udp.cut", "RFC 768 Format",
              "headers of 0 to 7 bytes are not answered", udp_cut,
              .is_malformed = true),
    CONF_TEST("udp.no-checksum", "RFC 1122 4.1.3.4",
              "a UDP checksum of 0 over IPv4 means that there is none",
              udp_no_checksum),
    CONF_TEST("udp.no-checksum-v6", "RFC 8200 8.1",
              "a datagram with checksum 0 over IPv6 is dropped",
              udp_no_checksum_v6, .is_malformed = true),
    CONF_TEST("udp.checksum", "RFC 1122 4.1.3.4",
              "a datagram with a wrong checksum is silently dropped",
              udp_wrong_checksum, .is_malformed = true),
    CONF_TEST("udp.checksum-v6", "RFC 8200 8.1",
              "a datagram with a wrong checksum is silently dropped over IPv6",
              udp_wrong_checksum_v6, .is_malformed = true),
};
CONF_TESTS(conf_tests_net_icmp, "net", tests);
