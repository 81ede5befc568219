/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: many connections, floods, and peers that cost much.  The
 * services have 64 connections (docs/echo.md).
 */
#include <string.h>

#include "net_lib.h"
#include "tcp_peer.h"

enum {
    PLACES = 64,
    FLOOD = 200,
    TURNS = 100,
    NUMBERS = 10,
    HOLES = 300,
    SEGMENTS = 400,
    RSTS_MOST = 100,
    WINDOW = 8192,
    OWN_PORT = 41000,
    CLOSED_PORT = 4321,
    GOOD = 5, /* the peer of a test that behaves well */
    NEAR = 1 << 16,
    LEARN_US = 10000,
};

static struct tcp_peer good_peer(struct conf *conf, uint16_t number)
{
    return tcp_peer_new(conf, GOOD, 0, false, (uint16_t)(OWN_PORT + number),
                        TCP_PEER_ECHO);
}

static void check_works(struct conf *conf, uint16_t number)
{
    struct tcp_peer peer = good_peer(conf, number);

    conf_note(conf, "another peer connects and gets its bytes back");
    tcp_peer_open(&peer);
    tcp_peer_echo(&peer, 100);
}

static struct tcp_peer *open_many(struct conf *conf, unsigned int count)
{
    struct tcp_peer *peers = conf_alloc(conf, count * sizeof(*peers));

    for (unsigned int i = 0; i < count; i++) {
        peers[i] = tcp_peer_stranger(conf, i, TCP_PEER_ECHO);
        tcp_peer_open(&peers[i]);
        /* An echo shows that the drive has the ACK. */
        tcp_peer_echo(&peers[i], 1);
    }
    return peers;
}

static void take_flags(struct tcp_peer *peer, uint8_t flags)
{
    struct tcp_peer_in in;

    (void)tcp_peer_take(peer, &in, 0);
    conf_equal(peer->conf, "flags", in.flags, flags);
    peer->iss = (flags & SEG_SYN) != 0 ? in.seq : peer->iss;
}

static void send_plain(const struct tcp_peer *peer, uint8_t flags, uint32_t seq,
                       uint32_t ack)
{
    tcp_peer_send(peer, &(struct tcp_peer_out){.seq = peer->isn + seq,
                                               .ack = peer->iss + ack,
                                               .flags = flags,
                                               .window = UINT16_MAX});
}

/* The peer sends FIN, and the drive's FIN is acknowledged. */
static void close_both(struct tcp_peer *peer, uint32_t seq)
{
    send_plain(peer, SEG_FIN | SEG_ACK, seq, seq);
    take_flags(peer, SEG_ACK);
    take_flags(peer, SEG_FIN | SEG_ACK);
    send_plain(peer, SEG_ACK, seq + 1, seq + 1);
}

/* These tests begin with all places of the services free, and end with none.
 * In real time, the connections of the test before may still be ending: each
 * needs its RST to be sent and a turn of the firmware. */
static void begin_many(struct conf *conf)
{
    if (!conf_target(conf)->is_virtual) {
        conf_not_applicable(conf, "the test needs virtual time: run natively");
    }
    tcp_peer_begin(conf);
}

static void all_places(struct conf *conf)
{
    struct tcp_peer more = good_peer(conf, 0);
    struct tcp_peer *peers;

    begin_many(conf);
    peers = open_many(conf, PLACES);
    tcp_peer_syn(&more);
    take_flags(&more, SEG_RST | SEG_ACK);
    close_both(&peers[0], 2);
    conf_pass(conf, LEARN_US);
    check_works(conf, 1);
    tcp_peer_end(conf);
}

static void flood_of_many(struct conf *conf)
{
    struct tcp_peer first = good_peer(conf, 0);

    begin_many(conf);
    tcp_peer_open(&first);
    for (unsigned int i = 0; i < FLOOD; i++) {
        struct tcp_peer stranger = tcp_peer_stranger(conf, i, TCP_PEER_ECHO);

        tcp_peer_syn(&stranger);
    }
    conf_pass(conf, LEARN_US);
    check_works(conf, 1);
    tcp_peer_echo(&first, 100);
    tcp_peer_end(conf);
}

