/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery; duplicate address detection; router advertisements, as
 * far as the MTU in them shows; multicast listener reports.
 *
 * Spec: RFC 4861, RFC 4862, RFC 6980, RFC 3810.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/mld.h"
#include "net/wire/nd.h"
#include "net_lib.h"
#include "nvmeof/wire/opcode.h"
#include "rc.h"

enum {
    HOP_LIMIT = 255,
    LINK_MTU_MIN = 1280,
    ECHO_LEN = 1400, /* Fits the link's MTU, but not an MTU of 1280. */
    RA_MAX = 64,
    BURST = 64,
    /* The time that duplicate address detection and announcements take. */
    SETTLE_US = 10000000,
};

/* A solicitation, with every field that a test can make wrong. */
struct question {
    struct packet_path path;
    uint8_t message[128];
    size_t len_bytes;
    uint32_t rest;
};

static struct question *new_solicitation(struct conf *conf)
{
    struct question *q = conf_alloc(conf, sizeof(*q));
    struct nd_neighbor nd = {.type = ND_NEIGHBOR_SOLICIT, .has_lladdr = true};

    q->path = net_path0(conf, true);
    nd.target = q->path.dst;
    nd.lladdr = q->path.src_mac;
    q->path.dst = nd_solicited_node(&nd.target);
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    q->path.ttl = HOP_LIMIT;
    q->len_bytes =
        nd_neighbor_emit(&nd, &q->path.src, &q->path.dst, q->message);
    return q;
}

static void send_question(struct conf *conf, struct question *q)
{
    struct icmp icmp = {q->message[0], q->message[1], q->rest};
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);

    icmpv6_emit(&icmp, &q->path.src, &q->path.dst, q->message, q->len_bytes);
    net_send(conf, frame,
             packet_ip(frame, &q->path, IP_PROTOCOL_ICMPV6, q->message,
                       q->len_bytes));
}

/* ctx: the target address. */
static bool is_advert(const struct packet *packet, const void *ctx)
{
    struct nd_neighbor nd;

    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ND_NEIGHBOR_ADVERT &&
           nd_neighbor_parse(&nd, packet->l4, packet->l4_len) &&
           ip_addr_equal(&nd.target, ctx);
}

static bool is_any_advert(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ND_NEIGHBOR_ADVERT;
}

static const struct packet *take_advert(struct conf *conf, bool is_solicited)
{
    const struct conf_port *port = &conf_target(conf)->ports[0];
    const struct packet *packet =
        conf_take(conf, "a neighbour advertisement", is_advert, &port->ip6);
    struct nd_neighbor nd;

    ASSERT(nd_neighbor_parse(&nd, packet->l4, packet->l4_len));
    conf_equal(conf, "hop limit", packet->ttl, HOP_LIMIT);
    conf_equal(conf, "R", nd.router, false);
    conf_equal(conf, "S", nd.solicited, is_solicited);
    conf_equal(conf, "reserved bits", packet->icmp.rest & 0x1fffffff, 0);
    conf_same(conf, "source MAC address", packet->eth.src.bytes,
              port->mac.bytes, 6);
    if (nd.has_lladdr) {
        conf_same(conf, "target link-layer address", nd.lladdr.bytes,
                  port->mac.bytes, 6);
    }
    return packet;
}

/* Wait until the announcements of the drive's start are over, so that only
 * answers come. */
static void wait_for_start(struct conf *conf)
{
    if (conf_target(conf)->is_virtual) {
        conf_pass(conf, SETTLE_US);
    }
    conf_flush(conf);
}

static void expect_no_advert(struct conf *conf, struct question *q)
{
    wait_for_start(conf);
    send_question(conf, q);
    net_expect_none(conf, 0, "neighbour advertisement", is_any_advert, NULL);
}

