/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP: which messages are answered, how an address is defended, and how a
 * peer's new MAC address is learned.
 *
 * Spec: RFC 826, RFC 5227.
 */
#include <string.h>

#include "lib/bytes.h"
#include "net_lib.h"
#include "nvmeof/wire/opcode.h"
#include "rc.h"

enum {
    ARP_OPERATION_RARP = 3,
    HARDWARE_IEEE802 = 6,
    BURST = 64,
    ANNOUNCE_US = 2000000, /* ANNOUNCE_INTERVAL of RFC 5227. */
    DEFEND_US = 10000000,  /* DEFEND_INTERVAL of RFC 5227. */
};

/* packet_arp() sends it to the broadcast address. */
static const struct mac_addr to_all;
static const struct mac_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

/* A request of peer 0 for the target's address on port 0. */
static struct arp arp_request(struct conf *conf)
{
    struct packet_path path = net_path0(conf, false);

    return (struct arp){
        .operation = ARP_REQUEST,
        .sender_mac = path.src_mac,
        .sender_ip = path.src,
        .target_ip = path.dst,
    };
}

static void send_arp(struct conf *conf, const struct mac_addr *dst,
                     const struct arp *arp)
{
    uint8_t frame[64];

    net_send(conf, frame,
             packet_arp(frame, dst, &conf_peer(conf, 0, 0)->mac, arp));
}

static bool is_any_reply(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->eth.type == ETHERTYPE_ARP &&
           (!packet->has_arp || packet->arp.operation == ARP_REPLY);
}

/* A broadcast with which the target defends or announces its address. */
static bool is_announcement(const struct packet *packet, const void *ctx)
{
    return packet->has_arp && packet->arp.operation == ARP_REQUEST &&
           ip_addr_equal(&packet->arp.sender_ip, ctx) &&
           ip_addr_equal(&packet->arp.target_ip, ctx);
}

static const struct packet *take_reply(struct conf *conf, const struct arp *arp)
{
    const struct mac_addr *own = &conf_target(conf)->ports[0].mac;
    const struct packet *reply =
        conf_take(conf, "an ARP reply", conf_is_arp_reply, &arp->target_ip);

    conf_same(conf, "sender hardware address", reply->arp.sender_mac.bytes,
              own->bytes, 6);
    conf_same(conf, "target hardware address", reply->arp.target_mac.bytes,
              arp->sender_mac.bytes, 6);
    conf_same(conf, "target protocol address", reply->arp.target_ip.bytes,
              arp->sender_ip.bytes, 16);
    conf_same(conf, "source MAC address of the frame", reply->eth.src.bytes,
              own->bytes, 6);
    return reply;
}

static void expect_no_reply(struct conf *conf)
{
    net_expect_none(conf, 0, "ARP reply", is_any_reply, NULL);
}

static void request_answered(struct conf *conf)
{
    struct arp arp = arp_request(conf);
    const struct packet *reply;
    const uint8_t *p;

    send_arp(conf, &to_all, &arp);
    reply = take_reply(conf, &arp);
    conf_same(conf, "destination MAC address of the frame",
              reply->eth.dst.bytes, arp.sender_mac.bytes, 6);
    p = reply->frame + eth_header_len(&reply->eth);
    conf_equal(conf, "hardware type", get_be16(p + ARP_HARDWARE), 1);
    conf_equal(conf, "protocol type", get_be16(p + ARP_PROTOCOL), 0x800);
    conf_equal(conf, "hardware address length", p[ARP_HARDWARE_LEN], 6);
    conf_equal(conf, "protocol address length", p[ARP_PROTOCOL_LEN], 4);
}

static void unicast_request(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    send_arp(conf, &conf_target(conf)->ports[0].mac, &arp);
    take_reply(conf, &arp);
}