static void flood_of_one(struct conf *conf)
{
    begin_many(conf);
    for (uint16_t i = 0; i < FLOOD; i++) {
        struct tcp_peer peer = tcp_peer_new(
            conf, 0, 0, false, (uint16_t)(OWN_PORT + i), TCP_PEER_ECHO);

        tcp_peer_syn(&peer);
    }
    conf_pass(conf, LEARN_US);
    check_works(conf, 1);
    tcp_peer_end(conf);
}

static void conns_off(struct conf *conf)
{
    struct tcp_peer *peers;

    begin_many(conf);
    peers = open_many(conf, PLACES);
    tcp_peer_services(conf, false);
    for (unsigned int i = 0; i < PLACES; i++) {
        struct tcp_peer_in in;

        do {
            (void)tcp_peer_take(&peers[i], &in, 0);
        } while (in.flags == SEG_ACK);
        conf_equal(conf, "flags", in.flags, SEG_RST | SEG_ACK);
        conf_equal(conf, "number of the RST", in.seq - peers[i].iss, 2);
    }
    tcp_peer_services(conf, true);
    check_works(conf, 0);
    tcp_peer_end(conf);
}

static void conns_turnover(struct conf *conf)
{
    begin_many(conf);
    for (uint16_t i = 0; i < TURNS; i++) {
        struct tcp_peer peer = good_peer(conf, i);

        tcp_peer_open(&peer);
        tcp_peer_echo(&peer, 10);
        close_both(&peer, 11);
    }
    (void)open_many(conf, PLACES);
    tcp_peer_end(conf);
}

/* Peers that send all that they may, and read nothing. */
static void never_reading(struct conf *conf)
{
    static const uint8_t zeroes[1000];

    begin_many(conf);
    for (uint16_t i = 0; i < PLACES / 2; i++) {
        struct tcp_peer peer = tcp_peer_stranger(conf, i, TCP_PEER_ECHO);

        tcp_peer_open(&peer);
        for (uint32_t at = 0; at + sizeof(zeroes) <= WINDOW;
             at += sizeof(zeroes)) {
            tcp_peer_send(&peer,
                          &(struct tcp_peer_out){.seq = peer.isn + 1 + at,
                                                 .ack = peer.iss + 1,
                                                 .flags = SEG_ACK,
                                                 .data = zeroes,
                                                 .len = sizeof(zeroes)});
        }
    }
    check_works(conf, 0);
    tcp_peer_end(conf);
}

/* Every second byte comes early: a range for each. */
static void every_hole(struct conf *conf)
{
    struct tcp_peer peer = tcp_peer_stranger(conf, 0, TCP_PEER_ECHO);
    uint8_t byte;

    begin_many(conf);
    tcp_peer_open(&peer);
    for (uint32_t i = 1; i < HOLES; i += 2) {
        byte = tcp_peer_byte(i);
        tcp_peer_send(&peer, &(struct tcp_peer_out){.seq = peer.isn + 1 + i,
                                                    .ack = peer.iss + 1,
                                                    .flags = SEG_ACK,
                                                    .window = UINT16_MAX,
                                                    .data = &byte,
                                                    .len = 1});
    }
    check_works(conf, 0);
    tcp_peer_echo(&peer, HOLES);
    tcp_peer_end(conf);
}