static void nd_solicited(struct conf *conf)
{
    struct question *q = new_solicitation(conf);
    const struct packet *advert;
    struct nd_neighbor nd;

    wait_for_start(conf);
    send_question(conf, q);
    advert = take_advert(conf, true);
    ASSERT(nd_neighbor_parse(&nd, advert->l4, advert->l4_len));
    conf_check(conf, nd.override,
               "the override flag is clear for a unicast address");
    conf_check(conf, nd.has_lladdr,
               "the answer to a multicast solicitation has no target "
               "link-layer address");
    conf_same(conf, "destination MAC address", advert->eth.dst.bytes,
              q->path.src_mac.bytes, 6);
    conf_same(conf, "destination", advert->dst.bytes, q->path.src.bytes, 16);
}

static void nd_unicast(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    wait_for_start(conf);
    q->path.dst = conf_target(conf)->ports[0].ip6;
    q->path.dst_mac = conf_target(conf)->ports[0].mac;
    send_question(conf, q);
    take_advert(conf, true);
}

/* A solicitation as neighbour unreachability detection sends it: RFC 4861 4.3
 * allows it to have no option. */
static void no_lladdr(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    wait_for_start(conf);
    q->path.dst = conf_target(conf)->ports[0].ip6;
    q->path.dst_mac = conf_target(conf)->ports[0].mac;
    q->len_bytes = ND_NEIGHBOR_OPTIONS;
    send_question(conf, q);
    conf_same(conf, "destination MAC address",
              take_advert(conf, true)->eth.dst.bytes, q->path.src_mac.bytes, 6);
}

static void other_options(struct conf *conf)
{
    static const uint8_t unknown[16] = {253, 2, 1, 2, 3};
    struct question *q = new_solicitation(conf);

    wait_for_start(conf);
    memcpy(q->message + q->len_bytes, unknown, sizeof(unknown));
    q->len_bytes += sizeof(unknown);
    send_question(conf, q);
    take_advert(conf, true);
}

static void nd_reserved(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    wait_for_start(conf);
    q->rest = 0xffffffff;
    send_question(conf, q);
    take_advert(conf, true);
}

static void nd_burst(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    wait_for_start(conf);
    for (unsigned int i = 0; i < BURST; i++) {
        q->path.src.bytes[14] = (uint8_t)(i + 1);
        send_question(conf, q);
    }
    for (unsigned int i = 0; i < BURST; i++) {
        q->path.src.bytes[14] = (uint8_t)(i + 1);
        conf_same(conf, "destination", take_advert(conf, true)->dst.bytes,
                  q->path.src.bytes, 16);
    }
}

/* ---- Duplicate address detection by other hosts. */

static struct question *new_dad_probe(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->path.src = (struct ip_addr){{0}};
    q->len_bytes = ND_NEIGHBOR_OPTIONS;
    return q;
}

static void dad_defended(struct conf *conf)
{
    static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
    struct question *q = new_dad_probe(conf);
    const struct packet *advert;

    wait_for_start(conf);
    send_question(conf, q);
    advert = take_advert(conf, false);
    conf_same(conf, "destination", advert->dst.bytes, all_nodes.bytes, 16);
}

static void dad_with_lladdr(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->path.src = (struct ip_addr){{0}};
    expect_no_advert(conf, q);
}

static void dad_unicast(struct conf *conf)
{
    struct question *q = new_dad_probe(conf);

    q->path.dst = conf_target(conf)->ports[0].ip6;
    q->path.dst_mac = conf_target(conf)->ports[0].mac;
    expect_no_advert(conf, q);
}

static void dad_for_another(struct conf *conf)
{
    struct question *q = new_dad_probe(conf);

    q->message[ND_TARGET + 15] ^= 0x55;
    expect_no_advert(conf, q);
}

/* ---- Invalid solicitations. */

static void hop_limit(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->path.ttl = HOP_LIMIT - 1;
    expect_no_advert(conf, q);
}

static void nd_code(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->message[ICMP_CODE] = 1;
    expect_no_advert(conf, q);
}

