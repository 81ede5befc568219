/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IPv6: extension headers between header and payload, and the addresses that
 * may be answered.
 *
 * Spec: RFC 8200 sections 3 and 4, RFC 5095, RFC 4291.
 */
#include <string.h>

#include "lib/bytes.h"
#include "net_lib.h"

enum {
    /* Experimental options of RFC 4727, one for each action. */
    OPTION_SKIP = 0x1e,
    OPTION_DISCARD = 0x5e,
    OPTION_REPORT = 0x9e,
    OPTION_REPORT_UNICAST = 0xde,
    CODE_HEADER = 0,
    CODE_NEXT_HEADER = 1,
    CODE_OPTION = 2,
    ROUTING_UNKNOWN = 253,
    PROBLEM = ICMPV6_PARAMETER_PROBLEM,
};

static const uint8_t nothing[6] = {IPV6_OPTION_PADN, 4};

struct chained {
    struct packet_path path;
    struct net_chain chain;
    uint32_t rest;
    uint8_t frame[1024];
    size_t len_bytes;
};

static struct chained *new_chained_echo(struct conf *conf)
{
    struct chained *it = conf_alloc(conf, sizeof(*it));

    it->path = net_path0(conf, true);
    it->rest = net_rest(conf);
    return it;
}

static void send_chained(struct conf *conf, struct chained *it)
{
    it->len_bytes = net_chain_echo(it->frame, &it->path, &it->chain, it->rest);
    net_send(conf, it->frame, it->len_bytes);
}

static void expect_answered(struct conf *conf, struct chained *it)
{
    send_chained(conf, it);
    net_take_reply(conf, &it->path, it->rest, "chained!", 8);
}

static bool is_any_to(const struct packet *packet, const void *ctx)
{
    return packet->has_ip && ip_addr_equal(&packet->dst, ctx);
}

static void expect_silence(struct conf *conf, struct chained *it)
{
    send_chained(conf, it);
    net_expect_none(conf, 0, "answer", is_any_to, &it->path.src);
}

static void expect_problem(struct conf *conf, struct chained *it, uint8_t code,
                           uint32_t pointer)
{
    conf_pass(conf, NET_ERROR_REST_US);
    send_chained(conf, it);
    conf_equal(
        conf, "pointer",
        net_take_error(conf, &it->path, PROBLEM, code, it->frame, it->len_bytes)
            ->icmp.rest,
        pointer);
    conf_expect_none(conf, "echo reply", net_is_reply, &it->rest, 5000);
}

/* An echo request after one extension header is answered. */
static void expect_header_skipped(struct conf *conf, uint8_t value,
                                  const void *rest, size_t len)
{
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, value, rest, len);
    expect_answered(conf, it);
}

static void hop_by_hop(struct conf *conf)
{
    expect_header_skipped(conf, IPV6_EXT_HOP_BY_HOP, nothing, sizeof(nothing));
}

static void ipv6_destination_options(struct conf *conf)
{
    expect_header_skipped(conf, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
}

static void ipv6_padding(struct conf *conf)
{
    static const uint8_t pad1[6];
    uint8_t padn[254] = {IPV6_OPTION_PADN, 252};

    expect_header_skipped(conf, IPV6_EXT_HOP_BY_HOP, pad1, sizeof(pad1));
    expect_header_skipped(conf, IPV6_EXT_DESTINATION, pad1, sizeof(pad1));
    expect_header_skipped(conf, IPV6_EXT_DESTINATION, padn, sizeof(padn));
}

static void routing_done(struct conf *conf)
{
    static const uint8_t routing[6] = {ROUTING_UNKNOWN, 0};
    static const uint8_t type0[22] = {0, 0};

    expect_header_skipped(conf, IPV6_EXT_ROUTING, routing, sizeof(routing));
    expect_header_skipped(conf, IPV6_EXT_ROUTING, type0, sizeof(type0));
}

static void all_in_order(struct conf *conf)
{
    static const uint8_t routing[6] = {ROUTING_UNKNOWN, 0};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_HOP_BY_HOP, nothing, sizeof(nothing));
    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    net_chain_add(&it->chain, IPV6_EXT_ROUTING, routing, sizeof(routing));
    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    expect_answered(conf, it);
}

/* RFC 8200 4.1 allows any order and number, except for hop-by-hop options. */
static void other_order(struct conf *conf)
{
    static const uint8_t routing[6] = {ROUTING_UNKNOWN, 0};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_ROUTING, routing, sizeof(routing));
    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    expect_answered(conf, it);
}

static void hop_by_hop_late(struct conf *conf)
{
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    net_chain_add(&it->chain, IPV6_EXT_HOP_BY_HOP, nothing, sizeof(nothing));
    expect_problem(conf, it, CODE_NEXT_HEADER, IPV6_LEN);
}