static void early_everywhere(struct conf *conf)
{
    struct tcp_peer *peers;
    uint8_t *data = conf_alloc(conf, 1000);

    begin_many(conf);
    for (uint32_t i = 0; i < 1000; i++) {
        data[i] = tcp_peer_byte(100 + i);
    }
    peers = conf_alloc(conf, PLACES * sizeof(*peers));
    for (unsigned int i = 0; i < PLACES; i++) {
        peers[i] = tcp_peer_stranger(conf, i, TCP_PEER_ECHO);
        tcp_peer_open(&peers[i]);
        tcp_peer_send(&peers[i],
                      &(struct tcp_peer_out){.seq = peers[i].isn + 101,
                                             .ack = peers[i].iss + 1,
                                             .flags = SEG_ACK,
                                             .window = UINT16_MAX,
                                             .data = data,
                                             .len = 1000});
        take_flags(&peers[i], SEG_ACK);
    }
    for (uint32_t i = 0; i < 100; i++) {
        data[i] = tcp_peer_byte(i);
    }
    for (unsigned int i = 0; i < PLACES; i++) {
        struct tcp_peer_in in;

        tcp_peer_send(&peers[i], &(struct tcp_peer_out){.seq = peers[i].isn + 1,
                                                        .ack = peers[i].iss + 1,
                                                        .flags = SEG_ACK,
                                                        .window = UINT16_MAX,
                                                        .data = data,
                                                        .len = 100});
        (void)tcp_peer_take(&peers[i], &in, 0);
        conf_equal(conf, "acknowledgement", in.ack - peers[i].isn, 1101);
    }
    tcp_peer_end(conf);
}

/* Whoever sees some of them must not know the others. */
static void numbers_differ(struct conf *conf)
{
    struct tcp_peer peers[NUMBERS];

    tcp_peer_begin(conf);
    for (uint16_t i = 0; i < NUMBERS; i++) {
        peers[i] = good_peer(conf, i);
        tcp_peer_open(&peers[i]);
        for (uint16_t k = 0; k < i; k++) {
            uint32_t away = peers[i].iss - peers[k].iss;

            conf_check(conf, away > NEAR && -away > NEAR,
                       "two initial sequence numbers are %u apart", away);
        }
    }
    tcp_peer_end(conf);
}

static void numbers_grow(struct conf *conf)
{
    uint32_t last = 0;

    tcp_peer_begin(conf);
    for (uint16_t i = 0; i < 4; i++) {
        struct tcp_peer peer = good_peer(conf, 0);

        peer.isn += i * 1000u;
        tcp_peer_open(&peer);
        conf_check(conf, i == 0 || (int32_t)(peer.iss - last) > 0,
                   "the sequence numbers of the same ends went back");
        last = peer.iss;
        tcp_peer_echo(&peer, 1);
        close_both(&peer, 2);
        conf_pass(conf, LEARN_US);
    }
    tcp_peer_end(conf);
}

/* One peer's segments to nobody do not silence the RSTs for others. */
static void reset_limits(struct conf *conf)
{
    struct tcp_peer one =
        tcp_peer_new(conf, 0, 0, false, OWN_PORT, CLOSED_PORT);
    unsigned int answered = 0;

    tcp_peer_begin(conf);
    for (unsigned int i = 0; i < SEGMENTS; i++) {
        send_plain(&one, SEG_ACK, 1, 1);
    }
    for (uint16_t i = 0; i < 8; i++) {
        struct tcp_peer other = tcp_peer_stranger(conf, i, CLOSED_PORT);

        send_plain(&other, SEG_ACK, 1, 1);
        net_settle(conf, 0);
        answered += tcp_peer_count(&other, SEG_RST);
    }
    conf_check(conf, answered >= 6, "%u of 8 other peers got a RST", answered);
    if (conf_target(conf)->is_virtual) {
        conf_check(conf, tcp_peer_count(&one, SEG_RST) <= RSTS_MOST,
                   "%u RSTs for %u segments", tcp_peer_count(&one, SEG_RST),
                   SEGMENTS);
    }
    tcp_peer_end(conf);
}

/* RFC 4291 section 2.5.6 and appendix A: made from the MAC. */
static struct ip_addr link_local(const struct mac_addr *mac)
{
    const uint8_t *m = mac->bytes;

    return (struct ip_addr){{0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2],
                             0xff, 0xfe, m[3], m[4], m[5]}};
}

