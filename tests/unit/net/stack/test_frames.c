/* SPDX-License-Identifier: BSD-2-Clause */
/* Received frames get exact answers, or move a counter of drops. */
#include "tests/unit/net/stack/net_test.h"

#include "net/wire/checksum.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"
#include "tests/unit/net/stack/golden.h"

struct pair {
    const char *name;
    const uint8_t *in;
    size_t in_len;
    const uint8_t *out;
    size_t out_len;
    uint8_t priority;
};

#define PAIR(in, out, priority)                                                \
    {#in, in, sizeof(in), out, sizeof(out), priority}

static const struct pair answered[] = {
    PAIR(arp_ask, arp_answer, 0),
    PAIR(arp_probe, arp_probe_answer, 0),
    PAIR(arp_claim, arp_announce, 0),
    PAIR(ping4, pong4, 0),
    PAIR(ping4_vlan, pong4_vlan, 3),
    PAIR(ping6, pong6, 0),
    PAIR(ping6_all, pong6_all, 0),
    PAIR(ns, na, 0),
    PAIR(ns_plain, na, 0),
    PAIR(ns_dad, na_to_all, 0),
    PAIR(na_claim, na_to_all, 0),
    PAIR(udp4, udp4_unreachable, 0),
    PAIR(udp6, udp6_unreachable, 0),
    PAIR(tcp4_frame, tcp4_unreachable, 0),
    PAIR(tcp6_frame, tcp6_problem, 0),
    PAIR(hops6_frame, pong6, 0),
    PAIR(route6_frame, route6_problem, 0),
    PAIR(report6_frame, report6_problem, 0),
    PAIR(late6_frame, late6_problem, 0),
    PAIR(atomic6_frame, pong6, 0),
};

static void test_answers_are_byte_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        struct world *w = world_ready();
        unsigned since = w->sent_count;

        assert_true(world_input(w, 0, answered[i].in, answered[i].in_len));
        expect_sent(w, since, answered[i].out, answered[i].out_len);
        assert_int_equal(w->sent[since % SENT_MAX].priority,
                         answered[i].priority);
        world_free(w);
    }
}

/* Ethernet pads frames to 60 bytes; the answer must not contain the padding. */
static void test_padding_is_not_part_of_the_packet(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint8_t padded[sizeof(arp_ask) + 18];

    (void)state;
    memset(padded, 0x5a, sizeof(padded));
    memcpy(padded, arp_ask, sizeof(arp_ask));
    INPUT(w, padded);
    expect_sent(w, since, arp_answer, sizeof(arp_answer));
    uint8_t ping[sizeof(ping4) + 5];
    memset(ping, 0x5a, sizeof(ping));
    memcpy(ping, ping4, sizeof(ping4));
    INPUT(w, ping);
    expect_sent(w, since + 1, pong4, sizeof(pong4));
    world_free(w);
}

/* The drive answers for an address only on its own port and VLAN. */
static void test_other_ports_and_vlans_get_no_answer(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        uint8_t tagged[256];

        /* We are in the group of all nodes. */
        if (answered[i].in != ping6_all) {
            assert_true(world_input(w, 1, answered[i].in, answered[i].in_len));
        }
        if (answered[i].in == ping4_vlan) {
            continue;
        }
        memcpy(tagged, answered[i].in, 12);
        memcpy(tagged + 12, "\x81\x00\x00\x0a", 4);
        memcpy(tagged + 16, answered[i].in + 12, answered[i].in_len - 12);
        assert_true(world_input(w, 0, tagged, answered[i].in_len + 4));
    }
    assert_int_equal(w->sent_count, since);
    world_free(w);
}

/* A priority tag (VLAN 0) counts as no VLAN. */
static void test_priority_tagged_frames_count_as_untagged(void **state)
{
    struct world *w = world_ready();
    uint8_t tagged[sizeof(ping4) + 4];
    unsigned since = w->sent_count;

    (void)state;
    memcpy(tagged, ping4, 12);
    memcpy(tagged + 12, "\x81\x00\xa0\x00", 4);
    memcpy(tagged + 16, ping4 + 12, sizeof(ping4) - 12);
    INPUT(w, tagged);
    expect_sent(w, since, pong4, sizeof(pong4));
    assert_int_equal(w->sent[since % SENT_MAX].priority, 5);
    world_free(w);
}