static void arp_padded(struct conf *conf)
{
    struct arp arp = arp_request(conf);
    uint8_t frame[200];

    memset(frame, 0xa5, sizeof(frame));
    packet_arp(frame, &to_all, &arp.sender_mac, &arp);
    net_send(conf, frame, sizeof(frame));
    take_reply(conf, &arp);
}

static void target_hardware(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.target_mac = broadcast;
    send_arp(conf, &to_all, &arp);
    take_reply(conf, &arp);
}

/* The frame's source is not the sender hardware address of the request. */
static void by_another(struct conf *conf)
{
    struct arp arp = arp_request(conf);
    const struct packet *reply;
    uint8_t frame[64];

    net_send(conf, frame,
             packet_arp(frame, &to_all, &conf_peer(conf, 1, 0)->mac, &arp));
    reply = take_reply(conf, &arp);
    conf_same(conf, "destination MAC address of the frame",
              reply->eth.dst.bytes, arp.sender_mac.bytes, 6);
}

static void arp_burst(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    for (unsigned int i = 0; i < BURST; i++) {
        struct conf_peer from = conf_stranger(conf, i + 1, 0);

        arp.sender_ip.bytes[15] = (uint8_t)(128 + i);
        arp.sender_mac = from.mac;
        send_arp(conf, &to_all, &arp);
    }
    for (unsigned int i = 0; i < BURST; i++) {
        arp.sender_ip.bytes[15] = (uint8_t)(128 + i);
        arp.sender_mac = conf_stranger(conf, i + 1, 0).mac;
        take_reply(conf, &arp);
    }
}

static void priority_tagged(struct conf *conf)
{
    struct arp arp = arp_request(conf);
    struct eth eth = {
        .dst = broadcast,
        .src = arp.sender_mac,
        .type = ETHERTYPE_ARP,
        .tagged = true,
        .priority = 5,
    };
    uint8_t frame[64];

    eth_emit(&eth, frame);
    arp_emit(&arp, frame + ETH_TAGGED_LEN);
    net_send(conf, frame, ETH_TAGGED_LEN + ARP_LEN);
    conf_equal(conf, "VLAN of the reply", take_reply(conf, &arp)->eth.vlan, 0);
}

static void other_vlan(struct conf *conf)
{
    struct arp arp = arp_request(conf);
    struct eth eth = {
        .dst = broadcast,
        .src = arp.sender_mac,
        .type = ETHERTYPE_ARP,
        .tagged = true,
        .vlan = 3999,
    };
    uint8_t frame[64];

    eth_emit(&eth, frame);
    arp_emit(&arp, frame + ETH_TAGGED_LEN);
    net_send(conf, frame, ETH_TAGGED_LEN + ARP_LEN);
    expect_no_reply(conf);
}

static void for_another(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.target_ip.bytes[15] = 0xfd;
    send_arp(conf, &to_all, &arp);
    expect_no_reply(conf);
}

static void for_groups(struct conf *conf)
{
    static const uint32_t groups[] = {0, 0x7f000001, 0xe0000001, 0xffffffff};
    struct arp arp = arp_request(conf);

    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        arp.target_ip = ip_addr_from_v4(groups[i]);
        send_arp(conf, &to_all, &arp);
    }
    expect_no_reply(conf);
}

static void arp_gratuitous(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.target_ip = arp.sender_ip;
    send_arp(conf, &to_all, &arp);
    arp.operation = ARP_REPLY;
    send_arp(conf, &to_all, &arp);
    expect_no_reply(conf);
}

static void reply_not_answered(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.operation = ARP_REPLY;
    arp.target_mac = conf_target(conf)->ports[0].mac;
    send_arp(conf, &arp.target_mac, &arp);
    expect_no_reply(conf);
}

static void arp_operations(struct conf *conf)
{
    static const uint16_t unknown[] = {0, ARP_OPERATION_RARP, 8, 25, 0xffff};
    struct arp arp = arp_request(conf);

    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        arp.operation = unknown[i];
        send_arp(conf, &to_all, &arp);
    }
    expect_no_reply(conf);
}