static void nd_checksum(struct conf *conf)
{
    struct question *q = new_solicitation(conf);
    uint8_t frame[256];
    size_t len;

    wait_for_start(conf);
    q->message[ICMP_CHECKSUM] ^= 1;
    len = packet_ip(frame, &q->path, IP_PROTOCOL_ICMPV6, q->message,
                    q->len_bytes);
    net_send(conf, frame, len);
    net_expect_none(conf, 0, "neighbour advertisement", is_any_advert, NULL);
}

static void nd_cut(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->len_bytes = ND_NEIGHBOR_OPTIONS - 1;
    expect_no_advert(conf, q);
    q->len_bytes = ICMP_LEN;
    expect_no_advert(conf, q);
}

static void option_zero(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->message[ND_NEIGHBOR_OPTIONS + ND_OPT_LENGTH] = 0;
    expect_no_advert(conf, q);
}

static void option_long(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->message[ND_NEIGHBOR_OPTIONS + ND_OPT_LENGTH] = 2;
    expect_no_advert(conf, q);
}

static void target_group(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->message[ND_TARGET] = 0xff;
    expect_no_advert(conf, q);
}

static void for_another(struct conf *conf)
{
    struct question *q = new_solicitation(conf);

    q->message[ND_TARGET + 15] ^= 0x55;
    expect_no_advert(conf, q);
}

static void nd_fragmented(struct conf *conf)
{
    struct question *q = new_solicitation(conf);
    struct ipv6_fragment header = {
        .id = (uint32_t)conf_random(conf),
        .next_header = IP_PROTOCOL_ICMPV6,
    };
    uint8_t frame[256], body[IPV6_FRAGMENT_LEN + ND_NEIGHBOR_MAX_LEN];

    wait_for_start(conf);
    ipv6_fragment_emit(&header, body);
    memcpy(body + IPV6_FRAGMENT_LEN, q->message, q->len_bytes);
    net_send(conf, frame,
             packet_ip(frame, &q->path, IPV6_EXT_FRAGMENT, body,
                       IPV6_FRAGMENT_LEN + q->len_bytes));
    net_expect_none(conf, 0, "neighbour advertisement", is_any_advert, NULL);
}

static void advert_unanswered(struct conf *conf)
{
    struct question *q = new_solicitation(conf);
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_ADVERT,
        .override = true,
        .has_lladdr = true,
        .lladdr = q->path.src_mac,
        .target = q->path.src,
    };

    q->path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    q->len_bytes =
        nd_neighbor_emit(&nd, &q->path.src, &q->path.dst, q->message);
    q->rest = 1u << 29;
    expect_no_advert(conf, q);
}

/* ---- Peers whose MAC address changes. */

static void has_moved(struct conf *conf, bool has_override)
{
    struct rc *rc =
        rc_open_controller(conf, &(struct rc_config){.is_v6 = true});
    struct conf_peer *peer = conf_peer(conf, 0, 0);
    struct mac_addr before = peer->mac, now = peer->mac;
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct question *q = new_solicitation(conf);
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_ADVERT,
        .override = has_override,
        .has_lladdr = true,
        .target = peer->ip6,
    };

    now.bytes[3] ^= 0x80;
    nd.lladdr = q->path.src_mac = now;
    q->path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    q->len_bytes =
        nd_neighbor_emit(&nd, &q->path.src, &q->path.dst, q->message);
    q->rest = has_override ? 1u << 29 : 0;
    send_question(conf, q);
    if (has_override) {
        peer->mac = rc->path.src_mac = now;
    }
    net_settle(conf, 0);
    conf_flush(conf);
    rc_send_capsule(rc, &keep_alive, NULL, NULL, 0);
    conf_take(conf, "a frame to the correct MAC address", net_is_to,
              has_override ? &now : &before);
    conf_expect_none(conf, "frame to the peer's other MAC address", net_is_to,
                     has_override ? &before : &now, 5000);
    rc_close(rc);
}

static void nd_moved(struct conf *conf)
{
    has_moved(conf, true);
}

static void moved_without_override(struct conf *conf)
{
    has_moved(conf, false);
}

/* ---- Routers. */

/* The MTU that they advertise limits the length of an echo reply. */