static void link_local_address(struct conf *conf)
{
    struct tcp_peer peer =
        tcp_peer_new(conf, 0, 0, true, OWN_PORT, TCP_PEER_ECHO);

    peer.path.src = link_local(&peer.path.src_mac);
    peer.path.dst = link_local(&peer.path.dst_mac);
    tcp_peer_begin(conf);
    tcp_peer_open(&peer);
    tcp_peer_echo(&peer, 100);
    tcp_peer_end(conf);
}

/* A SYN that claims to be of a group, of the drive itself, or of nobody. */
static void false_sources(struct conf *conf)
{
    struct tcp_peer peer =
        tcp_peer_new(conf, 0, 0, false, OWN_PORT, TCP_PEER_ECHO);
    const struct ip_addr *own = conf_target_ip(conf, 0, false);
    const struct ip_addr sources[] = {ip_addr_from_v4(0xe0000001),
                                      ip_addr_from_v4(0), *own};

    tcp_peer_begin(conf);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct tcp_peer_in in;

        peer.path.src = sources[i];
        tcp_peer_syn(&peer);
        net_settle(conf, 0);
        conf_check(conf, !tcp_peer_take(&peer, &in, 1),
                   "a SYN from a false source is answered");
    }
    tcp_peer_end(conf);
}

/* RFC 9293 section 3.9.2.3: never to a group. */
static void group_destination(struct conf *conf)
{
    struct tcp_peer peer =
        tcp_peer_new(conf, 0, 0, false, OWN_PORT, TCP_PEER_ECHO);
    struct tcp_peer_in in;

    tcp_peer_begin(conf);
    memset(peer.path.dst_mac.bytes, 0xff, 6);
    tcp_peer_syn(&peer);
    net_settle(conf, 0);
    conf_check(conf, !tcp_peer_take(&peer, &in, 1),
               "a SYN in a broadcast frame is answered");
    peer.path.dst.bytes[15] = 0xff;
    tcp_peer_syn(&peer);
    net_settle(conf, 0);
    conf_check(conf, !tcp_peer_take(&peer, &in, 1),
               "a SYN to a broadcast address is answered");
    tcp_peer_end(conf);
}

#define MANY(id, clause, purpose, run)                                         \
    CONF_TEST(id, clause, purpose, run, .needs = CONF_NEEDS_CONTROL)

static const struct conf_test tests[] = {
    MANY("many.full", "RFC 9293 3.10.7.2",
         "refuse a SYN when all connections are in use, and only then",
         all_places),
    MANY("many.flood", "RFC 4987 2",
         "serve a peer that answers, although SYNs with false sources come",
         flood_of_many),
    MANY("many.flood-of-one", "RFC 4987 2",
         "serve a peer although another one sends SYNs only", flood_of_one),
    MANY("many.off", "RFC 9293 3.10.5",
         "reset each of many connections, with the right number", conns_off),
    MANY("many.turnover", "RFC 9293 3.6",
         "keep nothing of connections that have ended", conns_turnover),
    MANY("many.never-reading", "RFC 9293 3.8.6.1",
         "serve a peer although others read nothing", never_reading),
    MANY("many.every-hole", "RFC 2018 8",
         "serve a peer although another one sends every second byte",
         every_hole),
    MANY("many.early", "RFC 5681 4.2",
         "keep early bytes of all connections at once", early_everywhere),
    MANY("isn.differs", "RFC 6528 3",
         "begin each connection with a number that others do not tell",
         numbers_differ),
    MANY("isn.grows", "RFC 6528 3",
         "begin later connections of the same ends with larger numbers",
         numbers_grow),
    MANY("many.resets", "RFC 5961 7",
         "limit the RSTs for one peer without those for others", reset_limits),
    MANY("frame.link-local", "RFC 4291 2.5.6", "serve link-local addresses",
         link_local_address),
    CONF_TEST("frame.false-source", "RFC 1122 4.2.3.10",
              "answer no SYN from an address that no peer can have",
              false_sources, .needs = CONF_NEEDS_CONTROL, .is_malformed = true),
    MANY("frame.group", "RFC 1122 4.2.3.10",
         "answer no SYN to a broadcast address", group_destination),
};
CONF_TESTS(conf_tests_tcp_many, "tcp", tests);