/* A port with a priority tags all sent frames, with and without a VLAN. */
static void test_a_port_with_a_priority_tags_its_frames(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    const struct sent *sent = &w->sent[since % SENT_MAX];

    (void)state;
    w->stack.config.ports[0].priority = 4;
    INPUT(w, ping4);
    assert_int_equal(sent->len, sizeof(pong4) + 4);
    assert_int_equal(sent->priority, 4);
    assert_memory_equal(sent->data + 12, "\x81\x00\x80\x00\x08\x00", 6);
    assert_memory_equal(sent->data + 18, pong4 + 14, sizeof(pong4) - 14);
    INPUT(w, ping4_vlan); /* the answer has the request's priority */
    expect_sent(w, since + 1, pong4_vlan, sizeof(pong4_vlan));
    world_free(w);
}

static void test_without_a_transmit_buffer_nothing_happens(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        struct world *w = world_ready();
        struct net_stack *before = malloc(sizeof(*before));
        unsigned since = w->sent_count;

        assert_non_null(before);
        w->no_room = true;
        w->stack.counters[0][NET_TX_NO_BUFFER]++;
        *before = w->stack;
        w->stack.counters[0][NET_TX_NO_BUFFER]--;
        assert_false(world_input(w, 0, answered[i].in, answered[i].in_len));
        assert_memory_equal(before, &w->stack, sizeof(*before));
        w->no_room = false;
        assert_true(world_input(w, 0, answered[i].in, answered[i].in_len));
        expect_sent(w, since, answered[i].out, answered[i].out_len);
        free(before);
        world_free(w);
    }
}

static size_t make_ping(uint8_t *frame, size_t packet_len)
{
    const struct ipv4 ip = {
        .src = host4,
        .dst = ip_addr_from_v4(0x0a000002),
        .total_len_bytes = (uint16_t)packet_len,
        .ttl = 64,
        .protocol = IP_PROTOCOL_ICMP,
    };
    const struct icmp icmp = {.type = ICMP_ECHO_REQUEST, .rest = 1};

    memcpy(frame, ping4, ETH_LEN);
    ipv4_emit(&ip, frame + ETH_LEN);
    for (size_t i = IPV4_LEN + ICMP_LEN; i < packet_len; i++) {
        frame[ETH_LEN + i] = (uint8_t)i;
    }
    icmp_emit(&icmp, frame + ETH_LEN + IPV4_LEN, packet_len - IPV4_LEN);
    return ETH_LEN + packet_len;
}

static void test_echoes_of_every_size_up_to_the_mtu_are_answered(void **state)
{
    struct world *w = world_ready();
    uint8_t frame[NET_FRAME_MAX + 64];

    (void)state;
    for (size_t len = IPV4_LEN + ICMP_LEN; len <= 9000; len += len / 7) {
        unsigned since = w->sent_count;
        const struct sent *sent = &w->sent[since % SENT_MAX];
        size_t frame_len = make_ping(frame, len);
        struct icmp icmp;

        assert_true(world_input(w, 0, frame, frame_len));
        assert_int_equal(w->sent_count, since + 1);
        assert_int_equal(sent->len, frame_len);
        assert_true(
            icmp_parse(&icmp, sent->data + ETH_LEN + IPV4_LEN, len - IPV4_LEN));
        assert_memory_equal(sent->data + 42, frame + 42, frame_len - 42);
    }
    world_free(w);
}