static void source_route(struct conf *conf)
{
    uint8_t route[22] = {0, 1};
    struct chained *it = new_chained_echo(conf);

    memcpy(route + 6, it->path.src.bytes, 16);
    net_chain_add(&it->chain, IPV6_EXT_ROUTING, route, sizeof(route));
    expect_problem(conf, it, CODE_HEADER, IPV6_LEN + IPV6_ROUTING_TYPE);
}

static void routing_unknown(struct conf *conf)
{
    static const uint8_t route[6] = {ROUTING_UNKNOWN, 1};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_ROUTING, route, sizeof(route));
    expect_problem(conf, it, CODE_HEADER, IPV6_LEN + IPV6_ROUTING_TYPE);
}

/* ---- Unknown options. */

static struct chained *with_option(struct conf *conf, uint8_t header,
                                   uint8_t type)
{
    const uint8_t options[6] = {IPV6_OPTION_PAD1, type, 2, 1, 2, 0};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, header, options, sizeof(options));
    return it;
}

static void option_skip(struct conf *conf)
{
    expect_answered(conf, with_option(conf, IPV6_EXT_HOP_BY_HOP, OPTION_SKIP));
    expect_answered(conf, with_option(conf, IPV6_EXT_DESTINATION, OPTION_SKIP));
}

static void option_discard(struct conf *conf)
{
    conf_pass(conf, NET_ERROR_REST_US);
    expect_silence(conf,
                   with_option(conf, IPV6_EXT_HOP_BY_HOP, OPTION_DISCARD));
    expect_silence(conf,
                   with_option(conf, IPV6_EXT_DESTINATION, OPTION_DISCARD));
}

static void option_report(struct conf *conf)
{
    expect_problem(conf, with_option(conf, IPV6_EXT_HOP_BY_HOP, OPTION_REPORT),
                   CODE_OPTION, IPV6_LEN + 3);
    expect_problem(conf, with_option(conf, IPV6_EXT_DESTINATION, OPTION_REPORT),
                   CODE_OPTION, IPV6_LEN + 3);
}

static void option_report_unicast(struct conf *conf)
{
    expect_problem(
        conf, with_option(conf, IPV6_EXT_HOP_BY_HOP, OPTION_REPORT_UNICAST),
        CODE_OPTION, IPV6_LEN + 3);
    expect_problem(
        conf, with_option(conf, IPV6_EXT_DESTINATION, OPTION_REPORT_UNICAST),
        CODE_OPTION, IPV6_LEN + 3);
}

static struct chained *to_all_nodes(struct conf *conf, uint8_t type)
{
    struct chained *it = with_option(conf, IPV6_EXT_DESTINATION, type);

    it->path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    it->path.dst_mac = (struct mac_addr){{0x33, 0x33, 0, 0, 0, 1}};
    conf_pass(conf, NET_ERROR_REST_US);
    send_chained(conf, it);
    return it;
}

static void option_report_group(struct conf *conf)
{
    struct chained *it = to_all_nodes(conf, OPTION_REPORT);
    const struct packet *error =
        conf_take(conf, "a parameter problem", net_is_error, &it->path.src);

    conf_equal(conf, "type", error->icmp.type, PROBLEM);
    conf_equal(conf, "code", error->icmp.code, CODE_OPTION);
    conf_equal(conf, "pointer", error->icmp.rest, IPV6_LEN + 3);
    conf_check(conf, !ip_addr_is_multicast(&error->src),
               "the error's source is a group");
}

static void option_unicast_group(struct conf *conf)
{
    struct chained *it = to_all_nodes(conf, OPTION_REPORT_UNICAST);

    net_expect_none(conf, 0, "answer to a multicast", is_any_to, &it->path.src);
}

/* The first of two unknown options decides what happens. */
static void option_first(struct conf *conf)
{
    const uint8_t options[14] = {OPTION_SKIP,    2, 0, 0, OPTION_REPORT, 1, 0,
                                 OPTION_DISCARD, 0};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, options, sizeof(options));
    expect_problem(conf, it, CODE_OPTION, IPV6_LEN + 2 + 4);
}

/* ---- Lengths. */

static void option_overrun(struct conf *conf)
{
    const uint8_t options[6] = {OPTION_SKIP, 5, 0, 0, 0, 0};
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, options, sizeof(options));
    send_chained(conf, it);
    net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
}

static void header_overrun(struct conf *conf)
{
    struct chained *it = new_chained_echo(conf);

    net_chain_add(&it->chain, IPV6_EXT_DESTINATION, nothing, sizeof(nothing));
    it->chain.bytes[IPV6_EXT_HDR_LEN] = 200;
    send_chained(conf, it);
    net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
}

