/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet: which addresses, VLANs, lengths and types the drive accepts.
 *
 * The tests send pings: a frame that must be dropped contains an echo request,
 * which must not be answered.
 *
 * Spec: IEEE 802.3 clauses 3 and 4, IEEE 802.1Q clauses 6 and 9.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/nd.h"
#include "net_lib.h"

enum {
    FRAME_MIN = 60, /* Without FCS. */
    ETHERTYPE_SERVICE_TAG = 0x88a8,
    ETHERTYPE_MAC_CONTROL = 0x8808,
    DATA_LEN = 32,
};

struct frame {
    struct packet_path path;
    uint32_t rest;
    size_t len_bytes;
    uint8_t data[DATA_LEN];
    uint8_t bytes[FRAME_LEN_MAX];
};

/* A frame with a correct echo request. */
static struct frame *new_valid_frame(struct conf *conf)
{
    struct frame *frame = conf_alloc(conf, sizeof(*frame));

    frame->path = net_path0(conf, false);
    frame->rest = net_rest(conf);
    net_pattern(frame->data, DATA_LEN);
    frame->len_bytes = net_echo(frame->bytes, &frame->path, frame->rest,
                                frame->data, DATA_LEN);
    return frame;
}

static const struct packet *expect_received(struct conf *conf,
                                            struct frame *frame)
{
    net_send(conf, frame->bytes, frame->len_bytes);
    return net_take_reply(conf, &frame->path, frame->rest, frame->data,
                          DATA_LEN);
}

static void expect_dropped(struct conf *conf, struct frame *frame)
{
    net_send(conf, frame->bytes, frame->len_bytes);
    net_expect_none(conf, 0, "answer", net_is_reply, &frame->rest);
}

/* Make room for `len` bytes after the addresses. */
static uint8_t *insert_bytes(struct frame *frame, size_t len)
{
    uint8_t *at = frame->bytes + ETH_TYPE;

    memmove(at + len, at, frame->len_bytes - ETH_TYPE);
    frame->len_bytes += len;
    return at;
}

static void put_tag(struct frame *frame, uint16_t type, uint16_t tci)
{
    uint8_t *at = insert_bytes(frame, 4);

    put_be16(at, type);
    put_be16(at + 2, tci);
}

/* ---- Filters. */

static void own_address(struct conf *conf)
{
    expect_received(conf, new_valid_frame(conf));
}

static void every_bit(struct conf *conf)
{
    for (unsigned int bit = 0; bit < 48; bit++) {
        struct frame *frame = new_valid_frame(conf);
        bool is_other = false;

        frame->bytes[ETH_DST + bit / 8] ^= (uint8_t)(1 << bit % 8);
        for (unsigned int i = 0; i < conf_target(conf)->num_ports; i++) {
            is_other = is_other ||
                       memcmp(frame->bytes + ETH_DST,
                              conf_target(conf)->ports[i].mac.bytes, 6) == 0;
        }
        if (!is_other) {
            expect_dropped(conf, frame);
        }
    }
}

static void other_port(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    memcpy(frame->bytes, conf_target(conf)->ports[1].mac.bytes, 6);
    expect_dropped(conf, frame);
}

static void filter_nobody(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    memset(frame->bytes, 0, 6);
    expect_dropped(conf, frame);
}

static size_t arp_request(struct conf *conf, uint8_t *bytes,
                          const struct mac_addr *dst, struct arp *arp)
{
    struct packet_path path = net_path0(conf, false);

    *arp = (struct arp){
        .operation = ARP_REQUEST,
        .sender_mac = path.src_mac,
        .sender_ip = path.src,
        .target_ip = path.dst,
    };
    return packet_arp(bytes, dst, &path.src_mac, arp);
}

static void filter_broadcast(struct conf *conf)
{
    struct arp arp;
    uint8_t bytes[64];

    net_send(conf, bytes,
             arp_request(conf, bytes, &(struct mac_addr){{0}}, &arp));
    conf_take(conf, "an ARP reply", conf_is_arp_reply, &arp.target_ip);
}

/* The broadcast address with one bit cleared. */
static void almost_broadcast(struct conf *conf)
{
    struct mac_addr dst = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}};
    struct arp arp;
    uint8_t bytes[64];

    net_send(conf, bytes, arp_request(conf, bytes, &dst, &arp));
    net_expect_none(conf, 0, "ARP reply", conf_is_arp_reply, &arp.target_ip);
}

static bool is_advert(const struct packet *packet, const void *ctx)
{
    struct nd_neighbor nd;

    return packet->has_icmp && packet->is_v6 &&
           packet->icmp.type == ND_NEIGHBOR_ADVERT &&
           nd_neighbor_parse(&nd, packet->l4, packet->l4_len) && nd.solicited &&
           ip_addr_equal(&nd.target, ctx);
}