/* Changes to bytes of valid frames; each one moves one counter of drops. */
static const struct {
    enum net_counter counter;
    const uint8_t *frame;
    size_t len;
    struct {
        size_t offset;
        uint8_t value;
    } change[3];
    char fix; /* '4' IPv4 header checksum, 'i' ICMP, '6' ICMPv6 */
} dropped[] = {
    {NET_DROP_SHORT, arp_ask, 13, {{0}}, 0},
    {NET_DROP_SHORT, ping4_vlan, 17, {{0}}, 0},
    {NET_DROP_SOURCE_MAC, arp_ask, sizeof(arp_ask), {{6, 0x53}}, 0},
    {NET_DROP_ETHERTYPE, arp_ask, sizeof(arp_ask), {{13, 0x07}}, 0},
    {NET_DROP_ARP_MALFORMED, arp_ask, sizeof(arp_ask) - 1, {{0}}, 0},
    {NET_DROP_ARP_MALFORMED, arp_ask, sizeof(arp_ask), {{22, 0x53}}, 0},
    {NET_DROP_ARP_MALFORMED, arp_ask, sizeof(arp_ask), {{28, 0xe0}}, 0},
    {NET_DROP_ARP_NOT_OURS, arp_ask, sizeof(arp_ask), {{41, 9}}, 0},
    {NET_DROP_IPV4_HEADER, ping4, sizeof(ping4), {{24, 0}}, 0},
    {NET_DROP_IPV4_HEADER, ping4, sizeof(ping4) - 1, {{0}}, 0},
    {NET_DROP_IPV4_OPTIONS, ping4, sizeof(ping4), {{14, 0x46}}, '4'},
    {NET_DROP_IPV4_OPTIONS,
     ping4,
     sizeof(ping4),
     {{14, 0x46}, {34, 131}, {35, 4}},
     '4'},
    {NET_DROP_FRAGMENT_MALFORMED, ping4, sizeof(ping4), {{20, 0x20}}, '4'},
    {NET_DROP_FRAGMENT_MALFORMED,
     ping4,
     sizeof(ping4),
     {{20, 0x1f}, {21, 0xff}},
     '4'},
    {NET_DROP_FRAGMENT_MALFORMED,
     atomic6_frame,
     sizeof(atomic6_frame),
     {{57, 1}},
     0},
    {NET_DROP_FRAGMENT_MALFORMED,
     atomic6_frame,
     sizeof(atomic6_frame),
     {{56, 0xff}, {57, 0xf8}},
     0},
    {NET_DROP_FRAGMENT_MALFORMED,
     atomic6_frame,
     sizeof(atomic6_frame),
     {{54, 44}},
     0},
    {NET_DROP_IPV6_HEADER, ping6, sizeof(ping6), {{14, 0x45}}, 0},
    {NET_DROP_IPV6_HEADER, ping6, sizeof(ping6) - 1, {{0}}, 0},
    {NET_DROP_IPV6_EXTENSION, ping6, sizeof(ping6), {{20, 0}, {55, 9}}, 0},
    {NET_DROP_IPV6_EXTENSION, hops6_frame, sizeof(hops6_frame), {{54, 0}}, 0},
    {NET_DROP_IPV6_EXTENSION, hops6_frame, sizeof(hops6_frame), {{57, 9}}, 0},
    {NET_DROP_IPV6_EXTENSION, route6_frame, sizeof(route6_frame), {{0}}, 0},
    {NET_DROP_IPV6_OPTION, report6_frame, sizeof(report6_frame), {{0}}, 0},
    {NET_DROP_IPV6_OPTION, hops6_frame, sizeof(hops6_frame), {{56, 0x45}}, 0},
    {NET_DROP_IPV6_OPTION, hops6_frame, sizeof(hops6_frame), {{56, 0xc5}}, 0},
    {NET_DROP_PROTOCOL, ping6, sizeof(ping6), {{20, 59}}, 0},
    {NET_DROP_REDIRECT, ping4, sizeof(ping4), {{34, 5}}, 'i'},
    {NET_DROP_REDIRECT, ns, sizeof(ns), {{54, 137}}, '6'},
    {NET_DROP_ND_MALFORMED, na_fragment, sizeof(na_fragment), {{0}}, 0},
    {NET_DROP_SOURCE_IP, ping4, sizeof(ping4), {{26, 0xe0}}, '4'},
    {NET_DROP_SOURCE_IP, ping4, sizeof(ping4), {{26, 127}}, '4'},
    {NET_DROP_SOURCE_IP, ping4, sizeof(ping4), {{29, 2}}, '4'},
    {NET_DROP_SOURCE_IP, ping4, sizeof(ping4), {{28, 255}, {29, 255}}, '4'},
    {NET_DROP_SOURCE_IP, ping4, sizeof(ping4), {{26, 0}, {29, 0}}, '4'},
    {NET_DROP_SOURCE_IP, ping6, sizeof(ping6), {{22, 0xff}}, '6'},
    {NET_DROP_SOURCE_IP, ping6, sizeof(ping6), {{37, 2}}, '6'},
    {NET_DROP_NOT_OURS, ping4, sizeof(ping4), {{33, 3}}, '4'},
    {NET_DROP_NOT_OURS, ping4, sizeof(ping4), {{0, 0x03}}, 0}, /* in a group */
    {NET_DROP_NOT_OURS, ping6, sizeof(ping6), {{53, 3}}, '6'},
    {NET_DROP_NOT_OURS, ping6_all, sizeof(ping6_all), {{53, 2}}, '6'},
    {NET_DROP_PROTOCOL, ping4, sizeof(ping4), {{23, 6}}, '4'},
    {NET_DROP_PROTOCOL, ping6, sizeof(ping6), {{20, 6}}, 0},
    {NET_DROP_ICMP_MALFORMED, ping4, sizeof(ping4), {{60, 0xff}}, 0},
    {NET_DROP_ICMP_MALFORMED, ping6, sizeof(ping6), {{70, 0xff}}, 0},
    {NET_DROP_ICMP_TYPE, ping4, sizeof(ping4), {{34, 0}}, 'i'},
    {NET_DROP_ICMP_TYPE, ping6, sizeof(ping6), {{54, 129}}, '6'},
    {NET_DROP_ICMP_TYPE, ns, sizeof(ns), {{54, 139}}, '6'},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{54, 134}}, '6'},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{54, 130}}, '6'},
    {NET_DROP_ECHO_TO_GROUP, ping4, sizeof(ping4), {{0, 0x03}, {30, 224}}, '4'},
    {NET_DROP_ECHO_TO_GROUP,
     ping4,
     sizeof(ping4),
     {{0, 0x03}, {32, 255}, {33, 255}},
     '4'},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{21, 254}}, 0},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{55, 1}}, '6'},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{79, 0}}, '6'},
    {NET_DROP_ND_MALFORMED, ns, sizeof(ns), {{80, 0x53}}, '6'},
    {NET_DROP_ND_MALFORMED, na_claim, sizeof(na_claim), {{58, 0x60}}, '6'},
    {NET_DROP_ND_NOT_OURS, ns, sizeof(ns), {{77, 3}}, '6'},
    {NET_DROP_UDP_MALFORMED, udp4, sizeof(udp4), {{39, 0xff}}, 0},
    {NET_DROP_UDP_MALFORMED, udp4, sizeof(udp4), {{50, 0xff}}, 0},
    {NET_DROP_UDP_MALFORMED, udp6, sizeof(udp6), {{60, 0}, {61, 0}}, 0},
    {NET_DROP_UDP_CLOSED, udp4, sizeof(udp4), {{40, 0}, {41, 0}}, 0},
};