static const uint8_t router_ip[16] = {0xfe, 0x80, [8] = 2, [15] = 0x99};

static struct question *new_router_advertisement(struct conf *conf,
                                                 uint32_t mtu_bytes)
{
    struct question *q = conf_alloc(conf, sizeof(*q));
    uint8_t *option = q->message + ND_RA_OPTIONS;

    q->path = net_path0(conf, true);
    q->path.src = ip_addr_from_bytes(router_ip);
    q->path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    q->path.ttl = HOP_LIMIT;
    q->message[ICMP_TYPE] = ND_ROUTER_ADVERT;
    option[ND_OPT_TYPE] = ND_OPTION_MTU;
    option[ND_OPT_LENGTH] = 1;
    put_be32(option + ND_OPT_MTU, mtu_bytes);
    q->len_bytes = ND_RA_OPTIONS + 8;
    return q;
}

static bool is_piece(const struct packet *packet, const void *ctx)
{
    return packet->is_fragment && packet->is_v6 &&
           ip_addr_equal(&packet->dst, ctx);
}

/* Does an echo request of ECHO_LEN bytes get a reply in fragments? */
static bool is_narrow(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    uint8_t *frame = conf_alloc(conf, FRAME_LEN_MAX);
    uint8_t *data = conf_alloc(conf, ECHO_LEN);
    uint32_t rest = net_rest(conf);
    const struct packet *reply;

    net_pattern(data, ECHO_LEN);
    net_send(conf, frame, net_echo(frame, &path, rest, data, ECHO_LEN));
    reply = conf_take_within(conf, net_is_reply, &rest, 200000);
    if (reply != NULL) {
        return false;
    }
    reply =
        conf_take(conf, "a reply, whole or in fragments", is_piece, &path.src);
    conf_check(conf, reply->len_bytes <= ETH_LEN + LINK_MTU_MIN,
               "a fragment longer than the MTU of 1280");
    return true;
}

/* Send the router advertisement, and find out whether its MTU applies; restore
 * the link's MTU. */
static bool adopts_router_mtu(struct conf *conf, struct question *q)
{
    uint16_t mtu_bytes = conf_target(conf)->mtu_bytes;
    bool was_narrow;

    if (mtu_bytes < ECHO_LEN + IPV6_LEN + ICMP_LEN) {
        conf_not_applicable(conf, "the link's MTU is %u", mtu_bytes);
    }
    send_question(conf, q);
    net_settle(conf, 0);
    was_narrow = is_narrow(conf);
    send_question(conf, new_router_advertisement(conf, mtu_bytes));
    net_settle(conf, 0);
    conf_check(conf, !is_narrow(conf),
               "a router's MTU of %u did not undo the MTU of 1280", mtu_bytes);
    return was_narrow;
}

static void router_heeded(struct conf *conf)
{
    conf_check(
        conf,
        adopts_router_mtu(conf, new_router_advertisement(conf, LINK_MTU_MIN)),
        "the MTU of a router advertisement does not apply");
}

static void router_options(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);
    static const uint8_t unknown[8] = {253, 1};

    memmove(q->message + ND_RA_OPTIONS + 8, q->message + ND_RA_OPTIONS, 8);
    memcpy(q->message + ND_RA_OPTIONS, unknown, sizeof(unknown));
    q->len_bytes += sizeof(unknown);
    conf_check(conf, adopts_router_mtu(conf, q),
               "the MTU after an unknown option does not apply");
}

static void expect_unheeded(struct conf *conf, struct question *q)
{
    conf_check(conf, !adopts_router_mtu(conf, q),
               "the MTU of an invalid router advertisement applies");
}

static void router_hop_limit(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);

    q->path.ttl = HOP_LIMIT - 1;
    expect_unheeded(conf, q);
}

static void router_source(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);

    q->path.src = net_path0(conf, true).src;
    expect_unheeded(conf, q);
}

static void router_code(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);

    q->message[ICMP_CODE] = 1;
    expect_unheeded(conf, q);
}