/* Send a neighbour solicitation to the group's MAC address, with `change`
 * applied to the last byte. */
static struct ip_addr solicit_by_group(struct conf *conf, uint8_t change)
{
    struct packet_path path = net_path0(conf, true);
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_SOLICIT,
        .has_lladdr = true,
        .lladdr = path.src_mac,
        .target = path.dst,
    };
    uint8_t bytes[128], message[ND_NEIGHBOR_MAX_LEN];
    size_t len;

    path.dst = nd_solicited_node(&nd.target);
    path.dst_mac = nd_multicast_mac(&path.dst);
    path.dst_mac.bytes[5] ^= change;
    path.ttl = ND_HOP_LIMIT;
    len = nd_neighbor_emit(&nd, &path.src, &path.dst, message);
    net_send(conf, bytes,
             packet_ip(bytes, &path, IP_PROTOCOL_ICMPV6, message, len));
    return nd.target;
}

static void group_joined(struct conf *conf)
{
    struct ip_addr target = solicit_by_group(conf, 0);

    conf_take(conf, "a neighbour advertisement", is_advert, &target);
}

static void group_other(struct conf *conf)
{
    struct ip_addr target = solicit_by_group(conf, 0x40);

    net_expect_none(conf, 0, "neighbour advertisement", is_advert, &target);
}

static void source_group(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    frame->bytes[ETH_SRC] |= 1;
    expect_dropped(conf, frame);
    frame = new_valid_frame(conf);
    memset(frame->bytes + ETH_SRC, 0xff, 6);
    expect_dropped(conf, frame);
}

/* ---- VLANs. */

static void vlan_priorities(struct conf *conf)
{
    for (uint16_t priority = 0; priority < 8; priority++) {
        struct frame *frame = new_valid_frame(conf);
        const struct packet *reply;

        put_tag(frame, ETHERTYPE_VLAN, (uint16_t)(priority << 13));
        reply = expect_received(conf, frame);
        conf_equal(conf, "VLAN of the reply", reply->eth.vlan, 0);
        conf_check(conf, !reply->eth.tagged || reply->eth.priority == priority,
                   "the request had priority %u, the reply has %u", priority,
                   reply->eth.priority);
    }
}

static void untagged_reply(struct conf *conf)
{
    conf_check(conf, !expect_received(conf, new_valid_frame(conf))->eth.tagged,
               "an untagged request has a tagged reply");
}

static void vlan_dei(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_tag(frame, ETHERTYPE_VLAN, 0x1000 | 3 << 13);
    expect_received(conf, frame);
}

static void unknown_vlan(struct conf *conf)
{
    static const uint16_t vlans[] = {1, 2, 100, 2048, 4094};

    for (size_t i = 0; i < ARRAY_LEN(vlans); i++) {
        struct frame *frame = new_valid_frame(conf);

        put_tag(frame, ETHERTYPE_VLAN, vlans[i]);
        expect_dropped(conf, frame);
    }
}

static void reserved_vlan(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_tag(frame, ETHERTYPE_VLAN, 0xfff);
    expect_dropped(conf, frame);
}

static void double_tag(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_tag(frame, ETHERTYPE_VLAN, 5);
    put_tag(frame, ETHERTYPE_VLAN, 0);
    expect_dropped(conf, frame);
}

static void service_tag(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_tag(frame, ETHERTYPE_SERVICE_TAG, 7);
    expect_dropped(conf, frame);
}

static void tag_then_none(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_tag(frame, ETHERTYPE_VLAN, 77);
    expect_dropped(conf, frame);
    expect_received(conf,
                    /* The same peer, now without a VLAN. */
                    new_valid_frame(conf));
}

/* ---- Lengths. */

/* An echo request in a packet of `len` bytes. */
static struct frame *of_length(struct conf *conf, size_t len, bool is_tagged,
                               uint8_t **data, size_t *data_len)
{
    struct frame *frame = new_valid_frame(conf);

    *data_len = len - IPV4_LEN - ICMP_LEN;
    *data = conf_alloc(conf, *data_len);
    net_pattern(*data, *data_len);
    if (len + ETH_TAGGED_LEN > sizeof(frame->bytes)) {
        conf_not_applicable(conf, "the link carries packets of %zu bytes", len);
    }
    frame->path.tagged = is_tagged;
    frame->len_bytes =
        net_echo(frame->bytes, &frame->path, frame->rest, *data, *data_len);
    return frame;
}