static void fix_checksum(uint8_t *frame, size_t len, char what)
{
    if (what == '4' || what == 'i') {
        frame[24] = frame[25] = 0;
        uint16_t sum = checksum_finish(
            checksum_add(0, frame + 14, (frame[14] & 0xfu) * 4));
        frame[24] = (uint8_t)(sum >> 8);
        frame[25] = (uint8_t)sum;
    }
    if (what == 'i') {
        struct icmp icmp = {.type = frame[34], .rest = 0};

        icmp_emit(&icmp, frame + 34, len - 34);
    }
    if (what == '6') {
        struct ip_addr src = ip_addr_from_bytes(frame + 22);
        struct ip_addr dst = ip_addr_from_bytes(frame + 38);
        struct icmp icmp = {.type = frame[54], .code = frame[55]};

        icmp.rest = (uint32_t)frame[58] << 24;
        icmpv6_emit(&icmp, &src, &dst, frame + 54, len - 54);
    }
}

static void test_every_drop_has_its_counter(void **state)
{
    /* Counters that need several frames: test_fragment.c and tests below. */
    bool moved[NET_COUNTERS] = {[NET_DROP_FRAGMENT_OVERLAP] = true,
                                [NET_DROP_FRAGMENT_EVICTED] = true,
                                [NET_DROP_FRAGMENT_TIMEOUT] = true,
                                [NET_DROP_LIMITED] = true};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
        struct world *w = world_ready();
        enum net_counter counter = dropped[i].counter;
        uint8_t frame[256];

        memcpy(frame, dropped[i].frame, dropped[i].len);
        for (size_t n = 0; n < ARRAY_LEN(dropped[i].change); n++) {
            if (dropped[i].change[n].offset != 0 ||
                dropped[i].change[n].value != 0) {
                frame[dropped[i].change[n].offset] = dropped[i].change[n].value;
            }
        }
        fix_checksum(frame, dropped[i].len, dropped[i].fix);
        assert_true(world_input(w, 0, frame, dropped[i].len));
        if (net_stack_counter(&w->stack, 0, counter) != 1) {
            fail_msg("row %zu: counter %d did not move", i, (int)counter);
        }
        for (int c = NET_DROP_SHORT; c < NET_COUNTERS; c++) {
            assert_int_equal(
                net_stack_counter(&w->stack, 0, (enum net_counter)c),
                c == (int)counter);
        }
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_RX_FRAMES), 1);
        moved[counter] = true;
        world_free(w);
    }
    for (int c = NET_DROP_SHORT; c < NET_COUNTERS; c++) {
        assert_true(moved[c]);
    }
}