static void header_cut(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128], header[8] = {IP_PROTOCOL_ICMPV6};

    conf_pass(conf, NET_ERROR_REST_US);
    for (size_t len = 0; len < sizeof(header); len++) {
        net_send(conf, frame,
                 packet_ip(frame, &path, IPV6_EXT_DESTINATION, header, len));
        net_send(conf, frame,
                 packet_ip(frame, &path, IPV6_EXT_FRAGMENT, header, len));
    }
    net_expect_none(conf, 0, "answer to a truncated header", net_is_reply,
                    &(uint32_t){0});
    net_ping(conf, &path, "alive", 5);
}

static void payload_length(struct conf *conf)
{
    static const int lengths[] = {0, 1, 7, 17, 1000, 65535};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct chained *it = new_chained_echo(conf);

        it->len_bytes =
            net_chain_echo(it->frame, &it->path, &it->chain, it->rest);
        put_be16(net_ip(it->frame) + IPV6_PAYLOAD_LEN, (uint16_t)lengths[i]);
        net_send(conf, it->frame, it->len_bytes);
        net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
    }
}

static void ipv6_trailer(struct conf *conf)
{
    struct chained *it = new_chained_echo(conf);

    it->len_bytes = net_chain_echo(it->frame, &it->path, &it->chain, it->rest);
    memset(it->frame + it->len_bytes, 0xee, 100);
    net_send(conf, it->frame, it->len_bytes + 100);
    net_take_reply(conf, &it->path, it->rest, "chained!", 8);
}

static void no_next_header(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t frame[128];

    conf_pass(conf, NET_ERROR_REST_US);
    net_send(conf, frame, packet_ip(frame, &path, IPV6_EXT_NONE, "rest", 4));
    net_expect_none(conf, 0, "answer", is_any_to, &path.src);
}

/* ---- The header's own fields: one byte of a correct request is changed. */

static void send_changed_byte(struct conf *conf, size_t offset, uint8_t value,
                              bool is_answered)
{
    struct chained *it = new_chained_echo(conf);

    it->len_bytes = net_chain_echo(it->frame, &it->path, &it->chain, it->rest);
    net_ip(it->frame)[offset] = value;
    net_send(conf, it->frame, it->len_bytes);
    if (is_answered) {
        net_take_reply(conf, &it->path, it->rest, "chained!", 8);
    } else {
        net_expect_none(conf, 0, "answer", is_any_to, &it->path.src);
    }
}

static void ipv6_version(struct conf *conf)
{
    send_changed_byte(conf, 0, 0x40, false);
    send_changed_byte(conf, 0, 0x70, false);
    send_changed_byte(conf, 0, 0x00, false);
}

static void hop_limit(struct conf *conf)
{
    send_changed_byte(conf, IPV6_HOP_LIMIT, 1, true);
    send_changed_byte(conf, IPV6_HOP_LIMIT, 0, true);
    send_changed_byte(conf, IPV6_HOP_LIMIT, 255, true);
}

static void flow_label(struct conf *conf)
{
    send_changed_byte(conf, 1, 0x0f, true);
    send_changed_byte(conf, 2, 0xff, true);
    send_changed_byte(conf, 3, 0xff, true);
}

static void expect_source_dropped(struct conf *conf, const struct ip_addr *src)
{
    struct chained *it = new_chained_echo(conf);

    it->path.src = *src;
    send_chained(conf, it);
    net_expect_none(conf, 0, "echo reply", net_is_reply, &it->rest);
}

static void source_nobody(struct conf *conf)
{
    expect_source_dropped(conf, &(struct ip_addr){{0}});
}

static void source_group(struct conf *conf)
{
    expect_source_dropped(conf, &(struct ip_addr){{0xff, 0x02, [15] = 1}});
}

static void source_loopback(struct conf *conf)
{
    expect_source_dropped(conf, &(struct ip_addr){{[15] = 1}});
}

static void source_own(struct conf *conf)
{
    struct ip_addr own = net_path0(conf, true).dst;

    expect_source_dropped(conf, &own);
}

static void ipv6_destination(struct conf *conf)
{
    static const struct ip_addr others[] = {
        {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
        {{[15] = 1}},
        {{0}},
        {{0xff, 0x02, [11] = 1, [12] = 0xff, 0x12, 0x34, 0x56}},
    };

    conf_pass(conf, NET_ERROR_REST_US);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct chained *it = new_chained_echo(conf);

        it->path.dst = others[i];
        send_chained(conf, it);
        net_expect_none(conf, 0, "answer", is_any_to, &it->path.src);
    }
}

