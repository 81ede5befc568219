/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One exchange for each format below RoCE, with requests and answers that scapy
 * made: see literal.h. The exchanges for SNTP and LACP are in net_sntp.c and
 * net_lacp.c.
 */
#include <string.h>

#include "literal.h"
#include "literal_frames.h"
#include "net_lib.h"

enum {
    /* Where check_head() begins: the protocol field of the IPv4 header. */
    HEAD_V4 = 9,
    /* The target address, in solicitations and advertisements. */
    NS_TARGET = 62,
    NS_OPTION = 78, /* An option: type, length, link-layer address. */
    NS_LEN = 86,
    ND_FLAGS = 58,
    ND_SOLICITED = 0x40,
    ND_OVERRIDE = 0x20,
    /* The last bytes of an address, which its solicited-node group
     * ends with. */
    GROUP_BYTES = 3,
};

/* The reply has the literal frame's MAC addresses, type and IP addresses. */
static void check_head(struct conf *conf, const uint8_t *got,
                       const struct literal *expected, bool is_v6)
{
    conf_same(conf, "Ethernet header", got, expected->bytes, LITERAL_IP);
    if (is_v6) {
        conf_same(conf, "payload length and next header", got + LITERAL_IP + 4,
                  expected->bytes + LITERAL_IP + 4, 3);
        conf_same(conf, "IPv6 addresses", got + LITERAL_IPV6_SRC,
                  expected->bytes + LITERAL_IPV6_SRC, 32);
    } else {
        conf_same(conf, "version, total length",
                  (uint8_t[]){got[LITERAL_IP], got[LITERAL_IP + 2],
                              got[LITERAL_IP + 3], got[LITERAL_IP + HEAD_V4]},
                  (uint8_t[]){expected->bytes[LITERAL_IP],
                              expected->bytes[LITERAL_IP + 2],
                              expected->bytes[LITERAL_IP + 3],
                              expected->bytes[LITERAL_IP + HEAD_V4]},
                  4);
        conf_same(conf, "IPv4 addresses", got + LITERAL_IPV4_SRC,
                  expected->bytes + LITERAL_IPV4_SRC, 8);
    }
}

static void literal_arp(struct conf *conf)
{
    const struct conf_peer *peer = conf_peer(conf, 0, 0);
    const struct conf_port *drive = &conf_target(conf)->ports[0];
    struct literal *ask = LITERAL(conf, scapy_arp_request);
    struct literal *reply = LITERAL(conf, scapy_arp_reply);

    conf_needs_ip(conf, 0, false);
    memcpy(ask->bytes + 6, peer->mac.bytes, 6);
    memcpy(ask->bytes + LITERAL_ARP_SENDER, peer->mac.bytes, 6);
    memcpy(ask->bytes + LITERAL_ARP_SENDER + 6, peer->ip4.bytes + 12, 4);
    memcpy(ask->bytes + LITERAL_ARP_TARGET + 6, drive->ip4.bytes + 12, 4);
    memcpy(reply->bytes, peer->mac.bytes, 6);
    memcpy(reply->bytes + 6, drive->mac.bytes, 6);
    memcpy(reply->bytes + LITERAL_ARP_SENDER, drive->mac.bytes, 6);
    memcpy(reply->bytes + LITERAL_ARP_SENDER + 6, drive->ip4.bytes + 12, 4);
    memcpy(reply->bytes + LITERAL_ARP_TARGET, peer->mac.bytes, 6);
    memcpy(reply->bytes + LITERAL_ARP_TARGET + 6, peer->ip4.bytes + 12, 4);
    literal_send(conf, ask);
    literal_take(conf, "the literal ARP reply", 0, reply->bytes,
                 reply->len_bytes);
}

static void echo_compare_reply(struct conf *conf, struct literal *ask,
                               struct literal *reply, bool is_v6)
{
    size_t l4 = is_v6 ? LITERAL_L4_V6 : LITERAL_L4;
    const uint8_t *got;

    literal_to_drive(conf, ask);
    literal_to_peer(conf, reply);
    literal_seal(reply);
    literal_send(conf, ask);
    got = literal_take(conf, "the literal echo reply", l4, reply->bytes + l4,
                       reply->len_bytes - l4);
    check_head(conf, got, reply, is_v6);
}

static void literal_icmp(struct conf *conf)
{
    echo_compare_reply(conf, LITERAL(conf, scapy_echo),
                       LITERAL(conf, scapy_echo_reply), false);
}

static void literal_icmpv6(struct conf *conf)
{
    echo_compare_reply(conf, LITERAL(conf, scapy_echo6),
                       LITERAL(conf, scapy_echo6_reply), true);
}

/* IEEE 802.1Q allows a station to answer a priority-tagged frame with or
 * without a tag. */