/* A request with one wrong field, which must not be answered. */
static void wrong_field(struct conf *conf, size_t offset, uint8_t value)
{
    struct arp arp = arp_request(conf);
    uint8_t frame[128] = {0};

    packet_arp(frame, &to_all, &arp.sender_mac, &arp);
    frame[ETH_LEN + offset] = value;
    net_send(conf, frame, sizeof(frame));
    expect_no_reply(conf);
}

static void hardware_type(struct conf *conf)
{
    wrong_field(conf, ARP_HARDWARE + 1, HARDWARE_IEEE802);
}

static void protocol_type(struct conf *conf)
{
    wrong_field(conf, ARP_PROTOCOL + 1, 0x05);
}

static void hardware_length(struct conf *conf)
{
    wrong_field(conf, ARP_HARDWARE_LEN, 8);
    wrong_field(conf, ARP_HARDWARE_LEN, 0);
}

static void protocol_length(struct conf *conf)
{
    wrong_field(conf, ARP_PROTOCOL_LEN, 16);
    wrong_field(conf, ARP_PROTOCOL_LEN, 0);
}

static void sender_group(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.sender_mac = broadcast;
    send_arp(conf, &to_all, &arp);
    arp.sender_mac = (struct mac_addr){{0x01, 0, 0x5e, 0, 0, 1}};
    send_arp(conf, &to_all, &arp);
    expect_no_reply(conf);
}

static void sender_multicast(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.sender_ip = ip_addr_from_v4(0xe0000001);
    send_arp(conf, &to_all, &arp);
    arp.sender_ip = ip_addr_from_v4(0xffffffff);
    send_arp(conf, &to_all, &arp);
    expect_no_reply(conf);
}

/* ---- Conflicts about an address. */

static void arp_probe(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.sender_ip = ip_addr_from_v4(0);
    send_arp(conf, &to_all, &arp);
    take_reply(conf, &arp);
}

static void probe_for_another(struct conf *conf)
{
    struct arp arp = arp_request(conf);

    arp.sender_ip = ip_addr_from_v4(0);
    arp.target_ip.bytes[15] = 0xfd;
    send_arp(conf, &to_all, &arp);
    expect_no_reply(conf);
}

static void conflict_on(struct conf *conf, unsigned int port,
                        uint16_t operation)
{
    struct packet_path path = net_path(conf, conf_peer(conf, 0, port), false);
    struct arp arp = {
        .operation = operation,
        .sender_mac = path.src_mac,
        .sender_ip = path.dst,
        .target_ip = path.dst,
    };
    const struct packet *defence;
    uint8_t frame[64];
    size_t len = packet_arp(frame, &to_all, &path.src_mac, &arp);

    /* The announcements that follow the drive's start. */
    conf_pass(conf, 2 * ANNOUNCE_US);
    conf_flush(conf);
    conf_send_frame(conf, port, frame, len, 0);
    defence = conf_take(conf, "an announcement that defends the address",
                        is_announcement, &path.dst);
    conf_same(conf, "sender hardware address", defence->arp.sender_mac.bytes,
              path.dst_mac.bytes, 6);
    conf_same(conf, "destination MAC address of the frame",
              defence->eth.dst.bytes, broadcast.bytes, 6);
    /* No second defence within DEFEND_INTERVAL, or two hosts would answer each
     * other for ever. */
    conf_send_frame(conf, port, frame, len, 0);
    net_expect_none(conf, port, "second defence within 10 s", is_announcement,
                    &path.dst);
    if (conf_target(conf)->is_virtual) {
        conf_pass(conf, DEFEND_US);
        conf_flush(conf);
        conf_send_frame(conf, port, frame, len, 0);
        conf_take(conf, "another defence after 10 s", is_announcement,
                  &path.dst);
    }
}