static void length_is(struct conf *conf, size_t len, bool is_tagged,
                      bool is_received)
{
    uint8_t *data;
    size_t data_len;
    struct frame *frame = of_length(conf, len, is_tagged, &data, &data_len);

    if (is_received) {
        net_send(conf, frame->bytes, frame->len_bytes);
        net_take_reply(conf, &frame->path, frame->rest, data, data_len);
    } else {
        net_send(conf, frame->bytes, frame->len_bytes);
        if (!conf_target(conf)->is_ours &&
            conf_take_within(conf, net_is_to, &frame->path.src_mac,
                             CONF_SILENCE_US) != NULL) {
            conf_not_applicable(conf, "the target receives packets longer than "
                                      "its MTU, as 4A.2.4.2.1 allows");
        }
        net_expect_none(conf, 0, "answer to a frame that is too long",
                        net_is_reply, &frame->rest);
        conf_expect_none(conf,
                         "fragment of an answer to a frame that is too long",
                         net_is_to, &frame->path.src_mac, 5000);
    }
}

static void length_longest(struct conf *conf)
{
    size_t mtu_bytes = conf_target(conf)->mtu_bytes;

    length_is(conf, mtu_bytes - 1, false, true);
    length_is(conf, mtu_bytes, false, true);
}

static void too_long(struct conf *conf)
{
    length_is(conf, (size_t)conf_target(conf)->mtu_bytes + 1, false, false);
}

static void longest_tagged(struct conf *conf)
{
    length_is(conf, conf_target(conf)->mtu_bytes, true, true);
}

static void too_long_tagged(struct conf *conf)
{
    length_is(conf, (size_t)conf_target(conf)->mtu_bytes + 1, true, false);
}

static void length_jumbo(struct conf *conf)
{
    if (conf_target(conf)->mtu_bytes == FRAME_MTU_MAX) {
        conf_not_applicable(conf, "the link carries jumbo frames");
    }
    length_is(conf, FRAME_MTU_MAX, false, false);
    expect_received(conf, new_valid_frame(conf));
}

/* A short packet in a frame that is padded to 60 bytes with arbitrary data. */
static void length_padded(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    memset(frame->bytes, 0xa5, FRAME_MIN + 4);
    frame->len_bytes =
        net_echo(frame->bytes, &frame->path, frame->rest, NULL, 0);
    net_send(conf, frame->bytes, FRAME_MIN);
    net_take_reply(conf, &frame->path, frame->rest, NULL, 0);
}

static const struct packet *short_reply(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);
    const struct packet *reply = net_ping(conf, &path, NULL, 0);

    if (reply->len_bytes < FRAME_MIN && !conf_target(conf)->is_ours) {
        conf_not_applicable(
            conf, "the link is virtual, and its frames need no padding");
    }
    return reply;
}

static void reply_length(struct conf *conf)
{
    conf_equal(conf, "length of the shortest frame",
               short_reply(conf)->len_bytes, FRAME_MIN);
}

/* The padding after the packet must not hold data of other frames. */
static void reply_padding(struct conf *conf)
{
    const struct packet *reply;
    size_t end = ETH_LEN + IPV4_LEN + ICMP_LEN;

    expect_received(
        conf,
        /* A longer frame, whose data could be left in the padding. */
        new_valid_frame(conf));
    reply = short_reply(conf);
    for (size_t i = end; i < reply->len_bytes; i++) {
        conf_equal(conf, "padding", reply->frame[i], 0);
    }
}

/* ---- Types. */

static void length_field(struct conf *conf)
{
    static const uint16_t lengths[] = {0, 46, 1500, 1501, 1535};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct frame *frame = new_valid_frame(conf);

        put_be16(frame->bytes + ETH_TYPE, lengths[i]);
        expect_dropped(conf, frame);
    }
}

/* IPv4 in LLC and SNAP: RFC 1122 lets a host understand it; this drive does
 * not. The test only asks that the frame is not taken for something else. */
static void other_types(struct conf *conf)
{
    static const uint16_t types[] = {0x0600, 0x0801, 0x6003, 0x8863,
                                     0x88e5, 0x9000, 0xffff};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct frame *frame = new_valid_frame(conf);

        put_be16(frame->bytes + ETH_TYPE, types[i]);
        net_send(conf, frame->bytes, frame->len_bytes);
        net_expect_none(conf, 0, "answer", net_is_to, &frame->path.src_mac);
    }
}

static void other_family(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_be16(frame->bytes + ETH_TYPE, ETHERTYPE_IPV6);
    expect_dropped(conf, frame);
    put_be16(frame->bytes + ETH_TYPE, ETHERTYPE_ARP);
    expect_dropped(conf, frame);
}