/* 10 at once, then 10 a second. */
static void test_icmp_errors_are_limited(void **state)
{
    struct world *w = world_ready();

    (void)state;
    for (int i = 0; i < 100; i++) {
        INPUT(w, udp4);
    }
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ICMP_ERRORS_SENT), 10);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ICMP_ERRORS_LIMITED),
                     90);
    for (int i = 0; i < 100; i++) {
        w->now_us += SECOND / 100;
        INPUT(w, udp6);
    }
    assert_in_range(net_stack_counter(&w->stack, 0, NET_ICMP_ERRORS_SENT), 19,
                    20);
    world_free(w);
}

/* Answers of ARP, neighbour discovery and echo have rate limits. */
static void test_answers_are_limited(void **state)
{
    static const struct {
        const uint8_t *frame;
        size_t len;
        unsigned burst, rate;
    } rows[] = {
        {arp_ask, sizeof(arp_ask), 2048, 2000},
        {ns, sizeof(ns), 2048, 2000},
        {ping4, sizeof(ping4), 512, 20000},
        {ping6, sizeof(ping6), 512, 20000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_ready();
        unsigned since = w->sent_count;

        for (unsigned n = 0; n < rows[i].burst + 100; n++) {
            assert_true(world_input(w, 0, rows[i].frame, rows[i].len));
        }
        assert_int_equal(w->sent_count - since, rows[i].burst);
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_LIMITED),
                         100);
        w->now_us += SECOND / 100;
        for (unsigned n = 0; n < 1000; n++) {
            assert_true(world_input(w, 0, rows[i].frame, rows[i].len));
        }
        assert_int_equal(w->sent_count - since,
                         rows[i].burst + rows[i].rate / 100);
        world_free(w);
    }
}