static void conflict_request(struct conf *conf)
{
    conflict_on(conf, 0, ARP_REQUEST);
}

static void conflict_reply(struct conf *conf)
{
    conflict_on(conf, 1, ARP_REPLY);
}

static void arp_announced(struct conf *conf)
{
    const struct conf_target *target = conf_target(conf);
    const struct ip_addr *ip = &target->ports[0].ip4;
    const struct packet *first, *second;

    conf_partner(conf, 0, "present", "0");
    conf_pass(conf, 100000);
    conf_flush(conf);
    conf_partner(conf, 0, "present", "1");
    first = conf_take(conf, "an announcement after the link came up",
                      is_announcement, ip);
    conf_same(conf, "sender hardware address of the announcement",
              first->arp.sender_mac.bytes, target->ports[0].mac.bytes, 6);
    conf_same(conf, "destination MAC address of the announcement",
              first->eth.dst.bytes, broadcast.bytes, 6);
    conf_check(conf, mac_addr_is_zero(&first->arp.target_mac),
               "the target hardware address of the announcement is not zero");
    second = conf_take_within(conf, is_announcement, ip,
                              ANNOUNCE_US + ANNOUNCE_US / 2);
    conf_check(conf, second != NULL,
               "expected a second announcement: none came");
    conf_check(conf,
               conf_later_most_us(conf, first, second) >= ANNOUNCE_US * 3 / 4,
               "the second announcement came after %llu us, not after 2 s",
               (unsigned long long)conf_later_most_us(conf, first, second));
    net_settle(conf, 0);
}

/* ---- Peers whose MAC address changes. */

static void has_moved(struct conf *conf, uint16_t operation, bool is_to_us)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct conf_peer *peer = conf_peer(conf, 0, 0);
    struct mac_addr before = peer->mac;
    struct arp arp = arp_request(conf);
    struct mac_addr dst =
        is_to_us ? conf_target(conf)->ports[0].mac : broadcast;
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    const struct packet *ack;

    peer->mac.bytes[3] ^= 0x80;
    rc->path.src_mac = arp.sender_mac = peer->mac;
    arp.operation = operation;
    arp.target_ip = is_to_us ? arp.target_ip : arp.sender_ip;
    send_arp(conf, &dst, &arp);
    net_settle(conf, 0);
    conf_flush(conf);
    rc_send_capsule(rc, &keep_alive, NULL, NULL, 0);
    ack = conf_take(conf, "a frame to the peer's new MAC address", net_is_to,
                    &peer->mac);
    conf_check(conf, ack->has_bth,
               "the frame to the peer's new MAC address is no RoCE packet");
    conf_expect_none(conf, "frame to the peer's old MAC address", net_is_to,
                     &before, 5000);
    rc_close(rc);
}

static void moved_gratuitous(struct conf *conf)
{
    has_moved(conf, ARP_REQUEST, false);
}

static void moved_gratuitous_reply(struct conf *conf)
{
    has_moved(conf, ARP_REPLY, false);
}

static void moved_request(struct conf *conf)
{
    has_moved(conf, ARP_REQUEST, true);
}