static void router_option_zero(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);

    memset(q->message + q->len_bytes, 0, 8); /* A second option, of length 0. */
    q->message[q->len_bytes] = 253;
    q->len_bytes += 8;
    expect_unheeded(conf, q);
}

static void router_cut(struct conf *conf)
{
    struct question *q = new_router_advertisement(conf, LINK_MTU_MIN);

    q->len_bytes -= 1;
    expect_unheeded(conf, q);
}

static void router_mtu_small(struct conf *conf)
{
    expect_unheeded(conf, new_router_advertisement(conf, LINK_MTU_MIN - 1));
    expect_unheeded(conf, new_router_advertisement(conf, 0));
}

static void router_mtu_large(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    struct net_whole *whole =
        net_whole_echo(conf, true, conf_target(conf)->mtu_bytes);

    send_question(conf, new_router_advertisement(conf, 65535));
    net_settle(conf, 0);
    net_send_piece(conf, whole, 0, 800, true);
    net_send_piece(conf, whole, 800, whole->len_bytes - 800, false);
    /* The reply comes in frames that the link carries. */
    net_take_whole(conf, whole);
    net_ping(conf, &path, "alive", 5);
}

/* ---- After the link came up. */

static bool is_dad(const struct packet *packet, const void *ctx)
{
    struct nd_neighbor nd;

    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ND_NEIGHBOR_SOLICIT &&
           ip_addr_is_unspecified(&packet->src) &&
           nd_neighbor_parse(&nd, packet->l4, packet->l4_len) &&
           (ctx == NULL || ip_addr_equal(&nd.target, ctx));
}

static bool is_router_solicit(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ND_ROUTER_SOLICIT;
}

static bool is_report(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == MLD_REPORT_V2;
}

static void flap_link(struct conf *conf)
{
    net_path0(conf, true);
    conf_partner(conf, 0, "present", "0");
    conf_pass(conf, 100000);
    conf_flush(conf);
    conf_partner(conf, 0, "present", "1");
}

static void dad_own(struct conf *conf)
{
    const struct ip_addr *ip = conf_target_ip(conf, 0, true);
    const struct packet *dad;
    struct ip_addr group;
    struct nd_neighbor nd;

    flap_link(conf);
    dad = conf_take(conf, "a duplicate address detection", is_dad, ip);
    ASSERT(nd_neighbor_parse(&nd, dad->l4, dad->l4_len));
    group = nd_solicited_node(&nd.target);
    conf_same(conf, "destination", dad->dst.bytes, group.bytes, 16);
    conf_equal(conf, "hop limit", dad->ttl, HOP_LIMIT);
    conf_check(
        conf, !nd.has_lladdr,
        "a source link-layer address is sent from the unspecified address");
    net_settle(conf, 0);
}

static void router_solicited(struct conf *conf)
{
    static const struct ip_addr all_routers = {{0xff, 0x02, [15] = 2}};
    const struct packet *rs;
    struct nd_router_solicit parsed;

    flap_link(conf);
    rs = conf_take(conf, "a router solicitation", is_router_solicit, NULL);
    conf_same(conf, "destination", rs->dst.bytes, all_routers.bytes, 16);
    conf_equal(conf, "hop limit", rs->ttl, HOP_LIMIT);
    conf_check(conf, nd_router_solicit_parse(&parsed, rs->l4, rs->l4_len),
               "the router solicitation is malformed");
    conf_check(
        conf, !ip_addr_is_unspecified(&rs->src) || !parsed.has_lladdr,
        "a source link-layer address is sent from the unspecified address");
    net_settle(conf, 0);
}

static void group_reported(struct conf *conf)
{
    struct ip_addr group = nd_solicited_node(conf_target_ip(conf, 0, true));
    bool is_found = false;

    flap_link(conf);
    for (unsigned int i = 0; i < 16 && !is_found; i++) {
        const struct packet *report =
            conf_take(conf, "a listener report", is_report, NULL);

        conf_equal(conf, "hop limit", report->ttl, 1);
        for (size_t at = ICMP_LEN; at + 20 <= report->l4_len; at += 20) {
            is_found =
                is_found || memcmp(report->l4 + at + 4, group.bytes, 16) == 0;
        }
    }
    conf_check(conf, is_found,
               "the address's solicited-node group is not reported");
    net_settle(conf, 0);
}