/* RFC 4443 section 2.4 (e): neither errors nor groups are answered. */
static void test_errors_are_not_answered_with_errors(void **state)
{
    struct world *w = world_ready();
    uint8_t frame[sizeof(route6_frame)];
    unsigned since = w->sent_count;

    (void)state;
    memcpy(frame, route6_frame, sizeof(frame));
    frame[54 + 24] = ICMPV6_UNREACHABLE;
    INPUT(w, frame);
    memcpy(frame, route6_frame, sizeof(frame));
    memcpy(frame, "\x33\x33\0\0\0\1", 6);
    memcpy(frame + 38, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    INPUT(w, frame);
    assert_int_equal(w->sent_count, since);
    memcpy(frame, report6_frame, sizeof(report6_frame));
    memcpy(frame, "\x33\x33\0\0\0\1", 6);
    memcpy(frame + 38, "\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
    assert_true(world_input(w, 0, frame, sizeof(report6_frame)));
    assert_int_equal(w->sent_count, since + 1); /* this one is answered */
    world_free(w);
}

static const struct ip_addr remote6 = {{0x20, 1, 0xd, 0xb8, 0, 5, [15] = 5}};

/* Make a "too big" message (RFC 1191, RFC 8201) that quotes the answer to a
 * ping of `to`. */
static size_t make_too_big(uint8_t *frame, uint16_t mtu_bytes,
                           const struct ip_addr *to)
{
    bool v4 = ip_addr_is_v4(to);
    size_t at = ETH_LEN + (v4 ? IPV4_LEN : IPV6_LEN);
    struct icmp icmp = {.type = ICMP_UNREACHABLE,
                        .code = ICMP_CODE_FRAGMENTATION_NEEDED,
                        .rest = mtu_bytes};
    struct ip_addr src, dst;

    if (v4) {
        struct ipv4 ip = {.src = gateway4,
                          .dst = ip_addr_from_v4(0x0a000002),
                          .total_len_bytes = IPV4_LEN + ICMP_LEN + 28,
                          .ttl = 9,
                          .protocol = IP_PROTOCOL_ICMP};

        memcpy(frame, pong4, ETH_LEN);
        ipv4_emit(&ip, frame + ETH_LEN);
        memcpy(frame + at + ICMP_LEN, pong4 + ETH_LEN, 28);
        put_be32(frame + at + ICMP_LEN + IPV4_DST, ip_addr_to_v4(to));
        icmp_emit(&icmp, frame + at, ICMP_LEN + 28);
    } else {
        memcpy(frame, ping6, at);
        frame[ETH_LEN + 5] = ICMP_LEN + 48;
        memcpy(frame + at + ICMP_LEN, pong6 + ETH_LEN, 48);
        memcpy(frame + at + ICMP_LEN + IPV6_DST, to->bytes, 16);
        icmp.type = ICMPV6_TOO_BIG;
        icmp.code = 0;
        src = ip_addr_from_bytes(frame + 22);
        dst = ip_addr_from_bytes(frame + 38);
        icmpv6_emit(&icmp, &src, &dst, frame + at, ICMP_LEN + 48);
    }
    memcpy(frame, ping4, 12);
    return at + ICMP_LEN + (v4 ? 28 : 48);
}

static void test_a_reported_path_mtu_is_used_within_bounds(void **state)
{
    static const struct {
        bool v4;
        uint16_t said, noted;
    } rows[] = {
        {true, 1400, 1400},  {true, 0, 576},      {true, 68, 576},
        {true, 9000, 9000},  {false, 1400, 1400}, {false, 1279, 9000},
        {false, 1280, 1280},
    };
    uint8_t frame[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_ready();
        const struct ip_addr *ip = rows[i].v4 ? &remote4 : &remote6;
        size_t len = make_too_big(frame, rows[i].said, ip);
        uint16_t index;

        assert_true(world_input(w, 0, frame, len)); /* an unknown peer */
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_PATH_MTU_NOTED),
                         0);
        index = world_learn(w, rows[i].v4 ? 0 : 1, ip, &host_mac);
        assert_true(world_input(w, 0, frame, len));
        assert_int_equal(net_neigh_path_mtu(&w->stack, index, w->now_us),
                         rows[i].noted);
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_PATH_MTU_NOTED),
                         rows[i].noted != 9000);
        assert_int_equal(
            net_stack_counter(&w->stack, 0, NET_ICMP_ERRORS_RECEIVED), 2);
        assert_int_equal(
            net_neigh_path_mtu(&w->stack, index, w->now_us + NEIGH_PATH_MTU_US),
            9000);
        for (size_t cut = 0; cut < len; cut++) {
            assert_true(world_input(w, 0, frame, cut));
        }
        world_free(w);
    }
}

/* No router is between us and a neighbour on the link, so the report is
 * forged. */