static const struct conf_test tests[] = {
    CONF_TEST("arp.request-answered", "RFC 826 Packet Reception",
              "a broadcast request gets a reply with correct fields",
              request_answered),
    CONF_TEST("arp.unicast-request", "RFC 1122 2.3.2.1",
              "a unicast request is answered", unicast_request),
    CONF_TEST("arp.padded", "RFC 826 Packet format",
              "bytes after the ARP packet are ignored", arp_padded),
    CONF_TEST("arp.target-hardware", "RFC 826 Definitions",
              "the target hardware address of a request is ignored",
              target_hardware),
    CONF_TEST("arp.asked-by-another", "RFC 826 Packet Reception",
              "the reply goes to the sender hardware address, not to the "
              "frame's source",
              by_another, .is_malformed = true),
    CONF_TEST("arp.burst", "RFC 826 Packet Reception",
              "64 hosts that ask at once are all answered", arp_burst),
    CONF_TEST("arp.priority-tagged", "IEEE 802.1Q 6.9.1",
              "a priority-tagged request is answered, as it belongs to no VLAN",
              priority_tagged),
    CONF_TEST("arp.other-vlan", "IEEE 802.1Q 6.9.1",
              "a request in a VLAN for an untagged address is not answered",
              other_vlan),
    CONF_TEST("arp.for-another", "RFC 826 Packet Reception",
              "a request for an address of another host is not answered",
              for_another),
    CONF_TEST("arp.for-groups", "RFC 1122 3.2.1.3",
              "requests for 0.0.0.0, 127.0.0.1, groups and broadcast are not "
              "answered",
              for_groups),
    CONF_TEST("arp.gratuitous", "RFC 5227 2.3",
              "an announcement is not answered", arp_gratuitous),
    CONF_TEST("arp.reply-not-answered", "RFC 826 Packet Reception",
              "a reply is not answered", reply_not_answered),
    CONF_TEST("arp.operations", "RFC 826 Packet Reception",
              "operations other than request are not answered", arp_operations,
              .is_malformed = true),
    CONF_TEST("arp.hardware-type", "RFC 826 Packet Reception",
              "a request with another hardware type is not answered",
              hardware_type, .is_malformed = true),
    CONF_TEST("arp.protocol-type", "RFC 826 Packet Reception",
              "a request with another protocol type is not answered",
              protocol_type, .is_malformed = true),
    CONF_TEST(
        "arp.hardware-length", "RFC 826 Packet Reception",
        "a request with another length of hardware addresses is not answered",
        hardware_length, .is_malformed = true),
    CONF_TEST(
        "arp.protocol-length", "RFC 826 Packet Reception",
        "a request with another length of protocol addresses is not answered",
        protocol_length, .is_malformed = true),
    CONF_TEST("arp.sender-hardware-group", "RFC 1812 3.3.2",
              "a request with a group as its sender's hardware address is not "
              "answered",
              sender_group, .is_malformed = true),
    CONF_TEST("arp.sender-group", "RFC 1122 3.2.1.3",
              "a request with a group or broadcast as its sender's IP address "
              "is not answered",
              sender_multicast, .is_malformed = true),
    CONF_TEST("arp.probe", "RFC 5227 2.1.1",
              "a probe for the drive's address is answered", arp_probe),
    CONF_TEST("arp.probe-for-another", "RFC 5227 2.1.1",
              "a probe for another address is not answered", probe_for_another),
    CONF_TEST(
        "arp.conflict", "RFC 5227 2.4",
        "the drive defends its address against an announcement, once in 10 s",
        conflict_request, .is_malformed = true),
    CONF_TEST(
        "arp.conflict-reply", "RFC 5227 2.4",
        "the drive defends its address against a reply, on the other port",
        conflict_reply, .needs = CONF_NEEDS_TWO_PORTS, .is_malformed = true),
    CONF_TEST(
        "arp.announced", "RFC 5227 2.3",
        "the address is announced twice, 2 s apart, after the link came up",
        arp_announced, .needs = CONF_NEEDS_CONTROL, .judges_time = true),
    CONF_TEST("arp.moved-announcement", "RFC 5227 3",
              "after a peer announces a new MAC address, frames go there",
              moved_gratuitous),
    CONF_TEST("arp.moved-reply", "RFC 5227 3",
              "after a peer announces a new MAC address in an ARP reply, "
              "frames go there",
              moved_gratuitous_reply),
    CONF_TEST(
        "arp.moved-request", "RFC 826 Packet Reception",
        "a request updates the MAC address that the drive knows for its sender",
        moved_request),
};
CONF_TESTS(conf_tests_net_arp, "net", tests);