/* The drive does not use an address that another host has. */
static void dad_lost(struct conf *conf)
{
    struct packet_path path = net_path0(conf, true);
    struct question *q = new_solicitation(conf);
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_ADVERT,
        .override = true,
        .has_lladdr = true,
        .lladdr = path.src_mac,
        .target = path.dst,
    };
    const struct packet *answer;
    char line[128];
    const uint8_t *b = nd.target.bytes;

    nd.target.bytes[15] ^= 0x30;
    snprintf(line, sizeof(line), "config set address.3.ip %x:%x:%x:%x::%x/64",
             get_be16(b), get_be16(b + 2), get_be16(b + 4), get_be16(b + 6),
             get_be16(b + 14));
    conf_console(conf, line);
    conf_flush(conf);
    conf_console(conf, "config save");
    conf_take(conf, "a duplicate address detection", is_dad, &nd.target);
    q->path.src = nd.target;
    q->path.dst = (struct ip_addr){{0xff, 0x02, [15] = 1}};
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    q->len_bytes =
        nd_neighbor_emit(&nd, &q->path.src, &q->path.dst, q->message);
    q->rest = 1u << 29;
    send_question(conf, q);
    net_settle(conf, 0);
    conf_flush(conf);
    q = new_solicitation(conf);
    q->message[ND_TARGET + 15] ^= 0x30;
    q->path.dst = nd_solicited_node(&nd.target);
    q->path.dst_mac = nd_multicast_mac(&q->path.dst);
    send_question(conf, q);
    net_settle(conf, 0);
    answer = conf_take_within(conf, is_advert, &nd.target, 5000);
    conf_console(conf, "config set address.3.ip none");
    conf_console(conf, "config save");
    conf_check(conf, answer == NULL,
               "the drive answers for an address that another host has");
    net_ping(conf, &path, "alive", 5);
}