static void header_only(struct conf *conf)
{
    static const uint16_t types[] = {
        ETHERTYPE_IPV4, ETHERTYPE_ARP,  ETHERTYPE_IPV6,   ETHERTYPE_VLAN,
        ETHERTYPE_LLDP, ETHERTYPE_SLOW, ETHERTYPE_ROCE_V1};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct frame *frame = new_valid_frame(conf);

        memset(frame->bytes + ETH_LEN, 0, FRAME_MIN - ETH_LEN);
        put_be16(frame->bytes + ETH_TYPE, types[i]);
        net_send(conf, frame->bytes, FRAME_MIN);
    }
    expect_received(conf, new_valid_frame(conf));
}

/* The drive ignores unknown opcodes that are sent to the MAC Control group or
 * to its own address. */
static void mac_control(struct conf *conf)
{
    struct frame *frame = new_valid_frame(conf);

    put_be16(frame->bytes + ETH_TYPE, ETHERTYPE_MAC_CONTROL);
    memset(frame->bytes + ETH_LEN, 0, FRAME_MIN - ETH_LEN);
    put_be16(frame->bytes + ETH_LEN, 0x7777);
    net_send(conf, frame->bytes, FRAME_MIN);
    memcpy(frame->bytes, (uint8_t[]){0x01, 0x80, 0xc2, 0, 0, 1}, 6);
    net_send(conf, frame->bytes, FRAME_MIN);
    net_expect_none(conf, 0, "answer", net_is_to, &frame->path.src_mac);
    expect_received(conf, new_valid_frame(conf));
}

/* ---- Damaged frames, where the link can carry them. */

static unsigned long read_counter(struct conf *conf, const char *name)
{
    const char *at = strstr(conf_console(conf, "counters 0"), name);

    return at != NULL ? strtoul(at + strlen(name), NULL, 10) : 0;
}

static void expect_damaged_counted(struct conf *conf, uint8_t flags, size_t len,
                                   const char *name)
{
    struct frame *frame = new_valid_frame(conf);
    unsigned long before = read_counter(conf, name);

    conf_send_frame(conf, 0, frame->bytes, len != 0 ? len : frame->len_bytes,
                    flags);
    net_expect_none(conf, 0, "answer", net_is_reply, &frame->rest);
    conf_equal(conf, name, read_counter(conf, name) - before, 1);
}

static void bad_fcs(struct conf *conf)
{
    expect_damaged_counted(conf, FRAME_BAD_FCS, 0, "aFrameCheckSequenceErrors");
}

static void fcs_runt(struct conf *conf)
{
    expect_damaged_counted(conf, FRAME_RUNT, 42, "etherStatsUndersizePkts");
}

static void runt_fragment(struct conf *conf)
{
    expect_damaged_counted(conf, FRAME_RUNT | FRAME_BAD_FCS, 30,
                           "etherStatsFragments");
}

static void oversize_counted(struct conf *conf)
{
    unsigned long before = read_counter(conf, "etherStatsOversizePkts");

    too_long(conf);
    conf_equal(conf, "etherStatsOversizePkts",
               read_counter(conf, "etherStatsOversizePkts") - before, 1);
}