static const struct conf_test tests[] = {
    CONF_TEST("ipv6.hop-by-hop", "RFC 8200 4.3",
              "a packet with hop-by-hop options is accepted", hop_by_hop),
    CONF_TEST("ipv6.destination-options", "RFC 8200 4.6",
              "a packet with destination options is accepted",
              ipv6_destination_options),
    CONF_TEST(
        "ipv6.padding", "RFC 8200 4.2",
        "a packet with Pad1, or with up to 252 bytes of PadN, is accepted",
        ipv6_padding),
    CONF_TEST(
        "ipv6.routing-done", "RFC 8200 4.4",
        "a packet with a routing header without segments left is accepted",
        routing_done),
    CONF_TEST("ipv6.order", "RFC 8200 4.1",
              "a packet with all headers in the usual order is accepted",
              all_in_order),
    CONF_TEST("ipv6.other-order", "RFC 8200 4.1",
              "a packet with headers in any order and number is accepted",
              other_order),
    CONF_TEST("ipv6.hop-by-hop-late", "RFC 8200 4",
              "a hop-by-hop header that is not first gets parameter problem 1",
              hop_by_hop_late, .is_malformed = true),
    CONF_TEST(
        "ipv6.source-route", "RFC 5095 3",
        "a type 0 routing header with segments left gets parameter problem 0",
        source_route),
    CONF_TEST(
        "ipv6.routing-unknown", "RFC 8200 4.4",
        "an unknown routing header with segments left gets parameter problem 0",
        routing_unknown, .is_malformed = true),
    CONF_TEST("ipv6.option-skip", "RFC 8200 4.2",
              "an unknown option of action 00 is skipped", option_skip),
    CONF_TEST(
        "ipv6.option-discard", "RFC 8200 4.2",
        "a packet with an unknown option of action 01 is silently discarded",
        option_discard),
    CONF_TEST("ipv6.option-report", "RFC 8200 4.2",
              "an unknown option of action 10 gets parameter problem 2 with a "
              "pointer to it",
              option_report),
    CONF_TEST("ipv6.option-report-unicast", "RFC 8200 4.2",
              "an unknown option of action 11 gets parameter problem 2",
              option_report_unicast),
    CONF_TEST("ipv6.option-report-group", "RFC 8200 4.2, RFC 4443 2.4 (e.3)",
              "an unknown option of action 10 in a multicast gets an error",
              option_report_group),
    CONF_TEST("ipv6.option-unicast-group", "RFC 8200 4.2",
              "an unknown option of action 11 in a multicast gets no error",
              option_unicast_group),
    CONF_TEST("ipv6.option-first", "RFC 8200 4.2",
              "options are processed in their order", option_first),
    CONF_TEST("ipv6.option-overrun", "RFC 8200 4.2",
              "a packet with an option beyond its header is dropped",
              option_overrun, .is_malformed = true),
    CONF_TEST("ipv6.header-overrun", "RFC 8200 4",
              "a packet with a header beyond its end is dropped",
              header_overrun, .is_malformed = true),
    CONF_TEST("ipv6.header-cut", "RFC 8200 4",
              "packets with headers of 0 to 7 bytes are dropped", header_cut,
              .is_malformed = true),
    CONF_TEST("ipv6.payload-length", "RFC 8200 3",
              "a packet with an impossible payload length is dropped",
              payload_length, .is_malformed = true),
    CONF_TEST("ipv6.trailer", "RFC 2464 3",
              "bytes after the packet in its frame are ignored", ipv6_trailer),
    CONF_TEST("ipv6.no-next-header", "RFC 8200 4.7",
              "a packet with next header 59 (none) is not answered",
              no_next_header),
    CONF_TEST("ipv6.version", "RFC 8200 3",
              "packets of versions other than 6 are discarded", ipv6_version,
              .is_malformed = true),
    CONF_TEST("ipv6.hop-limit", "RFC 8200 3",
              "a packet is accepted with any hop limit", hop_limit),
    CONF_TEST("ipv6.flow-label", "RFC 6437 2", "the flow label is ignored",
              flow_label),
    CONF_TEST("ipv6.source-nobody", "RFC 4291 2.5.2",
              "an echo request from :: is not answered", source_nobody,
              .is_malformed = true),
    CONF_TEST("ipv6.source-group", "RFC 4291 2.7",
              "an echo request from a group is not answered", source_group,
              .is_malformed = true),
    CONF_TEST("ipv6.source-loopback", "RFC 4291 2.5.3",
              "an echo request from ::1 is not answered", source_loopback,
              .is_malformed = true),
    CONF_TEST("ipv6.source-own", "RFC 4443 2.2",
              "an echo request from the drive's own address is not answered",
              source_own, .is_malformed = true),
    CONF_TEST("ipv6.destination", "RFC 8200 3",
              "packets to other addresses and groups are discarded",
              ipv6_destination, .is_malformed = true),
};
CONF_TESTS(conf_tests_net_ip6, "net", tests);