static const struct conf_test tests[] = {
    CONF_TEST("nd.solicited", "RFC 4861 7.2.4",
              "a solicitation gets an advertisement with correct flags, "
              "address and hop limit",
              nd_solicited),
    CONF_TEST("nd.unicast", "RFC 4861 7.2.3",
              "a unicast solicitation gets an advertisement", nd_unicast),
    CONF_TEST("nd.no-lladdr", "RFC 4861 4.3",
              "a unicast solicitation needs no source link-layer address",
              no_lladdr),
    CONF_TEST("nd.other-options", "RFC 4861 7.1.1",
              "unknown options are skipped", other_options,
              .is_malformed = true),
    CONF_TEST("nd.reserved", "RFC 4861 7.1.1", "the reserved field is ignored",
              nd_reserved, .is_malformed = true),
    CONF_TEST("nd.burst", "RFC 4861 7.2.4",
              "64 hosts that ask at once are all answered", nd_burst),
    CONF_TEST(
        "nd.dad-defended", "RFC 4862 5.4.3, RFC 4861 7.2.4",
        "a probe for the drive's address gets an advertisement to all nodes",
        dad_defended),
    CONF_TEST("nd.dad-with-lladdr", "RFC 4861 7.1.1",
              "a probe from :: with a link-layer address is dropped",
              dad_with_lladdr, .is_malformed = true),
    CONF_TEST("nd.dad-unicast", "RFC 4861 7.1.1",
              "a probe from :: to another address than the solicited-node "
              "group is dropped",
              dad_unicast, .is_malformed = true),
    CONF_TEST("nd.dad-for-another", "RFC 4862 5.4.3",
              "a probe for another address is not answered", dad_for_another,
              .is_malformed = true),
    CONF_TEST("nd.hop-limit", "RFC 4861 7.1.1",
              "a solicitation with hop limit 254, which has crossed a router, "
              "is dropped",
              hop_limit, .is_malformed = true),
    CONF_TEST("nd.code", "RFC 4861 7.1.1",
              "a solicitation with a code other than 0 is dropped", nd_code,
              .is_malformed = true),
    CONF_TEST("nd.checksum", "RFC 4861 7.1.1",
              "a solicitation with a wrong checksum is dropped", nd_checksum,
              .is_malformed = true),
    CONF_TEST("nd.cut", "RFC 4861 7.1.1",
              "a solicitation of less than 24 bytes is dropped", nd_cut,
              .is_malformed = true),
    CONF_TEST("nd.option-zero", "RFC 4861 4.6, 7.1.1",
              "a solicitation with an option of length 0 is dropped",
              option_zero, .is_malformed = true),
    CONF_TEST("nd.option-long", "RFC 4861 4.6",
              "a solicitation with an option beyond its end is dropped",
              option_long, .is_malformed = true),
    CONF_TEST("nd.target-group", "RFC 4861 7.1.1",
              "a solicitation for a group is dropped", target_group,
              .is_malformed = true),
    CONF_TEST("nd.for-another", "RFC 4861 7.2.3",
              "a solicitation for another address is not answered", for_another,
              .is_malformed = true),
    CONF_TEST("nd.fragmented", "RFC 6980 5",
              "neighbour discovery messages with a fragment header are ignored",
              nd_fragmented, .is_malformed = true),
    CONF_TEST("nd.advert-unanswered", "RFC 4861 7.2.5",
              "advertisements are not answered", advert_unanswered),
    CONF_TEST("nd.moved", "RFC 4861 7.2.5",
              "an advertisement with the override flag replaces the link-layer "
              "address",
              nd_moved),
    CONF_TEST("nd.moved-without-override", "RFC 4861 7.2.5",
              "an advertisement without the override flag does not replace the "
              "link-layer address",
              moved_without_override),
    CONF_TEST("nd.router", "RFC 4861 6.3.4",
              "the MTU of a router applies, and so does a later one",
              router_heeded),
    CONF_TEST("nd.router-options", "RFC 4861 6.1.2",
              "unknown options of a router advertisement are skipped",
              router_options, .is_malformed = true),
    CONF_TEST("nd.router-hop-limit", "RFC 4861 6.1.2",
              "a router advertisement with hop limit 254 is ignored",
              router_hop_limit, .is_malformed = true),
    CONF_TEST("nd.router-source", "RFC 4861 6.1.2",
              "a router advertisement from an address that is not link-local "
              "is ignored",
              router_source, .is_malformed = true),
    CONF_TEST("nd.router-code", "RFC 4861 6.1.2",
              "a router advertisement with a code other than 0 is ignored",
              router_code, .is_malformed = true),
    CONF_TEST("nd.router-option-zero", "RFC 4861 6.1.2",
              "a router advertisement with an option of length 0 is ignored as "
              "a whole",
              router_option_zero, .is_malformed = true),
    CONF_TEST("nd.router-cut", "RFC 4861 4.6",
              "a router advertisement with an option beyond its end is ignored",
              router_cut, .is_malformed = true),
    CONF_TEST("nd.router-mtu-small", "RFC 8200 5",
              "an advertised MTU below 1280 is ignored", router_mtu_small,
              .is_malformed = true),
    CONF_TEST("nd.router-mtu-large", "RFC 4861 6.3.4",
              "an advertised MTU beyond what Ethernet carries is ignored",
              router_mtu_large, .is_malformed = true),
    CONF_TEST("nd.dad-own", "RFC 4862 5.4.2",
              "the drive probes for its own address after the link came up",
              dad_own, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("nd.dad-lost", "RFC 4862 5.4.5",
              "the drive does not use an address that another host has",
              dad_lost, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("nd.router-solicited", "RFC 4861 6.3.7",
              "the drive solicits routers after the link came up",
              router_solicited, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST(
        "nd.group-reported", "RFC 3810 6.1, RFC 4861 7.2.1",
        "the drive reports its solicited-node group after the link came up",
        group_reported, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_net_nd, "net", tests);