static void test_a_path_mtu_for_a_neighbour_on_the_link_is_ignored(void **state)
{
    static const struct ip_addr *const ips[] = {&host4, &host6};
    uint8_t frame[256];

    (void)state;
    for (uint8_t i = 0; i < ARRAY_LEN(ips); i++) {
        struct world *w = world_ready();
        uint16_t index = world_learn(w, i, ips[i], &host_mac);

        assert_true(
            world_input(w, 0, frame, make_too_big(frame, 1280, ips[i])));
        assert_int_equal(net_neigh_path_mtu(&w->stack, index, w->now_us), 9000);
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_PATH_MTU_NOTED),
                         0);
        world_free(w);
    }
}

struct delivered {
    unsigned count;
    struct net_udp_rx last;
    uint8_t payload[64];
};

static void deliver_udp(void *ctx, const struct net_udp_rx *udp)
{
    struct delivered *d = ctx;

    d->count++;
    d->last = *udp;
    assert_true(udp->len_bytes <= sizeof(d->payload));
    memcpy(d->payload, udp->payload, udp->len_bytes);
}

static void test_udp_datagrams_reach_the_bound_handler(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    struct delivered d = {0};

    (void)state;
    assert_true(net_stack_udp_bind(&w->stack, 2000, deliver_udp, &d));
    assert_false(net_stack_udp_bind(&w->stack, 2000, deliver_udp, &d));
    INPUT(w, udp4);
    assert_int_equal(d.count, 1);
    assert_true(ip_addr_equal(&d.last.src, &host4));
    assert_int_equal(ip_addr_to_v4(&d.last.dst), 0x0a000002);
    assert_int_equal(d.last.src_port, 1000);
    assert_int_equal(d.last.dst_port, 2000);
    assert_int_equal(d.last.vlan, NET_VLAN_UNTAGGED);
    assert_int_equal(d.last.len_bytes, 37);
    assert_memory_equal(d.payload, udp4 + 42, 37);
    INPUT(w, udp6);
    assert_int_equal(d.count, 2);
    assert_true(ip_addr_equal(&d.last.src, &host6));
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_UDP_DELIVERED), 2);
    assert_int_equal(w->sent_count, since);
    for (uint16_t port = 1; port < NET_UDP_BINDINGS; port++) {
        assert_true(net_stack_udp_bind(&w->stack, port, deliver_udp, &d));
    }
    assert_false(net_stack_udp_bind(&w->stack, 99, deliver_udp, &d));
    world_free(w);
}

/* Frames that are truncated or have one wrong bit do no harm, and the counters
 * add up. */
static void test_hostile_frames_do_no_harm(void **state)
{
    struct world *w = world_ready();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answered); i++) {
        uint8_t frame[256];

        for (size_t len = 0; len < answered[i].in_len; len++) {
            assert_true(world_input(w, 0, answered[i].in, len));
        }
        for (size_t bit = 0; bit < answered[i].in_len * 8; bit++) {
            memcpy(frame, answered[i].in, answered[i].in_len);
            frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            assert_true(world_input(w, 0, frame, answered[i].in_len));
        }
        world_run(w, w->now_us + SECOND);
        check_neigh(w);
    }
    assert_true(net_stack_is_usable(&w->stack, 0));
    assert_true(net_stack_is_usable(&w->stack, 1));
    world_free(w);
}

static void test_a_port_lists_its_multicast_groups(void **state)
{
    static const struct mac_addr expected[] = {
        {{0x33, 0x33, 0, 0, 0, 1}},
        {{0x33, 0x33, 0xff, 0, 0, 2}},
        {{0x33, 0x33, 0xff, 0, 0, 0x10}},
    };
    struct mac_addr macs[NET_MULTICAST];
    struct world *w = world_ready();

    (void)state;
    assert_int_equal(net_stack_multicast(&w->stack, 0, macs),
                     ARRAY_LEN(expected));
    assert_memory_equal(macs, expected, sizeof(expected));
    assert_int_equal(net_stack_multicast(&w->stack, 1, macs), 2);
    world_free(w);
}