static void literal_vlan(struct conf *conf)
{
    struct literal *ask = LITERAL(conf, scapy_echo_tagged);
    struct literal *reply = LITERAL(conf, scapy_echo_reply);
    const uint8_t *got;
    size_t tag_len;

    conf_needs_ip(conf, 0, false);
    literal_to_drive(conf, ask);
    literal_to_peer(conf, reply);
    literal_send(conf, ask);
    got = literal_take(conf, "a frame to the peer", 0, reply->bytes, 12);
    tag_len = got[LITERAL_ETH_TYPE] == 0x81 ? 4 : 0;
    if (tag_len != 0) {
        conf_same(conf, "the tag of the request", got + LITERAL_ETH_TYPE,
                  ask->bytes + LITERAL_ETH_TYPE, tag_len);
    }
    conf_same(conf, "the literal echo reply", got + LITERAL_L4 + tag_len,
              reply->bytes + LITERAL_L4, reply->len_bytes - LITERAL_L4);
}

static void literal_nd(struct conf *conf)
{
    const struct conf_port *drive = &conf_target(conf)->ports[0];
    const struct conf_peer *peer = conf_peer(conf, 0, 0);
    struct literal *ask = LITERAL(conf, scapy_neighbor_solicit);
    struct literal *reply = LITERAL(conf, scapy_neighbor_advert);
    const uint8_t *group = drive->ip6.bytes + 16 - GROUP_BYTES;
    const uint8_t *got;

    conf_needs_ip(conf, 0, true);
    memcpy(ask->bytes + 6 - GROUP_BYTES, group, GROUP_BYTES);
    memcpy(ask->bytes + 6, peer->mac.bytes, 6);
    memcpy(ask->bytes + LITERAL_IPV6_SRC, peer->ip6.bytes, 16);
    memcpy(ask->bytes + LITERAL_L4_V6 - GROUP_BYTES, group, GROUP_BYTES);
    memcpy(ask->bytes + NS_TARGET, drive->ip6.bytes, 16);
    memcpy(ask->bytes + NS_OPTION + 2, peer->mac.bytes, 6);
    literal_to_peer(conf, reply);
    memcpy(reply->bytes + NS_TARGET, drive->ip6.bytes, 16);
    memcpy(reply->bytes + NS_OPTION + 2, drive->mac.bytes, 6);
    literal_send(conf, ask);
    do {
        got = literal_take(conf, "an advertisement of the target's addresses",
                           NS_TARGET, reply->bytes + NS_TARGET,
                           NS_LEN - NS_TARGET);
        /* Skip advertisements that are sent to all nodes. */
    } while (memcmp(got, peer->mac.bytes, 6) != 0);
    /* A drive that has just started clears Override until duplicate address
     * detection ends (RFC 4429 3.3). */
    reply->bytes[ND_FLAGS] =
        (uint8_t)(ND_SOLICITED | (got[ND_FLAGS] & ND_OVERRIDE));
    literal_seal(reply);
    conf_same(conf, "the literal neighbour advertisement", got + LITERAL_L4_V6,
              reply->bytes + LITERAL_L4_V6, NS_LEN - LITERAL_L4_V6);
    check_head(conf, got, reply, true);
    conf_equal(conf, "hop limit", got[LITERAL_IP + 7], 255);
}

static void literal_udp(struct conf *conf)
{
    static const uint8_t unreachable[] = {3, 3};
    struct literal *sent = LITERAL(conf, scapy_udp_closed);
    const uint8_t *got;

    literal_to_drive(conf, sent);
    literal_send(conf, sent);
    got = literal_take(conf, "ICMP destination unreachable, port unreachable",
                       LITERAL_L4, unreachable, sizeof(unreachable));
    conf_same(conf, "the IP and UDP headers that the error quotes",
              got + LITERAL_L4 + 8, sent->bytes + LITERAL_IP, 28);
}

static void literal_lldp(struct conf *conf)
{
    static const char name[] = "conf-literal";

    literal_send(conf, LITERAL(conf, scapy_lldp));
    net_settle(conf, 0);
    conf_check(conf, strstr(conf_console(conf, "neighbours 0"), name) != NULL,
               "the drive does not know the neighbour %s", name);
    literal_send(conf, LITERAL(conf, scapy_lldp_leave));
    net_settle(conf, 0);
    conf_check(conf, strstr(conf_console(conf, "neighbours 0"), name) == NULL,
               "the drive still knows the neighbour %s, which sent TTL 0",
               name);
}

static const struct conf_test tests[] = {
    CONF_TEST("literal.arp", "RFC 826",
              "a literal ARP request gets the literal reply", literal_arp),
    CONF_TEST("literal.icmp", "RFC 792, RFC 791 3.1",
              "a literal IPv4 echo request gets the literal reply",
              literal_icmp),
    CONF_TEST("literal.vlan", "IEEE 802.1Q 6.9.1",
              "a literal priority-tagged echo request gets the literal reply",
              literal_vlan),
    CONF_TEST("literal.icmpv6", "RFC 4443 4, RFC 8200 3",
              "a literal IPv6 echo request gets the literal reply",
              literal_icmpv6),
    CONF_TEST("literal.nd", "RFC 4861 4.3, 4.4",
              "a literal neighbour solicitation gets the literal advertisement",
              literal_nd),
    CONF_TEST(
        "literal.udp", "RFC 768, RFC 1122 4.1.3.1",
        "a literal datagram to a closed port gets an ICMP error that quotes it",
        literal_udp),
    CONF_TEST("literal.lldp", "IEEE 802.1AB-2016 8.2",
              "literal LLDPDUs make the drive learn and forget a neighbour",
              literal_lldp, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_net_literal, "net", tests);