static const struct conf_test tests[] = {
    CONF_TEST("filter.own-address", "IEEE 802.3 4A.2.9",
              "a frame to the port's address is received", own_address),
    CONF_TEST("filter.every-bit", "IEEE 802.3 4A.2.9",
              "a frame is dropped when any one bit of its address is wrong",
              every_bit),
    CONF_TEST("filter.other-port", "IEEE 802.3 4A.2.9",
              "a frame to the other port's address is dropped", other_port,
              .needs = CONF_NEEDS_TWO_PORTS),
    CONF_TEST("filter.nobody", "IEEE 802.3 3.2.3",
              "a frame to address zero is dropped", filter_nobody,
              .is_malformed = true),
    CONF_TEST("filter.broadcast", "IEEE 802.3 3.2.3.1",
              "a broadcast frame is received", filter_broadcast),
    CONF_TEST("filter.almost-broadcast", "IEEE 802.3 3.2.3.1",
              "a frame to ff:ff:ff:ff:ff:fe is not taken for a broadcast",
              almost_broadcast),
    CONF_TEST("filter.group-joined", "RFC 2464 7",
              "a frame to a group that the port has joined is received",
              group_joined),
    CONF_TEST("filter.group-other", "IEEE 802.3 4A.2.9",
              "a frame to a group that the port has not joined is dropped",
              group_other, .is_malformed = true),
    CONF_TEST("filter.source-group", "IEEE 802.3 3.2.3",
              "a frame whose source is a group address is not answered",
              source_group, .is_malformed = true),
    CONF_TEST("vlan.priorities", "IEEE 802.1Q 6.9.1",
              "priority-tagged frames are received with every priority",
              vlan_priorities),
    CONF_TEST("vlan.untagged", "IEEE 802.1Q 6.9.2",
              "an untagged request gets an untagged reply", untagged_reply),
    CONF_TEST("vlan.dei", "IEEE 802.1Q 9.6",
              "a frame with the drop-eligible bit is received", vlan_dei),
    CONF_TEST("vlan.unknown", "IEEE 802.1Q 6.9.1",
              "frames of VLANs that the drive is not in are dropped",
              unknown_vlan),
    CONF_TEST("vlan.reserved", "IEEE 802.1Q 9.6",
              "a frame of VLAN 4095 is dropped", reserved_vlan,
              .is_malformed = true),
    CONF_TEST("vlan.double-tag", "IEEE 802.1Q 9.5",
              "a frame with two tags is dropped", double_tag),
    CONF_TEST("vlan.service-tag", "IEEE 802.1Q 9.5",
              "a frame with a service tag is dropped", service_tag),
    CONF_TEST(
        "vlan.same-peer", "IEEE 802.1Q 6.9.1",
        "a peer that sends in another VLAN is still answered without a VLAN",
        tag_then_none),
    CONF_TEST("length.longest", "IEEE 802.3 3.2.7",
              "a packet as long as the MTU is received and answered",
              length_longest),
    CONF_TEST("length.too-long", "IEEE 802.3 4A.2.9.2",
              "a packet one byte longer than the MTU is dropped", too_long,
              .is_malformed = true),
    CONF_TEST("length.longest-tagged", "IEEE 802.3 3.2.7",
              "a VLAN tag does not count towards the MTU", longest_tagged),
    CONF_TEST("length.too-long-tagged", "IEEE 802.3 4A.2.9.2",
              "a tagged packet one byte longer than the MTU is dropped",
              too_long_tagged, .is_malformed = true),
    CONF_TEST("length.jumbo", "IEEE 802.3 4A.2.9.2",
              "a jumbo frame does no harm on a link without jumbo frames",
              length_jumbo, .is_malformed = true),
    CONF_TEST("length.padded", "IEEE 802.3 3.2.8",
              "the padding of a short frame is ignored", length_padded),
    CONF_TEST("length.reply", "IEEE 802.3 4A.2.3.2.4",
              "short answers are padded to 60 bytes", reply_length),
    CONF_TEST("length.reply-padding", "RFC 894, RFC 1042",
              "padding holds zeroes, no data of other frames", reply_padding),
    CONF_TEST("type.length-field", "IEEE 802.3 3.2.6",
              "a type field below 1536 is a length, and no IP packet follows",
              length_field, .is_malformed = true),
    CONF_TEST("type.unknown", "IEEE 802.3 3.2.6",
              "frames with unknown EtherTypes are dropped", other_types,
              .is_malformed = true),
    CONF_TEST("type.other-family", "IEEE 802.3 3.2.6",
              "the EtherType alone decides how the packet is parsed",
              other_family, .is_malformed = true),
    CONF_TEST(
        "type.header-only", "IEEE 802.3 3.2.8",
        "a header followed by zeroes does no harm, for each known EtherType",
        header_only, .is_malformed = true),
    CONF_TEST("type.mac-control", "IEEE 802.3 31.5",
              "unknown MAC Control frames are discarded", mac_control,
              .is_malformed = true),
    CONF_TEST("fcs.wrong", "IEEE 802.3 30.3.1.1.6",
              "a frame with a wrong FCS is dropped and counted", bad_fcs,
              .needs = CONF_NEEDS_FLAGS | CONF_NEEDS_CONTROL,
              .is_malformed = true),
    CONF_TEST("fcs.runt", "RFC 2819 etherStatsUndersizePkts",
              "a runt with a correct FCS is dropped and counted", fcs_runt,
              .needs = CONF_NEEDS_FLAGS | CONF_NEEDS_CONTROL,
              .is_malformed = true),
    CONF_TEST("fcs.fragment", "RFC 2819 etherStatsFragments",
              "a runt with a wrong FCS is dropped and counted", runt_fragment,
              .needs = CONF_NEEDS_FLAGS | CONF_NEEDS_CONTROL,
              .is_malformed = true),
    CONF_TEST("length.too-long-counted", "RFC 2819 etherStatsOversizePkts",
              "a frame that is too long is counted", oversize_counted,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
};
CONF_TESTS(conf_tests_eth_frame, "eth", tests);
